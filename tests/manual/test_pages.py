"""The pages of the manual are whole: what they name and lead to is there, and a terminal can show them."""

from __future__ import annotations

import configparser
import re
import subprocess
import sys
from pathlib import Path
from shutil import copy, copytree

import pytest

from manual import names, written
from manual.written import MANUAL, TOP
from skuld_py.cli.manual import TOPICS, about, page

PAGES = dict(written.pages())
README_LINES_MAX = 90
PROSE_CHARS_MAX = 104


def test_every_page_is_a_topic_and_every_topic_a_page() -> None:
    assert sorted(path.stem for path in MANUAL.iterdir() if path.suffix == ".md") == sorted(TOPICS)
    assert [path.name for path in MANUAL.iterdir() if path.suffix != ".md"] == []


@pytest.mark.parametrize("topic", TOPICS)
def test_the_first_line_of_a_page_is_its_topic_and_what_it_is_about(topic: str) -> None:
    title = page(topic).partition("\n")[0]

    assert title.lower().startswith(f"# {topic.replace('-', ' ')}: ")
    assert 20 <= len(about(topic)) <= 90


def test_the_readme_is_one_screen_and_leads_to_every_page() -> None:
    readme = PAGES["README.md"]

    assert readme.count("\n") <= README_LINES_MAX
    assert [f"skuld_py/manual/{topic}.md" for topic in TOPICS] == written.links(readme)[-len(TOPICS):]


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_leads_to_is_there(name: str) -> None:
    here = TOP if name == "README.md" else MANUAL
    text = PAGES[name]
    told = set(re.findall(r"`skuld\s+manual\s+([a-z-]+)`", text))

    assert [link for link in written.links(text) if not (here / link).exists()] == []
    assert told <= set(TOPICS)
    used, given = re.findall(r"\]\[([^\]]+)\]", text), re.findall(r"^\[([^\]]+)\]: https://", text, re.MULTILINE)
    assert sorted(used) == sorted(given)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_can_be_read_in_a_terminal(name: str) -> None:
    lines = written.prose(PAGES[name]).splitlines()

    assert [line for line in lines if len(line) > PROSE_CHARS_MAX and not line.startswith("[")] == []
    assert [block.line for block in written.blocks_of(name, PAGES[name]) if not block.language] == []
    assert PAGES[name].count("```") % 2 == 0 and PAGES[name].endswith("\n")
    assert all(text.count("`") % 2 == 0 for text in written.prose(PAGES[name]).split("\n\n"))


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_names_is_there(name: str) -> None:
    unknown = [span for span in written.spans(PAGES[name]) if not names.is_known(span)]

    assert unknown == [], "these are gone, or belong into FOREIGN"


@pytest.mark.parametrize("span", [
    "no_such_code", "client.clame", "--leese", "SKULD_NODEZ", "[nodez]", "scripts/dema", "node/steward.py",
    "worker/sparc*", "python -m skuld_py.simulate", "/openapi.yaml", "scripts/bench agains COMMIT"])
def test_what_is_not_there_is_noticed(span: str) -> None:
    assert not names.is_known(span)


def test_the_extra_of_the_install_line_is_there() -> None:
    setup = configparser.ConfigParser()
    setup.read(TOP / "setup.cfg")

    assert "pip install '.[all,java]'" in PAGES["README.md"]
    assert {"all", "java"} <= set(setup["options.extras_require"])
    assert setup["options"]["python_requires"] == ">=3.11" and "Python 3.11" in PAGES["README.md"]


def test_the_manual_is_installed(tmp_path: Path) -> None:
    """What is built is what a wheel holds. It is built as an installation builds it."""
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        copy(TOP / name, tmp_path)
    copytree(TOP / "skuld_py", tmp_path / "skuld_py")
    build = [sys.executable, "-c", "import setuptools; setuptools.setup()", "-q", "build", "--build-lib", "lib"]
    subprocess.run(build, cwd=tmp_path, capture_output=True, check=True)

    built = tmp_path / "lib" / "skuld_py"
    assert sorted(path.stem for path in (built / "manual").iterdir()) == sorted(TOPICS)
    assert (built / "wire" / "protocol.txt").exists()
