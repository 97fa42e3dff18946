"""A roster of keys is followed by programs without a session of their own: each new one is put in, news or not."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo.exceptions import NoNodeError

from skuld_py.errors import Refused
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper import rosters

ONE, TWO = Roster(revoked=("a" * 40,)), Roster(revoked=("b" * 40,))


class Stored:
    """ZooKeeper with one roster, which tells of each change; or of none."""

    def __init__(self, raw: bytes | None, tells: bool = True) -> None:
        self.raw, self.tells = raw, tells
        self.watches: list[Any] = []
        self.asked: list[str] = []

    def get_async(self, path: str, watch: Any) -> Any:
        self.asked.append(path)
        if self.raw is None:
            raise NoNodeError
        self.watches.append(watch)
        return SimpleNamespace(get=lambda timeout: (self.raw, None))

    def change(self, roster: Roster) -> None:
        self.raw = roster.encode()
        for watch in self.watches if self.tells else ():
            watch(None)
        self.watches = []


def followed(stored: Stored, monkeypatch: pytest.MonkeyPatch, *later: Roster, look_s: float = 600.0
             ) -> list[Roster]:
    """What is put in, while these come one after the other."""
    @contextlib.contextmanager
    def connection(hosts: str, timeout_s: float, is_write: bool) -> Iterator[Stored]:
        yield stored

    monkeypatch.setattr(rosters, "connection", connection)
    monkeypatch.setattr(rosters, "LOOK_S", look_s)
    seen, left, is_over = list[Roster](), [*later], threading.Event()

    def put(roster: Roster) -> None:
        if roster in seen:
            return
        seen.append(roster)
        if left:
            stored.change(left.pop(0))  # while this one is put in
        else:
            is_over.set()
            stored.tells = True
            stored.change(roster)
    thread = threading.Thread(target=rosters.follow_roster, args=("h", "c", put, is_over), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive(), "it waits for its next look though there is news"
    return seen


def test_each_new_roster_is_put_in_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = Stored(ONE.encode())
    assert followed(stored, monkeypatch, TWO) == [ONE, TWO]
    assert {*stored.asked} == {rosters.roster_path(rosters.path_of("c"))}


def test_it_is_looked_at_without_news_for_a_watch_may_be_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    assert followed(Stored(ONE.encode(), tells=False), monkeypatch, TWO, look_s=0.01) == [ONE, TWO]


@pytest.mark.parametrize(("raw", "problem"), [(None, NoNodeError), (b"none", Refused)])
def test_what_hinders_it_is_raised(raw: bytes | None, problem: type[Exception], monkeypatch: pytest.MonkeyPatch
                                   ) -> None:
    @contextlib.contextmanager
    def connection(hosts: str, timeout_s: float, is_write: bool) -> Iterator[Stored]:
        yield Stored(raw)

    monkeypatch.setattr(rosters, "connection", connection)
    with pytest.raises(problem):
        rosters.follow_roster("h", "c", lambda roster: None, threading.Event())
