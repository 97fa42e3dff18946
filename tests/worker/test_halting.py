"""Stopping a run: what is asked of its engine, for how long, and what happens before what."""

from __future__ import annotations

import queue
from typing import Any

import attrs
import pytest

from skuld_py.worker.halting import halt


@attrs.define
class Engine:
    """Says what it was told to say."""

    said: queue.SimpleQueue[str]
    confirms: bool = True
    is_quiet: bool = True

    def cancel(self, name: str, timeout_s: float) -> bool:
        self.said.put(f"cancel within {timeout_s:g} s")
        return self.confirms

    def is_swept(self) -> bool:
        self.said.put("sweep")
        return self.is_quiet


@attrs.define
class Run:
    """A run that does not end by itself."""

    said: queue.SimpleQueue[str]
    is_lost: bool = True
    needs_spark: bool = True
    batch: Any = None
    job: str = "task:1"
    claim: Any = attrs.field(factory=lambda: Run)
    id = "task"

    def interrupt(self) -> None:
        self.said.put("interrupt")

    def join(self, timeout_s: float) -> bool:
        self.said.put("join")
        return False


def halted(**said: bool) -> list[str]:
    """What happens, in order, until the run is left behind."""
    words: queue.SimpleQueue[str] = queue.SimpleQueue()
    run = Run(words, **{name: value for name, value in said.items() if name in ("is_lost", "needs_spark")})
    engine = Engine(words, **{name: value for name, value in said.items() if name in ("confirms", "is_quiet")})
    halt(run, engine, lambda: words.put("abandoned"), lambda: words.put("uncertain"))  # type: ignore[arg-type]
    found = [words.get(timeout=60)]
    while found[-1] != "abandoned":
        found.append(words.get(timeout=60))
    return found


@pytest.mark.parametrize(("is_lost", "words"), [(True, "cancel within 1 s"), (False, "cancel within 5 s")])
def test_of_a_lost_claim_an_engine_has_a_second_to_confirm(is_lost: bool, words: str) -> None:
    assert halted(is_lost=is_lost) == [words, "interrupt", "sweep", "join", "abandoned"]


def test_an_engine_that_does_not_confirm_is_given_up_whatever_the_function_does() -> None:
    assert halted(confirms=False) == ["cancel within 1 s", "uncertain", "interrupt", "join", "abandoned"]
    assert halted(is_quiet=False) == ["cancel within 1 s", "interrupt", "sweep", "uncertain", "join", "abandoned"]


def test_without_spark_no_engine_is_asked() -> None:
    assert halted(needs_spark=False) == ["interrupt", "join", "abandoned"]
