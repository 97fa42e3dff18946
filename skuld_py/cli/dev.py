"""``skuld dev``: everything on this machine in one terminal, to try things out.

ZooKeeper, nodes and a worker are real processes, started as they would be anywhere; a node may be killed to
see the others go on. They end with this command, however it ends: asked to by SIGINT or SIGTERM, or killed.

The cluster has keys, as one that is not for trying has: what people try is what they run. Its clients' key is left
where this user's clients find it by themselves (``keys.loopback``); where it cannot be, or where they were told
another one, a line says how to name it. A directory stays what it was made as: those of older releases, and of
``--no-keys``, have no keys.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from skuld_py.cli.kinds_options import allowed_by, kinds_options, kinds_words, typed_kinds
from skuld_py.cli.options import KEY_VARIABLE, NODES, json_option
from skuld_py.cli.spark_options import spark_options, typed, words_of
from skuld_py.cli.stopping import until_stopped, watch
from skuld_py.cli.values import DIRECTORY

if TYPE_CHECKING:
    from skuld_py.embedded.local import LocalCluster

HOST = "127.0.0.1"
HTTP_ABOVE = 80
ARCHIVING = ("--retention", "1m", "--archive")
"""Options of the nodes of a cluster with an archive."""


@click.command()
@click.option("--nodes", "count", type=click.IntRange(1, 9), default=3, help="How many nodes.")
@click.option("--port", type=click.IntRange(1, 65_000), default=13000,
              help="The port of the first node; the others take the next ones.")
@click.option("--http", "http_port", type=click.IntRange(0, 65_535), default=None,
              show_default="80 above --port", help="The port of the HTTP gateway; 0 for none.")
@click.option("--directory", type=click.Path(file_okay=False, path_type=Path), default=None,
              show_default="a temporary one", help="Where everything is kept, to be found again next time.")
@click.option("--worker", "queue", metavar="QUEUE[:WEIGHT],...", default=None,
              help="Also run a worker for these queues.")
@click.option("--app", "apps", multiple=True, metavar="MODULE",
              help="What the worker runs: a module with task functions; may be given several times.")
@click.option("--slots", type=click.IntRange(1), default=2, help="Tasks that the worker runs at the same time.")
@click.option("--no-keys", is_flag=True, show_default=False,
              help="A cluster without keys: its nodes speak to anybody on this machine, and nothing is sealed.")
@click.option("--archive", type=DIRECTORY, metavar="DIR", default=None,
              show_default="none; what ended is kept",
              help="Move tasks that ended a minute ago to an archive in this directory, as 'skuld archive' does."
              " No name is --unique for longer than that minute then.")
@kinds_options
@spark_options
@json_option
@click.pass_context
def dev(ctx: click.Context, count: int, port: int, http_port: int | None, directory: Path | None,
        queue: str | None, apps: tuple[str, ...], slots: int, no_keys: bool, archive: Path | None, kinds: str,
        scripts: Path | None, adopt_s: float, conf: dict[str, str], is_ml: bool, as_json: bool) -> None:
    """Run ZooKeeper, a cluster, an HTTP gateway and perhaps a worker on this machine until Ctrl-C.

    Needs Java 17 or later. The cluster has keys; your other terminals and programs on this machine find theirs
    by themselves.

    \b
    Examples:
      skuld dev
      skuld dev --directory ~/skuld --port 14000 --archive ~/skuld-archive
      skuld dev --worker reports --app reports.tasks
      skuld dev --worker reports --app reports.tasks --driver-memory 4g --ml
    """
    _check_worker(ctx, queue, has_work=bool(apps or kinds or scripts), has_apps=bool(apps))
    from skuld_py.demo.readiness import what_is_missing
    from skuld_py.embedded.local import LocalCluster
    from skuld_py.extras import require
    from skuld_py.worker.shares import weights_of

    require("node", *(["gateway"] if http_port != 0 else []), *(["datasource"] if archive is not None else []),
            "spark", who="skuld dev")
    if queue is not None:
        weights_of(queue)
        allowed_by(kinds, scripts, adopt_s)
    began = time.monotonic()
    with until_stopped(), _place(directory) as place:
        ports = range(port, port + count)
        http = port + HTTP_ABOVE if http_port is None else http_port
        if not (place / "ports.json").exists():
            _check_free(ports)
        if http:
            _check_free(range(http, http + 1), "--http")
        cluster = LocalCluster(place, count, replicas=min(count, 3), ports=ports,
                               what_is_missing=what_is_missing, is_keyed=_is_keyed(place, no_keys),
                               gateway=["--port", str(http)] if http else None,
                               node_options=ARCHIVING if archive is not None else ())
        watcher = _Watcher(cluster, as_json)
        try:
            watcher.archiver = _start(cluster, archive)
            if queue is not None:
                watcher.worker = cluster.start_worker(queue, apps, "--slots", str(slots), *words_of(conf, is_ml),
                                                      *kinds_words(kinds, scripts, adopt_s),
                                                      working_directory=Path.cwd())
            with _key_left(cluster) as is_found:
                known = (cluster, time.monotonic() - began, place, directory is not None, watcher.archiver)
                if as_json:
                    _introduce_as_json(*known)
                else:
                    _introduce(*known, is_key_found=is_found, worker=watcher.worker_shown(queue))
                watch(watcher.look)
        finally:
            if cluster.addresses:
                watcher.say_stopping()
            cluster.stop()
            watcher.show_worker()


def _start(cluster: LocalCluster, archive: Path | None) -> _Archiver | None:
    """The cluster, and an archiver if there is to be one."""
    cluster.start()
    if archive is None:
        return None
    root = archive.expanduser().absolute()
    return _Archiver(root, cluster.start_archiver(root, "--every", "10s"))


@contextlib.contextmanager
def _place(directory: Path | None) -> Iterator[Path]:
    """The directory wanted, or one that is removed at the end."""
    if directory is not None:
        yield directory.expanduser()
        return
    with tempfile.TemporaryDirectory(prefix="skuld-dev-", ignore_cleanup_errors=True) as made:
        yield Path(made)



def _check_worker(ctx: click.Context, queue: str | None, *, has_work: bool, has_apps: bool) -> None:
    """Options of a worker go together."""
    if (queue is None and has_apps) or (queue is not None and not has_work):
        raise click.UsageError("--worker QUEUE and --app MODULE go together: a queue and its tasks' code.")
    if queue is None and (given := typed_kinds(ctx)):
        raise click.UsageError(f"{given[0]} is for the worker; give --worker QUEUE, too.")
    if queue is None and (given := typed(ctx)):
        raise click.UsageError(f"{given[0]} is for the worker's Spark; give --worker QUEUE and --app MODULE, too.")


def _is_keyed(place: Path, no_keys: bool) -> bool:
    """Whether the cluster has keys: as it was made, or is to be."""
    from skuld_py.errors import Refused
    from skuld_py.keys.files import CLUSTER_FILE

    if not (place / "ports.json").exists():
        return not no_keys
    is_keyed = (place / CLUSTER_FILE).exists()
    if is_keyed and no_keys:
        raise Refused("has_keys", f"no-keys: the cluster in {place} was made with keys; leave --no-keys out, or"
                      " name another --directory", directory=str(place))
    return is_keyed


@contextlib.contextmanager
def _key_left(cluster: LocalCluster) -> Iterator[bool]:
    """Leave the clients' key where clients look; whether those that are told nothing find it."""
    from skuld_py.errors import Refused
    from skuld_py.keys import loopback
    from skuld_py.keys.files import read_client_key

    with contextlib.ExitStack() as held:
        is_found = KEY_VARIABLE not in os.environ
        if cluster.key is not None:
            try:
                held.enter_context(loopback.left(read_client_key(cluster.key), cluster.ports))
            except (OSError, Refused):
                is_found = False
        yield is_found


def _check_free(ports: range, option: str = "--port") -> None:
    """Refuse before anything is started; a node would say the same, but later and in its own log."""
    from skuld_py.errors import Refused

    for port in ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError as error:
                wanted = f"the nodes want {ports[0]}-{ports[-1]}" if option == "--port" else "the gateway wants it"
                raise Refused("port_in_use", f"port: {port} on {HOST} is in use, and {wanted}; stop who listens"
                              f" there, another 'skuld dev' perhaps, or choose others with {option}",
                              port=port) from error


def _introduce(cluster: LocalCluster, took_s: float, place: Path, is_kept: bool, archiver: _Archiver | None, *,
               is_key_found: bool, worker: tuple[str, int, Path] | None) -> None:
    """What runs where, and what to try."""
    from skuld_py.cli.showing import print_table, table

    rows = table("what", "address", "process>", "log")
    rows.add_row("zookeeper", cluster.zookeeper_hosts, "", str(place / "zookeeper" / "zookeeper.log"))
    for index, address in enumerate(cluster.addresses):
        rows.add_row("node", address, str(cluster.node_process_id(index)), str(cluster.node_log(index)))
    if cluster.gateway_url:
        rows.add_row("gateway", cluster.gateway_url, "", str(cluster.gateway_log(0)))
    if worker is not None:
        rows.add_row("worker", f"queue {worker[0]}", str(worker[1]), str(worker[2]))
    if archiver is not None:
        rows.add_row("archiver", str(archiver.root), str(archiver.running.pid),
                     str(cluster.worker_log(archiver.running)))
    kind = "" if cluster.key is not None else ", without keys,"
    click.echo(f"cluster {cluster.name}{kind} is ready after {took_s:.1f} s, its files in {place}"
               + ("" if is_kept else " until it stops"))
    print_table(rows)
    click.echo("\nTry in another terminal:")
    if NODES not in cluster.addresses:
        click.echo(f"  export SKULD_NODES={','.join(cluster.addresses)}")
    if cluster.key is not None and not is_key_found:
        click.echo(f"  export {KEY_VARIABLE}={shlex.quote(str(cluster.key))}")
    for line in ("skuld enqueue general 'sup?'", "skuld claim general --lease 30s", "skuld list general",
                 f"kill -9 {cluster.node_process_id(0)}    # a node; the others go on", "skuld status"):
        click.echo(f"  {line}")
    if archiver is not None:
        click.echo(f"  skuld history {shlex.quote(str(archiver.root))}    # what ended a minute ago or longer")
    if cluster.gateway_url:
        click.echo(f"  curl {cluster.gateway_url}/v1/queues")
        click.echo(f"Open the dashboard in a browser: {cluster.gateway_url}/dashboard")
    if worker is not None:
        click.echo("Tasks that need Spark wait until it has started, half a minute the first time.")
    click.echo("Ctrl-C stops everything.")


def _introduce_as_json(cluster: LocalCluster, took_s: float, place: Path, is_kept: bool,
                       archiver: _Archiver | None) -> None:
    from skuld_py.cli.showing import print_json

    print_json({"event": "ready", "cluster": cluster.name, "took_s": round(took_s, 1), "directory": str(place),
                "is_kept": is_kept, "zookeeper": cluster.zookeeper_hosts, "gateway": cluster.gateway_url or None,
                "client_key": None if cluster.key is None else str(cluster.key),
                "archive": None if archiver is None else {
                    "root": str(archiver.root), "process": archiver.running.pid,
                    "log": str(cluster.worker_log(archiver.running))},
                "nodes": [{"address": address, "process": cluster.node_process_id(index),
                           "log": str(cluster.node_log(index))}
                          for index, address in enumerate(cluster.addresses)]})


class _Archiver(NamedTuple):
    """The one that runs beside the nodes, and where it writes to."""

    root: Path
    running: subprocess.Popen[bytes]


class _Watcher:
    """Shows what the worker prints, and says what ends without being asked to."""

    def __init__(self, cluster: LocalCluster, as_json: bool) -> None:
        self._as_json = as_json
        self.worker: subprocess.Popen[bytes] | None = None
        self.archiver: _Archiver | None = None
        self._cluster = cluster
        self._read = 0
        self._ended: list[str] = []

    def worker_shown(self, queue: str | None) -> tuple[str, int, Path] | None:
        """The worker's queue, process and log, if there is one."""
        if self.worker is None or queue is None:
            return None
        return queue, self.worker.pid, self._cluster.worker_log(self.worker)

    def say_stopping(self) -> None:
        """The end has begun."""
        self._say("stopping", event="stopping")

    def look(self) -> bool:
        """Once; whether there is anything left to look at."""
        self.show_worker()
        if self.worker is not None and self.worker.poll() is not None:
            self.show_worker()
            self._note("the worker", f" with status {self.worker.returncode}", status=self.worker.returncode,
                       log=str(self._cluster.worker_log(self.worker)))
        if self.archiver is not None and self.archiver.running.poll() is not None:
            self._note_archiver(self.archiver.running)
        for index, address in enumerate(self._cluster.addresses):
            if self._cluster.node_process_id(index) is None:
                log = str(self._cluster.node_log(index))
                self._note(f"node {address}", f"; its log is {log}", log=log)
        return any(self._cluster.node_process_id(index) for index in range(len(self._cluster.addresses)))

    def _note_archiver(self, ended: subprocess.Popen[bytes]) -> None:
        log, said = str(self._cluster.worker_log(ended)), self._cluster.said_by(ended)
        self._note("the archiver", f" with status {ended.returncode}, and what has ended stays on the nodes; the"
                   f" end of {log}:\n{said}", status=ended.returncode, log=log, said=said)

    def _note(self, who: str, how: str, **facts: object) -> None:
        if who not in self._ended:
            self._ended.append(who)
            self._say(f"{who} has ended{how}", event="ended", who=who, **facts)

    def _say(self, words: str, **document: object) -> None:
        from skuld_py.cli.showing import print_json

        if self._as_json:
            print_json(document)
        else:
            click.echo(words, err=True)

    def show_worker(self) -> None:
        """What the worker has printed since the last time."""
        if self.worker is None:
            return
        with contextlib.suppress(FileNotFoundError), self._cluster.worker_log(self.worker).open("rb") as stream:
            stream.seek(self._read)
            fresh = stream.read()
            self._read += len(fresh)
            if self._as_json:
                for line in fresh.decode(errors="replace").splitlines():
                    self._say(line, event="worker", line=line)
            else:
                click.echo(fresh, nl=False)
