"""The glossary: each word has a place in the code, the place knows it, and no word means two things unsaid.

A word whose place no longer mentions it was renamed, or means something else by now.
"""

from __future__ import annotations

import re

import attrs
import pytest

from manual import names, written
from manual.written import TOP

_ENTRY = re.compile(r"^- \*\*([^*]+)\*\* \(`([^`]+)`\): (.+?)(?=\n\n|\n- |\Z)", re.DOTALL | re.MULTILINE)
_ITEM = re.compile(r"^- ", re.MULTILINE)
SHORT = {"N": "replicas", "W": "w: int"}
"""What the code calls what people name by a letter."""
TWICE = {"replica", "member"}
"""Words with two meanings; each of both entries speaks of the other."""


@attrs.frozen
class Entry:
    """A word, its place below the package, and what it means."""

    word: str
    place: str
    meaning: str


TEXT = dict(written.pages())["words.md"]
ENTRIES = [Entry(*found) for found in _ENTRY.findall(TEXT)]


def knows(text: str, word: str) -> bool:
    """Whether a source speaks of a word, in whatever form: ``claims``, ``Claim``, ``skew_ms``."""
    looked_for = SHORT.get(word) or r"[\s_]*".join(re.escape(part) for part in word.split())
    return re.search(rf"(?:\b|_){looked_for}", text, re.IGNORECASE) is not None


@pytest.mark.parametrize("entry", ENTRIES, ids=[f"{entry.word} {entry.place}" for entry in ENTRIES])
def test_a_word_is_known_where_it_has_its_place(entry: Entry) -> None:
    source = (TOP / "skuld_py" / entry.place).read_text(encoding="utf-8")

    assert knows(source, entry.word)
    assert entry.meaning.rstrip().endswith((".", ")")), entry.word


def test_every_line_is_an_entry() -> None:
    assert len(ENTRIES) == len(_ITEM.findall(TEXT)) >= 45


def test_no_word_stands_twice_but_those_that_say_so() -> None:
    words = [entry.word for entry in ENTRIES]

    assert {word for word in words if words.count(word) > 1} == TWICE
    for word in TWICE:
        one, other = (entry.meaning for entry in ENTRIES if entry.word == word)
        assert "another thing" in one + other, word


def test_a_word_that_is_gone_is_noticed() -> None:
    assert knows("class Claim: ...", "claim") and knows("the skew bound", "skew bound")
    assert knows("# LEASE_MS", "lease") and not knows("a lattice", "lease")
    assert not names.is_path("partition/leadership/ballot.py")
