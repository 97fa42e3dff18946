"""The store port: what a machine may ask of the disk.

Reads are synchronous and see the writes staged before them in the same batch. Only the runtime
commits: after a batch of events it makes all staged writes durable at once (fsync), and only then
lets promises out. A crash loses exactly the uncommitted batch. Every record, index records
included, carries a checksum over key and value; a bad one raises ``Corrupt`` and is never returned.

Rejected: an asynchronous "persisted" event per write. It doubles the states of every operation
and buys nothing, since the loop commits once per batch anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import add
from typing import Protocol

from xxhash import xxh3_64_digest

TABLES = ("body", "history", "log", "ready", "lease", "time", "expiry", "dead", "dep", "tell", "need", "lane",
          "window", "counts", "meta")

Row = tuple[bytes, bytes]


Run = tuple[Sequence[bytes | None], Sequence[bytes]]
"""A value for each key, or None, and the digest of each, or ``NO_DIGEST``."""
NO_DIGEST = bytes(8)


def as_run(keys: Sequence[bytes], found: Mapping[bytes, bytes], digests: Sequence[bytes]) -> Run:
    """What was found of some keys, with None for each of the others."""
    if len(found) == len(keys):
        return [*found.values()], digests
    by_key = dict(zip(found, digests, strict=True))
    return list(map(found.get, keys)), [by_key.get(key, NO_DIGEST) for key in keys]


def digests_of(keys: Iterable[bytes], values: Iterable[bytes]) -> list[bytes]:
    """The 64-bit XXH3 of each key and value: by it a record is verified, and compared with its copies."""
    return list(map(xxh3_64_digest, map(add, keys, values)))


class Store(Protocol):
    """Fifteen ordered tables of byte keys and values."""

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None."""
        ...

    def get_many(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """The values of the keys that exist, in the order asked."""
        ...

    def get_digested(self, table: str, keys: Sequence[bytes]) -> tuple[dict[bytes, bytes], list[bytes]]:
        """As ``get_many``, with the digest of each record found, in the same order."""
        ...

    def get_run(self, table: str, keys: Sequence[bytes]) -> Run:
        """The value under each key, None where there is none, and their digests, in half the time of
        ``get_digested`` where rising keys are all there is between the first and the last."""
        ...

    def sums_of_run(self, table: str, keys: Sequence[bytes]) -> list[bytes]:
        """The digests that stand beside records whose rising keys are all there is between the first and the last;
        none where they are not. The records are not checked, nor given: only who reads them knows that they are
        sound."""
        ...

    def keys(self, table: str, start: bytes, stop: bytes, limit: int) -> list[bytes]:
        """Up to ``limit`` keys with ``start <= key < stop``, in order. Their records are not looked at: a damaged
        key is one like any other."""
        ...

    def put_many(self, table: str, rows: Sequence[Row]) -> list[bytes]:
        """Stage writes; gives the digest of each."""
        ...

    def pop_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Stage deletes; gives what each key held."""
        ...

    def drop_run(self, table: str, keys: Sequence[bytes]) -> None:
        """Stage deletes of rising keys that were read just now: what they hold is not read again, and where they
        lie one behind the other there is one seek for all."""
        ...

    def is_any_between(self, table: str, low: bytes, high: bytes) -> bool:
        """Whether a key exists in ``low <= key <= high``: one seek, so that fresh ids skip look-ups."""
        ...

    def scan(self, table: str, start: bytes, stop: bytes, limit: int) -> list[Row]:
        """Up to ``limit`` rows with ``start <= key < stop``, in key order."""
        ...

    def walk(self, table: str, start: bytes, stop: bytes) -> Iterator[Row]:
        """Rows as ``scan`` gives them, one at a time; leave off before the next write."""
        ...

    def walk_back(self, table: str, start: bytes, stop: bytes) -> Iterator[Row]:
        """The same rows, the last one first."""
        ...

    def purge(self, table: str, start: bytes, stop: bytes, limit: int) -> tuple[list[bytes], bytes | None]:
        """Stage the deletion of what cannot be read among the next ``limit`` records from ``start`` to before
        ``stop``. Gives the keys deleted, as they stand there, and where to go on; None at the end."""
        ...

    def commit(self) -> None:
        """Make every staged write durable. Failure ends the process."""
        ...
