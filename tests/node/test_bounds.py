"""What nodes say of as many partitions and settings as there may be can be read: writing checks no bound."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from skuld_py.config import PARTITIONS_MAX
from skuld_py.model import messages as m
from skuld_py.model.events import Received
from skuld_py.model.messages.settings import SETTINGS_MAX
from skuld_py.model.setting import PAUSED, YES
from skuld_py.node.leadership.status import within
from skuld_py.wire.codec import Envelope, decode, encode

SAID = {m.Gossip, m.Described, m.Greeted, m.Sum, m.Summed, m.Counted, m.PullSettings, m.PulledSettings,
        m.GotSettings}
"""Messages whose lists grow with partitions, nodes or settings, and which the run below must make long."""


def length(message: m.Message) -> int:
    """Of its longest list."""
    return max((len(value) for value in attrs.astuple(message, recurse=False) if isinstance(value, tuple | bytes)),
               default=0)


class Scribe:
    """Keeps the longest message of each type."""

    def __init__(self) -> None:
        self.longest: dict[type[m.Message], m.Message] = {}

    def note(self, message: m.Message) -> bool:
        known = self.longest.get(type(message))
        if known is None or length(message) > length(known):
            self.longest[type(message)] = message
        return False


@pytest.fixture(scope="module")
def said() -> dict[type[m.Message], m.Message]:
    """By nodes with all partitions, all of them doubtful on two, and all settings."""
    scribe, machines = Scribe(), Machines(count=3, partitions=PARTITIONS_MAX)
    machines.is_lost = scribe.note
    first, *others = machines.names
    machines.pass_time(10_500)
    for question in (m.Greet(1), m.Count(2, "")):
        machines.ask(first, question, b"c")
    machines.pass_time(200)
    rows = [m.SettingRow(PAUSED, f"q{number}", 5, "w", YES) for number in range(SETTINGS_MAX)]
    for at in range(0, len(rows), 1_000):
        for name in machines.names[:2]:
            machines.give(name, Received(machines.names[2], m.PulledSettings(tuple(rows[at : at + 1_000]))))
    for name in others:
        for vnode in machines.nodes[name].view.vnodes:
            vnode.doubt(machines.now_ms, "its disk was replaced")
    machines.pass_time(6_000)
    for question in (m.Describe(3), m.GetSettings(4, PAUSED, "", b"")):
        machines.ask(first, question, b"c")
    machines.pass_time(200)
    for _, answer in machines.answers:
        scribe.note(answer)
    return scribe.longest


def test_all_that_nodes_say_at_the_most_partitions_and_settings_can_be_read(
        said: dict[type[m.Message], m.Message]) -> None:
    assert set(said) >= SAID
    for message in said.values():
        envelope = Envelope("n", "test", (message,))
        assert decode(encode(envelope)) == envelope


def test_what_moves_is_said_of_every_node_though_not_all_of_it_has_room(
        said: dict[type[m.Message], m.Message]) -> None:
    described = said[m.Described]
    assert isinstance(described, m.Described)
    assert len(described.partitions) == PARTITIONS_MAX >= len(described.moves) > PARTITIONS_MAX / 2
    assert len({row.node for row in described.moves}) == 2
    assert all(sum("not listed" in row.reason for row in described.moves if row.node == node) <= 1
               for node in {row.node for row in described.moves})


def test_rows_beyond_the_room_are_counted_in_the_first_reason_of_their_kind() -> None:
    rows = [m.MoveRow(number, node, "suspect", 5, False, reason)
            for node, count, reason in (("a", 3, ""), ("b", 9, "was lost " * 20), ("c", 1, ""))
            for number in range(count)]

    told = within(rows, 6)

    assert [(row.node, row.partition) for row in told] == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 0)]
    assert told[0].reason == "1 more of its partitions are not listed"
    assert told[2].reason.endswith("; 7 more of its partitions are not listed") and len(told[2].reason) <= 200
    assert not told[1].reason and within(rows, 13) == tuple(rows)
