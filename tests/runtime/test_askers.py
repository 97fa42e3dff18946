"""Who asked for what waits: keys that count no more, and numbers that several requests have."""

from __future__ import annotations

import attrs
import pytest

from skuld_py.errors import Refused
from skuld_py.model.columns import pack
from skuld_py.model.messages import (
    MESSAGES,
    ROLE_CLIENT,
    Await,
    Awaited,
    Claim,
    ClaimBatch,
    Claimed,
    Failed,
    Follow,
    Followed,
    Get,
    Logged,
    Message,
    ReadLog,
    Report,
    Reported,
    Survey,
    Surveyed,
)
from skuld_py.model.roster import KeyRow
from skuld_py.runtime.askers import ANSWER_OF, SAME_MAX, Askers

KEY = "w" * 40
ALL = KeyRow(KEY, "wanda", ("worker", "reader"))
CLAIM = Claim(7, "queue", 1, 1_000, 60_000, "holder")
GRANTED = Claimed(7, 0, (ClaimBatch(b"i" * 20, 7, 9, pack([b"secret"])),))
WAITING: tuple[tuple[Message, Message], ...] = (
    (CLAIM, GRANTED), (Await(7, b"i" * 20, 9), Awaited(7, b"\1", pack([b"secret"]), pack([b""]))),
    (ReadLog(7, b"i" * 20, 1, 0, 10, 9), Logged(7, pack([b"secret"]), 0, False)),
    (Report(7, 9, (), 9), Reported(7)), (Survey(7, (), 0, 9, 9), Surveyed(7, 10, 0, ())),
    (Follow(7, 1, 10, 9), Followed(7, 1, 2, ())))


class Roll:
    """Askers, and the one key that they look at."""

    def __init__(self) -> None:
        self.row: KeyRow | None = ALL
        self.askers = Askers(lambda key: self.row if key == KEY else None)

    def ask(self, *messages: Message) -> None:
        for message in messages:
            self.askers.note(b"o", KEY, message)

    def told(self, answer: Message) -> Message:
        return self.askers.cleared(b"o", answer)


@pytest.mark.parametrize(("asked", "answer"), WAITING)
def test_a_read_that_waits_shows_nothing_once_its_key_counts_no_more(asked: Message, answer: Message) -> None:
    """A revoked key was shown the result that it had asked to wait for."""
    roll = Roll()
    roll.ask(asked)
    assert roll.told(answer) is answer
    roll.ask(asked)
    roll.row = None
    told = roll.told(answer)

    assert isinstance(told, Failed) and (told.request, told.code, told.is_definite) == (7, "denied", True)
    assert len(roll.askers) == 0


def test_all_that_waits_is_looked_at() -> None:
    waits = {of for of in MESSAGES if of.roles & ROLE_CLIENT and "wait_ms" in attrs.fields_dict(of)}
    assert waits == {*ANSWER_OF}
    assert {type(asked): type(answer) for asked, answer in WAITING} == ANSWER_OF


@pytest.mark.parametrize("other", [
    Failed(7, "empty", "ids: none given", True), Awaited(7, b"", pack([]), pack([]))])
def test_a_key_sheds_no_request_by_a_number_that_two_have(other: Message) -> None:
    """A claim waits, another request of the same number is answered, and the key is revoked: the claim was granted
    without a look at the key."""
    roll = Roll()
    roll.ask(CLAIM)
    roll.told(other)
    roll.row = None
    assert isinstance(roll.told(GRANTED), Failed)

    roll = Roll()
    roll.ask(CLAIM, CLAIM)
    assert roll.told(Claimed(7, 0, ())) == Claimed(7, 0, ())
    roll.row = None
    assert isinstance(roll.told(GRANTED), Failed), "the second one waits still"


def test_an_answer_is_looked_at_with_all_requests_of_its_number() -> None:
    roll = Roll()
    roll.ask(CLAIM, Claim(7, "other", 1, 1_000, 60_000, "holder"))
    roll.row = KeyRow(KEY, "wanda", ("worker",), queues=("queue",))
    assert isinstance(roll.told(GRANTED), Failed)


def test_a_read_that_is_sent_again_is_answered_each_time() -> None:
    (_, _), (await_, awaited), *_ = WAITING
    roll = Roll()
    roll.ask(await_, await_)
    assert roll.told(awaited) is roll.told(awaited) is awaited
    assert len(roll.askers) == 0


def test_what_does_not_wait_is_not_kept_and_not_looked_at() -> None:
    roll = Roll()
    roll.ask(Get(7, b""))
    roll.row = None
    assert len(roll.askers) == 0
    refusal = Failed(7, "empty", "ids: none given", True)
    assert roll.told(refusal) is refusal


def test_too_many_requests_of_one_number_are_refused() -> None:
    roll = Roll()
    roll.ask(*[CLAIM] * SAME_MAX)
    with pytest.raises(Refused, match="give each its own") as caught:
        roll.ask(CLAIM)
    assert caught.value.code == "busy"
    assert len(roll.askers) == SAME_MAX
