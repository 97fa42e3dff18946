"""Options of one member beside the log: when it reads, what it passes on, how it begins, and how it falls back."""

from __future__ import annotations

import attrs
import pytest

from cluster.test_membership import CONNECTED, LOST, Desk, Log, member
from skuld_py.cluster.log.commands import JoinDirect, Joining, Leave, NotifyJoin, PrepareJoin, RetireNode
from skuld_py.cluster.scale.transfer import Lending
from skuld_py.config.scaling import PLAIN, Scaling
from skuld_py.model.columns import pack, pack_u64, unpack_u64
from skuld_py.model.coordination import EntriesRead, PulseGone, PulsesRead, ReadEntries, ReadOrigin, ReadPulses
from skuld_py.model.events import Received, Send, Ticked
from skuld_py.model.messages.membership import FetchReplica, JoinMe, NotNow, ReplicaPart, Share, Welcomed
from skuld_py.model.messages.message import Message

SHARING = Scaling(sharing=True, fanout=2, silence_ms=3_000, gap_ms=300, digest_every=4)
DIRECT = Scaling(direct_join=True)
TRANSFER = Scaling(transfer=True)


def log_of(*names: str) -> Log:
    log = Log()
    for name in names:
        log.join(name)
    return log


def joined(scaling: Scaling, log: Log | None = None) -> Desk:
    """A member of three whose reading at the end of the log has been answered."""
    desk = Desk(log or log_of("b", "c"), scaling).start()
    if desk.asked[-1] == ReadPulses():
        desk.tell(PulsesRead(()))
        desk.run()
    me, replica = desk.machine.me, desk.log.replica
    if observer := replica.joins.observers.get(me, ""):
        desk.log.write(observer, NotifyJoin(me))
    else:
        desk.log.write("b", JoinDirect("b", replica.ring.after("b"), (Joining(me, member("me")),)))
    desk.run()
    assert desk.machine.is_in
    return settled(desk)


def settled(desk: Desk) -> Desk:
    for reading in [each for each in desk.waiting if isinstance(each, ReadEntries)]:
        desk.waiting.remove(reading)
        desk.tell(EntriesRead(reading.start, (), True))
    return desk


def messages(desk: Desk, of: type[Message]) -> list[Send]:
    return [each for each in desk.all(Send) if isinstance(each.message, of)]


def share(log: Log, *positions: int, digest: bytes = b"", version: int = -1) -> Share:
    entries = [log.entries[position] for position in positions]
    return Share("c1", version, digest, pack_u64(positions), bytes([1] * len(positions)), pack(entries))


# -- sharing -------------------------------------------------------------------------------------


def test_a_member_that_is_passed_entries_reads_none() -> None:
    desk = joined(SHARING)
    assert [each for each in desk.waiting if isinstance(each, ReadEntries)] == []
    before = len(desk.all(ReadEntries))
    at = desk.log.end
    desk.log.write("operator", RetireNode("x"), RetireNode("y"), RetireNode("z"))
    desk.tell(Received("b", share(desk.log, at + 1, at + 2)))
    assert desk.machine.replica.version == at - 1
    desk.tell(Received("c", share(desk.log, at)))

    assert desk.machine.replica == desk.log.replica
    assert len(desk.all(ReadEntries)) == before


def test_after_a_silence_it_reads_and_what_is_missing_soon() -> None:
    desk = joined(SHARING)
    before, at = len(desk.all(ReadEntries)), desk.log.end
    desk.pass_time(2_900)
    assert len(desk.all(ReadEntries)) == before
    desk.log.write("operator", RetireNode("x"), RetireNode("y"))
    desk.tell(Received("b", share(desk.log, at + 1)))
    desk.pass_time(500)

    assert desk.all(ReadEntries)[before:] == [ReadEntries(at, 1, is_waiting=False)]
    assert desk.machine.replica == desk.log.replica
    desk.log.write("operator", RetireNode("z"))
    desk.pass_time(5_000)
    assert desk.machine.replica == desk.log.replica


def test_its_own_entry_is_passed_on_where_it_stands() -> None:
    desk = joined(SHARING)
    at = desk.log.end
    desk.tell(PulseGone(desk.log.replica.ring.after(desk.machine.me)))
    desk.run()
    desk.pass_time(100)

    sent = messages(desk, Share)[-1].message
    assert isinstance(sent, Share)
    assert unpack_u64(sent.positions)[-1] == at
    assert sent.entries.unpack()[-1] == desk.log.entries[at]


def test_who_is_no_member_yet_waits_for_the_log_itself() -> None:
    desk = Desk(log_of("b"), SHARING).start()

    assert not desk.machine.is_in
    assert [each.is_waiting for each in desk.waiting if isinstance(each, ReadEntries)] == [True]


def test_a_replica_that_parted_is_built_anew_without_leaving_the_ring() -> None:
    desk = joined(SHARING)
    life, told = desk.machine.me, desk.told()
    reader = desk.machine._reader
    reader.replica = attrs.evolve(reader.replica, replicas=2)
    while desk.log.end % 4:
        desk.log.write("operator", RetireNode("x"))
    desk.log.write("operator", RetireNode("x"))
    desk.tell(Received("b", share(desk.log, *range(desk.machine.replica.version + 1, desk.log.end))))
    assert desk.machine.replica != desk.log.replica
    origins = len(desk.all(ReadOrigin))
    digest = bytes.fromhex(desk.log.replica.digest())
    for peer in "bc":
        desk.tell(Received(peer, share(desk.log, digest=digest, version=desk.log.replica.version)))
    desk.run()

    assert len(desk.all(ReadOrigin)) == origins + 1
    assert desk.machine.replica == desk.log.replica
    assert (desk.machine.me, desk.told()) == (life, told)


# -- direct join ---------------------------------------------------------------------------------


def test_a_joiner_asks_a_member_and_writes_nothing() -> None:
    desk = Desk(log_of("b"), DIRECT).start()
    (question,) = messages(desk, JoinMe)
    assert question.peer == "b"
    me = desk.machine.me
    desk.log.write("b", JoinDirect("b", "b", (Joining(me, member("me")),)))
    desk.tell(Received("b", Welcomed("c1", me, desk.log.replica.version)))
    desk.run()

    assert desk.machine.is_in
    assert desk.appended() == []
    assert desk.told()[-1] == CONNECTED


def test_a_joiner_that_is_refused_takes_the_three_phases() -> None:
    desk = Desk(log_of("b"), DIRECT).start()
    for _ in range(DIRECT.knocks):
        assert desk.appended() == []
        desk.tell(Received("b", NotNow("c1", desk.machine.me, "busy")))
        desk.pass_time(1_700)

    assert [type(each) for each in desk.appended()] == [PrepareJoin]


def test_where_nobody_is_the_first_phase_is_written_after_a_while() -> None:
    desk = Desk(Log(), DIRECT).start()
    assert desk.appended() == []
    desk.pass_time(DIRECT.found_ms)

    assert desk.machine.is_in
    assert [type(each) for each in desk.appended()] == [PrepareJoin]


def test_a_member_lets_in_who_asks_by_one_entry_and_again_if_its_ring_changed() -> None:
    desk = joined(DIRECT)
    me, after = desk.machine.me, desk.log.replica.ring.after(desk.machine.me)
    asked = [JoinMe("c1", f"{name}~1", name, "127.0.0.1", 1, "boot", "") for name in "xy"]
    for message in asked:
        desk.tell(Received(message.name, message))
    desk.log.write("operator", Leave(after))
    desk.pass_time(50)
    desk.run()
    desk.pass_time(50)

    entries = [each for each in desk.appended() if isinstance(each, JoinDirect)]
    assert [each.before for each in entries][-1] == desk.log.replica.ring.after("y~1")
    assert {"x~1", "y~1"} <= {*desk.log.replica.members}
    assert [send.peer for send in messages(desk, Welcomed)] == ["x", "y"]
    assert me in desk.log.replica.members


def test_an_entry_held_up_until_its_joiner_has_gone_elsewhere_does_not_leave() -> None:
    desk = joined(DIRECT)
    desk.tell(PulseGone(desk.machine.replica.ring.after(desk.machine.me)))  # its leave is on its way, slowly
    desk.tell(Received("x", JoinMe("c1", "x~1", "x", "127.0.0.1", 1, "boot", "")))
    desk.now_ms += DIRECT.gather_ms
    desk.tell(Ticked())
    desk.now_ms += DIRECT.knock_ms
    desk.run()

    assert [type(each) for each in desk.appended()][-1] is Leave


@pytest.mark.parametrize("message", [
    JoinMe("c1", "x~1", "x", "127.0.0.1", 1, "boot", ""), FetchReplica("c1", "x~1", -1, -1, 0)])
def test_who_has_an_option_off_says_so(message: Message) -> None:
    desk = joined(PLAIN)
    desk.tell(Received("x", message))

    assert desk.all(Send)[-1] == Send("x", NotNow("c1", "x~1", "off"))


# -- transfer ------------------------------------------------------------------------------------


def arriving(scaling: Scaling = TRANSFER) -> Desk:
    desk = Desk(log_of("b", "c"), scaling).start()
    assert desk.asked[-1] == ReadPulses()
    assert desk.all(ReadOrigin) == []
    return desk


def test_a_process_begins_with_the_replica_of_another() -> None:
    desk, lender = arriving(), joined(TRANSFER)
    desk.tell(PulsesRead(("me~0", "b~1")))
    (question,) = messages(desk, FetchReplica)
    assert question.peer == "b"
    lender.tell(Received("me", question.message))
    (part,) = messages(lender, ReplicaPart)
    desk.tell(Received("b", part.message))

    assert desk.machine.replica == lender.machine.replica
    assert desk.all(ReadOrigin) == []
    assert desk.all(ReadEntries)[-1].start == lender.machine.replica.version + 1


@pytest.mark.parametrize("ids", [(), ("me~0",), ("b~1", "c~1")])
def test_without_an_answer_it_reads_the_origin(ids: tuple[str, ...]) -> None:
    desk = arriving()
    desk.tell(PulsesRead(ids))
    desk.pass_time(30_000)
    desk.run()

    assert desk.all(ReadOrigin) == [ReadOrigin()]
    assert desk.machine.replica == desk.log.replica


def test_a_lost_session_ends_the_arrival() -> None:
    desk = arriving()
    desk.tell(PulsesRead(("b~1",)))
    desk.tell(LOST)
    desk.tell(CONNECTED)
    desk.run()

    assert desk.all(ReadOrigin) == [ReadOrigin()]


def test_welcomed_it_begins_with_a_replica_that_shows_it_as_a_member() -> None:
    desk = arriving(attrs.evolve(TRANSFER, direct_join=True))
    desk.tell(PulsesRead(("b~1",)))
    assert [send.peer for send in messages(desk, JoinMe)] == ["b"]
    me, at = desk.machine.me, desk.log.end
    desk.log.write("b", JoinDirect("b", desk.log.replica.ring.after("b"), (Joining(me, member("me")),)))
    desk.tell(Received("b", Welcomed("c1", me, at)))
    (question,) = messages(desk, FetchReplica)
    assert isinstance(question.message, FetchReplica) and question.message.at_least == at
    (answer,) = Lending("c1", TRANSFER).on_fetch(0, "me", question.message, desk.log.replica)
    desk.tell(Received("b", answer.message))
    desk.run()

    assert desk.machine.is_in
    assert desk.appended() == desk.all(ReadOrigin) == []
    assert desk.told()[-1] == CONNECTED
