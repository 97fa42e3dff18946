"""Decisions are made once for all, are right whatever one scheduler does, and are always made."""

from __future__ import annotations

import json
from random import Random

import attrs
import pytest
from uhashring import HashRing

from cluster.deciders import Fault, World
from skuld_py.cluster.log.canonical import to_text
from skuld_py.cluster.placement import place
from skuld_py.cluster.scale.decider import Decider, DeciderSettings
from skuld_py.cluster.scale.decisions import (
    KINDS,
    PLACEMENT,
    Decision,
    Kind,
    PlacementInput,
    Question,
    Unwanted,
    Wanted,
    ask_placement,
    computed,
    hash_of,
    placement_of,
    read_result,
)
from skuld_py.cluster.scale.scheduler import Scheduler, SchedulerLimits
from skuld_py.errors import Malformed
from skuld_py.model.columns import Column, pack
from skuld_py.model.events import Compute, Computed, Received, SchedulersChanged, Send, Ticked
from skuld_py.model.messages import Decide, Decided, Message, Undecided
from skuld_py.model.messages.decisions import COMPUTING, DECLINED, INPUT_WANTED

NODES = tuple(f"10.0.0.{n}:13000" for n in range(9))
QUESTION = ask_placement(NODES, 64, 3)
RIGHT = place(NODES, 64, 3)
MEMBERS = [f"m{n}" for n in range(20)]
SCHEDULERS = ["s1", "s2", "s3", "s4"]


def told(decision: Decision) -> object:
    return placement_of(decision.question, decision.result)


def first_and_second(question: Question = QUESTION, names: list[str] = SCHEDULERS) -> list[str]:
    """Whom all members ask, found by asking one."""
    machine = Decider("m")
    machine.step(0, SchedulersChanged(tuple(names)))
    return [effect.peer for effect in machine.step(0, Wanted(1, question)) if isinstance(effect, Send)]


def all_are_right(world: World, question: Question = QUESTION) -> bool:
    right = place(question.input.nodes, question.input.partitions, question.input.replicas)
    return all([told(each) for each in world.decisions[name]] == [right] for name in world.members)


# -- once for all --------------------------------------------------------------------------------


def test_a_question_is_worked_out_twice_for_all_members_and_its_text_travels_twice() -> None:
    world = World(MEMBERS, SCHEDULERS)
    world.want(QUESTION)
    world.run()

    assert all_are_right(world)
    assert world.total() == 2
    assert sum(machine.agreed for machine in world.deciding.values()) == len(MEMBERS)
    assert sum(machine.computed + machine.mismatches for machine in world.deciding.values()) == 0
    assert world.sent[Decide] == 2 * len(MEMBERS) + 2


def test_what_was_decided_is_not_asked_again() -> None:
    world = World(["m"], SCHEDULERS)
    world.want(QUESTION)
    world.run()
    sent = world.sent.total()
    world.want(QUESTION, 9)

    assert [each.position for each in world.decisions["m"]] == [1, 9]
    assert world.sent.total() == sent


def test_a_question_at_another_position_is_the_same_question() -> None:
    machine = Decider("m")
    machine.step(0, SchedulersChanged(("s1", "s2")))

    assert len(machine.step(0, Wanted(1, QUESTION))) == 2
    assert machine.step(0, Wanted(2, ask_placement(tuple(reversed(NODES)), 64, 3))) == []
    assert machine.step(0, Unwanted(QUESTION.hash)) == []
    assert machine.step(0, Computed(QUESTION.hash, "[]")) == []


def said(question: Question, text: str, *, is_hash_only: bool = False) -> Decided:
    return Decided(question.hash, hash_of(text), Column() if is_hash_only else pack([text.encode()]))


def test_the_first_is_asked_for_the_answer_the_second_for_its_hash_and_again_if_need_be() -> None:
    machine = Decider("m")
    machine.step(0, SchedulersChanged(tuple(SCHEDULERS)))
    first, second = first_and_second()
    third = Decider("m")
    third.step(0, SchedulersChanged(tuple({*SCHEDULERS} - {first})))
    _, other = [effect.peer for effect in third.step(0, Wanted(1, QUESTION)) if isinstance(effect, Send)]

    assert asked_of(machine.step(0, Wanted(1, QUESTION))) == [(first, False), (second, True)]
    assert asked_of(machine.step(499, Ticked())) == []
    assert machine.deadline() == 500
    assert asked_of(machine.step(500, Ticked())) == [(first, False), (second, True)]
    machine.step(510, Received(second, said(QUESTION, "[]", is_hash_only=True)))
    declined = machine.step(511, Received(first, Undecided(QUESTION.hash, DECLINED)))
    assert asked_of(declined) == [(second, False), (other, True)]


def asked_of(effects: object) -> list[tuple[str, bool]]:
    return [(effect.peer, effect.message.is_hash_only) for effect in effects  # type: ignore[attr-defined]
            if isinstance(effect, Send) and isinstance(effect.message, Decide)]


def test_who_was_not_asked_says_nothing_and_who_says_two_things_is_not_believed() -> None:
    machine = Decider("m")
    machine.step(0, SchedulersChanged(tuple(SCHEDULERS)))
    machine.step(0, Wanted(1, QUESTION))
    first, second = first_and_second()
    right = computed(Compute(QUESTION.kind, QUESTION.hash, QUESTION.text)).text

    for stranger in ("m9", *SCHEDULERS):
        if stranger not in (first, second):
            assert machine.step(1, Received(stranger, said(QUESTION, right))) == []
            assert machine.step(1, Received(stranger, Decided(QUESTION.hash, b"", pack([b"{"])))) == []
    assert machine.step(1, Received(second, said(QUESTION, "[]", is_hash_only=True))) == []
    effect, = machine.step(1, Received(second, said(QUESTION, right, is_hash_only=True)))

    assert isinstance(effect, Compute) and machine.mismatches == 1


# -- who is asked --------------------------------------------------------------------------------


def questions(count: int) -> list[Question]:
    return [ask_placement([f"{n}:{index}" for n in range(3)], 8, 3) for index in range(count)]


def test_all_ask_the_same_and_the_same_in_every_process() -> None:
    asked = {question.hash.hex(): first_and_second(question) for question in questions(4)}

    assert asked == {each.hash.hex(): first_and_second(each, SCHEDULERS[::-1]) for each in questions(4)}
    assert list(asked.values()) == EXPECTED


EXPECTED = [["s1", "s4"], ["s2", "s1"], ["s1", "s2"], ["s2", "s1"]]
"""Members of different versions must ask the same ones; else each question is worked out more often."""


def test_a_scheduler_that_goes_hands_on_only_what_it_was_asked_and_questions_are_spread() -> None:
    before = {question: first_and_second(question) for question in questions(400)}
    after = {question: first_and_second(question, SCHEDULERS[1:]) for question in before}

    assert all(after[question] == names for question, names in before.items() if "s1" not in names)
    firsts = [names[0] for names in before.values()]
    assert all(50 <= firsts.count(name) <= 160 for name in SCHEDULERS)


def test_the_ring_is_of_the_package_that_is_made_for_it() -> None:
    machine = Decider("m")

    assert isinstance(machine._ring, HashRing)


@pytest.mark.parametrize("schedulers", [(), ("s1",), ("m",), ("m", "s1", "s2"), ("m", "s1")])
def test_without_two_others_or_as_a_scheduler_a_member_decides_alone(schedulers: tuple[str, ...]) -> None:
    machine = Decider("m")
    machine.step(0, SchedulersChanged(schedulers))

    asked, = machine.step(0, Wanted(1, QUESTION))
    assert isinstance(asked, Compute)
    decision, = machine.step(0, computed(asked))

    assert isinstance(decision, Decision) and told(decision) == RIGHT and decision.is_own
    assert machine.deadline() > 1 << 60


# -- faults --------------------------------------------------------------------------------------


def swapped(text: str) -> str:
    """A placement as good as the right one, but another."""
    lists = json.loads(text)
    return to_text([lists[1], lists[0], *lists[2:]])


def uneven(text: str) -> str:
    lists = json.loads(text)
    return to_text([lists[0]] * len(lists))


def garbled(random: Random, peer: str, message: Message) -> Message:
    if isinstance(message, Decided) and len(message.text):
        return attrs.evolve(message, text=pack([swapped(message.text.unpack()[0].decode()).encode()]))
    return message


def undecodable(random: Random, peer: str, message: Message) -> Message:
    return attrs.evolve(message, text=pack([b"\xff"])) if isinstance(message, Decided) else message


def double_tongued(random: Random, peer: str, message: Message) -> Message:
    if isinstance(message, Decided) and not len(message.text):
        return attrs.evolve(message, answer=random.randbytes(16))
    return message


def silent(random: Random, peer: str, message: Message) -> None:
    return None


def unwilling(random: Random, peer: str, message: Message) -> Message:
    return Undecided(message.question, DECLINED)  # type: ignore[attr-defined]


FAULTS = {"garbled": garbled, "undecodable": undecodable, "double-tongued": double_tongued, "silent": silent,
          "unwilling": unwilling}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
@pytest.mark.parametrize("place_in_order", [0, 1])
def test_no_fault_of_one_scheduler_makes_a_wrong_decision_or_none(fault: Fault, place_in_order: int) -> None:
    world = World(MEMBERS, SCHEDULERS, faults={first_and_second()[place_in_order]: fault})
    world.want(QUESTION)
    world.run()

    assert all_are_right(world)


@pytest.mark.parametrize("place_in_order", [0, 1])
@pytest.mark.parametrize("error", [swapped, uneven, lambda _: "{", lambda _: "[[1]]"],
                         ids=["swapped", "uneven", "no text", "too short"])
def test_a_scheduler_that_computes_wrongly_is_not_believed_and_not_asked_again(error: object,
                                                                               place_in_order: int) -> None:
    liar = first_and_second()[place_in_order]
    world = World(MEMBERS, SCHEDULERS, errors={liar: error})  # type: ignore[dict-item]
    world.want(QUESTION)
    world.run()
    assert all_are_right(world)
    assert all(machine.mismatches == 1 and machine.blamed == {liar: 1} for machine in world.deciding.values())

    before = {name: world.asked[name, liar] for name in MEMBERS}
    for name in MEMBERS:
        world.decisions[name].clear()
    other = ask_placement(NODES[1:], 64, 3)
    world.want(other)
    world.run()

    assert all_are_right(world, other)
    assert before == {name: world.asked[name, liar] for name in MEMBERS}
    assert all(machine.agreed == 1 for machine in world.deciding.values())


@pytest.mark.parametrize("place_in_order", [0, 1])
def test_a_scheduler_that_fails_says_so_and_another_is_asked(place_in_order: int) -> None:
    world = World(MEMBERS, SCHEDULERS, errors={first_and_second()[place_in_order]: lambda _: ""})
    world.want(QUESTION)
    world.run()

    assert all_are_right(world)
    assert all(machine.agreed == 1 and not machine.mismatches for machine in world.deciding.values())


def test_who_was_blamed_is_asked_again_once_it_has_gone_and_come_back() -> None:
    liar, honest = first_and_second()
    world = World(["m"], [liar, honest], errors={liar: swapped})
    world.want(QUESTION)
    world.run()
    del world.errors[liar]
    world.give("m", SchedulersChanged((honest,)))
    world.give("m", SchedulersChanged((liar, honest)))
    world.want(ask_placement(NODES[1:], 64, 3))
    world.run()

    assert world.deciding["m"].agreed == 1


def test_two_that_agree_on_what_cannot_be_right_are_not_believed() -> None:
    world = World(MEMBERS, SCHEDULERS, errors=dict.fromkeys(SCHEDULERS, uneven))
    world.want(QUESTION)
    world.run()

    assert all_are_right(world)
    assert all(machine.mismatches == 1 for machine in world.deciding.values())


def test_two_that_err_alike_and_plausibly_are_believed_which_is_the_limit_of_it() -> None:
    world = World(["m"], SCHEDULERS, errors=dict.fromkeys(SCHEDULERS, swapped))
    world.want(QUESTION)
    world.run()

    assert told(world.decisions["m"][0]) == (RIGHT[1], RIGHT[0], *RIGHT[2:])


@pytest.mark.parametrize("seed", range(25))
def test_whatever_is_lost_and_whoever_dies_everybody_gets_the_right_answer_once(seed: int) -> None:
    random = Random(seed)
    liar = random.choice(SCHEDULERS)
    world = World(MEMBERS[:6], SCHEDULERS, seed, work_ms=random.choice((1, 300, 8_000)),
                  loss=random.choice((5, 30, 60)),
                  errors={liar: random.choice((swapped, uneven))} if seed % 2 else {},
                  faults={random.choice(SCHEDULERS): random.choice([*FAULTS.values()])} if seed % 3 == 0 else {})
    for name in world.members:
        world.run(world.now_ms + random.randint(0, 3_000))
        world.give(name, Wanted(random.randint(0, 9), QUESTION))
        if random.random() < 0.3:
            world.dead.append(random.choice(SCHEDULERS))
        if random.random() < 0.3:
            known = tuple(each for each in SCHEDULERS if random.random() < 0.8)
            world.give(name, SchedulersChanged(known))
    world.run()

    assert all_are_right(world)


# -- time ----------------------------------------------------------------------------------------


def test_one_that_is_silent_is_passed_over_soon_and_one_that_works_is_waited_for() -> None:
    world = World(["m"], SCHEDULERS, work_ms=20_000, faults={first_and_second()[0]: silent})
    world.want(QUESTION)
    world.run(DeciderSettings().silence_ms - 1)
    assert len([name for name in SCHEDULERS if world.asked["m", name]]) == 2
    world.run()

    assert world.deciding["m"].agreed == 1
    assert len([name for name in SCHEDULERS if world.asked["m", name]]) == 3


def test_those_that_were_silent_delay_one_decision_and_are_asked_again_after_a_rest() -> None:
    machine, settings = Decider("m"), DeciderSettings()
    machine.step(0, SchedulersChanged(("s1", "s2")))
    machine.step(0, Wanted(1, QUESTION))

    def begins(now_ms: int, replicas: int) -> set[type]:
        return {type(effect) for effect in machine.step(now_ms, Wanted(1, ask_placement(NODES, 64, replicas)))}
    assert Compute in {type(effect) for effect in machine.step(settings.silence_ms, Ticked())}
    assert begins(settings.silence_ms + 1, 1) == {Compute}
    assert begins(settings.silence_ms + settings.rest_ms, 2) == {Send}


def test_when_time_is_up_a_member_decides_alone() -> None:
    world = World(["m"], SCHEDULERS, work_ms=40_000)
    world.want(QUESTION)
    world.run(29_999)
    assert world.deciding["m"].computed == 0 and not world.decisions["m"]
    world.run()

    assert world.deciding["m"].computed == 1 and world.deciding["m"].agreed == 0
    assert all_are_right(world)


def test_a_function_that_fails_fails_for_everybody() -> None:
    kinds = {"divide-1": Kind("divide-1", int, int, lambda number: 100 // number, lambda _, __: "")}
    world = World(MEMBERS, SCHEDULERS, kinds=kinds)
    world.want(Question("divide-1", 0))
    world.run()

    assert all([each.result for each in world.decisions[name]] == [None] for name in MEMBERS)


# -- the scheduler -------------------------------------------------------------------------------


def ask(question: Question, position: int = 1, *, text: bool = False, is_hash_only: bool = False) -> Decide:
    said = pack([question.text.encode()]) if text else Column()
    return Decide(question.kind, position, question.hash, is_hash_only, said)


def causes(effects: object) -> list[tuple[str, int]]:
    return [(effect.peer, effect.message.cause) for effect in effects  # type: ignore[attr-defined]
            if isinstance(effect, Send) and isinstance(effect.message, Undecided)]


def test_the_first_is_asked_for_the_text_and_the_next_when_it_does_not_come() -> None:
    scheduler = Scheduler()

    assert causes(scheduler.step(0, Received("a", ask(QUESTION)))) == [("a", INPUT_WANTED)]
    assert causes(scheduler.step(10, Received("b", ask(QUESTION)))) == [("b", COMPUTING)]
    assert causes(scheduler.step(20, Received("a", ask(QUESTION)))) == [("a", INPUT_WANTED)]
    assert causes(scheduler.step(1_020, Received("b", ask(QUESTION)))) == [("b", INPUT_WANTED)]
    effects = scheduler.step(1_030, Received("b", ask(QUESTION, text=True)))

    assert causes(effects) == [("b", COMPUTING)]
    assert [effect for effect in effects if isinstance(effect, Compute)] == [
        Compute("placement-1", QUESTION.hash, QUESTION.text)]


def test_what_is_no_question_is_declined() -> None:
    scheduler = Scheduler()
    other = ask_placement(NODES[1:], 64, 3)
    unsorted = QUESTION.text.replace(NODES[0], "z", 1)
    wrong = [ask(attrs.evolve(QUESTION, kind="placement-0"), text=True),
             attrs.evolve(ask(QUESTION), text=pack([other.text.encode()])),
             attrs.evolve(ask(QUESTION), text=pack([b"\xff"])),
             Decide(QUESTION.kind, 1, hash_of(QUESTION.kind, unsorted), False, pack([unsorted.encode()])),
             Decide(QUESTION.kind, 1, hash_of(QUESTION.kind, QUESTION.text + " "), False,
                    pack([QUESTION.text.encode() + b" "]))]

    for message in wrong:
        assert causes(scheduler.step(0, Received("a", message))) == [("a", DECLINED)]
    assert scheduler.computations == 0
    assert scheduler._jobs and scheduler.deadline() == 10_000
    scheduler.step(10_000, Ticked())
    assert not scheduler._jobs and scheduler.deadline() > 1 << 60


def test_the_newest_question_is_worked_on_first_and_the_oldest_is_declined() -> None:
    scheduler = Scheduler(SchedulerLimits(questions=3))
    asked = [ask_placement([*NODES, f"z:{index}"], 8, 3) for index in range(4)]
    first, = [each for each in scheduler.step(0, Received("a", ask(asked[0], 1, text=True)))
              if isinstance(each, Compute)]
    scheduler.step(0, Received("a", ask(asked[1], 2, text=True)))
    scheduler.step(0, Received("a", ask(asked[2], 4, text=True)))

    effects = scheduler.step(0, Received("b", ask(asked[3], 3, text=True)))
    assert causes(effects) == [("a", DECLINED), ("b", COMPUTING)]
    assert causes(scheduler.step(0, Received("c", ask(asked[1], 0)))) == [("c", DECLINED)]
    done = scheduler.step(0, computed(first))

    assert [each.hash for each in done if isinstance(each, Compute)] == [asked[2].hash]


def test_answers_and_askers_are_bounded() -> None:
    scheduler = Scheduler(SchedulerLimits(askers=2, answers=2))
    for index in range(4):
        question = ask_placement([*NODES, f"z:{index}"], 8, 3)
        for peer in "abc":
            effects = scheduler.step(0, Received(peer, ask(question, text=True)))
        assert causes(effects) == [("c", DECLINED)]
        sent = scheduler.step(0, computed(Compute(question.kind, question.hash, question.text)))
        assert [each.peer for each in sent if isinstance(each, Send)] == ["a", "b"]

    assert len(scheduler._answers) == 2
    assert scheduler._answer_bytes == sum(len(text.data) for _, text in scheduler._answers.values())


def test_who_asked_for_the_answer_gets_it_even_if_it_asks_for_the_hash_later() -> None:
    scheduler = Scheduler()
    scheduler.step(0, Received("a", ask(QUESTION)))
    scheduler.step(0, Received("a", ask(QUESTION, is_hash_only=True)))

    sent, = scheduler.step(0, computed(Compute(QUESTION.kind, QUESTION.hash, QUESTION.text)))

    assert isinstance(sent, Send) and isinstance(sent.message, Decided) and len(sent.message.text) == 1


def test_what_the_process_computed_for_itself_is_an_answer_for_others() -> None:
    scheduler = Scheduler()
    scheduler.step(0, computed(Compute(QUESTION.kind, QUESTION.hash, QUESTION.text)))

    sent, = scheduler.step(0, Received("a", ask(QUESTION, is_hash_only=True)))

    assert isinstance(sent, Send) and isinstance(sent.message, Decided)
    assert not len(sent.message.text) and scheduler.computations == 0


# -- what is asked and answered ------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 2, 3, 7, 40])
@pytest.mark.parametrize("partitions", [1, 8, 64])
def test_a_placement_comes_back_as_it_was(count: int, partitions: int) -> None:
    question = ask_placement([f"n{index}" for index in range(count)], partitions, 3)
    done = computed(Compute(question.kind, question.hash, question.text))

    result, flaw = read_result(PLACEMENT, question, done.text)

    assert not flaw
    assert placement_of(question, result) == place([f"n{index}" for index in range(count)], partitions, 3)


def test_every_flaw_is_seen() -> None:
    asked = PlacementInput(("a", "b", "c", "d"), 4, 2)
    good = ((0, 1), (2, 3), (0, 2), (1, 3))
    flaws = [PLACEMENT.flaw(asked, wrong) for wrong in (
        good[1:], ((0,), *good[1:]), ((0, 0), *good[1:]), ((0, 4), *good[1:]), ((0, -1), *good[1:]),
        ((2, 3), (2, 3), (2, 3), (1, 3)))]

    assert not PLACEMENT.flaw(asked, good)
    assert flaws == ["has 3 lists for 4 partitions"] + ["has a list without 2 distinct owners"] * 2 + [
        "names a node that does not exist"] * 2 + ["has a share that is not in 2..2"]


@pytest.mark.parametrize("wrong", [(("b", "a"), 8, 3), (("a", "a"), 8, 3), (("a",), 0, 3), (("a",), 8_192, 3),
                                   (("a",), 8, 0), (("a",), 8, 10)])
def test_what_is_asked_is_bounded(wrong: tuple[tuple[str, ...], int, int]) -> None:
    with pytest.raises(Malformed):
        PlacementInput(*wrong)


def test_kinds_are_named_with_their_version() -> None:
    assert all(name == kind.name and name.rpartition("-")[2].isdigit() for name, kind in KINDS.items())
