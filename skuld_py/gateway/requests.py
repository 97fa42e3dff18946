"""What each verb may be asked, as models: their JSON schemas are the published ones.

A request is checked whole before anything is asked of the cluster, so what is refused for its form has done
nothing. What only the cluster can know (whether an id exists, how many copies there are) it refuses itself.
"""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.gateway.values import (
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
    Priority,
    Seq,
    Token,
)

LEASE_S = 60.0
LOG_WAIT_S = 30.0


def _either(name: str) -> dict[str, Any]:
    """One of two fields, and not both."""
    return {"oneOf": [{"required": [name]}, {"required": [f"{name}_base64"]}]}


class NoInput(Asked):
    """Nothing can be asked for."""


class Content(Asked):
    """A task's content, and its id if the caller has chosen one."""

    model_config = ConfigDict(json_schema_extra=_either("payload"))
    id: Annotated[Id | None, Absent, Field(
        description="Chosen by the caller (see GET /v1/ids); then the request may be sent again and again, and"
        " makes one task. Other content under a used id is refused with 409.")] = None
    payload: Annotated[str | None, Absent, Field(description="The content as text; or payload_base64.")] = None
    payload_base64: Annotated[Base64 | None, Absent, Field(description="The content as bytes.")] = None

    @model_validator(mode="after")
    def _has_one(self) -> Self:
        if (self.payload is None) == (self.payload_base64 is None):
            raise PydanticCustomError("bad_payload", "payload: give either payload or payload_base64")
        return self

    @property
    def content(self) -> bytes:
        """The payload's bytes."""
        return self.payload.encode() if self.payload is not None else self.payload_base64 or b""


class Enqueue(Content):
    """One task."""

    queue: Name
    priority: Priority = 0
    w: Annotated[Copies | None, Absent] = None


class EnqueueMany(Asked):
    """Many tasks of one queue and priority. After an error some may be stored: send it again, with ids."""

    queue: Name
    priority: Priority = 0
    w: Annotated[Copies | None, Absent] = None
    tasks: Annotated[list[Content], Batch]

    @model_validator(mode="after")
    def _has_different_ids_or_none(self) -> Self:
        if len({task.id is None for task in self.tasks}) > 1:
            raise PydanticCustomError("bad_ids", "tasks: give all of them ids, or none")
        given = [task.id for task in self.tasks if task.id is not None]
        if len(set(given)) < len(given):
            raise PydanticCustomError("bad_ids", "tasks: an id is given twice")
        return self


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
    """A claim, by its task and its fencing token."""

    id: Id
    token: Token


class Renew(ClaimName):
    """More time for one claim."""

    lease_s: Lease = LEASE_S


class Claims(Asked):
    """Many claims."""

    claims: Annotated[list[ClaimName], Batch]


class RenewMany(Claims):
    """More time for many claims."""

    lease_s: Lease = LEASE_S


class Complete(ClaimName):
    """The end of one task, with what came of it."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["result", "result_base64"]}})
    result: Annotated[str | None, Absent, Field(description="As text; or result_base64, or none.")] = None
    result_base64: Annotated[Base64 | None, Absent, Field(description="As bytes.")] = None
    w: Annotated[Copies | None, Absent] = None

    @model_validator(mode="after")
    def _has_at_most_one(self) -> Self:
        if self.result is not None and self.result_base64 is not None:
            raise PydanticCustomError("bad_result", "result: give result or result_base64, not both")
        return self

    @property
    def content(self) -> bytes:
        """The result's bytes; none is empty."""
        return self.result.encode() if self.result is not None else self.result_base64 or b""


class Fail(ClaimName):
    """An attempt that came to nothing."""

    error: Annotated[str, Field(description="Why, for readers.")] = ""
    retry_in_s: Annotated[Delay | None, Absent, Field(
        description="When to try again; by the task's own policy if left out.")] = None


class Snooze(ClaimName):
    """A task that is to be done later."""

    delay_s: Delay


class Cancel(Asked):
    """Tasks that nobody wants done any more."""

    ids: Annotated[list[Id], Batch]
    w: Annotated[Copies | None, Absent] = None


class Retry(Asked):
    """Dead tasks that are to begin anew."""

    ids: Annotated[list[Id], Batch]


class CompleteMany(Claims):
    """The end of many tasks."""

    w: Annotated[Copies | None, Absent] = None


class Entry(Asked):
    """One entry of a log."""

    model_config = ConfigDict(json_schema_extra=_either("data"))
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


class Page(Asked):
    """Which tasks to list."""

    queue: Annotated[Name | None, Absent, Field(description="Of this queue; of all if left out.")] = None
    limit: Annotated[int | None, Absent, Field(ge=1, description="At most so many; all if left out.")] = None


class Queue(Asked):
    """Which tasks to count."""

    queue: Annotated[Name | None, Absent, Field(description="Of this queue; of all if left out.")] = None


class Mint(Asked):
    """How many ids to make."""

    count: Annotated[int, Field(ge=1, le=DEFAULT_LIMITS.batch_tasks)] = 1


class Follow(Asked):
    """Which part of a log to read, and whether to wait for what comes."""

    token: Annotated[Token | None, Absent, Field(description="Of this claim; of all if left out.")] = None
    follow: Annotated[bool, Field(description="Go on with what comes, for wait_s or until the task is"
                                  " completed.")] = False
    wait_s: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False, description="How long to follow; the"
                                   " gateway follows no longer than its own limit.")] = LOG_WAIT_S
