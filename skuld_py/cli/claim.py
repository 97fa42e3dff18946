"""``skuld claim``: hold tasks under a lease, from a shell.

What a script needs afterwards is printed: the id, and the token with its proof, which together are the claim. The
lease runs on when this command has ended; renew, complete or release it with the other verbs.
"""

from __future__ import annotations

import click

from skuld_py.cli.acting import taking
from skuld_py.cli.options import client_options, connected
from skuld_py.verbs import holding


@click.command()
@taking(*holding.claim.asks.options)
@client_options
def claim(queue: str, n: int, lease_s: float, wait_s: float, holder: str | None, nodes: str,
          timeout_s: float, as_json: bool) -> None:
    """Hold waiting tasks of QUEUE, nearly the best of all nodes; print id, token and payload, tab-separated.

    The token is a number, and behind a dash the proof that the claim was granted: other verbs want both.

    Best is the highest priority, then the oldest. When nothing waits it prints nothing, says so on standard
    error, and exits 0; so it does where the queue is paused, its limits are reached, or some partitions have no
    leader, and says that. Where none has one, who could say what waits, it is refused. Payloads that are no UTF-8
    are shown as base64:...; --json has them exactly.

    \b
    Examples:
      skuld claim reports
      skuld claim reports -n 10 --lease 5m --wait 30s
      read -r id token payload < <(skuld claim reports) && make "$payload" && skuld complete "$id" "$token"
    """
    from skuld_py.cli.showing import print_json, shown, token_text
    from skuld_py.verbs import documents, withholding

    with connected(nodes, timeout_s, holder) as client:
        claims = client.claim(queue, n=n, lease_s=lease_s, wait_s=wait_s)
    if as_json:
        print_json({"claims": [{**documents.granted(held), "remaining_s": round(held.remaining_s, 3)}
                               for held in claims], **withholding.withheld_of(claims)})
        return
    for held in claims:
        click.echo(f"{held.id}\t{token_text(held)}\t{shown(held.payload)}")
    if not claims:
        click.echo(withholding.nothing_said(queue, claims.withheld), err=True)
