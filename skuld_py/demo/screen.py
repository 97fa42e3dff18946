"""What one sees of the demo: bars and tables on a terminal, plain lines or JSON documents anywhere else.

Nothing that comes from an archive is read as markup, and control characters are shown as escapes: names of
entries are anybody's.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

WIDTH_OF_FILES = 150
LINE_EVERY_S = 2.0


class Screen:
    """Where the demo tells its story; ``as_json``: one document a line, for programs."""

    def __init__(self, as_json: bool = False) -> None:
        plain = Console()
        self._as_json = as_json
        self._is_terminal = plain.is_terminal and not as_json
        width = None if self._is_terminal else WIDTH_OF_FILES
        self._console = Console(width=width, markup=False, highlight=False, emoji=False)
        self._began = time.monotonic()
        self._bars: Progress | None = None
        self._counts: dict[str, tuple[int, int]] = {}
        self._bar_ids: dict[str, TaskID] = {}
        self._line_at = 0.0

    @property
    def age_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began

    def say(self, words: str, style: str = "") -> None:
        """A line of the story, with the time it happened."""
        if self._as_json:
            self._document(event="said", words=words)
            return
        self._console.print(Text.assemble((f"{self.age_s:6.1f} s  ", "dim"), (harmless(words), style)))

    def drawing(self, lines: str) -> None:
        """Lines that belong together, as they are."""
        if self._as_json:
            self._document(event="drawing", lines=lines.splitlines())
            return
        self._console.print(Text(harmless(lines)))

    def alarm(self, words: str) -> None:
        """A line that must be noticed."""
        self.say(words, "bold red" if self._is_terminal else "")

    def good(self, words: str) -> None:
        """A line of relief."""
        self.say(words, "bold green" if self._is_terminal else "")

    @contextlib.contextmanager
    def bars(self, *names: str) -> Iterator[None]:
        """Show how far each of these things is, until the end of the block."""
        if not self._is_terminal:
            yield
            return
        columns = (TextColumn("{task.description:>8}"), BarColumn(40), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=self._console) as self._bars:
            self._bar_ids = {name: self._bars.add_task(name, total=None) for name in names}
            yield
        self._bars = None

    def count(self, counts: Mapping[str, tuple[int, int]]) -> None:
        """Things done, of how many."""
        if self._counts == counts:
            return
        self._counts = dict(counts)
        if self._bars is not None:
            for name, (done, total) in counts.items():
                self._bars.update(self._bar_ids[name], completed=done, total=total)
        elif time.monotonic() >= self._line_at or all(done == total for done, total in counts.values()):
            self._print_counts()

    def table(self, title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table; numbers stand to the right."""
        if self._as_json:
            self._document(event="table", title=title, columns=list(columns),
                           rows=[list(map(_plain, row)) for row in rows])
            return
        every = [[_cell(cell) for cell in row] for row in rows]
        table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, title_style="bold")
        for at, column in enumerate(columns):
            is_number = all(row[at].replace(",", "").replace(".", "").isdigit() for row in every)
            table.add_column(column, justify="right" if every and is_number else "left", overflow="fold")
        for row in every:
            table.add_row(*map(Text, row))
        self._console.print()
        self._console.print(table)

    def _document(self, **fields: object) -> None:
        print(json.dumps({"at_s": round(self.age_s, 3), **fields}), flush=True)

    def _print_counts(self) -> None:
        self._line_at = time.monotonic() + LINE_EVERY_S
        self.say(", ".join(f"{done:,} of {total:,} {name}" for name, (done, total) in self._counts.items()))


def harmless(text: str) -> str:
    """The text with everything that could move a cursor as an escape."""
    return "".join(char if char.isprintable() or char == "\n" else ascii(char)[1:-1] for char in text)


def _plain(value: object) -> object:
    return value if isinstance(value, int | float) else str(value)


def _cell(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return f"{value:.1f}" if isinstance(value, float) else harmless(str(value))
