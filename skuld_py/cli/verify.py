"""``skuld verify``: one line and an exit status for monitoring, as its plugins have them.

The words are those of ``skuld status``, from the same views. Whether claims are granted and tasks stored decides
how bad it is, not which concern there is: a paused queue is an operator's wish, a lost leader is not. What was
chosen for good, as one copy of each task, is told and is no warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import addresses_of, client_options

if TYPE_CHECKING:
    from skuld_py.cli.situation import Situation

OK, WARNING, CRITICAL, UNKNOWN = range(4)
LEVELS = ("OK", "WARNING", "CRITICAL", "UNKNOWN")


@click.command()
@client_options
@click.pass_context
def verify(ctx: click.Context, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Say in one line whether the cluster is well, and by the exit status.

    \b
    0  OK        every partition stores tasks and grants claims, and nothing needs attention
    1  WARNING   that is so, and something needs attention
    2  CRITICAL  a partition grants no claims, or stores no tasks
    3  UNKNOWN   no node answers, or none that keeps a partition which seems well

    Where nodes are more than copies, as many are asked as it takes to hear of every partition what is held, and
    what keeps its leader from granting. One that does not answer is named.

    \b
    Examples:
      skuld verify
      skuld verify --json | jq -r .service
    """
    from skuld_py.cli.showing import print_json
    from skuld_py.cli.situation import ask
    from skuld_py.errors import SkuldError

    try:
        situation = ask(addresses_of(nodes), timeout_s)
    except SkuldError as problem:
        level, line, facts = UNKNOWN, f"no node answers: {problem}", dict[str, object]()
    else:
        level, line, facts = judged(situation)
    if as_json:
        print_json({"level": LEVELS[level].lower(), "words": line, **facts})
    else:
        click.echo(f"{LEVELS[level]}: {line}")
    ctx.exit(level)


def judged(situation: Situation) -> tuple[int, str, dict[str, object]]:
    """How it is, in a line, and in facts."""
    from skuld_py.cli.situation import attention, concerns
    from skuld_py.model.service import tally, worst
    from skuld_py.verbs.attention import level_of

    services = situation.services
    service, counts = worst(services), tally(services)
    troubles = attention(situation)
    level = LEVELS.index(level_of(service, concerns(situation)).upper())
    said = ", ".join(f"{counts[each]} of {len(services)} partitions {each}" for each in counts if counts[each])
    line = "; ".join([f"cluster {situation.greeted.cluster}: {said or 'nothing is placed yet'}", *troubles])
    return level, line, {"service": service.value, "partitions": {each.value: counts[each] for each in counts},
                         "attention": troubles}
