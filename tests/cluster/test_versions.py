"""Each group is at each moment what playing in order makes of it; entries go on while decisions are pending."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import attrs
import pytest

from cluster.random_log import Writer, member, random_flow
from skuld_py.cluster.log.canonical import to_text
from skuld_py.cluster.log.commands import (
    COMMANDS,
    AddSlot,
    Command,
    Inapplicable,
    JoinDirect,
    Joining,
    Leave,
    PrepareJoin,
)
from skuld_py.cluster.log.commands.footprints import ENVELOPE, FOOTPRINTS, GROUPS, footprint
from skuld_py.cluster.log.entries import Entry, decode
from skuld_py.cluster.log.play import Outcome, Played, admit, perform, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.placement import place
from skuld_py.cluster.scale import versions
from skuld_py.cluster.scale.decisions import PLACEMENT as PLACING
from skuld_py.cluster.scale.decisions import Question, Unwanted, Wanted, computed, hash_of, read_result
from skuld_py.cluster.scale.versions import Derived, PlacedReplica, Scheme, Versions, placing
from skuld_py.model.events import Compute

# -- what commands declare -----------------------------------------------------------------------


def fields_of(groups: frozenset[str]) -> list[str]:
    return [field for group in sorted(groups) for field in GROUPS[group]]


def test_every_command_and_every_field_is_declared() -> None:
    assert FOOTPRINTS.keys() == COMMANDS.keys()
    declared = [field for fields in GROUPS.values() for field in fields]
    assert sorted([*declared, "failed", "version"]) == sorted(
        field.name for field in attrs.fields(Replica))
    assert all(each.writes <= each.reads <= GROUPS.keys() for each in FOOTPRINTS.values())


def replicas(random: Random, count: int) -> list[Replica]:
    """Replicas at random positions of random logs."""
    found = []
    for _ in range(count):
        writer = Writer(random, Replica(replicas=2), COMMANDS)
        for _ in range(random.randint(3, 80)):
            writer.next(flows(writer) if random.random() < 0.5 else ())
        found.append(writer.replica)
    return found


def flows(writer: Writer) -> list[Callable[[Random], Command]]:
    """Besides, something about workflows."""
    return [lambda random: random_flow(random, writer.replica)]


def scrambled(random: Random, replica: Replica, others: list[Replica], kept: frozenset[str]) -> Replica:
    """With the groups of somebody else, but those to be kept."""
    changes = {}
    for group in sorted(GROUPS.keys() - kept):
        other = random.choice(others)
        changes.update({field: getattr(other, field) for field in GROUPS[group]})
    other = random.choice(others)
    return attrs.evolve(replica, failed=other.failed, version=other.version, **changes)


def outcome(played: Played, written: frozenset[str]) -> object:
    return (played.outcome, played.reason, played.reactions, played.diff,
            [to_text(getattr(played.replica, field)) for field in fields_of(written)])


def test_commands_read_and_write_what_they_declare_and_nothing_else() -> None:
    """Undeclared reads would see another replica's values; undeclared writes would change them."""
    random = Random(6)
    others = replicas(random, 200)
    applied: Counter[str] = Counter()
    for replica in others * 4:
        writer = Writer(random, replica, COMMANDS)
        for _ in range(12):
            writer.replica = replica
            try:
                entry = decode(writer.next(flows(writer) if random.random() < 0.5 else ()))
            except Exception:
                continue
            declared = FOOTPRINTS[entry.command.kind]
            position = 1_000
            alike = perform(replica, position, entry)
            other = scrambled(random, replica, others, declared.reads)
            here = perform(other, position, entry)

            assert outcome(here, declared.writes) == outcome(alike, declared.writes), entry
            for before, after in ((replica, alike.replica), (other, here.replica)):
                for field in fields_of(frozenset(GROUPS.keys() - declared.writes)):
                    assert getattr(before, field) is getattr(after, field), (entry, field)
            applied[entry.command.kind] += alike.outcome is Outcome.APPLIED

    assert all(applied[kind] >= 5 for kind in COMMANDS.keys() - {"set-rules"}), applied


def test_whether_an_entry_counts_rests_on_the_envelope_only() -> None:
    random = Random(5)
    others = replicas(random, 40)
    seen: Counter[object] = Counter()
    for replica in others * 5:
        known = [*replica.writers, *replica.left, "nobody"]
        entry = Entry(random.choice(known), random.randint(0, 5), PrepareJoin("x:1~a", member("x:1~a")))
        alike = admit(replica, 99, entry)
        here = admit(scrambled(random, replica, others, ENVELOPE), 99, entry)

        assert type(here) is type(alike)
        if isinstance(here, Played) and isinstance(alike, Played):
            assert here.outcome is alike.outcome
            seen[here.outcome] += 1
        elif isinstance(here, Replica) and isinstance(alike, Replica):
            assert to_text(here.writers) == to_text(alike.writers)
            seen["admitted"] += 1

    assert min(seen[each] for each in (Outcome.LATE, Outcome.REPEATED, "admitted")) >= 5


# -- a scheme with decisions that entries read ---------------------------------------------------


@attrs.frozen
class Busy(Replica):
    """A replica with two derived groups: a share that nodes give, and an allocation that slots, the share and the
    allocation before give."""

    share: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)
    allocation: tuple[str, ...] = attrs.field(default=(), eq=False, repr=False)


@attrs.frozen
class Spend(Command):
    """Takes the first allocated slot away; there must be one."""

    kind = "spend"
    count: int

    def apply(self, replica: Any, position: int) -> Any:
        if not replica.allocation:
            raise Inapplicable("nothing is allocated")
        if self.count == 7:
            raise ZeroDivisionError
        gone = replica.allocation[self.count % len(replica.allocation)]
        slots = {slot: each for slot, each in replica.slots.items() if slot != gone}
        return replica if len(slots) == len(replica.slots) else attrs.evolve(replica, slots=slots)

    def diff(self, old: Any, new: Any) -> Mapping[str, str]:
        return {"allocation": " ".join(old.allocation)}


@attrs.frozen
class Turn(Command):
    """Marks the node that the share names first, or takes the mark away."""

    kind = "turn"

    def apply(self, replica: Any, position: int) -> Any:
        if not replica.share or replica.share[0] not in replica.nodes:
            return replica
        name = replica.share[0]
        place_of = replica.nodes[name]
        marked = attrs.evolve(place_of, is_leaving=not place_of.is_leaving, since=position)
        return attrs.evolve(replica, nodes={**replica.nodes, name: marked})


@attrs.frozen
class Note(Command):
    """Notes the share where nothing depends on it."""

    kind = "note"

    def apply(self, replica: Any, position: int) -> Any:
        return attrs.evolve(replica, aborted={**replica.aborted, " ".join(replica.share): position})


@attrs.frozen
class Audit(Command):
    """Has no footprint; looks at everything."""

    kind = "audit"

    def apply(self, replica: Any, position: int) -> Any:
        seen = hash_of(attrs.evolve(replica, failed=()).text(), *replica.share, *replica.allocation).hex()
        return attrs.evolve(replica, aborted={**replica.aborted, f"seen-{seen[:6]}": position})


MORE = [lambda random: Spend(random.randint(0, 7)), lambda random: Spend(random.randint(0, 3)), lambda _: Turn(),
        lambda _: Note(), lambda _: Note(), lambda _: Audit()]
ALL: dict[str, type[Command]] = {**COMMANDS, "spend": Spend, "turn": Turn, "note": Note, "audit": Audit}


def decided(question: Question) -> tuple[str, ...]:
    """The expensive function: some of what it is given, in an order that all of it decides."""
    names = question.input[0]
    shuffled = sorted(names, key=lambda name: hash_of(question.kind, question.text, name))
    return tuple(shuffled[: (len(names) + 1) // 2 + 1])


SHARE = Derived(
    "share", frozenset({"nodes"}),
    lambda replica: Question("share", ([name for name, each in replica.nodes.items() if not each.is_leaving],)),
    lambda question, result: result)
STICKY = Derived(
    "allocation", frozenset({"slots", "share", "allocation"}),
    lambda replica: Question("allocation", ((*replica.slots, *replica.share), replica.allocation[:2])),
    lambda question, result: result)
ALONE = Derived(
    "allocation", frozenset({"slots"}),
    lambda replica: Question("allocation", ((*replica.slots, "more", "most"),)),
    lambda question, result: result)
READS = {**FOOTPRINTS, "spend": footprint("allocation", "slots"), "turn": footprint("share", "nodes"),
         "note": footprint("share", "ring")}
SCHEME = Scheme((SHARE, STICKY), footprints=READS, commands=ALL)
"""One decision waits for the other, and for the one before."""
APART = Scheme((SHARE, ALONE), footprints=READS, commands=ALL)


def derive(scheme: Scheme, replica: Any, written: frozenset[str]) -> Any:
    """What is derived of groups that were written, one after the other, at once."""
    for derived in scheme.derived:
        if not written.isdisjoint(derived.reads):
            question = derived.ask(replica)
            replica = attrs.evolve(replica, **{derived.name: derived.take(question, decided(question))})
            written |= {derived.name}
    return replica


class InOrder:
    """The log played in order, each decision made at once: the replica and what was played, by position."""

    def __init__(self, scheme: Scheme, base: Replica) -> None:
        self.scheme = scheme
        self.replicas: dict[int, Any] = {-1: derive(scheme, base, frozenset(scheme.groups))}
        self.played: list[Played] = []

    def write(self, raw: bytes) -> None:
        position = len(self.played)
        played = play(self.replicas[position - 1], position, raw, self.scheme.commands)
        made = played.replica
        if played.outcome is Outcome.APPLIED and played.entry is not None:
            made = derive(self.scheme, made, self.scheme.of(played.entry.command.kind).writes)
        self.replicas[position] = made
        self.played.append(played)


class Run:
    """Versions, fed with a log while decisions come in any order, and compared with the log played in order."""

    def __init__(self, seed: int, length: int, scheme: Scheme = SCHEME) -> None:
        self.random = Random(seed)
        base = Busy(replicas=1)
        self.right = InOrder(scheme, base)
        writer = Writer(self.random, self.right.replicas[-1], dict(scheme.commands))
        self.log: list[bytes] = []
        for _ in range(length):
            raw = writer.next(MORE)
            self.right.write(raw)
            writer.replica = self.right.replicas[len(self.log)]
            self.log.append(raw)
        self.versions = Versions(base, scheme)
        self.wanted: dict[bytes, Question] = {}
        self.played: dict[int, Played] = {}
        self.order: list[int] = []
        self.dropped = 0
        self._take(self.versions.begin())

    def _take(self, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Wanted(_, question):
                    assert question.hash not in self.wanted
                    self.wanted[question.hash] = question
                case Unwanted(question_hash):
                    del self.wanted[question_hash]
                    self.dropped += 1
                case Played():
                    assert effect.position not in self.played
                    self.played[effect.position] = effect
                    self.order.append(effect.position)
        self._compare()

    def _compare(self) -> None:
        for group, fields in {**SCHEME.fields, "failed": ("failed",)}.items():
            version, values = self.versions.observe(group)
            if version < -1:
                continue  # nothing is derived yet
            right = self.right.replicas[version]
            assert to_text(values) == to_text(tuple(getattr(right, field) for field in fields)), (group, version)

    def decide_one(self) -> None:
        question_hash = self.random.choice(list(self.wanted))
        self._take(self.versions.decide(question_hash, decided(self.wanted.pop(question_hash))))

    def run(self, patience: float) -> None:
        fed = 0
        while fed < len(self.log) or self.wanted:
            can_feed = fed < len(self.log) and self.versions.has_room
            if can_feed and (not self.wanted or self.random.random() < patience):
                self._take(self.versions.feed(fed, self.log[fed]))
                fed += 1
            else:
                self.decide_one()

    def check_end(self) -> None:
        last = len(self.log) - 1
        assert all(self.versions.version(group) == last for group in SCHEME.fields)
        replica = self.versions.replica
        assert replica is not None and replica.text() == self.right.replicas[last].text()
        for right in self.right.played:
            here = self.played[right.position]
            assert (here.outcome, here.reason, here.reactions, here.diff) == (
                right.outcome, right.reason, right.reactions, right.diff), right.entry


@pytest.mark.parametrize("scheme", [SCHEME, APART], ids=["chained", "apart"])
@pytest.mark.parametrize("patience", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_whatever_waits_each_group_is_what_playing_in_order_makes_of_it(seed: int, patience: float,
                                                                        scheme: Scheme) -> None:
    run = Run(seed, 60, scheme)

    run.run(patience)

    run.check_end()


@pytest.mark.parametrize("scheme", [SCHEME, APART], ids=["chained", "apart"])
def test_in_a_typical_run_entries_go_on_and_wait_and_overtake(scheme: Scheme) -> None:
    """The runs above show something only if all of it happens in them."""
    ahead = overtaking = dropped = 0
    kinds: Counter[Outcome] = Counter()
    for seed in range(40):
        run = Run(seed, 60, scheme)
        run.run(0.9)
        ahead += run.versions.ahead
        overtaking += sum(1 for one, following in zip(run.order, run.order[1:], strict=False) if following < one)
        dropped += run.dropped
        kinds.update(each.outcome for each in run.played.values())

    assert kinds.total() == 40 * 60
    assert ahead >= 200 and overtaking >= 25
    assert dropped >= 20 or scheme is SCHEME  # in which somebody reads each decision
    assert all(kinds[each] >= 10 for each in Outcome)


# -- one by one ----------------------------------------------------------------------------------


def raw(seq: int, command: Command, writer: str = "operator") -> bytes:
    return Entry(writer, seq, command).encode()


def joined(*names: str) -> JoinDirect:
    return JoinDirect("n0:1~a", "n0:1~a", tuple(Joining(name, member(name)) for name in names))


def start(scheme: Scheme = SCHEME) -> tuple[Versions, list[Any]]:
    """One member, and everything decided."""
    machine = Versions(Busy(replicas=1), scheme)
    effects = machine.begin() + machine.feed(0, raw(0, PrepareJoin("n0:1~a", member("n0:1~a"))))
    while wanted := [effect.question for effect in effects if isinstance(effect, Wanted)]:
        effects = [each for question in wanted for each in machine.decide(question.hash, decided(question))]
    assert all(machine.version(group) == 0 for group in SCHEME.fields)
    return machine, effects


def test_an_entry_goes_on_while_a_decision_is_pending_and_one_that_reads_it_waits() -> None:
    machine, _ = start()
    wanted, = [each for each in machine.feed(1, raw(1, joined("n1:1~a"))) if isinstance(each, Wanted)]

    went, = machine.feed(2, raw(2, Leave("n9:1~a")))
    assert isinstance(went, Played) and went.position == 2
    assert machine.feed(3, raw(3, Turn())) == []
    went, = [each for each in machine.feed(4, raw(4, AddSlot("s", "n0:1~a"))) if isinstance(each, Played)]
    assert went.outcome is Outcome.APPLIED

    assert machine.version("ring") == 4 and machine.version("slots") == 4
    assert machine.version("nodes") == 2 and machine.replica is None
    turned = machine.decide(wanted.question.hash, decided(wanted.question))
    assert [each.position for each in turned if isinstance(each, Played)] == [3]
    assert machine.version("nodes") == 4 and machine.replica is not None


def test_a_decision_overtaken_by_a_newer_one_is_not_wanted_any_more() -> None:
    machine = Versions(PlacedReplica(), placing(8))
    first, = machine.begin()
    effects = machine.feed(0, raw(0, PrepareJoin("n0:1~a", member("n0:1~a"))))

    assert isinstance(first, Wanted)
    assert [type(each) for each in effects] == [Played, Unwanted, Wanted]
    assert machine.version("placement") == -2 and machine.version("nodes") == 0
    assert machine.decide(first.question.hash, ()) == [] and machine.version("placement") == -2


def test_what_is_decided_already_is_not_asked_again() -> None:
    machine = Versions(PlacedReplica(), placing(8))
    machine.begin()
    wanted = machine.feed(0, raw(0, PrepareJoin("n0:1~a", member("n0:1~a"))))[-1]
    assert isinstance(wanted, Wanted)
    machine.decide(wanted.question.hash, ((),) * 8)

    assert [type(each) for each in machine.feed(1, raw(1, Leave("n0:1~a")))] == [Played]
    assert machine.version("placement") == 1


def test_of_many_failures_the_last_are_kept() -> None:
    machine, _ = start()
    for position in range(1, 41):
        machine.feed(position, b"{")

    assert [each.position for each in machine.observe("failed")[1][0]] == list(range(9, 41))


def test_the_steps_that_wait_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _ = start()
    monkeypatch.setattr(versions, "WAITING_MAX", 6)
    machine.feed(1, raw(1, joined("n1:1~a")))
    fed = 1
    while machine.has_room:
        fed += 1
        machine.feed(fed, raw(fed, Turn()))
    assert fed < 8
    with pytest.raises(AssertionError):
        machine.feed(fed + 1, raw(fed + 1, Turn()))


def test_how_far_entries_run_ahead_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, _ = start()
    monkeypatch.setattr(versions, "AHEAD_MAX", 5)
    machine.feed(1, raw(1, joined("n1:1~a")))
    for position in range(2, 20):
        machine.feed(position, raw(position, AddSlot(f"s{position}", "n9:1~a")))
    machine.feed(20, raw(20, Turn()))
    fed = 20
    while machine.has_room:
        fed += 1
        machine.feed(fed, raw(fed, AddSlot(f"s{fed}", "n9:1~a")))

    assert fed == 25


def test_a_reason_is_kept_as_playing_in_order_keeps_it() -> None:
    """Whatever stands in an entry that cannot be read."""
    raw_entry = b'{"do":"leave","seq":0,"with":{"member":"x","\xc3\xa9\\u0007%s":1},"writer":"w"}' % (b"y" * 400)
    right = play(Replica(), 0, raw_entry)
    machine = Versions(PlacedReplica(), placing(8))
    machine.begin()

    here, = machine.feed(0, raw_entry)

    assert isinstance(here, Played) and here.reason == right.reason
    assert len(right.reason) == 250 and "?" in right.reason
    assert machine.observe("failed")[1] == (right.replica.failed,)


# -- the placement -------------------------------------------------------------------------------


def test_the_placement_lags_while_all_entries_go_on_and_is_right_in_the_end() -> None:
    machine = Versions(PlacedReplica(replicas=3), placing(16))
    effects = machine.begin() + machine.feed(0, raw(0, PrepareJoin("n0:1~a", member("n0:1~a"))))
    lives = [f"n{index}:1~a" for index in range(1, 9)]
    for position, life in enumerate(lives, 1):
        before = lives[position - 2] if position > 1 else "n0:1~a"
        command = JoinDirect("n0:1~a", before, (Joining(life, member(life)),))
        effects += machine.feed(position, raw(position, command))
    played = [each for each in effects if isinstance(each, Played)]
    assert [each.position for each in played] == list(range(9)) and machine.ahead == 9
    assert machine.version("placement") == -2 and machine.version("nodes") == 8

    open_questions = {each.question.hash: each.question for each in effects if isinstance(each, Wanted)}
    for each in effects:
        if isinstance(each, Unwanted):
            del open_questions[each.hash]
    question, = open_questions.values()
    done = computed(Compute(question.kind, question.hash, question.text))
    machine.decide(question.hash, read_result(PLACING, question, done.text)[0])

    names = tuple(sorted(machine.observe("nodes")[1][0]))
    assert machine.observe("placement") == (8, (place(names, 16, 3),))
