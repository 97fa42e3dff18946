"""``skuld history files``: which files an archive consists of now, for whoever reads Parquet by other means."""

from __future__ import annotations

import click

from skuld_py.cli.options import json_option
from skuld_py.cli.values import DAY


@click.command()
@click.argument("root")
@click.option("--queue", metavar="QUEUE", default=None, show_default="all", help="Only files of this queue.")
@click.option("--day", type=DAY, metavar="DAY", default=None, show_default="all",
              help="Only files of tasks that ended on this day, in UTC, as 2026-12-01.")
@json_option
def files(root: str, queue: str | None, day: str | None, as_json: bool) -> None:
    """Print the paths of an archive's live files, in which each task stands once, a line each; with --json what
    the manifest says of each: rows, size, queue, day, and between which ids and times its rows lie.

    ROOT is a directory of this machine. What earlier releases wrote must be taken over before, by 'skuld archive
    compact'.

    \b
    Examples:
      skuld history files /srv/skuld-archive | tr '\\n' '\\0' | xargs -0 cat | wc --bytes
      skuld history files /srv/skuld-archive --day 2026-12-01 --json | jq -s 'map(.rows) | add'
    """
    import shlex

    import attrs

    from skuld_py.archive.live import live
    from skuld_py.archive.places import check_archive, local_path
    from skuld_py.cli.showing import print_json
    from skuld_py.errors import Refused
    from skuld_py.model.names import check_name
    from skuld_py.verbs.words import many

    if queue is not None:
        check_name("queue", queue)
    path = local_path(root)
    if path is None:
        raise Refused("not_an_archive", f"root: {root} has no manifest: only archives in directories have one",
                      root=root)
    check_archive(root)
    found = live(path)
    if found.old:
        raise Refused("old_layout", f"root: the manifest does not name {many(len(found.old), 'file')} of an"
                      f" earlier release; 'skuld archive compact {shlex.quote(root)}' takes them over",
                      root=root)
    wanted = [file for file in found.files if queue in (None, file.queue) and day in (None, file.day)]
    for file in sorted(wanted, key=lambda each: (each.day, each.queue, each.first_id)):
        print_json({**attrs.asdict(file), "path": str(path / file.path)}) if as_json else click.echo(
            str(path / file.path))
    if not wanted and not as_json:
        click.echo("no such files", err=True)
