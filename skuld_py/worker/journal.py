"""What a worker writes into a claim's log: the format of entries, and the buffer in which they wait.

An entry is one JSON object in UTF-8 with ``kind`` and ``at_ms`` (wall clock), so that people and programs can
read a log without this package:

    {"kind": "log", "text": ...}                     what the task said; a dict it gave stands as it is
    {"kind": "progress", "done", "total", "note", "spark": {"jobs", "stages", "tasks": [done, known],
                                                            "rows", "bytes": [read, written]}}
    {"kind": "engine_died", "what"}                  the engine ended, or went silent, under the task: ``blame``
    {"kind": "released", "reason"}                   why the claim was given back; always the last entry

What a function returned or why it failed is no entry: results and errors are the task's, see ``outcome``.

Invariants:

* Entries have consecutive numbers, and a number is bound to its bytes: what may have been written already is
  written again unchanged, so an uncertain write is harmless.
* Progress is coalesced: what was overtaken before it was due is never written. The pause between two entries
  of progress grows with the age of the claim, so a log grows with the logarithm of the time.
* A log is bounded: of what a task says beyond ``ENTRIES_MAX`` entries only the newest is written, at the pace of
  progress and at the end; what it overtook is counted. So the mark to resume from is never the one that is
  missing. The log is for people and for small marks; it is no channel for data.
* Of checkpoints only the newest is written, ``MARK_S`` after the one before at the earliest, and the last one
  when the log is closed: before the claim is concluded. It travels with the entries. It is numbered when it is
  taken, by the one thread that writes, so the newest has the highest number.
* ``say``, ``progress`` and ``checkpoint`` take no lock: the order to stop a task may interrupt them anywhere.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.calls.results import Stored
from skuld_py.client import entries
from skuld_py.client.checking import as_checkpoint
from skuld_py.errors import Refused

ENTRIES_MAX = 400
"""Entries of what a task itself says, in one claim, that are all written. One read shows ``Limits.log_entries`` of
all its claims."""
ENTRY_BYTES_MAX = 32_768
TEXT_CHARS_MAX = 4_096
FLUSH_S = 1.0
MARK_S = FLUSH_S / 2
"""Less than between two flushes, so that each flush may write one, and one flush no two."""
ENGINE_DIED, decode_entry = entries.ENGINE_DIED, entries.decode_entry
"""What is read of entries is the clients'."""
BATCH_ENTRIES = 100

Words = str | Mapping[str, Any]


@attrs.frozen
class Batch:
    """Entries on their way, numbered from ``seq``, and a checkpoint with its own number; one of both, or both."""

    seq: int
    entries: tuple[bytes, ...]
    checkpoint: Stored | None = None
    number: int = 0

    @property
    def said(self) -> dict[str, Any]:
        """What an update says besides its entries."""
        marked = {} if self.checkpoint is None else {"checkpoint": self.checkpoint, "number": self.number}
        return {"seq": self.seq, **marked}


def encode_entry(kind: str, at_ms: int, **fields: Any) -> bytes:
    """The bytes of an entry; ``Refused`` when a field is not plain JSON or the whole is too large."""
    try:
        entry = json.dumps({"kind": kind, "at_ms": at_ms, **fields}, ensure_ascii=False, allow_nan=False,
                           separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise Refused("bad_entry", f"a log entry must be plain JSON (None, bool, int, float, str, list,"
                      f" dict): {problem}") from None
    if len(entry) > ENTRY_BYTES_MAX:
        raise Refused("entry_too_large", f"a log entry of {len(entry)} bytes; the limit is {ENTRY_BYTES_MAX}."
                      " Write the data elsewhere and log its path")
    return entry


def pause_s(age_s: float) -> float:
    """Least time between two entries of progress: a second at first, later a thirtieth of the claim's age."""
    return max(FLUSH_S, age_s / 30)


class Journal:
    """The log of one claim, buffered, and its checkpoint. ``say``, ``progress`` and ``checkpoint`` are the task's;
    the rest is the worker's."""

    def __init__(self, started_s: float) -> None:
        self._started_s = started_s
        self._next_progress_s = started_s
        self._said: deque[bytes] = deque()
        self._said_count = 0
        self._newest: deque[bytes] = deque(maxlen=1)
        self._newest_count = 0
        self._progress: dict[str, Any] | None = None
        self._spark: dict[str, Any] | None = None
        self._written: tuple[Any, Any] = (None, None)
        self._pending: list[bytes] = []
        self._batch: Batch | None = None
        self._seq = 0
        self._mark: Stored | None = None
        self._mark_written: Stored | None = None
        self._mark_number = -1
        self._takes_marks = True
        self._next_mark_s = started_s
        self._death: bytes | None = None
        self._is_closed = False
        self._awaited: list[tuple[bytes, threading.Event]] = []

    def say(self, words: Words, at_ms: int) -> None:
        """Note a sentence or a dict; long texts are cut, too large dicts refused."""
        if isinstance(words, str):
            entry = encode_entry("log", at_ms, text=words[:TEXT_CHARS_MAX])
        else:
            entry = encode_entry("log", at_ms, **{key: value for key, value in words.items()
                                                  if key not in ("kind", "at_ms")})
        self._said_count += 1
        (self._said if self._said_count <= ENTRIES_MAX else self._newest).append(entry)

    def say_surely(self, words: Mapping[str, Any], at_ms: int) -> threading.Event:
        """Note a dict that is never overtaken; the event is set once the cluster has it."""
        entry, is_written = encode_entry("log", at_ms, **words), threading.Event()
        self._awaited.append((entry, is_written))
        self._said.append(entry)
        return is_written

    def progress(self, done: float, total: float, note: str = "") -> None:
        """Note how far the task is; overtakes what was noted before."""
        fields = {"done": done, "total": total, "note": note[:TEXT_CHARS_MAX]}
        encode_entry("progress", 0, **fields)  # what is no number fails here, in the task
        if not all(isinstance(number, int | float) for number in (done, total)):
            raise Refused("bad_entry", f"progress is two numbers and a note; {done!r:.40} and {total!r:.40} were"
                          " given")
        self._progress = fields

    def checkpoint(self, value: Any) -> None:
        """Note from where to resume; overtakes what was noted before. ``Refused`` for what is no result."""
        stored = as_checkpoint("value", value)
        if self._takes_marks and not self._is_closed:
            self._mark = stored

    def spark(self, counts: dict[str, Any]) -> None:
        """Note how far Spark is with the task's jobs."""
        self._spark = counts

    def engine_died(self, what: str, at_ms: int) -> None:
        """Note what became of the engine that the task ran in; written when the log is closed."""
        self._death = encode_entry(ENGINE_DIED, at_ms, what=what)

    @property
    def has_death(self) -> bool:
        """Whether the engine died under the task."""
        return self._death is not None

    def close(self, at_ms: int, reason: str = "") -> None:
        """End the log, behind all that is buffered, with why the claim is given back, if it is. What is said later
        is dropped."""
        self._collect(at_ms)
        self._is_closed = True
        overtaken = self._said_count - ENTRIES_MAX - self._newest_count
        if overtaken > 0:
            text = (f"{overtaken} entries were overtaken by newer ones and dropped: a task that says more than"
                    f" {ENTRIES_MAX} things is heard less often")
            self._pending.append(encode_entry("log", at_ms, text=text))
        if self._death is not None:
            self._pending.append(self._death)
        if reason:
            self._pending.append(encode_entry("released", at_ms, reason=reason))

    def take(self, now_s: float, at_ms: int) -> Batch | None:
        """What to write now: first the batch not yet confirmed, else the next one, else None."""
        if self._batch is None:
            if not self._is_closed:
                if now_s >= self._next_progress_s and self._collect(at_ms):
                    self._next_progress_s = now_s + pause_s(now_s - self._started_s)
                self._drain_said()
            mark = self._due_mark(now_s)
            if self._pending or mark is not None:
                number = 0 if mark is None else self._mark_number
                self._batch = Batch(self._seq, tuple(self._pending[:BATCH_ENTRIES]), mark, number)
        return self._batch

    def _due_mark(self, now_s: float) -> Stored | None:
        """The newest checkpoint, if it is not written and it is time to."""
        mark = self._mark
        if mark is self._mark_written or not (self._is_closed or now_s >= self._next_mark_s):
            return None
        self._next_mark_s, self._mark_written = now_s + MARK_S, mark
        self._mark_number += 1
        return mark

    def forgo_checkpoint(self) -> None:
        """The batch taken last is to be written without its checkpoint, which was refused; so would others be."""
        assert self._batch is not None
        self._batch = Batch(self._batch.seq, self._batch.entries) if self._batch.entries else None
        self._mark = self._mark_written = None
        self._takes_marks = False

    def confirm(self) -> None:
        """The batch taken last is written."""
        if self._batch is not None:
            written = self._batch.entries
            for awaited in [each for each in self._awaited if any(each[0] is entry for entry in written)]:
                self._awaited.remove(awaited)
                awaited[1].set()
            count = len(written)
            self._seq += count
            del self._pending[:count]
            self._batch = None

    def _drain_said(self) -> None:
        while self._said:
            self._pending.append(self._said.popleft())

    def _collect(self, at_ms: int) -> bool:
        """Make pending what was said, then the newest progress; whether there was anything that is paced."""
        self._drain_said()
        is_paced = False
        with contextlib.suppress(IndexError):
            self._pending.append(self._newest.popleft())
            self._newest_count += 1
            is_paced = True
        now = (self._progress, self._spark)
        if now == self._written:
            return is_paced
        self._written = now
        fields = dict(now[0] or {})
        if now[1] is not None:
            fields["spark"] = now[1]
        self._pending.append(encode_entry("progress", at_ms, **fields))
        return True
