"""``skuld cancel``, ``retry``, ``results``: what others than a holder decide about tasks, or learn of them.

They name tasks by their ids, several at once, and may be repeated safely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.acting import Done, client_verb
from skuld_py.cli.options import client_options, connected, copies_option
from skuld_py.cli.values import DURATION, TASK_ID, many

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
@click.option("--wait", "wait_s", type=DURATION, metavar="DURATION", default="0s",
              help="Wait until all of them have ended, for so long; fail if they have not by then.")
@client_options
def results(ids: tuple[bytes, ...], wait_s: float, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the results of the tasks ID..., tab-separated behind their ids; of those without one, the id alone.

    Refused (no_such_task) when one of them is collected, or too old to be enqueued yet.

    With --json how each has ended, too: completed, cancelled or dead, and the last error.

    \b
    Examples:
      skuld results 000006cvl5s5o0000000e1k0g5u3k7qh --wait 10m
      skuld results 000006cvl5s5o0000000e1k0g5u3k7qh --json
    """
    import attrs

    from skuld_py.cli import showing
    from skuld_py.errors import Refused
    from skuld_py.model.ids import to_text
    from skuld_py.verbs import documents

    with connected(nodes, timeout_s) as client:
        found = client.ends(ids, wait_s=wait_s)
    for end in found:
        text = to_text(end.id)
        words = text if end.result is None else f"{text}\t{showing.shown(end.result)}"
        document = documents.end(attrs.evolve(end, result=end.result or b"", error=end.error or b""))
        showing.print_event(as_json, words, **document, has_result=end.result is not None)
    left = sum(1 for end in found if not end.state)
    if wait_s and left:
        raise Refused("not_ended", f"ids: {left} of {len(found)} have not ended by now; wait longer")
