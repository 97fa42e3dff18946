"""Tasks of an ordering key are looked for in the partition that they are all in, and nothing else is shown."""

from __future__ import annotations

from typing import Any

import pytest

from skuld_py import Refused
from skuld_py.client.asking import Answered, Ask, Blocking, Step
from skuld_py.client.reading import Reading
from skuld_py.model import ids
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.columns import Column, pack
from skuld_py.testing import MemoryClient

PARTITIONS = 8


class Reader(Reading, Blocking):
    """A client of nodes that look for no keys: they show tasks of ``a`` and ``b``, and one without a key."""

    def __init__(self) -> None:
        self.asked: list[m.List] = []

    def _clock(self) -> float:
        return 0.0

    def _wall_ms(self) -> int:
        return 1_000

    def _perform(self, step: Step) -> Any:
        assert isinstance(step, Ask)
        if isinstance(step.message, m.Greet):
            return Answered(m.Greeted(0, "a:1", "c", PARTITIONS, 3, 100, 0, 1 << 20, ()), 0.0)
        if isinstance(step.message, m.Get):
            return Answered(m.Got(0, ()), 0.0)
        assert isinstance(step.message, m.List)
        self.asked.append(step.message)
        bodies = [Body(Header("q"), key=key).encode() for key in ("a", "b", "")]
        return Answered(m.Listed(0, b"", b"", bytes(60), pack(bodies), pack([b"", b"", b""]), Column()), 0.0)


def test_the_partition_of_queue_and_key_alone_is_asked_and_others_of_older_nodes_are_left_out() -> None:
    reader = Reader()
    assert [task.key for task in reader.list("q", key="a")] == ["a"]
    assert [task.key for task in reader.list_page("q", key="b").tasks] == ["b"]
    assert [task.key for task in reader.list("q", key="a", partition=7)] == ["a"]
    assert [task.key for task in reader.list(key="a")] == ["a"]
    assert [task.key for task in reader.list("q")] == ["a", "b", ""]

    places = [ids.lane_route("q", key) % PARTITIONS + 1 for key in "ab"]
    assert [(asked.key, asked.place) for asked in reader.asked] == [
        ("a", places[0]), ("b", places[1]), ("a", 8), ("a", 0), ("", 0)]


@pytest.mark.parametrize("key", ["", "x" * 256, 7])
def test_what_is_no_key_is_refused(key: Any) -> None:
    with pytest.raises(Refused) as refusal:
        [*Reader().list("q", key=key)]
    assert refusal.value.code == "bad_key"


def test_a_node_finds_them_in_any_state() -> None:
    with MemoryClient() as client:
        of_a = client.enqueue_many("q", [b"1", b"2", b"3"], key="a")
        client.enqueue_many("q", [b"4", b"5"], key=["b", None])
        other = client.enqueue("r", b"6", key="a")
        client.cancel(of_a[2])

        assert [task.id for task in client.list("q", key="a")] == of_a
        assert [task.id for task in client.list("q", key="a", states=["cancelled"])] == of_a[2:]
        assert {task.id for task in client.list(key="a")} == {*of_a, other}
        assert not [*client.list("q", key="c")]
