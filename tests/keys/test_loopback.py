"""The key that is left for clients on this machine: who finds it, who does not, and what is left of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from skuld_py.client.dial import key_of
from skuld_py.keys.files import ClientKey, write_new
from skuld_py.keys.loopback import found, left, place_of
from skuld_py.keys.pair import fresh

KEY, OTHER = (ClientKey(name, fresh(), fresh().public) for name in ("local", "other"))
PORTS = (13000, 13001)


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("SKULD_CLIENT_KEY", raising=False)
    return tmp_path / "skuld"


def test_it_is_found_at_each_of_its_ports_and_gone_afterwards(state: Path) -> None:
    with left(KEY, PORTS):
        assert found(["127.0.0.1:13000"]) == found(["localhost:13001"]) == KEY
        assert found(["10.0.0.1:13000", "127.0.0.1:12999", "127.0.0.1:13001"]) == KEY
        assert found(["127.0.0.1:13002"]) is found(["10.0.0.1:13000"]) is found(["localhost:x"]) is None
        assert {stat.S_IMODE(path.stat().st_mode) for path in state.iterdir()} == {0o600}

    assert found(["127.0.0.1:13000"]) is None and not [*state.iterdir()]


def test_a_client_that_was_given_a_key_shows_that_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_new(tmp_path / "other.key", OTHER.text)
    nodes = ["127.0.0.1:13000"]
    with left(KEY, PORTS):
        assert key_of(None, nodes) == KEY
        assert key_of(OTHER, nodes) == key_of(tmp_path / "other.key", nodes) == OTHER
        monkeypatch.setenv("SKULD_CLIENT_KEY", str(tmp_path / "other.key"))
        assert key_of(None, nodes) == OTHER


def test_what_a_killed_process_left_counts_for_nothing_and_is_replaced() -> None:
    write_new(place_of(13000), OTHER.text)

    assert found(["127.0.0.1:13000"]) is None
    with left(KEY, PORTS):
        assert found(["127.0.0.1:13000"]) == KEY


def test_what_another_has_left_there_meanwhile_stays() -> None:
    with left(OTHER, [13000]):
        with left(KEY, [13001]):
            place_of(13001).unlink()
            write_new(place_of(13001), "another's")
        assert place_of(13001).read_text() == "another's"
        assert found(["127.0.0.1:13000"]) == OTHER


def test_another_user_s_file_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    with left(KEY, PORTS):
        monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)

        assert found(["127.0.0.1:13000"]) is None


def test_who_has_no_home_finds_nothing_and_can_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "nowhere")

    assert found(["127.0.0.1:13000"]) is None
    with pytest.raises(OSError, match="no directory"), left(KEY, PORTS):
        pass
