"""The log of a node: alike things in one line, the first at once, the more seldom the longer it goes on."""

from __future__ import annotations

import logging

import pytest

from skuld_py.model.remarks import Kind, Remark
from skuld_py.runtime.chronicle import GROUPS_MAX, NAMED, PAUSE_MS, Chronicle


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO)
    return caplog


def elected(chronicle: Chronicle, *partitions: int, why: str = "the first leader") -> None:
    for partition in partitions:
        chronicle.note(Remark(Kind.ELECTED, f"partition {partition} (epoch 1)", why))


def test_a_thing_is_told_when_its_turn_ends(lines: pytest.LogCaptureFixture) -> None:
    chronicle = Chronicle("n")
    elected(chronicle, 3)
    assert lines.messages == []

    chronicle.look(5)

    assert lines.messages == ["node n: elected leader of partition 3 (epoch 1): the first leader"]


def test_four_thousand_elections_are_a_few_lines_that_count_them_all(lines: pytest.LogCaptureFixture) -> None:
    chronicle = Chronicle("n")
    for partition in range(4_096):
        elected(chronicle, partition)
        chronicle.look(partition * 5)
    chronicle.close()

    counts = [record.__dict__["facts"]["count"] for record in lines.records]
    assert sum(counts) == 4_096 and 3 <= len(counts) <= 8
    assert all(len(record.__dict__["facts"]["about"]) <= NAMED for record in lines.records)


def test_other_kinds_and_other_reasons_do_not_wait_for_each_other(lines: pytest.LogCaptureFixture) -> None:
    chronicle = Chronicle("n")
    elected(chronicle, 1)
    elected(chronicle, 2, why="h:1 was not heard")
    chronicle.note(Remark(Kind.LEFT, "h:1"))
    chronicle.look(0)

    assert len(lines.messages) == 3


def test_what_was_quiet_is_told_at_once_again(lines: pytest.LogCaptureFixture) -> None:
    chronicle = Chronicle("n")
    for at_ms in (0, 10, PAUSE_MS, PAUSE_MS + 10):
        elected(chronicle, 1)
        chronicle.look(at_ms)
    assert len(lines.messages) == 2
    for at_ms in (10 * PAUSE_MS, 20 * PAUSE_MS, 21 * PAUSE_MS):
        elected(chronicle, 1)
        chronicle.look(at_ms)

    assert len(lines.messages) == 5


def test_the_groups_that_are_kept_are_bounded_and_none_is_lost_at_the_end(lines: pytest.LogCaptureFixture) -> None:
    chronicle = Chronicle("n")
    for number in range(3 * GROUPS_MAX):
        elected(chronicle, 1, why=f"reason {number}")
        chronicle.look(0)

    assert len(lines.messages) == 3 * GROUPS_MAX and len(chronicle._groups) == GROUPS_MAX


def test_what_needs_attention_is_a_warning(lines: pytest.LogCaptureFixture) -> None:
    chronicle = Chronicle("n")
    for kind in Kind:
        chronicle.note(Remark(kind, "x", "y"))
    chronicle.close()

    assert len(lines.records) == len(Kind)
    assert {record.__dict__["facts"]["event"] for record in lines.records if record.levelname == "WARNING"} == {
        "doubt", "loss", "majority_lost", "put_back"}
