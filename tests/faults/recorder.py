"""What clients asked, what they were told and what was done to the cluster, all on one clock.

The clock is this process's monotonic one, as milliseconds since the recorder was made; no fault touches it.
Operations are recorded where the client library hands a request to its connection and gets the outcome back:
what is judged is what a user of the library would believe. A request that the library sent several times is
one operation, from the first sending to the answer.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from skuld_py.client.client import Client
from skuld_py.client.connection import Connection
from skuld_py.client.holding import no_loss
from skuld_py.errors import Refused, Uncertain
from skuld_py.keys.files import ClientKey
from skuld_py.model.messages import Failed, Message
from skuld_py.simulation.history import History, Hold

Doubted = Callable[[Message], None]


@attrs.define(eq=False)
class Fault:
    """One thing done to the cluster, from ``start_ms`` until it was undone. ``targets``: names of nodes."""

    kind: str
    targets: tuple[str, ...]
    words: str
    start_ms: int
    stop_ms: int = -1

    def __str__(self) -> str:
        return f"{self.start_ms}..{self.stop_ms} ms {self.kind} {self.words}"


class Recorder:
    """The record of a run; many threads write it. ``key``: the file of the key that clients show."""

    def __init__(self, key: Path | None = None) -> None:
        self.key = key
        self.history = History()
        self.faults: list[Fault] = []
        self.origin_ms = time.time_ns() // 1_000_000
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def now_ms(self, at: float | None = None) -> int:
        """A moment of the monotonic clock, else the present one, since the start."""
        return int(((time.monotonic() if at is None else at) - self._started) * 1000)

    def client(self, addresses: Sequence[str], name: str, timeout_s: float) -> RecordedClient:
        """A client whose every request is recorded, under a name that no other has."""
        return RecordedClient(self, addresses, f"{name}-{next(self._numbers)}", timeout_s)

    def call(self, client: str, message: Message, ask: Callable[[Doubted], Message]) -> Message:
        """Have a request made, and write down how it ended. ``ask`` calls what it is given with an answer that
        came while an earlier asking was in doubt: what that calls lost may have been done then."""
        request: int = message.request  # type: ignore[attr-defined]
        with self._lock:
            operation = self.history.invoke(self.now_ms(), client, "any", request, message)
        answer: Message | None = None
        in_doubt: list[Message] = []
        try:
            answer = told = ask(in_doubt.append)
            if in_doubt:
                answer = no_loss(told)
            return told
        except Refused as refusal:
            answer = Failed(request, refusal.code, refusal.message[:1000], True)
            raise
        except Uncertain:
            raise
        finally:
            with self._lock:
                self.history.finish(self.now_ms(), operation, answer)

    def hold(self, hold: Hold) -> None:
        """Somebody believes that a task is his."""
        with self._lock:
            self.history.holds.append(hold)

    @contextmanager
    def fault(self, kind: str, targets: Sequence[str], words: str) -> Iterator[Fault]:
        """A fault that lasts as long as the block: until what it hit is whole again."""
        fault = Fault(kind, tuple(targets), words, self.now_ms())
        self.faults.append(fault)
        try:
            yield fault
        finally:
            fault.stop_ms = self.now_ms()


class RecordedConnection(Connection):
    """A connection that tells the recorder."""

    def __init__(self, recorder: Recorder, client: str, addresses: Sequence[str],
                 key: ClientKey | None = None) -> None:
        super().__init__(addresses, key=key)
        self._recorder = recorder
        self._client = client

    def call(self, message: Message, timeout_s: float, *, doubted: Callable[[Message], Message] | None = None,
             **options: Any) -> Message:
        """As any connection does."""
        ask = super().call

        def asked(note: Doubted) -> Message:
            def noted(answer: Message) -> Message:
                note(answer)
                return answer if doubted is None else doubted(answer)
            return ask(message, timeout_s, doubted=noted, **options)
        return self._recorder.call(self._client, message, asked)


class RecordedClient(Client):
    """The client users have, on a connection that is listened in on."""

    def __init__(self, recorder: Recorder, addresses: Sequence[str], name: str, timeout_s: float) -> None:
        super().__init__(addresses, holder=name, timeout_s=timeout_s, key=recorder.key)
        self._connection.close()
        self._connection = RecordedConnection(recorder, name, addresses, self._key)
