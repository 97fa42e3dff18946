"""What a peer's clock shows: the question and its answer.

``node.leadership.clocks`` judges the answers.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.messages.message import Message


@attrs.frozen
class AskTime(Message):
    """What does your clock show?"""

    is_promise = False
    request: int = fields.number()


@attrs.frozen
class ToldTime(Message):
    """What the sender's clock showed between question and answer."""

    is_promise = False
    request: int = fields.number()
    told_ms: int = fields.moment()
