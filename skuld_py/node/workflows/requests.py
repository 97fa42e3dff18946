"""What clients ask of the coordination log through a node: to write of a workflow, to take a node out, to read
workflows, to follow the log.

A request to write is a command that this node's member appends. It is answered by the first entry with that
command which the node plays, whoever wrote it: a command says what is to hold, not who asked. What holds already
needs no entry. That is told from the replica here, which may lag: so only what no later entry takes back counts.
While requests are open their commands are wished again every second: a member that begins a new life forgets what
it wished, and the same wish twice is one. A request that is given up may still be carried out.

Whoever follows or waits is answered when the playback has something, all out of the same rows.

Bounds: ``WRITES_MAX`` requests to write, and of one connection ``WRITES_EACH``; waits have the places that waits
for tasks have.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from skuld_py.cluster.log.commands import Command, Inapplicable, RetireNode
from skuld_py.cluster.log.commands.of_workflow import OfWorkflow
from skuld_py.cluster.log.entries import ENTRY_BYTES_MAX, Entry
from skuld_py.cluster.log.play import Outcome, Played
from skuld_py.cluster.log.workflows import WORKFLOWS_SINCE
from skuld_py.cluster.member.playback import Playback
from skuld_py.errors import Malformed, Refused
from skuld_py.model import messages as m
from skuld_py.node.operations.duty import NEVER_MS, Duty
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.places import Places
from skuld_py.node.operations.requests import Asked as Requests
from skuld_py.node.operations.requests import Served
from skuld_py.node.workflows.reaping import Reaper
from skuld_py.node.workflows.rows import Asked, command_of, entry_of, row_of

AGAIN_MS = 1_000
UNREAD = "this node has not read the coordination log to its end yet; ask another one"
WRITES_MAX, WRITES_EACH = 256, 64
LIFE_CHARS_MAX = 230
ANSWERS = (Outcome.APPLIED, Outcome.UNCHANGED, Outcome.REFUSED)
"""Outcomes that say what holds; one that was late or repeated says that another entry does."""


class WorkflowRequests(Duty):
    """The requests of one node about workflows and the log. ``wanted``: what its member is to append;
    ``reaper``: a duty of its own."""

    def __init__(self, operations: Operations) -> None:
        self.playback = Playback()
        self.reaper = Reaper(operations, self.playback)
        self.wanted: dict[Command, None] = {}
        self._operations = operations
        self._writes: dict[int, _Writing] = {}
        self._waits: dict[int, _Waiting] = {}
        self._writing, self._waiting = Places(), Places()
        self.asked: Requests = {m.Submit: self._write, m.Kill: self._write, m.Advance: self._write,
                                m.Retire: self._retire, m.Survey: self._survey, m.Follow: self._follow}
        self.served: Served = {}
        self.news = (self.playback.fresh,)

    def look(self, now_ms: int) -> None:
        """Answer what the log has answered; wish again for what it has not."""
        fresh = [*self.playback.fresh.values()]
        self.playback.fresh.clear()
        told = {played.entry.command: played for played in reversed(fresh)
                if played.entry is not None and played.outcome in ANSWERS}
        for writing in [*self._writes.values()]:
            if (played := told.get(writing.command)) is not None:
                self._answer(writing, played)
        for waiting in [*self._waits.values()]:
            waiting.look()
        if self.due_ms <= now_ms:
            self.wanted |= dict.fromkeys(writing.command for writing in self._writes.values())
            self.due_ms = now_ms + AGAIN_MS if self._writes else NEVER_MS

    # -- writing -------------------------------------------------------------------------------

    def _write(self, now_ms: int, origin: Origin, message: Asked) -> Operation | None:
        self._check_current()
        self._check_rules()
        command = _checked(message, self.playback.replica.rules)
        if (answer := self._known(origin, message, command)) is not None:
            self._operations.outbox.reply(origin, answer)
            return None
        return self._wish(now_ms, origin, message.workflow, command)

    def _retire(self, now_ms: int, origin: Origin, message: m.Retire) -> Operation:
        self._check_current()
        return self._wish(now_ms, origin, "", RetireNode(message.node, not message.is_back))

    def _wish(self, now_ms: int, origin: Origin, workflow: str, command: Command) -> Operation:
        writing = _Writing(self._operations, origin, now_ms, workflow, command)
        if not self._writing.take(writing, WRITES_MAX, WRITES_EACH):
            raise Refused("busy", "this node has too many entries to write, or this connection wants too many;"
                          " wait for the answers, and try again")
        self._writes[writing.request] = writing
        writing.at_end.append(partial(self._writes.__delitem__, writing.request))
        self.wanted[command] = None
        self.hasten(now_ms + AGAIN_MS)
        return writing

    def _check_current(self) -> None:
        if not self.playback.is_current:
            raise Refused("not_ready", UNREAD)

    def _check_rules(self) -> None:
        rules = self.playback.replica.rules
        if rules < WORKFLOWS_SINCE:
            raise Refused("old_rules", f"this cluster goes by rules {rules}, and workflows need rules"
                          f" {WORKFLOWS_SINCE}; once all its nodes know them, raise them with 'skuld cluster rules"
                          " NAME --raise'")

    def _known(self, origin: Origin, message: Asked, command: Command) -> m.Decreed | None:
        """The answer, where no entry can change it any more: what is done is never undone, and an id that has one
        definition gets no other. A replica that lags knows less of that, never something else; and of a later life
        of a workflow it knows nothing, so what names another one than it has is for the log. So is what names
        none, where the one that it has is over: it is about whichever lives."""
        replica = self.playback.replica
        known = replica.workflows.get(message.workflow)
        if known is None or (isinstance(command, OfWorkflow)
                             and not (command.is_of(known) and (known.is_live or command.life))):
            return None
        try:
            is_same = command.apply(replica, replica.version + 1) is replica
        except Inapplicable as problem:
            if isinstance(message, m.Submit):
                return self._decreed(origin, message.workflow, Outcome.REFUSED, known.since, str(problem))
            return None
        return self._decreed(origin, message.workflow, Outcome.UNCHANGED, known.since) if is_same else None

    def _decreed(self, origin: Origin, workflow: str, outcome: Outcome, position: int, reason: str = ""
                 ) -> m.Decreed:
        known = self.playback.replica.workflows.get(workflow)
        rows = (row_of(workflow, known),) if known is not None else ()
        return m.Decreed(origin.request, outcome.value, position, reason, rows)

    def _answer(self, writing: _Writing, played: Played) -> None:
        if isinstance(writing.command, RetireNode) and played.outcome is Outcome.REFUSED:
            is_known = writing.command.node in self.playback.replica.nodes
            writing.refuse("too_few_nodes" if is_known else "unknown_node", f"node: {played.reason}")
        writing.answer(self._decreed(writing.origin, writing.workflow, played.outcome, played.position,
                                     played.reason))
        writing.end()

    # -- reading -------------------------------------------------------------------------------

    def _survey(self, now_ms: int, origin: Origin, message: m.Survey) -> Operation | None:
        return self._wait(now_ms, origin, message.wait_ms, self.playback.next >= message.position,
                          lambda is_over: self._surveyed(origin, message, is_over))

    def _surveyed(self, origin: Origin, message: m.Survey, is_over: bool) -> m.Message | None:
        if self.playback.next < message.position and not is_over:
            return None
        workflows, version = self.playback.replica.workflows, self.playback.next
        if message.ids:
            named = [(name, workflows[name]) for name in dict.fromkeys(message.ids) if name in workflows]
            return m.Surveyed(origin.request, version, 0, tuple(row_of(name, each) for name, each in named))
        behind = [(name, each) for name, each in workflows.items() if each.submitted + 1 > message.behind]
        page = behind[: m.WORKFLOWS_IN_PAGE]
        last = page[-1][1].submitted + 1 if len(behind) > len(page) else 0
        return m.Surveyed(origin.request, version, last,
                          tuple(row_of(name, each, with_steps=False) for name, each in page))

    def _follow(self, now_ms: int, origin: Origin, message: m.Follow) -> Operation | None:
        return self._wait(now_ms, origin, message.wait_ms, self.playback.next > message.position,
                          lambda is_over: self._followed(origin, message, is_over))

    def _followed(self, origin: Origin, message: m.Follow, is_over: bool) -> m.Message | None:
        playback = self.playback
        if playback.next <= message.position and not is_over:
            return None
        rows = playback.since(message.position, message.entries)
        following = rows[-1].position + 1 if rows else max(message.position, playback.first)
        return m.Followed(origin.request, playback.first, following, tuple(map(entry_of, rows)))

    def _wait(self, now_ms: int, origin: Origin, wait_ms: int, is_there: bool,
              tell: Callable[[bool], m.Message | None]) -> Operation | None:
        self._check_current()
        if is_there or not wait_ms:
            answer = tell(True)
            assert answer is not None
            self._operations.outbox.reply(origin, answer)
            return None
        waiting, limits = _Waiting(self._operations, origin, now_ms, wait_ms, tell), self._operations.view.limits
        if not self._waiting.take(waiting, limits.waits, limits.waits_each):
            raise Refused("busy", "too many wait at this node, or over this connection; ask without waiting, or"
                          " another node")
        self._waits[waiting.request] = waiting
        waiting.at_end.append(partial(self._waits.__delitem__, waiting.request))
        return waiting


def _checked(message: Asked, rules: int) -> Command:
    """The command of a request; ``Refused`` when there can be none, or it does not fit into an entry."""
    try:
        command = command_of(message, rules)
    except Malformed as problem:
        raise Refused("bad_workflow", problem.message) from None
    size = len(Entry("w" * LIFE_CHARS_MAX, (1 << 63) - 1, command).encode())
    if size > ENTRY_BYTES_MAX:
        raise Refused("too_large", f"workflow {message.workflow}: its steps take {size} bytes in the coordination"
                      f" log, where an entry has at most {ENTRY_BYTES_MAX}; give it fewer steps or fewer tags")
    return command


class _Writing(Operation):
    """A request that waits for its command to be played."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, workflow: str, command: Command
                 ) -> None:
        super().__init__(operations, origin, now_ms)
        self.workflow = workflow
        self.command = command

    def begin(self, now_ms: int) -> None:
        """Wait for the log."""
        self.operations.timers.set(self.deadline_ms, self)

    def on_deadline(self, now_ms: int) -> None:
        """It may yet be written."""
        self.give_up("the coordination log did not take it in time; it may still come to stand there. Ask again:"
                     " what holds already is not changed")
        self.end()


class _Waiting(Operation):
    """A request that waits for an entry. ``tell`` gives the answer, if there is one."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, wait_ms: int,
                 tell: Callable[[bool], m.Message | None]) -> None:
        super().__init__(operations, origin, now_ms, wait_ms)
        self._tell = tell

    def begin(self, now_ms: int) -> None:
        """Wait for the log."""
        self.operations.timers.set(self.deadline_ms, self)

    def look(self) -> None:
        """Answer if it can be."""
        self._settle(self._tell(False))

    def on_deadline(self, now_ms: int) -> None:
        """Answer with what there is."""
        self._settle(self._tell(True))

    def _settle(self, answer: m.Message | None) -> None:
        if answer is not None:
            self.answer(answer)
            self.end()
