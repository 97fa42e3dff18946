"""What the data source promises, and whether it was kept: a line for each, with what was seen."""

from __future__ import annotations

import click


class Promises:
    """Those that were looked at, in their order."""

    def __init__(self) -> None:
        self.broken: list[str] = []

    def see(self, what: str, seen: object, *, is_met: bool) -> None:
        """Note whether one was kept, and say so."""
        if not is_met:
            self.broken.append(what)
        click.echo(f"{'met' if is_met else 'BROKEN':<7} {what}: {seen}")
