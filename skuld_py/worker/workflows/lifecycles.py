"""What a workflow's lifecycles have called around the work of a step.

A function is called with a dict that says what happens, and with the lifecycle's parameters by name:

    def announce(event, *, channel): ...

``event`` has ``workflow``, ``step`` and ``moment``; of a batch ``segments``, how many; of a task ``id``, ``root``
and ``input``, and after one that failed its ``error``. In what order they are called says
``workflow.routing.hooks``.

Invariant: a step is started once in a worker, before its first segment runs; while a ``before_start`` gives False,
each segment that comes is given back for ``AGAIN_MS``.
"""

from __future__ import annotations

import threading
from typing import Any

from skuld_py.workflow.definition.definition import Definition, Moment
from skuld_py.workflow.routing.hooks import hooks
from skuld_py.workflow.routing.passage import Resolve

AGAIN_MS = 1_000


class Lifecycles:
    """Those of one step, in one worker."""

    def __init__(self, definition: Definition, step: str, resolve: Resolve) -> None:
        self._said = {"workflow": definition.id, "step": step}
        self._hooks = hooks(definition, step)
        self._resolve = resolve
        self._lock = threading.Lock()
        self._is_started = False
        self.has_tasks = bool(self._hooks[Moment.BEFORE_TASK] or self._hooks[Moment.AFTER_TASK])

    def start(self) -> bool:
        """Start the step, if that was not done; whether it may run."""
        with self._lock:
            if not self._is_started:
                if any(said is False for said in self.call(Moment.BEFORE_START)):
                    return False
                self._is_started = True
                self.call(Moment.AFTER_START)
        return True

    def stop(self) -> None:
        """The worker runs no more segments of the step."""
        with self._lock:
            if self._is_started:
                self._is_started = False
                self.call(Moment.AFTER_STOP)

    def call(self, moment: Moment, **said: Any) -> list[Any]:
        """Call the functions of a moment; what they returned."""
        return [self._resolve(hook.name)({**self._said, "moment": moment.value, **said}, **hook.parameters)
                for hook in self._hooks[moment]]
