"""One text of SQL as its statements: split at each ``;`` outside of quotes and comments, as Spark reads these.

    'it''s; \\'one\\''     a text, which a backslash or a second quote goes on; "..." the same
    r'\\'                  a raw text: nothing goes on
    `a;``b`               a name
    -- ...                a comment to the end of its line, or of the next one behind a backslash
    /* /* ; */ */         a comment, nested
    $$ ; $$, $tag$ $tag$  a text between two tags

What lies between the semicolons is Spark's to read and to refuse. A text that begins with ``BEGIN`` is a script of
Spark's own, whose semicolons are its parts: it stays whole.

Rejected: Spark's parser itself. It takes one statement, its splitter belongs to its command line, and neither is
there before Spark runs: who enqueues a text that cannot be split should hear of it at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from skuld_py.calls.kinds.fields import wrong

_TOKEN = re.compile(r"""
    (?P<space>\s+)
  | (?P<line>--(?:\\\n|[^\r\n])*)
  | (?P<comment>/\*)
  | (?P<raw>[rR](?:'[^']*(?P<raw1>'?)|"[^"]*(?P<raw2>"?)))
  | (?P<single>'(?:\\.|''|[^'\\])*(?P<single1>'?))
  | (?P<double>"(?:\\.|""|[^"\\])*(?P<double1>"?))
  | (?P<name>`(?:``|[^`])*(?P<name1>`?))
  | (?P<tag>\$[A-Za-z]*\$)
  | (?P<end>;)
  | (?P<word>\w+|.)
""", re.VERBOSE | re.DOTALL)
_CLOSERS = {"raw": ("raw1", "raw2"), "single": ("single1",), "double": ("double1",), "name": ("name1",)}
_MARK = re.compile(r"/\*|\*/")
_SCRIPT = re.compile(r"begin\b", re.IGNORECASE)


def statements_of(text: str) -> list[str]:
    """The statements, without those that hold nothing but comments. ``Refused`` where a quote or a comment has no
    end."""
    made: list[str] = []
    begin, first = 0, -1
    for kind, start, end in _tokens(text):
        if kind == "end":
            if first >= 0:
                made.append(text[begin:start].strip())
            begin, first = end, -1
        elif kind not in ("space", "line", "comment") and first < 0:
            first = start
            if not made and _SCRIPT.match(text, start):
                return [text[begin:].strip()]
    return [*made, text[begin:].strip()] if first >= 0 else made


def _tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, begin and end of each part of the text."""
    at = 0
    while found := _TOKEN.match(text, at):
        kind, start, at = found.lastgroup or "", found.start(), found.end()
        kind = next((name for name in _TOKEN.groupindex if not name[-1].isdigit() and found[name] is not None), "")
        if kind == "comment":
            at = _comment_end(text, start)
        elif kind == "tag":
            at = text.find(found[0], at) + len(found[0])
            if at < len(found[0]):
                raise _open(text, start, found[0])
        elif kind in _CLOSERS and not any(found[name] for name in _CLOSERS[kind]):
            raise _open(text, start, found[0][:1])
        yield kind, start, at


def _comment_end(text: str, start: int) -> int:
    depth = 0
    for mark in _MARK.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    raise _open(text, start, "/*")


def _open(text: str, start: int, what: str) -> Exception:
    line = text.count("\n", 0, start) + 1
    return wrong("text", f"what begins with {what} in line {line} has no end: {text[start:start + 40]!r}")
