"""Facts that a leader has replicas record: granted claims, renewed and ended claims, marks of tasks.

Values that travel between the node's operations and ``replica``; ``model.history`` says what they become there.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs


@attrs.frozen
class Grant:
    """Claims of one batch: the ``i``-th id gets token ``first_token + i``. ``known``: indexes of the tasks that
    had a history before; only the leader tells."""

    ids: Sequence[bytes]
    places: Sequence[bytes]
    first_token: int
    start_ms: int
    end_ms: int
    holder: str
    known: Sequence[int] = ()


@attrs.frozen
class Amendment:
    """A renewed end of one claim, or how it ended and from when its task may be claimed again."""

    id: bytes
    token: int
    end_ms: int
    ending: int = 0
    until_ms: int = 0


@attrs.frozen
class Mark:
    """What happened to a task and to no claim of it: see ``model.history``."""

    id: bytes
    kind: int
    a: int
    b: int = 0
