"""``skuld archive``: write to Parquet what has ended, then let the cluster delete it.

This file only reads the command line and says how far it is; the order of things is ``skuld_py.archive.archiver``.
Where nothing is to be written, no Spark is started.
"""

from __future__ import annotations

import secrets
import tempfile
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.options import connected, json_option, nodes_option, timeout_option
from skuld_py.cli.spark_options import master_options
from skuld_py.cli.values import DAY_S, DURATION, Duration
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.archive.archiver import Archiver, Report

MASTER = "local[2]"


@click.command()
@click.argument("root")
@click.option("--every", "every_s", type=Duration(1, 366 * DAY_S), metavar="DURATION", default=None,
              show_default="once", help="Go on until Ctrl-C, and look again after this time.")
@click.option("--wait", "wait_s", type=DURATION, metavar="DURATION", default="30s",
              help="How long to ask again partitions of which something may be on offer soon.")
@master_options(MASTER)
@nodes_option
@timeout_option("30s")
@json_option
@click.pass_context
def archive(ctx: click.Context, root: str, every_s: float | None, wait_s: float, conf: dict[str, str], nodes: str,
            timeout_s: float, as_json: bool) -> None:
    """Write tasks that ended longer ago than the nodes' --retention to Parquet files below ROOT, with claims, logs
    and results, and then have them deleted. Nothing is deleted that is not written.

    The nodes must run with --archive. ROOT is a directory, or what else Spark can write to, as s3a://bucket/path.
    Below it are directories batch=B/queue=Q/day=D; 'skuld history' reads them, and so does any Spark. What was
    written when this was interrupted, and not yet deleted, is written again by the next run; 'skuld history' takes
    one row for each task.

    \b
    Examples:
      skuld archive /srv/skuld-archive
      skuld archive /srv/skuld-archive --every 1h
      skuld archive s3a://bucket/skuld --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2 --wait 5m
    """
    from skuld_py.archive.places import place_of
    from skuld_py.cli.stopping import until_stopped
    from skuld_py.extras import require

    require("spark", who="skuld archive")
    place = place_of(root)
    has_ended = False
    with until_stopped(), ExitStack() as stack:
        stack.enter_context(place.held())
        client = stack.enter_context(connected(nodes, timeout_s))
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="skuld-archive-")))
        archiver = _archiver(stack, client, place, scratch, conf, as_json)
        _run(archiver, wait_s, every_s, as_json)
        has_ended = True
    if not has_ended and every_s is None:
        from skuld_py.cli.failures import INTERRUPTED

        click.echo("interrupted; what is not deleted is offered again", err=True)
        ctx.exit(INTERRUPTED)


def _archiver(stack: ExitStack, client: Any, place: Any, scratch: Path, conf: dict[str, str], as_json: bool
              ) -> Archiver:
    from skuld_py.archive.archiver import Archiver
    from skuld_py.archive.rows import batch_name
    from skuld_py.archive.spark_store import SparkStore, spark
    from skuld_py.cli.showing import now_ms, print_event

    def say_batch(report: Report) -> None:
        print_event(as_json, f"{many(report.written, 'row')} written, {many(report.deleted, 'task')} deleted",
                    event="batch", rows=report.written, deleted=report.deleted, batches=report.batches)

    partitions = len(client.status().partitions)
    store = SparkStore(stack.enter_context(spark(scratch, conf)), place)
    nonce = secrets.randbits(32)
    return Archiver(client, store, partitions, name_batch=lambda: batch_name(now_ms(), nonce),
                    clock=monotonic, pause=sleep, on_batch=say_batch)


def _run(archiver: Archiver, wait_s: float, every_s: float | None, as_json: bool) -> None:
    """Once, or again and again; then only the first run may fail."""
    from skuld_py.cli.showing import print_event
    from skuld_py.errors import SkuldError

    is_first = True
    while True:
        try:
            _say_report(archiver.run(wait_s), as_json)
        except SkuldError as error:
            if is_first or every_s is None:
                raise
            print_event(as_json, f"this run failed: {error}", event="failed", code=error.code,
                        message=error.message)
        if every_s is None:
            return
        is_first = False
        sleep(every_s)


def _say_report(report: Report, as_json: bool) -> None:
    from skuld_py.cli.showing import print_event
    from skuld_py.model.ids import to_text

    words = (f"archived {many(report.written, 'row')} in {report.batches or 'no'} batch"
             f"{'' if report.batches == 1 else 'es'}, deleted {many(report.deleted, 'task')}")
    for awaited in dict.fromkeys(report.waiting.values()):
        waiting = [str(partition) for partition, who in report.waiting.items() if who == awaited]
        kind, verb = ("partition", "waits") if len(waiting) == 1 else ("partitions", "wait")
        words += (f"\n{kind} {', '.join(waiting)} may have more, and {verb} for"
                  f" {', '.join(awaited) or 'all replicas to agree'}")
    for task_id, why in report.refused.items():
        words += f"\ntask {to_text(task_id)} cannot be written, and stays, with the rest of its page: {why}"
    print_event(as_json, words, event="done", rows=report.written, deleted=report.deleted, batches=report.batches,
                waiting=[{"partition": partition, "for": list(who)} for partition, who in report.waiting.items()],
                refused=[{"id": to_text(task_id), "why": why} for task_id, why in report.refused.items()])
