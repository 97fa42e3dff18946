"""Any bytes are an entry or ``Malformed``, the same at every member; and what is kept of them is harmless."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from cluster.invariants import faults
from cluster.scenario import member_of
from skuld_py.cluster.log import commands as c
from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.entries import DEPTH_MAX, ENTRY_BYTES_MAX, Entry, decode
from skuld_py.cluster.log.play import Outcome, UnknownRules, play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import StepRow
from skuld_py.errors import Malformed

SEED = 20_150_213
MUTATED_BYTES, MUTATED_VALUES = 70_000, 40_000

EVERY: tuple[c.Command, ...] = (
    c.PrepareJoin("a:1~x", member_of("a:1")), c.NotifyJoin("a"), c.AcceptJoin("a", "b"), c.AbortJoin("a"),
    c.Leave("a"),
    c.JoinDirect("a", "b", (c.Joining("c", member_of("c")), c.Joining("d", member_of("d")))),
    c.AddSlot("s", "a", ("gpu", "x@y")), c.LeaveSlot("s"), c.RetireNode("a", is_leaving=False), c.ForgetNode("a"),
    c.Gc(), c.SetRules(1), c.KillWorkflow("w.1", "by hand"), c.ExhaustInput("w.1", "in1"),
    c.SealOutput("w.1", "out"), c.SetSharing("greedy"), c.SetReplicas(3),
    c.SubmitWorkflow("w.1", 16 * "a", 32 * "0", (
        StepRow("in1", "input", 1, 4, ("gpu",), 50, "kill"), StepRow("out", "output")), "percentage", 30))
SEEDS = [Entry("w@h:1~a", number, command).encode() for number, command in enumerate(EVERY)]
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1 << 63, 10 ** 19, -(10 ** 18), 0.5, 1e300, "", "a" * 231, "\ud800", "é", "\x1b[2J", " ",
    "~", [], {}, [[]], {"": ""}, [["a", "b"]], {"a": {"a": {}}})
BITS = [b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\\ud800", b"null", b"1e9", b"\xff", b"\xed\xa0\x80",
        b"\0", b"-", b"NaN", b"9" * 30]


def test_every_command_is_among_the_seeds_and_comes_back() -> None:
    assert {command.kind for command in EVERY} == c.COMMANDS.keys()
    assert [decode(raw).command for raw in SEEDS] == [*EVERY]


def bent(random: Random, raw: bytes) -> bytes:
    """With a few bytes changed, moved, cut or put in."""
    made = bytearray(raw)
    for _ in range(random.randint(1, 3)):
        at, to = sorted((random.randint(0, len(made)), random.randint(0, len(made))))
        kind = random.randint(0, 3)
        if kind == 0:
            made[at:at + 1] = bytes([random.randint(0, 255)])
        elif kind == 1:
            del made[at:min(to, at + 12)]
        elif kind == 2:
            made[at:at] = random.choice(BITS)
        else:
            made[at:at] = random.choice(SEEDS)[at:to]
    return bytes(made)


def odd(random: Random, plain: Any) -> Any:
    """With one value somewhere replaced, removed, or added."""
    if isinstance(plain, dict) and plain and random.random() < 0.85:
        key = random.choice(sorted(plain))
        made = {**plain, key: odd(random, plain[key])}
        if random.random() < 0.05:
            del made[key]
        elif random.random() < 0.05:
            made[random.choice(["x" * 300, "", "\ud800", "seq"])] = 1
        return made
    if isinstance(plain, list) and plain and random.random() < 0.8:
        at = random.randrange(len(plain))
        return [*plain[:at], odd(random, plain[at]), *plain[at + 1:]]
    return random.choice(ODD)


def outcome(raw: bytes) -> bool:
    """Whether it is an entry; anything but an entry or ``Malformed`` comes through."""
    try:
        entry = decode(raw)
    except Malformed as problem:
        assert len(str(problem)) < 1_000
        return False
    assert decode(entry.encode()) == entry
    return True


def test_bytes_are_an_entry_or_malformed() -> None:
    random = Random(SEED)
    found = [outcome(bent(random, random.choice(SEEDS))) for _ in range(MUTATED_BYTES)]
    assert 0 < sum(found) < len(found)


def test_values_are_an_entry_or_malformed_and_what_plays_leaves_a_sound_replica() -> None:
    random, replica, played = Random(SEED), Replica(), 0
    for number in range(MUTATED_VALUES):
        raw = json.dumps(odd(random, json.loads(random.choice(SEEDS)))).encode()
        is_entry = outcome(raw)
        if not is_entry and number % 20:
            continue
        try:
            replica = play(replica, number, raw).replica
        except UnknownRules:
            continue
        played += is_entry
        assert from_text(Replica, replica.text()).digest() == replica.digest()
    assert faults(replica) == []
    assert played > 500


@pytest.mark.parametrize(("raw", "problem"), [
    (b"", "entry: is no JSON"),
    (b"\xff", "entry: is no JSON"),
    ('{"do":1}'.encode("utf-16"), "entry: is no JSON"),
    (b"[" * 100_000, f"entry: is nested more than {DEPTH_MAX} deep"),
    (b"[" * (DEPTH_MAX + 1) + b"]" * (DEPTH_MAX + 1), f"entry: is nested more than {DEPTH_MAX} deep"),
    (b" " * (ENTRY_BYTES_MAX + 1), f"entry: has {ENTRY_BYTES_MAX + 1} bytes, more than {ENTRY_BYTES_MAX}"),
    (b"9" * 5_000, "entry: has a number of more than 20 digits"),
    (SEEDS[4].replace(b'"seq":4', b'"seq":-1'), "entry.seq: is no number from 0 on"),
    (SEEDS[4].replace(b'"seq":4', b'"seq":true'), "entry.seq: is no number from 0 on"),
    (SEEDS[4].replace(b"w@h:1~a", b""), "entry.writer: is no id"),
    (SEEDS[4].replace(b'"leave"', b'["leave"]'), "entry.do: is no command of this version"),
    (SEEDS[4].replace(b'"a"}', b'"a","b":1}'), "Leave.b: is not known to this version"),
    (SEEDS[4].replace(b'{"member":"a"}', b"{}"), "Leave.member: is missing"),
    (SEEDS[4].replace(b'{"member":"a"}', b'{"member":1}'), "Leave.member: is int, not str"),
    (SEEDS[4].replace(b'"a"}', b'"\\ud800"}'), "Leave.member: has half a character"),
    (SEEDS[4].replace(b'"a"}', b'"a b"}'), "Leave.member: is no id"),
    (SEEDS[6].replace(b'"gpu"', b'"\\u001b[2J"'), "AddSlot.tags: are no tags, or too many"),
    (SEEDS[6].replace(b'["gpu"', b'["gpu"' + b',"x"' * 64), "AddSlot.tags: are no tags, or too many"),
    (SEEDS[9].replace(b'"a"}', b'"/a"}'), "ForgetNode.node: is no name of a node"),
    (SEEDS[0].replace(b'"port":1', b'"port":65536'), "PrepareJoin.member: has no port"),
    (SEEDS[0].replace(b'"boot":"boot"', b'"boot":"\\n"'),
     "PrepareJoin.member: has a text that is long or not printable"),
    (SEEDS[0].replace(b'"name":"a:1"', b'"name":""'), "PrepareJoin.member: is no name of a node"),
    (SEEDS[5].replace(b'"id":"d"', b'"id":""'), "Joining.id: is no id"),
])
def test_what_is_no_entry_is_told_by_field(raw: bytes, problem: str) -> None:
    with pytest.raises(Malformed) as raised:
        decode(raw)
    assert raised.value.message == problem

    played = play(Replica(), 0, raw)
    assert (played.outcome, played.entry, played.reason) == (Outcome.FAILED, None, problem)
    assert from_text(Replica, played.replica.text()) == played.replica


def test_what_is_kept_of_a_failure_is_short_and_printable() -> None:
    raw = json.dumps({**json.loads(SEEDS[4]), "with": {"member": "a", "\ud800\x1b" + "x" * 9_000: 1}}).encode()
    reason = play(Replica(), 0, raw).replica.failed[0].reason
    assert reason.startswith("Leave.??xxx")
    assert len(reason) == 250


def test_rules_that_are_not_known_end_the_playing_and_are_named() -> None:
    raw = Entry("op", 0, c.SetRules(7)).encode()
    with pytest.raises(UnknownRules, match="entry 3 of the coordination log sets rules 7; this program knows"):
        play(Replica(), 3, raw)
