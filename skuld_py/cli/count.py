"""``skuld count``: a number and nothing else, so that a script can compare it.

How many of each queue are in which state is a question for ``skuld status``.
"""

from __future__ import annotations

import click

from skuld_py.cli.options import client_options, connected, states_option


@click.command()
@click.argument("queue", required=False)
@states_option
@client_options
def count(queue: str | None, states: tuple[str, ...], nodes: str, timeout_s: float, as_json: bool) -> None:
    """Print how many tasks QUEUE holds, or the whole cluster; whatever their state.

    \b
    Examples:
      skuld count
      skuld count reports --state waiting
      skuld count reports --json
    """
    from skuld_py.cli.showing import print_json
    from skuld_py.model.names import check_name

    if queue is not None:
        check_name("queue", queue)
    with connected(nodes, timeout_s) as client:
        number = client.count(queue, states=states)
    print_json({"queue": queue, "count": number}) if as_json else click.echo(str(number))
