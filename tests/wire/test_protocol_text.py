"""The text of the wire protocol is true: its tables are the schema's, and its bytes mean what it says they mean.

The bytes are taken from the text, not made by the codec; so a codec that changes, and with it what others on the
network would have to understand, is noticed here first. ``scripts/protocol`` writes the new text.
"""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from skuld_py.config import GREETING_PROTOCOL
from skuld_py.model import messages as m
from skuld_py.wire.codec import Envelope, decode, encode
from wire import protocol_text as text
from wire.protocol_text import Example

TEXT = text.FILE.read_text(encoding="utf-8")
PREAMBLE, SECTIONS = text.read(TEXT)
EXAMPLES = {f"{section.name}-{number}-{example.meaning.partition('(')[0]}": example
            for section in SECTIONS for number, example in enumerate(section.examples)}
SOURCE = text.FILE.parents[1]
_LAYOUT = re.compile(r"^ {4,}((?:c4 )?[0-9a-f]{2}(?: [0-9a-f]{2})*) {3,}\S")
_SAID_NO = re.compile(r'(?:Refused|refuse)\(\s*"(\w+)"')


def number_of(example: Example) -> int:
    number: int = example.message.request  # type: ignore[attr-defined]
    return number


def test_the_text_is_up_to_the_schema() -> None:
    assert text.written(PREAMBLE, SECTIONS) == TEXT, "messages have changed: run scripts/protocol"


def test_every_message_and_row_is_told_of_and_every_message_has_an_example() -> None:
    assert [section.name for section in SECTIONS] == [of.__name__ for of in (*m.MESSAGES, *text.rows())]
    assert [section.name for section in SECTIONS if section.words in ([], ["  No words yet."])] == []
    assert {type(example.message) for example in EXAMPLES.values()} == set(m.MESSAGES)


def test_every_question_of_a_client_stands_with_its_answer() -> None:
    for section in SECTIONS:
        asked = [example for example in section.examples if example.who == "C"]
        told = [example for example in section.examples if example.who == "N"]
        if asked:
            assert [number_of(each) for each in asked] == [number_of(each) for each in told], section.name


def test_the_protocol_that_a_message_is_said_to_be_known_since_is_its_own() -> None:
    """What answers a message is as old as that, and need not say so."""
    words = {section.name: " ".join(" ".join(section.words).split()) for section in SECTIONS}
    for of in m.MESSAGES:
        said = re.findall(r"Known since protocol (\d+)", words[of.__name__])
        asked = [each for each in m.MESSAGES if re.search(rf"\b{of.__name__}\b", words[each.__name__])]
        is_told = of.since == 1 or any(each.since == of.since for each in asked if each is not of)
        assert said == [str(of.since)] or (not said and is_told), of.__name__


@pytest.mark.parametrize("example", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_the_bytes_mean_what_the_text_says(example: Example) -> None:
    assert decode(example.frames) == example.envelope
    assert encode(example.envelope) == example.frames


def test_the_layouts_of_the_beginning_are_bytes_that_travel() -> None:
    layouts: list[bytes] = [b""]
    for line in PREAMBLE:
        found = _LAYOUT.match(line)
        if found:
            layouts[-1] += bytes.fromhex(found[1])
        elif layouts[-1]:
            layouts.append(b"")
    greeting, column = (layout for layout in layouts if layout)

    assert decode([greeting]) == Envelope("", "", (m.Greet(1),), GREETING_PROTOCOL)
    enqueue = next(example for example in EXAMPLES.values() if type(example.message) is m.Enqueue
                   and len(example.message.batches[0].payloads) == 2)
    assert enqueue.frames[0].endswith(column)


def test_every_code_that_a_node_says_no_with_is_told_of() -> None:
    said = {code for path in sorted((SOURCE / "node").glob("*.py")) if path.name != "starting.py"
            for code in _SAID_NO.findall(path.read_text())}  # a node that does not start says nothing on the wire
    told = {line.split()[0] for line in PREAMBLE if re.match(r"^    [a-z]\w+  +\S", line)}

    assert said and sorted(said - told) == []


# -- the checks can fail -------------------------------------------------------------------------


def test_a_byte_that_is_wrong_is_noticed() -> None:
    spoilt = TEXT.replace("94 06 a0 a0 91 92 00 01", "94 06 a0 a0 91 92 00 02")
    assert spoilt != TEXT
    example = text.read(spoilt)[1][0].examples[0]

    assert decode(example.frames) != example.envelope


@pytest.mark.parametrize(("before", "after"), [
    ("    wait_ms       number 0..86400000\n", ""), ("number 1..1000", "number 0..1000"),
    ("5 Claim -- from clients", "5 Claim -- from nodes"), ("as many in  ids, tokens", "as many in  ids, ends")])
def test_a_table_that_is_wrong_is_noticed(before: str, after: str) -> None:
    spoilt = TEXT.replace(before, after, 1)

    assert spoilt != TEXT
    assert text.written(*text.read(spoilt)) != spoilt


def test_a_message_without_a_section_gets_one_that_wants_words() -> None:
    preamble, sections = text.read(TEXT)
    again = text.read(text.written(preamble, [section for section in sections if section.name != "Grant"]))[1]

    drafted = next(section for section in again if section.name == "Grant")
    assert drafted.words[0] == "  No words yet." and drafted.fields == text.table_of(m.Grant)
    assert decode(drafted.examples[0].frames) == drafted.examples[0].envelope


def test_an_example_without_a_new_field_takes_its_least_value() -> None:
    made = text.meaning_of('Claim(request=3, queue="reports", count=1, lease_ms=30000)')

    assert (made.wait_ms, made.holder) == (0, attrs.evolve(made).holder) and made.holder
    assert decode(encode(Envelope("", "main", (made,)))).messages == (made,)


def test_the_text_is_installed_with_the_package() -> None:
    assert "wire/protocol.txt" in (Path(__file__).parents[2] / "setup.cfg").read_text()
