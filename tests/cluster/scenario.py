"""Scenarios of the coordination log as texts: a replica, entries, and exactly what each makes of it.

    == J1: three members, one joins
    start ring a>b b>c c>a
    0 d: prepare-join d
        => ring a>b b>c c>a; prepared a:d
        -> a: notify-join d
        ~ observer=a, joiner=d
        watch a b d | d a

A step is a position, the writer, and the command; ``d#0:`` gives the writer's number, which otherwise counts up.
``=>`` is the whole replica afterwards: what is not listed is empty; ``same`` says that nothing but the version
changed. ``->`` are all reactions in order, ``~`` is the whole diff, ``!`` the outcome when it is not plain,
``watch`` whom some members watch. A line that begins with ``#`` is a comment.

Containers: ``members`` (needed only beside a ring of none, and to say at which position a node came: ``d@2``),
``ring a>b``, ``prepared`` and ``accepted`` (``observer:joiner``), ``aborted d@2``, ``left c@1``, ``down c@1``
(placed nodes that have no life), ``leaving c``, ``slots`` and ``parked`` (``slot:member[tag,tag]``),
``writers a#0@3``, ``collected 5 9``, ``replicas 3``, ``rules 1``,
``workflows j:live@12<10#a[in1!,in2!,out1]`` (since 12, submitted at 10, with definition ``a``; its steps, those
with ``!`` exhausted or sealed; ``in...`` is an input, ``out...`` an output) and ``j:killed@9<3#a=why``.

A member ``c~2`` is a life of node ``c``. Not listed but derived: whom a joiner describes, what failed (``!``),
and, unless listed, each writer's last entry.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from skuld_py.cluster.log import commands as c
from skuld_py.cluster.log.canonical import from_text
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import Outcome, Played, play
from skuld_py.cluster.log.replica import Failure, Joins, Place, Replica, Slot, Written
from skuld_py.cluster.log.ring import Ring
from skuld_py.cluster.log.workflows import FUNCTION, INPUT, OUTPUT, StepRow, Workflow
from skuld_py.cluster.member.watched import watched
from skuld_py.errors import Malformed
from skuld_py.model.document import Member

SAME = "same"
_STEP = re.compile(r"(\d+)(?: (\S+?)(?:#(\d+))?)?: (.+)")
_FLOW = re.compile(r"(\S+):(live|completed|killed)@(\d+)<(\d+)#([0-9a-f])(?:\[(\S+)\])?(?:=(\S+))?")
PLAN = 32 * "0"
_PLAIN = (Outcome.APPLIED, Outcome.UNCHANGED)


class BadScenario(Exception):
    """A text that is no scenario: where, and what is expected there."""


def member_of(name: str) -> Member:
    """What a member of this id says of itself."""
    return Member(name.split("~", maxsplit=1)[0], "127.0.0.1", 1, "boot")


# -- words ---------------------------------------------------------------------------------------

COMMANDS: dict[str, Callable[..., c.Command | c.Rejoin]] = {
    "prepare-join": lambda joiner: c.PrepareJoin(joiner, member_of(joiner)),
    "notify-join": c.NotifyJoin, "accept-join": c.AcceptJoin, "abort-join": c.AbortJoin, "leave": c.Leave,
    "join-direct": lambda observer, before, *joiners: c.JoinDirect(
        observer, before, tuple(c.Joining(each, member_of(each)) for each in joiners)),
    "add-slot": lambda slot, member, *tags: c.AddSlot(slot, member, tags), "leave-slot": c.LeaveSlot,
    "retire-node": lambda node, *back: c.RetireNode(node, is_leaving=back != ("back",)),
    "forget-node": c.ForgetNode, "gc": lambda *after: c.Gc(*map(int, after)),
    "set-rules": lambda rules: c.SetRules(int(rules)), "rejoin": c.Rejoin,
    "submit-workflow": lambda name, *steps: c.SubmitWorkflow(
        name.partition("#")[0], 16 * (name.partition("#")[2] or "a"), PLAN, tuple(map(row_of, steps))),
    "kill-workflow": c.KillWorkflow, "exhaust-input": c.ExhaustInput, "seal-output": c.SealOutput,
    "set-sharing": c.SetSharing, "set-replicas": lambda count: c.SetReplicas(int(count))}


def row_of(step: str) -> StepRow:
    """The row of a step by its name."""
    return StepRow(step, next((kind for mark, kind in (("in", INPUT), ("out", OUTPUT)) if step.startswith(mark)),
                              FUNCTION))


def command_of(text: str) -> c.Command | c.Rejoin:
    """The command of a text; raises ``BadScenario``."""
    word, *arguments = text.split()
    if word not in COMMANDS:
        raise BadScenario(f"{word!r} is no command; there are {', '.join(COMMANDS)}")
    try:
        return COMMANDS[word](*arguments)
    except (TypeError, ValueError, Malformed) as problem:
        raise BadScenario(f"{text!r}: {problem}") from None


def said(command: c.Command | c.Rejoin) -> str:
    """The text of a command, as far as scenarios can say it."""
    if isinstance(command, c.Rejoin):
        return "rejoin"
    fields = (getattr(command, field.name) for field in attrs.fields(type(command)))
    return " ".join([command.kind, *(each for each in fields if isinstance(each, str))])


def _pairs(mark: str) -> Callable[[str], dict[str, str]]:
    def read(text: str) -> dict[str, str]:
        return dict(_cut(each, mark) for each in text.split())
    return read


def _cut(text: str, mark: str) -> tuple[str, str]:
    left, found, right = text.partition(mark)
    if not (left and found and right):
        raise BadScenario(f"{text!r} is no X{mark}Y")
    return left, right


def _positions(text: str) -> dict[str, int]:
    return {name: int(at) for name, at in (_cut(each, "@") for each in text.split())}


def _since(text: str) -> dict[str, int]:
    return {name: int(at or -1) for name, _, at in (each.partition("@") for each in text.split())}


def _slots(text: str) -> dict[str, Slot]:
    made = {}
    for name, rest in (_cut(each, ":") for each in text.split()):
        member, _, tags = rest.rstrip("]").partition("[")
        made[name] = Slot(member, tuple(filter(None, tags.split(","))))
    return made


def _writers(text: str) -> dict[str, Written]:
    made = {}
    for name, rest in (_cut(each, "#") for each in text.split()):
        seq, at = _cut(rest, "@")
        made[name] = Written(int(seq), int(at))
    return made


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _workflows(text: str) -> dict[str, Workflow]:
    made = {}
    for each in text.split():
        found = _FLOW.fullmatch(each)
        if found is None:
            raise BadScenario(f"{each!r} is no ID:STATE@SINCE<SUBMITTED#DIGEST[STEP,STEP!] or ...#DIGEST=REASON")
        name, state, since, submitted, digest, listed, reason = found.groups()
        steps = tuple(row_of(step.rstrip("!")) for step in (listed or "").split(",") if step)
        marked = [step.rstrip("!") for step in (listed or "").split(",") if step.endswith("!")]
        exhausted, sealed = (tuple(step.name for step in steps if step.name in marked and step.kind == kind)
                             for kind in (INPUT, OUTPUT))
        made[name] = Workflow(16 * digest, PLAN, state, int(since), int(submitted), steps=steps,
                              exhausted=exhausted, sealed=sealed, reason=reason or "")
    return made


CONTAINERS: dict[str, Callable[[str], Any]] = {
    "members": _since, "ring": _pairs(">"), "prepared": _pairs(":"), "accepted": _pairs(":"),
    "aborted": _positions, "left": _positions, "down": _positions, "leaving": str.split,
    "slots": _slots, "parked": _slots, "writers": _writers, "collected": _numbers, "replicas": int, "rules": int,
    "workflows": _workflows, "sharing": str}


_PLAIN_CONTAINERS = ("replicas", "rules", "collected", "slots", "parked", "writers", "left", "aborted",
                     "workflows", "sharing")


def containers_of(text: str) -> dict[str, Any]:
    """What a replica's text lists; raises ``BadScenario``."""
    found: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, _, rest = part.partition(" ")
        if name not in CONTAINERS:
            raise BadScenario(f"{name!r} is no container; there are {', '.join(CONTAINERS)}")
        if name in found:
            raise BadScenario(f"{name} stands there twice")
        try:
            found[name] = CONTAINERS[name](rest)
        except ValueError:
            raise BadScenario(f"{name} {rest}: there is no number where one must be") from None
    return found


def replica_of(found: dict[str, Any]) -> Replica:
    """The replica of what is listed."""
    ring, prepared, accepted = (found.get(name, {}) for name in ("ring", "prepared", "accepted"))
    since = found.get("members", dict.fromkeys(ring, -1))
    if len(since) > 1 and since.keys() != ring.keys():
        raise BadScenario(f"the members are {' '.join(since)}, but the ring has {' '.join(ring) or 'nobody'}")
    leaving = found.get("leaving", [])
    nodes = {node: Place("", at, node in leaving) for node, at in found.get("down", {}).items()}
    for member, at in since.items():
        node = member_of(member).name
        nodes[node] = Place(member, at, node in leaving)
    if missing := [node for node in leaving if node not in nodes]:
        raise BadScenario(f"leaving {' '.join(missing)}: neither a member's node nor down")
    plain = {name: found[name] for name in _PLAIN_CONTAINERS if name in found}
    joins = Joins(prepared, accepted)
    return Replica(members={member: member_of(member) for member in since}, ring=Ring(ring), joins=joins,
                   joiners={joiner: member_of(joiner) for joiner in joins.observers}, nodes=nodes, **plain)


# -- reading -------------------------------------------------------------------------------------


@attrs.define
class Step:
    """One entry, and what is expected of it. ``listed`` is None where nothing changes."""

    where: str
    position: int
    writer: str
    seq: int | None
    words: str
    listed: dict[str, Any] | None = None
    is_said: bool = False
    reactions: list[str] = attrs.field(factory=list)
    diff: dict[str, str] = attrs.field(factory=dict)
    outcome: tuple[Outcome, str] | None = None
    watch: dict[str, tuple[str, ...]] = attrs.field(factory=dict)

    def read(self, line: str) -> None:
        """An indented line."""
        mark, _, rest = line.partition(" ")
        if mark == "=>":
            self.listed, self.is_said = None if rest == SAME else containers_of(rest), True
            if self.listed is not None:
                replica_of(self.listed)
        elif mark == "->":
            member, command = _cut(rest, ": ")
            command_of(command)
            self.reactions.append(f"{member}: {command}")
        elif mark == "~":
            self.diff = dict(_cut(each, "=") for each in rest.split(", "))
        elif mark == "!":
            self.outcome = _outcome(rest)
        elif mark == "watch":
            self.watch = {me: tuple(others) for me, *others in (each.split() for each in rest.split("|"))}
        else:
            raise BadScenario(f"{mark!r} begins no line of a step; those are => -> ~ ! watch")


def _outcome(text: str) -> tuple[Outcome, str]:
    word, _, reason = text.partition(": ")
    try:
        return Outcome(word), reason
    except ValueError:
        known = ", ".join(each.value for each in Outcome)
        raise BadScenario(f"{word!r} is no outcome; there are {known}") from None


@attrs.define
class Scenario:
    """A text, read."""

    name: str
    where: str
    start: dict[str, Any] | None = None
    steps: list[Step] = attrs.field(factory=list)

    def read(self, where: str, line: str) -> None:
        """A line that begins a start or a step."""
        if line == "start" or line.startswith("start "):
            if self.start is not None or self.steps:
                raise BadScenario("a second start")
            self.start = containers_of(line.removeprefix("start"))
            replica_of(self.start)
            return
        found = _STEP.fullmatch(line)
        if not found:
            raise BadScenario(f"{line!r} is no step; a step is POSITION WRITER: COMMAND or POSITION: raw TEXT")
        position, writer, seq, words = found.groups()
        if self.start is None:
            raise BadScenario("a step before the start")
        if self.steps and int(position) <= self.steps[-1].position:
            raise BadScenario(f"position {position} does not come after {self.steps[-1].position}")
        if (writer is None) != words.startswith("raw "):
            raise BadScenario("a command has a writer, and a raw text has none")
        if writer is not None and isinstance(command_of(words), c.Rejoin):
            raise BadScenario("rejoin is a reaction, not an entry")
        self.steps.append(Step(where, int(position), writer or "", None if seq is None else int(seq), words))


def parse(name: str, text: str) -> list[Scenario]:
    """All scenarios of a text; raises ``BadScenario`` naming the line."""
    made: list[Scenario] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        where = f"{name}:{number}"
        try:
            if stripped.startswith("== "):
                _finish(made)
                made.append(Scenario(stripped.removeprefix("== "), where))
            elif not made:
                raise BadScenario("something before the first == NAME")
            elif line[0] not in " \t":
                _finish(made, is_over=False)
                made[-1].read(where, stripped)
            elif not made[-1].steps:
                raise BadScenario("what is expected of which step?")
            else:
                made[-1].steps[-1].read(stripped)
        except BadScenario as problem:
            raise BadScenario(f"{where}: {problem}") from None
    _finish(made)
    return made


def _finish(made: list[Scenario], is_over: bool = True) -> None:
    if made and made[-1].steps and not made[-1].steps[-1].is_said:
        raise BadScenario(f"{made[-1].steps[-1].where}: the step before says not what comes of it (=>)")
    if made and is_over and not made[-1].steps:
        raise BadScenario(f"{made[-1].where}: the scenario before has no steps")


def scenarios(folder: Path) -> Iterator[Scenario]:
    """Those of all texts in a folder."""
    for path in sorted(folder.glob("*.txt")):
        yield from parse(path.name, path.read_text(encoding="utf-8"))


# -- playing -------------------------------------------------------------------------------------


@attrs.define
class Run:
    """A scenario that is played."""

    replica: Replica
    expected: Replica
    seqs: dict[str, int] = attrs.field(factory=dict)

    def play(self, step: Step) -> list[str]:
        """Play a step; what is otherwise than expected."""
        raw = self.raw(step)
        played = play(self.replica, step.position, raw)
        again = play(from_text(Replica, self.replica.text()), step.position, raw)
        self.expected = self.after(step)
        found = [*_compared(played.replica, self.expected), *_told(step, played)]
        if again.replica.digest() != played.replica.digest():
            found.append("played from the saved text it comes out otherwise")
        for me, others in step.watch.items():
            if watched(played.replica, me) != others:
                found.append(f"{me} watches {' '.join(watched(played.replica, me)) or 'nobody'},"
                             f" not {' '.join(others) or 'nobody'}")
        self.replica = played.replica
        return [f"{step.where}: {each}" for each in found]

    def raw(self, step: Step) -> bytes:
        """The entry's bytes."""
        if not step.writer:
            return step.words.removeprefix("raw ").encode()
        command = command_of(step.words)
        assert isinstance(command, c.Command)
        seq = self.seqs.get(step.writer, -1) + 1 if step.seq is None else step.seq
        self.seqs[step.writer] = max(seq, self.seqs.get(step.writer, -1))
        step.seq = seq
        return Entry(step.writer, seq, command).encode()

    def after(self, step: Step) -> Replica:
        """The replica that is expected."""
        before, listed = self.expected, step.listed
        writers, failed = dict(before.writers), before.failed
        outcome, reason = step.outcome or (Outcome.APPLIED, "")
        if outcome in (Outcome.FAILED, Outcome.REFUSED):
            failed = (*failed, Failure(step.position, reason))
        if step.writer and outcome not in (Outcome.REPEATED, Outcome.LATE):
            assert step.seq is not None
            writers[step.writer] = Written(step.seq, step.position)
        made = before if listed is None else replica_of(listed)
        for gone in made.left:
            writers.pop(gone, None)
        if listed is not None and "writers" in listed:
            writers = listed["writers"]
        return attrs.evolve(made, version=step.position, writers=writers, failed=failed)


def _compared(found: Replica, expected: Replica) -> Iterator[str]:
    if found == expected:
        return
    for field in attrs.fields(Replica):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if one != other:
            yield f"{field.name} is {one}, not {other}"


def _told(step: Step, played: Played) -> Iterator[str]:
    reactions = [f"{each.member}: {said(each.command)}" for each in played.reactions]
    if reactions != step.reactions:
        yield f"reactions are {reactions}, not {step.reactions}"
    if played.diff != step.diff:
        yield f"the diff is {dict(played.diff)}, not {step.diff}"
    wanted = step.outcome or (_PLAIN[step.listed is None], "")
    if (played.outcome, played.reason) != wanted:
        yield f"it is {played.outcome.value} {played.reason!r}, not {wanted[0].value} {wanted[1]!r}"


def run(scenario: Scenario) -> list[str]:
    """Play a scenario; all that is otherwise than it says."""
    start = attrs.evolve(replica_of(scenario.start or {}), version=scenario.steps[0].position - 1)
    made = Run(start, start, {writer: last.seq for writer, last in start.writers.items()})
    return [problem for step in scenario.steps for problem in made.play(step)]
