"""One request on its way to the cluster, as verbs are given it: its sender and what it may use."""

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
    """One request: its sender, when it arrived, and what it may use."""

    client: AsyncClient
    limits: Limits
    bearer: Bearer
    arrived: float
    id: TaskId | None
    gone: Callable[[], Awaitable[None]]
    """Returns once the caller has hung up, or the gateway stops."""
    stopping: Callable[[], Awaitable[object]]
    """Returns once the gateway stops."""

    @property
    def task_id(self) -> TaskId:
        """The id in the path."""
        assert self.id is not None
        return self.id


@contextmanager
def naming(ids: list[TaskId], *, is_repeatable: bool) -> Iterator[None]:
    """Let an error in doubt have the ids, so that the caller can ask again with them."""
    try:
        yield
    except Uncertain as doubt:
        raise problem_of(doubt, is_repeatable=is_repeatable, ids=[to_text(made) for made in ids]) from doubt
