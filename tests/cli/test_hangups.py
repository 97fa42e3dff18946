"""SIGHUP while a gateway starts: it ends nothing, and what it asks for is done once requests are taken."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skuld_py.cli.main import main
from skuld_py.cli.stopping import until_stopped
from skuld_py.gateway.access import Tokens, hash_of, new_token
from skuld_py.gateway.server import Settings, serve


@pytest.fixture
def unheard() -> Iterator[list[int]]:
    """What comes while nobody else listens; it would end the process."""
    found: list[int] = []
    before = signal.signal(signal.SIGHUP, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGHUP, before)


def test_a_hangup_at_the_start_ends_nothing(monkeypatch: pytest.MonkeyPatch, unheard: list[int]) -> None:
    told: list[bool] = []

    def start(settings: Settings, on_ready: Any, was_hung_up: Callable[[], bool]) -> None:
        told.append(was_hung_up())
        os.kill(os.getpid(), signal.SIGHUP)
        told.append(was_hung_up())
    monkeypatch.setattr("skuld_py.gateway.server.serve", start)
    assert CliRunner().invoke(main, ["gateway"], prog_name="skuld").exit_code == 0
    assert told == [False, True] and unheard == []
    os.kill(os.getpid(), signal.SIGHUP)
    assert unheard == [signal.SIGHUP]


@pytest.mark.parametrize("was_hung_up", [True, False])
def test_what_came_at_the_start_has_tokens_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
                                                      was_hung_up: bool) -> None:
    path, reads, read = tmp_path / "tokens.toml", threading.Semaphore(0), Tokens.read
    path.touch(mode=0o600)
    path.write_text(f'[[token]]\nname = "ci"\nsha256 = "{hash_of(new_token())}"\nscopes = ["read"]\n')
    found: list[bool] = []

    def counted(file: Path) -> Tokens:
        reads.release()
        return read(file)

    def stop(url: str) -> None:
        def look() -> None:
            found.append(reads.acquire(timeout=10 if was_hung_up else 0.2))
            os.kill(os.getpid(), signal.SIGTERM)
        assert reads.acquire(timeout=0), "it was read before requests were taken"
        threading.Thread(target=look).start()
    monkeypatch.setattr(Tokens, "read", counted)
    with until_stopped():
        serve(Settings(["127.0.0.1:9"], port=0, tokens=path), stop, lambda: was_hung_up)
    assert found == [was_hung_up]
