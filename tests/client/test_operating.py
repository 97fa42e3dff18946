"""What an operator is told of partitions by a client: that nothing happened only where nothing did."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from client.test_lost_answers import Deaf
from skuld_py import Refused, Uncertain
from skuld_py.client.asking import Answered, Ask
from skuld_py.model import messages as m
from skuld_py.testing import MemoryClient

MAJORITY = "it has a majority of its voters: c; nobody has to be given up"


class Told(MemoryClient):
    """Is told these answers, one after the other; or refused."""

    def __init__(self, *answers: m.Steered | Refused) -> None:
        super().__init__()
        self._answers = [*answers]

    def _perform(self, step: Any) -> Any:
        answer = self._answers.pop(0)
        if isinstance(answer, Refused):
            raise answer
        return Answered(answer, 0.0)


def steered(changed: int, *refused: m.RefusalRow, following: int = 0) -> m.Steered:
    return m.Steered(1, changed, following, refused)


def test_what_may_have_been_done_is_no_refusal() -> None:
    """ZooKeeper answered too late, and the document was written all the same."""
    doubt = m.RefusalRow(3, "ZooKeeper has not answered; ask again", True)
    with pytest.raises(Uncertain, match=r"done or not in 3: ZooKeeper has not answered.*In 0 others") as caught:
        Told(steered(0, doubt)).freeze(3)
    assert caught.value.facts == {"partition": 3}
    with pytest.raises(Uncertain, match=r"; and 1 more\. In 7 others it was done"):
        Told(steered(7, *(m.RefusalRow(each, "late", True) for each in range(9)))).freeze()
    with pytest.raises(Refused, match="3 stays as it is: ZooKeeper"):
        Told(steered(0, m.RefusalRow(3, "ZooKeeper has not answered; ask again"))).freeze(3)
    assert Told(steered(1, m.RefusalRow(0, MAJORITY))).force_epoch().refused == {0: MAJORITY}


def test_of_many_partitions_a_page_that_is_refused_leaves_those_before_it_done() -> None:
    busy = Refused("busy", "operators ask this node for too much at once")
    with pytest.raises(Uncertain, match="1 requests of this call were carried out before"):
        Told(steered(64, following=64), busy).freeze()
    with pytest.raises(Refused):
        Told(busy).freeze()


class Forced(Deaf):
    """The answer to what it asks first is lost; asked again, a node refuses, since it was done."""

    def __init__(self, refused: Sequence[m.RefusalRow]) -> None:
        super().__init__(m.Steer, lambda: None)
        self._refused = tuple(refused)

    def _asked(self, question: Ask) -> m.Message:
        return m.Steered(1, 0, 0, self._refused)


def test_what_was_asked_before_and_is_refused_now_may_have_been_done() -> None:
    """Voters were given up, and the operator was told that none had to be."""
    with pytest.raises(Uncertain, match=MAJORITY):
        Forced([m.RefusalRow(0, MAJORITY)]).force_epoch(0)
    with pytest.raises(Uncertain, match="its epoch is 7, not 6"):
        Forced([m.RefusalRow(0, "its epoch is 7, not 6")]).promote("127.0.0.1:1", 0, epoch=6)
    with pytest.raises(Refused, match="has no vote"):
        Forced([m.RefusalRow(0, "n has no vote in it")]).promote("127.0.0.1:1", 0)
