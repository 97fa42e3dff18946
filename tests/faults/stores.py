"""A node's store as the checkers want it, read from its file without the node's code.

The file is opened read-only, so it can be looked at while the node runs (LMDB lets readers in at any time,
each with a consistent snapshot) and proves nothing about the node's own reading. Every record's checksum is
verified again, by arithmetic written here.
"""

from __future__ import annotations

from pathlib import Path

import lmdb
from xxhash import xxh3_64_digest

from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.store import TABLES


def read_store(directory: Path) -> tuple[MemoryStore, list[str]]:
    """All tables in memory, and what is wrong with their records."""
    store, damaged = MemoryStore(), []
    environment = lmdb.Environment(str(directory), readonly=True, max_dbs=len(TABLES), create=False)
    try:
        databases = {table: environment.open_db(table.encode(), create=False) for table in TABLES}
        with environment.begin() as transaction:
            for table, database in databases.items():
                rows = []
                for key, record in transaction.cursor(database):
                    value, checksum = record[:-8], record[-8:]
                    if xxh3_64_digest(key + value) != checksum:
                        damaged.append(f"{directory.name}: record {key.hex()} of {table} fails its checksum")
                    rows.append((key, value))
                store.put_many(table, rows)
    finally:
        environment.close()
    store.commit()
    return store, damaged
