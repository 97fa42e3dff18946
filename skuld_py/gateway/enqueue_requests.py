"""What may be asked of tasks yet to be made, and of tasks by their ids: beside ``requests``, by the same rules.

Of the client's options (``client.options``) each task of a request has its times, key, name and dependencies for
itself; the others are one for all. Times are milliseconds since 1970, as in answers.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from skuld_py.client import options
from skuld_py.client.minting import wall_ms
from skuld_py.client.preludes import AHEAD_MS_MAX, DEP_WAIT_S, UNIQUE_WINDOW_S, OnFailure
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.gateway.values import Absent, Asked, Base64, Batch, Copies, Id, Name, Priority, Time, Words, either
from skuld_py.model.body import RETRY_RANGES, WINDOW_MS_MAX
from skuld_py.model.prelude import DEPS_MAX

_DEFAULT = options.Retry()


def _range(name: str, scale: int, words: str = "") -> Any:
    """What a number of a retry policy may be."""
    low, high = (bound if scale == 1 else bound / scale for bound in RETRY_RANGES[name])
    return Field(ge=low, le=high, allow_inf_nan=None if scale == 1 else False, description=words or None)


class Content(Asked):
    """A task's content, and its id if the caller has chosen one."""

    model_config = ConfigDict(json_schema_extra=either("payload"))
    id: Annotated[Id | None, Absent, Field(
        description="Chosen by the caller (see GET /v1/ids); then the request may be sent again and again, and"
        " makes one task. Other content under a used id is refused with 409.")] = None
    payload: Annotated[str | None, Absent, Field(description="The content as text; or payload_base64.")] = None
    payload_base64: Annotated[Base64 | None, Absent, Field(description="The content as bytes.")] = None
    not_before_ms: Annotated[Time | None, Absent, Field(description="Not to be claimed before.")] = None
    expires_ms: Annotated[Time | None, Absent, Field(
        description="Not to be claimed from then on: the task is dead. What runs then is not stopped.")] = None

    key: Annotated[Words | None, Absent, Field(
        description="Tasks of one queue and key are worked on one after another, the oldest first.")] = None
    unique: Annotated[Words | None, Absent, Field(
        description="Of each name of a queue there is one task in a window: the second gets the id of the first.")
        ] = None
    deps: Annotated[list[Id] | None, Absent, Field(
        max_length=DEPS_MAX, description="Tasks that must end before this one is claimed.")] = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.payload is None) == (self.payload_base64 is None):
            raise PydanticCustomError("bad_payload", "payload: give either payload or payload_base64")
        return self

    @model_validator(mode="after")
    def _has_times_in_order(self) -> Self:
        most_ms = wall_ms() + AHEAD_MS_MAX
        for name, time_ms in (("not_before_ms", self.not_before_ms), ("expires_ms", self.expires_ms)):
            if (time_ms or 0) > most_ms:
                raise PydanticCustomError("bad_time", "{name}: is more than ten years from now", {"name": name})
        if self.expires_ms is not None and self.expires_ms <= (self.not_before_ms or 0):
            raise PydanticCustomError("bad_time", "expires_ms: is not later than not_before_ms")
        return self

    @property
    def content(self) -> bytes:
        """The payload's bytes."""
        return self.payload.encode() if self.payload is not None else self.payload_base64 or b""

    @property
    def own_options(self) -> dict[str, Any]:
        """The client's options that each task has for itself."""
        return {"not_before": _seconds(self.not_before_ms), "expires": _seconds(self.expires_ms), "key": self.key,
                "unique": self.unique, "deps": self.deps}


def _seconds(time_ms: int | None) -> float | None:
    return None if time_ms is None else time_ms / 1000


class Policy(Asked):
    """How often and when a task is tried again. After the nth failure it rests for the least of max_backoff_s and
    backoff_s * factor ** (n - 1), give or take the part jitter of it."""

    max_attempts: Annotated[int, _range("max_attempts", 1, "Claims that may fail or lapse; then it is dead.")
                            ] = _DEFAULT.max_attempts
    backoff_s: Annotated[float, _range("backoff_ms", 1_000)] = _DEFAULT.backoff_s
    factor: Annotated[float, _range("factor_percent", 100)] = _DEFAULT.factor
    max_backoff_s: Annotated[float, _range("backoff_max_ms", 1_000)] = _DEFAULT.max_backoff_s
    jitter: Annotated[float, _range("jitter_percent", 100)] = _DEFAULT.jitter

    @model_validator(mode="after")
    def _has_backoffs_in_order(self) -> Self:
        if self.backoff_s > self.max_backoff_s:
            raise PydanticCustomError("bad_retry", "max_backoff_s: is less than backoff_s")
        return self


class Kind(Asked):
    """What tasks may have in common: where they go, how often they are tried, what is told besides."""

    queue: Name
    priority: Priority = 0
    retry: Annotated[Policy | None, Absent] = None
    headers: Annotated[dict[str, str] | None, Absent, Field(
        description="Words for readers and workers beside the payload; at most 4 KiB.")] = None

    @property
    def options(self) -> dict[str, Any]:
        """The client's options of that name."""
        policy = None if self.retry is None else options.Retry(**self.retry.model_dump())
        return {"priority": self.priority, "retry": policy, "headers": self.headers}


class Options(Kind):
    """What all tasks of a request have in common."""

    w: Annotated[Copies | None, Absent] = None
    unique_window_s: Annotated[float, Field(ge=0.001, le=WINDOW_MS_MAX / 1000, allow_inf_nan=False, description=
                                            "How long a window is; windows follow the clock.")] = UNIQUE_WINDOW_S
    on_dep_failure: Annotated[OnFailure, Field(
        description="What becomes of a task when one that it waits for is dead or cancelled.")] = "wait"
    dep_wait_s: Annotated[float, Field(ge=0, le=AHEAD_MS_MAX / 1000, allow_inf_nan=False, description=
                                       "How long it waits for one that nobody knows.")] = DEP_WAIT_S

    @property
    def options(self) -> dict[str, Any]:
        """The client's options of that name."""
        return {**super().options, "w": self.w, "unique_window_s": self.unique_window_s,
                "on_dep_failure": self.on_dep_failure, "dep_wait_s": self.dep_wait_s}


class Enqueue(Content, Options):
    """One task."""


class EnqueueMany(Options):
    """Many tasks of one queue. After an error some may be stored: send it again, with ids."""

    tasks: Annotated[list[Content], Batch]

    @model_validator(mode="after")
    def _has_different_ids_or_none(self) -> Self:
        if len({task.id is None for task in self.tasks}) > 1:
            raise PydanticCustomError("bad_ids", "tasks: give all of them ids, or none")
        given = [task.id for task in self.tasks if task.id is not None]
        if len(set(given)) < len(given):
            raise PydanticCustomError("bad_ids", "tasks: an id is given twice")
        if len({task.unique is None for task in self.tasks}) > 1:
            raise PydanticCustomError("bad_unique", "tasks: give all of them unique names, or none")
        return self


class Mint(Asked):
    """How many ids to make."""

    count: Annotated[int, Field(ge=1, le=DEFAULT_LIMITS.batch_tasks)] = 1
    queue: Annotated[Name | None, Absent, Field(description="For tasks with a key: their queue.")] = None
    key: Annotated[Words | None, Absent, Field(description="For tasks with a key: it.")] = None

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.queue is None) != (self.key is None):
            raise PydanticCustomError("bad_key", "key: give queue and key, or neither")
        return self


class Cancel(Asked):
    """Tasks that nobody wants done any more."""

    ids: Annotated[list[Id], Batch]
    w: Annotated[Copies | None, Absent] = None


class Retry(Asked):
    """Dead tasks that are to begin anew."""

    ids: Annotated[list[Id], Batch]
