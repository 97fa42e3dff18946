"""How workers say that they are there, and how clients ask which are.

All of it is a hint: it grants nothing, is kept in memory only, and is over a lease after it was said.
"""

from __future__ import annotations

import attrs

from skuld_py.config import BATCHES_MAX, FUNCTION_CHARS, REPORT_LEASE_MS_MAX
from skuld_py.model import fields
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, Message

SLOTS_MAX = 1_000_000
QUEUES_MAX = 64
TAGS_MAX = 32
SEATS_MAX = 64
"""Of one worker: it has a thread for each."""
WORKERS_IN_PAGE = 500
CURSOR_CHARS = 401
MISSING_MAX = 1_000


@attrs.frozen
class BatchRow:
    """``tasks`` tasks of a ``function`` that a worker runs together as Spark jobs, since ``since_ms``. ``ended``:
    of them; ``parts_done`` of the ``parts`` of all its jobs so far are over; after a crash there are several."""

    queue: str = fields.name()
    function: str = fields.text(FUNCTION_CHARS)
    tasks: int = fields.number(1, SLOTS_MAX)
    ended: int = fields.number(0, SLOTS_MAX)
    since_ms: int = fields.moment()
    parts_done: int = fields.number(0, SLOTS_MAX)
    parts: int = fields.number(0, SLOTS_MAX)


@attrs.frozen
class WorkerRow:
    """A worker as it says of itself. ``slots``: tasks that it runs at once; ``weights``: one for each queue;
    ``spark``: its release, master and application, empty before it starts; ``running`` and ``claimed``: tasks now.

    What nodes add: ``key``, the name under which the key of its connection is known, empty without keys; ``node``,
    to which it reported, ``age_ms`` ago."""

    holder: str = fields.wide_name()
    host: str = fields.text(255)
    slots: int = fields.number(1, SLOTS_MAX)
    queues: tuple[str, ...] = fields.names(QUEUES_MAX)
    weights: bytes = fields.u64s(QUEUES_MAX)
    release: str = fields.text(64)
    spark: str = fields.text(255)
    since_ms: int = fields.moment()
    running: int = fields.number(0, SLOTS_MAX)
    claimed: int = fields.number(0, SLOTS_MAX)
    key: str = fields.wide_name(is_optional=True)
    node: str = fields.wide_name(is_optional=True)
    age_ms: int = fields.number()
    takes_seats: bool = fields.truth(default=False, since=3)
    tags: tuple[str, ...] = fields.names(TAGS_MAX, default=(), since=3)
    batches: tuple[BatchRow, ...] = fields.rows(BatchRow, BATCHES_MAX, default=(), since=3)


@attrs.frozen
class SeatRow:
    """``count`` slots of the worker serve a step of a workflow (``model.seats.Seat``)."""

    workflow: str = fields.name()
    step: str = fields.name()
    kind: int = fields.number(0, 2)
    count: int = fields.number(1, SLOTS_MAX)
    fence: int = fields.number()


@attrs.frozen
class Report(Message):
    """A worker is there for ``lease_ms`` from now; 0: it stops. What it said before is over.

    One that takes seats of workflows is told them; after ``wait_ms`` at the latest, or as soon as they are others
    than those that it names by ``seated``."""

    roles = ROLE_CLIENT
    since = 3
    request: int = fields.number()
    lease_ms: int = fields.number(0, REPORT_LEASE_MS_MAX)
    workers: tuple[WorkerRow, ...] = fields.rows(WorkerRow, 1)
    wait_ms: int = fields.number(0, REPORT_LEASE_MS_MAX, default=0, since=3)
    seated: int = fields.number(default=0, since=3)


@attrs.frozen
class Reported(Message):
    """The node knows of it. ``seats`` are the worker's, and ``seated`` is what tells them from others."""

    since = 3
    request: int = fields.number()
    seats: tuple[SeatRow, ...] = fields.rows(SeatRow, SEATS_MAX, default=(), since=3)
    seated: int = fields.number(default=0, since=3)


@attrs.frozen
class Muster(Message):
    """Which workers are there? A page of them in order, behind a place in it; to a node, then to all nodes."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_reading = True
    since = 3
    is_promise = False
    request: int = fields.number()
    behind: str = fields.text(CURSOR_CHARS)


@attrs.frozen
class Mustered(Message):
    """The page, up to the place ``last`` (empty: to the end). ``missing``: nodes that did not answer in time."""

    since = 3
    is_promise = False
    request: int = fields.number()
    workers: tuple[WorkerRow, ...] = fields.rows(WorkerRow, WORKERS_IN_PAGE)
    last: str = fields.text(CURSOR_CHARS)
    missing: tuple[str, ...] = fields.names(MISSING_MAX)
