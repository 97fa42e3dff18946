"""Fifty members share a log over links that lose, repeat and reorder, with some dead, and with gc under way."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.commands import AddSlot, LeaveSlot, PrepareJoin
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.scale.epidemic import Epidemic
from skuld_py.config.scaling import Scaling
from skuld_py.model.coordination import EntriesRead, ReadEntries
from skuld_py.model.document import Member
from skuld_py.model.messages.membership import Share
from skuld_py.simulation.world.network import CALM, Envelope, Network, Weather
from skuld_py.simulation.world.scheduler import Scheduler, stream

MEMBERS = 50
ENTRIES = 70
OPTIONS = Scaling(sharing=True, fanout=7, rounds=8, gather_ms=10, gap_ms=300, silence_ms=5_000, digest_every=16)
END_MS = 40_000
ROUGH = Weather(latency_mean_ms=20.0, tail=0.01, loss=0.1, repeat=0.1)
DEAF = Weather(loss=1.0)


class Log:
    """ZooKeeper: the entries, and an origin below which they go."""

    def __init__(self, grace: int) -> None:
        self.entries: dict[int, bytes] = {}
        self.texts = [Replica()]
        """The replica at each position, from -1 on."""
        self.origin = Replica()
        self._grace = grace

    @property
    def end(self) -> Replica:
        return self.texts[-1]

    def append(self, raw: bytes) -> int:
        position = self.end.version + 1
        self.entries[position] = raw
        self.texts.append(play(self.end, position, raw).replica)
        return position

    def collect(self) -> None:
        self.origin = self.end
        for position in [at for at in self.entries if at < self.origin.version - self._grace]:
            del self.entries[position]

    def read(self, asked: ReadEntries) -> EntriesRead:
        wanted = range(asked.start, asked.start + asked.limit)
        found = [(at, self.entries[at]) for at in wanted if at in self.entries]
        is_missing = asked.start not in self.entries and asked.start <= self.end.version
        is_end = not is_missing and asked.start + len(found) > self.end.version
        return EntriesRead(asked.start, () if is_missing else tuple(found), is_end, is_missing)


class Follower:
    """One member: its sharing, its replica, and how often it read ZooKeeper."""

    def __init__(self, name: str, crowd: Crowd, scaling: Scaling) -> None:
        random = stream(crowd.seed, name)
        self.name = name
        self.replica = Replica()
        self.reads = 0
        self.jumps = 0
        self.passed_on: dict[int, int] = {}
        self.is_dead = False
        self.sharing = Epidemic(name, "c1", scaling, lambda most: random.randint(0, most), 0)
        self._crowd = crowd
        self._armed_ms = -1

    def hear(self, sender: str, messages: Envelope) -> None:
        for message in () if self.is_dead else messages:
            assert isinstance(message, Share)
            self.sharing.on_share(self._now_ms, sender, message)
        self.go_on()

    @property
    def _now_ms(self) -> int:
        return self._crowd.scheduler.now_ms

    def appended(self, position: int, raw: bytes) -> None:
        self.sharing.on_appended(self._now_ms, position, raw)
        self.go_on()

    def go_on(self) -> None:
        """Everything that is due."""
        if self.is_dead:
            return
        now_ms = self._now_ms
        for position, raw in self.sharing.take(now_ms):
            assert position == self.replica.version + 1
            self._play(position, raw)
        for send in self.sharing.flush(now_ms):
            assert isinstance(send.message, Share)
            for position in range(0, len(send.message.positions), 8):
                at = int.from_bytes(send.message.positions[position : position + 8], "big")
                self.passed_on[at] = self.passed_on.get(at, 0) + 1
            self._crowd.network.send(self.name, send.peer, (send.message,))
        if self.sharing.parting.has_parted():
            self._jump()
        if (asked := self.sharing.read(now_ms)) is not None:
            self.reads += 1
            self._crowd.scheduler.after(5, self._answered, asked)
        due = [due_ms for due_ms in (self.sharing.deadline(), self.sharing.read_deadline()) if due_ms is not None]
        due_ms = min(due, default=None)
        if due_ms is not None and not now_ms < self._armed_ms <= due_ms:
            self._armed_ms = max(due_ms, now_ms + 1)
            self._crowd.scheduler.at(self._armed_ms, self.go_on)

    def _play(self, position: int, raw: bytes) -> None:
        self.replica = play(self.replica, position, raw).replica
        if self.sharing.parting.is_due(position):
            self.sharing.parting.note_own(position, bytes.fromhex(self.replica.digest()))

    def _answered(self, asked: ReadEntries) -> None:
        if self.is_dead or asked.start > self.sharing.version + 1:
            return
        read = self._crowd.log.read(asked)
        for position, raw in read.entries:
            if position > self.replica.version:
                self._play(position, raw)
        self.sharing.advance(self._now_ms, self.replica.version)
        self.sharing.on_read(self._now_ms, read)
        if read.is_missing:
            self._jump()
        self.go_on()

    def _jump(self) -> None:
        """To the origin, as every reader whose next entry is gone."""
        self.jumps += 1
        self.replica = from_text(Replica, self._crowd.log.origin.text())
        self.sharing.restart(self._now_ms, self.replica.version)


class Crowd:
    """Members that append in turn, one entry every 50 ms."""

    def __init__(self, seed: int, weather: Weather, scaling: Scaling = OPTIONS, grace: int = 10_000) -> None:
        self.seed = seed
        self.scheduler = Scheduler(seed)
        self.network = Network(self.scheduler, seed, weather)
        self.log = Log(grace)
        self.members = {name: Follower(name, self, scaling) for name in (f"n{at}" for at in range(MEMBERS))}
        for name, member in self.members.items():
            member.sharing.set_peers(list(self.members))
            self.network.attach(name, member.hear)
            self.scheduler.at(0, member.go_on)
        self._random = stream(seed, "entries")
        self._seq = 0
        self.scheduler.at(100, self._append)

    @property
    def alive(self) -> list[Follower]:
        return [member for member in self.members.values() if not member.is_dead]

    def _append(self) -> None:
        writer = self._random.choice(self.alive)
        slot = f"slot{self._random.randint(0, 30)}"
        command = (PrepareJoin("n0", Member("n0", "127.0.0.1", 1, "boot")) if not self._seq else
                   self._random.choice((AddSlot(slot, "n0"), LeaveSlot(slot))))
        raw = Entry("n0", self._seq, command).encode()
        self._seq += 1
        writer.appended(self.log.append(raw), raw)
        if self._seq < ENTRIES:
            self.scheduler.after(50, self._append)

    def run(self, until_ms: int = END_MS) -> None:
        self.scheduler.run(until_ms)

    def reads_for_entries(self) -> int:
        """Reads while there was something to read, besides the first of each member."""
        return sum(member.reads for member in self.alive) - len(self.alive)


def assert_all_at_the_end(crowd: Crowd) -> None:
    assert crowd.log.end.version == ENTRIES - 1
    assert {member.replica.version for member in crowd.alive} == {ENTRIES - 1}
    assert {member.replica.digest() for member in crowd.alive} == {crowd.log.end.digest()}


@pytest.mark.parametrize("seed", range(3))
def test_without_loss_hardly_anybody_reads_zookeeper(seed: int) -> None:
    crowd = Crowd(seed, CALM)
    crowd.run(100 + ENTRIES * 50 + 1_000)

    assert_all_at_the_end(crowd)
    assert crowd.reads_for_entries() < ENTRIES * MEMBERS / 500
    assert all(most <= OPTIONS.fanout for member in crowd.alive for most in member.passed_on.values())


@pytest.mark.parametrize("seed", range(4))
def test_over_bad_links_with_dead_members_and_gc_all_come_to_the_end(seed: int) -> None:
    crowd = Crowd(seed, ROUGH, grace=5)
    random = stream(seed, "deaths")
    for at in range(10):
        crowd.scheduler.at(random.randint(0, 3_500), kill, random.choice(list(crowd.members.values())))
        crowd.scheduler.at(at * 400, crowd.log.collect)
    crowd.run()

    assert_all_at_the_end(crowd)
    assert sum(member.jumps for member in crowd.alive) > 0 or crowd.log.origin.version > 0


def kill(member: Follower) -> None:
    member.is_dead = True


@pytest.mark.parametrize("seed", range(2))
def test_members_cut_off_while_the_log_is_collected_jump_to_the_origin(seed: int) -> None:
    crowd = Crowd(seed, CALM, grace=0)
    lost = [f"n{at}" for at in range(5)]
    links = [(one, other) for one in crowd.members for other in lost]
    crowd.network.cut(links)
    crowd.scheduler.at(3_000, crowd.log.collect)
    crowd.scheduler.at(4_500, crowd.network.mend, links)
    crowd.run()

    assert_all_at_the_end(crowd)
    assert all(crowd.members[name].jumps for name in lost)


def test_with_every_message_lost_all_come_to_the_end_by_reading() -> None:
    crowd = Crowd(1, DEAF)
    crowd.run()

    assert_all_at_the_end(crowd)
    assert crowd.reads_for_entries() >= MEMBERS


def test_an_entry_whose_writer_dies_at_once_is_found_by_one_and_passed_on() -> None:
    crowd = Crowd(2, CALM)
    crowd.run(5_000)
    before = [member.reads for member in crowd.alive]
    raw = Entry("operator", 0, AddSlot("late", "n0")).encode()
    crowd.log.append(raw)
    crowd.run(5_000 + 2 * OPTIONS.silence_ms)

    assert {member.replica.digest() for member in crowd.alive} == {crowd.log.end.digest()}
    read = sum(member.reads - least for member, least in zip(crowd.alive, before, strict=True))
    assert read < MEMBERS * 1.5


def test_a_member_whose_replica_parted_is_found_and_builds_it_anew_and_nobody_else_does() -> None:
    crowd = Crowd(3, CALM)
    parted = crowd.members["n7"]
    crowd.run(2_000)
    parted.replica = attrs.evolve(parted.replica, replicas=2)
    crowd.run()

    assert_all_at_the_end(crowd)
    assert parted.sharing.parting.count == 1
    assert all(member.sharing.parting.count == 0 for member in crowd.alive if member is not parted)


def test_the_same_seed_gives_the_same_run() -> None:
    runs = []
    for _ in range(2):
        crowd = Crowd(4, ROUGH)
        crowd.run(2_500)
        runs.append([(member.reads, member.replica.version, member.passed_on) for member in crowd.alive])

    assert runs[0] == runs[1]
