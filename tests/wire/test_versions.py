"""What programs of two releases say to each other: what came later never travels to who does not know it."""

from __future__ import annotations

from typing import ClassVar

import attrs
import msgpack
import pytest

from skuld_py.config import GREETING_PROTOCOL, PROTOCOL_VERSION, PROTOCOLS, RULES, protocol_of
from skuld_py.errors import Refused
from skuld_py.model import fields
from skuld_py.model import messages as m
from skuld_py.model.columns import pack
from skuld_py.model.registration import Registration
from skuld_py.wire.codec import Envelope, UnknownProtocol, decode, encode
from skuld_py.wire.envelopes import envelopes
from skuld_py.wire.schema import dump_of, record_of
from skuld_py.wire.stream import Writer


@attrs.frozen
class Inner:
    first: int = fields.number()
    second: int = fields.number(default=0, since=7)


@attrs.frozen
class Grown:
    """It had one field, then a late one; protocol 5 brought a column, 7 a number and a field in its rows."""

    first: int = fields.number()
    rows: tuple[Inner, ...] = fields.rows(Inner)
    flag: bool = fields.truth(default=False, since=1)
    names: object = fields.strings(default=pack([]), since=5)
    number: int = fields.number(default=0, since=7)


USED = Grown(1, (Inner(2, 3),), True, pack([b"x"]), 4)


@pytest.mark.parametrize(("version", "fields_sent", "row", "frames"), [
    (1, 3, [2], 0), (4, 3, [2], 0), (5, 4, [2], 1), (6, 4, [2], 1), (7, 5, [2, 3], 1), (8, 5, [2, 3], 1)])
def test_a_field_never_travels_to_who_speaks_an_older_protocol(version: int, fields_sent: int, row: list[int],
                                                               frames: int) -> None:
    writer = Writer()
    sent = list(dump_of(Grown, version)(USED, writer))

    assert len(sent) == fields_sent
    assert [list(each) for each in sent[1]] == [row]
    assert len(writer.frames) == frames, "no frame travels that no field names"


def test_what_is_not_used_does_not_travel_whatever_is_spoken() -> None:
    assert list(dump_of(Grown, 9)(Grown(1, ()), Writer())) == [1, []]
    assert record_of(Grown, 8).least == 2


def test_a_message_is_refused_in_a_protocol_that_has_no_such_message() -> None:
    class Later(m.Acked):
        since: ClassVar[int] = PROTOCOL_VERSION

    later = Later(9, 1)
    refused: list[Refused] = []
    told = [envelope.messages for envelope, _ in envelopes(
        "n", "c", [later], lambda message, refusal, is_told: refused.append(refusal), protocol=PROTOCOLS[0])]

    assert [refusal.code for refusal in refused] == ["unsupported"]
    assert "upgrade" in refused[0].message
    assert [(type(message), message.request, message.code) for (message,) in told] == [  # type: ignore[attr-defined]
        (m.Failed, 9, "unsupported")]


@pytest.mark.parametrize("version", PROTOCOLS)
def test_an_envelope_says_what_its_sender_speaks(version: int) -> None:
    sent = Envelope("n", "c", (m.Greet(1),), version)

    assert msgpack.unpackb(encode(sent)[0])[0] == version
    assert decode(encode(sent)) == sent


@pytest.mark.parametrize("version", [0, 2, PROTOCOL_VERSION + 1])
def test_an_envelope_of_another_protocol_is_told_apart(version: int) -> None:
    with pytest.raises(UnknownProtocol, match=f"protocol {version}, this side 1 and 3 and 5 and 6; upgrade"):
        decode([msgpack.packb([version, "whatever comes"])])


def test_protocols_follow_the_rules() -> None:
    assert [protocol_of(rules) for rules in (1, 2, 3, 99)] == [1, 1, 3, PROTOCOL_VERSION]
    assert protocol_of(RULES) == PROTOCOL_VERSION >= GREETING_PROTOCOL


def test_a_node_s_entry_says_what_its_program_knows_and_not_what_one_before_it_knew() -> None:
    """A program that is older than the field carries it on, with another boot id."""
    entry = Registration("h", 1, boot="now", rules=RULES, rules_boot="now")

    assert Registration.decode(entry.encode()).known_rules == RULES
    assert attrs.evolve(entry, boot="later").known_rules == 2
    assert Registration("h", 1, boot="now").known_rules == 2
