"""Only a claim that was granted completes, notes, renews or ends: whatever else is asked for is refused and stored
nowhere, with any ``w`` and without a leader; and who reads is never shown what proves a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b

import attrs
import pytest

from node.machines import Machines
from skuld_py.errors import Refused
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import ON_FAILURE_WAIT, Body, Header, split_body
from skuld_py.model.events import KeyTold, Received
from skuld_py.model.history import FAILED, RELEASED, SNOOZED, token_of
from skuld_py.model.proofs import NO_PROOF, from_text, proofs_of
from skuld_py.node.knowledge.notary import GIVEN_MAX, Notary
from skuld_py.wire.codec import Envelope, encode

KEY = "0f" * 32
LEASE_MS = 20_000
TABLES = ("body", "history", "log")

Row = tuple[bytes, int, bytes]
"""Id, token and proof."""
Make = Callable[[Row, int], m.Message]

VERBS: dict[str, Make] = {
    "complete": lambda row, w: m.Complete(5, w, 0, row[0], columns.pack_u64([row[1]]), b"", columns.pack([b"r"]),
                                          row[2]),
    "append": lambda row, w: m.Append(5, w, row[0], row[1], 0, columns.pack([b"entry"]), proofs=row[2]),
    "renew": lambda row, w: m.Renew(5, LEASE_MS, row[0], columns.pack_u64([row[1]]), row[2]),
    "release by renewal": lambda row, w: m.Renew(5, 0, row[0], columns.pack_u64([row[1]]), row[2]),
    **{name: lambda row, w, kind=kind: m.Conclude(  # type: ignore[misc]
        5, kind, 0, row[0], columns.pack_u64([row[1]]), proofs=row[2])
       for name, kind in {"release": RELEASED, "snooze": SNOOZED, "fail": FAILED}.items()},
}


@pytest.fixture
def machines() -> Machines:
    return begun(KEY)


def begun(key: str = "", from_ms: int = 0) -> Machines:
    made = Machines(partitions=2, claim_key=key, proofs_from_ms=from_ms)
    made.pass_time(3_000)
    assert made.documents[0][1].leader and made.documents[1][1].leader
    return made


def ask(machines: Machines, message: m.Message, at: int = 0) -> m.Message:
    client = b"client %d" % len(machines.answers)
    machines.ask(machines.names[at], message, client)
    machines.pass_time(300)
    answer, = machines.answers_to(client)
    return answer


def enqueue(machines: Machines, queue: str = "q", route: int = 0, deps: tuple[bytes, ...] = ()) -> bytes:
    task_id, = machines.mint.mint(machines.now_ms, 1, route)
    header = Header(queue, policy=ON_FAILURE_WAIT if deps else 0, dep_wait_ms=3_600_000 if deps else 0)
    raw, rest = split_body(Body(header, deps=deps).encode())
    assert isinstance(ask(machines, m.Enqueue(1, 0, (m.TaskBatch(raw, task_id, columns.pack([rest])),))), m.Acked)
    return task_id


def claim(machines: Machines, queue: str = "q", at: int = 0, takes_proofs: bool = True) -> list[Row]:
    answer = ask(machines, m.Claim(2, queue, 10, LEASE_MS, 0, "w", takes_proofs), at)
    assert isinstance(answer, m.Claimed), answer
    return [(task_id, batch.first_token + index, batch.proofs[8 * index : 8 * index + 8])
            for batch in answer.batches for index, task_id in enumerate(ids.split(batch.ids))]


def stored(machines: Machines) -> list[dict[bytes, bytes]]:
    return [dict(store.rows(table)) for store in machines.stores.values() for table in TABLES]


def blocked(machines: Machines) -> int:
    """How many tasks wait for others."""
    answer = ask(machines, m.Count(9, "then"))
    assert isinstance(answer, m.Counted)
    return sum(row.blocked for row in answer.rows)


def test_a_proof_is_the_keyed_hash_that_the_protocol_names() -> None:
    key, task_id, token = b"k" * 32, b"i" * 20, token_of(3, 4).to_bytes(8, "big")
    assert proofs_of(key, [task_id] * 2, [token] * 2) == 2 * blake2b(key + task_id + token).digest()[:8]
    assert from_text("00ff" * 4) == b"\0\xff" * 4 and from_text("") == b""
    for text in ("00ff", "zz" * 8, "00ff" * 5, " 0ff" * 4, "00 ff" * 4):
        with pytest.raises(Refused, match="16 hex digits"):
            from_text(text)


def test_an_answer_is_known_again_as_a_whole_and_nothing_else_is(monkeypatch: pytest.MonkeyPatch) -> None:
    notary, mint = Notary(KeyTold("ab" * 32, 0)), ids.IdMint(1)
    granted = [m.ClaimBatch(b"".join(mint.mint(5, size, route)), token_of(route, 1), 9, columns.pack([b""] * size))
               for route, size in ((1, 5), (2, 7))]
    batches = notary.certified(1, granted)
    task_ids, proofs = (b"".join(getattr(batch, name) for batch in batches) for name in ("ids", "proofs"))
    tokens = b"".join(columns.pack_u64(range(batch.first_token, batch.first_token + len(batch.ids) // 20))
                      for batch in batches)
    assert proofs == proofs_of(b"\xab" * 32, ids.split(task_ids), columns.split(tokens, 8))
    hashed: list[int] = []

    def counted(key: bytes, named: Sequence[bytes], numbers: Sequence[bytes]) -> bytes:
        hashed.append(len(named))
        return proofs_of(key, named, numbers)

    monkeypatch.setattr("skuld_py.node.knowledge.notary.proofs_of", counted)
    notary.check(1, task_ids, tokens, proofs)
    assert hashed == []
    notary.check(1, task_ids[20:], tokens[8:], proofs[8:])
    assert hashed == [11]
    for column in ((task_ids[::-1], tokens, proofs), (task_ids, tokens[::-1], proofs),
                   (task_ids, tokens, proofs[::-1]), (task_ids, tokens, b"")):
        with pytest.raises(Refused, match="never granted"):
            notary.check(1, *column)
    for _ in range(2_000):
        notary.certified(1, granted[1:] * 2)
        granted[1] = attrs.evolve(granted[1], first_token=granted[1].first_token + 7)
    assert len(notary._given) == GIVEN_MAX


@pytest.mark.parametrize("verb", VERBS)
def test_a_granted_claim_acts_at_every_node(machines: Machines, verb: str) -> None:
    for at in range(3):
        enqueue(machines, route=at)
        row, *_ = claim(machines, at=at)
        answer = ask(machines, VERBS[verb](row, 1), (at + 1) % 3)
        assert isinstance(answer, m.Acked | m.Renewed)
        assert isinstance(answer, m.Acked) or columns.unpack_u64(answer.ends)[0]


def never_granted(machines: Machines) -> Iterator[tuple[str, Row]]:
    """Claims as a caller may come by them who was granted none of them. ``first`` is held, ``other`` too, both of
    one partition; one more waits, one is blocked, one is not there."""
    first, other = enqueue(machines), enqueue(machines)
    held = {row[0]: row for row in claim(machines)}
    waiting = enqueue(machines)
    behind = enqueue(machines, "then", deps=(waiting,))
    unknown, = machines.mint.mint(machines.now_ms, 1, 0)
    (_, token, proof), (_, others, _) = held[first], held[other]
    guess = token_of(1, 1)
    yield "waiting", (waiting, guess, NO_PROOF)
    yield "blocked", (behind, guess, b"")
    yield "unknown", (unknown, guess, b"")
    yield "waiting, by another's claim", (waiting, token, proof)
    yield "blocked, by another's claim", (behind, token, proof)
    yield "unknown, by another's claim", (unknown, token, proof)
    yield "held, the next token", (first, token + 100, proof)
    yield "held, the highest token", (first, (1 << 63) - 1, proof)
    yield "held, as readers see it", (first, token, b"")
    yield "held, with a proof made up", (first, token, b"\x01" * 8)
    yield "held, by the other claim", (first, others, proof)
    yield "the other one, by this proof", (other, others, proof)


@pytest.mark.parametrize("verb", VERBS)
def test_what_was_never_granted_does_nothing(machines: Machines, verb: str) -> None:
    for name, row in list(never_granted(machines)):
        before = stored(machines)
        for at, w in ((0, 0), (1, 1), (2, 3)):
            answer = ask(machines, VERBS[verb](row, w), at)
            assert isinstance(answer, m.Failed) and answer.is_definite, (name, answer)
            assert answer.code == "unknown_claim" and ids.to_text(row[0]) in answer.text, (name, answer)
        assert stored(machines) == before, name
    assert blocked(machines) == 1, "the dependent goes on waiting"


def test_one_claim_among_many_that_was_not_granted_is_named_and_none_completes(machines: Machines) -> None:
    for _ in range(3):
        enqueue(machines)
    rows = claim(machines)
    task_ids, tokens = b"".join(row[0] for row in rows), columns.pack_u64([row[1] for row in rows])
    before = stored(machines)
    for wrong in (NO_PROOF, b"\x01" * 8):
        answer = ask(machines, m.Complete(5, 0, 0, task_ids, tokens, proofs=rows[0][2] + wrong + rows[2][2]))
        assert isinstance(answer, m.Failed) and answer.code == "unknown_claim"
        assert "1 of 3" in answer.text and ids.to_text(rows[1][0]) in answer.text
        assert ids.to_text(rows[0][0]) not in answer.text
    assert stored(machines) == before
    proofs = b"".join(row[2] for row in rows)
    assert isinstance(ask(machines, m.Complete(5, 0, 0, task_ids, tokens, proofs=proofs)), m.Acked)


def test_a_completion_needs_no_leader(machines: Machines) -> None:
    enqueue(machines)
    row, = claim(machines)
    for node in machines.nodes.values():
        for vnode in node.view.vnodes:
            if vnode.is_leading:
                vnode.resign(machines.now_ms)
    assert isinstance(ask(machines, VERBS["complete"]((row[0], row[1], NO_PROOF), 1)), m.Failed)
    assert isinstance(ask(machines, VERBS["complete"](row, 1)), m.Acked)


def test_proofs_go_to_who_claims_and_to_nobody_else(machines: Machines) -> None:
    """Not between nodes, and in no answer of a reader."""
    sent: list[m.Message] = []
    machines.is_lost = lambda message: bool(sent.append(message))  # type: ignore[func-returns-value]
    for route in (0, 1):
        enqueue(machines, route=route)
    rows = [row for at in range(3) for row in claim(machines, at=at)]
    assert len(rows) == 2 and all(any(row[2]) for row in rows)
    for verb in ("append", "renew", "complete"):
        for row in rows:
            assert not isinstance(ask(machines, VERBS[verb](row, 0)), m.Failed)
    named = b"".join(row[0] for row in rows)
    read = [ask(machines, question) for question in (
        m.Get(6, named), m.List(6, "", bytes(20), 100), m.ReadLog(6, rows[0][0], 0, 0, 9, 0), m.Await(6, named, 0),
        m.Describe(6), m.Greet(6), m.Count(6, ""))]
    assert sum(isinstance(message, m.Complete | m.Append | m.Renew | m.Claimed) for message in sent) >= 6
    for message in (*sent, *read):
        data = b"".join(encode(Envelope("n", "test", (message,))))
        assert not any(row[2] in data for row in rows), message
        assert bytes.fromhex(KEY) not in data and KEY.encode() not in data
    events = [event.message for _, event in machines.flying if isinstance(event, Received)]
    assert not any(getattr(message, "proofs", b"") for message in events)


def test_a_client_that_keeps_no_proofs_is_told_so_before_it_holds_anything(machines: Machines) -> None:
    enqueue(machines)
    answer = ask(machines, m.Claim(2, "q", 1, LEASE_MS, 0, "w"))
    assert isinstance(answer, m.Failed) and answer.code == "old_client" and answer.is_definite
    assert len(claim(machines)) == 1


@pytest.mark.parametrize(("key", "from_ms", "is_unproven"), [("", 0, True), (KEY, 1 << 60, True), (KEY, 0, False)])
def test_who_reads_it_is_told_that_claims_count_without_a_proof(key: str, from_ms: int, is_unproven: bool) -> None:
    machines = begun(key, from_ms)
    for reads in (True, False):
        answer = ask(machines, m.Describe(2, reads))
        assert isinstance(answer, m.Described) and answer.is_unproven is (is_unproven and reads)
    assert machines.nodes[machines.names[0]].description().is_unproven is is_unproven, "for its metrics"


def test_a_cluster_without_a_key_takes_what_it_took_before() -> None:
    machines = begun()
    waiting = enqueue(machines)
    assert isinstance(ask(machines, VERBS["complete"]((waiting, token_of(1, 1), b""), 0)), m.Acked)
    enqueue(machines)
    assert [row[2] for row in claim(machines)] == [b""]


def test_a_key_is_drawn_while_nodes_run_and_claims_from_before_count_for_a_while() -> None:
    machines = begun()
    old, new = [enqueue(machines) for _ in range(2)]
    before = {row[0]: row for row in claim(machines, takes_proofs=False)}
    from_ms = machines.now_ms + 60_000
    for name in machines.names:
        machines.give(name, KeyTold(KEY, from_ms))
    assert isinstance(ask(machines, VERBS["renew"](before[old], 0)), m.Renewed), "granted before there was a key"
    enqueue(machines)
    assert [row[2] for row in claim(machines, takes_proofs=False)] == [b""], "a client of the release before"
    enqueue(machines)
    proved, = claim(machines)
    wrong = attrs.astuple(m.Renew(5, LEASE_MS, old + new, columns.pack_u64([before[old][1], before[new][1]]),
                                  NO_PROOF + b"\x01" * 8))
    answer = ask(machines, m.Renew(*wrong))
    assert isinstance(answer, m.Failed) and "1 of 2" in answer.text, "a wrong proof is refused at any time"
    assert isinstance(ask(machines, VERBS["complete"](before[new], 0)), m.Acked)
    machines.pass_time(from_ms - machines.now_ms)
    answer = ask(machines, VERBS["complete"](before[old], 0))
    assert isinstance(answer, m.Failed) and answer.code == "unknown_claim"
    assert isinstance(ask(machines, VERBS["complete"](proved, 0)), m.Acked)
