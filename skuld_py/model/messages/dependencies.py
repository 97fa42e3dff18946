"""What leaders tell each other so that a task waits for tasks of other partitions.

The dependent's leader asks again until it knows (``Watch``), and the dependency's leader tells as soon as there is
something to tell (``Tell``); both go by data that a majority keeps. See ``node.dependencies``.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.messages.message import Message


@attrs.frozen
class Watch(Message):
    """Tasks of ``partition`` wait for these: the receiver shall lead them, and tell when one has ended.

    ``is_last``: the dependents have waited long enough for unknown tasks; the receiver asks a majority.
    """

    is_promise = False
    request: int = fields.number()
    partition: int = fields.partition()
    is_last: bool = fields.truth()
    ids: bytes = fields.ids()


@attrs.frozen
class Watched(Message):
    """One ``notes.End`` for each task asked about, as a byte, and a majority knows it. ``OPEN``: it will be told
    when there is more. ``UNKNOWN``: the leader knows no such task, nor, if it was the last question, does a
    majority. ``GONE``: it was collected. Programs without ``GONE`` leave the dependent blocked, until a newer
    program leads its partition."""

    request: int = fields.number()
    ends: bytes = fields.blob(1, 1_000)


@attrs.frozen
class Tell(Message):
    """These tasks, which ``partition`` waits for, have ended so, and a majority knows it."""

    columns = ("ids", "ends")
    request: int = fields.number()
    partition: int = fields.partition()
    ids: bytes = fields.ids()
    ends: bytes = fields.blob(1, 1_000)


@attrs.frozen
class Told(Message):
    """A majority of the partition that was told has recorded it for all tasks that wait."""

    request: int = fields.number()


@attrs.frozen
class Note(Message):
    """Keep these notes (``model.notes``). ``eras``: see ``CohortRow``."""

    is_promise = False
    columns = ("ids", "tokens", "seqs")
    request: int = fields.number()
    ids: bytes = fields.ids()
    tokens: bytes = fields.tokens()
    seqs: bytes = fields.u64s()
    eras: bytes = fields.eras(default=b"")
