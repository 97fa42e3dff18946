"""The seats of workflows as a decision: what is asked, what cannot be right, and that all members are alike."""

from __future__ import annotations

from collections import Counter
from random import Random

import attrs
import pytest

from cluster.random_log import Writer, member, random_flow
from skuld_py.cluster.log import commands as c
from skuld_py.cluster.log.canonical import from_text, to_text
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import StepRow
from skuld_py.cluster.member.news import Teller
from skuld_py.cluster.scale.decisions import SEATS, TEXT_BYTES_MAX, Question, computed, read_result
from skuld_py.cluster.scale.derivation import Derivation
from skuld_py.cluster.scale.seating import Seating
from skuld_py.cluster.scale.seats import SeatsInput, SeatsResult, Starved, decide, flaw, input_of
from skuld_py.cluster.scale.versions import placing
from skuld_py.errors import Malformed
from skuld_py.model.events import Compute
from skuld_py.model.seats import SEATED, Seats
from skuld_py.workflow.scheduling.fences import is_stale

NODES = ("a:1", "b:1", "c:1")
LIVES = tuple(f"{name}~x" for name in NODES)
STEPS = (StepRow("in", "input"), StepRow("work", "function"), StepRow("out", "output"))


class Log:
    """A log and the members that play it: each derives its seats by itself, or asks schedulers."""

    def __init__(self, schedulers: tuple[str, ...] = ()) -> None:
        self.log: list[bytes] = []
        self.replica = Replica(replicas=1)
        self.machines = {name: Derivation(name, schedulers, None, play) for name in NODES}
        self.write(c.PrepareJoin(LIVES[0], member(LIVES[0])))
        self.write(c.JoinDirect(LIVES[0], LIVES[0], tuple(c.Joining(life, member(life)) for life in LIVES[1:])))

    def write(self, command: c.Command) -> None:
        raw = Entry("op", len(self.log), command).encode()
        self.replica = play(self.replica, len(self.log), raw).replica
        self.log.append(raw)

    def slots(self, life: str, count: int, *tags: str) -> None:
        slot = f"{life.partition('~')[0]}~{len(self.log)}"
        old = [name for name, each in self.replica.slots.items()
               if each.member == life and {*each.tags[1:]} == {SEATED, *tags}]
        self.write(c.AddSlot(slot, life, (f"claims-{count}", SEATED, *tags)))
        for name in old:
            self.write(c.LeaveSlot(name))

    def submit(self, name: str, *steps: StepRow, percentage: int = 0) -> None:
        self.write(c.SubmitWorkflow(name, 16 * "a", 32 * "0", steps or STEPS, percentage=percentage))

    def settle(self, name: str) -> Seats:
        """The seats as one member knows them when all is computed."""
        machine = self.machines[name]
        effects = machine.settle(0, self.replica)
        while effects:
            effects = [more for each in effects if isinstance(each, Compute)
                       for more in machine.step(0, computed(each))]
        return machine.seats

    def seats(self) -> dict[str, Seats]:
        return {name: self.settle(name) for name in NODES}

    def counts(self) -> dict[str, list[int]]:
        """By workflow, the slots of each step, summed over the nodes."""
        found: Counter[tuple[str, str]] = Counter()
        for seats in self.seats().values():
            for _, each in seats.here:
                found.update({(seat.workflow, seat.step): seat.count for seat in each})
        return {name: [found[name, step.name] for step in each.steps if found[name, step.name]]
                for name, each in self.replica.workflows.items() if each.is_live}


@pytest.fixture
def log() -> Log:
    made = Log()
    for life in LIVES:
        made.slots(life, 4)
    return made


# -- the vectors, while workers come and go --------------------------------------------------------


def test_three_workflows_share_twelve_slots_under_each_way_of_sharing(log: Log) -> None:
    """Onyx's vectors of jobs with three tasks each (its 7.4), through the log."""
    for number, percentage in enumerate((30, 30, 40)):
        log.submit(f"w{number}", percentage=percentage)
    assert log.counts() == {"w0": [2, 1, 1], "w1": [2, 1, 1], "w2": [2, 1, 1]}, "balanced, where nothing is said"

    log.write(c.SetSharing("greedy"))
    assert log.counts() == {"w0": [4, 4, 4], "w1": [], "w2": []}
    log.write(c.SetSharing("percentage"))
    assert log.counts() == {"w0": [1, 1, 1], "w1": [2, 1, 1], "w2": [2, 2, 1]}

    log.write(c.SetSharing("balanced"))
    log.write(c.KillWorkflow("w1"))
    assert log.counts() == {"w0": [2, 2, 2], "w2": [2, 2, 2]}, "after one is killed"


@pytest.mark.parametrize(("slots", "balanced", "greedy"), [
    (6, [3, 3], [6, 0]), (7, [4, 3], [7, 0]), (2, [0, 0], [0, 0]), (3, [3, 0], [3, 0])])
def test_workers_come_and_go_and_the_counts_follow(slots: int, balanced: list[int], greedy: list[int]) -> None:
    log = Log()
    for number in range(len(balanced)):
        log.submit(f"w{number}")
    log.slots(LIVES[0], 1)
    log.slots(LIVES[1], slots - 1)
    assert [sum(each) for each in log.counts().values()] == balanced
    log.write(c.SetSharing("greedy"))
    assert [sum(each) for each in log.counts().values()][:2] == greedy

    log.slots(LIVES[0], 40)
    assert sum(map(sum, log.counts().values())) == slots + 39
    log.write(c.Leave(LIVES[0]))
    assert sum(map(sum, log.counts().values())) == (slots - 1 if slots > 3 else 0)


def test_a_workflow_that_can_only_be_seated_by_tags_says_which_it_lacks(log: Log) -> None:
    log.submit("w", StepRow("in", "input"), StepRow("out", "output", tags=("gpu",)))

    assert log.counts() == {"w": []}
    assert {seats.starved["w"] for seats in log.seats().values()} == {
        "step out needs 1 slot with the tags gpu; there are 0"}
    log.slots(LIVES[1], 2, "gpu")
    assert log.counts()["w"] == [12, 2] and log.settle("b:1").starved == {}


def test_only_workers_that_take_seats_count(log: Log) -> None:
    log.write(c.AddSlot("a:1~others", LIVES[0], ("claims-50",)))
    log.submit("w")

    assert log.counts() == {"w": [4, 4, 4]}


def test_an_exhausted_input_gives_its_slots_to_the_others(log: Log) -> None:
    log.submit("w")
    log.write(c.ExhaustInput("w", "in"))

    assert log.counts() == {"w": [6, 6]}


def test_an_input_is_given_no_more_slots_than_it_has_open_strands(log: Log) -> None:
    log.submit("w", StepRow("in", "input", 2, 2), *STEPS[1:])
    assert log.counts() == {"w": [2, 5, 5]}
    log.write(c.ExhaustInput("w", "in", 1))
    assert log.counts() == {"w": [1, 6, 5]}
    log.write(c.ExhaustInput("w", "in", 0))
    assert log.counts() == {"w": [6, 6]}


def test_while_a_number_changes_the_newest_counts(log: Log) -> None:
    log.submit("w")
    log.write(c.AddSlot("a:1~new", LIVES[0], ("claims-7", SEATED)))

    assert sum(log.counts()["w"]) == 15


# -- all members alike ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_who_plays_each_entry_and_who_jumps_has_the_same_seats(seed: int) -> None:
    """One looks at every position, one at some, one only at the end; the same seats are stale to none."""
    random, log = Random(seed), Log()
    for _ in range(60):
        what = random.random()
        if what < 0.4:
            log.slots(random.choice(LIVES), random.randint(1, 6), *random.choice(((), ("gpu",))))
        else:
            log.write(random_flow(random, log.replica))
        log.settle(NODES[0])
        if random.random() < 0.2:
            log.settle(NODES[1])
    found = [attrs.evolve(seats, here=(), position=0, fences={}) for seats in log.seats().values()]
    assert found[0] == found[1] == found[2]
    known = [seats.fences for seats in log.seats().values()]
    assert known[0].keys() == known[1].keys() == known[2].keys()
    for one in known:
        for other in known:
            assert not any(is_stale(one[name], other[name]) for name in one)
    places = [sum(seat.count for _, seats in each.here for seat in seats) for each in log.seats().values()]
    units = sum(row.units for row in input_of(log.replica).places)
    assert sum(places) <= units


def test_changed_seats_have_a_newer_fence_and_others_keep_theirs(log: Log) -> None:
    log.submit("w0", StepRow("in", "input", most=1), StepRow("out", "output", most=1))
    before = log.settle("a:1")
    log.submit("w1", StepRow("in", "input", most=1), StepRow("out", "output", most=1))
    after = log.settle("a:1")
    if after.fences["w0"] != before.fences["w0"]:
        assert is_stale(before.fences["w0"], after.fences["w0"])
    assert not is_stale(after.fences["w1"], before.fences.get("w1", 1))

    log.write(c.KillWorkflow("w0"))
    log.write(c.KillWorkflow("w1"))
    assert log.settle("a:1") == Seats(log.replica.version)


def test_the_node_is_told_once_and_of_changes_only(log: Log) -> None:
    teller = Teller()
    assert teller.tell_seats(log.settle("a:1")) == []
    log.submit("w")
    seats = log.settle("a:1")
    told, = teller.tell_seats(seats)
    assert told.event.seats is seats  # type: ignore[union-attr]
    assert teller.tell_seats(seats) == teller.tell_seats(attrs.evolve(seats, position=99)) == []


def test_seats_are_decided_beside_the_placement_and_neither_hinders_the_other(log: Log) -> None:
    machine = Derivation("a:1", (), placing(16), play)
    log.submit("w")
    effects = [each for each in machine.settle(0, log.replica) if isinstance(each, Compute)]
    assert sorted(each.kind for each in effects) == ["allocation-1", "placement-1"]
    for each in effects:
        machine.step(0, computed(each))
    assert machine.lists is not None and machine.seats.here and not machine.is_lagging

    raw = Entry("op", 99, c.KillWorkflow("w")).encode()
    played = machine.play(log.replica, log.replica.version + 1, raw)
    assert machine.settle(0, played.replica) == []
    assert machine.seats.fences == {} and machine.lists is not None


def test_what_is_overtaken_is_not_waited_for(log: Log) -> None:
    machine = log.machines["a:1"]
    log.submit("w0")
    first, = machine.settle(0, log.replica)
    log.submit("w1")
    second, = machine.settle(0, log.replica)
    assert isinstance(first, Compute) and isinstance(second, Compute)

    machine.step(0, computed(first))
    assert machine.seats == Seats(), "the answer to a question that is not asked any more"
    machine.step(0, computed(second))
    assert {*machine.seats.fences} == {"w0", "w1"}


def test_an_answer_to_an_older_question_is_none_to_the_newest(log: Log) -> None:
    seating = Seating("a:1")
    log.submit("w0")
    older = seating.look(log.replica)
    log.submit("w1")
    newer = seating.look(log.replica)
    assert older is not None and newer is not None

    seating.decide(older.question, decide(older.question.input))
    assert seating.look(log.replica) is newer and seating.seats == Seats()
    seating.decide(newer.question, decide(newer.question.input))
    assert seating.look(log.replica) is None and {*seating.seats.fences} == {"w0", "w1"}


# -- questions and answers -------------------------------------------------------------------------


def asked() -> SeatsInput:
    log = Log()
    for life in LIVES:
        log.slots(life, 4)
    log.slots(LIVES[0], 2, "gpu")
    log.submit("w0", StepRow("in", "input", 1, 2), StepRow("out", "output", 2, 9, ("gpu",)))
    log.submit("w1", StepRow("in", "input"), StepRow("out", "output", tags=("tpu",)))
    return input_of(log.replica)


def test_a_question_is_its_text_and_its_answer_is_without_flaw() -> None:
    question = asked()
    assert from_text(SeatsInput, to_text(question)) == question
    result = decide(question)
    assert flaw(question, result) == "" and [each.workflow for each in result.starved] == [1]
    assert read_result(SEATS, Question(SEATS.name, question), to_text(result)) == (result, "")


@pytest.mark.parametrize(("seats", "starved", "words"), [
    (((), ()), (), "lists for 4 places"),
    (((0, 0), (), (), ()), (), "no row of threes"),
    (((0, 2, 1), (), (), ()), (), "does not exist"),
    (((2, 0, 1), (), (), ()), (), "does not exist"),
    (((0, 0, 0), (), (), ()), (), "does not exist"),
    (((0, 0, 5), (), (), ()), (), "more slots of a:1 than there are"),
    (((0, 0, 1, 0, 0, 1), (), (), ()), (), "more slots of a:1 than there are"),
    (((0, 1, 1), (), (), ()), (), "lack tags"),
    (((0, 0, 3), (0, 1, 2), (), ()), (), "more than its most"),
    (((0, 0, 1), (0, 1, 1), (), ()), (), "fewer slots than its least"),
    (((0, 0, 1), (0, 1, 2), (), ()), (Starved(0, "x"),), "says has none"),
    (((), (), (), ()), (Starved(1, "x"), Starved(1, "y")), "twice"),
    (((), (), (), ()), (Starved(2, "x"),), "does not exist")])
def test_flaws(seats: tuple[tuple[int, ...], ...], starved: tuple[Starved, ...], words: str) -> None:
    question = asked()
    assert words in flaw(question, SeatsResult(seats, starved))


@pytest.mark.parametrize("change", [
    {"sharing": "unfair"}, {"tags": ()}, {"places": "reversed"}, {"places": "twice"}, {"demands": "twice"},
    {"places": "empty"}])
def test_a_question_that_makes_no_sense_is_malformed(change: dict[str, object]) -> None:
    question = asked()
    others = {"reversed": question.places[::-1], "twice": question.places[:1] * 2,
              "empty": (attrs.evolve(question.places[0], units=0),)}
    field, value = next(iter(change.items()))
    if field == "places":
        value = others[str(value)]
    elif field == "demands":
        value = question.demands[:1] * 2
    with pytest.raises(Malformed):
        attrs.evolve(question, **{field: value})


@pytest.mark.parametrize("change", [
    {"least": (1,)}, {"least": (0, 1)}, {"most": (0, 1)}, {"percentages": (101, 0)}, {"percentage": -1},
    {"spreading": "thin"}])
def test_a_demand_that_makes_no_sense_is_malformed(change: dict[str, object]) -> None:
    with pytest.raises(Malformed):
        attrs.evolve(asked().demands[0], **change)


def test_the_question_of_ten_thousand_slots_is_short() -> None:
    members = {f"10.0.{number // 256}.{number % 256}:7070~x": member(f"10.0.{number // 256}.{number % 256}:7070~x")
               for number in range(2_500)}
    slots = {f"{life}s": c.AddSlot("s", life, ("claims-4", SEATED)) for life in members}
    replica = Replica(members=members, slots=slots)  # type: ignore[arg-type]

    assert len(to_text(input_of(replica))) < 2_500 * 70 < TEXT_BYTES_MAX / 40


def test_writers_of_random_logs_share_slots_in_every_way() -> None:
    random = Random(1)
    writer = Writer(random, Replica(replicas=2), c.COMMANDS)
    for at in range(400):
        writer.next([lambda random: random_flow(random, writer.replica)])
        if at % 20 == 0:
            question = input_of(writer.replica)
            assert flaw(question, decide(question)) == ""
