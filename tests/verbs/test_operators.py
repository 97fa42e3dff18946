"""What operators are told of partitions that a node leads on though they asked for another thing."""

from __future__ import annotations

from typing import Any

import pytest

from skuld_py.client.asking import Answered, Blocking, Step
from skuld_py.client.operating import Frozen, Operating, Overseen
from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.verbs.operators import say_done, told
from skuld_py.verbs.words import moment

UNTIL_MS = 1_900_000_000_000


class Asking(Operating, Blocking):
    """A client whose cluster has this to say, a part of the partitions at a time."""

    holder = "me"

    def __init__(self, *answers: m.Message) -> None:
        self._answers = iter(answers)

    def _perform(self, step: Step) -> Any:
        return Answered(next(self._answers), 0.0)


def test_what_a_node_in_quarantine_leads_on_is_told_of_all_partitions() -> None:
    client = Asking(m.Steered(1, 64, 64, (), (m.FrozenRow(3, "ann", 0),)),
                    m.Steered(2, 9, 0, (), (m.FrozenRow(70, "bob", UNTIL_MS),)))

    assert client.quarantine("a:1") == Overseen(73, {}, {3: Frozen("ann", 0), 70: Frozen("bob", UNTIL_MS)})


def test_revisions_of_one_moment_stay_in_the_order_in_which_they_are_told() -> None:
    """The number of a document that was put back is lower than that of the one before it."""
    rows = tuple(m.RevisionRow(3, version, 1, "a:1", ("a:1",), "a:1", cause, cause, at_ms)
                 for version, cause, at_ms in ((1, "froze", 9), (0, "put back", 8), (7, "upkeep", 8)))

    assert [each.cause for each in Asking(m.Recalled(1, 0, rows)).partition_history(3)] == [
        "froze", "put back", "upkeep"]


def test_it_is_named_with_what_lets_it_go() -> None:
    document = told(Overseen(9, {}, {3: Frozen("ann", 0), 5: Frozen("bob", UNTIL_MS), 7: Frozen("bob", UNTIL_MS)}))
    words, facts = say_done("done")(document, {})

    assert words.splitlines() == [
        "done: 9 partitions changed",
        "it leads partition 3 on, frozen by ann: 'skuld unfreeze --partition 3' to have another node lead",
        "it leads 2 partitions (5, 7) on, frozen by bob: 'skuld unfreeze' to have another node lead, or wait until"
        f" {moment(UNTIL_MS)[:16]}"]
    assert facts["frozen"][1] == {"partition": 5, "by": "bob", "until_ms": UNTIL_MS}


def test_where_nothing_is_frozen_nothing_more_is_said() -> None:
    assert say_done("done")(told(Overseen(9, {})), {})[0] == "done: 9 partitions changed"


@pytest.mark.parametrize(("problem", "is_helped"), [("kind: 'withdraw' is none of lead", True),
                                                    ("target: name a node", False)])
def test_where_a_node_is_too_old_for_a_verb_what_helps_is_named(problem: str, is_helped: bool) -> None:
    class Old(Asking):
        def _perform(self, step: Step) -> Any:
            raise Refused("malformed", problem)

    with pytest.raises(Refused, match=problem) as refused:
        Old().withdraw()
    assert ("upgrade the nodes" in refused.value.message) is is_helped
