"""``skuld demo``: the whole thing on this machine, from an empty directory to a finished Spark job.

This file only reads the command line; the story is told in ``skuld_py.demo``.
"""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.options import json_option


@click.command()
@click.option("--input", "source", type=click.Path(exists=True, file_okay=False, path_type=Path),
              default=None, show_default="the jars that PySpark ships",
              help="A directory with archives (.jar, .zip, .whl) to take the census of.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), default=None,
              show_default="nothing is kept", help="Keep what the demo wrote in this directory.")
@json_option
@click.pass_context
def demo(ctx: click.Context, source: Path | None, keep: Path | None, as_json: bool) -> None:
    """Take a census of archives with Spark on a cluster here, and kill a node in the middle of it.

    What it found is put beside a plain count; the exit status is 1 when they differ. Nothing is left behind.

    \b
    Examples:
      skuld demo
      skuld demo --input ~/.m2 --keep /tmp/skuld-demo
    """
    from skuld_py.extras import require

    require("node", "spark", who="skuld demo")
    from skuld_py.demo.demo import run_demo

    ctx.exit(run_demo(source, keep=keep, as_json=as_json))
