"""``skuld cancel``, ``retry``, ``results``: what others than a holder decide about tasks, or learn of them.

They name tasks by their ids, several at once, and may be repeated safely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.acting import Done, client_verb
from skuld_py.cli.options import client_options, connected, copies_option
from skuld_py.cli.values import TASK_ID, many

if TYPE_CHECKING:
    from skuld_py.client.client import Client

_ids = click.argument("ids", metavar="ID...", type=TASK_ID, nargs=-1, required=True)


@client_verb
@_ids
@copies_option
def cancel(client: Client, ids: tuple[bytes, ...], copies: int | None) -> Done:
    """Cancel the tasks ID...: nobody claims them any more, and who holds one learns it when he renews.

    \b
    Example:
      skuld cancel 000006cvl5s5o0000000e1k0g5u3k7qh
    """
    client.cancel(*ids, w=copies)
    return f"{many(len(ids), 'task')} cancelled", {"cancelled": len(ids)}


@client_verb
@_ids
def retry(client: Client, ids: tuple[bytes, ...]) -> Done:
    """Let the dead tasks ID... be claimed again, with all their attempts before them.

    \b
    Example:
      skuld retry 000006cvl5s5o0000000e1k0g5u3k7qh
    """
    client.retry(*ids)
    return f"{many(len(ids), 'task')} revived", {"revived": len(ids)}


@click.command()
@_ids
@client_options
def results(ids: tuple[bytes, ...], nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the results of the tasks ID..., tab-separated behind their ids; of those without one, the id alone.

    \b
    Example:
      skuld results 000006cvl5s5o0000000e1k0g5u3k7qh --json
    """
    from skuld_py.cli import showing
    from skuld_py.model.ids import to_text

    with connected(nodes, timeout_s) as client:
        found = client.results(ids)
    for task_id, result in zip(ids, found, strict=True):
        text = to_text(task_id)
        words = text if result is None else f"{text}\t{showing.shown(result)}"
        showing.print_event(as_json, words, id=text, has_result=result is not None,
                            **showing.bytes_fields("result", result or b""))
