"""The rule of fenced output in every order of its steps: two claims of one task, a sweeper and readers, each of
which may end at any step.

A world is a file system and what the cluster knows; each operation is one step. Everybody may die at any moment:
so what must hold, holds in every state that can be reached, and a sweep by somebody fresh mends each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import cache
from typing import Any

import attrs
import pytest

from skuld_py.output import protocol as p

TASK, EARLY, LATE = "t", 1, 2
WHOLE = frozenset({"a"})
Actor = Callable[[], Generator[Any, Any, Any]]


@attrs.frozen
class Place:
    """A claim's directory: who wrote it, what is in it, and what its manifest names, None before it is sealed."""

    token: int
    files: frozenset[str]
    sealed: frozenset[str] | None = None


@attrs.frozen
class Write:
    token: int
    file: str


@attrs.frozen
class Seal:
    token: int


@attrs.frozen
class Complete:
    """``at`` is when, by the clock of the node that was asked: the earliest completion stands."""

    token: int
    at: int


@attrs.frozen
class HalfDelete:
    token: int


@attrs.frozen
class Read:
    """Read what is published."""


@attrs.frozen
class World:
    claims: frozenset[Place] = frozenset()
    published: Place | None = None
    completions: frozenset[tuple[int, int]] = frozenset()
    seen: frozenset[Place] = frozenset()
    is_old: bool = False

    def of(self, token: int) -> Place | None:
        return next((place for place in self.claims if place.token == token), None)

    def holding(self, token: int, place: Place | None) -> World:
        others = frozenset(each for each in self.claims if each.token != token)
        return attrs.evolve(self, claims=others if place is None else others | {place})

    def do(self, step: Any) -> tuple[World, Any]:
        match step:
            case Write(token, file):
                made = self.of(token) or Place(token, frozenset())
                return self.holding(token, attrs.evolve(made, files=made.files | {file})), None
            case Seal(token):
                made = self.of(token) or Place(token, frozenset())
                return self.holding(token, attrs.evolve(made, sealed=made.files)), None
            case Complete(token, at):
                return attrs.evolve(self, completions=self.completions | {(at, token)}), None
            case Read():
                return attrs.evolve(self, seen=self.seen | ({self.published} if self.published else set())), None
            case HalfDelete(token) if (half := self.of(token)) is not None:
                return self.holding(token, attrs.evolve(half, files=half.files - {"a"})), None
            case HalfDelete(_):
                return self, None
            case p.Ask(_):
                standing = min(self.completions)[1] if self.completions else None
                return self, p.Standing(standing, is_written=standing is not None, is_old=self.is_old)
            case p.IsPublished(_):
                return self, self.published is not None
            case p.Publish(_, token):
                moved = self.of(token)
                if moved is None or self.published is not None:
                    return self, False
                return attrs.evolve(self.holding(token, None), published=moved), True
            case p.ListClaims():
                tokens = sorted(place.token for place in self.claims)
                return self, ((TASK, tuple(tokens)),) if tokens else ()
            case p.Delete(_, token):
                return self.holding(token, None), self.of(token) is not None
        raise AssertionError(step)


def in_steps(steps: p.Steps[Any]) -> Generator[Any, Any, Any]:
    """The same, but that a deletion may end in its middle."""
    answer = None
    while True:
        try:
            operation = steps.send(answer)
        except StopIteration as end:
            return end.value
        if isinstance(operation, p.Delete):
            yield HalfDelete(operation.token)
        answer = yield operation


def claim(token: int, at: int) -> Actor:
    """A claim that writes, seals, completes and publishes."""
    def steps() -> Generator[Any, Any, Any]:
        for file in sorted(WHOLE):
            yield Write(token, file)
        yield Seal(token)
        yield Complete(token, at)
        yield from in_steps(p.settle(TASK))
    return steps


def sweeper() -> Generator[Any, Any, Any]:
    yield from in_steps(p.sweep())


def reader() -> Generator[Any, Any, Any]:
    """A reader that knows the task from a while ago, as one does that was given it."""
    known = yield p.Ask(TASK)
    if known.token is None:
        return
    settling, answer = p.settle(TASK), None
    while True:
        try:
            operation = settling.send(answer)
        except StopIteration:
            break
        answer = known if isinstance(operation, p.Ask) else (yield operation)
    yield Read()


def after(actor: Actor, answers: tuple[Any, ...]) -> Any:
    """The step that an actor takes next, who was given these answers; None when it is done."""
    steps = actor()
    try:
        step = next(steps)
        for answer in answers:
            step = steps.send(answer)
    except StopIteration:
        return None
    return step


class Numbers(dict[Any, int]):
    """Things that are equal, as one number: worlds and histories are compared a million times."""

    def __init__(self) -> None:
        super().__init__()
        self.things: list[Any] = []

    def __missing__(self, thing: Any) -> int:
        self.things.append(thing)
        return self.setdefault(thing, len(self.things) - 1)


def worlds(actors: list[Actor]) -> list[World]:
    """Every world that these can come to, each going on and ending as it likes."""
    places, minds = Numbers(), Numbers()
    start = (places[World()], *(minds[number, ()] for number in range(len(actors))))
    known, todo = {start}, [start]

    @cache
    def move(place: int, mind: int) -> tuple[int, int] | None:
        number, answers = minds.things[mind]
        step = after(actors[number], answers)
        if step is None:
            return None
        world, answer = places.things[place].do(step)
        return places[world], minds[number, (*answers, answer)]

    while todo:
        state = todo.pop()
        for at in range(1, len(state)):
            moved = move(state[0], state[at])
            if moved is not None:
                then = (moved[0], *state[1:at], moved[1], *state[at + 1 :])
                if then not in known:
                    known.add(then)
                    todo.append(then)
    return places.things


def swept(world: World) -> World:
    """What a sweep by somebody fresh makes of it."""
    steps, answer = p.sweep(), None
    while True:
        try:
            operation = steps.send(answer)
        except StopIteration:
            return world
        world, answer = world.do(operation)


def check(world: World) -> None:
    completed = {token for _, token in world.completions}
    for place in {*world.seen, world.published} - {None}:
        assert place is not None
        assert place.token in completed, "visible without a completion"
        assert place.files == place.sealed == WHOLE, "visible, and not whole"
    assert len({place.token for place in world.seen}) <= 1, "readers saw the outputs of two claims"
    mended = swept(world)
    if completed:
        assert mended.published is not None and mended.published.files == WHOLE, "completed and never visible"
        assert world.published in (None, mended.published), "visible, and then another one's"
        assert not mended.claims, "what lost is left"
    else:
        assert mended == world, "a sweep changed what nobody completed"


@pytest.mark.parametrize(("early_at", "others"), [(1, [sweeper, reader]), (3, [sweeper]), (1, [reader, reader])],
ids=[
    "the earlier token's completion stands", "the later one's does", "with two readers"])
def test_two_claims_write_at_once_and_one_is_visible_whatever_dies_when(
    early_at: int, others: list[Actor]
) -> None:
    count = 0
    for world in worlds([claim(EARLY, early_at), claim(LATE, 2), *others]):
        check(world)
        count += 1
    assert count > 20


def test_where_nothing_can_be_renamed_what_is_old_loses_only_what_is_older_than_it() -> None:
    def places(*tokens: int) -> frozenset[Place]:
        return frozenset(Place(token, WHOLE, WHOLE) for token in tokens)

    class Fixed(World):
        def do(self, step: Any) -> tuple[World, Any]:
            return (self, False) if isinstance(step, p.Publish) else super().do(step)

    known = Fixed(places(1, 2, 3), completions=frozenset({(1, 2)}))
    assert swept(known) == known
    assert swept(attrs.evolve(known, is_old=True)).claims == places(2, 3)


@pytest.mark.parametrize(("takes_unknown", "is_abandoned", "deleted"),
                         [(False, True, 0), (True, False, 0), (True, True, 1)])
def test_what_nobody_knows_is_deleted_when_that_is_asked_for_and_it_is_abandoned(
    takes_unknown: bool, is_abandoned: bool, deleted: int
) -> None:
    answers = {p.ListClaims: ((TASK, (7,)),), p.IsPublished: False, p.Ask: p.Standing(is_known=False),
               p.IsAbandoned: is_abandoned, p.Delete: True}
    steps, answer = p.sweep(takes_unknown=takes_unknown), None
    with pytest.raises(StopIteration) as end:
        while True:
            answer = answers[type(steps.send(answer))]
    assert end.value.value == p.Swept((), deleted, () if deleted else ("t/7",))
