"""Probes count what they name, and a campaign that misses one says so."""

from __future__ import annotations

import pytest

from skuld_py.simulation import __main__ as command
from skuld_py.simulation.campaign import run
from skuld_py.simulation.probes import KNOWN, OPTIONAL, REQUIRED


def test_there_are_forty_situations_at_least_each_named_once() -> None:
    assert len(REQUIRED) >= 40
    assert len(KNOWN) == len(REQUIRED) + len(OPTIONAL)


def test_a_run_without_faults_meets_no_fault() -> None:
    """Its clocks are good: to set one right, the healing restarts its node, in the middle of a commit perhaps."""
    verdict = run(1, seconds=5, reduction=command._reduction(command.arguments(
        ["--seed", "1", "--faults", "none", "--simpler", "calm-links,sure-registry,no-core-phase"])))

    for name in ("crash in the middle of a commit", "all nodes down", "swap without quorum", "leader stands still",
                 "replayed old", "leader suspended", "disk full again after a restart"):
        assert not verdict.stats[f"probe {name}"], name


def test_a_long_campaign_that_misses_a_situation_fails(monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--seeds", "2", "--seconds", "1", "--jobs", "1"]
    assert command.main(words) == 0
    assert "NEVER MET" not in capsys.readouterr().out
    monkeypatch.setattr(command, "SEEDS_FOR_PROBES", 2)

    assert command.main(words) == 1

    out = capsys.readouterr().out
    assert "NEVER MET: " in out
    assert "situations met:" in out


def test_the_table_names_every_situation(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "3", "--seconds", "1", "--probes"]) == 0

    out = capsys.readouterr().out
    assert all(f"  {name}" in out for name in KNOWN)
