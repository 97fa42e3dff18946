"""``skuld workflow graph``: the graph of a definition, as text or as SVG; of a submitted one, how far it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from skuld_py.cli.definitions import definition_argument, definition_of
from skuld_py.cli.options import client_options, connected

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.workflow.definition.definition import Definition
    from skuld_py.workflow.graph.words import Standings


@click.command()
@definition_argument
@click.option("--submitted", "is_submitted", is_flag=True, show_default=False,
              help="FILE is the id of a workflow that the cluster knows: ask it, and show how far each step is.")
@click.option("--svg", "svg_file", type=click.Path(dir_okay=False, allow_dash=True), metavar="OUT", default=None,
              show_default="none", help="Write a picture as SVG to this file instead; - for standard output.")
@client_options
def graph(file: str, is_submitted: bool, svg_file: str | None, nodes: str, timeout_s: float,
          as_json: bool) -> None:
    """Draw the graph of the definition FILE.

    FILE is JSON, TOML, - for standard input, or MODULE:NAME; with --submitted the id of a workflow. Each step has
    a line, behind those that it comes after. The rails at its left lead down to its children.

    \b
    Examples:
      skuld workflow graph census.toml
      skuld workflow graph acme.flows:census --svg census.svg
      skuld workflow graph census-2026 --submitted
    """
    from skuld_py.cli.showing import harmless, print_event, print_json
    from skuld_py.workflow.definition.writing import digest_of, plain_of
    from skuld_py.workflow.graph.rails import drawing
    from skuld_py.workflow.graph.svg import svg

    standings: Standings = {}
    if is_submitted:
        with connected(nodes, timeout_s) as client:
            definition, standings = submitted(client, file)
    else:
        definition = _written(file)
    if svg_file is not None:
        with click.open_file(svg_file, "w", encoding="utf-8") as stream:
            stream.write(svg(definition, standings))
        if svg_file != "-":
            print_event(as_json, f"wrote {svg_file}", event="written", file=svg_file)
        return
    if as_json:
        print_json({"id": definition.id, "digest": digest_of(definition), "order": list(definition.order),
                    "definition": plain_of(definition)})
        return
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    click.echo(harmless(drawing(definition, standings, is_ascii=encoding != "utf8"), is_one_line=False), nl=False)


def submitted(client: Client, id: str) -> tuple[Definition, Standings]:
    """The definition of a workflow that the cluster knows, and while it lives how far its steps are."""
    import attrs

    from skuld_py.cli.workflow_status import depths_of
    from skuld_py.workflow.definition.reading import parse
    from skuld_py.workflow.graph.words import standing_of

    found = client.workflow(id)
    definition = parse(client.get(found.plan).payload, is_stored=True)
    depths = depths_of(client, found) if found.is_live else None
    if depths is None:
        return definition, {}
    rows = {step: attrs.asdict(depth) for step, depth in depths.items()}
    return definition, {step: standing_of(rows.get(step), is_sealed=step in found.sealed)
                        for step in definition.order}


def _written(file: str) -> Definition:
    """Out of a file or a module; where there is none, it may be an id that is meant."""
    from skuld_py.errors import Refused

    try:
        return definition_of(file)
    except Refused as refusal:
        if refusal.code != "no_such_file":
            raise
        raise Refused(refusal.code, f"{refusal.message}; or the id of a submitted workflow, with --submitted",
                      **refusal.facts) from None
