"""A scheduler's process, as a machine: whom it answers, and that it says what it did. Real ones run, and are
killed, in tests/worker/test_flow_kills.py."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from skuld_py.cluster.scale.decisions import ask_placement, computed
from skuld_py.errors import Refused
from skuld_py.model.columns import Column, pack
from skuld_py.model.events import Answer, Asked, Compute, Received, Send
from skuld_py.model.messages import Decide, Decided, Failed, Greet, NotNow, Undecided
from skuld_py.model.messages.decisions import DECLINED
from skuld_py.runtime.scheduling import Office, _keyring

QUESTION = ask_placement(("127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3"), 8, 3)
ASKED = Received("127.0.0.1:1", Decide(QUESTION.kind, 7, QUESTION.hash, False, pack([QUESTION.text.encode()])))


def test_it_answers_nodes_and_says_what_it_decided(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    office = Office()
    told = office.step(0, ASKED)
    wish, = [effect for effect in told if isinstance(effect, Compute)]
    answer, = office.step(5, computed(wish))

    assert isinstance(answer, Send) and answer.peer == "127.0.0.1:1"
    assert isinstance(answer.message, Decided) and answer.message.question == QUESTION.hash
    assert "decided placement-1" in caplog.messages[-1] and "1 so far" in caplog.messages[-1]
    assert office.deadline() is None


def test_it_forgets_a_question_that_nobody_asks_any_more() -> None:
    office = Office()
    office.step(0, Received("127.0.0.1:1", Decide(QUESTION.kind, 7, QUESTION.hash, False, Column())))
    assert office.deadline() == 10_000


@pytest.mark.parametrize("message", [NotNow("id", "joiner~1", "busy"), Undecided(QUESTION.hash, DECLINED)])
def test_it_takes_nothing_else_of_nodes(message: Any) -> None:
    assert Office().step(0, Received("127.0.0.1:1", message)) == []


def test_clients_are_told_to_ask_a_node() -> None:
    answer, = Office().step(0, Asked(b"client", Greet(9)))

    assert isinstance(answer, Answer) and isinstance(answer.message, Failed)
    assert (answer.client, answer.message.request, answer.message.code) == (b"client", 9, "not_a_node")


def test_with_keys_it_wants_to_know_where_its_own_is_kept() -> None:
    key: Any = object()
    with pytest.raises(Refused, match="--data"):
        _keyring("", key, "127.0.0.1:1", None)
    assert _keyring("", None, "127.0.0.1:1", None) is None
