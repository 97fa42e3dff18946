"""Sharing of entries, one member at a time: what it lets go, passes on, keeps, and when it reads ZooKeeper."""

from __future__ import annotations

from collections import Counter
from random import Random

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.cluster.scale.chance import sample
from skuld_py.cluster.scale.divergence import Divergence
from skuld_py.cluster.scale.epidemic import NEWS_MAX, READ_LIMIT, Epidemic
from skuld_py.config.scaling import Scaling
from skuld_py.model.columns import pack, pack_u64, unpack_u64
from skuld_py.model.coordination import EntriesRead, ReadEntries
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import Share

OPTIONS = Scaling(sharing=True, fanout=3, rounds=4, gather_ms=10, gap_ms=300, silence_ms=10_000, digest_every=8)
PEERS = ("n0", "n1", "n2", "n3", "n4", "n5")
FAR_MS = 1_000_000


def lowest(most: int) -> int:
    """No chance at all."""
    return 0


def made(options: Scaling = OPTIONS, version: int = -1) -> Epidemic:
    """A member that has read the log to its end."""
    sharing = Epidemic("n0", "c1", options, lowest, 0, version)
    sharing.set_peers(PEERS)
    assert sharing.read(0) == ReadEntries(version + 1, READ_LIMIT, is_waiting=False)
    sharing.on_read(0, EntriesRead(version + 1, (), is_end=True))
    return sharing


def raw(position: int) -> bytes:
    return b"entry %04d" % position


def share(*positions: int, hop: int = 1, cluster_id: str = "c1", texts: dict[int, bytes] | None = None) -> Share:
    entries = [(texts or {}).get(position, raw(position)) for position in positions]
    return Share(cluster_id, -1, b"", pack_u64(positions), bytes([hop] * len(positions)), pack(entries))


def taken(sharing: Epidemic, now_ms: int = 0) -> list[int]:
    entries = sharing.take(now_ms)
    assert [entry for _, entry in entries] == [raw(position) for position, _ in entries]
    return [position for position, _ in entries]


def passed_on(sends: list[Send]) -> dict[str, list[tuple[int, int]]]:
    """By peer, the positions and their hops."""
    by_peer: dict[str, list[tuple[int, int]]] = {}
    for send in sends:
        assert isinstance(send.message, Share)
        columns = zip(unpack_u64(send.message.positions), send.message.hops, strict=True)
        by_peer.setdefault(send.peer, []).extend(columns)
    return by_peer


# -- what is let go ------------------------------------------------------------------------------


@given(st.data())
def test_entries_are_let_go_in_their_order_once_whatever_the_order_of_coming(data: st.DataObject) -> None:
    sharing, released = made(), []
    coming = data.draw(st.permutations(list(range(12)) * 2))
    for position in coming:
        sharing.on_share(0, "n1", share(position))
        if data.draw(st.booleans()):
            released += taken(sharing)

    assert released + taken(sharing) == list(range(12))


def test_what_the_origin_holds_is_ignored() -> None:
    sharing = made()
    sharing.on_share(0, "n1", share(3, 40, 41, 50))
    sharing.advance(0, 40)
    sharing.on_share(0, "n1", share(7, 40))

    assert taken(sharing) == [41]
    assert sharing.read(FAR_MS) == ReadEntries(42, 8, is_waiting=False)
    assert sharing.read_deadline() is None


def test_a_replica_built_anew_is_followed_from_where_it_stands() -> None:
    sharing = made(version=20)
    sharing.on_share(0, "n1", share(22))
    sharing.restart(0, 9)

    assert sharing.read(0) == ReadEntries(10, READ_LIMIT, is_waiting=False)
    assert taken(sharing) == []


def test_nothing_is_taken_from_another_cluster_of_the_same_name() -> None:
    sharing = made()
    sharing.on_share(0, "n1", share(0, cluster_id="c0"))

    assert taken(sharing) == []
    assert sharing.flush(FAR_MS) == []


def test_of_two_texts_for_one_position_neither_is_taken_but_zookeeper_s() -> None:
    sharing = made()
    sharing.on_share(0, "n1", share(1))
    sharing.on_share(0, "n2", share(1, texts={1: b"another"}))
    sharing.on_share(0, "n3", share(1))
    sharing.on_share(0, "n1", share(0))

    assert taken(sharing) == [0]
    assert sharing.read(FAR_MS) is not None


# -- bounds --------------------------------------------------------------------------------------


def test_a_full_buffer_drops_what_is_furthest_ahead() -> None:
    sharing = made(attrs.evolve(OPTIONS, buffer_bytes=10 * len(raw(0))))
    sharing.on_share(0, "n1", share(*range(20, 0, -1)))
    sharing.on_share(0, "n1", share(0))

    assert taken(sharing) == list(range(10))


def test_what_is_too_far_ahead_is_not_taken() -> None:
    sharing = made(attrs.evolve(OPTIONS, buffer_entries=10))
    sharing.on_share(0, "n1", share(*range(1, 30), 1 << 62))
    sharing.on_share(0, "n1", share(0))

    assert taken(sharing) == list(range(10))
    assert {position for pairs in passed_on(sharing.flush(FAR_MS)).values() for position, _ in pairs} \
        == set(range(10))


def test_entries_said_again_take_no_room() -> None:
    sharing = made(attrs.evolve(OPTIONS, buffer_bytes=3 * len(raw(0))))
    text = share(1)
    for _ in range(50):
        sharing.on_share(0, "n1", text)
    sharing.on_share(0, "n1", share(0, 2))

    assert taken(sharing) == [0, 1, 2]


def test_no_more_positions_are_remembered_than_said() -> None:
    sharing = made(attrs.evolve(OPTIONS, remembered=5))
    sharing.on_share(0, "n1", share(*range(2, 100)))
    sharing.on_share(0, "n1", share(*range(2, 100), texts=dict.fromkeys(range(2, 100), b"another")))

    assert len(sharing._seen) == len(sharing._disputed) == 5


# -- what is passed on -----------------------------------------------------------------------------


def test_an_entry_is_passed_on_once_to_a_few_with_the_next_hop() -> None:
    sharing = made()
    for peer in PEERS:
        sharing.on_share(0, peer, share(0, 2))

    assert sharing.deadline() == OPTIONS.gather_ms
    assert sharing.flush(OPTIONS.gather_ms - 1) == []
    sends = passed_on(sharing.flush(OPTIONS.gather_ms))
    assert len(sends) == OPTIONS.fanout
    assert all(pairs == [(0, 2), (2, 2)] for pairs in sends.values())
    for peer in PEERS:
        sharing.on_share(20, peer, share(0, 2))
    assert sharing.flush(FAR_MS) == []


def test_the_last_hop_goes_no_further() -> None:
    sharing = made()
    sharing.on_share(0, "n1", share(0, hop=OPTIONS.rounds))

    assert taken(sharing) == [0]
    assert sharing.flush(FAR_MS) == []


def test_one_s_own_entry_is_passed_on_also_when_it_was_read_first() -> None:
    sharing = made(version=7)
    sharing.on_appended(0, 7, raw(7))
    sharing.on_appended(0, 9, raw(9))

    assert set(map(tuple, passed_on(sharing.flush(FAR_MS)).values())) == {((7, 1), (9, 1))}
    assert taken(sharing) == []
    sharing.on_share(0, "n1", share(8))
    assert taken(sharing) == [8, 9]


def test_much_goes_in_several_messages_each_within_the_bounds() -> None:
    sharing = made()
    texts = {position: bytes(1 << 20) for position in range(9)}
    sharing.on_share(0, "n1", share(*range(9), texts=texts))
    sends = sharing.flush(FAR_MS)
    messages = [send.message for send in sends if send.peer == sends[0].peer]

    assert [len(message.positions) // 8 for message in messages if isinstance(message, Share)] == [4, 4, 1]


def test_all_others_are_chosen_alike_and_never_itself() -> None:
    random, chosen = Random(1), Counter[str]()
    sharing = Epidemic("n7", "c1", OPTIONS, lambda most: random.randint(0, most), 0)
    sharing.set_peers([f"n{number}" for number in range(20)])
    for position in range(2_000):
        sharing.on_appended(0, position, raw(position))
        chosen.update(send.peer for send in sharing.flush(FAR_MS))

    assert len(chosen) == 19 and "n7" not in chosen
    assert sum(chosen.values()) == 2_000 * OPTIONS.fanout
    assert min(chosen.values()) > 250 and max(chosen.values()) < 390


@given(st.integers(0, 12), st.integers(1, 6), st.randoms(use_true_random=False))
def test_a_sample_is_of_different_names(size: int, count: int, random: object) -> None:
    names = tuple(f"n{index}" for index in range(size))
    drawn = sample(names, count, lambda most: random.randint(0, most))  # type: ignore[attr-defined]

    assert len(drawn) == len({*drawn}) == min(size, count)
    assert {*drawn} <= {*names}


# -- when ZooKeeper is read ------------------------------------------------------------------------


def test_after_a_silence_it_is_read_and_what_is_found_is_passed_on() -> None:
    sharing = made()
    assert sharing.read(OPTIONS.silence_ms - 1) is None
    assert sharing.read(OPTIONS.silence_ms) == ReadEntries(0, READ_LIMIT, is_waiting=False)
    assert sharing.read(FAR_MS) is None
    assert sharing.read_deadline() is None

    sharing.advance(FAR_MS, 1)
    sharing.on_read(FAR_MS, EntriesRead(0, ((0, raw(0)), (1, raw(1))), is_end=True))

    assert set(map(tuple, passed_on(sharing.flush(2 * FAR_MS)).values())) == {((0, 1), (1, 1))}
    assert sharing.read(FAR_MS + OPTIONS.silence_ms - 1) is None


def test_progress_puts_the_read_off() -> None:
    sharing = made()
    sharing.on_share(9_000, "n1", share(0))
    sharing.take(9_000)
    sharing.flush(FAR_MS)

    assert sharing.read_deadline() == 9_000 + OPTIONS.silence_ms


def test_a_gap_is_read_soon_and_not_passed_on() -> None:
    sharing = made()
    sharing.on_share(1_000, "n1", share(5, 6))
    sharing.on_share(1_200, "n1", share(3))
    sharing.flush(FAR_MS)
    assert sharing.read(1_000 + OPTIONS.gap_ms - 1) is None
    assert sharing.read(1_000 + OPTIONS.gap_ms) == ReadEntries(0, 3, is_waiting=False)

    sharing.advance(1_310, 2)
    sharing.on_read(1_310, EntriesRead(0, tuple((position, raw(position)) for position in range(3))))

    assert taken(sharing, 1_310) == [3]
    assert sharing.flush(FAR_MS) == []
    assert sharing.read(1_310 + OPTIONS.gap_ms) == ReadEntries(4, 1, is_waiting=False)


def test_a_gap_that_zookeeper_does_not_fill_is_read_ever_more_seldom() -> None:
    sharing = made()
    sharing.on_share(0, "n1", share(5))
    now_ms, pauses = 0, []
    for _ in range(8):
        due = sharing.read_deadline()
        assert due is not None
        pauses.append(due - now_ms)
        now_ms = due
        assert sharing.read(now_ms) is not None
        sharing.on_read(now_ms, EntriesRead(0, (), is_end=True))

    assert pauses == [300, 600, 1_200, 2_400, 4_800, 9_600, 10_000, 10_000]


def test_short_of_the_end_one_goes_on_reading_and_a_backlog_is_no_news() -> None:
    sharing = made()
    assert sharing.read(FAR_MS) is not None
    entries = tuple((position, raw(position)) for position in range(NEWS_MAX + 1))
    sharing.advance(FAR_MS, NEWS_MAX)
    sharing.on_read(FAR_MS, EntriesRead(0, entries))

    assert sharing.read(FAR_MS) == ReadEntries(NEWS_MAX + 1, READ_LIMIT, is_waiting=False)
    sharing.advance(FAR_MS, NEWS_MAX + 1)
    sharing.on_read(FAR_MS, EntriesRead(NEWS_MAX + 1, ((NEWS_MAX + 1, b"x"),), is_end=True))
    assert sharing.flush(2 * FAR_MS) == []


# -- members that parted ---------------------------------------------------------------------------


@pytest.mark.parametrize(("others", "against", "agreed", "is_parted"), [
    (9, 0, 0, False), (9, 1, 0, False), (9, 2, 0, True), (9, 2, 2, False), (9, 3, 2, True),
    (1, 0, 0, False), (1, 1, 0, True),
])
def test_who_differs_from_more_than_it_agrees_with_has_parted(others: int, against: int, agreed: int,
                                                              is_parted: bool) -> None:
    parting = Divergence(8)
    parting.set_peers(others)
    for index in range(against):
        parting.note_other(f"a{index}", 16, b"other")
    parting.note_own(16, b"mine")
    for index in range(agreed):
        parting.note_other(f"b{index}", 16, b"mine")

    assert parting.has_parted() == is_parted


def test_one_member_that_says_it_often_counts_once_and_wrong_positions_do_not() -> None:
    parting = Divergence(8)
    parting.set_peers(9)
    parting.note_own(16, b"mine")
    for _ in range(5):
        parting.note_other("a", 16, b"other")
    for peer in "bcd":
        parting.note_other(peer, 15, b"other")
        parting.note_other(peer, 24, b"other")

    assert not parting.has_parted()


def test_after_building_anew_it_compares_later_positions_only() -> None:
    parting = Divergence(8)
    parting.set_peers(1)
    for version in (16, 16, 24):
        parting.note_own(version, b"mine")
        parting.note_other("a", version, b"other")
        if parting.has_parted():
            parting.restart()

    assert parting.count == 2


def test_digests_ride_along_and_few_are_kept() -> None:
    sharing = made(version=100)
    for version in range(0, 104, 8):
        sharing.parting.note_own(version, b"digest %08d" % version)
        sharing.parting.note_other("n1", version, b"digest %08d" % version)
    sharing.on_appended(0, 101, raw(101))
    messages = [send.message for send in sharing.flush(FAR_MS)]

    assert all(isinstance(message, Share) and (message.version, message.digest) == (96, b"digest 00000096")
               for message in messages)
    assert len(sharing.parting._own) == len(sharing.parting._heard) == 4
