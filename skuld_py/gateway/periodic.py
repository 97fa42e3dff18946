"""Periodic tasks over HTTP: what may be asked, and the client's verbs.

A file of its own beside ``requests`` and ``verbs``, since these two belong to nothing else.
"""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from skuld_py.client.scheduling import UTC
from skuld_py.gateway.call import Call
from skuld_py.gateway.enqueue_requests import Kind
from skuld_py.gateway.requests import NoInput
from skuld_py.gateway.values import Absent, Asked, Base64, Name
from skuld_py.model.schedule import CATCH_UP_MAX, EVERY_MS_MAX, EVERY_MS_MIN
from skuld_py.verbs import documents

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


async def put_schedule(call: Call, asked: PutSchedule) -> documents.Scheduled:
    """Begin, or change."""
    missing = await call.backend.put_schedule(asked.name, asked.queue, asked.content, cron=asked.cron,
                                              every_s=asked.every_s, zone=asked.zone, catch_up=asked.catch_up,
                                              **asked.options)
    return documents.Scheduled(name=asked.name, missing=[*missing])


async def remove_schedule(call: Call, asked: RemoveSchedule) -> documents.Scheduled:
    """End."""
    return documents.Scheduled(name=asked.name, missing=[*await call.backend.remove_schedule(asked.name)])


async def schedules(call: Call, _: NoInput) -> documents.Schedules:
    """Which there are."""
    return documents.Schedules(schedules=[documents.schedule(made) for made in await call.backend.schedules()])
