"""``skuld workflow check``: is a definition whole, and if not, what is wrong with it, all of it.

What is wrong is the answer here, so with ``--json`` it is a document on standard output.
"""

from __future__ import annotations

import click

from skuld_py.cli.definitions import definition_argument, definition_of
from skuld_py.cli.options import json_option


@click.command()
@definition_argument
@json_option
@click.pass_context
def check(ctx: click.Context, file: str, as_json: bool) -> None:
    """Say what is wrong with the definition FILE: all of it, by entry and key.

    FILE is JSON, TOML, - for standard input, or MODULE:NAME. The digest is that of the definition, however it is
    written.

    \b
    Examples:
      skuld workflow check census.toml
      skuld workflow check acme.flows:census
      skuld workflow check - < census.json
    """
    from skuld_py.cli.failures import REFUSED
    from skuld_py.cli.showing import print_json
    from skuld_py.verbs.words import many
    from skuld_py.workflow.definition.faults import BadWorkflow
    from skuld_py.workflow.definition.writing import digest, text_of

    try:
        definition = definition_of(file)
    except BadWorkflow as error:
        if not as_json:
            raise
        print_json({"ok": False, "errors": [
            {"entry": each.entry, "key": each.key, "problem": each.problem, "remedy": each.remedy}
            for each in error.faults], "left_out": error.left_out})
        ctx.exit(REFUSED)
    text = text_of(definition)
    if as_json:
        print_json({"ok": True, "id": definition.id, "digest": digest(text), "bytes": len(text.encode()),
                    "steps": list(definition.order), "inputs": list(definition.inputs),
                    "leaves": list(definition.leaves)})
        return
    steps, edges = many(len(definition.order), "step"), many(len(definition.edges), "edge")
    click.echo(f"workflow {definition.id} is whole: {steps}, {edges}, digest {digest(text)[:16]}")
