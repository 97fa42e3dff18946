"""One error tree, split by the only question a caller must answer: did it happen?

``Refused`` is definite: the operation had no effect and never will. ``Uncertain`` is not: the
operation may have taken effect (a deadline passed, a connection broke), so a caller may only
retry what is idempotent. A definite error is never raised under indefinite conditions; that is
the rule a fault run checks (an ``ok`` always shows, a ``Refused`` never does).

Every error carries a stable ``code`` for programs, a sentence for people that names the field
and the remedy, and the facts behind it. Foreign exceptions (kazoo, ZeroMQ, LMDB) are translated
at the edge that meets them and never cross a room.
"""

from __future__ import annotations

Fact = str | int | bytes

KEY_CODES = frozenset({"denied", "key_needed", "wrong_cluster_key"})
"""Refusals for the key that was shown, or for want of one: asked again, the same is said until somebody acts."""


class SkuldError(Exception):
    """Root of the tree: a code, a sentence, and named facts."""

    def __init__(self, code: str, message: str, **facts: Fact) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = facts

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __reduce__(self) -> tuple[object, ...]:
        """As it comes back from another process."""
        return _again, (type(self), self.args, self.__dict__.copy())


def _again(kind: type[SkuldError], args: tuple[object, ...], facts: dict[str, object]) -> SkuldError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(facts)
    return error


class Refused(SkuldError):
    """It did not happen: bad input, a conflict, a stale token, a limit."""


class Malformed(Refused):
    """Bytes that are no message: truncated, unknown, of a wrong type, or out of range."""

    def __init__(self, field: str, problem: str) -> None:
        super().__init__("malformed", f"{field}: {problem}", field=field)
        self.field = field


class Fenced(Refused):
    """The claim is no longer the newest of its task, or its lease has ended."""

    def __init__(self, message: str, **facts: Fact) -> None:
        super().__init__("fenced", message, **facts)


class Corrupt(SkuldError):
    """A stored record whose checksum does not match: never returned, never sent on. ``key`` lies in the range
    that was asked for; it is empty when it is not known whose record it is."""

    def __init__(self, table: str, key: bytes) -> None:
        super().__init__("corrupt", f"record {key.hex()} of table {table} fails its checksum", key=key)
        self.table = table
        self.key = key


class Uncertain(SkuldError):
    """It may have happened: the answer did not arrive before the deadline."""
