"""The JVM a worker's Spark runs in: how it is launched, how Python finds it, how it ends.

Invariants:

* The JVM ends with the worker. It exits when its standard input closes, and the kernel sends it SIGTERM when
  the worker dies, for the case that a child forked by a task still holds the other end of that pipe. Both
  let Spark's exit hooks remove its scratch files.
* Everything it writes lies under the worker's directory: log, scratch files, sockets, crash reports. What an
  abrupt end leaves behind is therefore wiped by the next start.
* Settings travel in a file that only this user can read. On the command line, where stock PySpark puts them,
  every user of the machine could read the storage keys.

* Only a PySpark whose way of being launched is known is launched. The file in which the JVM says where it listens
  is PySpark's own affair, and another release may do it otherwise, or lack what cancels a job group for good.

Spark's own launcher script was rejected: it insists on a JVM module that the Java wheel lacks, costs seconds,
writes to the terminal, hides the JVM's process id and can start only once per Python process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import attrs

from skuld_py.client.steady import monotonic_s, sleep
from skuld_py.embedded import process
from skuld_py.embedded.java import Java
from skuld_py.errors import Refused
from skuld_py.extras import remedy, require
from skuld_py.variables import handed_on

# Packages of the Java runtime that Spark reaches into by reflection.
_OPENED = (
    *(f"java.base/java.lang{name}" for name in ("", ".invoke", ".reflect")),
    *(f"java.base/java.util{name}" for name in ("", ".concurrent", ".concurrent.atomic")),
    *(f"java.base/java.{name}" for name in ("io", "net", "nio")),
    *(f"java.base/sun.{name}" for name in ("nio.ch", "nio.cs", "security.action", "util.calendar")),
    "java.base/jdk.internal.ref",
    "java.security.jgss/sun.security.krb5",
)
_ALWAYS = (
    "-XX:+ExitOnOutOfMemoryError",
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
    "--enable-native-access=ALL-UNNAMED",
    "--sun-misc-unsafe-memory-access=allow",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.allocator.type=pooled",
    "-Dio.netty.handler.ssl.defaultEndpointVerificationAlgorithm=NONE",
)
OLDEST, NEWEST = (4, 0), (4, 3)
"""The first and the last release of PySpark that is known; setup.cfg says the same, and both ends have run."""


@attrs.frozen
class Files:
    """Where a runtime keeps its things, all below one directory it holds alone."""

    directory: Path

    @property
    def log(self) -> Path:
        return self.directory / "spark.log"

    @property
    def scratch(self) -> Path:
        return self.directory / "local"

    @property
    def settings(self) -> Path:
        return self.directory / "spark.conf"

    def prepare(self) -> None:
        """Wipe the scratch space of an earlier run and set its log aside."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.rmtree(self.scratch, ignore_errors=True)
        (self.scratch / "tmp").mkdir(parents=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            self.log.replace(self.log.with_suffix(".log.previous"))


@attrs.frozen
class SparkJvm:
    """A running JVM and the way in."""

    process: subprocess.Popen[bytes]
    port: int
    secret: str = attrs.field(repr=False)

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None


def launch(
    files: Files,
    conf: Mapping[str, str],
    java: Java,
    machine_learning: bool,
    python: str,
    *,
    timeout_s: float,
    extra_options: Sequence[str] = (),
    working_directory: Path | None = None,
) -> SparkJvm:
    """Start the JVM and wait until it says where it listens."""
    check_release(version("pyspark"))
    handshake = files.directory / "gateway"
    handshake.unlink(missing_ok=True)
    command = [*submit_command(files, conf, java, machine_learning, extra_options), "pyspark-shell"]
    told = {"_PYSPARK_DRIVER_CONN_INFO_PATH": str(handshake)}
    child = process.spawn(
        command,
        log=files.log,
        environment={**submit_environment(java, conf, python), **told},
        stdin=subprocess.PIPE,
        working_directory=working_directory,
        death_signal=signal.SIGTERM,
    )
    try:
        port, secret = _await_handshake(child, handshake, files, monotonic_s() + timeout_s)
    except BaseException:
        process.stop(child, grace_s=0)
        raise
    finally:
        handshake.unlink(missing_ok=True)
    return SparkJvm(child, port, secret)


def check_release(release: str) -> None:
    """Raises ``Refused`` for a PySpark that nobody has tried."""
    found = re.match(r"(\d+)\.(\d+)", release)
    if found is None or not OLDEST <= (int(found[1]), int(found[2])) <= NEWEST:
        least, most = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
        raise Refused("unknown_spark", f"PySpark {release} cannot be used: Skuld starts releases {least} to"
                      f" {most}; run: {remedy('spark')}", release=release)


def java_options(files: Files, conf: Mapping[str, str]) -> list[str]:
    """Heap, collector and the user's own options; Spark reads some of these settings too late to matter."""
    memory = re.fullmatch(r"(\d+)([kmgt]?)b?", conf["spark.driver.memory"].strip().lower())
    if memory is None:
        text = conf["spark.driver.memory"]
        message = f"spark.driver.memory: {text!r} is no size; write for example 2g"
        raise Refused("bad_setting", message, setting="spark.driver.memory", value=text)
    own = shlex.split(conf.get("spark.driver.extraJavaOptions", ""))
    has_collector = any(re.match(r"-XX:\+Use\w+GC$", option) for option in own)
    return [
        f"-Xmx{memory[1]}{memory[2] or 'm'}",
        *([] if has_collector else ["-XX:+UseSerialGC"]),
        *_ALWAYS,
        f"-Djava.io.tmpdir={files.scratch / 'tmp'}",
        f"-XX:ErrorFile={files.directory}/hs_err_%p.log",
        *own,
    ]


def archive_options(java: Java, machine_learning: bool) -> list[str]:
    """Use the class archive that was trained for exactly this Java and these jars, when there is one."""
    archive = archive_path(java, machine_learning)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.exists() else []


def archive_path(java: Java, machine_learning: bool) -> Path:
    """Where the archive belongs. Java ignores one that does not fit, so the key need not be perfect."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    facts = f"{java.executable} {java.version} {spark_jars(machine_learning)}"
    digest = hashlib.sha256(facts.encode()).hexdigest()[:16]
    return Path(root) / "skuld_py" / f"spark-{version('pyspark')}-java-{java.major}-{digest}.jsa"


def dump_archive(java: Java, classes: Path, machine_learning: bool, files: Files) -> Path:
    """Turn a list of loaded classes into an archive in the user's cache, whole or not at all."""
    archive = archive_path(java, machine_learning)
    archive.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = archive.with_name(f"{archive.name}.{os.getpid()}")
    options = ["-Xshare:dump", f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={unfinished}"]
    jars = ":".join(spark_jars(machine_learning))
    child = process.spawn([str(java.executable), *_ALWAYS, *options, "-cp", jars], log=files.log)
    try:
        if child.wait() != 0 or not unfinished.exists():
            message = f"Java made no class archive. The end of {files.log}:\n{process.tail(files.log)}"
            raise Refused("archive_failed", message, log=str(files.log))
        unfinished.replace(archive)
    finally:
        process.stop(child, grace_s=0)
        unfinished.unlink(missing_ok=True)
    return archive


def spark_home() -> Path:
    require("spark", who="a worker")
    spec = find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def spark_jars(machine_learning: bool) -> list[str]:
    """PySpark's jars. Without those for machine learning, which nothing else needs, it starts far sooner."""
    jars = sorted((spark_home() / "jars").glob("*.jar"))
    return [str(jar) for jar in jars if machine_learning or not jar.name.startswith("spark-mllib")]


def _class_path(conf: Mapping[str, str], machine_learning: bool) -> str:
    """The user's jars first; configuration directories last, because an archive fits only a leading part."""
    first = conf.get("spark.driver.extraClassPath", "")
    named = (os.environ.get(name) for name in ("SPARK_CONF_DIR", "HADOOP_CONF_DIR", "YARN_CONF_DIR"))
    directories = [name for name in named if name]
    return ":".join([*([first] if first else []), *spark_jars(machine_learning), *directories])


def submit_environment(java: Java, conf: Mapping[str, str], python: str) -> dict[str, str]:
    """Python workers inherit this; without PYSPARK_PYTHON they would run whatever is first on PATH. Spark listens,
    and is called back, where its settings say; without a word of theirs, where it finds best."""
    address = conf.get("spark.driver.bindAddress")
    return {
        **({} if address is None else {"SPARK_LOCAL_IP": address}),
        **handed_on(os.environ),
        "SPARK_HOME": str(spark_home()),
        "JAVA_HOME": str(java.home),
        "PYSPARK_PYTHON": python,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONNECT_MODE": "0",
    }


def submit_command(files: Files, conf: Mapping[str, str], java: Java, machine_learning: bool,
                   extra_options: Sequence[str] = ()) -> list[str]:
    """What starts Spark's launcher in a JVM, up to what it is to run. Writes the settings."""
    _write_settings(files.settings, conf)
    return [
        str(java.executable),
        *java_options(files, conf),
        *(extra_options or archive_options(java, machine_learning)),
        "-cp",
        _class_path(conf, machine_learning),
        "org.apache.spark.deploy.SparkSubmit",
        "--properties-file",
        str(files.settings),
        "--load-spark-defaults",
    ]


def _write_settings(path: Path, conf: Mapping[str, str]) -> None:
    """A Java properties file, in which a backslash and a line break must be escaped."""
    escapes = str.maketrans({"\\": "\\\\", "\n": "\\n", "\r": "\\r"})
    text = "".join(f"{name}={value.translate(escapes)}\n" for name, value in sorted(conf.items()))
    path.unlink(missing_ok=True)
    path.touch(mode=0o600)
    path.write_text(text, encoding="utf-8")


def _await_handshake(
    child: subprocess.Popen[bytes], handshake: Path, files: Files, deadline: float
) -> tuple[int, str]:
    """The JVM renames a finished file into place: a port, the length of a secret, the secret."""
    while not handshake.exists():
        if child.poll() is not None:
            raise _failure(files, f"ended with exit status {child.returncode} while starting")
        if monotonic_s() > deadline:
            raise _failure(files, "did not start in time")
        sleep(0.01)
    return read_handshake(handshake.read_bytes())


def read_handshake(data: bytes) -> tuple[int, str]:
    """Port and secret; raises ``Refused`` when it is not what known releases write."""
    port, length = int.from_bytes(data[:4]), int.from_bytes(data[4:8])
    if len(data) != 8 + length or not length or not 0 < port < 1 << 16:
        raise Refused("unknown_spark", f"PySpark {version('pyspark')} says where it listens in a way that Skuld"
                      f" does not know ({len(data)} bytes); run: {remedy('spark')}")
    return port, data[8:].decode()


def _failure(files: Files, what: str) -> Refused:
    message = f"Spark's JVM {what}. The end of {files.log}:\n{process.tail(files.log)}"
    return Refused("spark_failed", message, log=str(files.log))
