"""``skuld history files``: what it says where there is nothing, and what to do with the paths that it prints."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from archive.ended import plain
from archive.test_layout import rows_of
from skuld_py.archive.arrow_site import Site
from skuld_py.cli.main import main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An archive of two files, below a path with spaces."""
    made = tmp_path / "of two  words"
    with Site.held(made) as site:
        for number in range(2):
            site.store.write(f"b{number}", rows_of([plain(number)]))
    return made


def test_who_asks_for_files_that_are_not_there_is_told(root: Path) -> None:
    def ask(*options: str) -> Result:
        return CliRunner().invoke(main, ["history", "files", str(root), *options])

    for none in (("--queue", "none"), ("--day", "2001-01-01")):
        assert [(ask(*none, *more).stderr, ask(*none, *more).stdout) for more in ((), ("--json",))] == [
            ("no such files\n", ""), ("", "")]
    assert ask("--queue", "q").stderr == "" and ask("--queue", "q").stdout


def test_what_help_says_of_files_holds_where_a_root_has_a_space(root: Path) -> None:
    example = next(line for line in CliRunner().invoke(main, ["history", "files", "--help"]).stdout.splitlines()
                   if "xargs" in line)
    paths = CliRunner().invoke(main, ["history", "files", str(root)]).stdout

    said = subprocess.run(["sh", "-c", example.partition("|")[2]], input=paths, capture_output=True, text=True,
                          check=True)

    assert int(said.stdout) == sum(Path(path).stat().st_size for path in paths.splitlines()) > 0
    assert said.stderr == ""
