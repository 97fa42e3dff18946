"""``skuld worker``: claim tasks of queues and run the functions an application registered for them.

This file only reads the command line; what a worker does, and how it stops, is ``skuld_py.worker``.
"""

from __future__ import annotations

from pathlib import Path

import click

from skuld_py.cli.kinds_options import allowed_by, kinds_options
from skuld_py.cli.logs import log_options
from skuld_py.cli.options import addresses_of, json_option, metrics_option, nodes_option
from skuld_py.cli.spark_options import spark_options
from skuld_py.cli.values import DURATION, Duration


@click.command()
@nodes_option
@click.option("--queue", metavar="QUEUE[:WEIGHT],...", default="", show_default=False,
              help="The queues to work on; of one with weight 3 three tasks for one of another, 1 if left out."
                   " Needed unless --workflows is given.")
@click.option("--workflows", "takes_seats", is_flag=True, show_default=False,
              help="Work on steps of workflows: on which, the cluster says, as it shares its slots among them.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", show_default=False,
              help="What this worker can do: steps that need tags run only where all of them are; may be given"
                   " several times.")
@click.option("--app", "apps", multiple=True, metavar="MODULE", show_default=False,
              help="A module that registers task functions with @skuld_py.task; may be given several times. Needed"
                   " unless --kinds or --scripts is given.")
@click.option("--slots", type=click.IntRange(1), default=2, help="Tasks to run at the same time.")
@click.option("--lease", "lease_s", type=Duration(least_s=1), metavar="DURATION", default="30s",
              help="How long a task stays ours when we fall silent; renewed while it runs.")
@click.option("--grace", "grace_s", type=DURATION, metavar="DURATION", default="30s",
              help="How long running tasks may take to end after SIGTERM or Ctrl-C.")
@click.option("--stall", "stall_s", type=Duration(least_s=1), metavar="DURATION", default="1m",
              help="How long Spark may be silent before it is replaced, and this process before its tasks are"
                   " given up for lost.")
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), default=None,
              show_default="a temporary one", help="Where Spark keeps its files.")
@click.option("--holder", metavar="NAME", default=None, show_default="HOSTNAME:PID",
              help="The worker's name in the claims it makes.")
@kinds_options
@spark_options
@metrics_option
@log_options
@json_option
@click.pass_context
def worker(ctx: click.Context, nodes: str, queue: str, takes_seats: bool, tags: tuple[str, ...],
           apps: tuple[str, ...], slots: int, lease_s: float, grace_s: float, stall_s: float,
           directory: Path | None, holder: str | None, kinds: str, scripts: Path | None, adopt_s: float,
           conf: dict[str, str], is_ml: bool, metrics: str | None, log_level: str, log_format: str | None,
           as_json: bool) -> None:
    """Run tasks of queues until SIGTERM or Ctrl-C.

    Modules are looked for in the current directory first, as python itself does. What it does it says on standard
    error; with --json in documents. Spark starts with the first task that needs it. With a --master elsewhere,
    Spark's driver runs here and the jobs run there; executors are sent the modules. 'skuld manual workers' tells
    what they need besides.

    \b
    Examples:
      skuld worker --queue reports --app reports.tasks
      skuld worker --queue urgent:5,reports,mail --app reports.tasks --slots 4 --lease 1m
      skuld worker --workflows --tag gpu --app reports.steps
      skuld worker --queue reports --app reports.tasks --master spark://10.0.0.1:7077 --conf spark.cores.max=8
    """
    if not queue and not takes_seats:
        raise click.MissingParameter(ctx=ctx, param_hint="'--queue'", param_type="option")
    if tags and not takes_seats:
        raise click.UsageError("--tag says which steps of workflows may run here; it needs --workflows", ctx)
    if not apps and not kinds and scripts is None:
        raise click.MissingParameter(ctx=ctx, param_hint="'--app'", param_type="option")
    from skuld_py.worker.start import run_worker

    allowed = allowed_by(kinds, scripts, adopt_s)
    ctx.exit(run_worker(addresses_of(nodes), queue, list(apps), slots=slots, lease_s=lease_s,
                        directory=directory, grace_s=grace_s, stall_s=stall_s, holder=holder, metrics=metrics,
                        conf=conf, machine_learning=is_ml, allowed=allowed, takes_seats=takes_seats, tags=tags))
