"""Leaders in the dark: which links are cut for how long, and that none stays cut once all are to be mended."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from types import SimpleNamespace
from typing import Any, cast

from skuld_py.model.document import Document, seats_of
from skuld_py.model.messages import RequestVote
from skuld_py.simulation.operators.eclipses import Eclipses
from skuld_py.simulation.operators.obedience import Attended
from skuld_py.simulation.world.lateness import Link

NAMES = ("n1", "n2", "n3")
DARK = {("n1", "n2"), ("n1", "n3")}
EVERY_MS = 100


class Sky:
    """As much of a cluster as is cut: itself its network and its scheduler."""

    def __init__(self, *, voters: int = 3) -> None:
        self.registry = SimpleNamespace(documents={4: (0, Document(2, "n1", seats=seats_of(NAMES[:voters])))})
        self.processes = dict.fromkeys(NAMES)
        self.options = SimpleNamespace(timing=SimpleNamespace(silence_ms=1_000))
        self.network = self.scheduler = self
        self.on_candidacy: list[Callable[[str, RequestVote], None]] = []
        self.due: list[tuple[Callable[..., None], tuple[object, ...]]] = []
        self.dark: set[Link] = set()
        self.eclipses = Eclipses(cast(Attended, self), Random(1))

    def after(self, _: int, then: Callable[..., None], *arguments: object) -> None:
        self.due.append((then, arguments))

    def note(self, *_: Any) -> None:
        """Nobody reads it."""

    def cut(self, links: list[Link]) -> None:
        assert not self.dark & {*links}, "what is cut twice has to be mended twice"
        self.dark |= {*links}

    def mend(self, links: list[Link]) -> None:
        self.dark -= {*links}

    def go_on(self) -> None:
        then, arguments = self.due.pop()
        then(*arguments)

    def stand(self, candidate: str, partition: int = 4) -> None:
        for listener in self.on_candidacy:
            listener(candidate, RequestVote(partition, 3, NAMES, False))


def struck() -> Sky:
    sky = Sky()
    sky.eclipses.begin(EVERY_MS)
    sky.go_on()
    assert sky.dark == DARK
    return sky


def test_nobody_hears_a_leader_in_the_dark_and_it_hears_no_candidate_for_its_place() -> None:
    sky = struck()
    for candidate, partition in (("n1", 4), ("n3", 5)):
        sky.stand(candidate, partition)
        assert sky.dark == DARK, "its own candidacy, and those for other places, are heard"
    for _ in range(2):
        sky.stand("n2")
        assert sky.dark == {*DARK, ("n2", "n1")}


def test_with_the_light_all_its_links_are_back_and_another_one_is_to_come() -> None:
    sky = struck()
    sky.stand("n2")
    sky.go_on()
    assert not sky.dark and len(sky.due) == 1
    sky.stand("n3")
    assert not sky.dark
    sky.go_on()
    assert sky.dark == DARK and sky.eclipses.counts == {"leader in the dark": 2}


def test_once_all_links_are_mended_none_is_cut_any_more() -> None:
    """The link of a voter that stood a moment later was cut, and stayed so: it never heard from the old leader."""
    sky = struck()
    sky.eclipses.is_over = True
    sky.mend([*sky.dark])
    sky.stand("n2")
    assert not sky.dark
    sky.go_on()
    assert not sky.dark and not sky.due


def test_a_leader_of_two_is_left_in_the_light() -> None:
    sky = Sky(voters=2)
    sky.eclipses.begin(EVERY_MS)
    sky.go_on()

    assert not sky.dark and len(sky.due) == 1
