"""``skuld cluster documents``: what stands in ZooKeeper about each partition, also while no node runs.

It is shown as it stands, field by field: fields of a later release and what somebody has written by hand among it,
and what cannot be read at all. So an operator sees what nodes see, before he mends it.
"""

from __future__ import annotations

import json

import click

from skuld_py.cli.options import json_option, timeout_option, zookeeper_option


@click.command()
@click.argument("name")
@click.argument("partition", type=click.IntRange(0, 4_095), required=False)
@zookeeper_option
@timeout_option("10s", "ZooKeeper's answer")
@json_option
def documents(name: str, partition: int | None, hosts: str, timeout_s: float, as_json: bool) -> None:
    """Show the documents of the partitions of the cluster NAME, or of PARTITION, as they stand in ZooKeeper.

    A document says who leads the partition since which epoch, by whose votes, until when claims may last, what
    operators hold and wish, and what the leadership before was. How it came about says 'skuld cluster history'.

    \b
    Examples:
      skuld cluster documents skuld 3
      skuld cluster documents skuld --json | jq -r 'select(.document.freeze) | .partition'
    """
    from skuld_py.cli.showing import harmless, print_json
    from skuld_py.client.json_text import json_text
    from skuld_py.errors import Refused
    from skuld_py.model.names import check_name
    from skuld_py.runtime.zookeeper.clusters import read_parameters, read_texts

    parameters = read_parameters(hosts, check_name("cluster", name), timeout_s)
    if partition is not None and partition >= parameters.partitions:
        raise Refused("unknown_partition", f"PARTITION: cluster {name} has {parameters.partitions} partitions, 0"
                      f" to {parameters.partitions - 1}", partition=partition)
    found = read_texts(hosts, parameters, timeout_s)
    for each in range(parameters.partitions) if partition is None else [partition]:
        version, text = found.get(each, (-1, ""))
        made = _object(text)
        if as_json:
            print_json({"partition": each, "version": version, "document": made,
                        "text": None if made is not None or version < 0 else text})
            continue
        click.secho(f"partition {each}: " + ("it has had no leader" if version < 0 else f"revision {version}"),
                    bold=True)
        if version >= 0:
            rows = [text] if made is None else [f"{field}: {json_text(value)}" for field, value in made.items()]
            click.echo("\n".join(f"  {harmless(row)}" for row in rows))


def _object(text: str) -> dict[str, object] | None:
    """The fields of a document; None if it has none."""
    try:
        made = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return made if isinstance(made, dict) else None
