"""``skuld history restore``, into clusters that keep ended tasks for a short time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from archive.ended import plain
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.rows import row_of
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.model.ids import to_text
from skuld_py.testing import MemoryClient

KEEP_S = 60.0
PAYLOAD_BYTES = 20_000


class Brief(MemoryClient):
    """Of nodes that keep ended tasks for a minute."""

    windows: list[float]

    def enqueue_many(self, *arguments: Any, unique_window_s: float = 3_600.0,  # type: ignore[override]
                     **options: Any) -> Any:
        self.windows.append(unique_window_s)
        if unique_window_s > KEEP_S:
            raise Refused("bad_unique", "window: a name would be unique for longer than ended tasks are kept")
        if any(len(payload) > PAYLOAD_BYTES for payload in arguments[1]):
            raise Refused("payload_too_large", f"payload: the limit is {PAYLOAD_BYTES}")
        return super().enqueue_many(*arguments, unique_window_s=unique_window_s, **options)


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brief]:
    with Brief() as made:
        made.windows = []

        @contextmanager
        def connected(*_: object) -> Iterator[Brief]:
            yield made
        monkeypatch.setattr("skuld_py.cli.history_restore.connected", connected)
        yield made


def restore(root: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["history", "restore", str(root), "--json", *options])


def test_a_name_is_unique_for_as_long_as_nodes_allow_and_none_comes_twice(tmp_path: Path, client: Brief,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.cli.history_restore.EACH", 2)
    monkeypatch.setattr("skuld_py.cli.showing.now_ms", client.cluster.wall_ms)
    client.advance(3_600 + 1_890 - client.cluster.wall_ms() / 1_000 % 3_600)  # no two spans begin at one instant
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(number), cluster="prod", digest=5) for number in range(4)])

    for _ in range(2):
        ran = restore(tmp_path)
        assert ran.exit_code == 0 and json.loads(ran.stdout.splitlines()[-1])["restored"] == 4, ran.stderr

    windows = [3_600.0, 600.0, 60.0, 60.0, 3_600.0, 600.0]
    assert client.windows == windows, "one that was refused is not tried again, nor who is there made"
    assert client.count() == 4


@pytest.mark.parametrize(("keep_s", "between_s"), [(KEEP_S, 2), (1.5 * KEEP_S, 1.4 * KEEP_S)])
def test_none_comes_twice_though_windows_end_between_two_calls(
        tmp_path: Path, client: Brief, monkeypatch: pytest.MonkeyPatch, keep_s: float, between_s: float) -> None:
    monkeypatch.setattr("archive.test_restore.KEEP_S", keep_s)
    monkeypatch.setattr("skuld_py.cli.showing.now_ms", client.cluster.wall_ms)
    client.advance(119 - client.cluster.wall_ms() / 1_000 % 60)
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(number), cluster="prod", digest=5) for number in range(2)])
        assert restore(tmp_path).exit_code == 0
        site.store.write("c", [row_of(plain(2), cluster="prod", digest=5)])
    client.advance(between_s)

    ran = restore(tmp_path)

    assert ran.exit_code == 0 and json.loads(ran.stdout.splitlines()[-1])["restored"] == 3, ran.stderr
    said = [json.loads(line) for line in ran.stdout.splitlines()[:-1]]
    assert {each["new"] for each in said} == {str(task.id) for task in client.list()} and len(said) == 3


def test_it_may_be_said_at_any_moment(tmp_path: Path, client: Brief, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also at one that is as near to one millisecond as to the next, of which that is taken which is even."""
    class Moment(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Moment:
            return super().now(tz).replace(microsecond=663_500)
    monkeypatch.setattr("skuld_py.cli.history_restore.datetime", Moment)
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(1), cluster="prod", digest=5)])

    ran = restore(tmp_path)

    assert ran.exit_code == 0, ran.stderr


def test_who_dies_before_it_is_cancelled_leaves_what_expires_as_it_becomes_due(
        tmp_path: Path, client: Brief, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt
    monkeypatch.setattr(client, "cancel", die)
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(1), cluster="prod", digest=5)])

    ran = restore(tmp_path)

    assert ran.exit_code == 130 and json.loads(ran.stdout) == {"event": "interrupted", "restored": 0}
    left, = client.list()
    assert left.state == "scheduled" and left.expires_ms == left.due_ms + 1
    client.advance((left.due_ms - client.cluster.wall_ms()) / 1_000)
    assert client.cluster.wall_ms() == left.due_ms and client.claim("restored") == [], "whoever waits gets nothing"


def test_an_id_that_the_archive_has_not_is_refused(tmp_path: Path, client: Brief) -> None:
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(1), cluster="prod", digest=5)])

    ran = CliRunner().invoke(main, ["history", "restore", str(tmp_path), "--id", to_text(plain(2).id)])

    assert ran.exit_code == 1 and "[no_such_task]" in ran.stderr and client.count() == 0


def test_one_that_is_too_large_is_named_and_keeps_no_other_one_away(tmp_path: Path, client: Brief) -> None:
    tasks = [plain(0), plain(1, payload=b"x" * PAYLOAD_BYTES), plain(2)]
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(task, cluster="prod", digest=5) for task in tasks])

    ran = restore(tmp_path)

    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert ran.exit_code == 1 and said[-1] == {"event": "done", "restored": 2, "left": 1}
    assert [each["id"] for each in said if each["event"] == "left"] == [to_text(tasks[1].id)]
    assert client.count() == 2 and client.claim("restored", n=10) == []


def test_of_those_that_ended_otherwise_none_comes_back(tmp_path: Path, client: Brief) -> None:
    ended = attrs.evolve(plain(1), state="dead")
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(task, cluster="prod", digest=5) for task in (plain(0), ended, plain(2))])

    ran = restore(tmp_path, "--state", "dead", "--state", "cancelled")

    said = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [each.get("id") for each in said] == [to_text(ended.id), None], ran.stderr


def test_what_is_back_and_too_old_to_be_cancelled_again_keeps_no_other_away(
        tmp_path: Path, client: Brief, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(1), cluster="prod", digest=5)])
        assert restore(tmp_path).exit_code == 0
        site.store.write("c", [row_of(plain(2), cluster="prod", digest=5)])
    cancelled, real = list[Any](), client.cancel

    def cancel(*ids: Any) -> Any:
        if any(client.get(each).state == "cancelled" for each in ids):
            raise Refused("too_old", "id: 1 older than ended tasks are kept here")
        cancelled.extend(ids)
        return real(*ids)
    monkeypatch.setattr(client, "cancel", cancel)

    for _ in range(2):
        ran = restore(tmp_path)
        assert ran.exit_code == 0 and json.loads(ran.stdout.splitlines()[-1])["restored"] == 2, ran.stderr

    assert len(cancelled) == 1 and {task.state for task in client.list()} == {"cancelled"}


@pytest.mark.parametrize("verb", ["files", "restore"])
def test_a_queue_that_none_can_have_is_refused(tmp_path: Path, client: Brief, verb: str) -> None:
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(1), cluster="prod", digest=5)])

    ran = CliRunner().invoke(main, ["history", verb, str(tmp_path), "--queue", "a b"])

    assert ran.exit_code == 1 and "queue: 'a b'" in ran.stderr, ran.stderr


def test_a_remedy_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    root = tmp_path / "a place"
    root.mkdir()

    ran = CliRunner().invoke(main, ["history", str(root)])

    assert ran.exit_code == 1 and f"'skuld archive '{root}'' fills it" in ran.stderr, ran.stderr
