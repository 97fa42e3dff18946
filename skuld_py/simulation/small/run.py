"""One small run: the story and what its script changes of it, then healing and judgement as of any other run."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from itertools import count

from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.columns import pack
from skuld_py.model.document import Document
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import Snapshot
from skuld_py.simulation.campaign import TRACE_LINES, Campaign
from skuld_py.simulation.clients.client import Client
from skuld_py.simulation.clients.worker import Worker
from skuld_py.simulation.cluster import Cluster
from skuld_py.simulation.faults import Fault
from skuld_py.simulation.options import Options
from skuld_py.simulation.small import log
from skuld_py.simulation.small.scenarios import FOCUSES, NODES, SCENARIOS
from skuld_py.simulation.small.script import Choices, Script
from skuld_py.simulation.small.verdict import Verdict
from skuld_py.simulation.small.world import Small
from skuld_py.simulation.trace import Trace
from skuld_py.simulation.world.network import between, one_way
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.scheduler import STILL

HELD_MS, COPIED_MS = 250, 1_000
"""How long claims are granted between an election and the next strike; longer where an old copy is put back after
it."""
REST_MS = 1_200
"""A story ends this long after its last strike..."""
MOVE_MS = 1_500
"""A node that joins has a vote by then."""
END_MS = 6_000
"""...and by then, however few there were."""
STEP_MS = 50
TASKS = 6
HABITS = ((1_200, ("renew",)), (1_600, ("abandon",)), (700, ("release", "late", "abandon")),
          (300, ("late", "release")))
"""Each client's lease, and what becomes of its claims in turns."""
WAIT_MS, PAUSE_MS = 300, 40
DOWN_MS, AWAY_MS, APART_MS = 600, 650, 1_300
"""How long a node is down; how long it stands still, longer than its session lasts; and how long it is parted from
its peers, until they have another leader though its session lives."""
_FAULTS = {"pause": ("pause", AWAY_MS), "expire": ("expire", 0), "crash": ("crash", DOWN_MS),
           "isolate": ("isolate", APART_MS), "deaf": ("one way", APART_MS), "wipe": ("wipe", DOWN_MS),
           "long pause": ("long pause", APART_MS),
           "crash before": ("crash", DOWN_MS), "crash after": ("crash after commit", DOWN_MS)}


class Story(Campaign):
    """A small run under way."""

    def __init__(self, script: Script, trace: Trace, choices: Choices | None = None) -> None:
        scenario, _, focus = script.pair.partition(":")
        self._scenario, self._focus = SCENARIOS[scenario], FOCUSES[focus]
        self.choices = choices or Choices(script.numbers)
        self._left = self._scenario.times if self._scenario.fault else 0
        self._struck_ms = self._scenario.begin_ms + self._scenario.joins * MOVE_MS
        self._numbers = count()
        super().__init__(STILL, 0, trace)

    def draw_options(self, seed: int) -> Options:
        """Those of the scenario."""
        return self._scenario.options

    def draw_faults(self, seed: int, drawn: Options, end_ms: int) -> list[Fault]:
        """None: they strike as the story goes on."""
        return []

    def make_cluster(self, seed: int, trace: Trace) -> Cluster:
        """One that may deviate."""
        self.small = Small(self.options, trace, self.horizon_ms, self.choices, self._focus, self._befall)
        self.small.registry.on_written.append(self._on_written)
        return self.small

    def play(self) -> None:
        """All of it."""
        scheduler = self.cluster.scheduler
        self.cluster.start()
        self._begin_work()
        scheduler.at(self._scenario.begin_ms, self._open)
        while scheduler.now_ms < min(END_MS, END_MS if self._left else self._struck_ms + REST_MS):
            scheduler.run(scheduler.now_ms + STEP_MS)
        self.small.is_open = False
        for client in self.clients[1:]:
            client.is_stopped = True
        self._heal_all()

    def _open(self) -> None:
        self.small.is_open = True
        self._strike()

    # -- work ----------------------------------------------------------------------------------

    def _begin_work(self) -> None:
        producer = self._make_client("p0", self.options.workload.patience_ms)
        ids = IdMint(0).mint(producer.wall_ms(), TASKS, 0)
        batch = m.TaskBatch(Header("q").encode(), b"".join(ids), pack([b"work"] * TASKS))

        def enqueue() -> None:
            producer.ask(lambda request: m.Enqueue(request, 0, (batch,)), lambda operation: None)
        producer.later(150, enqueue)
        for number, (lease_ms, fates) in enumerate(HABITS):
            client = self._make_client(f"c{number}", self.options.workload.patience_ms)
            at = number % len(NODES)
            client.nodes = (*NODES[at:], *NODES[:at])
            client.later(250 + 10 * number, self._work, client, Worker(client, self.options, fates), lease_ms)

    def _work(self, client: Client, worker: Worker, lease_ms: int) -> None:
        """Claim, unless a claim is held, and again."""
        def again() -> None:
            client.later(PAUSE_MS, self._work, client, worker, lease_ms)
        held = [hold for hold in client.history.holds if hold.holder.startswith(client.name)]
        if any(hold.stop_ms > client.scheduler.now_ms for hold in held):
            again()
        elif not client.is_stopped:
            worker.claim("q", 1, lease_ms, WAIT_MS, again)

    # -- faults --------------------------------------------------------------------------------

    def _befall(self, way: str, name: str) -> None:
        """Let it happen once the node's turn is over."""
        kind, lasts_ms = _FAULTS[way]
        now_ms, others = self.cluster.scheduler.now_ms, [other for other in self.options.nodes if other != name]
        links = {"isolate": between([name], others), "deaf": one_way(others, [name])}.get(way, [])
        self.cluster.scheduler.after(0, self.nemesis.strike, Fault(
            next(self._numbers), kind, now_ms, now_ms + lasts_ms, (name,), tuple(links)))

    def _on_written(self, now_ms: int, partition: int, before: Document | None, document: Document) -> None:
        if self.small.is_open and before is not None and document.epoch > before.epoch:
            delay_ms = COPIED_MS if self._scenario.fault == "old copy" else HELD_MS
            self.cluster.scheduler.after(delay_ms, self._strike)

    def _strike(self) -> None:
        """The fault of the scenario."""
        if not (self._left and self.small.is_open):
            return
        if self._scenario.fault == "wipe" and not self.cluster.atlas.may_hurt(self._document().leader):
            self.cluster.scheduler.after(STEP_MS, self._strike)
            return
        self._left -= 1
        self._struck_ms = self.cluster.scheduler.now_ms
        leader = self._document().leader
        if self._scenario.fault == "old copy":
            self._copy(leader)
        elif self._scenario.fault == "veto":
            self._veto(leader)
        else:
            self._befall(self._scenario.fault, leader)

    def _copy(self, leader: str) -> None:
        """All data directories are copied; then the leader's session ends."""
        copies = {process: (process.store.snapshot(), process.starts)
                  for process in self.cluster.processes.values() if process.is_up}
        self._befall("expire", leader)
        self.cluster.scheduler.after(2 * HELD_MS, self._put_back, copies)

    def _put_back(self, copies: Mapping[Process, tuple[Snapshot, int]]) -> None:
        """Put back the copy of a node whose vote has counted since. Claims were granted by then, and the leader is
        gone for a while."""
        leader, now_ms = self._document().leader, self.cluster.scheduler.now_ms
        for process, (copy, starts) in copies.items():
            told = self.nemesis.told_of(process, copy) if process.starts == starts else []
            if told and process.name != leader and self.small.is_open and self.nemesis.may_hurt(process):
                process.crash()
                process.store.restore(copy)
                self.cluster.atlas.note_old_copy(process.name, told)
                self.nemesis.struck.append(Fault(next(self._numbers), "old copy", now_ms, now_ms, (process.name,)))
                self.cluster.note("nemesis", "put back", process.name)
                self.cluster.scheduler.after(STEP_MS, self.cluster.restart, process.name)
                self._befall("crash", leader)
                return

    def _veto(self, leader: str) -> None:
        """A claim is recorded by one follower alone, which stands still while the others elect and grant on."""
        epoch, holder = self._document().epoch, next(name for name in self.options.nodes if name != leader)

        def may_pass(sender: str, receiver: str, message: m.Message) -> bool:
            if type(message) is not m.Grant or message.epoch != epoch:
                return True
            if receiver == holder:
                self._befall("crash", leader)
                self.cluster.scheduler.after(STEP_MS, self._befall, "long pause", holder)
            return receiver == holder
        self.small.may_pass = may_pass

    def _document(self) -> Document:
        return self.cluster.registry.documents[0][1]


def run(script: Script, listener: Callable[[str], None] | None = None, choices: Choices | None = None) -> Verdict:
    """Play a script. ``choices``: its decision points, if they are to be other ones."""
    if script.pair in log.PAIRS:
        return log.run(script, listener, choices)
    trace = Trace(listener)
    story = Story(script, trace, choices)
    error = ""
    try:
        story.play()
    except Exception:
        error = traceback.format_exc()
    findings = story.judge(error)
    violated = {each.invariant: each.evidence for each in findings if each.verdict is False}
    return Verdict(script, story.choices.count, violated, tuple(story.choices.taken), story.cluster.pairs.named,
                   trace.hash, tuple(trace.last(TRACE_LINES)) if violated else ())
