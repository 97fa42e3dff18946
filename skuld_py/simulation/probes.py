"""Named rare situations, counted: what a campaign has met, and what it never has.

A rule that no run has put to the test is not tested by any number of runs. Each probe names a situation in which a
rule of the project decides; a long campaign that meets one of those in ``REQUIRED`` not once fails, because then
the generator is at fault. The machines know nothing of probes, which are read off what passes between machines and
world, and off the stores. What shows only afterwards is in ``hindsight``.

Source: FoundationDB's CODE_PROBE, TigerBeetle's coverage marks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.coordination import SetPulse
from skuld_py.model.document import Document
from skuld_py.model.events import DocumentRead, Session, SessionChanged
from skuld_py.model.history import History
from skuld_py.model.ids import partition_of, split
from skuld_py.model.messages.decisions import Decided
from skuld_py.model.messages.membership import ReplicaPart, Share
from skuld_py.model.schedule import SCHEDULE
from skuld_py.model.setting import PAUSED, YES, decode_setting, setting_key
from skuld_py.node.knowledge.attendance import name_of
from skuld_py.partition.candidacy import SPENT
from skuld_py.partition.data.tables import suspect_key
from skuld_py.partition.leadership.election import Phase
from skuld_py.partition.leadership.promise import Promise
from skuld_py.simulation.checkers.checkpoints import SLOT, mark_of
from skuld_py.simulation.history import Operation
from skuld_py.simulation.options import Options
from skuld_py.simulation.world.network import Network
from skuld_py.simulation.world.process import Process
from skuld_py.simulation.world.zookeeper.registry import Registry

REQUIRED = (
    # elections
    "vote refused", "two candidates for one epoch", "vote of an epoch that is over", "epoch skipped",
    "claims pulled", "claims pulled over pages", "claims pushed", "claims pushed over pages",
    "leader elected with a voter down", "leader elected by the least majority", "leader dies at once",
    "leader restarts and finds its own name", "deposed leader still says it leads",
    "leader stands still", "leader wakes up deposed", "leader suspended", "leader loses its session",
    "leader without its peers, with the registry", "leader without the registry, with its peers",
    "leader changes while a claim is held", "leader takes a new epoch for its tokens",
    "elected over pages that outlast one wait",
    "stale vote while voting", "stale page while pulling", "stale confirmation while pushing",
    "stale word of a new member while syncing", "pull reaches a suspect that voted",
    "push reaches a suspect that voted",
    # claims
    "grant refused for a newer promise", "grant vetoed", "renewal refused for a newer promise",
    "renewal of a lost claim", "renewal by a later epoch's leader", "renewal at the last moment",
    "claim on the least copies", "claim waited and got", "claim waited in vain", "claim through another node",
    "claim given back", "task claimed three times", "completion reaches a node before the claim",
    "grant waited for the horizon", "renewal waited for the horizon", "renewal in doubt for the horizon",
    "completion of a lapsed claim", "completion by an outdated claim", "task completed twice",
    # checkpoints
    "checkpoint acknowledged", "checkpoint over that of an earlier claim", "checkpoint fenced by a copy",
    "checkpoint reaches a node before the claim", "answer: fenced",
    # copies
    "enqueue on the least copies", "enqueue in doubt was stored", "enqueue in doubt was lost",
    "enqueue acknowledged twice", "answer: conflict", "answer: uncertain", "answer: unavailable",
    "answer: no_leader", "exchange finds a difference", "exchange repairs the other side",
    "exchange repairs this side", "exchange over pages", "exchange with a tree not built yet",
    # processes
    "crash in the middle of a commit", "all nodes down", "majority down", "node back within its session",
    "disk full again after a restart", "pause outlasts the session", "clock set back over a restart",
    # links
    "replayed old", "lost by a reset", "dropped at capacity",
    # the registry
    "swap lost", "swap uncertain, applied", "swap uncertain, not applied", "swap uncertain, applied late",
    "swap without quorum", "connection broken at a swap", "session ended", "session ended behind a swap",
    "session moved", "answer too large", "document that is none",
    # the coordination log
    "append uncertain, applied", "append uncertain, not applied", "append uncertain, applied late",
    "append without quorum", "connection broken at an append", "session ended behind an append",
    "connection broken at a pulse", "pulse of a former life removed",
    "entries hidden by a server that is behind", "entry repeated", "entry late", "joiner told no",
    "observer gone in the middle of a join", "member comes in while a fault strikes",
    "member jumps over what was collected", "process joins anew after its session was lost",
    "applied gc", "applied forget-node", "applied join-direct", "replica fetched of a member",
    "entry told by a member", "placement decided by another one",
    # moves
    "cohort changed", "new member filled", "leader abdicates", "vote refused on trial", "node taken out",
    "tasks handed on and dropped",
    # memory
    "memory found lost", "record found unreadable", "suspect filled again", "candidate is suspected",
    "old copy put back",
    # clocks
    "one clock beyond the bound", "schedule put by a clock far ahead",
    # settings
    "queue paused on all nodes", "setting known to some nodes only", "setting learnt by gossip",
    "claim asked of a paused queue", "claim woken by a resume",
    # workers
    "worker known to two nodes", "worker listed by another node", "applied add-slot",
    # workflows
    "claim by a seat", "seats change", "workflow starved", "answer: stale_allocation", "answer: no_seat",
    "applied submit-workflow", "applied exhaust-input", "applied seal-output", "applied set-sharing",
    "workflow completed", "workflow killed",
    # garbage
    "partition sealed", "seal refused", "collection yields to who keeps more",
    "garbage deleted", "garbage that one keeps", "garbage told of to one that has it",
    "answer: too_old", "page archived", "page no longer on offer",
)
OPTIONAL = ("answer: not_ready", "answer: not_leader", "answer: busy", "answer: future_id",
            "wish of a lost session carried out", "pulse hidden by a server that is behind", "applied leave-slot")
KNOWN = frozenset(REQUIRED) | frozenset(OPTIONAL)

FENCED = "checkpoint fenced by a copy"
AT_ONCE_MS = 100
FAR_MS = 60_000
_SUSPECT = suspect_key(0)[:-2]

See = Callable[[int, str, str, Any], None]


class Scene(Protocol):
    """What probes look at."""

    options: Options
    network: Network
    registry: Registry
    processes: dict[str, Process]
    ahead_ms: dict[str, int]


def has_claim(record: bytes | None, token: int) -> bool:
    """Whether a history record holds a claim."""
    return record is not None and token in History.decode(record).claims.entries


class Probes:
    """Watches one run."""

    def __init__(self, scene: Scene) -> None:
        self.counts: Counter[str] = Counter()
        self._scene = scene
        self._asked: dict[tuple[int, int], str] = {}
        self._held_up: dict[tuple[str, int], None] = {}
        """Claims that came to a node where their queue was paused."""
        self._beyond: dict[tuple[str, int], None] = {}
        """Asker and number of requests to a leader for leases beyond its horizons."""
        self._elected: dict[int, tuple[int, Document]] = {}
        self._paused: dict[str, tuple[int, list[int]]] = {}
        self._pulls: dict[tuple[int, int], tuple[int, int]] = {}
        """When the candidate for an epoch asked for the first page of claims, and for the last one."""
        self._clocks: dict[str, float] = {}
        self._full: dict[str, int] = {}
        self._lives: dict[str, int] = {}
        """In which boot a process last began a life as a member."""
        self._deeds: Mapping[str, Callable[[int, str], None]] = {
            "crash": self._on_crash, "start": self._on_start, "pause": self._on_pause,
            "resume": self._on_resume, "suspects": lambda *_: self.hit("memory found lost"),
            "corrupt": lambda *_: self.hit("record found unreadable")}
        self._arrivals: Mapping[type, See] = {
            m.RequestVote: self._on_request, m.Vote: self._on_vote, m.ClaimPage: self._on_page,
            m.PullClaims: self._on_pull, m.PushClaims: self._on_push, m.Gossip: self._on_gossip,
            m.PartialGossip: self._on_gossip,
            m.Granted: self._on_granted, m.Amended: self._on_amended, m.Complete: self._on_complete,
            m.Compare: self._on_compare,
            m.Probed: self._on_probed, m.Fetched: self._on_fetched, DocumentRead: self._on_read,
            SessionChanged: self._on_session,
            m.Repair: lambda *_: self.hit("exchange repairs the other side"),
            m.Append: self._on_append, m.Kept: lambda _, who, whom, kept: self.hit(FENCED, kept.fenced),
            m.Delegate: self._on_delegate, m.Renew: self._on_renew, m.Claimed: self._on_leader_answer,
            m.Renewed: self._on_leader_answer, m.Failed: self._on_leader_answer,
            m.Abdicate: lambda *_: self.hit("leader abdicates"),
            m.Synced: self._on_synced, m.ClaimsKept: self._on_kept,
            m.Claim: self._on_claim, m.Ebb: self._on_ebb, m.Ebbed: self._on_ebbed,
            m.Collect: lambda _, who, whom, collect: self.hit("garbage deleted", not collect.is_trial),
            m.Collected: lambda _, who, whom, told: self.hit("garbage that one keeps", told.kept),
            m.Discarded: self._on_discarded,
            m.PutSetting: self._on_put, m.Report: self._on_report, m.Mustered: self._on_mustered,
            Share: lambda *_: self.hit("entry told by a member"),
            ReplicaPart: lambda *_: self.hit("replica fetched of a member"),
            Decided: lambda *_: self.hit("placement decided by another one"),
            m.PulledSettings: lambda _, who, whom, pulled: self.hit("setting learnt by gossip", pulled.rows),
        }

    def hit(self, name: str, is_met: object = True) -> None:
        """Count a situation, if it is met."""
        assert name in KNOWN, name
        if is_met:
            self.counts[name] += 1

    def see(self, now_ms: int, who: str, what: str, whom: str, detail: object) -> None:
        """One line of the trace."""
        if what == "->":
            arrival = self._arrivals.get(type(detail))
            if arrival is not None:
                arrival(now_ms, who, whom, detail)
        elif type(detail) is SetPulse:
            self._on_life(who)
        elif what in self._deeds and who in self._scene.processes:
            self._deeds[what](now_ms, who)

    def _on_life(self, name: str) -> None:
        boots = self._scene.processes[name].boots
        self.hit("process joins anew after its session was lost", self._lives.get(name) == boots)
        self._lives[name] = boots

    def _document(self, partition: int) -> Document | None:
        found = self._scene.registry.documents.get(partition)
        return found[1] if found else None

    def _led_by(self, name: str) -> list[int]:
        return [partition for partition, (_, document) in self._scene.registry.documents.items()
                if document.leader == name]

    # -- elections -----------------------------------------------------------------------------

    def _on_request(self, now_ms: int, candidate: str, voter: str, request: m.RequestVote) -> None:
        marks = self._scene.processes[candidate].store.tables["meta"]
        self.hit("candidate is suspected", suspect_key(request.partition) in marks)
        if not request.is_trial:
            first = self._asked.setdefault((request.partition, request.epoch), candidate)
            self.hit("two candidates for one epoch", first != candidate)

    def before_commit(self, process: Process) -> None:
        """A batch becomes durable."""
        for _, key, before, after in process.store.changes("meta"):
            if key.startswith(_SUSPECT) and after is None:
                self.hit("suspect filled again", before)
        dropped = sum(after is None for _, _, _, after in process.store.changes("body"))
        self.hit("tasks handed on and dropped", dropped)

    def _on_vote(self, now_ms: int, voter: str, candidate: str, vote: m.Vote) -> None:
        document = self._document(vote.partition)
        self.hit("vote refused", not vote.is_granted and not vote.is_trial)
        self.hit("vote refused on trial", not vote.is_granted and vote.is_trial)
        self.hit("vote of an epoch that is over", document is not None and vote.epoch < document.epoch)
        self.hit("stale vote while voting", not vote.is_trial and self._is_stale(candidate, vote, Phase.VOTING))

    def _is_stale(self, candidate: str, message: m.Vote | m.ClaimPage | m.Synced | m.ClaimsKept,
                  phase: Phase) -> bool:
        """Whether a message comes in the phase of a candidacy in which it would count, were it not of another."""
        node = self._scene.processes[candidate].node
        if node is None:
            return False
        election = node.view.vnodes[message.partition].election
        return election.phase is phase and election.epoch != message.epoch

    def _on_page(self, now_ms: int, voter: str, candidate: str, page: m.ClaimPage) -> None:
        self.hit("claims pulled", page.ids)
        self.hit("claims pulled over pages", page.after)
        self.hit("stale page while pulling", self._is_stale(candidate, page, Phase.PULLING))

    def _on_synced(self, now_ms: int, member: str, candidate: str, synced: m.Synced) -> None:
        self.hit("new member filled")
        self.hit("stale word of a new member while syncing", self._is_stale(candidate, synced, Phase.SYNCING))

    def _on_kept(self, now_ms: int, voter: str, candidate: str, kept: m.ClaimsKept) -> None:
        self.hit("stale confirmation while pushing", self._is_stale(candidate, kept, Phase.PUSHING))

    def _on_pull(self, now_ms: int, candidate: str, voter: str, pull: m.PullClaims) -> None:
        began_ms, _ = self._pulls.get((pull.partition, pull.epoch), (now_ms, now_ms))
        self._pulls[pull.partition, pull.epoch] = began_ms, now_ms
        self.hit("pull reaches a suspect that voted", self._is_suspect_that_voted(voter, candidate, pull))

    def _is_suspect_that_voted(self, voter: str, candidate: str, message: m.PullClaims | m.PushClaims) -> bool:
        node = self._scene.processes[voter].node
        if node is None:
            return False
        vnode = node.view.vnodes[message.partition]
        return bool(vnode.suspicion) and vnode.has_read and vnode.promise == Promise(message.epoch, candidate)

    def _on_push(self, now_ms: int, candidate: str, voter: str, page: m.PushClaims) -> None:
        self.hit("claims pushed", page.ids)
        self.hit("claims pushed over pages", page.after)
        self.hit("push reaches a suspect that voted", self._is_suspect_that_voted(voter, candidate, page))

    def _on_gossip(self, now_ms: int, name: str, peer: str, gossip: m.Gossip) -> None:
        for row in gossip.leads:
            document = self._document(row.partition)
            self.hit("deposed leader still says it leads", document and row.epoch < document.epoch)

    def _on_read(self, now_ms: int, registry: str, name: str, event: DocumentRead) -> None:
        connection = self._scene.processes[name].connection
        self.hit("leader restarts and finds its own name", connection is not None
                 and event.document.leader == name and event.document.boot != connection.member.boot)

    def on_written(self, now_ms: int, partition: int, before: Document | None, document: Document) -> None:
        """A document took effect."""
        processes = self._scene.processes
        up = [name for name in document.cohort if processes[name].is_up and not processes[name].is_paused]
        self.hit("leader elected with a voter down", len(up) < len(document.cohort))
        self.hit("leader elected by the least majority",
                 len(document.cohort) > 2 and len(up) == len(document.cohort) // 2 + 1)
        if before is not None:
            self.hit("epoch skipped", document.epoch > before.epoch + 1)
            self.hit("cohort changed", {*document.cohort} != {*before.cohort})
        began_ms, ended_ms = self._pulls.get((partition, document.epoch), (0, 0))
        timing = self._scene.options.timing
        self.hit("elected over pages that outlast one wait",
                 ended_ms - began_ms > timing.page_ms + timing.heir_delay_ms)
        self.hit("leader takes a new epoch for its tokens", document.cause == SPENT and before is not None
                 and before.epoch < document.epoch)
        self._elected[partition] = (now_ms, document)

    def _on_session(self, now_ms: int, registry: str, name: str, event: SessionChanged) -> None:
        if event.session is not Session.CONNECTED and self._led_by(name):
            self.hit("leader suspended" if event.session is Session.SUSPENDED else "leader loses its session")

    def on_cut(self) -> None:
        """Links were cut, or a node was parted from the registry."""
        for _, document in self._scene.registry.documents.values():
            process, cohort = self._scene.processes.get(document.leader), document.cohort
            if process is None or not process.is_up or len(cohort) < 2:
                continue
            heard = [name for name in cohort if name == document.leader or not (
                self._scene.network.is_cut((name, document.leader))
                or self._scene.network.is_cut((document.leader, name)))]
            is_registered = process.connection is not None and not process.connection.is_cut
            has_peers = len(heard) > len(cohort) // 2
            self.hit("leader without its peers, with the registry", is_registered and not has_peers)
            self.hit("leader without the registry, with its peers", has_peers and not is_registered)

    # -- claims --------------------------------------------------------------------------------

    def _on_delegate(self, now_ms: int, who: str, leader: str, delegate: m.Delegate) -> None:
        self.hit("claim through another node")
        led = self._led_by(leader)
        if led and all(self._is_beyond(now_ms, leader, partition, delegate.lease_ms) for partition in led):
            self._beyond[who, delegate.request] = None

    def _on_renew(self, now_ms: int, who: str, leader: str, renew: m.Renew) -> None:
        """To a leader the rows of one partition are sent."""
        partition = partition_of(renew.ids[:20], self._scene.options.parameters.partitions)
        if renew.lease_ms and who in self._scene.processes and partition in self._led_by(leader):
            if self._is_beyond(now_ms, leader, partition, renew.lease_ms):
                self._beyond[who, renew.request] = None

    def _is_beyond(self, now_ms: int, leader: str, partition: int, lease_ms: int) -> bool:
        document = self._document(partition)
        return document is not None and (
            self._scene.processes[leader].clock.read(now_ms) + lease_ms > document.horizon_ms)

    def _on_leader_answer(self, now_ms: int, leader: str, who: str,
                          answer: m.Claimed | m.Renewed | m.Failed) -> None:
        if (who, answer.request) in self._beyond:
            self.hit("grant waited for the horizon", isinstance(answer, m.Claimed) and answer.batches)
            self.hit("renewal waited for the horizon", isinstance(answer, m.Renewed) and any(answer.ends))
            self.hit("renewal in doubt for the horizon", isinstance(answer, m.Failed) and "horizon" in answer.text)

    def _on_granted(self, now_ms: int, voter: str, leader: str, granted: m.Granted) -> None:
        self.hit("grant refused for a newer promise", not granted.is_accepted)
        self.hit("grant vetoed", granted.vetoed)

    def _on_amended(self, now_ms: int, voter: str, leader: str, amended: m.Amended) -> None:
        self.hit("renewal refused for a newer promise", not amended.is_accepted)

    def _on_complete(self, now_ms: int, who: str, name: str, complete: m.Complete) -> None:
        if who not in self._scene.processes:
            return
        store, partitions = self._scene.processes[name].store, self._scene.options.parameters.partitions
        for task_id, token in zip(split(complete.ids), unpack_u64(complete.tokens), strict=True):
            key = partition_of(task_id, partitions).to_bytes(2, "big") + task_id
            self.hit("completion reaches a node before the claim",
                     not has_claim(store.committed("history", key), token))

    def _on_append(self, now_ms: int, who: str, name: str, append: m.Append) -> None:
        if who not in self._scene.processes or not append.checkpoint:
            return
        store, partitions = self._scene.processes[name].store, self._scene.options.parameters.partitions
        key = partition_of(append.id, partitions).to_bytes(2, "big") + append.id
        self.hit("checkpoint reaches a node before the claim",
                 not has_claim(store.committed("history", key), append.token))
        before = store.committed("log", key + SLOT)
        self.hit("checkpoint over that of an earlier claim",
                 before is not None and mark_of(before).token < append.token)

    def on_answer(self, operation: Operation | None, answer: m.Message) -> None:
        """An answer leaves its coordinator."""
        replicas = self._scene.options.parameters.replicas
        if operation is None or replicas < 2:
            return
        if isinstance(answer, m.Acked) and isinstance(operation.message, m.Enqueue):
            self.hit("enqueue on the least copies", answer.copies <= replicas // 2 + 1 < replicas)
        elif isinstance(answer, m.Acked) and isinstance(operation.message, m.Append):
            self.hit("checkpoint acknowledged", operation.message.checkpoint)
        elif isinstance(answer, m.SettingPut):
            is_pause = getattr(operation.message, "value", b"") == YES
            self.hit("queue paused on all nodes", is_pause and not answer.missing)
            self.hit("setting known to some nodes only", answer.missing)
        elif isinstance(answer, m.Claimed) and answer.batches:
            self.hit("claim woken by a resume", (operation.client, operation.request) in self._held_up)
            batch = answer.batches[0]
            copies = self._copies(batch.ids[:20], batch.first_token)
            self.hit("claim on the least copies", copies == replicas // 2 + 1 < replicas)

    def _on_claim(self, now_ms: int, client: str, name: str, claim: m.Claim) -> None:
        key = setting_key(PAUSED, claim.queue)
        record = self._scene.processes[name].store.committed("meta", key)
        if record is not None and decode_setting(key, record).value == YES:
            self.hit("claim asked of a paused queue")
            self._held_up[client, claim.request] = None

    def _copies(self, task_id: bytes, token: int) -> int:
        partitions = self._scene.options.parameters.partitions
        key = partition_of(task_id, partitions).to_bytes(2, "big") + task_id
        return sum(has_claim(process.store.committed("history", key), token)
                   for process in self._scene.processes.values())

    # -- anti-entropy --------------------------------------------------------------------------

    def _on_report(self, now_ms: int, who: str, whom: str, report: m.Report) -> None:
        others = [process.node.view.attendance for name, process in self._scene.processes.items()
                  if name != whom and process.node is not None]
        names = [name_of(row) for row in report.workers]
        self.hit("worker known to two nodes", any(name in known for known in others for name in names))

    def _on_mustered(self, now_ms: int, node: str, asker: str, answer: m.Mustered) -> None:
        self.hit("worker listed by another node", answer.workers)

    def _on_compare(self, now_ms: int, who: str, peer: str, compare: m.Compare) -> None:
        self.hit("exchange over pages", compare.after)

    def _on_probed(self, now_ms: int, who: str, peer: str, probed: m.Probed) -> None:
        self.hit("exchange finds a difference", probed.differing)
        self.hit("exchange with a tree not built yet", probed.is_building)

    def _on_fetched(self, now_ms: int, who: str, peer: str, fetched: m.Fetched) -> None:
        self.hit("exchange repairs this side", fetched.tasks)
        self.hit("garbage told of to one that has it", fetched.gone)

    def _on_discarded(self, now_ms: int, who: str, whom: str, told: m.Discarded) -> None:
        self.hit("page archived", told.count)
        self.hit("page no longer on offer", not told.is_current)

    def _on_ebb(self, now_ms: int, leader: str, whom: str, ebb: m.Ebb) -> None:
        self.hit("partition sealed", ebb.life)

    def _on_ebbed(self, now_ms: int, who: str, leader: str, ebbed: m.Ebbed) -> None:
        self.hit("seal refused", not ebbed.is_accepted)
        self.hit("collection yields to who keeps more", ebbed.allowed_ms)

    # -- processes -----------------------------------------------------------------------------

    def _on_crash(self, now_ms: int, name: str) -> None:
        process, processes = self._scene.processes[name], self._scene.processes
        self._paused.pop(name, None)
        self.hit("crash in the middle of a commit", process.is_committing)
        self.hit("all nodes down", not any(other.is_up for other in processes.values() if other is not process))
        if process.is_disk_full:
            self._full[name] = self._full.get(name, 0) + 1
            self.hit("disk full again after a restart", self._full[name] > 1)
        for partition, (_, document) in self._scene.registry.documents.items():
            up = [other for other in document.cohort if processes[other].is_up and other != name]
            self.hit("majority down", name in document.cohort and 2 * len(up) <= len(document.cohort))
            elected_ms, elected = self._elected.get(partition, (0, document))
            self.hit("leader dies at once", elected.leader == name and now_ms - elected_ms < AT_ONCE_MS)

    def _on_put(self, now_ms: int, who: str, whom: str, put: m.PutSetting) -> None:
        ahead_ms = self._scene.ahead_ms.get(who, 0)
        self.hit("schedule put by a clock far ahead", put.kind == SCHEDULE and put.value and ahead_ms >= FAR_MS)

    def _on_start(self, now_ms: int, name: str) -> None:
        process = self._scene.processes[name]
        off_ms = process.clock.offset_ms
        self.hit("clock set back over a restart", off_ms < self._clocks.get(name, off_ms))
        self.hit("node back within its session", self._scene.registry.is_member(name))
        self._clocks[name] = off_ms

    def _on_pause(self, now_ms: int, name: str) -> None:
        self._paused[name] = (now_ms, self._led_by(name))
        self.hit("leader stands still", self._led_by(name))

    def _on_resume(self, now_ms: int, name: str) -> None:
        since_ms, led = self._paused.pop(name, (now_ms, []))
        self.hit("pause outlasts the session", now_ms - since_ms > self._scene.options.registry.session_ms)
        self.hit("leader wakes up deposed", {*led} - {*self._led_by(name)})


def unmet(counts: Mapping[str, int]) -> list[str]:
    """The situations that should have been met and were not."""
    return [name for name in REQUIRED if not counts.get(name)]
