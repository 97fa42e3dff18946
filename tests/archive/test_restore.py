"""``skuld history restore``, into clusters that keep ended tasks for a short time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from archive.ended import plain
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.rows import row_of
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.testing import MemoryClient

KEEP_S = 60.0


class Brief(MemoryClient):
    """Of nodes that keep ended tasks for a minute."""

    windows: list[float]

    def enqueue_many(self, *arguments: Any, unique_window_s: float, **options: Any) -> Any:
        self.windows.append(unique_window_s)
        if unique_window_s > KEEP_S:
            raise Refused("bad_unique", "window: a name would be unique for longer than ended tasks are kept")
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


def restore(root: Path) -> Result:
    return CliRunner().invoke(main, ["history", "restore", str(root), "--json"])


def test_a_name_is_unique_for_as_long_as_nodes_allow_and_none_comes_twice(tmp_path: Path, client: Brief,
                                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.cli.history_restore.EACH", 2)
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", [row_of(plain(number), cluster="prod", digest=5) for number in range(4)])

    for _ in range(2):
        ran = restore(tmp_path)
        assert ran.exit_code == 0 and json.loads(ran.stdout.splitlines()[-1])["restored"] == 4, ran.stderr

    assert client.windows == [3_600.0, 600.0, 60.0, 60.0] * 2, "a window that was refused is not tried again"
    assert client.count() == 4
