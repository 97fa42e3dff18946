"""What the program tells people to type is what can be typed: every command that stands in quotes in its texts.

A text of help may mention a verb with an option in passing. What is said to somebody who has a trouble is read by
the program's own parser, as a line of the manual is: he types it as it stands, but for words in large letters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from manual import commands, written
from manual.written import TOP

PROGRAM = TOP / "skuld_py"
_COMMAND = re.compile(r"'skuld ([^']+)'")
_HOLE = "\0"
_FILLINGS = ("3", "0" * 32, "127.0.0.1:13000")
"""What may stand where a text has a place for a value: one of these has to fit."""
IN_PASSING = frozenset({"cluster create --secure", "worker --workflows"})
"""Said of what was done, or is done elsewhere, and of which option makes it so."""


def texts_of(module: Path) -> Iterator[tuple[str, bool]]:
    """The texts of a module, values left out, and whether each is help."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    parts = {id(value) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for value in node.values}
    help_texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(value.value) if isinstance(value, ast.Constant) else _HOLE
                          for value in node.values), False
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            yield node.value, id(node) in help_texts


def said() -> list[tuple[str, str, bool]]:
    """Where, what is to be typed, and whether help says so in passing."""
    return [(str(module.relative_to(PROGRAM)), " ".join(found.split()), is_help)
            for module in sorted(PROGRAM.rglob("*.py")) for text, is_help in texts_of(module)
            for found in _COMMAND.findall(text)]


def wrong(words: str, is_help: bool) -> str:
    """What is wrong with it, or nothing."""
    mention = commands.wrong_mention(written.words_of(words.replace(_HOLE, "0")))
    is_a_name = all(word.islower() and word.isalpha() for word in words.replace("-", "").split())
    if mention or is_help or words in IN_PASSING or (is_a_name and "--" not in words):
        return mention
    tried = [commands.wrong_for_skuld(written.words_of(re.sub(r"\{\w*\}|\0|%s|\b[A-Z]{2,}\b", filling, words)))
             for filling in _FILLINGS]
    return "" if "" in tried else tried[0]


def test_there_is_much_to_look_at() -> None:
    assert len(said()) >= 80 and sum(not is_help for _, _, is_help in said()) >= 40


@pytest.mark.parametrize(("where", "words", "is_help"), said(),
                         ids=[f"{where} {words.replace(_HOLE, '_')}" for where, words, _ in said()])
def test_what_is_told_can_be_typed(where: str, words: str, is_help: bool) -> None:
    assert wrong(words, is_help) == "", where


@pytest.mark.parametrize(("words", "problem"), [
    ("quarantine --off", "Missing argument 'NODE'"), ("cluster rules --raise", "Missing argument 'NAME'"),
    ("keys add", "there is no such verb"), ("freeze --never", "--never"),
])
def test_what_cannot_be_typed_is_found(words: str, problem: str) -> None:
    assert problem in wrong(words, is_help=False)
