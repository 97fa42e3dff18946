"""``skuld results``: how tasks have ended, and what came of them, now or once they have."""

from __future__ import annotations

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.verbs import tasks

BAD = ("dead", "cancelled")
"""Ends without a result."""


@click.command()
@taking(*tasks.results.asks.options)
@client_options
def results(ids: tuple[bytes, ...], wait_s: float, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Show the results of the tasks ID..., tab-separated behind their ids; of those without one, the id alone.

    Says on standard error of those that are dead or cancelled that they are, and why, and fails (not_completed).

    Refused (no_such_task) when one of them is collected, or so old that it will not come. The refusal
    says in which archive it may be.

    With --json how each has ended, too: completed, cancelled or dead, and the last error.

    \b
    Examples:
      skuld results 000006cvl5s5o0000000e1k0g5u3k7qh --wait 10m
      skuld results 000006cvl5s5o0000000e1k0g5u3k7qh --json
    """
    import attrs

    from skuld_py.cli import showing
    from skuld_py.cli.collected import told_where
    from skuld_py.errors import Refused
    from skuld_py.model.ids import to_text
    from skuld_py.verbs import documents

    with connected(nodes, timeout_s) as client, told_where(client, ids):
        found = client.ends(ids, wait_s=wait_s)
    for end in found:
        text = to_text(end.id)
        words = text if end.result is None else f"{text}\t{showing.result_shown(end.result)}"
        document = documents.end(attrs.evolve(end, error=end.error or b""))
        showing.print_event(as_json, words, **document, has_result=end.result is not None)
        if not as_json and end.state in BAD:
            why = showing.shown((end.error or b"").partition(b"\n")[0])
            click.echo(f"{text} is {end.state}" + (f": {why}" if why else ""), err=True)
    bad = sum(1 for end in found if end.state in BAD)
    if bad:
        raise Refused("not_completed", f"ids: {bad} of {len(found)} {'is' if bad == 1 else 'are'} dead or"
                      " cancelled, and will have no result unless retried")
    left = sum(1 for end in found if not end.state)
    if wait_s and left:
        raise Refused("not_ended", f"ids: {left} of {len(found)} have not ended by now; wait longer")
