"""One request on its way to the cluster: who sends it and what it may use. What the verbs have in common."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import attrs

from skuld_py.client.async_client import AsyncClient
from skuld_py.errors import Uncertain
from skuld_py.gateway.access import Bearer
from skuld_py.gateway.limits import Limits
from skuld_py.gateway.problems import problem_of
from skuld_py.model.ids import TaskId, to_text


@attrs.frozen
class Call:
    """One request: who sends it, when it arrived, and what it may use."""

    client: AsyncClient
    limits: Limits
    bearer: Bearer
    arrived: float
    id: TaskId | None
    gone: Callable[[], Awaitable[None]]
    """Returns once nobody is there any more to take the answer, or the gateway stops."""
    stopping: Callable[[], Awaitable[object]]
    """Returns once the gateway stops."""

    @property
    def task_id(self) -> TaskId:
        """The id in the path."""
        assert self.id is not None
        return self.id


@contextmanager
def naming(ids: list[TaskId], *, is_repeatable: bool) -> Iterator[None]:
    """When it is in doubt the answer has the ids, to do it again with."""
    try:
        yield
    except Uncertain as doubt:
        raise problem_of(doubt, is_repeatable=is_repeatable, ids=[to_text(made) for made in ids]) from doubt
