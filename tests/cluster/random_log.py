"""Logs of random entries that often mean something: what a cluster might write, and what it never would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from skuld_py.cluster.log.commands import (
    AbortJoin,
    AcceptJoin,
    AddSlot,
    Command,
    ExhaustInput,
    ForgetNode,
    Gc,
    JoinDirect,
    Joining,
    KillWorkflow,
    Leave,
    LeaveSlot,
    NotifyJoin,
    PrepareJoin,
    RetireNode,
    SealOutput,
    SetReplicas,
    SetRules,
    SetSharing,
    SubmitWorkflow,
)
from skuld_py.cluster.log.entries import Entry
from skuld_py.cluster.log.play import play
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.log.workflows import StepRow, Workflow
from skuld_py.model.document import Member
from skuld_py.model.ids import to_text

NODES = [f"n{index}:1" for index in range(5)]
LIVES = [f"{node}~{life}" for node in NODES for life in "abc"]
SLOTS = [f"slot-{index}" for index in range(6)]

WORKFLOWS = ["census", "daily", "w3"]
STEPS = (StepRow("in1", "input"), StepRow("in2", "input", most=2), StepRow("sum", "function"),
         StepRow("out1", "output"), StepRow("out2", "output"))
PLANS = tuple(to_text(time_ms.to_bytes(8, "big") + bytes(12)) for time_ms in (1_000, 2_000))

More = Sequence[Callable[[Random], Command]]


def member(life: str) -> Member:
    return Member(life.partition("~")[0], "127.0.0.1", 1, "boot")


def random_command(random: Random, replica: Replica, more: More = ()) -> Command:
    """Mostly one that does something on this replica."""
    life, other = random.choice(LIVES), random.choice(LIVES)
    within = random.choice(replica.roster) if replica.roster and random.random() < 0.8 else life
    prepared = list(replica.joins.prepared.items()) or [(within, life)]
    accepted = list(replica.joins.accepted.items()) or [(within, life)]
    down = [name for name, place in replica.nodes.items() if not place.member] or NODES
    joiners = (Joining(life, member(life)), Joining(other, member(other)))
    choices: list[Callable[[], Command]] = [
        lambda: PrepareJoin(life, member(life)),
        lambda: NotifyJoin(random.choice(prepared)[1]),
        lambda: AcceptJoin(*random.choice(accepted)),
        lambda: AbortJoin(random.choice([life, prepared[0][1]])),
        lambda: JoinDirect(within, replica.ring.after(within), joiners[:random.randint(1, 2)]),
        lambda: Leave(within),
        lambda: AddSlot(random.choice(SLOTS), random.choice([within, life]), ("tag",)[:random.randint(0, 1)]),
        lambda: LeaveSlot(random.choice(SLOTS)),
        lambda: RetireNode(random.choice(NODES), random.random() < 0.5),
        lambda: ForgetNode(random.choice(down)),
        Gc,
        lambda: SetRules(random.randint(0, 1)),
        lambda: random_flow(random, replica),
        lambda: SetReplicas(random.randint(1, 5)),
    ]
    weights = [6, 6, 6, 1, 4, 3, 4, 2, 2, 2, 1, 1, 6, 1]
    if more and random.random() < 0.4:
        return random.choice(more)(random)
    return random.choices(choices, weights)[0]()


def random_flow(random: Random, replica: Replica) -> Command:
    """Something about a workflow, mostly one that lives: its next step, or any."""
    name = random.choice([*replica.workflows] if replica.workflows and random.random() < 0.8 else WORKFLOWS)
    known = replica.workflows.get(name, Workflow("", ""))
    inputs = known.open_inputs if random.random() < 0.8 else ()
    outputs = known.open_outputs if random.random() < 0.8 else ()
    life = known.life if random.random() < 0.8 else random.choice([0, 1_000, 2_000])
    choices: list[Callable[[], Command]] = [
        lambda: SubmitWorkflow(name, 16 * random.choice("aaab"), random.choice(PLANS),
                               STEPS[:random.choice([4, 5])]),
        lambda: KillWorkflow(name, random.choice(["", "by hand"]), life=life),
        lambda: ExhaustInput(name, random.choice(inputs or ("in1", "in2", "sum")), random.randrange(2), life=life),
        lambda: SealOutput(name, random.choice(outputs or ("out1", "out2", "sum")), life=life),
        lambda: SetSharing(random.choice(["greedy", "balanced", "percentage"]))]
    return random.choices(choices, [3, 1, 8, 16 if known.is_sealing else 1, 1])[0]()


class Writer:
    """Writes a log, and plays it to know what would mean something next."""

    def __init__(self, random: Random, replica: Replica, commands: dict[str, type[Command]]) -> None:
        self.random = random
        self.replica = replica
        self._commands = commands
        self._seqs: dict[str, int] = {}

    def next(self, more: More = ()) -> bytes:
        random = self.random
        command = random_command(random, self.replica, more)
        writer = random.choice(["operator", *LIVES[:6]])
        seq = self._seqs.get(writer, -1) + random.choice((1, 1, 1, 1, 0))
        self._seqs[writer] = max(seq, 0)
        raw = Entry(writer, max(seq, 0), command).encode()
        if random.random() < 0.03:
            raw = raw[:-1]
        self.replica = play(self.replica, self.replica.version + 1, raw, self._commands).replica
        return raw
