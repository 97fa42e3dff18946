"""``skuld backup``: copies of nodes' stores, taken beside nodes that serve, and checked.

No node and no ZooKeeper is asked: the verb runs on the machine of the data directory, as the node's user.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from skuld_py.cli.groups import Words
from skuld_py.cli.options import json_option
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.runtime.backup import Manifest

_DIRECTORY = click.Path(file_okay=False, path_type=Path)


@click.group(cls=Words)
def backup() -> None:
    """Copy the stores of nodes that serve, and check such copies."""


@backup.command()
@click.argument("to", type=_DIRECTORY)
@click.option("--from", "directories", type=_DIRECTORY, multiple=True, required=True, metavar="DATA",
              help="The data directory of a node of this machine; may be given several times.")
@json_option
def take(to: Path, directories: tuple[Path, ...], as_json: bool) -> None:
    """Copy the stores of nodes into new directories below TO, one for each, while they serve.

    Each copy is one moment of its node, is read through, and has a manifest. It needs room for the node's data.
    The node is not held up; what it frees meanwhile it uses again only once the copy is done. For a backup of a
    cluster run this on every machine, about the same time. What to do with backups is in 'skuld manual operating'.
    The cluster's key file is not in them: keep a copy of it elsewhere.

    \b
    Examples:
      skuld backup take /backups/2026-11-26 --from /var/lib/skuld/13000
      skuld backup take /backups/2026-11-26 --from /var/lib/skuld/13000 --from /var/lib/skuld/13001
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.extras import require

    require("node", who="skuld backup")
    from skuld_py.runtime.backup import take_backup

    for data in directories:
        place, manifest = take_backup(data, to)
        print_event(as_json, f"{place}: {_said(manifest)}", backup=str(place), **_shown(manifest))


@backup.command()
@click.argument("backups", type=_DIRECTORY, nargs=-1, required=True)
@json_option
def verify(backups: tuple[Path, ...], as_json: bool) -> None:
    """Read backups through: every byte and every record must be as it was written.

    \b
    Examples:
      skuld backup verify /backups/2026-11-26/node1.example.org-13000
      skuld backup verify /backups/2026-11-26/*
    """
    from skuld_py.cli.showing import print_event
    from skuld_py.extras import require

    require("node", who="skuld backup")
    from skuld_py.runtime.backup import check_backup

    for place in backups:
        manifest = check_backup(place)
        print_event(as_json, f"{place} is whole: {_said(manifest)}", backup=str(place), **_shown(manifest))


def _said(manifest: Manifest) -> str:
    from skuld_py.verbs.words import moment

    return (f"node {manifest.node} of cluster {manifest.cluster} at {moment(manifest.taken_ms)},"
            f" {many(manifest.partitions, 'partition')}, {sum(manifest.records.values()):,} records")


def _shown(manifest: Manifest) -> dict[str, object]:
    import attrs

    return attrs.asdict(manifest)
