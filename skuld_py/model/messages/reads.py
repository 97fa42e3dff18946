"""Messages of reads that do more than look: mend what copies lack, and wait for what is to come.

Waiting does not poll: ``Interest`` leaves word with a task's keepers, and ``Stirred`` answers that word.
"""

from __future__ import annotations

import attrs

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import fields
from skuld_py.model.bounds import U32_MAX
from skuld_py.model.columns import Column
from skuld_py.model.messages.message import ROLE_CLIENT, Message
from skuld_py.model.messages.tasks import TaskRow

ENDS_MAX = DEFAULT_LIMITS.batch_bytes // (3 * DEFAULT_LIMITS.entry_bytes)
"""Tasks of one ``Await``: as many as an answer can carry with the largest results and errors."""
PAGE_ENTRIES_MAX = 1_000
WAIT_MS_MAX = 60_000
"""The longest wait of one request; a client that waits longer asks again."""
NOT_ENDED = 255


@attrs.frozen
class Mend(Message):
    """Rows that a reader is to be shown and the receiver lacks; answered by ``Kept`` once it has them."""

    is_promise = False
    request: int = fields.number()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
    eras: bytes = fields.eras()


@attrs.frozen
class Await(Message):
    """How tasks have ended, once all of them have, or after ``wait_ms``."""

    roles = ROLE_CLIENT
    is_reading = True
    request: int = fields.number()
    ids: bytes = fields.ids()
    wait_ms: int = fields.number(0, WAIT_MS_MAX)


@attrs.frozen
class Awaited(Message):
    """``ends``: the number of a state of ``model.state``, or ``NOT_ENDED``, for each task asked for; empty results
    and errors are none."""

    columns = ("ends", "results", "errors")
    request: int = fields.number()
    ends: bytes = fields.blob(bytes_max=ENDS_MAX)
    results: Column = fields.strings(ENDS_MAX)
    errors: Column = fields.strings(ENDS_MAX)


@attrs.frozen
class ReadLog(Message):
    """Up to ``limit`` entries of a claim's log, numbered from ``after`` on; waits up to ``wait_ms`` for one, for a
    later claim, or for the end of the task. The token 0 is no claim's, and before all of them."""

    roles = ROLE_CLIENT
    is_reading = True
    request: int = fields.number()
    id: bytes = fields.ids()
    token: int = fields.number()
    after: int = fields.number(0, U32_MAX)
    limit: int = fields.number(1, PAGE_ENTRIES_MAX)
    wait_ms: int = fields.number(0, WAIT_MS_MAX)


@attrs.frozen
class Logged(Message):
    """Entries without a gap. ``next_token``: the claim behind this one, 0 for none yet. ``is_over``: the task has
    ended."""

    request: int = fields.number()
    entries: Column = fields.strings(PAGE_ENTRIES_MAX)
    next_token: int = fields.number()
    is_over: bool = fields.truth()


@attrs.frozen
class Interest(Message):
    """Say what is known of the ends of tasks, and of one claim's log (``token``; 0: of none); and send word to
    ``watcher``, an operation of the sender (0: none), when more is. Answered by ``Got``, with headers instead of
    bodies. To a watcher, ``Kept`` goes before it, if there are tasks that were collected and cannot come again:
    its ``old``."""

    is_promise = False
    request: int = fields.number()
    watcher: int = fields.number()
    ids: bytes = fields.ids()
    eras: bytes = fields.eras()
    token: int = fields.number()
    after: int = fields.number(0, U32_MAX)
    limit: int = fields.number(1, PAGE_ENTRIES_MAX)


@attrs.frozen
class Stirred(Message):
    """These tasks have changed since the receiver's operation left word. Said once for each word."""

    request: int = fields.number()
    ids: bytes = fields.ids()
