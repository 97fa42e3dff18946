"""One look at a page: who looks, what was asked for, and the verbs that answer.

Verbs are asked as over HTTP, by the rights of the token that was signed in with. A part of a page that cannot be
had is said to be so in its place, and the others are shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import attrs
from starlette.requests import Request

from skuld_py.errors import Refused, SkuldError
from skuld_py.gateway.access import Bearer
from skuld_py.gateway.dashboard.forms import is_for_pages
from skuld_py.gateway.dashboard.sessions import Session
from skuld_py.gateway.problems import Problem, refusal
from skuld_py.model.ids import TaskId, from_text
from skuld_py.verbs.table import VERBS
from skuld_py.verbs.verb import Verb

if TYPE_CHECKING:
    from skuld_py.gateway.application import Gateway

BY_NAME: Mapping[str, Verb] = {verb.name: verb for verb in VERBS}
ACTIONS: Mapping[str, Verb] = {verb.name: verb for verb in VERBS if is_for_pages(verb)}
"""What pages can do."""


@attrs.frozen
class Part:
    """A document, or why there is none."""

    value: Any = None
    problem: Problem | None = None


@attrs.frozen
class Look:
    """``query``: what was asked for, by name. ``proof``: what forms on the page carry."""

    gateway: Gateway
    request: Request
    bearer: Bearer
    session: Session
    proof: str
    now_ms: int
    query: Mapping[str, Sequence[str]]

    @property
    def task_id(self) -> TaskId:
        """The id in the path; refused if it is none."""
        try:
            return from_text(self.request.path_params["id"])
        except Refused as error:
            raise refusal("no_such_task", error.message, field="id") from None

    def may(self, name: str) -> bool:
        """Whether who looks may do this with whatever is on the page; so that no page offers what it refuses."""
        verb = BY_NAME[name]
        return self.bearer.may(verb) and self.bearer.reaches(verb, None)

    async def ask(self, verb_name: str, task_id: TaskId | None = None, *, by: Callable[..., Any] | None = None,
                  **fields: Any) -> Any:
        """What a verb answers; or what else answers it, by the verb's rights."""
        verb = BY_NAME[verb_name]
        try:
            return await self.gateway.perform(self.request, self.bearer, verb, fields, task_id, by)
        except SkuldError as error:
            raise self.gateway.problem_of(error, self.request, verb) from error

    async def rows(self, verb_name: str, most: int, task_id: TaskId | None = None, **fields: Any) -> list[Any]:
        """The first documents of a stream."""
        pages: AsyncGenerator[list[Any], None] = await self.ask(verb_name, task_id, **fields)
        found: list[Any] = []
        try:
            async with aclosing(pages):
                async for page in pages:
                    found += page
                    if len(found) >= most:
                        break
        except SkuldError as error:
            raise self.gateway.problem_of(error, self.request, BY_NAME[verb_name]) from error
        return found[:most]

    async def part(self, verb_name: str, task_id: TaskId | None = None, **fields: Any) -> Part:
        """What a verb answers, as a part of a page."""
        try:
            return Part(await self.ask(verb_name, task_id, **fields))
        except Problem as problem:
            return Part(problem=problem)

    async def parts(self, *names: str) -> list[Part]:
        """Several, asked side by side."""
        return list(await asyncio.gather(*map(self.part, names)))
