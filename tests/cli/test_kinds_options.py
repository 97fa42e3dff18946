"""The options about what tasks may bring: what a worker makes of them, and when it needs no application."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skuld_py.cli.kinds_options import allowed_by, kinds_words
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.worker.kinds.allowed import Allowed

WORKER = ["worker", "--nodes", "127.0.0.1:13000", "--queue", "q"]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], Allowed]]:
    """The applications, and what is allowed, of workers that were started."""
    seen: list[tuple[list[str], Allowed]] = []

    def run_worker(nodes: list[str], queue: str, app: list[str], *, allowed: Allowed, **options: Any) -> int:
        seen.append((app, allowed))
        return 0

    monkeypatch.setattr("skuld_py.worker.start.run_worker", run_worker)
    return seen


def test_without_a_word_functions_alone_are_run(started: list[tuple[list[str], Allowed]]) -> None:
    assert CliRunner().invoke(main, [*WORKER, "--app", "app"]).exit_code == 0
    assert started == [(["app"], Allowed())]


def test_what_is_allowed_is_named_and_needs_no_application(
    started: list[tuple[list[str], Allowed]], tmp_path: Path
) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "scripts")
    words = ["--kinds", "stream, sql", "--scripts", str(tmp_path / "link"), "--adopt", "1m"]
    assert CliRunner().invoke(main, [*WORKER, *words]).exit_code == 0
    wanted = Allowed(frozenset({"skuld:sql", "skuld:stream"}), (tmp_path / "scripts").resolve(), adopt_s=60.0)
    assert started == [([], wanted)]
    again = kinds_words("stream, sql", tmp_path / "link", 60.0)
    assert again == ["--kinds", "stream, sql", "--scripts", str(tmp_path / "link"), "--adopt", "60s"]


def test_a_worker_of_nothing_is_refused(started: list[tuple[list[str], Allowed]]) -> None:
    refused = CliRunner().invoke(main, WORKER)
    assert refused.exit_code == 2 and "'--app'" in refused.output and not started


@pytest.mark.parametrize(("kinds", "scripts", "words"), [
    ("sql,script", None, "kinds: 'script' is none of sql, stream; scripts are allowed by --scripts"),
    ("", Path("/not/there"), "scripts: there is no directory /not/there here"),
])
def test_what_cannot_be_meant_is_refused(kinds: str, scripts: Path | None, words: str) -> None:
    with pytest.raises(Refused, match=words):
        allowed_by(kinds, scripts, 30.0)
