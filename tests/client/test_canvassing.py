"""Other nodes are asked for what the first cannot know: each once, by its own address, and in a bounded time."""

from __future__ import annotations

import attrs
import pytest

from skuld_py import SkuldError, Uncertain
from skuld_py.client.asking import Answered, Ask
from skuld_py.client.canvassing import canvassed
from skuld_py.model import messages as m
from skuld_py.model.overview import EACH_S, SILENCE_S, TOTAL_S, Overview

NAMES = ("a:1", "b:1", "c:1", "d:1", "e:1")
OWNERS = (("a:1", "b:1", "c:1"), ("b:1", "c:1", "d:1"), ("c:1", "d:1", "e:1"))
BARRIER = m.HeldRow(2, "barrier", "", 9)


def seen_by(name: str, *held: m.HeldRow, owners: tuple[tuple[str, ...], ...] = OWNERS) -> m.Described:
    nodes = tuple(m.NodeRow(each, True, 1, 2, "agreed") for each in NAMES)
    rows = tuple(m.PartitionRow(number, 1, names[0], names, names) for number, names in enumerate(owners))
    return m.Described(1, name, "connected", nodes, rows, held=held)


def greeted(names: tuple[str, ...] = NAMES) -> m.Greeted:
    members = tuple(m.MemberRow(name, "::1" if name == "c:1" else f"10.0.0.{NAMES.index(name)}", 13_000)
                    for name in names)
    return m.Greeted(1, "a:1", "prod", 3, 3, 2_000, 0, 1 << 20, members)


@attrs.define
class World:
    """Nodes that answer, but for those that are deaf; each of these takes all the time that it is given."""

    deaf: str = ""
    owners: tuple[tuple[str, ...], ...] = OWNERS
    now_s: float = 0.0
    answer_s: float = 0.0
    asked: list[tuple[str, float]] = attrs.field(factory=list)

    def canvass(self, greeting: m.Greeted) -> Overview:
        flow = canvassed(seen_by("a:1", owners=self.owners), greeting, lambda: self.now_s)
        try:
            step = next(flow)
            while True:
                assert isinstance(step, Ask) and not step.is_idempotent, "or it would be sent twice"
                self.asked.append((step.only, step.within_s))
                name = next(each for each, member in zip(NAMES, greeting.members, strict=False)
                            if step.only in (f"{member.host}:13000", f"[{member.host}]:13000"))
                if name[0] in self.deaf:
                    self.now_s += step.within_s
                    step = flow.throw(self.silence())
                else:
                    self.now_s += self.answer_s
                    step = flow.send(Answered(seen_by(name, BARRIER, owners=self.owners), 0.0))
        except StopIteration as end:
            overview: Overview = end.value
            return overview

    def silence(self) -> SkuldError:
        return Uncertain("deadline", "no answer")


def test_one_node_that_knows_is_asked_at_its_address() -> None:
    world = World()
    seen = world.canvass(greeted())

    assert world.asked == [("[::1]:13000", EACH_S)]
    assert seen.described.held == (BARRIER,) and not seen.silent and not seen.untold


def test_all_are_asked_once_and_no_longer_than_all_may_take() -> None:
    world = World(deaf="bcde")
    seen = world.canvass(greeted())

    assert len({address for address, _ in world.asked}) == len(world.asked) <= 4
    assert world.now_s == pytest.approx(SILENCE_S)
    assert seen.untold == {1, 2} and {*seen.silent} == {"b:1", "c:1", "d:1", "e:1"}
    assert seen.silent["c:1"] == "did not answer (deadline)"
    assert seen.silent["e:1"] == "was not asked in time"


ALONE = tuple((name,) for name in NAMES)
"""Each keeps a partition of its own, so that all are asked."""


def test_who_answers_late_takes_no_time_from_the_others() -> None:
    world = World(owners=ALONE, answer_s=1.9)
    seen = world.canvass(greeted())

    assert world.now_s > SILENCE_S and not seen.silent and not seen.untold


def test_it_takes_no_longer_than_all_may_take_though_all_answer() -> None:
    world = World(owners=ALONE, answer_s=TOTAL_S / 2)
    seen = world.canvass(greeted())

    assert seen.silent == dict.fromkeys(["d:1", "e:1"], "was not asked in time") and seen.untold == {3, 4}


def test_a_node_that_is_not_known_to_clients_yet_is_named() -> None:
    world = World(deaf="b")
    seen = world.canvass(greeted(NAMES[:2]))

    assert seen.silent["c:1"] == "came a moment ago" and seen.untold == {1, 2}


def test_a_partition_is_told_of_by_who_keeps_it() -> None:
    world = World(owners=(("a:1", "b:1"), ("b:1", "c:1"), ("c:1", "d:1"), ("d:1", "e:1")))
    seen = world.canvass(greeted())

    assert [NAMES[int(address[7])] for address, _ in world.asked if address[0] != "["] == ["d:1"]
    assert len(world.asked) == 2 and not seen.untold
