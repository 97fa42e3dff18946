"""Where outputs stand below a dataset's path, and what a path means.

    PATH/_claims/TASK/TOKEN/...     what a claim writes; Spark passes over names with an underscore in front
    PATH/task=TASK/...              the same directory, published; Spark reads ``task`` as a column
    .../_skuld.json                 its manifest: what was sealed, by which claim

A path without a scheme, or with ``file:``, is of this machine; any other is Hadoop's.
"""

from __future__ import annotations

import os
import re

from skuld_py.calls.outputs import PATH_CHARS_MAX
from skuld_py.errors import Refused

CLAIMS, MANIFEST = "_claims", "_skuld.json"
PUBLISHED = "task="
_PATTERN = re.compile(r"[*?\[\]{}\\\0]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")


def dataset(path: object) -> str:
    """The path in the one form in which it is compared: absolute, or a URI; ``Refused`` when it is none."""
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str) or not text or _PATTERN.search(text) or len(text) > PATH_CHARS_MAX:
        raise Refused("bad_output", f"path: {text!r} is no place for an output; name a directory, or a URI as"
                      f" hdfs://name/data, without * ? [ ] {{ }} and \\, of at most {PATH_CHARS_MAX} characters")
    scheme = scheme_of(text)
    if scheme == "file":
        text = "/" + text.partition(":")[2].lstrip("/")
    return os.path.abspath(text) if scheme in ("", "file") else text.rstrip("/")


def scheme_of(path: str) -> str:
    """``hdfs``, ``s3a``, ``file``; empty without one."""
    found = _SCHEME.match(path)
    return "" if found is None else found[1].lower()


def uri_of(path: str) -> str:
    """As Hadoop reads it, which takes a percent sign for what it is."""
    return path if scheme_of(path) else f"file://{path}"


def claim_place(path: str, task: str, token: int) -> str:
    """Where one claim writes."""
    return f"{path}/{CLAIMS}/{task}/{token}"


def published_place(path: str, task: str) -> str:
    """Where plain readers find the task's output."""
    return f"{path}/{PUBLISHED}{task}"


def is_hidden(name: str) -> bool:
    """Whether Spark passes over a file or directory of this name."""
    return name.startswith(("_", "."))
