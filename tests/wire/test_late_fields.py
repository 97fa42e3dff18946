"""Fields that the release before lacks: they travel only when used, and what comes without them is read."""

from __future__ import annotations

import attrs
import msgpack
import pytest

from skuld_py.crdt import Min
from skuld_py.errors import Malformed, Refused
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.checkpoint import BYTES_MAX, Checkpoint
from skuld_py.model.columns import Column, pack, pack_u64
from skuld_py.model.history import DEP_FAILED, EMPTY_HISTORY, History, death_of, revival_of
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.wire.codec import Envelope, decode, encode

ID, TOKENS, PROOF = bytes(20), pack_u64([FIRST_TOKEN]), b"12345678"
BEFORE: dict[str, tuple[m.Message, int]] = {
    "Claim": (m.Claim(1, "q", 1, 5, 5, "w"), 6),
    "Renew": (m.Renew(1, 5, ID, TOKENS), 4),
    "Append": (m.Append(1, 0, ID, FIRST_TOKEN, 0, pack([b"x"])), 7),
    "Complete": (m.Complete(1, 0, 0, ID, TOKENS), 7),
    "Describe": (m.Describe(1), 1),
    "Conclude": (m.Conclude(1, 3, -1, ID, TOKENS), 6),
}
"""What the release before says, and of how many fields."""


def fields_of(message: m.Message) -> list[object]:
    _, *fields = msgpack.unpackb(encode(Envelope("", "c", (message,)))[0])[3][0]
    return list(fields)


def used(message: m.Message) -> m.Message:
    late = {m.Claim: {"takes_proofs": True}, m.Describe: {"reads_unproven": True}}
    return attrs.evolve(message, **late.get(type(message), {"proofs": PROOF}))


@pytest.mark.parametrize("name", BEFORE)
def test_what_is_not_used_does_not_travel_and_is_read_without(name: str) -> None:
    message, count = BEFORE[name]

    assert len(fields_of(message)) == count
    assert decode(encode(Envelope("", "c", (message,)))).messages == (message,)
    assert len(fields_of(used(message))) == count + 1
    assert decode(encode(Envelope("", "c", (used(message),)))).messages == (used(message),)


def test_rows_are_without_them_too() -> None:
    batch = m.ClaimBatch(b"", FIRST_TOKEN, 5, Column())
    bodies = pack([encode_body(Header("q").encode(), b"x")])
    for each, count in ((batch, 4), (attrs.evolve(batch, ids=ID, bodies=bodies, proofs=PROOF), 5)):
        claimed = m.Claimed(1, 0, (each,))
        rows = fields_of(claimed)[2]
        assert isinstance(rows, list) and len(rows[0]) == count
        assert decode(encode(Envelope("n", "c", (claimed,)))).messages == (claimed,)


def test_nodes_that_know_no_final_failure_hear_of_a_failure() -> None:
    final = m.Conclude(1, 3, -1, ID, TOKENS, is_final=True)

    assert len(fields_of(final)) == BEFORE["Conclude"][1] + 2
    for protocol, is_final in ((1, False), (3, True)):
        heard, = decode(encode(Envelope("", "c", (final,), protocol))).messages
        assert isinstance(heard, m.Conclude) and heard.is_final is is_final


@pytest.mark.parametrize("name", [name for name in BEFORE if hasattr(BEFORE[name][0], "proofs")])
@pytest.mark.parametrize("proofs", [PROOF * 2, PROOF[:7]])
def test_there_is_a_proof_for_each_claim_or_none_at_all(name: str, proofs: bytes) -> None:
    wrong = attrs.evolve(BEFORE[name][0], proofs=proofs)  # type: ignore[call-arg]

    with pytest.raises(Malformed, match=rf"{name}\.proofs"):
        decode(encode(Envelope("", "c", (wrong,))))


@pytest.mark.parametrize("more", [-2, 2])
def test_no_other_count_of_fields_is_one(more: int) -> None:
    fields = fields_of(used(BEFORE["Renew"][0]))
    fields = fields[:more] if more < 0 else fields + [0] * (more - 1)

    with pytest.raises(Malformed, match="fields, not 5"):
        decode([msgpack.packb([1, "c", "", [[7, *fields]]])])


def with_checkpoint() -> m.Append:
    return m.Append(1, 0, ID, FIRST_TOKEN, 0, Column(), number=7, at_ms=5, checkpoint=pack([b"half"]))


def test_a_checkpoint_is_not_lost_on_the_way_to_who_does_not_know_of_any() -> None:
    said = with_checkpoint()

    assert decode(encode(Envelope("", "c", (said,)))).messages == (said,)
    with pytest.raises(Refused, match=r"Append\.checkpoint.*protocol 1.*raise its rules") as refused:
        encode(Envelope("", "c", (said,), 1))
    assert refused.value.code == "unsupported"
    assert encode(Envelope("", "c", (BEFORE["Append"][0],), 1))


def test_readers_of_an_older_protocol_are_shown_a_task_without_its_checkpoint() -> None:
    record = Checkpoint(FIRST_TOKEN, 7, 5, b"half").encode()
    row = m.TaskRow(ID, Column(), b"", pack_u64([0, FIRST_TOKEN]), pack_u64([0, 0]), pack([record, b"x"]))
    plain = m.TaskRow(ID, Column(), b"", pack_u64([FIRST_TOKEN]), pack_u64([0]), pack([b"x"]))
    got = m.Got(1, (row, plain))

    assert decode(encode(Envelope("n", "c", (got,)))).messages == (got,)
    assert decode(encode(Envelope("n", "c", (got,), 1))).messages == (m.Got(1, (plain, plain)),)


def test_readers_of_an_older_protocol_are_not_told_when_a_task_died_of_another() -> None:
    """They would take that for damage."""
    both = History(cancelled=Min((3, 0)), revived=revival_of(1, 7))
    new, old = (attrs.evolve(both, died=death_of(1, DEP_FAILED, when_ms)).encode() for when_ms in (5, 0))
    slot = Checkpoint(FIRST_TOKEN, 7, 5, b"half").encode()

    def told(history: bytes, has_slot: bool = False) -> tuple[m.Message, ...]:
        notes = (pack_u64([0]), pack_u64([0]), pack([slot])) if has_slot else (b"", b"", Column())
        row, page = m.TaskRow(ID, Column(), history, *notes), pack([b"", history, EMPTY_HISTORY.encode()])
        bodies = pack([encode_body(Header("q").encode(), b"")] * 3)
        return (m.Got(1, (row,)), m.Listed(1, b"", b"", ID * 3, bodies, page),
                m.Offered(1, 1, True, (), ID * 3, bytes(24), b"", (row,), bodies=bodies, histories=page))
    said = told(new, has_slot=True)

    assert decode(encode(Envelope("n", "c", said))).messages == said
    assert decode(encode(Envelope("n", "c", said, 5))).messages == told(old, has_slot=True)
    assert decode(encode(Envelope("n", "c", said[:2], 1))).messages == told(old)[:2]
    assert decode(encode(Envelope("n", "c", told(old), 5))).messages == told(old)


@pytest.mark.parametrize("record", [b"", bytes(19), Checkpoint(1, 0, 0, b"").encode(),
                                    Checkpoint(FIRST_TOKEN, 0, 1 << 63, b"").encode(),
                                    Checkpoint(FIRST_TOKEN, 0, 0, bytes(BYTES_MAX + 1)).encode()])
def test_a_row_holds_no_checkpoint_that_is_none(record: bytes) -> None:
    row = m.TaskRow(ID, Column(), b"", pack_u64([0]), pack_u64([0]), pack([record]))

    with pytest.raises(Malformed, match=r"entries.*checkpoint"):
        decode(encode(Envelope("n", "c", (m.Got(1, (row,)),))))


def test_a_checkpoint_is_no_larger_than_one_may_be() -> None:
    for size, is_fine in ((BYTES_MAX, True), (BYTES_MAX + 1, False)):
        frames = encode(Envelope("", "c", (attrs.evolve(with_checkpoint(), checkpoint=pack([bytes(size)])),)))
        if is_fine:
            assert decode(frames)
        else:
            with pytest.raises(Malformed, match=r"Append\.checkpoint"):
                decode(frames)


def test_who_speaks_an_older_protocol_is_not_told_what_is_frozen() -> None:
    said = m.Steered(1, 4, 0, (), (m.FrozenRow(3, "ann", 0),))

    assert decode(encode(Envelope("n", "c", (said,), 5))).messages == (said,)
    assert decode(encode(Envelope("n", "c", (said,), 3))).messages == (m.Steered(1, 4, 0, ()),)


def test_who_speaks_an_older_protocol_is_asked_for_tasks_of_any_key() -> None:
    asked = m.List(1, "q", b"", 9, key="a")

    assert decode(encode(Envelope("", "c", (asked,), 5))).messages == (asked,)
    assert decode(encode(Envelope("", "c", (asked,), 3))).messages == (m.List(1, "q", b"", 9),)
