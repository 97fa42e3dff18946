"""Playing entries, one by one: total, repeatable, and the same wherever it begins."""

from __future__ import annotations

from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.commands import AcceptJoin, Command, Leave, NotifyJoin, PrepareJoin
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome, Played, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.model.document import Member


def member(name: str) -> Member:
    return Member(name, "127.0.0.1", 1, "boot")


class Log:
    """A log that is played as it is written; reactions are only looked at."""

    def __init__(self) -> None:
        self.replica = Replica()
        self.seqs: dict[str, int] = {}

    def write(self, writer: str, command: Command) -> Played:
        seq = self.seqs[writer] = self.seqs.get(writer, -1) + 1
        played = play(self.replica, self.replica.version + 1, Entry(writer, seq, command).encode())
        self.replica = played.replica
        return played

    def join(self, name: str) -> None:
        self.write(name, PrepareJoin(name, member(name)))
        if observer := self.replica.joins.observers.get(name):
            self.write(observer, NotifyJoin(name))
            self.write(name, AcceptJoin(observer, name))


def test_members_join_in_a_ring_and_leave_it_closed() -> None:
    log = Log()
    for name in "abcd":
        log.join(name)
    assert sorted(log.replica.ring.walk()) == ["a", "b", "c", "d"]

    log.write("a", Leave("c"))

    assert sorted(log.replica.ring.walk()) == ["a", "b", "d"]
    assert log.replica.nodes["c"].member == ""
    assert from_text(Replica, log.replica.text()) == log.replica


def test_what_is_no_entry_is_skipped_and_told() -> None:
    played = play(Replica(), 0, b"{")
    assert played.outcome is Outcome.FAILED
    assert [failure.position for failure in played.replica.failed] == [0]
