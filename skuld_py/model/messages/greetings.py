"""How a client begins, and what tells any asker no.

``request`` numbers an operation of the sender and comes back in the answer.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.messages.message import ROLE_CLIENT, Message


@attrs.frozen
class MemberRow:
    """A live node."""

    name: str = fields.wide_name()
    host: str = fields.text(255)
    port: int = fields.number(1, 65_535)


@attrs.frozen
class Greet(Message):
    """First message of a client."""

    roles = ROLE_CLIENT
    is_reading = True
    request: int = fields.number()


@attrs.frozen
class Greeted(Message):
    """What a client must know. ``floor_ms``: mint no id at or below it. ``protocol``: the newest that all nodes
    understand. ``release``: the program that the node runs."""

    request: int = fields.number()
    node: str = fields.wide_name()
    cluster: str = fields.name()
    partitions: int = fields.number()
    replicas: int = fields.number()
    skew_ms: int = fields.number()
    floor_ms: int = fields.number()
    payload_bytes_max: int = fields.number()
    members: tuple[MemberRow, ...] = fields.rows(MemberRow)
    protocol: int = fields.number(1, default=1, since=3)
    release: str = fields.text(64, default="", since=3)


@attrs.frozen
class Failed(Message):
    """The answer that says no. ``is_definite``: it did not and will not happen."""

    request: int = fields.number()
    code: str = fields.text(64)
    text: str = fields.text()
    is_definite: bool = fields.truth()
