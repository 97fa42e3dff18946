"""Kinds of values on the command line: durations, times, headers, task ids, fencing tokens.

They are checked before anything is contacted, and what is wrong is answered with what would be right.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skuld_py.verbs.words import said

if TYPE_CHECKING:
    from skuld_py.model.ids import TaskId

    DurationKind = click.ParamType[float, str | float]
    TaskIdKind = click.ParamType[TaskId, str | TaskId]
    MomentKind = click.ParamType[datetime, str | datetime]
    DayKind = click.ParamType[str, str]
    HeaderKind = click.ParamType[tuple[str, str], str | tuple[str, str]]
    ClaimTokenKind = click.ParamType[tuple[int, bytes], str | tuple[int, bytes]]
else:  # older releases of click have no type parameters
    DurationKind = TaskIdKind = MomentKind = DayKind = HeaderKind = ClaimTokenKind = click.ParamType

DAY_S = 24 * 3600.0
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S, "": 1.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?|\.\d+)\s*(ms|s|m|h|d|)", re.ASCII)
_A_DAY = re.compile(r"\d{4}-?\d\d-?\d\d([+ ].*)?", re.ASCII)


class Duration(DurationKind):
    """A span of time as seconds: ``10s``, ``500ms``, ``2m``, ``1h``, ``90d``, or plain seconds."""

    name = "duration"

    def __init__(self, least_s: float = 0.0, most_s: float = DAY_S) -> None:
        self._least_s = least_s
        self._most_s = most_s

    def convert(self, value: str | float, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Seconds; what click hands over as a number is one already."""
        if isinstance(value, int | float):
            return float(value)
        found = _DURATION.fullmatch(value.strip())
        if found is None:
            self.fail(f"{value!r} is not a duration; write 10s, 500ms, 2m, 1h, 90d, or plain seconds.", param, ctx)
        seconds = float(found[1]) * _UNITS_S[found[2]]
        if not self._least_s <= seconds <= self._most_s:
            self.fail(f"{value!r} is out of range; use {said(self._least_s)} to {said(self._most_s)}.",
                      param, ctx)
        return seconds


class Moment(MomentKind):
    """A time: how long from now, or ago, as a duration, or a date and time with its zone, by ISO 8601."""

    name = "when"

    def __init__(self, is_past: bool = False) -> None:
        self._is_past = is_past

    def convert(self, value: str | datetime, param: click.Parameter | None,
                ctx: click.Context | None) -> datetime:
        """The time, with its zone. The client refuses one too far ahead."""
        if isinstance(value, datetime):
            return value
        text = value.strip()
        try:
            span = _DURATION.fullmatch(text)
            made = self._apart(float(span[1]) * _UNITS_S[span[2]]) if span else datetime.fromisoformat(text)
        except (ValueError, OverflowError):
            sense = "ago" if self._is_past else "from now"
            self.fail(f"{value!r} is no time; write 10m for ten minutes {sense}, or 2026-12-01T08:00+01:00.",
                      param, ctx)
        if made.utcoffset() is None:
            # what follows a day's '+' is read as an hour
            lacking = ("is a day; write the hour and its zone, too" if _A_DAY.fullmatch(text)
                       else "has no time zone; add it")
            self.fail(f"{value!r} {lacking}, as in 2026-12-01T08:00+01:00, or Z for UTC.", param, ctx)
        return made


    def _apart(self, seconds: float) -> datetime:
        span = timedelta(seconds=seconds)
        return datetime.now(UTC) - span if self._is_past else datetime.now(UTC) + span


class Day(DayKind):
    """A day: ``2026-12-01``."""

    name = "day"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """As days are written, whichever way of ISO 8601 this one was."""
        try:
            return date.fromisoformat(value.strip()).isoformat()
        except ValueError:
            self.fail(f"{value!r} is no day; write 2026-12-01.", param, ctx)


class HeaderText(HeaderKind):
    """A key and its value; ``noun`` is what they are."""

    name = "header"

    def __init__(self, noun: str = "header") -> None:
        self._noun = noun

    def convert(self, value: str | tuple[str, str], param: click.Parameter | None,
                ctx: click.Context | None) -> tuple[str, str]:
        """The two, split at the first equals sign."""
        if isinstance(value, tuple):
            return value
        key, sign, rest = value.partition("=")
        if not key or not sign:
            self.fail(f"{value!r} is no {self._noun}; write KEY=VALUE.", param, ctx)
        return key, rest


class TaskIdText(TaskIdKind):
    """A task id as ``enqueue`` printed it."""

    name = "id"

    def convert(self, value: str | TaskId, param: click.Parameter | None,
                ctx: click.Context | None) -> TaskId:
        """The 20 bytes."""
        from skuld_py.errors import Refused
        from skuld_py.model.ids import TaskId, from_text

        if isinstance(value, TaskId):
            return value
        try:
            return from_text(value)
        except Refused as refusal:
            self.fail(f"{refusal.message}.", param, ctx)


class Token(click.IntRange):
    """A claim's fencing token as ``claim`` printed it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number."""
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is no token; give the number that 'skuld claim' printed behind the id.", param,
                      ctx)


class ClaimToken(ClaimTokenKind):
    """A claim's token and its proof, as ``claim`` printed them: a number, and 16 hex digits behind a dash."""

    name = "token"

    def convert(self, value: str | tuple[int, bytes], param: click.Parameter | None,
                ctx: click.Context | None) -> tuple[int, bytes]:
        """The two; the proof is empty when there is none."""
        from skuld_py.errors import Refused
        from skuld_py.model.proofs import from_text

        if isinstance(value, tuple):
            return value
        token, _, proof = value.partition("-")
        try:
            return int(TOKEN(token, param, ctx) or 0), from_text(proof)
        except Refused as refusal:
            self.fail(f"{refusal.message}.", param, ctx)


class KeyFile(click.Path):
    """A file to be made."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Its path."""
        if str(value).endswith(os.sep):
            self.fail(f"{value!r} is a directory; name the file in it, as {value}NAME.key.", param, ctx)
        return super().convert(value, param, ctx)


class Directory(click.Path):
    """A directory of this machine."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Its path. Of a URI, and of nothing, a path could be made, too, to what nobody means."""
        if "://" in str(value) or not str(value):
            self.fail(f"{str(value)!r} is no directory; name one of this machine.", param, ctx)
        return super().convert(value, param, ctx)


DURATION = Duration()
PATIENCE = Duration(least_s=0.001)
MOMENT = Moment()
PAST = Moment(is_past=True)
DAY = Day()
HEADER = HeaderText()
SETTING = HeaderText("setting")
TASK_ID = TaskIdText()
TOKEN = Token(1, (1 << 64) - 1)
CLAIM_TOKEN = ClaimToken()
KEY_FILE = KeyFile(dir_okay=False, path_type=Path)
DIRECTORY = Directory(file_okay=False, path_type=Path)
