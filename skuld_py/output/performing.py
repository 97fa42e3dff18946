"""Performs the steps of ``protocol`` on a store, and asks the cluster for it.

A task is asked for with those that follow it in a list, for a sweep meets many.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from skuld_py.client.steady import wall_s
from skuld_py.errors import Refused
from skuld_py.model.ids import from_text, to_text
from skuld_py.model.task import Task
from skuld_py.output import protocol
from skuld_py.output.places import CLAIMS, MANIFEST, claim_place, published_place, scheme_of
from skuld_py.output.protocol import Operation, Standing, Steps
from skuld_py.output.store import LocalStore, Store

T = TypeVar("T")
OLD_S = 3_600.0
"""A completion that stands for so long is not overtaken by one that was under way: two leases, by far."""
ASKED_AT_ONCE = 100

_log = logging.getLogger(__name__)


class Cluster(Protocol):
    """Who knows tasks: a client."""

    def get_many(self, ids: Sequence[bytes | str]) -> list[Task]:
        """Those that exist."""


Known = Callable[[Sequence[str]], dict[str, Task]]


def store_of(path: str) -> Store:
    """The file system of a dataset's path."""
    if not scheme_of(path):
        return LocalStore()
    from skuld_py.output.spark_store import hadoop_store

    return hadoop_store(path)


def asking(cluster: Cluster) -> Known:
    """Tasks by what a client says of them."""
    def known(tasks: Sequence[str]) -> dict[str, Task]:
        return {to_text(task.id): task for task in cluster.get_many(tasks)}

    return known


def knowing(task: Task) -> Known:
    """A task as it was read."""
    return lambda tasks: {to_text(task.id): task}


class Performer:
    """Performs steps for one dataset. ``idle_s``: for how long nothing was written to what is abandoned."""

    def __init__(self, store: Store, path: str, known: Known, idle_s: float = OLD_S) -> None:
        self._store = store
        self._path = path
        self._known = known
        self._idle_s = idle_s
        self._listed: list[str] = []
        self._at: dict[str, int] = {}
        self._standings: dict[str, Standing] = {}

    def perform(self, steps: Steps[T]) -> T:
        """What the steps come to."""
        answer: Any = None
        while True:
            try:
                operation = steps.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            answer = self._do(operation)

    def _do(self, operation: Operation) -> Any:
        match operation:
            case protocol.Ask(task):
                return self._standing(task)
            case protocol.IsPublished(task):
                return self._store.exists(f"{published_place(self._path, task)}/{MANIFEST}")
            case protocol.Publish(task, token):
                source = claim_place(self._path, task, token)
                return self._store.move(source, published_place(self._path, task))
            case protocol.ListClaims():
                return self._claims()
            case protocol.IsAbandoned(task, token):
                place = claim_place(self._path, task, token)
                is_sealed = self._store.exists(f"{place}/{MANIFEST}")
                return not is_sealed and self._store.idle_s(place) > self._idle_s
            case protocol.Delete(task, token):
                _log.info("deleting the output of claim %d of task %s below %s", token, task, self._path)
                return self._store.remove(claim_place(self._path, task, token))

    def _claims(self) -> list[tuple[str, list[int]]]:
        """Directories whose names are an id and a token; others are not ours."""
        found = []
        for task in self._store.children(f"{self._path}/{CLAIMS}"):
            with suppress(Refused):
                if to_text(from_text(task)) == task:
                    names = self._store.children(f"{self._path}/{CLAIMS}/{task}")
                    found.append((task, sorted(int(name) for name in names if _is_token(name))))
        self._listed = [task for task, _ in found]
        self._at = {task: at for at, task in enumerate(self._listed)}
        return found

    def _standing(self, task: str) -> Standing:
        if task not in self._standings:
            at = self._at.get(task)
            asked = [task] if at is None else self._listed[at : at + ASKED_AT_ONCE]
            found = self._known(asked)
            now_ms = wall_s() * 1000
            self._standings = {each: standing_of(found.get(each), self._path, now_ms) for each in asked}
        return self._standings[task]


def _is_token(name: str) -> bool:
    return name.isascii() and name.isdigit() and str(int(name)) == name


def standing_of(task: Task | None, path: str, now_ms: float) -> Standing:
    """What the cluster said of a task, as far as it matters to the outputs at a path."""
    if task is None:
        return Standing(is_known=False)
    if task.completed_token is None or task.completed_ms is None:
        return Standing()
    return Standing(task.completed_token, any(output.path == path for output in task.outputs),
                    now_ms - task.completed_ms > OLD_S * 1000)

