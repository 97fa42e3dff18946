"""``skuld demo``: the whole thing on this machine, from an empty directory to a finished Spark job.

This file only reads the command line; the story is told in ``skuld_py.demo``.
"""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--input", "source", type=click.Path(exists=True, file_okay=False, path_type=Path),
              default=None, show_default="made up", help="A directory of data to work on.")
@click.option("--keep", type=click.Path(file_okay=False, path_type=Path), default=None,
              show_default="nothing is kept", help="Keep what the demo wrote in this directory.")
@click.pass_context
def demo(ctx: click.Context, source: Path | None, keep: Path | None) -> None:
    """Start a cluster and a worker here, run a few Spark tasks, break something, and clean up.

    \b
    Examples:
      skuld demo
      skuld demo --keep /tmp/skuld-demo
    """
    from skuld_py.demo.demo import run_demo

    ctx.exit(run_demo(source, keep=keep))
