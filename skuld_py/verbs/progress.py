"""What claims log, for people: a sentence for each entry, and how far a claim is.

The entries are ``worker.journal``'s, but anybody who holds a claim may write others, of any bytes. So what has not
the shape that it should have is shown as text, numbers that are none are left out, and no character that could
move a cursor reaches the terminal.

Bars of Spark never go back. What is known of its stages and tasks grows while a query runs, so "8 of 8" may become
"8 of 28": the counts say so, there is no percentage, and the bar stays where it was until more is done than that.
What a task says of itself (``context.progress``) is drawn as it says it. Pure; bars are ``cli.bars``' on a
terminal, and a template's on a page.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from skuld_py.client.entries import ENGINE_DIED, decode_entry
from skuld_py.client.json_text import harmless_text as harmless
from skuld_py.client.json_text import json_text
from skuld_py.model.bounds import MOMENT_MS_MAX
from skuld_py.verbs.contents import shown
from skuld_py.verbs.words import many, moment

if TYPE_CHECKING:
    from skuld_py.client.attending import BatchStatus

NOTE_CHARS = 200
NUMBER_MAX = 1 << 63


@attrs.frozen
class Part:
    """So much is done of what is known. ``filled``: of its bar, which never falls."""

    done: float
    known: float
    filled: float = 0.0

    def __str__(self) -> str:
        return f"{number_said(self.done)}/{number_said(self.known)}"


@attrs.frozen
class Progress:
    """How far a claim is: by what its task says, and by its Spark jobs. ``traffic``: what was read and written, as
    rows and bytes; None for what is not known."""

    token: int
    at_ms: int | None
    own: Part | None
    done: float | None
    note: str
    jobs: int
    stages: Part | None
    tasks: Part | None
    traffic: Mapping[str, tuple[int, int]]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to show."""
        return self.own is None and self.done is None and self.stages is None and not self.note

    @property
    def main(self) -> Part | None:
        """The part that says most in one bar."""
        return self.own or self.tasks


# -- entries ---------------------------------------------------------------------------------------


def time_of(data: bytes) -> str:
    """When an entry was written, by this machine's zone; nothing if it does not say."""
    at_ms = _time_in(decode_entry(data))
    return "" if at_ms is None else moment(at_ms)


def sentence(data: bytes) -> str:
    """An entry in words, on one line."""
    entry = decode_entry(data)
    kind, said = entry["kind"], {key: value for key, value in entry.items() if key not in ("kind", "at_ms")}
    match kind:
        case "log" if said.keys() == {"text"} and isinstance(said["text"], str):
            return harmless(said["text"])
        case "log":
            return _script_said(said) or json_text(said)
        case "progress" if not (progress := _read(0, entry)).is_empty:
            return ", ".join(_words_of(progress))
        case "released" if isinstance(said.get("reason"), str):
            return harmless(f"given back: {said['reason']}")
        case _ if kind == ENGINE_DIED and isinstance(said.get("what"), str):
            return harmless(f"Spark's JVM {said['what']} under it")
    return shown(data)


def _script_said(said: Mapping[str, Any]) -> str:
    """What a script's driver wrote, or became, in words; nothing if it is something else."""
    match said:
        case {"driver": {"machine": {"host": str(host)}, "driver": {"id": int(number)}}} if len(said) == 1:
            return harmless(f"driver {number} on {host}")
        case {"driver_ended": str(), "status": int(status)} if len(said) == 2:
            return f"the driver ended with status {status}"
    texts = {name: said[name].rstrip() for name in ("out", "err") if isinstance(said.get(name), str)}
    if not texts or said.keys() - texts.keys() - {"left_out"}:
        return ""
    left = "" if "left_out" not in said else ", some left out"
    return "; ".join(harmless(f"{name}{left}: {text}") for name, text in texts.items())


def is_progress(data: bytes) -> bool:
    """Whether an entry only says how far the claim is."""
    return bool(decode_entry(data)["kind"] == "progress")


def progress_of(token: int, entries: Iterable[bytes]) -> Progress | None:
    """How far a claim is, by its log; None if it does not say."""
    found: Progress | None = None
    for data in entries:
        found = followed(found, token, data)
    return found


def progress_of_batch(batch: BatchStatus) -> Progress:
    """How far a batch is, for all of its tasks at once: those that ended, and the parts of its jobs so far."""
    parts = _part([batch.parts_done, batch.parts])
    own = Part(batch.ended, batch.tasks, _filled(batch.ended, batch.tasks)) if batch.ended or not parts else None
    return Progress(0, None, own, None, "", 1 if parts else 0, None, parts, {})


def followed(before: Progress | None, token: int, data: bytes) -> Progress | None:
    """How far it is after one more entry; of another claim, from the beginning."""
    entry = decode_entry(data)
    if entry["kind"] != "progress":
        return before if before is None or before.token == token else None
    made = _read(token, entry)
    if before is None or before.token != token:
        return None if made.is_empty else made
    return before if made.is_empty else attrs.evolve(
        made, stages=_risen(before.stages, made.stages), tasks=_risen(before.tasks, made.tasks))


def _risen(before: Part | None, now: Part | None) -> Part | None:
    if before is None or now is None:
        return now or before
    return attrs.evolve(now, filled=max(before.filled, now.filled))


def _read(token: int, entry: Mapping[str, Any]) -> Progress:
    spark = said if isinstance(said := entry.get("spark"), dict) else {}
    done, total = _number(entry.get("done")), _number(entry.get("total"))
    note = harmless(words[:NOTE_CHARS]) if isinstance(words := entry.get("note"), str) else ""
    own = Part(done, total, _filled(done, total)) if done is not None and total else None
    traffic = {name: pair for at, name in enumerate(("read", "written"))
               if any(pair := (_count(spark.get("rows"), at), _count(spark.get("bytes"), at)))}
    return Progress(token, _time_in(entry), own, done, note, _count([spark.get("jobs")], 0),
                    _part(spark.get("stages")), _part(spark.get("tasks")), traffic)


def _part(pair: object) -> Part | None:
    done, known = _count(pair, 0), _count(pair, 1)
    return Part(done, known, _filled(done, known)) if known else None


def _filled(done: float, known: float) -> float:
    return min(1.0, done / known)


def _count(pair: object, at: int) -> int:
    number = _number(pair[at]) if isinstance(pair, list) and len(pair) > at else None
    return int(number) if number is not None else 0


def _number(value: object) -> float | None:
    if type(value) not in (int, float) or not 0 <= value < NUMBER_MAX:  # type: ignore[operator]
        return None
    return value  # type: ignore[return-value]


def _time_in(entry: Mapping[str, Any]) -> int | None:
    at_ms = entry.get("at_ms")
    return at_ms if type(at_ms) is int and 0 <= at_ms <= MOMENT_MS_MAX else None


# -- words -----------------------------------------------------------------------------------------


def _words_of(progress: Progress) -> Iterator[str]:
    if progress.own is not None:
        yield str(progress.own)
    elif progress.done is not None:
        yield number_said(progress.done)
    if progress.note:
        yield progress.note
    if progress.jobs:
        yield many(progress.jobs, "Spark job")
    if progress.stages is not None:
        yield f"stages {progress.stages}"
    if progress.tasks is not None:
        yield f"tasks {progress.tasks}"
    for name, pair in progress.traffic.items():
        yield f"{name} {traffic_said(*pair)}"


def number_said(number: float) -> str:
    """A count, with a comma between thousands."""
    return f"{number:,.0f}" if number == math.floor(number) else f"{number:,.2f}"


def traffic_said(rows: int, size: int) -> str:
    """What was read or written."""
    from rich.filesize import decimal

    return f"{rows:,} rows" + (f" ({decimal(size)})" if size else "")


def lines_of(progress: Progress) -> Iterator[tuple[str, Part | None, str]]:
    """What is known of it: what it is about, how much of it is done where that has an end, and words."""
    if progress.own is not None or progress.done is not None or progress.note:
        count = str(progress.own) if progress.own is not None else (
            number_said(progress.done) if progress.done is not None else "")
        yield "done", progress.own, "  ".join(filter(None, (count, progress.note)))
    if progress.stages is not None:
        yield "stages", progress.stages, f"{progress.stages} of {many(progress.jobs, 'Spark job')}"
    if progress.tasks is not None:
        yield "tasks", progress.tasks, str(progress.tasks)
    for name, pair in progress.traffic.items():
        yield name, None, traffic_said(*pair)


# -- documents -------------------------------------------------------------------------------------


def entry_document(line: Mapping[str, Any]) -> dict[str, Any]:
    """A line of a log, as documents have it, with when it was written and what it says."""
    data = base64.b64decode(line["data_base64"])
    return {**line, "at_ms": _time_in(decode_entry(data)), "said": sentence(data), "size": len(data)}


def progress_document(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """How far the newest claim is by the lines of logs, in order; empty if none says so. ``filled``: of a bar,
    from 0 to 1; None where there is no end."""
    found: Progress | None = None
    for line in lines:
        found = followed(found, int(line["token"]), base64.b64decode(line["data_base64"]))
    return [] if found is None else [
        {"name": name, "filled": None if part is None else part.filled, "said": words}
        for name, part, words in lines_of(found)]
