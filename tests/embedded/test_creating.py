"""The cluster of one machine is created once, whatever became of an earlier try."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from skuld_py.cli.failures import UNCERTAIN
from skuld_py.embedded.local import CREATE_TRIES, LocalCluster
from skuld_py.errors import Refused

LOST = (UNCERTAIN, "error: the connection broke before it answered [zookeeper_uncertain]\n")
THERE = (1, "error: cluster local exists already [cluster_exists]\n")
FAILED = (1, "error: no ZooKeeper [zookeeper_unreachable]\n")
SLOW = (None, "")


def created(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *tries: tuple[int | None, str]) -> int:
    """How often it was tried."""
    left = list(tries)

    def spawn(_: LocalCluster, words: Sequence[str], log: Path) -> SimpleNamespace:
        status, said = left.pop(0)

        def wait(limit_s: float) -> int:
            if status is None:
                raise subprocess.TimeoutExpired(list(words), limit_s)
            return status
        with log.open("a") as stream:
            stream.write(said)
        return SimpleNamespace(wait=wait)
    monkeypatch.setattr(LocalCluster, "_spawn", spawn)
    monkeypatch.setattr(LocalCluster, "zookeeper_hosts", "127.0.0.1:1")
    monkeypatch.setattr("skuld_py.embedded.process.stop", lambda running, grace_s: None)
    LocalCluster(tmp_path)._create(1.0)
    return len(tries) - len(left)


def test_it_is_tried_again_when_the_answer_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert created(tmp_path, monkeypatch, LOST, (0, ""), FAILED) == 2


@pytest.mark.parametrize("before", [(), (LOST,)], ids=["by a run that died", "though the answer was lost"])
def test_one_that_is_there_is_this_directorys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                              before: tuple[tuple[int, str], ...]) -> None:
    assert created(tmp_path, monkeypatch, *before, THERE, FAILED) == len(before) + 1


@pytest.mark.parametrize(("tries", "said"), [
    ((FAILED,), "no ZooKeeper"), ((SLOW,), "could not be created"), ((LOST,) * CREATE_TRIES, "broke before")],
    ids=["refused", "too slow", "lost again and again"])
def test_what_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tries: tuple[tuple[int, str], ...],
                            said: str) -> None:
    with pytest.raises(Refused, match=said):
        created(tmp_path, monkeypatch, *tries)
