"""What the registry keeps of a node, live or not: its address, its data directory, whether it may own partitions.

Written by the node at each start and by an operator who takes it out, both by test-and-set that carries the
other's fields over. ``incarnation`` and ``starts`` are those of the data directory the node last ran on: what
a directory must be able to show to be taken for the same (see ``node.life.identity``).

Source: Manatee names a peer by its address; a wiped primary can resume there as primary. Hence the incarnation.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.errors import Malformed

_UNSAID_RULES = 2


@attrs.frozen
class Registration:
    """A node's entry. ``incarnation`` is empty until the node has started once; then ``starts`` is 1 or more."""

    host: str = ""
    port: int = 0
    incarnation: str = ""
    starts: int = 0
    boot: str = ""
    """The id of that start's process: what tells two copies of a directory apart that were started at once."""
    life: str = ""
    """The id of its newest life, as a member: a pulse under it may stand although that process is gone."""
    rules: int = 0
    """The newest rules that the program knew which ``rules_boot`` ran; use ``known_rules``."""
    rules_boot: str = ""
    is_leaving: bool = False
    """No partition is placed on it; it hands on what it has."""
    unknown: Mapping[str, Any] = attrs.field(factory=dict, hash=False)
    """Fields of a newer version, carried over."""

    @property
    def known_rules(self) -> int:
        """The newest rules that the node's program knows. One that does not say so knows rules 2, and carries on
        what a newer program wrote before it."""
        return self.rules if self.rules_boot == self.boot else _UNSAID_RULES

    def encode(self) -> bytes:
        """JSON, so that an operator can read it with any ZooKeeper client."""
        fields = attrs.asdict(self)
        unknown = fields.pop("unknown")
        return json.dumps({**unknown, **fields}, sort_keys=True).encode()

    @classmethod
    def decode(cls, raw: bytes) -> Registration:
        """Parse; raises ``Malformed`` naming the field."""
        try:
            fields = json.loads(raw)
        except (ValueError, RecursionError) as problem:
            raise Malformed("node entry", repr(problem)) from None
        if not isinstance(fields, dict):
            raise Malformed("node entry", "is no object")
        known = {}
        for name, of in _FIELDS.items():
            value = fields.pop(name, of())
            if type(value) is not of:
                raise Malformed(f"node entry.{name}", f"{value!r} is no {of.__name__}")
            known[name] = value
        return cls(**known, unknown=fields)


_FIELDS: dict[str, Any] = {"host": str, "port": int, "incarnation": str, "starts": int, "boot": str, "life": str,
                           "rules": int, "rules_boot": str, "is_leaving": bool}
