"""The key that proves claims is replaced while nodes run, and no holder notices: all nodes know a key before any
proves by it, and what the one before has proved counts until its last lease has ended."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.machines import Machines
from node.test_proving import KEY, LEASE_MS, VERBS, Row, ask, begun, claim, enqueue
from skuld_py.config import LEASE_MS_MAX, FormerKey, Parameters
from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.events import KeyTold, Session, SessionChanged
from skuld_py.model.proofs import FORMER_MAX, NOTICE_MS, proofs_of, with_first_own_key, with_new_key
from skuld_py.node.knowledge.notary import Notary

NEWER = "1e" * 32
SKEW_MS = 200
GRACE_MS = 3_600_000


def told_of(parameters: Parameters) -> KeyTold:
    return KeyTold(parameters.claim_key, parameters.proofs_from_ms, parameters.claim_from_ms,
                   parameters.former_keys)


def replaced(machines: Machines, grace_ms: int = GRACE_MS) -> Parameters:
    return with_new_key(machines.parameters, NEWER, machines.now_ms, grace_ms, notice_ms=5_000)


def tell(machines: Machines, parameters: Parameters, *names: str) -> None:
    for name in names or machines.names:
        machines.give(name, told_of(parameters))


def is_proved_by(key: str, row: Row) -> bool:
    return row[2] == proofs_of(bytes.fromhex(key), [row[0]], [row[1].to_bytes(8, "big")])


@pytest.fixture
def machines() -> Machines:
    return begun(KEY)


def test_all_nodes_know_a_key_before_any_proves_by_it(machines: Machines) -> None:
    parameters = replaced(machines)
    tell(machines, parameters, machines.names[0])
    enqueue(machines)
    row, = claim(machines)
    assert is_proved_by(KEY, row), "others may not know the new one yet"
    for at in range(3):
        assert isinstance(ask(machines, VERBS["renew"](row, 0), at), m.Renewed)
    tell(machines, parameters)
    machines.pass_time(parameters.claim_from_ms - machines.now_ms)
    enqueue(machines)
    newer, = claim(machines)
    assert is_proved_by(NEWER, newer)
    for each in (row, newer):
        for at in range(3):
            assert isinstance(ask(machines, VERBS["append"](each, 0), at), m.Acked)
        assert isinstance(ask(machines, VERBS["complete"](each, 0), 1), m.Acked)


def test_what_a_former_key_proved_is_renewed_for_a_while_and_counts_until_the_last_lease_ends(
        machines: Machines) -> None:
    parameters = replaced(machines, grace_ms=10_000)
    tell(machines, parameters)
    for _ in range(3):
        enqueue(machines)
    rows = claim(machines)
    former, = parameters.former_keys
    machines.pass_time(former.renewed_until_ms - 1_000 - machines.now_ms)
    for row in rows:
        message = m.Renew(5, LEASE_MS_MAX, row[0], columns.pack_u64([row[1]]), row[2])
        answer = ask(machines, message)
        assert isinstance(answer, m.Renewed) and columns.unpack_u64(answer.ends)[0]
    machines.pass_time(former.renewed_until_ms - machines.now_ms)
    enqueue(machines)
    newer, = claim(machines)
    assert is_proved_by(NEWER, newer)
    mixed = m.Renew(5, LEASE_MS, b"".join(row[0] for row in (*rows, newer)),
                    columns.pack_u64([row[1] for row in (*rows, newer)]),
                    b"".join(row[2] for row in (*rows, newer)))
    answer = ask(machines, mixed)
    assert isinstance(answer, m.Renewed), answer
    assert [bool(end) for end in columns.unpack_u64(answer.ends)] == [False, False, False, True]
    assert answer.unknown == b"", "these are lost, that is sure"
    alone = ask(machines, m.Renew(5, LEASE_MS, rows[0][0], columns.pack_u64([rows[0][1]]), rows[0][2]))
    assert isinstance(alone, m.Renewed) and columns.unpack_u64(alone.ends) == (0,)
    forged = ask(machines, m.Renew(5, LEASE_MS, mixed.ids, mixed.tokens, mixed.proofs[:-8] + b"\x01" * 8))
    assert isinstance(forged, m.Failed) and forged.code == "unknown_claim" and "1 of 4" in forged.text
    machines.now_ms = former.until_ms - 1_000
    assert isinstance(ask(machines, VERBS["complete"](rows[0], 0)), m.Acked)
    machines.now_ms = former.until_ms
    answer = ask(machines, VERBS["complete"](rows[1], 0))
    assert isinstance(answer, m.Failed) and answer.code == "unknown_claim"
    machines.pass_time(5_000)
    enqueue(machines, queue="last")
    newer, = claim(machines, queue="last")
    answer = ask(machines, m.Renew(5, LEASE_MS, rows[1][0] + newer[0], columns.pack_u64([rows[1][1], newer[1]]),
                                   rows[1][2] + newer[2]))
    assert isinstance(answer, m.Renewed), "others are renewed beside it"
    assert [bool(end) for end in columns.unpack_u64(answer.ends)] == [False, True]


def test_a_node_that_is_cut_off_sends_who_shows_a_proof_that_it_does_not_know_elsewhere(
        machines: Machines) -> None:
    parameters = replaced(machines)
    cut, *others = machines.names
    machines.give(cut, SessionChanged(Session.SUSPENDED))
    tell(machines, parameters, *others)
    machines.pass_time(parameters.claim_from_ms - machines.now_ms)
    enqueue(machines)
    row = next(row for at in (1, 2, 1) for row in claim(machines, at=at))
    assert is_proved_by(NEWER, row)
    answer = ask(machines, VERBS["complete"](row, 0))
    assert isinstance(answer, m.Failed) and answer.is_definite and answer.code == "unavailable", answer
    answer = ask(machines, VERBS["complete"]((row[0], row[1], b""), 0))
    assert isinstance(answer, m.Failed) and answer.code == "unknown_claim", "no key proves what has no proof"
    tell(machines, parameters, cut)
    assert isinstance(ask(machines, VERBS["complete"](row, 0)), m.Acked)


def test_an_answer_is_known_again_no_longer_than_its_key_counts() -> None:
    former = FormerKey(KEY, 50, 100)
    notary, mint = Notary(KeyTold(NEWER, 0, 10, (former,))), ids.IdMint(1)
    granted = [m.ClaimBatch(b"".join(mint.mint(5, 9, 1)), 1 << 32, 9, columns.pack([b""] * 9))]
    (batch,) = notary.certified(9, granted)
    tokens = columns.pack_u64(range(1 << 32, (1 << 32) + 9))
    notary.check(99, batch.ids, tokens, batch.proofs)
    with pytest.raises(Refused, match="9 of 9"):
        notary.check(100, batch.ids, tokens, batch.proofs)


def test_a_key_that_leaked_proves_nothing_once_the_new_one_is_used(machines: Machines) -> None:
    known = attrs.evolve(replaced(machines), claim_from_ms=machines.now_ms)
    parameters = with_new_key(known, "2d" * 32, machines.now_ms, 0, notice_ms=1_000, is_leaked=True)
    tell(machines, parameters)
    enqueue(machines)
    row, = claim(machines)
    assert is_proved_by(NEWER, row) and isinstance(ask(machines, VERBS["append"](row, 0)), m.Acked)
    machines.pass_time(parameters.claim_from_ms - machines.now_ms)
    answer = ask(machines, VERBS["complete"](row, 0))
    assert isinstance(answer, m.Failed) and answer.code == "unknown_claim"


def test_what_cannot_be_replaced_is_refused_with_the_remedy() -> None:
    known = Parameters("c", "id", skew_ms=SKEW_MS)
    with pytest.raises(Refused, match="skuld cluster rules c --raise"):
        with_new_key(known, NEWER, 0, 0)
    known = attrs.evolve(known, claim_key=KEY)
    newer = with_new_key(known, NEWER, 0, 0)
    with pytest.raises(Refused, match="121 s from now"):
        with_new_key(newer, KEY, 0, 0)
    now_ms = 0
    for _ in range(FORMER_MAX):
        known = with_new_key(known, NEWER, now_ms, GRACE_MS)
        now_ms = known.claim_from_ms
    with pytest.raises(Refused, match="--leaked"):
        with_new_key(known, NEWER, now_ms, GRACE_MS)
    assert len(with_new_key(known, NEWER, now_ms, 0, is_leaked=True).former_keys) == 1
    later = with_new_key(known, NEWER, known.former_keys[0].until_ms, GRACE_MS)
    assert len(later.former_keys) == 1, "those that count no more are forgotten"


@given(st.data(), st.lists(st.integers(0, 3 * LEASE_MS_MAX), min_size=1, max_size=5))
def test_what_one_node_proves_every_other_one_takes_for_as_long_as_its_lease_lasts(
        data: st.DataObject, pauses: Sequence[int]) -> None:
    """Whenever keys are replaced, however long each node takes to hear of it, within the notice, and however far
    their clocks are apart, within the bound."""
    versions = [(0, Parameters("c", "id", skew_ms=SKEW_MS, claim_key="00" * 32))]
    for number, pause_ms in enumerate(pauses, 1):
        made_ms = max(versions[-1][0], versions[-1][1].claim_from_ms + SKEW_MS) + pause_ms
        grace_ms = data.draw(st.sampled_from((0, GRACE_MS, 10 * LEASE_MS_MAX)))
        versions.append((made_ms, with_new_key(versions[-1][1], f"{number:02x}" * 32, made_ms, grace_ms)))

    def notary_at(true_ms: int) -> tuple[Notary, int]:
        """A node as it may be then, and what its clock shows."""
        sure = max(at for at, (made_ms, _) in enumerate(versions) if made_ms <= max(0, true_ms - NOTICE_MS))
        known = [parameters for made_ms, parameters in versions[sure:] if made_ms <= true_ms]
        offset_ms = data.draw(st.integers(-SKEW_MS // 2, SKEW_MS // 2))
        return Notary(told_of(data.draw(st.sampled_from((known[0], known[-1]))))), true_ms + offset_ms

    around_ms = data.draw(st.sampled_from(versions[1:]))[1].claim_from_ms
    granted_ms = max(0, around_ms + data.draw(st.one_of(
        st.integers(-NOTICE_MS - 1_000, 1_000), st.integers(-SKEW_MS, SKEW_MS))))
    giver, clock_ms = notary_at(granted_ms)
    batch, = giver.certified(clock_ms, [m.ClaimBatch(bytes(20), 1 << 32, 9, columns.pack([b""]))])
    taker, clock_ms = notary_at(granted_ms + data.draw(st.one_of(
        st.integers(0, 100), st.integers(0, LEASE_MS_MAX), st.just(LEASE_MS_MAX))))
    taker.check(clock_ms, bytes(20), columns.pack_u64([1 << 32]), batch.proofs)


def test_no_key_that_a_stranger_has_noted_counts_for_longer_than_the_one_that_is_replaced() -> None:
    far, keys = 1 << 60, tuple(FormerKey(f"{each:064x}", 1 << 60, 1 << 60) for each in range(FORMER_MAX))
    known = Parameters("c", "id", claim_key=KEY, claim_from_ms=far, proofs_from_ms=far, former_keys=keys)
    made = with_first_own_key(known, NEWER, 1_000, GRACE_MS)
    assert (made.claim_key, made.claim_from_ms) == (NEWER, 1_000)
    assert made.former_keys[0].key == KEY and len(made.former_keys) == FORMER_MAX
    assert {(each.renewed_until_ms, each.until_ms) for each in made.former_keys} == {
        (1_000 + GRACE_MS, made.proofs_from_ms + GRACE_MS)}
    assert made.proofs_from_ms == 1_000 + LEASE_MS_MAX + known.skew_ms
