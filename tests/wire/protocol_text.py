"""The text of the wire protocol (``skuld_py/wire/protocol.txt``): read, compared with the schema, kept up to it.

Words are people's. All else in a section follows from the schema, or from the example's meaning: the number, the
table of fields, the bytes. ``scripts/protocol`` writes those anew and adds a section for whatever has none, so a
change of a message costs its author the words only. The tests read the text as a stranger would: they take the
bytes from it and see that both directions of the codec, and a real node, agree.

The form of a section::

    5 Claim -- from clients
        request    number
        queue      name

      Words, indented by two.

        C 94 01 a4 6d 61 69 6e a0 91 ...
        | 73 75 70 3f
        = Claim(request=3, queue="jobs")

``C`` is a client, ``N`` the node that it asks, ``P`` a peer of that node. ``|`` is a frame behind the header.
"""

from __future__ import annotations

import ast
import contextlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import attrs

import strategies
from skuld_py.crdt import LatticeMap, Max, Min
from skuld_py.model import bounds, columns, fields, ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.columns import Column
from skuld_py.model.history import RELEASED, ClaimRecord, History, ending_of
from skuld_py.wire.codec import Envelope, encode

FILE = Path(__file__).resolve().parents[2] / "skuld_py" / "wire" / "protocol.txt"
SENDERS = {"C": "", "N": "127.0.0.1:13000", "P": "127.0.0.1:13001"}
CLUSTER = "main"
WIDTH = 100
BYTES_A_LINE = 24
U64_MAX = (1 << 64) - 1

_HEADING = re.compile(r"^(\d+|row) (\w+)(?: -- (.*))?$")
_FIELD = re.compile(r"^    (\w+) +(\S.*)$")
_BYTES = re.compile(r"^    ([CNP|]) ((?:[0-9a-f]{2} ?)+)$")
_MORE_BYTES = re.compile(r"^      ((?:[0-9a-f]{2} ?)+)$")


@attrs.define
class Example:
    """A message on its way: who sends it, the frames as the text has them, and what they mean."""

    who: str
    frames: list[bytes]
    meaning: str

    @property
    def message(self) -> m.Message:
        """What the meaning says."""
        made: m.Message = meaning_of(self.meaning)
        return made

    @property
    def envelope(self) -> Envelope:
        """The message with what is around it; a client that greets knows no cluster yet."""
        is_greeting = type(self.message) is m.Greet
        return Envelope(SENDERS[self.who], "" if is_greeting else CLUSTER, (self.message,))


@attrs.define
class Section:
    """What the text says of one message or row."""

    number: str
    name: str
    senders: str
    fields: list[tuple[str, str]] = attrs.field(factory=list)
    words: list[str] = attrs.field(factory=list)
    examples: list[Example] = attrs.field(factory=list)


def rows() -> list[type]:
    """The records that messages hold, in the order in which they are met."""
    met: dict[type, None] = {}

    def visit(of: type) -> None:
        for field in attrs.fields(of):
            kind = field.metadata["kind"]
            if isinstance(kind, fields.Rows):
                met.setdefault(kind.of)
                visit(kind.of)
    for of in m.MESSAGES:
        visit(of)
    return list(met)


# -- what follows from the schema ----------------------------------------------------------------


def kind_words(kind: fields.Kind) -> str:
    """A field's kind, in the words that the text explains."""
    match kind:
        case fields.Number(0, bounds.U63_MAX):
            return "number"
        case fields.Number(low, high):
            return f"number {low}.." + ("" if high == bounds.U63_MAX else str(high))
        case fields.Partition():
            return "partition"
        case fields.Numbers(count_max, high):
            return f"u64s of 0..{high}, {count_max}"
        case fields.Partitions(count_max):
            return f"partitions, {count_max}"
        case fields.Eras(count_max):
            return f"eras, {count_max}"
        case fields.Truth():
            return "truth"
        case fields.Name(is_life=True):
            return "life"
        case fields.Name(is_optional, is_wide):
            return ("wide name" if is_wide else "name") + (" or empty" if is_optional else "")
        case fields.Text(chars_max):
            return f"text, {chars_max}"
        case fields.Blob(1, bytes_max):
            return f"bytes, {bytes_max}"
        case fields.Blob(unit, bytes_max):
            what = {20: "ids", 8: "u64s"}.get(unit, f"items of {unit} bytes")
            return f"{what}, {bytes_max // unit}"
        case fields.Strings(count_max):
            return f"strings, {count_max}"
        case fields.Rows(of, count_max):
            return f"rows of {of.__name__}, {count_max}"
        case fields.Names(count_max):
            return f"wide names, {count_max}"


def _since_words(field: Any) -> str:
    since = field.metadata["since"]
    return "" if not since else ", late" if since == 1 else f", late, since {since}"


def table_of(of: type) -> list[tuple[str, str]]:
    """The lines of a record's table of fields."""
    lines = [(field.name, kind_words(field.metadata["kind"]) + _since_words(field))
             for field in attrs.fields(of)]
    equal = getattr(of, "columns", ())
    return [*lines, ("as many in", ", ".join(equal))] if equal else lines


def senders_of(of: type) -> str:
    """Who may send a message."""
    roles = getattr(of, "roles", 0)
    words = {m.ROLE_CLIENT: "from clients", m.ROLE_NODE: "from nodes",
             m.ROLE_CLIENT | m.ROLE_NODE: "from clients and nodes"}
    return words.get(roles, "")


# -- meanings ------------------------------------------------------------------------------------


def meaning_of(text: str) -> Any:
    """The record that a meaning says; fields that it leaves out have their least value."""
    return _value(ast.parse(text.strip(), mode="eval").body)


def _value(node: ast.expr) -> Any:
    if isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Name)
        arguments = [_value(argument) for argument in node.args]
        named = {str(keyword.arg): _value(keyword.value) for keyword in node.keywords}
        return _made(node.func.id, arguments, named)
    if isinstance(node, ast.List):
        return tuple(map(_value, node.elts))
    return ast.literal_eval(node)


def _made(name: str, arguments: list[Any], named: dict[str, Any]) -> Any:
    match name:
        case "hex":
            return bytes.fromhex("".join(arguments))
        case "ids":
            return b"".join(map(ids.from_text, arguments))
        case "u64s":
            return columns.pack_u64(arguments)
        case "strings":
            return columns.pack([each.encode() if isinstance(each, str) else each for each in arguments])
        case "header":
            return Header(*arguments).encode()
        case "body":
            queue, priority, payload = arguments
            return Body(Header(queue, priority), payload=payload.encode()).encode()
        case "history":
            done_ms, done_token, *claims = arguments
            completion = Min((done_ms, done_token)) if done_ms else Min()
            return History(completion=completion, claims=LatticeMap(dict(claims))).encode()
        case "claim":
            token, start_ms, end_ms, is_released, holder = arguments
            return token, ClaimRecord(start_ms, Max(end_ms), ending_of(RELEASED) if is_released else Max(), holder)
    of = next(of for of in (*m.MESSAGES, *rows()) if of.__name__ == name)
    known = {field.name for field in attrs.fields(of)}
    assert set(named) <= known, (name, set(named) - known)
    return of(**{field.name: named.get(field.name, _least(of, field)) for field in attrs.fields(of)})


def _least(of: type, field: Any) -> Any:
    if field.default is not attrs.NOTHING:
        return field.default
    special = strategies.SPECIAL.get((of, field.name))
    kind = field.metadata["kind"]
    return special(lambda low, high: low, 0) if special else strategies.make_value(kind, lambda low, high: low, 0)


def said(value: Any, field: Any = None) -> str:
    """The meaning of a record, in the words that ``meaning_of`` reads."""
    if attrs.has(type(value)) and not isinstance(value, Column):
        each = [f"{inner.name}={said(getattr(value, inner.name), inner)}" for inner in attrs.fields(type(value))
                if not (inner.metadata["since"] and getattr(value, inner.name) == inner.default)]
        return f"{type(value).__name__}({', '.join(each)})"
    if isinstance(value, tuple):
        return f"[{', '.join(map(said, value))}]"
    if isinstance(value, str):
        return '"' + value.encode("unicode_escape").decode().replace('"', '\\"') + '"'
    if isinstance(value, Column):
        return f"strings({', '.join(_string_said(each, field.name) for each in value.unpack())})"
    if isinstance(value, bytes):
        return _blob_said(value, field)
    return str(value)


def _blob_said(value: bytes, field: Any) -> str:
    unit = getattr(field.metadata["kind"], "unit", 8)
    if unit == ids.ID_BYTES:
        each = ", ".join(f'"{ids.to_text(task_id)}"' for task_id in ids.split(value))
        return f"ids({each})"
    if field.name == "proofs":
        return f'hex("{value.hex()}")'
    if unit == 8:
        return f"u64s({', '.join(map(str, columns.unpack_u64(value)))})"
    if field.name == "header":
        header = Header.decode(value)
        words = f'header("{header.queue}", {header.priority})'
        return words if meaning_of(words) == value else f'hex("{value.hex()}")'
    return _string_said(value, field.name) if field.name == "history" else f'hex("{value.hex()}")'


def _string_said(value: bytes, name: str) -> str:
    if name in ("history", "histories") and value:
        with contextlib.suppress(ValueError):
            words = _history_said(History.decode(value))
            if meaning_of(words) == value:  # else it holds more than the words can say
                return words
    if name in ("body", "bodies"):
        with contextlib.suppress(ValueError):
            body = Body.decode(value)
            words = f'body("{body.header.queue}", {body.header.priority}, "{body.payload.decode("latin-1")}")'
            if _is_plain(body.payload) and meaning_of(words) == value:
                return words
    return f'"{value.decode()}"' if value and _is_plain(value) else f'hex("{value.hex()}")'


def _history_said(history: History) -> str:
    done_ms, done_token = history.completion.value or (0, 0)
    claims = [f'claim({token}, {claim.start_ms}, {claim.end.value}, {claim.kind == RELEASED}, "{claim.holder}")'
              for token, claim in sorted(history.claims.entries.items())]
    return f"history({', '.join([str(done_ms), str(done_token), *claims])})"


def _is_plain(value: bytes) -> bool:
    return all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in value)


# -- reading -------------------------------------------------------------------------------------


def read(text: str) -> tuple[list[str], list[Section]]:
    """The lines before the first section, and the sections."""
    preamble: list[str] = []
    sections: list[Section] = []
    lines = iter(text.splitlines())
    for line in lines:
        heading = _HEADING.match(line)
        if heading:
            sections.append(Section(heading[1], heading[2], heading[3] or ""))
            _read_fields(lines, sections[-1])
        elif sections:
            _read_line(line, sections[-1])
        else:
            preamble.append(line)
    return preamble, sections


def _read_fields(lines: Iterator[str], section: Section) -> None:
    for line in lines:
        if not line.strip():
            return
        name, words = line[4:].split("  ", 1)
        section.fields.append((name, words.strip()))


def _read_line(line: str, section: Section) -> None:
    first = _BYTES.match(line)
    more = _MORE_BYTES.match(line)
    examples = section.examples
    if first and first[1] == "|":
        examples[-1].frames.append(bytes.fromhex(first[2]))
    elif first:
        examples.append(Example(first[1], [bytes.fromhex(first[2])], ""))
    elif more and examples and not examples[-1].meaning:
        examples[-1].frames[-1] += bytes.fromhex(more[1])
    elif line.startswith("    = "):
        examples[-1].meaning = line[6:]
    elif line.startswith("      ") and examples:
        examples[-1].meaning += " " + line.strip()
    elif line.strip() or (section.words and section.words[-1]):
        assert not line.strip() or not examples, f"words behind the examples of {section.name}: {line!r}"
        if not examples:
            section.words.append(line)


# -- writing -------------------------------------------------------------------------------------


def written(preamble: list[str], sections: list[Section]) -> str:
    """The text; what follows from the schema as the schema has it."""
    lines = [*preamble]
    by_name = {section.name: section for section in sections}
    for number, of in [*((str(code), of) for code, of in enumerate(m.MESSAGES)), *(("row", of) for of in rows())]:
        lines += _section_lines(number, of, by_name.get(of.__name__) or _draft(of))
    return "\n".join(lines).rstrip("\n") + "\n"


def _draft(of: type) -> Section:
    """A section for somebody to put words in."""
    section = Section("", of.__name__, "", words=["  No words yet.", ""])
    if issubclass(of, m.Message):
        message = strategies.random_message(Random(of.__name__), of)
        section.examples.append(Example("C" if of.roles & m.ROLE_CLIENT else "N", [], said(message)))
    return section


def _section_lines(number: str, of: type, section: Section) -> list[str]:
    senders = senders_of(of)
    table = table_of(of)
    widest = max(len(name) for name, _ in table) + 2
    words = "\n".join(section.words).strip("\n").split("\n")
    lines = [f"{number} {of.__name__}" + (f" -- {senders}" if senders else "")]
    lines += [f"    {name.ljust(widest)}{kind}" for name, kind in table]
    lines += ["", *words, ""]
    for example in section.examples:
        lines += [*_example_lines(example), ""]
    return lines


def _example_lines(example: Example) -> list[str]:
    header, *frames = encode(example.envelope)
    lines = _hex_lines(f"    {example.who} ", header)
    for frame in frames:
        lines += _hex_lines("    | ", frame)
    return [*lines, *_folded(said(example.message))]


def _hex_lines(mark: str, data: bytes) -> list[str]:
    parts = [data[at : at + BYTES_A_LINE].hex(" ") for at in range(0, len(data), BYTES_A_LINE)]
    return [(mark if at == 0 else " " * len(mark)) + part for at, part in enumerate(parts)]


def _folded(meaning: str) -> list[str]:
    """A meaning over several lines, broken behind commas."""
    lines, line = [], "    = "
    for word in re.split(r"(?<=,) ", meaning):
        if len(line) + len(word) > WIDTH and line.strip(" ="):
            lines.append(line.rstrip())
            line = "      "
        line += word + " "
    return [*lines, line.rstrip()]


def main() -> None:
    """Bring the text up to the schema."""
    before = FILE.read_text(encoding="utf-8")
    after = written(*read(before))
    FILE.write_text(after, encoding="utf-8")
    lacking = [section.name for section in read(after)[1] if "  No words yet." in section.words]
    sys.stdout.write(f"{FILE}: {'as it was' if after == before else 'written'}\n")
    if lacking:
        sys.stdout.write(f"write the words of: {', '.join(lacking)}\n")


if __name__ == "__main__":
    main()
