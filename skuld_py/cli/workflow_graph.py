"""``skuld workflow graph``: the graph of a definition, as text or as SVG."""

from __future__ import annotations

import sys

import click

from skuld_py.cli.definitions import definition_argument, definition_of
from skuld_py.cli.options import json_option


@click.command()
@definition_argument
@click.option("--svg", "svg_file", type=click.Path(dir_okay=False, allow_dash=True), metavar="OUT", default=None,
              show_default="none", help="Write a picture as SVG to this file instead; - for standard output.")
@json_option
def graph(file: str, svg_file: str | None, as_json: bool) -> None:
    """Draw the graph of the definition FILE.

    FILE is JSON, TOML, - for standard input, or MODULE:NAME. Each step has a line, behind those that it comes
    after. The rails at its left lead down to its children.

    \b
    Examples:
      skuld workflow graph census.toml
      skuld workflow graph acme.flows:census --svg census.svg
    """
    from skuld_py.cli.showing import harmless, print_event, print_json
    from skuld_py.workflow.definition.writing import digest_of, plain_of
    from skuld_py.workflow.graph.rails import drawing
    from skuld_py.workflow.graph.svg import svg

    definition = definition_of(file)
    if svg_file is not None:
        with click.open_file(svg_file, "w", encoding="utf-8") as stream:
            stream.write(svg(definition))
        if svg_file != "-":
            print_event(as_json, f"wrote {svg_file}", event="written", file=svg_file)
        return
    if as_json:
        print_json({"id": definition.id, "digest": digest_of(definition), "order": list(definition.order),
                    "definition": plain_of(definition)})
        return
    encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
    click.echo(harmless(drawing(definition, is_ascii=encoding != "utf8"), is_one_line=False), nl=False)
