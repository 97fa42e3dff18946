"""Whatever is written, by whomever: playing is total, repeatable, the same for all, and every replica is sound."""

from __future__ import annotations

from collections import deque

import attrs
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.invariants import faults
from cluster.scenario import member_of, row_of
from skuld_py.cluster.log import commands as c
from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome, Played, play
from skuld_py.cluster.log.replica import Replica

# -- what is written -----------------------------------------------------------------------------


@attrs.frozen
class Write:
    """A writer's next entry, or its last number again."""

    writer: str
    command: c.Command
    is_new: bool = True


@attrs.frozen
class React:
    """The reaction that waits at ``index`` (mod the number of them) is written by whom it names."""

    index: int


@attrs.frozen
class Chosen:
    """A member chosen by place in the roster (mod its size) stitches others in, or brings a slot; else somebody,
    joiners included, is found dead."""

    index: int
    joiners: tuple[str, ...] = ()
    slot: str = ""

    def write(self, replica: Replica) -> Write | None:
        """What comes of it; None when there is nobody."""
        if not replica.members:
            return None
        one = replica.roster[self.index % len(replica.roster)]
        if self.slot:
            return Write(one, c.AddSlot(self.slot, one))
        if not self.joiners:
            those = [*replica.roster, *sorted(replica.joiners)]
            return Write(one, c.Leave(those[-1 - self.index % len(those)]))
        return Write(one, c.JoinDirect(one, replica.ring.after(one), tuple(map(joining, self.joiners))))


@attrs.frozen
class Repeat:
    """The bytes that were written so many entries ago, once more."""

    back: int


def prepare(name: str) -> Write:
    """Somebody wants to join."""
    return Write(name, c.PrepareJoin(name, member_of(name)))


def joining(name: str) -> c.Joining:
    """A joiner of a direct join."""
    return c.Joining(name, member_of(name))


IDS = [f"{node}{life}" for node in "abcd" for life in ("", "~1", "~2")]
ids = st.sampled_from(IDS)
node_names = st.sampled_from(list("abcdz"))
flows = st.sampled_from(["f1", "f2"])
slot_ids = st.sampled_from(["s1", "s2", "s3"])
JOIN = ids.map(prepare)
COMMANDS = st.one_of(
    st.builds(c.NotifyJoin, ids), st.builds(c.AcceptJoin, ids, ids), st.builds(c.AbortJoin, ids),
    st.builds(c.Leave, ids), st.builds(c.AddSlot, slot_ids, ids, st.sampled_from([(), ("gpu",)])),
    st.builds(c.LeaveSlot, slot_ids), st.builds(c.RetireNode, node_names, st.booleans()),
    st.builds(c.ForgetNode, node_names), st.builds(c.Gc, st.sampled_from([-2, -2, -1, 5])),
    st.builds(c.SetRules, st.integers(-1, 1)),
    st.builds(c.SubmitWorkflow, flows, st.sampled_from([16 * "a", 16 * "b"]), st.just(32 * "0"),
              st.just(tuple(map(row_of, ("in1", "out1", "out2"))))),
    st.builds(c.KillWorkflow, flows), st.builds(c.ExhaustInput, flows, st.sampled_from(["in1", "out1"])),
    st.builds(c.SetReplicas, st.integers(1, 4)),
    st.builds(c.SetSharing, st.sampled_from(["greedy", "percentage"])),
    st.builds(c.SealOutput, flows, st.sampled_from(["in1", "out1", "out2"])),
    st.builds(c.JoinDirect, ids, ids, st.lists(ids.map(joining), max_size=3).map(tuple)),
    ids.map(lambda name: c.PrepareJoin(name, member_of(name))))
WRITE = st.builds(Write, st.sampled_from([*IDS, "op"]), COMMANDS, st.sampled_from([True, True, True, False]))
DIRECT = st.builds(Chosen, st.integers(0, 11), st.lists(ids, min_size=1, max_size=4).map(tuple))
REACT = st.builds(React, st.integers(0, 3))
LEAVE = st.builds(Chosen, st.integers(0, 11))
ACT = st.one_of(JOIN, JOIN, JOIN, REACT, REACT, REACT, REACT, WRITE, WRITE, WRITE, DIRECT, LEAVE,
                st.builds(Chosen, st.integers(0, 11), st.just(()), slot_ids),
                ids.map(lambda name: Write(name, c.AddSlot(f"of-{name}", name))),
                st.builds(Repeat, st.integers(1, 8)), st.binary(max_size=12))
FOUNDED = st.lists(ids, max_size=6, unique=True).map(
    lambda names: [*map(prepare, names[:1]), *([Chosen(0, tuple(names[1:]))] if names[1:] else [])])
ACTS = st.builds(lambda founded, acts: [*founded, *acts], FOUNDED, st.lists(ACT, min_size=8, max_size=50))
Act = Write | React | Chosen | Repeat | bytes


class Story:
    """A log that is played as it is written; reactions wait until somebody is told to write one."""

    def __init__(self, replica: Replica | None = None) -> None:
        self.replica = replica or Replica(replicas=2)
        self.written: list[bytes] = []
        self.seqs: dict[str, int] = {}
        self.waiting: deque[c.Reaction] = deque()

    def raw(self, act: Act) -> bytes | None:
        """The entry's bytes; None when there is nothing to write."""
        if isinstance(act, bytes):
            return act
        if isinstance(act, Repeat):
            return self.written[-act.back] if act.back <= len(self.written) else None
        if isinstance(act, React):
            if not self.waiting:
                return None
            self.waiting.rotate(-(act.index % len(self.waiting)))
            reaction = self.waiting.popleft()
            is_back = isinstance(reaction.command, c.Rejoin)
            act = prepare(reaction.member) if is_back else Write(reaction.member, reaction.command)
        if isinstance(act, Chosen):
            act = act.write(self.replica)
            if act is None:
                return None
        self.seqs[act.writer] = max(0, self.seqs.get(act.writer, -1) + act.is_new)
        return Entry(act.writer, self.seqs[act.writer], act.command).encode()

    def write(self, act: Act) -> Played | None:
        """Write and play it."""
        raw = self.raw(act)
        if raw is None:
            return None
        played = play(self.replica, self.replica.version + 1, raw)
        self.written.append(raw)
        self.waiting.extend(played.reactions)
        self.replica = played.replica
        return played


    def settle(self) -> None:
        """All reactions are written; who was told no comes back after a pause, hence last, and once."""
        back: dict[str, None] = {}
        while self.waiting:
            if isinstance(self.waiting[0].command, c.Rejoin):
                back[self.waiting.popleft().member] = None
            else:
                self.write(React(0))
        for member in back:
            self.write(prepare(member))


# -- what holds ----------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(ACTS)
def test_every_replica_is_sound(acts: list[Act]) -> None:
    story = Story()
    for act in acts:
        story.write(act)
        assert faults(story.replica) == []


@settings(max_examples=100, deadline=None)
@given(ACTS, st.integers(0, 40))
def test_all_come_to_the_same_wherever_they_begin(acts: list[Act], at: int) -> None:
    story, follower = Story(), Replica(replicas=2)
    for number, act in enumerate(acts):
        before, text = story.replica, story.replica.text()
        played = story.write(act)
        if number == at:
            follower = from_text(Replica, text)
        if played is None:
            continue
        followed = play(follower, played.position, story.written[-1])
        follower = followed.replica

        assert before.text() == text
        assert followed == played
        assert follower.digest() == story.replica.digest()


@settings(max_examples=100, deadline=None)
@given(ACTS)
def test_an_entry_that_comes_again_changes_nothing(acts: list[Act]) -> None:
    story = Story()
    for act in acts:
        played = story.write(act)
        if played is None or played.entry is None:
            continue
        again = play(played.replica, played.position + 1, story.written[-1])

        assert again.outcome in (Outcome.REPEATED, Outcome.LATE)
        assert again.reactions == ()
        assert attrs.evolve(again.replica, version=played.position) == played.replica


@settings(max_examples=100, deadline=None)
@given(ACTS)
def test_what_is_said_of_an_entry_is_what_it_did(acts: list[Act]) -> None:
    story = Story()
    for act in acts:
        before = story.replica
        played = story.write(act)
        if played is None:
            continue
        plain = {"version": before.version, "writers": before.writers, "failed": before.failed}

        assert (attrs.evolve(played.replica, **plain) != before) <= (played.outcome is Outcome.APPLIED)
        assert (played.replica.failed != before.failed) == (played.outcome in (Outcome.FAILED, Outcome.REFUSED))
        assert (played.replica.writers == before.writers) >= (played.outcome in (Outcome.REPEATED, Outcome.LATE))
        assert bool(played.diff) <= (played.outcome is Outcome.APPLIED)
        assert [each.member for each in played.reactions if each.member in played.replica.left] == []
        if played.entry is not None and isinstance(played.entry.command, c.Gc) and played.diff:
            after, slots = story.replica, story.replica.parked.values()
            assert all(last.position > after.collected[-2] or after.is_known(writer)
                       for writer, last in after.writers.items() if len(after.collected) == 2)
            assert all(each.member in after.writers or after.is_known(each.member) for each in slots)


@settings(max_examples=100, deadline=None)
@given(ACTS)
def test_once_every_reaction_is_written_no_join_hangs_and_all_who_were_told_no_are_in(acts: list[Act]) -> None:
    story = Story()
    for act in acts:
        story.write(act)
    rounds = 0
    while story.waiting:
        story.settle()
        rounds += 1

        assert rounds < 50
    assert story.replica.joins.observers == {}
    assert story.replica.aborted == {}


@settings(max_examples=50, deadline=None)
@given(st.lists(ids, min_size=1, max_size=12, unique=True))
def test_whoever_only_joins_is_in_at_the_end(names: list[str]) -> None:
    story = Story()
    for name in names:
        story.write(prepare(name))
    while story.waiting:
        story.write(React(0))

    assert story.replica.roster == tuple(sorted(names))
    assert faults(story.replica) == []


def test_failures_are_bounded_and_tombstones_go_after_two_collections() -> None:
    story = Story()
    for number in range(100):
        story.write(b"{")
        story.write(Write("a", c.Leave(f"x{number}")))
    assert len(story.replica.failed) == 32
    assert len(story.replica.left) == 100

    story.write(Write("a", c.Gc()))
    assert len(story.replica.left) == 100
    story.write(Write("a", c.Gc()))
    assert story.replica.left == {}


# -- commands that fail --------------------------------------------------------------------------


@attrs.frozen
class Broken(c.Command):
    """A command with an error in it, at one of its ends."""

    kind = "broken"

    where: str

    def apply(self, replica: Replica, position: int) -> Replica:
        if self.where == "apply":
            raise KeyError(position)
        return attrs.evolve(replica, members={})

    def reactions(self, old: Replica, new: Replica) -> tuple[c.Reaction, ...]:
        if self.where == "reactions":
            raise AssertionError
        return ()

    def diff(self, old: Replica, new: Replica) -> dict[str, str]:
        return {"is": 1 // 0}  # type: ignore[dict-item]


PLANTED = {**c.COMMANDS, Broken.kind: Broken}


def test_an_entry_that_fails_is_skipped_by_all_alike_seen_by_all_and_stops_nobody() -> None:
    reasons = {"apply": "KeyError", "reactions": "AssertionError", "diff": "ZeroDivisionError"}
    replica = other = play(Replica(), 0, Entry("a", 0, c.PrepareJoin("a", member_of("a"))).encode()).replica
    for position, where in enumerate(reasons, 1):
        raw = Entry("b", position, Broken(where)).encode()
        played = play(replica, position, raw, PLANTED)
        replica, other = played.replica, play(from_text(Replica, other.text()), position, raw, PLANTED).replica

        assert (played.outcome, played.reason) == (Outcome.FAILED, reasons[where])
        assert (played.reactions, played.diff) == ((), {})
        assert replica.members.keys() == {"a"}
    assert [(each.position, each.reason) for each in replica.failed] == [*enumerate(reasons.values(), 1)]
    assert replica.digest() == other.digest()

    after = play(replica, 9, Entry("b", 9, c.PrepareJoin("b", member_of("b"))).encode(), PLANTED)
    assert after.outcome is Outcome.APPLIED
    assert after.replica.joins.prepared == {"a": "b"}


def test_one_s_own_trouble_is_not_the_entry_s() -> None:
    class Hungry(c.Command):
        kind = "hungry"

        def apply(self, replica: Replica, position: int) -> Replica:
            raise MemoryError

    raw = Entry("a", 0, attrs.frozen(Hungry)()).encode()
    try:
        play(Replica(), 0, raw, {"hungry": attrs.frozen(Hungry)})
    except MemoryError:
        return
    raise AssertionError("it was taken for a failure of the entry")
