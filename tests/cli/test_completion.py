"""Completion: the scripts for each shell, and what is offered, as a shell asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from skuld_py.cli.main import main

TOP = Path(__file__).resolve().parents[2]


def offered(words: str, position: int) -> list[str]:
    """What bash is told when Tab is pressed at this word."""
    ran = subprocess.run([sys.executable, "-c", "from skuld_py.cli.main import main; main(prog_name='skuld')"],
                         cwd=TOP, capture_output=True, text=True, check=True,
                         env={**os.environ, "_SKULD_COMPLETE": "bash_complete", "COMP_WORDS": words,
                              "COMP_CWORD": str(position)})
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.splitlines()]


@pytest.mark.parametrize(("shell", "words"), [("bash", "complete -o nosort -F"), ("zsh", "#compdef skuld"),
                                              ("fish", "complete --no-files --command skuld")])
def test_the_script_of_each_shell(shell: str, words: str) -> None:
    answer = CliRunner().invoke(main, ["completion", shell], prog_name="skuld")

    assert answer.exit_code == 0
    assert words in answer.output and "_SKULD_COMPLETE=" in answer.output


def test_verbs_options_and_choices_are_offered() -> None:
    assert offered("skuld c", 1) == ["cluster", "certificates", "claim", "complete", "cancel", "count",
                                       "config", "completion"]
    assert sorted(offered("skuld cluster ", 2)) == [
        "create", "destroy", "documents", "force-epoch", "forget", "history", "log", "proofs", "remove",
        "replicas", "restore", "rotate", "rules", "secure", "share"]
    assert "--lease" in offered("skuld claim q --l", 3)
    assert offered("skuld completion ", 2) == ["bash", "zsh", "fish"]
    assert offered("skuld nonsense ", 2) is not None


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash on this machine")
def test_bash_takes_the_script() -> None:
    script = CliRunner().invoke(main, ["completion", "bash"], prog_name="skuld").output
    ran = subprocess.run(["bash", "--norc", "-c", script + "\ncomplete -p skuld"], capture_output=True, text=True,
                         check=True)

    assert "_skuld_completion skuld" in ran.stdout
