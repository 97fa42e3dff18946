"""How far a claim is, as bars on a terminal: what ``verbs.progress`` knows of it, drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skuld_py.verbs.progress import Part, Progress, lines_of, number_said

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live
    from rich.progress_bar import ProgressBar

BAR_CELLS, SHORT_CELLS = 30, 10
SHORT_CHARS = 24


def bars(progress: Progress) -> RenderableType:
    """A bar for each part, a line each, and what has no end in words."""
    from rich.table import Table

    made = Table.grid(padding=(0, 2))
    for label, part, words in lines_of(progress):
        made.add_row(label, _bar(part, BAR_CELLS) if part is not None else "", words)
    return made


def short_bar(progress: Progress | None) -> tuple[RenderableType, str]:
    """A bar in few cells, and its counts; or what is said instead of an end."""
    if progress is None:
        return "", ""
    if progress.main is not None:
        return _bar(progress.main, SHORT_CELLS), str(progress.main)
    return "", number_said(progress.done) if progress.done is not None else progress.note[:SHORT_CHARS]


def share_bar(filled: float, words: str) -> RenderableType:
    """One bar for a verb that works, of a share between 0 and 1, and what is said beside it."""
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    made = Table.grid(padding=(0, 2))
    made.add_row(ProgressBar(total=1.0, completed=filled, width=BAR_CELLS), words)
    return made


class PassingBar:
    """One bar on a terminal, of which nothing is left when it is wiped."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def draw(self, filled: float, words: str) -> None:
        """As it is now."""
        from rich.live import Live

        from skuld_py.cli.showing import console

        if self._live is None:
            self._live = Live(console=console(), auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(share_bar(filled, words), refresh=True)

    def wipe(self) -> None:
        """It is not there any more."""
        if self._live is not None:
            self._live.stop()
            self._live = None


def _bar(part: Part, cells: int) -> ProgressBar:
    from rich.progress_bar import ProgressBar

    return ProgressBar(total=1.0, completed=part.filled, width=cells)
