"""Transfer of a replica: what a joiner takes over, and what it does not."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from cluster.test_playing import Log
from skuld_py.cluster.log.commands import AddSlot
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica, Slot
from skuld_py.cluster.scale.transfer import Fetching, Lending, digest_of
from skuld_py.config import RULES
from skuld_py.config.scaling import Scaling
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import PART_BYTES, FetchReplica, NotNow, ReplicaPart

OPTIONS = Scaling(transfer=True, part_ms=500, part_tries=3, snapshots=2, snapshot_ms=3_000)


def log_of(*names: str) -> Log:
    log = Log()
    for name in names:
        log.join(name)
    return log


def large(replica: Replica) -> Replica:
    """The same with so many slots that its text has several parts."""
    slots = {f"slot-{index:06}": Slot("a", ("t" * 50,)) for index in range(8_000)}
    return attrs.evolve(replica, slots=slots)


def question(at_least: int = -1, joiner: str = "x", cluster_id: str = "c1") -> FetchReplica:
    return FetchReplica(cluster_id, joiner, -1, at_least, 0)


def fetching(asked: FetchReplica | None = None) -> Fetching:
    return Fetching(asked or question(), "a", 3, OPTIONS)


Change = Callable[[ReplicaPart], ReplicaPart]


def transfer(lender: Lending, fetch: Fetching, replica: Replica, change: Change = lambda part: part) -> int:
    """Let them talk until it is over; the number of parts that travelled."""
    sends, parts = fetch.start(0), 0
    while sends:
        (send,) = sends
        assert send.peer == "a"
        assert isinstance(send.message, FetchReplica)
        (answer,) = lender.on_fetch(0, "x", send.message, replica)
        if isinstance(answer.message, NotNow):
            fetch.on_not_now("a", answer.message)
            break
        assert isinstance(answer.message, ReplicaPart)
        assert len(answer.message.data) <= PART_BYTES
        parts += 1
        sends = fetch.on_part(0, "a", change(answer.message))
    return parts


# -- what is taken over ----------------------------------------------------------------------------


def test_a_replica_comes_whole_and_playing_on_gives_what_replaying_gives() -> None:
    log, fetch = log_of("a", "b", "x"), fetching(question(at_least=3))
    log.replica = large(log.replica)

    assert transfer(Lending("c1", OPTIONS), fetch, log.replica) == 3
    assert fetch.replica is not None
    assert fetch.deadline() is None
    assert fetch.replica.digest() == log.replica.digest()
    played = log.write("a", AddSlot("another", "b"))
    assert played.entry is not None
    there = play(fetch.replica, played.position, played.entry.encode()).replica
    assert there.digest() == log.replica.digest()


def of_another_text(part: ReplicaPart) -> ReplicaPart:
    return attrs.evolve(part, data=part.data[:-1] + bytes([part.data[-1] ^ 1]))


def with_text(change: Callable[[bytes], bytes]) -> Change:
    """Another text under its own, right digest."""
    def changed(part: ReplicaPart) -> ReplicaPart:
        text = change(part.data)
        return attrs.evolve(part, data=text, digest=digest_of(text))
    return changed


WRONG: dict[str, Change] = {
    "a bit": of_another_text,
    "a slot's name, which parses": lambda part: attrs.evolve(part, data=part.data.replace(b"slot-1", b"slot-2")),
    "the digest": lambda part: attrs.evolve(part, digest=b"0" * 16),
    "the position": lambda part: attrs.evolve(part, version=part.version + 1),
    "no JSON": with_text(lambda text: text[1:]),
    "no UTF-8": with_text(lambda text: b"\xff" + text),
    "a blank, which is not canonical": with_text(lambda text: text.replace(b":", b": ", 1)),
    "no copies": with_text(lambda text: text.replace(b'"replicas":3', b'"replicas":0')),
    "another number of copies, which older rules have not": with_text(lambda text: text.replace(
        b'"replicas":3', b'"replicas":2').replace(b'"rules":%d' % RULES, b'"rules":3')),
    "rules of a later version": with_text(lambda text: text.replace(b'"rules":%d' % RULES, b'"rules":99')),
    "the joiner, who is not in": with_text(lambda text: text.replace(b'"x"', b'"z"')),
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG.keys())
def test_on_any_doubt_nothing_is_taken_over(change: Change) -> None:
    log, fetch = log_of("a", "b", "x"), fetching(question(at_least=3))
    log.write("a", AddSlot("slot-1", "a"))
    transfer(Lending("c1", OPTIONS), fetch, log.replica, change)

    assert fetch.is_failed
    assert fetch.replica is None
    assert fetch.deadline() is None


def test_parts_of_two_texts_are_not_put_together() -> None:
    replica, fetch, lender = large(log_of("a").replica), fetching(), Lending("c1", OPTIONS)
    parts = [part_of(lender, replica, index) for index in range(3)]
    other = attrs.evolve(parts[1], digest=b"0" * 16)
    fetch.start(0)
    fetch.on_part(0, "a", parts[0])
    fetch.on_part(0, "a", other)

    assert fetch.is_failed


def part_of(lender: Lending, replica: Replica, index: int) -> ReplicaPart:
    (answer,) = lender.on_fetch(0, "x", attrs.evolve(question(), index=index), replica)
    assert isinstance(answer.message, ReplicaPart)
    return answer.message


def test_only_what_was_asked_of_whom_was_asked_counts() -> None:
    replica, fetch, lender = large(log_of("a").replica), fetching(), Lending("c1", OPTIONS)
    first, second = part_of(lender, replica, 0), part_of(lender, replica, 1)
    fetch.start(0)
    for peer, part in (("b", first), ("a", second), ("a", attrs.evolve(first, joiner="y")),
                       ("a", attrs.evolve(first, cluster_id="c0"))):
        assert fetch.on_part(0, peer, part) == []
    fetch.on_not_now("b", NotNow("c1", "x", "gone"))
    assert not fetch.is_failed
    (send,) = fetch.on_part(0, "a", first)
    assert fetch.on_part(0, "a", first) == []

    assert isinstance(send.message, FetchReplica)
    assert (send.message.version, send.message.index) == (replica.version, 1)


def test_a_part_that_does_not_come_is_asked_for_again_and_a_silent_member_is_left() -> None:
    fetch = fetching()
    first = fetch.start(0)
    assert fetch.on_tick(499) == []
    assert fetch.on_tick(500) == fetch.on_tick(1_000) == first
    assert fetch.on_tick(1_500) == []

    assert fetch.is_failed
    assert fetch.deadline() is None


# -- the lender ------------------------------------------------------------------------------------


def ask(lender: Lending, now_ms: int, replica: Replica, message: FetchReplica) -> ReplicaPart | str:
    (send,) = lender.on_fetch(now_ms, "x", message, replica)
    assert send == Send("x", send.message)
    if isinstance(send.message, ReplicaPart):
        return send.message
    assert isinstance(send.message, NotNow)
    return send.message.reason


def test_those_who_come_at_once_get_the_same_text_and_later_ones_a_newer_one() -> None:
    log, lender = log_of("a"), Lending("c1", OPTIONS)
    versions = []
    for now_ms, at_least in ((0, -1), (10, 0), (20, 2), (30, 1), (4_000, -1), (9_000, -1)):
        answer = ask(lender, now_ms, log.replica, question(at_least))
        assert isinstance(answer, ReplicaPart)
        versions.append(answer.version)
        if now_ms < 9_000:
            log.write("a", AddSlot(f"s{now_ms}", "a"))

    assert versions == [0, 0, 2, 2, 4, 5]


def test_a_text_that_is_not_kept_any_more_is_gone_and_so_is_what_has_not_come() -> None:
    log, lender = log_of("a"), Lending("c1", OPTIONS)
    for now_ms in (0, 5_000, 10_000):
        ask(lender, now_ms, log.replica, question())
        log.write("a", AddSlot(f"s{now_ms}", "a"))

    assert ask(lender, 10_000, log.replica, attrs.evolve(question(), version=0)) == "gone"
    assert isinstance(ask(lender, 10_000, log.replica, attrs.evolve(question(), version=1)), ReplicaPart)
    assert ask(lender, 10_000, log.replica, attrs.evolve(question(), version=1, index=1)) == "gone"
    assert ask(lender, 10_000, log.replica, question(at_least=99)) == "gone"
    assert ask(Lending("c1", OPTIONS), 0, Replica(), question()) == "gone"


def test_another_cluster_is_lent_nothing() -> None:
    log = log_of("a")

    assert Lending("c1", OPTIONS).on_fetch(0, "x", question(cluster_id="c0"), log.replica) == []


def test_a_joiner_that_is_refused_reads_the_origin() -> None:
    fetch = fetching(question(at_least=99))
    transfer(Lending("c1", OPTIONS), fetch, log_of("a", "x").replica)

    assert fetch.is_failed
