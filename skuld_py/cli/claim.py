"""``skuld claim``: hold tasks under a lease, from a shell.

What a script needs afterwards is printed: the id, and the token with its proof, which together are the claim. The
lease runs on when this command has ended; renew, complete or release it with the other verbs.
"""

from __future__ import annotations

import click

from skuld_py.cli.options import client_options, connected
from skuld_py.cli.values import DURATION, LEASE


@click.command()
@click.argument("queue")
@click.option("-n", "count", type=int, default=1, help="How many tasks at most.")
@click.option("--lease", "lease_s", type=LEASE, metavar="DURATION", default="60s",
              help="How long to hold them.")
@click.option("--wait", "wait_s", type=DURATION, metavar="DURATION", default="0s",
              help="How long to wait when nothing can be claimed yet.")
@click.option("--holder", metavar="NAME", default=None, show_default="HOSTNAME:PID",
              help="Who holds them, for readers of the task.")
@client_options
def claim(queue: str, count: int, lease_s: float, wait_s: float, holder: str | None, nodes: str,
          timeout_s: float, as_json: bool) -> None:
    """Hold waiting tasks of QUEUE, nearly the best of all nodes; print id, token and payload, tab-separated.

    The token is a number, and behind a dash the proof that the claim was granted: other verbs want both.

    Best is the highest priority, then the oldest. When nothing waits it prints nothing, says so on standard
    error, and exits 0; where no partition has a leader, who could say what waits, it is refused. Payloads that
    are no UTF-8 are shown as base64:...; --json has them exactly.

    \b
    Examples:
      skuld claim reports
      skuld claim reports -n 10 --lease 5m --wait 30s
      read -r id token payload < <(skuld claim reports) && make "$payload" && skuld complete "$id" "$token"
    """
    from skuld_py.cli.showing import print_json, shown, token_text
    from skuld_py.verbs import documents

    with connected(nodes, timeout_s, holder) as client:
        claims = client.claim(queue, n=count, lease_s=lease_s, wait_s=wait_s)
    if as_json:
        print_json({"claims": [{**documents.granted(held), "remaining_s": round(held.remaining_s, 3)}
                               for held in claims]})
        return
    for held in claims:
        click.echo(f"{held.id}\t{token_text(held)}\t{shown(held.payload)}")
    if not claims:
        click.echo(f"nothing to claim in {queue} now; --wait 30s waits for something", err=True)
