"""Verbs of two words, as ``skuld workflow submit``: a wrong second word is answered with what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

import click


class Words(click.Group):
    """``meant``: what else is asked for, and the word that does it."""

    def __init__(self, *given: Any, meant: Mapping[str, str] | None = None, **options: Any) -> None:
        super().__init__(*given, **options)
        self._meant = meant or {}

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command meant."""
        is_asked = not ctx.resilient_parsing  # and not for completion, which takes no answer
        if is_asked and args and not args[0].startswith("-") and args[0] not in self.commands:
            like = difflib.get_close_matches(args[0], self.commands, n=1)
            near = self._meant.get(args[0]) or next(iter(like), "")
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(self.commands)}."
            ctx.fail(f"there is no command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)
