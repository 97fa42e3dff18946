"""``skuld archive``: write to Parquet what has ended, then let the cluster delete it.

This file only reads the command line and says how far it is; the order of things is ``skuld_py.archive.archiver``.
Where nothing is to be written, no Spark is started.
"""

from __future__ import annotations

import gc
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from math import inf
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

import click

from skuld_py.cli.archive_compact import compact, keep_option, memory_from_system
from skuld_py.cli.options import connected, json_option, nodes_option, timeout_option
from skuld_py.cli.spark_options import master_options
from skuld_py.cli.values import DAY_S, DURATION, Duration
from skuld_py.cli.verbed import Verbed
from skuld_py.verbs.words import many

if TYPE_CHECKING:
    from skuld_py.archive.archiver import Archiver, Report
    from skuld_py.archive.arrow_site import Site
    from skuld_py.model.archive_root import ArchiveRoot

    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # which takes no type before click 8.2

MASTER = "local[2]"
FULL, ICEBERG = "full", "iceberg"
SEARCH_OBJECTS = 200_000
"""Python searches for cycles after this many new objects: about a batch."""
LEFT = 1
"""Exit code of a run that could not archive all that had ended long enough ago when it began."""


class Rate(click.IntRange):
    """Tasks a second; infinitely many for ``full``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        if value in (FULL, inf):
            return inf
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no rate; give a number of tasks a second, from 1 up, or {FULL}.", param, ctx)


class Form(_Choice):
    """What an archive is written as, besides its manifest."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """One of the choices; of another format that is asked for, why it is none of them, and what to do."""
        if str(value).lower() == ICEBERG:
            self.fail("an Iceberg table needs a catalog, and an archive has none. Say delta, for a table that"
                      " needs none; or add the files that 'skuld history files' prints to a table of your"
                      " catalog.", param, ctx)
        return super().convert(value, param, ctx)


@click.command(cls=Verbed, others={
    "files": "'skuld history files'", "restore": "'skuld history restore'"})
@click.argument("root")
@click.option("--every", "every_s", type=Duration(1, 366 * DAY_S), metavar="DURATION", default=None,
              show_default="once", help="Go on until Ctrl-C, and look again after this time.")
@click.option("--wait", "wait_s", type=DURATION, metavar="DURATION", default="30s",
              help="How long to ask again partitions of which something may be on offer soon.")
@click.option("--rate", type=Rate(1), metavar="N|full", default=None, show_default="give way, and keep up",
              help="Take at most N tasks a second from the nodes, more than end or less; or, with full, as many as"
              " they can give, whoever else asks them for something.")
@keep_option
@click.option("--replace", "replaces", is_flag=True, show_default=False,
              help="From now on this is the cluster's archive, instead of the one that was, in which stays what it"
              " has.")
@click.option("--format", "form", type=Form(["parquet", "delta"]), default="parquet",
              help="With delta the directory is a Delta table, too, from now on.")
@master_options(MASTER)
@nodes_option
@timeout_option("30s")
@json_option
@click.pass_context
def archive(ctx: click.Context, root: str, every_s: float | None, wait_s: float, rate: float | None,
            keep_days: int | None, replaces: bool, form: str, conf: dict[str, str], nodes: str, timeout_s: float,
            as_json: bool) -> None:
    """Write tasks that ended longer ago than the nodes' --retention to Parquet files below ROOT, with claims, logs
    and results, and then have them deleted. Nothing is deleted that is not written.

    Once it writes all that had ended long enough ago when it began, names what it could not and why, and then
    ends with 1 instead of 0.

    While other tasks end on the nodes it works for a quarter of the time, or longer if it would not keep up with
    them, so that what has ended does not pile up. When none do it goes as fast as it can.

    The nodes must run with --archive. ROOT is a directory, or what else Spark can write to, as s3a://bucket/path.
    To a directory it writes by itself, without Spark, where pyarrow is installed (skuld-py[datasource]): files by
    the day on which tasks ended and by queue, which a manifest names, so that each task is there once; it
    compacts them when there is nothing else to do. Elsewhere Spark writes directories batch=B/queue=Q/day=D, and
    what was written when this was interrupted, and not yet deleted, is written again by the next run; 'skuld
    history' takes one row for each task.

    \b
    Examples:
      skuld archive /srv/skuld-archive
      skuld archive /srv/skuld-archive --every 1h
      skuld archive /srv/skuld-archive --every 1m --rate 5000
      skuld archive /srv/skuld-archive --format delta
      skuld archive s3a://bucket/skuld --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2 --wait 5m
    """
    from skuld_py.archive.places import place_of
    from skuld_py.cli.failures import INTERRUPTED
    from skuld_py.cli.stopping import until_stopped

    place = place_of(root)
    said: list[bool] = []
    _check_means(place, keep_days, form == "delta")
    with until_stopped(), _seldom_searched(), ExitStack() as stack:
        site, known = _opened(partial(_site, stack, place), place, nodes, timeout_s, replaces)
        store: Any = _store(stack, place, conf) if site is None else site.store
        if site is None and (known is None or known.root != place.name):
            store.check()
        elif site is not None:
            site.check_delta()  # before the cluster is told: else neither this nor the former would get anything
            replaces = _replaces(site, known, replaces)
        enter = partial(_enter, place, site, nodes, timeout_s)
        enter(replaces=replaces)
        _say_replaced(known, place, site, replaces, as_json)
        if site is not None and form == "delta":
            site.begin_delta()
        progress = _Progress(as_json)
        archiver = _archiver(stack, nodes, timeout_s, store, progress, rate)
        said.append(_run(archiver, progress, wait_s, every_s, as_json, partial(enter, moves=False),
                         partial(_tidy, site, keep_days, as_json)))
    if not said and every_s is None:
        click.echo("interrupted; what is not deleted is offered again", err=True)
        ctx.exit(INTERRUPTED)
    if False in said:
        ctx.exit(LEFT)


@contextmanager
def _seldom_searched() -> Iterator[None]:
    """Have Python search for cycles seldom: rows are some hundred thousand new objects a batch, which are in none.
    A search after every 700, the default, takes a third of the time in which they are made."""
    before = gc.get_threshold()
    gc.set_threshold(SEARCH_OBJECTS, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _opened(site: Callable[[], Site | None], place: Any, nodes: str, timeout_s: float, replaces: bool
            ) -> tuple[Site | None, ArchiveRoot | None]:
    """Where this process writes, and where the cluster's archive is. Where none is begun the cluster is asked
    first, so that what it refuses has not happened."""
    if _is_begun(place):
        return site(), _known(nodes, timeout_s)
    known = _known(nodes, timeout_s)
    if not replaces and known is not None and (
            known.root != place.name or (known.archive and known.archive != _archive_at(place))):
        from skuld_py.client.archiving import other_archive

        raise other_archive(known.root, place.name)
    return site(), known


def _is_begun(place: Any) -> bool:
    """Whether an archive is there, which this process writes itself."""
    from skuld_py.archive.drafts import unwritable

    if not _is_written_here(place):
        return False
    try:
        os.scandir(next(path for path in (place.root, *place.root.parents) if path.exists())).close()
    except OSError as error:
        raise unwritable(place.root, error) from error
    return bool(_archive_at(place))


def _archive_at(place: Any) -> str:
    """The name of the archive that is there, whoever writes; empty where it has none."""
    from skuld_py.archive.manifest import Manifest
    from skuld_py.archive.places import LocalPlace

    return Manifest(place.root).name() if isinstance(place, LocalPlace) else ""


def _known(nodes: str, timeout_s: float) -> ArchiveRoot | None:
    """Where the cluster's archive is. ``Refused`` where its nodes offer nothing to any; nothing is made then."""
    from skuld_py.archive.archiver import PASSING
    from skuld_py.errors import Refused, Uncertain

    with connected(nodes, timeout_s) as client:
        try:
            client.offered(0, leaves=True)
        except Uncertain:
            pass  # the run itself waits for it
        except Refused as refusal:
            if refusal.code not in PASSING:
                raise
        return client.archive_root()


def _replaces(site: Site, known: ArchiveRoot | None, is_asked: bool) -> bool:
    """Whether this archive takes the place of another, as ``is_asked`` for; not where that is the same, reached by
    another path. Refuse a directory that takes none and whose archive has the name of the cluster's, where that
    one is elsewhere on this machine: what this process has below the one root is not below the other, so one was
    copied from the other. One that takes a place has a name of its own from then on, which what it was copied from
    has not."""
    from pathlib import Path

    from skuld_py.archive.manifest import Manifest
    from skuld_py.errors import Refused

    if known is None or known.root == str(site.root):
        return is_asked
    other, has_its_name = Path(known.root), site.manifest.name() == known.archive
    try:
        is_same = has_its_name and (other / site.drafts.own.relative_to(site.root)).exists()
        is_copy = has_its_name and not is_same and Manifest(other).name() == known.archive
    except (OSError, Refused):
        is_same = is_copy = False  # it is not to be seen from here
    if is_copy and not is_asked:
        raise Refused("other_archive", f"root: {site.root} is a copy of this cluster's archive, which is at"
                      f" {other}; archive to that one, or with --replace from now on to this one", root=known.root)
    if is_asked and not is_same:
        site.rename()
    return is_asked and not is_same


def _enter(place: Any, site: Site | None, nodes: str, timeout_s: float, *, replaces: bool = False,
           moves: bool = True) -> None:
    """Say to the cluster that this is its archive. ``Refused`` where it is another one, or has become so."""
    with connected(nodes, timeout_s) as client:
        client.enter_archive(place.name, "" if site is None else site.archive, replaces=replaces,
                             moves=moves)


def _say_replaced(known: ArchiveRoot | None, place: Any, site: Site | None, replaces: bool, as_json: bool) -> None:
    """Say of which archive this one has taken the place, for nobody looks into that one for what it has. One that
    was moved is not told: nothing is where it was. A copy is told, for what is to come is in one of both alone."""
    import shlex

    from skuld_py.cli.showing import print_event
    from skuld_py.model.archive_root import ArchiveRoot

    if known is None or known.root == place.name or (
            not replaces and known.is_of(ArchiveRoot(place.name, "" if site is None else site.archive))):
        return
    print_event(as_json, f"this cluster's archive is {place.name} from now on; what {known.root} has stays there:"
                f" skuld history {shlex.quote(known.root)}", event="replaced", root=place.name, former=known.root)


def _site(stack: ExitStack, place: Any) -> Site | None:
    """Where this process writes; None where Spark does."""
    if _is_written_here(place):
        memory_from_system()
        from skuld_py.archive.arrow_site import Site

        return stack.enter_context(Site.held(place.root))
    stack.enter_context(place.held())
    return None


def _check_means(place: Any, keep_days: int | None, begins_delta: bool) -> None:
    """Refuse what cannot be done with what is installed here."""
    from skuld_py.extras import require

    if _is_written_here(place):
        return
    if keep_days is not None or begins_delta:
        option = "--keep" if keep_days is not None else "--format delta"
        raise click.UsageError(f"{option} needs a directory of this machine, and pyarrow (skuld-py[datasource]).")
    if place.is_delta():
        require("datasource", who="skuld archive to a Delta table")
    require("spark", who="skuld archive")


def _tidy(site: Site | None, keep_days: int | None, as_json: bool) -> None:
    """Compact what is worth it, when there is nothing else to do. Where that fails it is said, and the next run
    tries again: all that was to be archived is."""
    from skuld_py.archive.archiver import IDLE_FILES
    from skuld_py.cli.archive_compact import parts_shown, say_compacted, say_uncompacted
    from skuld_py.errors import Refused
    from skuld_py.runtime.peeking import give_back

    if site is None:
        return
    give_back()
    try:
        with parts_shown(as_json) as on_part:
            done = site.compact(least=IDLE_FILES, keep_days=keep_days, takes_over=False, on_part=on_part)
    except Refused as error:
        say_uncompacted(error, as_json)
        return
    for unread in done.unread:
        say_uncompacted(unread, as_json)
    if done.files or done.dropped:
        say_compacted(done, as_json)


def _archiver(stack: ExitStack, nodes: str, timeout_s: float, store: Any, progress: _Progress,
              rate: float | None) -> Archiver:
    from skuld_py.archive.archiver import Archiver
    from skuld_py.archive.causes import Causes
    from skuld_py.archive.pacing import AtMost, Full, Yielding
    from skuld_py.archive.rows import BatchNames, Rows
    from skuld_py.archive.source import one_beside, source_of
    from skuld_py.cli.options import addresses_of
    from skuld_py.cli.showing import now_ms

    with connected(nodes, timeout_s) as client:
        partitions, cluster = len(client.status().partitions), client.greeting().cluster
    source = stack.enter_context(source_of(addresses_of(nodes), timeout_s))
    sink = Rows(store, cluster, Causes(source.tasks).dated)
    pace = Yielding(partitions) if rate is None else Full() if rate == inf else AtMost(rate)
    beside = stack.enter_context(one_beside())
    stack.callback(source.interrupt)  # who is stopped waits for what is being written, and not for what it asks
    return Archiver(source, sink, partitions, name_batch=BatchNames(now_ms, secrets.randbits(32)), clock=monotonic,
                    pause=sleep, beside=beside, on_batch=progress, pace=pace)


def _is_written_here(place: Any) -> bool:
    """This process writes to its own disks, where pyarrow is there; else Spark does."""
    from importlib.util import find_spec

    from skuld_py.archive.places import LocalPlace

    return isinstance(place, LocalPlace) and find_spec("pyarrow") is not None


def _store(stack: ExitStack, place: Any, conf: dict[str, str]) -> Any:
    from skuld_py.archive.scratch import scratch_directory
    from skuld_py.archive.spark_store import SparkStore, spark

    scratch = stack.enter_context(scratch_directory("skuld-archive-"))
    return SparkStore(stack.enter_context(spark(scratch, conf)), place)


archive.add_command(compact)


class _Progress:
    """Says after each batch how far it is, how fast it went since the last, and what is still there: a line, or on
    a terminal a bar, of which nothing is left when the run is over."""

    def __init__(self, as_json: bool) -> None:
        from skuld_py.cli.bars import PassingBar

        self._as_json = as_json
        self._last = monotonic(), 0
        self._bar = PassingBar()

    def __call__(self, report: Report) -> None:
        from skuld_py.cli.showing import console, print_event

        at_s, deleted = self._last
        self._last = monotonic(), report.deleted
        rate = (report.deleted - deleted) / max(1e-3, self._last[0] - at_s)
        ends = "" if report.ends is None else f", and {report.ends:,.0f} more a second"
        words = (f"{many(report.written, 'row')} written, {many(report.deleted, 'task')} deleted, {rate:,.0f} a"
                 f" second; {report.ended:,} that ended on the nodes{ends}")
        if self._as_json or not console().is_terminal:
            print_event(self._as_json, words, event="batch", rows=report.written, deleted=report.deleted,
                        batches=report.batches, rate=round(rate), ended=report.ended,
                        ends=None if report.ends is None else round(report.ends))
        else:
            self._bar.draw(report.deleted / max(1, report.deleted + report.ended), words)

    @contextmanager
    def of_a_run(self) -> Iterator[None]:
        """For as long as it is under way."""
        self._last = monotonic(), 0
        try:
            yield
        finally:
            self._bar.wipe()


def _run(archiver: Archiver, progress: _Progress, wait_s: float, every_s: float | None, as_json: bool,
         enter: Callable[[], None], tidy: Callable[[], None]) -> bool:
    """Once, or again and again; then only the first run may fail, and of a later one that found nothing to do
    people read nothing. Whether all is archived. Somebody may have given the cluster another archive between two
    runs; that it is reached by another path, too, is no news."""
    from skuld_py.cli.showing import print_event
    from skuld_py.errors import SkuldError

    is_first = True
    while True:
        try:
            if not is_first:
                enter()
            with progress.of_a_run():
                report = archiver.run(wait_s)
            if is_first or as_json or report.deleted or report.batches or not report.is_done:
                _say_report(report, as_json)
            tidy()
        except SkuldError as error:
            if is_first or every_s is None:
                raise
            print_event(as_json, f"this run failed: {error}", event="failed", code=error.code,
                        message=error.message)
        if every_s is None:
            return report.is_done
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
