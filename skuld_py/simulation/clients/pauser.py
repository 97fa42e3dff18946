"""Clients that pause queues and resume them, as operators do; and the one that unsets all in the end."""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.model import messages as m
from skuld_py.model.setting import PAUSED, UNSET, YES
from skuld_py.simulation.clients.client import REPEATS_MAX, Client
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options

PAUSE_MS = (50, 2_000)
"""How long a queue is paused, about."""
AGAIN_MS = 1_000


def set_setting(client: Client, kind: str, queue: str, value: bytes, then: Callable[[bool], None]) -> None:
    """Ask which version the change must have, then change; ``then`` learns whether it surely happened."""
    def on_put(operation: Operation) -> None:
        then(operation.is_ok)

    def on_got(operation: Operation) -> None:
        answer = operation.answer
        if isinstance(answer, m.GotSettings):
            client.ask(lambda request: m.PutSetting(request, kind, queue, answer.version, client.name, value),
                       on_put)
        else:
            then(False)
    client.ask(lambda request: m.GetSettings(request, kind, queue, b""), on_got)


class Pauser:
    """Pauses a queue now and then, and resumes it after a while, whether or not it knows that it is paused."""

    def __init__(self, client: Client, options: Options) -> None:
        self._client = client
        self._workload = options.workload

    def begin(self) -> None:
        """Pause."""
        self._client.repeat(self._workload.pause_ms, self._pause)

    def _pause(self) -> None:
        random = self._client.random
        queue, delay_ms = random.choice(self._workload.queues), random.randint(*PAUSE_MS)
        set_setting(self._client, PAUSED, queue, YES,
                   lambda is_known: self._client.later(delay_ms, self._resume, queue, REPEATS_MAX))

    def _resume(self, queue: str, repeats: int) -> None:
        def then(is_known: bool) -> None:
            if not is_known and repeats and not self._client.is_stopped:
                self._client.later(self._client.random.randint(1, 300), self._resume, queue, repeats - 1)
        set_setting(self._client, PAUSED, queue, UNSET, then)


def set_for_good(client: Client, kind: str, queue: str, value: bytes = UNSET, times: int = REPEATS_MAX) -> None:
    """Set a setting, and again some times: a change that is still under way may come after the first one."""
    def then(is_known: bool) -> None:
        left = times - is_known
        if left:
            client.later(AGAIN_MS, set_for_good, client, kind, queue, value, left)
    set_setting(client, kind, queue, value, then)
