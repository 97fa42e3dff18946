"""What a task writes through: a place of its claim's own, and what is said of it when the function has returned.

    out = context.output("/data/census")
    out.write(table, "parquet")                          # a DataFrame
    out.write_csv("counts.csv", rows, header=("word", "n"))
    with out.open("model.bin") as file: ...              # any bytes
    table.write.parquet(out.path)                        # or Spark by itself

Nothing of it is visible until the task is completed, see ``protocol``.

Invariant: once it is sealed nothing is written to it through this object, and each begun write has ended.

Rejected: directories inside an output chosen by the caller of ``write``. Spark reads them as columns, or not at
all.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO
from weakref import WeakKeyDictionary

from skuld_py.calls.outputs import NAME_CHARS_MAX, OUTPUTS_MAX, OutputFile, Reference, Written, checked_file
from skuld_py.calls.results import Carrying, encoded
from skuld_py.errors import Refused
from skuld_py.model.ids import to_text
from skuld_py.output.manifest import Manifest
from skuld_py.output.places import MANIFEST, claim_place, dataset, is_hidden
from skuld_py.output.store import Store

KINDS = ("parquet", "csv", "json", "orc", "text", "avro")
_SUFFIXES = {"txt": "text", "jsonl": "json"}


class Output:
    """One output of a claim. ``name`` is what readers ask for, ``path`` where it stands until it is published. Any
    thread of the task may write."""

    def __init__(self, base: str, name: str, task: str, token: int, store: Store,
                 check: Callable[[], None]) -> None:
        self.base = base
        self.name = name
        self._task = task
        self._token = token
        self._place = claim_place(base, task, token)
        self._store = store
        self._check = check
        self._lock = threading.Lock()
        self._format = self._schema = ""
        self._options: Mapping[str, str] = {}
        self._rows: int | None = 0
        self._references = 0
        self._opened: WeakKeyDictionary[BinaryIO, str] = WeakKeyDictionary()
        self._is_sealed = False

    @property
    def path(self) -> str:
        """For whatever writes by itself: a directory that is not there yet, and that no other claim writes to.
        What is written there has no count of rows."""
        self._rows = None
        return self._place

    def write(self, frame: Any, format: str = "parquet", *, partition_by: Sequence[str] = (),
              **options: Any) -> None:
        """Write a DataFrame, in addition to what was written before. ``options`` are those of Spark's writer;
        readers get them, too, and the schema."""
        from skuld_py.output.spark_frames import schema_of, write_frame

        texts = {name: str(value).lower() if isinstance(value, bool) else str(value)
                 for name, value in options.items()}
        with self._lock:
            self._begin()
            self._be(format, schema_of(frame), texts)
            self._count(write_frame(frame, self._place, format, partition_by, texts))

    def open(self, file: str) -> BinaryIO:
        """Open a new file to write bytes; its directories are made. Close it, or the output cannot be sealed."""
        with self._lock:
            self._begin()
            self._rows = None
            made = self._created(file)
            self._opened[made] = file
            return made

    def write_csv(self, file: str, rows: Iterable[Sequence[Any]], *, header: Sequence[str] = ()) -> None:
        """Write rows as a new CSV file."""
        with self._lock:
            self._begin()
            self._be("csv", "", {"header": "true" if header else "false", "escape": '"', "multiLine": "true"})
            with io.TextIOWrapper(self._created(file), "utf-8", newline="") as text:
                writer, count = csv.writer(text, lineterminator="\n"), 0
                if header:
                    writer.writerow(header)
                for row in rows:
                    writer.writerow(row)
                    count += 1
            self._count(count)

    def write_json(self, file: str, values: Iterable[Any]) -> None:
        """Write values as a new file of JSON lines."""
        with self._lock:
            self._begin()
            self._be("json", "", {})
            with io.TextIOWrapper(self._created(file), "utf-8", newline="") as text:
                count = 0
                for value in values:
                    text.write(json.dumps(value, ensure_ascii=False) + "\n")
                    count += 1
            self._count(count)

    def reference(self, value: Any) -> Reference:
        """Store a value of any size, of the types that a result may have, in a file here; to be returned, alone or
        within other values. Readers get it by ``skuld_py.read_reference``."""
        content = encoded(value)
        with self._lock:
            self._begin()
            self._references += 1
            file = f"_value-{self._references}"
            with self._store.create(f"{self._place}/{file}") as stream:
                stream.write(content)
        return Reference(self.base, self._task, self._token, file, len(content), _digest(content))

    # -- the worker's side ---------------------------------------------------------------------

    def seal(self) -> Written:
        """List what is there, and write the manifest beside it."""
        with self._lock:
            self._check()
            self._is_sealed = True
            for stream, file in self._opened.items():
                if not stream.closed:
                    raise Refused("bad_output", f"file: {file} of output {self.name} is still open, and may not be"
                                  " whole; close it before the function returns: with output.open(...) as file")
            files = tuple(self._store.files(self._place))
            format = self._format or _format_of(files)
            manifest = Manifest(self._task, self._token, format, self._rows, files, self._schema,
                                dict(self._options)).encode()
            self._store.seal(self._place, MANIFEST, manifest)
        return Written(self.name, self.base, format, len(files), sum(file.bytes for file in files), self._rows,
                       _digest(manifest), files)

    @property
    def store(self) -> Store:
        """Where it stands."""
        return self._store

    def _begin(self) -> None:
        self._check()
        if self._is_sealed:
            raise Refused("bad_output", f"output: {self.name} was sealed when the function returned; write before")

    def _be(self, format: str, schema: str, options: Mapping[str, str]) -> None:
        """An output is of one format, so that readers need not be told which."""
        if format not in KINDS:
            raise Refused("bad_output", f"format: {format!r} is none of {', '.join(KINDS)}; write by other means"
                          " to the output's path")
        if self._format and (self._format, self._schema, self._options) != (format, schema, options):
            raise Refused("bad_output", f"format: output {self.name} has {self._format} of another schema or other"
                          " options already; write to an output of another path")
        self._format, self._schema, self._options = format, schema, options

    def _count(self, rows: int) -> None:
        self._rows = None if self._rows is None else self._rows + rows

    def _created(self, file: str) -> BinaryIO:
        try:
            checked = checked_file(file)
        except ValueError as problem:
            raise Refused("bad_output", f"file: {problem}; name one as part.csv or 2026/part.csv") from None
        if any(map(is_hidden, checked.split("/"))):
            raise Refused("bad_output", f"file: {file!r}: names that begin with _ or . are passed over by Spark;"
                          " name it otherwise")
        return self._store.create(f"{self._place}/{checked}")


class Outputs:
    """All outputs of a claim."""

    def __init__(self, task_id: bytes, token: int, check: Callable[[], None],
                 store_of: Callable[[str], Store]) -> None:
        self._task = to_text(task_id)
        self._token = token
        self._check = check
        self._store_of = store_of
        self._open: dict[str, Output] = {}
        self._lock = threading.Lock()

    def open(self, path: str, name: str) -> Output:
        """The output at a path, the same one each time."""
        base = dataset(path)
        named = name or base.rpartition("/")[2]
        if not 0 < len(named) <= NAME_CHARS_MAX:
            raise Refused("bad_output", f"name: {named!r}; an output's name has 1 to {NAME_CHARS_MAX} characters")
        with self._lock:
            known = self._open.get(base)
            if known is not None and (known.name == named or not name):
                return known
            if known is not None or any(each.name == named for each in self._open.values()):
                raise Refused("bad_output", f"name: {named!r} and {base} belong to two outputs; give each path a"
                              " name of its own: context.output(path, name)")
            if len(self._open) >= OUTPUTS_MAX:
                raise Refused("bad_output", f"output: a task has at most {OUTPUTS_MAX}; write several kinds of"
                              " files to one")
            self._check()
            self._open[base] = Output(base, named, self._task, self._token, self._store_of(base), self._check)
            return self._open[base]

    def sealed(self, value: Any) -> Any:
        """What the function returned, with what it wrote. To be called once, when it has returned."""
        return Carrying(value, tuple(each.seal() for each in self._open.values())) if self._open else value

    @property
    def every(self) -> list[Output]:
        """In the order in which they were opened."""
        return list(self._open.values())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _format_of(files: Sequence[OutputFile]) -> str:
    """By the first file's name: ``part-0.snappy.parquet``, ``part-0.csv.gz``; empty when that says nothing."""
    for suffix in reversed(files[0].path.rpartition("/")[2].split(".")[1:] if files else []):
        kind = _SUFFIXES.get(suffix, suffix)
        if kind in KINDS:
            return kind
    return ""
