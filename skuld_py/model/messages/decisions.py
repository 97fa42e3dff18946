"""Questions to schedulers, which decide for other processes, and their answers.

A question is named by its hash; its text travels only when the one asked does not have it yet. All of it may be
lost, repeated or late. The answers are functions of the questions, so no cluster is named: one scheduler may serve
several, and tells one nothing learnt from another but the answer to the same question.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.columns import Column
from skuld_py.model.messages.message import Message

HASH_BYTES = 16

COMPUTING, INPUT_WANTED, DECLINED = 0, 1, 2
"""Why there is no answer: it is being worked out; the text is needed, send it; there will be none from here."""


@attrs.frozen
class Decide(Message):
    """Answer the question with this hash, which stands as of ``position``. ``text``: the question, or nothing.
    ``is_hash_only``: the hash of the answer is enough."""

    is_promise = False
    kind: str = fields.name()
    position: int = fields.number(-1)
    question: bytes = fields.blob(1, HASH_BYTES)
    is_hash_only: bool = fields.truth()
    text: Column = fields.strings(1)


@attrs.frozen
class Decided(Message):
    """The hash of the answer, and its text unless only the hash was asked for."""

    is_promise = False
    question: bytes = fields.blob(1, HASH_BYTES)
    answer: bytes = fields.blob(1, HASH_BYTES)
    text: Column = fields.strings(1)


@attrs.frozen
class Undecided(Message):
    """No answer yet, or none at all: see ``COMPUTING`` and the others."""

    is_promise = False
    question: bytes = fields.blob(1, HASH_BYTES)
    cause: int = fields.number(0, DECLINED)


DECISION_MESSAGES: tuple[type[Message], ...] = (Decide, Decided, Undecided)
"""What goes to the machines of ``cluster.scale.decider`` and ``cluster.scale.scheduler``."""
