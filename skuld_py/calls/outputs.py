"""What a completion says of the files that its task wrote, and a value that is too large for a result.

A completion names each output: the place of the dataset, how many files and bytes it has, and the digest of its
manifest, the list of its files, which stands beside the data. A short list is in the completion itself as well.
How outputs are written and read is ``skuld_py.output``.

Invariant: what is read here was written by others. A field of a wrong type or out of its range, and a name that
leads out of its place, is an error; ``results`` then takes the whole for bytes.

Rejected: all names in the completion. A result has 64 KiB, and a Spark job writes ten thousand files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import attrs

NAME_CHARS_MAX, PATH_CHARS_MAX = 100, 1_000
OUTPUTS_MAX = 32
LISTED_BYTES_MAX = 8_192
"""Of all lists that a completion holds itself."""
_COUNT_MAX = 1 << 63
_DIGEST = re.compile(r"[0-9a-f]{64}")


@attrs.frozen
class OutputFile:
    """A file of an output: its path, and its size in bytes."""

    path: str
    bytes: int


@attrs.frozen
class Written:
    """What a task wrote to one place, as its completion says it.

    ``path``: the dataset's, below which the files stand. ``format``: parquet, csv, json or another of Spark's;
    empty for files of no such kind. ``rows``: where they were counted. ``sha256``: of the manifest. ``files``:
    paths below the output's place, None when the list is only in the manifest.
    """

    name: str
    path: str
    format: str
    count: int
    bytes: int
    rows: int | None
    sha256: str
    files: tuple[OutputFile, ...] | None = None


@attrs.frozen
class Reference:
    """A value in a file of an output, for ``skuld_py.read_reference``: the dataset's path, task, token and file,
    how many bytes, and their digest."""

    path: str
    task: str
    token: int
    file: str
    bytes: int
    sha256: str


def checked_file(path: Any) -> str:
    """A file's path below its place; ValueError when it leads elsewhere, or is hidden from Spark."""
    parts = _text(path, PATH_CHARS_MAX).split("/")
    if any(not part or part in (".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{path!r} is no path below a place")
    return "/".join(parts)


def packed(outputs: Sequence[Written], *, with_files: bool) -> bytes:
    """The outputs as JSON. The lists of files are left out when they are not asked for, or too long together."""
    rows = [_row(output, with_files=with_files) for output in outputs]
    whole = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()
    if with_files and len(whole) > LISTED_BYTES_MAX:
        return packed(outputs, with_files=False)
    return whole


def unpacked(data: bytes) -> tuple[Written, ...]:
    """The outputs of ``packed``; an error of any kind when it is no such thing."""
    rows = json.loads(data)
    if not isinstance(rows, list) or not 0 < len(rows) <= OUTPUTS_MAX:
        raise ValueError("no list of outputs")
    return tuple(map(_written, rows))


def reference_fields(reference: Reference) -> list[Any]:
    """For JSON."""
    return list(attrs.astuple(reference))


def reference_of(fields: Any) -> Reference:
    """Of ``reference_fields``; ValueError or TypeError when they are none."""
    path, task, token, file, size, digest = fields
    return Reference(_text(path, PATH_CHARS_MAX), _text(task, NAME_CHARS_MAX), _count(token), checked_file(file),
                     _count(size), _sha256(digest))


def _row(output: Written, *, with_files: bool) -> dict[str, Any]:
    row: dict[str, Any] = attrs.asdict(output, recurse=False)
    files = row.pop("files")
    if with_files and files is not None:
        row["files"] = [[file.path, file.bytes] for file in files]
    return row


def _written(row: dict[str, Any]) -> Written:
    files = row.get("files")
    rows = row["rows"]
    return Written(_text(row["name"], NAME_CHARS_MAX), _text(row["path"], PATH_CHARS_MAX),
                   _text(row["format"], NAME_CHARS_MAX), _count(row["count"]), _count(row["bytes"]),
                   None if rows is None else _count(rows), _sha256(row["sha256"]),
                   None if files is None else tuple(map(file_of, files)))


def file_of(pair: Any) -> OutputFile:
    """A file of its path and size; ValueError or TypeError when these are none."""
    path, size = pair
    return OutputFile(checked_file(path), _count(size))


def _text(value: Any, most: int) -> str:
    if type(value) is not str or len(value) > most:
        raise ValueError("no text, or too long")
    value.encode()
    return value


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _COUNT_MAX:
        raise ValueError("no number from 0 on")
    return value


def _sha256(value: Any) -> str:
    if _DIGEST.fullmatch(_text(value, 64)) is None:
        raise ValueError("no SHA-256")
    return str(value)
