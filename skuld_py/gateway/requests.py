"""What each verb may be asked, as models: their JSON schemas are the published ones.

A request is checked whole before anything is asked of the cluster, so what is refused for its form has done
nothing. What only the cluster can know (whether an id exists, how many copies there are) it refuses itself. What
makes tasks is in ``enqueue_requests``.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.gateway.values import (
    SAFE_MAX,
    Absent,
    Asked,
    Base64,
    Batch,
    Copies,
    Delay,
    Holder,
    Id,
    Lease,
    Name,
    Proof,
    Seq,
    States,
    Token,
    either,
)
from skuld_py.model.limiting import CONCURRENCY_MAX, KEY_CONCURRENCY_MAX, RATE_MAX, WINDOW_MS_MAX

LEASE_S = 60.0
LOG_WAIT_S = 30.0



class NoInput(Asked):
    """Nothing can be asked for."""


class Claim(Asked):
    """Up to ``n`` tasks of a queue, under a lease."""

    queue: Name
    n: Annotated[int, Field(ge=1, le=DEFAULT_LIMITS.batch_tasks, description="At most so many.")] = 1
    lease_s: Lease = LEASE_S
    wait_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False, description="How long to wait when nothing"
                                   " can be claimed yet; the gateway waits no longer than its own limit.")] = 0
    holder: Annotated[Holder | None, Absent, Field(
        description="Who holds the tasks, for readers; gateway:TOKEN-NAME if left out.")] = None


class ClaimName(Asked):
    """A claim, by its task and its fencing token, with its proof."""

    id: Id
    token: Token
    proof: Proof = b""


class Renew(ClaimName):
    """More time for one claim."""

    lease_s: Lease = LEASE_S


class Claims(Asked):
    """Many claims."""

    claims: Annotated[list[ClaimName], Batch]


class RenewMany(Claims):
    """More time for many claims."""

    lease_s: Lease = LEASE_S


class Completion(ClaimName):
    """The end of a task, with what came of it."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["result", "result_base64"]}})
    result: Annotated[str | None, Absent, Field(description="As text; or result_base64, or none.")] = None
    result_base64: Annotated[Base64 | None, Absent, Field(description="As bytes.")] = None

    @model_validator(mode="after")
    def _has_at_most_one(self) -> Self:
        if self.result is not None and self.result_base64 is not None:
            raise PydanticCustomError("bad_result", "result: give result or result_base64, not both")
        return self

    @property
    def content(self) -> bytes:
        """The result's bytes; none is empty."""
        return self.result.encode() if self.result is not None else self.result_base64 or b""


class Complete(Completion):
    """The end of one task, with what came of it."""

    w: Annotated[Copies | None, Absent] = None


class Failed(ClaimName):
    """An attempt that came to nothing, and why."""

    error: Annotated[str, Field(description="Why, for readers.")] = ""


class Fail(Failed):
    """An attempt that came to nothing."""

    retry_in_s: Annotated[Delay | None, Absent, Field(
        description="When to try again; by the task's own policy if left out.")] = None


class Snooze(ClaimName):
    """A task that is to be done later."""

    delay_s: Delay


class FailMany(Asked):
    """Attempts that came to nothing."""

    claims: Annotated[list[Failed], Batch]
    retry_in_s: Annotated[Delay | None, Absent, Field(
        description="When to try again; by each task's own policy if left out.")] = None


class CompleteMany(Asked):
    """The end of many tasks."""

    claims: Annotated[list[Completion], Batch]
    w: Annotated[Copies | None, Absent] = None


class Entry(Asked):
    """One entry of a log."""

    model_config = ConfigDict(json_schema_extra=either("data"))
    data: Annotated[str | None, Absent, Field(description="The entry as text; or data_base64.")] = None
    data_base64: Annotated[Base64 | None, Absent, Field(description="The entry as bytes.")] = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.data is None) == (self.data_base64 is None):
            raise PydanticCustomError("bad_data", "data: give either data or data_base64")
        return self

    @property
    def content(self) -> bytes:
        """The entry's bytes."""
        return self.data.encode() if self.data is not None else self.data_base64 or b""


class Append(ClaimName):
    """Entries of a claim's log, from number ``seq`` on. The same numbers and entries again are harmless."""

    seq: Annotated[Seq, Field(description="The number of the first entry; a claim's log begins at 0.")]
    entries: Annotated[list[Entry], Batch]
    w: Annotated[Copies | None, Absent] = None


class GetMany(Asked):
    """Tasks by their ids."""

    ids: Annotated[list[Id], Batch]


class Get(Asked):
    """What a task must show at least."""

    min_seq: Annotated[int, Field(ge=0, le=SAFE_MAX, description="The seq of what was seen before: who knows less"
                                  " is not believed.")] = 0


class Results(Asked):
    """Tasks by their ids, and how long to wait until all of them have ended."""

    ids: Annotated[list[Id], Batch]
    wait_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False, description="The gateway waits no longer"
                                   " than its own limit.")] = 0.0


class Page(Asked):
    """Which tasks to list."""

    queue: Annotated[Name | None, Absent, Field(description="Of this queue; of all if left out.")] = None
    limit: Annotated[int | None, Absent, Field(ge=1, description="At most so many; all if left out.")] = None
    state: States = ""
    since_s: Annotated[float | None, Absent, Field(gt=0, allow_inf_nan=False, description="Only what was enqueued"
                                                   " then or later, in seconds since 1970.")] = None
    until_s: Annotated[float | None, Absent, Field(gt=0, allow_inf_nan=False, description="Only what was enqueued"
                                                   " before then, in seconds since 1970.")] = None

    @property
    def states(self) -> list[str]:
        """Each by itself."""
        return self.state.split(",") if self.state else []


class Count(Asked):
    """Which tasks to count."""

    queue: Annotated[Name | None, Absent, Field(description="Of this queue; of all if left out.")] = None
    state: States = ""

    @property
    def states(self) -> list[str]:
        """Each by itself."""
        return self.state.split(",") if self.state else []


AtOnce = Annotated[int, Field(ge=1, le=CONCURRENCY_MAX)]
Rate = Annotated[int, Field(ge=1, le=RATE_MAX)]


class LimitedQueue(Asked):
    """Whose limits to tell."""

    queue: Annotated[Name | None, Absent, Field(description="Of this queue; of all if left out.")] = None


class SetLimits(Asked):
    """The limits of a queue; what is left out is not limited."""

    queue: Name
    concurrency: Annotated[AtOnce | None, Absent, Field(description="So many tasks claimed at once.")] = None
    rate: Annotated[Rate | None, Absent, Field(description="So many tasks claimed in per_s.")] = None
    per_s: Annotated[float, Field(ge=0.001, le=WINDOW_MS_MAX / 1000, allow_inf_nan=False,
                                  description="The time that the rate is for.")] = 1.0
    burst: Annotated[Rate | None, Absent, Field(description="So many more than the rate in any time; if left out,"
                                                " what the rate gives in a second.")] = None
    key_concurrency: Annotated[Annotated[int, Field(ge=1, le=KEY_CONCURRENCY_MAX)] | None, Absent, Field(
        description="So many tasks of one ordering key claimed at once; 1 if left out.")] = None


class QueueName(Asked):
    """A queue."""

    queue: Name


class Follow(Asked):
    """Which part of a log to read, and whether to wait for what comes."""

    token: Annotated[Token | None, Absent, Field(description="Of this claim; of all if left out.")] = None
    follow: Annotated[bool, Field(description="Go on with what comes, for wait_s or until the task is"
                                  " completed.")] = False
    wait_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False, description="How long to follow; the"
                                   " gateway follows no longer than its own limit.")] = LOG_WAIT_S
