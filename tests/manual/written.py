"""What is written for users: the README and the pages of the manual, taken apart into what can be checked.

A page is Markdown of the plainest kind: paragraphs, lists, tables, fenced blocks with a language, and `spans` of
code within the text. A block of ``sh`` holds commands, one a line; a block of ``python`` is a program, or a module
when its first line is a comment with the name of a file.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import attrs

TOP = Path(__file__).resolve().parents[2]
MANUAL = TOP / "skuld_py" / "manual"
PATHS = (TOP / "README.md", *sorted(MANUAL.glob("*.md")))

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)]+)\)")
_FILE = re.compile(r"# (\w+)\.py\b")
_OPERATORS = ("|", "||", "&&", ";", ">", ">>", "<", "2>")


@attrs.frozen
class Block:
    """A fenced block and where its first line stands."""

    page: str
    line: int
    language: str
    text: str

    @property
    def module(self) -> str:
        """The module that it is, or nothing for a program."""
        named = _FILE.match(self.text)
        return named[1] if named else ""


@attrs.frozen
class Line:
    """A line of shell, as words; ``place`` is for people."""

    place: str
    words: tuple[str, ...]

    @property
    def commands(self) -> list[list[str]]:
        """The commands that it joins, without what they write to."""
        made: list[list[str]] = [[]]
        words = iter(self.words)
        for word in words:
            if word in (">", ">>", "<", "2>"):
                next(words)
            elif word in _OPERATORS:
                made.append([])
            else:
                made[-1].append(word)
        return made


def pages() -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    for path in PATHS:
        yield path.name, path.read_text(encoding="utf-8")


def blocks(language: str = "") -> list[Block]:
    """The blocks of a language on all pages, or all."""
    return [block for name, text in pages() for block in blocks_of(name, text)
            if not language or block.language == language]


def blocks_of(page: str, text: str) -> Iterator[Block]:
    """The blocks of a page."""
    for found in _FENCE.finditer(text):
        yield Block(page, text.count("\n", 0, found.start()) + 2, found[1], found[2])


def prose(text: str) -> str:
    """A page without its blocks."""
    return _FENCE.sub("", text)


def spans(text: str) -> list[str]:
    """What stands in backticks within the text of a page; line ends in it are spaces."""
    return [" ".join(span.split()) for span in _SPAN.findall(prose(text))]


def links(text: str) -> list[str]:
    """Where a page leads within this checkout."""
    return [link for link in _LINK.findall(prose(text)) if "://" not in link]


def lines() -> list[Line]:
    """Every line of shell on all pages."""
    return [line for block in blocks("sh") for line in lines_of(block)]


def lines_of(block: Block) -> Iterator[Line]:
    """The lines of a block of shell; comments are left out, and a line that ends in a backslash goes on."""
    for number, text in enumerate(block.text.replace("\\\n", " ").splitlines(), block.line):
        words = tuple(words_of(text))
        if words:
            yield Line(f"{block.page}:{number}", words)


def words_of(text: str) -> list[str]:
    """A line of shell as its words and operators."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(lexer)
