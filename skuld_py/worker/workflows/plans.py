"""The definitions of workflows, as a worker knows them; and whether a workflow still lives.

A definition is the payload of a workflow's plan task, which the log's row names together with the digest. It never
changes, so it is read once. Whether the workflow lives is asked again when the answer is ``FRESH_S`` old: once for
all segments that come meanwhile. So segments of a workflow that was killed are refused at most so much later.

Who asks for a task says of which life that is. An answer that is about an earlier life is old: it was kept here
since before the workflow was forgotten and submitted again, or the node that gave it lags. By that no task may
end, for nobody would make another one. So it is asked for anew, and the task snoozed if that does not help.

Invariants:

* A definition whose digest is not that of the row is used by nobody.
* Of a task the workflow counts as ended, or as another one, by what is known of its own life or a later one.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import attrs

from skuld_py.client.steady import steady_s
from skuld_py.errors import Refused
from skuld_py.model.ids import from_text, time_of
from skuld_py.model.task import Task
from skuld_py.worker.directives import Snooze
from skuld_py.workflow.definition.definition import Definition

FRESH_S, BEHIND_S = 2.0, 1.0
KEPT_MAX = 100
"""Definitions; the one that was used the longest ago goes first."""
LIVE = "live"


@attrs.frozen
class Standing:
    """What the log says of a workflow: how it is, the id of its plan task, the digest of what that holds; why it
    was killed."""

    state: str
    plan: str
    digest: str
    reason: str = ""
    exhausted: tuple[str, ...] = ()
    """Of a live one the inputs that bring no more."""
    sealed: tuple[str, ...] = ()
    """Of a live one the leaves that are sealed."""

    @property
    def life(self) -> int:
        """Which of all workflows of its id it is: the time of its submission."""
        return time_of(from_text(self.plan))


class Known(Protocol):
    """Who knows workflows and tasks: a client."""

    def standing(self, workflow: str) -> Standing:
        """``Refused`` as ``no_such_workflow`` for one that the log does not know."""

    def get(self, id: bytes | str) -> Task:
        """A task."""


@attrs.define
class _Kept:
    standing: Standing
    asked_s: float
    definition: Definition | None = None


class Plans:
    """Of one worker; from any thread."""

    def __init__(self, known: Known, clock: Callable[[], float] = steady_s) -> None:
        self._known = known
        self._clock = clock
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    def live(self, workflow: str) -> Definition:
        """Its definition; ``Refused`` as ``workflow_ended`` when it does not live any more."""
        return self.alive(workflow)[1]

    def alive(self, workflow: str, life: int = 0) -> tuple[int, Definition]:
        """Which life it is in, and its definition; ``Refused`` as ``workflow_ended``. ``life``: that of the task
        in question, by which no answer about an earlier one counts; ``Snooze`` while there is no other."""
        with self._lock:
            kept = self._look(workflow)
            if kept.standing.life < life:
                kept = self._look(workflow, fresh_s=0.0)
            if kept.standing.life < life:
                raise Snooze(BEHIND_S)
            if kept.standing.state != LIVE:
                why = f": {kept.standing.reason}" if kept.standing.reason else ""
                raise Refused("workflow_ended", f"workflow: {workflow} is {kept.standing.state}{why}",
                              workflow=workflow)
            return kept.standing.life, self._definition(workflow, kept)

    def known(self, workflow: str) -> tuple[Standing, Definition]:
        """How it is, ended or not, and its definition. ``Refused`` as ``no_such_workflow``, or ``no_such_task``
        when the plan task is gone."""
        with self._lock:
            kept = self._look(workflow)
            return kept.standing, self._definition(workflow, kept)

    def _definition(self, workflow: str, kept: _Kept) -> Definition:
        if kept.definition is None:
            kept.definition = self._read(workflow, kept.standing)
        return kept.definition

    def _look(self, workflow: str, fresh_s: float | None = None) -> _Kept:
        now = self._clock()
        kept = self._kept.get(workflow)
        if kept is None or now >= kept.asked_s + (FRESH_S if fresh_s is None else fresh_s):
            standing = self._known.standing(workflow)
            is_same = kept is not None and kept.standing.digest == standing.digest
            kept = self._kept[workflow] = _Kept(standing, now, kept.definition if kept and is_same else None)
        self._kept.move_to_end(workflow)
        while len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return kept

    def _read(self, workflow: str, standing: Standing) -> Definition:
        from skuld_py.workflow.definition.reading import parse
        from skuld_py.workflow.definition.writing import digest

        text = self._known.get(standing.plan).payload.decode("utf-8", "replace")
        if digest(text) != standing.digest:
            raise Refused("bad_plan", f"workflow: what the plan task {standing.plan} of {workflow} holds is not"
                          " what was submitted", workflow=workflow)
        return parse(text, is_stored=True)
