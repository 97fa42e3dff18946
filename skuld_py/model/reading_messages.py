"""Messages of reads that do more than look: mend what copies lack of what is about to be shown."""

from __future__ import annotations

import attrs

from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import fields
from skuld_py.model.client_messages import TaskRow
from skuld_py.model.message import Message


@attrs.frozen
class Mend(Message):
    """What a reader is to be shown and the receiver was found to lack; answered by ``Kept`` once it has it."""

    is_promise = False
    request: int = fields.number()
    tasks: tuple[TaskRow, ...] = fields.rows(TaskRow)
    eras: bytes = fields.u64s(PARTITIONS_MAX * 2)


READING_MESSAGES: tuple[type[Message], ...] = (Mend,)
