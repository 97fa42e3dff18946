"""Periodic tasks over HTTP: what may be asked, what is answered, and the client's verbs between the two.

A file of its own beside ``requests``, ``answers`` and ``verbs``, since these three belong to nothing else.
"""

from __future__ import annotations

from typing import Annotated, NotRequired, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from skuld_py.client.scheduling import UTC, Schedule
from skuld_py.gateway.answers import Text
from skuld_py.gateway.call import Call
from skuld_py.gateway.enqueue_requests import Kind
from skuld_py.gateway.requests import NoInput
from skuld_py.gateway.values import Absent, Asked, Base64, Name, encoded, text_of
from skuld_py.model.schedule import CATCH_UP_MAX, EVERY_MS_MAX, EVERY_MS_MIN

Every = Annotated[float, Field(ge=EVERY_MS_MIN / 1000, le=EVERY_MS_MAX / 1000, allow_inf_nan=False,
                               description="Instead of cron: at the multiples of so many seconds since 1970.")]


class PutSchedule(Kind):
    """A periodic task; the schedule of this name that there was is replaced."""

    model_config = ConfigDict(json_schema_extra={
        "oneOf": [{"required": ["cron"]}, {"required": ["every_s"]}],
        "not": {"required": ["payload", "payload_base64"]}})
    name: Name
    payload: Annotated[str | None, Absent, Field(description="Each task's content as text; or payload_base64, or"
                                                 " none.")] = None
    payload_base64: Annotated[Base64 | None, Absent, Field(description="As bytes.")] = None
    cron: Annotated[str | None, Absent, Field(
        min_length=1, max_length=255, examples=["30 2 * * *"],
        description="Minute, hour, day of the month, month, day of the week.")] = None
    zone: Annotated[str, Field(max_length=255, description="The time zone of cron.")] = UTC
    every_s: Annotated[Every | None, Absent] = None
    catch_up: Annotated[int, Field(ge=0, le=CATCH_UP_MAX, description="How many missed ticks are made up for,"
                                   " besides the newest.")] = 0

    @model_validator(mode="after")
    def _has_one_of_each(self) -> Self:
        if (self.cron is None) == (self.every_s is None):
            raise PydanticCustomError("bad_schedule", "cron: give either cron or every_s")
        if self.payload is not None and self.payload_base64 is not None:
            raise PydanticCustomError("bad_payload", "payload: give payload or payload_base64, not both")
        return self

    @property
    def content(self) -> bytes:
        """The payload's bytes; none is empty."""
        return self.payload.encode() if self.payload is not None else self.payload_base64 or b""


class RemoveSchedule(Asked):
    """A schedule that is to end."""

    name: Name


class Scheduled(TypedDict):
    """It is stored by a majority of the nodes."""

    name: str
    missing: Annotated[list[str], Field(description="The nodes that have not confirmed it.")]


class ScheduleDocument(TypedDict):
    """A periodic task."""

    name: str
    queue: str
    payload: NotRequired[Text]
    payload_base64: str
    cron: str | None
    zone: str
    every_s: float | None
    priority: int
    catch_up: int
    since_ms: Annotated[int, Field(description="Ticks later than that are its own.")]
    headers: dict[str, str]


class Schedules(TypedDict):
    """All of them, in the order of their names."""

    schedules: list[ScheduleDocument]


async def put_schedule(call: Call, asked: PutSchedule) -> Scheduled:
    """Begin, or change."""
    missing = await call.backend.put_schedule(asked.name, asked.queue, asked.content, cron=asked.cron,
                                              every_s=asked.every_s, zone=asked.zone, catch_up=asked.catch_up,
                                              **asked.options)
    return Scheduled(name=asked.name, missing=[*missing])


async def remove_schedule(call: Call, asked: RemoveSchedule) -> Scheduled:
    """End."""
    return Scheduled(name=asked.name, missing=[*await call.backend.remove_schedule(asked.name)])


async def schedules(call: Call, _: NoInput) -> Schedules:
    """Which there are."""
    return Schedules(schedules=[_document(made) for made in await call.backend.schedules()])


def _document(made: Schedule) -> ScheduleDocument:
    document = ScheduleDocument(
        name=made.name, queue=made.queue, payload_base64=encoded(made.payload), cron=made.cron, zone=made.zone,
        every_s=made.every_s, priority=made.priority, catch_up=made.catch_up, since_ms=made.since_ms,
        headers=dict(made.headers))
    text = text_of(made.payload)
    if text is not None:
        document["payload"] = text
    return document
