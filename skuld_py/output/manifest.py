"""The manifest of an output: which files a claim wrote, as they stand beside them.

Invariant: what is read is bounded and checked: it may be anybody's file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.calls.outputs import OutputFile, file_of
from skuld_py.errors import Refused
from skuld_py.output.store import FILES_MAX

BYTES_MAX = 64 << 20
SCHEMA_CHARS_MAX = 65_536


@attrs.frozen
class Manifest:
    """``files`` by their paths below the output's place. ``schema``: Spark's, as JSON, empty where it is not
    known; ``options``: what the files are to be read with."""

    task: str
    token: int
    format: str
    rows: int | None
    files: tuple[OutputFile, ...]
    schema: str = ""
    options: Mapping[str, str] = attrs.field(factory=dict)

    def encode(self) -> bytes:
        """As JSON."""
        plain = {**attrs.asdict(self, recurse=False), "files": [[file.path, file.bytes] for file in self.files]}
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":")).encode()

    @classmethod
    def decode(cls, data: bytes, path: str) -> Manifest:
        """Of JSON; ``Refused`` when it is none. ``path``: where it was read."""
        try:
            plain = json.loads(data)
            files = plain["files"]
            if len(files) > FILES_MAX:
                raise ValueError("too many files")
            options = {_of(str, name): _of(str, value) for name, value in plain["options"].items()}
            return cls(_of(str, plain["task"]), _of(int, plain["token"]), _of(str, plain["format"]),
                       None if plain["rows"] is None else _of(int, plain["rows"]), tuple(map(file_of, files)),
                       _of(str, plain["schema"]), options)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as problem:
            raise Refused("damaged_output", f"path: {path} is no manifest: {problem}") from None


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value
