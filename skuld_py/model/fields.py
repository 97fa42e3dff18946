"""What a field of a message may hold, said once, where the message is declared.

The codec derives both directions from these kinds, so no message has parsing code of its own and
none can be half checked. Kinds are closed: exact types only (a bool is no number), every number
has a range, every string a grammar, every list a bound.
"""

from __future__ import annotations

from typing import Any

import attrs

from skuld_py.config import DEFAULT_LIMITS, LEASE_MS_MAX, PARTITIONS_MAX
from skuld_py.model.bounds import MOMENT_MS_MAX, PROOF_BYTES, U32_MAX, U63_MAX


@attrs.frozen
class Number:
    """An int in ``low..high``."""

    low: int = 0
    high: int = U63_MAX


@attrs.frozen
class Partition:
    """The number of a partition: an int below the cluster's count of them."""


@attrs.frozen
class Truth:
    """A bool."""


@attrs.frozen
class Name:
    """A name by the project's grammar; ``""`` too when optional; wide for nodes and workers; or a member's id."""

    is_optional: bool = False
    is_wide: bool = False
    is_life: bool = False


@attrs.frozen
class Text:
    """Any UTF-8 up to ``chars_max``."""

    chars_max: int = 1_000


@attrs.frozen
class Blob:
    """Bytes, a multiple of ``unit``, at most ``bytes_max``."""

    unit: int = 1
    bytes_max: int = 1 << 20


@attrs.frozen
class Numbers:
    """A column of 64-bit numbers, at most ``count_max``, all at most ``high``."""

    count_max: int
    high: int


@attrs.frozen
class Partitions:
    """A column of 64-bit numbers, at most ``count_max``, all of them partitions."""

    count_max: int = PARTITIONS_MAX


@attrs.frozen
class Eras:
    """A column of 64-bit numbers: at most ``count_max`` partitions, each with an era behind it."""

    count_max: int = PARTITIONS_MAX


@attrs.frozen
class Strings:
    """A ``Column`` of at most ``count_max`` strings; its data is a frame of its own."""

    count_max: int = DEFAULT_LIMITS.batch_tasks


@attrs.frozen
class Rows:
    """A tuple of at most ``count_max`` records of one attrs class."""

    of: type
    count_max: int = 1_000


@attrs.frozen
class Names:
    """A tuple of names."""

    count_max: int = 64


Kind = (Number | Partition | Truth | Name | Text | Blob | Numbers | Partitions | Eras | Strings | Rows
        | Names)


def _field(kind: Kind, *, since: int = 0, is_vital: bool = False, **options: Any) -> Any:
    """``since``: the protocol that brought the field, if its message is older; such a field is *late*. It stands
    behind all older ones and does not travel at its default, nor ever to who speaks an older protocol. One that
    ``is_vital`` is not left off in silence: the message is refused to such a receiver."""
    return attrs.field(metadata={"kind": kind, "since": since, "is_vital": is_vital}, **options)


def number(low: int = 0, high: int = U63_MAX, **options: Any) -> Any:
    """A bounded int."""
    return _field(Number(low, high), **options)


def moment(low: int = 0, **options: Any) -> Any:
    """Milliseconds since 1970, before the year 10000."""
    return _field(Number(low, MOMENT_MS_MAX), **options)


def epoch(low: int = 1, **options: Any) -> Any:
    """The number of a leadership; 0 for none, where that may be."""
    return _field(Number(low, U32_MAX), **options)


def partition() -> Any:
    """A partition of the cluster."""
    return _field(Partition())


def lease() -> Any:
    """A lease in milliseconds, 1 ms to a day."""
    return _field(Number(1, LEASE_MS_MAX))


def truth(**options: Any) -> Any:
    """A bool."""
    return _field(Truth(), **options)


def name(*, is_optional: bool = False) -> Any:
    """A queue or cluster."""
    return _field(Name(is_optional))


def wide_name(*, is_optional: bool = False) -> Any:
    """A node or worker."""
    return _field(Name(is_optional, is_wide=True))


def life() -> Any:
    """A member's id."""
    return _field(Name(is_life=True))


def text(chars_max: int = 1_000, **options: Any) -> Any:
    """A sentence for people."""
    return _field(Text(chars_max), **options)


def blob(unit: int = 1, bytes_max: int = 1 << 20, **options: Any) -> Any:
    """Raw bytes inside the message."""
    return _field(Blob(unit, bytes_max), **options)


def ids(**options: Any) -> Any:
    """A column of task ids, 20 bytes each."""
    return _field(Blob(20, 20 * DEFAULT_LIMITS.batch_tasks), **options)


def u64s(count_max: int = DEFAULT_LIMITS.batch_tasks, **options: Any) -> Any:
    """A column of 64-bit numbers."""
    return _field(Blob(8, 8 * count_max), **options)


def tokens(count_max: int = DEFAULT_LIMITS.batch_tasks, **options: Any) -> Any:
    """A column of tokens: 63 bits each, as in every store that a task is archived to."""
    return _field(Numbers(count_max, U63_MAX), **options)


def proofs() -> Any:
    """A column of proofs of claims (``model.proofs``), one for each, or none at all."""
    return _field(Blob(PROOF_BYTES, PROOF_BYTES * DEFAULT_LIMITS.batch_tasks), default=b"", since=1)


def epochs() -> Any:
    """A column of epochs, of a partition each."""
    return _field(Numbers(PARTITIONS_MAX, U32_MAX))


def partitions(**options: Any) -> Any:
    """A column of partitions."""
    return _field(Partitions(), **options)


def eras(count_max: int = PARTITIONS_MAX, **options: Any) -> Any:
    """A column of partitions, each with an era."""
    return _field(Eras(count_max), **options)


def strings(count_max: int = DEFAULT_LIMITS.batch_tasks, **options: Any) -> Any:
    """A column of byte strings."""
    return _field(Strings(count_max), **options)


def rows(of: type, count_max: int = 1_000, **options: Any) -> Any:
    """Records."""
    return _field(Rows(of, count_max), **options)


def names(count_max: int = 64, **options: Any) -> Any:
    """Several names."""
    return _field(Names(count_max), **options)
