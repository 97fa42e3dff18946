"""A coordination log for the verbs that show one: five positions, with a join, a refusal, and an odd text."""

from __future__ import annotations

from skuld_py.cluster.log.commands import AcceptJoin, AddSlot, Command, ForgetNode, Leave, NotifyJoin, PrepareJoin
from skuld_py.cluster.log.entries import Entry
from skuld_py.model.document import Member


def member(name: str) -> Member:
    """A node that runs at its name."""
    host, port = name.split(":")
    return Member(name, host, int(port), "boot")


A, B, C, D = "h:1~a", "h:2~b", "h:3~c", "h:4~d"
WRITTEN: tuple[tuple[str, Command] | bytes, ...] = (
    (A, PrepareJoin(A, member("h:1"))),
    (B, PrepareJoin(B, member("h:2"))),
    (A, NotifyJoin(B)),
    (B, AcceptJoin(A, B)),
    (A, AddSlot("s", A, ("gpu",))),
    ("operator~1", ForgetNode("h:2")),
    b'{"\x1b[2J',
    (A, AcceptJoin(A, B)),
    (A, Leave(B)),
    (B, PrepareJoin(B, member("h:2"))),
    (C, PrepareJoin(C, member("h:3"))),
    (D, PrepareJoin(D, member("h:4"))))


def raws() -> list[bytes]:
    """The entries' bytes."""
    seqs: dict[str, int] = {}
    made = []
    for each in WRITTEN:
        if isinstance(each, bytes):
            made.append(each)
            continue
        writer, command = each
        seqs[writer] = seqs.get(writer, -1) + 1
        made.append(Entry(writer, seqs[writer], command).encode())
    return made
