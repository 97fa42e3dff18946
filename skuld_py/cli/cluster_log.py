"""``skuld cluster log``: the entries of the coordination log, their writers, and what came of each.

One line per entry, streamed, for a log may be long and may be followed. Refused and failed entries stand out: all
members passed over them alike, and an operator should know.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option

if TYPE_CHECKING:
    from skuld_py.cli.journal import Line

_COLUMNS = "{:>10}  {:<19}  {:<30}  {:<12}  {:<10}  "


@click.command()
@click.argument("cluster", metavar="NAME")
@zookeeper_option
@click.option("--from", "start", type=click.IntRange(0), metavar="POSITION", default=None,
              show_default="the newest few", help="Begin at this position.")
@click.option("-n", "--entries", "count", type=click.IntRange(1), default=None,
              show_default="20, or all with --from",
              help="How many entries at most: the newest ones, or the first ones with --from.")
@click.option("-f", "--follow", is_flag=True, show_default=False, help="Go on with what comes, until Ctrl-C.")
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def log(cluster: str, hosts: str, start: int | None, count: int | None, follow: bool, timeout_s: float,
        as_json: bool) -> None:
    """Show the entries of the coordination log of the cluster NAME: who joined, left, was refused, and why.

    TIME is ZooKeeper's.

    \b
    OUTCOME is what every member made of the entry:
      applied     it changed what is said behind it
      unchanged   it came late or out of turn, and had nothing to change any more
      repeated    the same entry stands before it; an answer was lost, and it was written again
      late        its writer had left
      ! refused   it may not be applied; the reason is said behind it
      ! failed    it cannot be read, or there is an error in it; all skip it
      collected   it is older than the log's origin, and no longer played

    \b
    Examples:
      skuld cluster log skuld
      skuld cluster log skuld --from 1200 -n 50
      skuld cluster log skuld --follow
      skuld cluster log skuld --from 0 --json | jq 'select(.outcome == "refused")'
    """
    from skuld_py.cli.journal import Journal
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.clusters import read_parameters

    check_name("cluster", cluster)
    journal = Journal(hosts, read_parameters(hosts, cluster, timeout_s), timeout_s)
    show = _Shown(as_json)
    if start is None:
        show.all(deque(journal.lines(), maxlen=count or 20))
        count = None
    elif not follow or count is not None:
        show.all(journal.lines(start), count)
    if follow:
        show.all(journal.lines(max(show.next, start or 0), is_endless=True))


class _Shown:
    """Lines on their way out. ``next`` is the position behind the last one."""

    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._has_header = as_json
        self.next = 0

    def all(self, lines: Iterable[Line], count: int | None = None) -> None:
        for number, line in enumerate(lines, 1):
            self._print(line)
            self.next = line.position + 1
            if number == count:
                return

    def _print(self, line: Line) -> None:
        from skuld_py.cli import showing
        from skuld_py.verbs.words import moment

        if self._as_json:
            showing.print_json(line.document())
            return
        if not self._has_header:
            self._has_header = True
            click.echo(_COLUMNS.format("POSITION", "TIME", "WRITER", "COMMAND", "OUTCOME") + "WHAT")
        writer, kind = (line.entry.writer, line.entry.command.kind) if line.entry else ("?", "?")
        text = _COLUMNS.format(line.position, moment(line.at_ms)[:19], writer, kind,
                               f"! {line.outcome}" if line.is_bad else line.outcome)
        text += showing.shortened(showing.shown(line.detail.encode()), len(text))
        click.secho(text.rstrip(), fg="red" if line.is_bad else None, bold=line.is_bad or None)
