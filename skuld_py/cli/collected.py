"""What is said of a task that is not there: whether it may have been deleted as ended long ago, and where it is
then. ``get``, ``results`` and ``log`` say it in the same words."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skuld_py.client.client import Client


@contextmanager
def told_where(client: Client, ids: Sequence[bytes]) -> Iterator[None]:
    """Have a refusal that names one of these tasks as one that does not exist say where it may be."""
    from skuld_py.errors import Refused
    from skuld_py.model.ids import to_text

    try:
        yield
    except Refused as refusal:
        named = (task_id for task_id in ids if to_text(task_id) in refusal.message)
        missing = next(named, None) if refusal.code == "no_such_task" else None
        if missing is None:
            raise
        words = refusal.message + where_else(client, missing)
        raise Refused(refusal.code, words, **refusal.facts) from refusal


def where_else(client: Client, task_id: bytes) -> str:
    """How a sentence about a task that is not there goes on, if the task is as old as what is collected."""
    from skuld_py.errors import SkuldError
    from skuld_py.model.ids import time_of, to_text

    try:
        sealed_ms = max((row.sealed_ms for row in client.status().collections), default=0)
        if not sealed_ms or time_of(task_id) > sealed_ms:
            return ""
    except SkuldError:
        return ""
    try:
        root = client.archive_root()
    except SkuldError:  # a key of some queues may not ask
        return "; what is collected may be in the cluster's archive: skuld history ROOT --id " + to_text(task_id)
    if root is None:
        return "; what is collected was deleted by --retention"
    asking = f"skuld history {shlex.quote(root.root)} --id {to_text(task_id)}"
    return f"; what is collected may be in the archive: {asking}"
