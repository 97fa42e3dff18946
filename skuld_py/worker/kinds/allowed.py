"""What a worker's start allows tasks to bring besides the arguments of its functions, and what they begin with.

Without a word a worker runs functions alone: a key that may enqueue is no key to all files and tables that the
worker can reach. Statements of SQL and streams reach them by name, so they are allowed by name (``--kinds``);
scripts by the directory that they may come from (``--scripts``). A process has one worker, and so one of these.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import attrs

from skuld_py.calls.kinds import PREFIX, SCRIPT, SQL, STREAM
from skuld_py.errors import Refused
from skuld_py.worker.directives import Dead

BY_NAME = tuple(kind.removeprefix(PREFIX) for kind in (SQL, STREAM))
ADOPT_S = 30.0


@attrs.frozen
class Allowed:
    """``kinds`` are reserved names. ``scripts``: the directory for application files. ``apps``: the modules in
    which streams find their functions. ``conf``: the settings of Spark with which scripts begin. ``lease_s``: the
    worker's. ``adopt_s``: how long a script's driver may outlive its claim. ``started_in``: where drivers are
    started; without one, in the current directory."""

    kinds: frozenset[str] = frozenset()
    scripts: Path | None = None
    apps: tuple[str, ...] = ()
    conf: Mapping[str, str] = attrs.field(factory=dict)
    lease_s: float = 30.0
    adopt_s: float = ADOPT_S
    started_in: Path | None = None


_now = [Allowed()]


def allowed(kind: str) -> Allowed:
    """What is allowed, if tasks of this kind are; else ``Dead``."""
    if reason := _reason_against(kind):
        raise Dead(reason)
    return _now[-1]


def check_allowed(name: str) -> None:
    """Refuse a call of a kind that is not allowed: before it starts, so that nobody can have Spark started who
    may not use it."""
    if name in (SQL, STREAM, SCRIPT) and (reason := _reason_against(name)):
        raise Refused("kind_not_allowed", reason)


def _reason_against(kind: str) -> str:
    """Why tasks of this kind are not allowed; nothing if they are."""
    now = _now[-1]
    if kind == SCRIPT and now.scripts is None:
        return (f"{kind}: this worker runs no scripts; start one with --scripts DIRECTORY, which holds them,"
                " and retry the task")
    if kind != SCRIPT and kind not in now.kinds:
        return (f"{kind}: this worker runs no such tasks; start one with --kinds {kind.removeprefix(PREFIX)},"
                " and retry the task")
    return ""


def apps_allowed() -> tuple[str, ...]:
    """The worker's modules."""
    return _now[-1].apps


@contextlib.contextmanager
def allowing(what: Allowed) -> Iterator[None]:
    """Within the block this is allowed."""
    _now.append(what)
    try:
        yield
    finally:
        _now.remove(what)


def kinds_of(text: str) -> frozenset[str]:
    """``sql,stream`` as reserved names."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    for word in words:
        if word not in BY_NAME:
            raise Refused("bad_kinds", f"kinds: {word[:40]!r} is none of {', '.join(BY_NAME)}; scripts are allowed"
                          " by --scripts DIRECTORY")
    return frozenset(PREFIX + word for word in words)


def directory_of(scripts: Path | None) -> Path | None:
    """The directory for scripts, as it is without links."""
    if scripts is not None and not scripts.is_dir():
        raise Refused("no_such_directory", f"scripts: there is no directory {scripts} here", path=str(scripts))
    return None if scripts is None else scripts.resolve()


@contextlib.contextmanager
def final() -> Iterator[None]:
    """What is refused within the block no other attempt would cure."""
    try:
        yield
    except Refused as refusal:
        raise Dead(refusal.message) from None


def listed(names: Iterable[str]) -> str:
    """Names for people."""
    return ", ".join(sorted(names)) or "none"
