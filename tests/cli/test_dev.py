"""What ``skuld dev`` says of the archiver that it runs beside its nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from skuld_py.cli.dev import _Archiver, _introduce, _introduce_as_json, _Watcher


def cluster(log: Path) -> Any:
    return SimpleNamespace(addresses=["127.0.0.1:13000"], node_process_id=lambda index: 7, gateway_url="",
                           node_log=lambda index: log, worker_log=lambda process: log, key=None, name="local",
                           said_by=lambda process: log.read_text(), zookeeper_hosts="127.0.0.1:2181")


def ended(status: int) -> subprocess.Popen[bytes]:
    running = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({status})"])
    running.wait()
    return running


def test_an_archiver_that_has_ended_is_said_once_with_what_it_said(tmp_path: Path,
                                                                   capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "archiver-0.log"
    log.write_text("error: root: /x cannot be written to: Read-only file system [bad_root]\n")
    watcher = _Watcher(cluster(log), as_json=False)
    watcher.archiver = _Archiver(tmp_path / "a", ended(1))

    assert watcher.look() and watcher.look()

    said = capsys.readouterr().err
    assert said.count("the archiver has ended with status 1, and what has ended stays on the nodes") == 1
    assert str(log) in said and "Read-only file system [bad_root]" in said


def test_programs_are_told_with_which_status_an_archiver_has_ended_and_where_its_log_is(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "archiver-0.log"
    log.write_text("error: root: /x is full\n")
    watcher = _Watcher(cluster(log), as_json=True)
    watcher.archiver, watcher.worker = _Archiver(tmp_path / "a", ended(1)), ended(3)

    assert watcher.look()

    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event for event in events if event["event"] == "ended"] == [
        {"event": "ended", "who": "the worker", "status": 3, "log": str(log)},
        {"event": "ended", "who": "the archiver", "status": 1, "log": str(log), "said": log.read_text()}]


def test_where_the_archive_is_and_how_it_is_asked_is_said(tmp_path: Path,
                                                          capsys: pytest.CaptureFixture[str]) -> None:
    log, root = tmp_path / "archiver-0.log", tmp_path / "an archive"
    archiver = _Archiver(root, ended(0))

    _introduce(cluster(log), 1.0, tmp_path, True, archiver, is_key_found=True, worker=None)
    people = capsys.readouterr().out
    _introduce_as_json(cluster(log), 1.0, tmp_path, True, archiver)
    programs = json.loads(capsys.readouterr().out)

    row = next(line for line in people.splitlines() if line.startswith("archiver"))
    assert str(archiver.running.pid) in row and str(log) in people
    assert f"skuld history '{root}'" in people
    assert programs["archive"] == {"root": str(root), "process": archiver.running.pid, "log": str(log)}
