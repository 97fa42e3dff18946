"""How settings are read and changed, and passed on between nodes (see ``model.setting``).

A change is two requests. ``GetSettings`` says what a majority of the nodes knows and which version a change must
have; ``PutSetting`` has that version stored by a majority. The second may be sent any number of times, by any way.
"""

from __future__ import annotations

import attrs

from skuld_py.model import fields
from skuld_py.model.bounds import U63_MAX
from skuld_py.model.columns import Column
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, Message

SETTINGS_MAX = 10_000
"""Registers that clients may fill."""
SETTING_BYTES_MAX = 1 << 16
_COMPARED_MAX = SETTINGS_MAX + 1_000
_CURSOR_BYTES_MAX = 512


@attrs.frozen
class SettingRow:
    """A register: ``version`` rises with every change, ``writer`` made the last one; an empty value is none."""

    kind: str = fields.name()
    name: str = fields.name()
    version: int = fields.number(1)
    writer: str = fields.wide_name()
    value: bytes = fields.blob(bytes_max=SETTING_BYTES_MAX)


@attrs.frozen
class GetSettings(Message):
    """Registers of a kind and a name (empty: of all), in the order of their keys, behind ``after``; to a node,
    then to all nodes."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_reading = True
    is_promise = False
    request: int = fields.number()
    kind: str = fields.name(is_optional=True)
    name: str = fields.name(is_optional=True)
    after: bytes = fields.blob(bytes_max=_CURSOR_BYTES_MAX)


@attrs.frozen
class GotSettings(Message):
    """The registers up to the key ``upto`` (empty: to the end). A change must have ``version`` to be newer."""

    request: int = fields.number()
    rows: tuple[SettingRow, ...] = fields.rows(SettingRow)
    upto: bytes = fields.blob(bytes_max=_CURSOR_BYTES_MAX)
    version: int = fields.number(1)


@attrs.frozen
class PutSetting(Message):
    """Store this register unless a newer row of it is known; to a node, then to all nodes."""

    roles = ROLE_CLIENT | ROLE_NODE
    is_promise = False
    request: int = fields.number()
    kind: str = fields.name()
    name: str = fields.name()
    version: int = fields.number(1, U63_MAX)
    writer: str = fields.wide_name()
    value: bytes = fields.blob(bytes_max=SETTING_BYTES_MAX)


@attrs.frozen
class SettingPut(Message):
    """Fsynced. To a client: on ``copies`` nodes, a majority; the nodes ``missing`` have not said so (yet)."""

    request: int = fields.number()
    copies: int = fields.number()
    missing: tuple[str, ...] = fields.names(1_000)


@attrs.frozen
class PullSettings(Message):
    """The registers that the sender has, by key and digest: it wants those that differ at the receiver."""

    is_promise = False
    columns = ("keys", "digests")
    keys: Column = fields.strings(_COMPARED_MAX)
    digests: bytes = fields.u64s(_COMPARED_MAX)


@attrs.frozen
class PulledSettings(Message):
    """Registers that differ at the receiver or are missing there, as many as a message holds."""

    is_promise = False
    rows: tuple[SettingRow, ...] = fields.rows(SettingRow)
