"""What travels comes back equal, equal things are equal bytes, and whatever is wrong is named."""

from __future__ import annotations

import attrs
import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import strategies
from skuld_py.config import DEFAULT_LIMITS, LEASE_MS_MAX, PROTOCOL_VERSION, Limits
from skuld_py.errors import Refused
from skuld_py.model import bounds, columns, fields
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.columns import Column
from skuld_py.model.history import HISTORY_HEAD, encode_claim
from skuld_py.model.names import NAME
from skuld_py.model.outcomes import LOG_SEQS
from skuld_py.wire import codec, schema
from skuld_py.wire.codec import Envelope, check_role, decode, encode
from skuld_py.wire.stream import Fault

JOBS = Header("jobs").encode()
ID = bytes(range(20))


def travel(*messages: m.Message) -> tuple[m.Message, ...]:
    """What arrives."""
    return decode(encode(Envelope("n", "main", messages))).messages


def batch(*payloads: bytes) -> m.TaskBatch:
    return m.TaskBatch(JOBS, ID * len(payloads), columns.pack(payloads))


# -- there and back ------------------------------------------------------------------------------


@pytest.mark.parametrize("of", m.MESSAGES, ids=lambda of: str(of.__name__))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_every_message_comes_back_equal_and_in_the_same_bytes(
    of: type[m.Message], data: st.DataObject
) -> None:
    envelope = Envelope("node-1:5000", "main", (data.draw(strategies.messages(of)),))

    frames = encode(envelope)

    assert decode(frames) == envelope
    assert encode(decode(frames)) == frames


@settings(max_examples=50, deadline=None)
@given(strategies.envelopes())
def test_an_envelope_of_several_messages_comes_back(envelope: Envelope) -> None:
    frames = encode(envelope)

    assert decode(frames) == envelope
    assert encode(decode(frames)) == frames


def test_the_header_is_positional_and_data_is_in_frames_of_its_own() -> None:
    request = m.Enqueue(7, 2, (batch(b"one", b""), batch(), batch(b"three")))

    frames = encode(Envelope("", "main", (request, m.Greet(8))))

    lengths = b"\0\0\0\3\0\0\0\0"
    rows = [[JOBS, ID * 2, [lengths, 1]], [JOBS, b"", [b"", 0]], [JOBS, ID, [b"\0\0\0\5", 2]]]
    assert msgpack.unpackb(frames[0]) == [PROTOCOL_VERSION, "main", "", [[3, 7, 2, rows], [0, 8]]]
    assert frames[1:] == [b"one", b"three"]


BODY = encode_body(Header("jobs").encode(), b"x")
LONGEST = bytes(HISTORY_HEAD.size) + b"".join(
    [encode_claim((1 << 32) + number, 1, 2, b"w" * 255) for number in range((1 << 20) // 281 - 1)])
SEVERAL = fields.Blob | fields.Numbers | fields.Partitions | fields.Strings
LARGEST = {
    "ids and places": m.Grant(1, 2, 3, (3 << 32) + 4, 5, 6, "w" * 200, "q" * 200, ID * 1_000, b"prio" * 1_000),
    "text": m.Failed(bounds.U63_MAX, "c" * 64, "\U0001d11e" * 1_000, True),
    "payload": m.Enqueue(0, 9, (batch(b"x" * DEFAULT_LIMITS.payload_bytes),)),
    "batch": m.Enqueue(0, 9, (batch(*[b"x"] * 999), batch(b"y"))),
    "entries": m.Append(0, 0, ID, 1 << 32, LOG_SEQS - 1_000, columns.pack([b"x" * 1_000] * 1_000)),
    "history": m.Repair(1, (m.TaskRow(ID, Column(), LONGEST, b"", b"", Column()),)),
    "payload under an older limit": m.Replicate(0, (batch(b"x" * (DEFAULT_LIMITS.payload_bytes + 1)),)),
    "leads": m.Gossip(tuple(m.LeaderRow(p, bounds.U32_MAX, bounds.U32_MAX, ("n1", "n2", "n3"))
                            for p in range(4_096)), ("q",) * 1_000, heads=b"h" * 24_000, settings=bounds.U63_MAX),
    "settings": m.PullSettings(columns.pack([b"k" * 409] * 11_000), b"digest88" * 11_000),
    "rows": m.Got(1, (m.TaskRow(ID, columns.pack([BODY]), bytes(24), b"", b"", Column()),) * 1_000),
    "counts": m.Counted(1, b"", b"", (m.CountRow(0, "q", -bounds.U32_MAX, 0, 1, 0, 0, 0, 0),) * 100_000),
}


@pytest.mark.parametrize("message", LARGEST.values(), ids=LARGEST.keys())
def test_the_largest_values_travel(message: m.Message) -> None:
    assert travel(message) == (message,)


def test_failures_with_an_error_and_without_one_travel_together() -> None:
    token = (1 << 32 | 1).to_bytes(8, "big")
    history, place = columns.pack([b"", b""]), columns.pack([b"", b""])
    amend = m.Amend(1, 0, 1, ID + ID, history, place, token + bytes(8), columns.pack([b"disk full", b""]))

    assert travel(amend) == (amend,)


def test_fields_said_to_list_the_same_things_exist_and_list_something() -> None:
    for of in (*m.MESSAGES, m.TaskBatch, m.ClaimBatch, m.TaskRow):
        kinds = {field.name: field.metadata["kind"] for field in attrs.fields(of)}
        for name in getattr(of, "columns", ()):
            assert isinstance(kinds[name], SEVERAL), (of, name)


# -- what a sender is told -----------------------------------------------------------------------


SMALL = Limits(message_bytes=4_000)
TOO_LARGE: dict[str, tuple[list[m.Message], Limits]] = {
    "messages": ([m.Greet(1)] * (codec.MESSAGES_MAX + 1), DEFAULT_LIMITS),
    "items": ([LARGEST["counts"]] * 2, DEFAULT_LIMITS),
    "items, as names": ([m.Gossip((), ("q",) * 1_000)] * 131, DEFAULT_LIMITS),
    "frames": ([m.Enqueue(1, 0, (batch(b"x"),))] * codec.FRAMES_MAX, DEFAULT_LIMITS),
    "header bytes": ([m.Get(1, ID * 50)], SMALL),
    "bytes": ([m.Enqueue(1, 0, (batch(b"x" * 4_000),))], SMALL),
}


@pytest.mark.parametrize("what", TOO_LARGE)
def test_what_a_receiver_would_not_take_is_not_sent(what: str) -> None:
    messages, limits = TOO_LARGE[what]
    counted = what.partition(",")[0]

    with pytest.raises(Refused, match=rf"envelope: \d+ {counted}, more than \d+; send less at once") as refused:
        encode(Envelope("", "main", tuple(messages)), limits)

    assert refused.value.code == "too_large"


@pytest.mark.parametrize("message", [m.Acked(1 << 64, 1), m.Failed(1, "code", "\ud800", True)])
def test_what_msgpack_cannot_say_is_refused(message: m.Message) -> None:
    with pytest.raises(Refused, match="out of range") as refused:
        encode(Envelope("", "main", (message,)))

    assert refused.value.code == "unencodable"


# -- roles ---------------------------------------------------------------------------------------

ONLY_CLIENTS_SEND = (m.Greet, m.Enqueue, m.Claim, m.Count, m.Describe, m.Await, m.ReadLog, m.Report,
                     m.Submit, m.Kill, m.Advance, m.Survey, m.Follow, m.Steer, m.Retire, m.Recall,
                     m.Evict)
BOTH_SEND = (m.Renew, m.Append, m.Complete, m.Get, m.List, m.GetSettings, m.PutSetting, m.Conclude,
             m.Cancel, m.Revive, m.Offer, m.Discard, m.Muster)


@settings(max_examples=1, deadline=None)
@given(data=st.data())
def test_a_client_may_ask_and_a_node_may_do_the_rest(data: st.DataObject) -> None:
    for of in m.MESSAGES:
        message = data.draw(strategies.messages(of))
        may = {m.ROLE_CLIENT: of in ONLY_CLIENTS_SEND + BOTH_SEND, m.ROLE_NODE: of not in ONLY_CLIENTS_SEND}
        for role, is_allowed in may.items():
            if is_allowed:
                check_role(message, role)
            else:
                with pytest.raises(Refused, match=rf"{of.__name__}: a (client|node) may not send this"):
                    check_role(message, role)


def test_a_role_that_does_not_exist_may_send_nothing() -> None:
    with pytest.raises(Refused, match="Renew: a stranger may not send this") as refused:
        check_role(m.Renew(1, 1, b"", b""), 4)

    assert refused.value.code == "forbidden"
    assert refused.value.facts == {"operation": "Renew", "role": 4}


def test_lease_limits_are_those_of_the_configuration() -> None:
    assert travel(m.Claim(1, "q", 1, LEASE_MS_MAX, LEASE_MS_MAX, "w"))


def test_what_is_too_long_for_a_name_is_not_kept() -> None:
    check, kept = schema.check_name(fields.Name()), schema._FITS[NAME]
    known = kept.cache_info().currsize

    for letter in "abc":
        with pytest.raises(Fault, match="is no name"):
            check(letter * (schema.LONGEST_NAME + 1))
    assert kept.cache_info().currsize == known
