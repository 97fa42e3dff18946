"""What is held of partitions reaches whoever asks, whatever stands in their documents."""

from __future__ import annotations

import json
from typing import Any

import attrs
import pytest

from node.machines import Machines
from node.operating import down, scrawl
from skuld_py.model.document import Freeze, Loss
from skuld_py.model.events import Effect, SwapDocument
from skuld_py.node.leadership import held as module
from skuld_py.node.leadership.held import held
from skuld_py.runtime.zookeeper.documents import DOCUMENT_BYTES_MAX
from skuld_py.wire.codec import Envelope, decode, encode


@pytest.mark.parametrize(("field", "value"), [
    ("freeze", {"id": "", "by": "\ud800", "reason": "", "at_ms": 0, "until_ms": 0}),
    ("freeze", {"id": "", "by": "me", "reason": "", "at_ms": 0, "until_ms": 1 << 70}),
    ("no_grant_before_ms", 1 << 62), ("horizon_ms", 1 << 70),
    ("loss", {"epoch": 1, "lost": ["n\ud800"], "remaining": [], "by": "", "reason": "", "at_ms": 0,
              "until_ms": 1 << 70, "counted_ms": 0, "missing": 0, "named": []})])
def test_whatever_is_written_by_hand_who_is_asked_how_the_cluster_is_can_answer(field: str, value: Any) -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    scrawl(machines, field, json.dumps(value))
    machines.pass_time(2_000)

    for name in machines.names:
        told = machines.nodes[name].description()
        assert decode(encode(Envelope(name, "test", (told,)))).messages == (told,)
    assert machines.documents[0][1].freeze is None, "a freeze that makes no sense was not taken out"


def test_of_more_than_an_answer_has_room_for_what_keeps_a_leader_from_granting_is_told(
        monkeypatch: pytest.MonkeyPatch) -> None:
    """With thousands of partitions frozen the last ones were said to grant, whatever kept them from it."""
    machines = Machines(partitions=4)
    machines.pass_time(2_000)
    monkeypatch.setattr(module, "PARTITIONS_MAX", 4)
    for partition, (_, document) in [*machines.documents.items()]:
        until_ms = machines.now_ms + 60_000 if partition == 3 else 0
        machines.write(partition, attrs.evolve(document, freeze=Freeze("f", "op", "", 1),
                                               no_grant_before_ms=until_ms))
    machines.pass_time(1_000)

    rows = held(machines.nodes[machines.names[0]].view, machines.now_ms, lambda partition, now_ms: "")
    assert len(rows) == 4 and [row.partition for row in rows if row.what == "barrier"] == [3]


def test_how_much_is_lost_is_told_whatever_the_names_are() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    names = tuple(f"{number}.a-long-name-of-a-rack.of-a-hall.example.org:13000" for number in range(9))
    loss = Loss(1, names, names[:1], "op", "fire " * 20, 1, 1, 2, 3, ("a-task", "another"))
    machines.write(0, attrs.evolve(machines.documents[0][1], loss=loss))
    machines.pass_time(1_000)

    (row,) = held(machines.nodes[machines.names[0]].view, machines.now_ms, lambda partition, now_ms: "")
    assert len(row.words) <= 500
    assert row.words.startswith(names[0]) and row.words.endswith("3 tasks are known to be lost (a-task, another)")


class Narrow(Machines):
    """ZooKeeper takes no larger document."""

    def _carry_out(self, name: str, effect: Effect) -> None:
        if isinstance(effect, SwapDocument) and len(effect.document.encode()) > DOCUMENT_BYTES_MAX:
            effect = attrs.evolve(effect, version=1 << 20)
        super()._carry_out(name, effect)


def test_what_makes_no_sense_leaves_a_partition_that_nobody_leads_room_for_its_next_leader() -> None:
    machines = Narrow(partitions=1)
    machines.pass_time(2_000)
    before = machines.documents[0][1]
    down(machines, before.leader)
    scrawl(machines, "promote", json.dumps({"by": "x" * DOCUMENT_BYTES_MAX}))
    machines.pass_time(20_000)

    after = machines.documents[0][1]
    assert after.epoch > before.epoch and after.leader not in (before.leader, ""), "nobody could be elected"
    assert not after.malformed
