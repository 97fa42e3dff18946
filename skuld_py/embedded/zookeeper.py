"""A real ZooKeeper server out of the jars PySpark installs: alone, for tests and laptops, or one of several.

Invariants:

* ``start`` returns only once the server answers ``srvr`` with its mode; else it raises and leaves no process.
* Every transaction is on disk before it is acknowledged (``forceSync=yes``), so a killed server restarted on
  the same directory has lost nothing that a client was told.
* One server per data directory. ZooKeeper itself does not check, and two on one directory destroy it.
* The port, once chosen, stays: clients find a restarted server where the old one was.
* What it keeps its user alone can read, whatever the directory around it is: that holds keys of clusters.
* The server dies with the process that started it.
* One of an ensemble serves once a majority of its servers runs; until then ``start`` waits.

Thirteen jars are enough to serve. They include no logging backend, which makes the server start in half the
time but die without a word; so a start that failed is tried once more with log4j, and either succeeds after
all or leaves its reason in the log. Shipping a ZooKeeper of our own, or a mock, was rejected: the jars are
already there, and a mock would prove nothing about sessions, watches and ambiguous writes.
"""

from __future__ import annotations

import contextlib
import errno
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from skuld_py.embedded import process
from skuld_py.embedded import zookeeper_users as access
from skuld_py.embedded.java import Java, find_java
from skuld_py.embedded.ports import held_port
from skuld_py.embedded.zookeeper_tls import ServerTls
from skuld_py.errors import Refused
from skuld_py.extras import remedy, require

_SERVER_JARS = (
    "zookeeper-[0-9]*",
    "zookeeper-jute-*",
    "slf4j-api-*",
    "snappy-java-*",
    "metrics-core-*",
    "netty-common-*",
    "netty-buffer-*",
    "netty-transport-[0-9]*",
    "netty-handler-[0-9]*",
    "netty-codec-base-*|netty-codec-[0-9]*",  # netty 4.2, which PySpark has from 4.1 on; and 4.1
    "netty-resolver-[0-9]*",
    "netty-transport-native-unix-common-*",
    "netty-transport-classes-epoll-*",
)
_LOGGING_JARS = ("log4j-api-*", "log4j-core-*", "log4j-slf4j2-impl-*")

# A relative path, because the server runs in its directory: nothing needs escaping for a properties file.
_CONFIGURATION = """\
tickTime={tick_ms}
minSessionTimeout=1000
maxSessionTimeout=60000
dataDir=./data
admin.enableServer=false
4lw.commands.whitelist=srvr,ruok,mntr
forceSync=yes
maxClientCnxns=0
autopurge.snapRetainCount=3
autopurge.purgeInterval=1
"""
_PLAIN = """\
clientPort={port}
clientPortAddress={host}
"""
_QUORUM_PORT, _ELECTION_PORT = 2_888, 3_888
_ENSEMBLE = """\
initLimit=20
syncLimit=10
"""
_LOGGING = """\
rootLogger.level=warn
rootLogger.appenderRef.log.ref=log
appender.log.type=Console
appender.log.name=log
appender.log.layout.type=PatternLayout
appender.log.layout.pattern=%d{ISO8601} %p %c{1} %m%n
"""


class ZooKeeperServer:
    """One ZooKeeper server, its files under ``data_dir``; port 0 picks a free one at the first start.
    ``ensemble``: the hosts of all servers of one, in the same order at each, with this one's ``host`` among
    them. ``tls``: it speaks TLS only, with clients and with the others. ``users``: their passwords, by name; it
    lets in only these."""

    def __init__(
        self,
        data_dir: Path,
        port: int = 0,
        *,
        java: Java | None = None,
        host: str = "127.0.0.1",
        tick_ms: int = 500,
        heap_mb: int = 128,
        ensemble: Sequence[str] = (),
        tls: ServerTls | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        if ensemble and host not in ensemble:
            raise Refused("bad_ensemble", f"ensemble: {host} is not among {', '.join(ensemble)}; name the --host"
                          " of this server there, too", host=host)
        self._ensemble = tuple(ensemble)
        self._tls = tls
        self._users = users
        self._directory = data_dir
        self._port = port
        self._java = java
        self._host = host
        self._tick_ms = tick_ms
        self._heap_mb = heap_mb
        self._process: subprocess.Popen[bytes] | None = None
        self._hold = contextlib.ExitStack()

    @property
    def hosts(self) -> str:
        """The connection string a client takes."""
        if self._port == 0:
            raise Refused("not_started", "this ZooKeeper server has no port yet; start it first")
        return f"{bracketed(self._host)}:{self._port}"

    @property
    def log(self) -> Path:
        return self._directory / "zookeeper.log"

    @property
    def process_id(self) -> int | None:
        """The id of the running server, else None."""
        return self._process.pid if self._process is not None and self.is_running else None

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self, timeout_s: float = 20.0) -> None:
        """Serve, on the data that is there. Does nothing when already running."""
        if self.is_running:
            return
        java = self._java or find_java()
        if self._tls is not None:
            self._tls.check(self._host, is_one_of_several=bool(self._ensemble))
        self._hold.close()
        self._hold.enter_context(process.held(self._directory))
        try:
            self._start_or_explain(java, time.monotonic() + timeout_s)
        except BaseException:
            self.kill()
            raise

    def stop(self, grace_s: float = 5.0) -> None:
        if self._process is not None:
            process.stop(self._process, grace_s)
        self._process = None
        self._hold.close()

    def kill(self) -> None:
        """End it at once, as a power cut would; what it acknowledged is on disk."""
        self.stop(grace_s=0)

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers, as in a long collection or a stalled disk."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _signal(self, number: signal.Signals) -> None:
        if self._process is None or not self.is_running:
            raise Refused("not_started", "this ZooKeeper server is not running")
        self._process.send_signal(number)

    def _start_or_explain(self, java: Java, deadline: float) -> None:
        status = 0
        for jars in (_SERVER_JARS, _SERVER_JARS + _LOGGING_JARS):
            self._port = _usable_port(self, self._host, self._port)
            _make_private(self._directory / "data")
            self._write_configuration()
            server = self._process = self._launch(java, jars)
            while server.poll() is None:
                if self._is_serving():
                    return
                if time.monotonic() > deadline:
                    raise self._failure("did not answer in time")
                time.sleep(0.01)
            status = server.returncode
        raise self._failure(f"ended with exit status {status}")

    def _write_configuration(self) -> None:
        text = _CONFIGURATION.format(tick_ms=self._tick_ms)
        if self._tls is None:
            text += _PLAIN.format(port=self._port, host=self._host)
        else:
            text += self._tls.configuration(self._host, self._port, is_one_of_several=bool(self._ensemble))
        if self._users is not None:
            text += access.CONFIGURATION
            access.write(self._directory, self._users)
        if self._ensemble:
            text += _ENSEMBLE + "".join(f"server.{number}={bracketed(host)}:{_QUORUM_PORT}:{_ELECTION_PORT}\n"
                                        for number, host in enumerate(self._ensemble, 1))
            (self._directory / "data" / "myid").write_text(f"{self._ensemble.index(self._host) + 1}\n")
        (self._directory / "zoo.cfg").write_text(text)
        (self._directory / "log4j2.properties").write_text(_LOGGING)

    def _launch(self, java: Java, jars: tuple[str, ...]) -> subprocess.Popen[bytes]:
        command = [
            str(java.executable),
            f"-Xmx{self._heap_mb}m",
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "-XX:+ExitOnOutOfMemoryError",
            "-Dzookeeper.preAllocSize=1024",
            "-Dlog4j2.configurationFile=log4j2.properties",
            "-Dlog4j2.disable.jmx=true",
            *(access.ARGUMENTS if self._users is not None else ()),
            "-cp",
            ":".join(map(str, _jars(jars))),
            f"org.apache.zookeeper.server.{'quorum.QuorumPeerMain' if self._ensemble else 'ZooKeeperServerMain'}",
            "./zoo.cfg",
        ]
        return process.spawn(command, log=self.log.absolute(), working_directory=self._directory, umask=0o077)

    def _is_serving(self) -> bool:
        try:
            with self._dialled() as probe:
                probe.sendall(b"srvr")
                answer = b""
                while received := probe.recv(4096):
                    answer += received
        except OSError:
            return False
        return b"Mode: " in answer

    def _dialled(self) -> socket.socket:
        plain = socket.create_connection((self._host, self._port), timeout=1.0)
        return plain if self._tls is None else self._tls.sealed(plain, self._host)

    def _failure(self, what: str) -> Refused:
        return Refused(
            "zookeeper_failed",
            f"ZooKeeper on {self.hosts} {what}. The end of {self.log}:\n{process.tail(self.log)}",
            hosts=self.hosts,
            log=str(self.log),
        )


def _make_private(directory: Path) -> None:
    """A directory for this user alone, be it new or left open to others before. Of another thing in its place
    the server tells."""
    if not directory.exists():
        directory.mkdir(mode=0o700)
    elif directory.is_dir():
        directory.chmod(0o700)


def _usable_port(owner: object, host: str, port: int) -> int:
    """``port`` itself when it is free, any free one for 0; held for the owner."""
    try:
        return held_port(owner, host, port)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            message = f"ZooKeeper cannot listen on {host}:{port}: {error.strerror}"
            raise Refused("zookeeper_failed", message, host=host, port=port) from error
        raise Refused(
            "port_in_use",
            f"port {port} on {host} is in use: stop the process that listens there, choose another port, "
            "or pass port 0 to have a free one picked",
            host=host,
            port=port,
        ) from error


def bracketed(host: str) -> str:
    """A host in front of a port; an IPv6 address stands in brackets."""
    return f"[{host}]" if ":" in host else host


def server_jars() -> list[Path]:
    """Those of PySpark's jars that a server is run with."""
    return _jars(_SERVER_JARS)


def _jars(patterns: tuple[str, ...]) -> list[Path]:
    require("spark", who="ZooKeeper, whose jars come with PySpark,")
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    found = []
    for pattern in patterns:
        matches = [match for each in pattern.split("|") for match in sorted(jars.glob(f"{each}.jar"))]
        if not matches:
            raise Refused("no_jar", f"{jars} has no {pattern}.jar; this PySpark is incomplete, or none of those"
                          f" that {remedy('spark')} installs", jar=pattern)
        found.append(matches[0])
    return found
