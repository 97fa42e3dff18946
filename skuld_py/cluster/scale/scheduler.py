"""A scheduler: answers questions that many members ask, and works each of them out once.

It holds nothing that would be missed: what it knows comes with the questions, and a member that gets no answer
decides alone. So schedulers come and go, as processes of their own or as a part that a member plays.

The first member that asks is asked for the text of the question; all that ask meanwhile wait for the same answer.
The newest question is worked on first, for an older one is being given up by those that asked it. The work itself
is an effect (``Compute``): the shell does it beside the loop, so that a scheduler answers while it works.

Bounds: open questions, members that wait for them, and answers kept, by number and by bytes; what does not fit is
declined, the oldest question first.

Source: "External Scheduler Processes" of Onyx's proposals for scale.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.canonical import from_text, to_text
from skuld_py.cluster.scale.decisions import KINDS, TEXT_BYTES_MAX, Kind, hash_of
from skuld_py.errors import Malformed
from skuld_py.model.columns import Column, pack
from skuld_py.model.events import Compute, Computed, Received, Send, Ticked
from skuld_py.model.messages.decisions import COMPUTING, DECLINED, INPUT_WANTED, Decide, Decided, Undecided

NEVER_MS = 1 << 62
_NO_TEXT = Column()


@attrs.frozen
class SchedulerLimits:
    """Bounds of one scheduler. Times in milliseconds."""

    questions: int = 64
    askers: int = 20_000
    """How many members may wait for one answer."""
    answers: int = 64
    answer_bytes: int = 64 << 20
    input_ms: int = 1_000
    """How long to wait for the text from the member that was asked for it; then the next one that asks is."""
    forget_ms: int = 10_000
    """Drop a question without a text once no member has asked it for this long."""


@attrs.define
class _Job:
    """A question that is open here. ``askers`` maps each to whether the hash is enough."""

    kind: str
    hash: bytes
    position: int
    heard_ms: int
    askers: dict[str, bool] = attrs.field(factory=dict)
    text: str = ""
    giver: str = ""
    giver_ms: int = 0


class Scheduler:
    """The machine of one scheduler: ``step(now_ms, event)`` gives ``Send`` and ``Compute``."""

    def __init__(self, limits: SchedulerLimits | None = None, kinds: Mapping[str, Kind] = KINDS) -> None:
        self._limits = limits or SchedulerLimits()
        self._kinds = kinds
        self._jobs: dict[bytes, _Job] = {}
        self._answers: OrderedDict[bytes, tuple[bytes, Column]] = OrderedDict()
        self._answer_bytes = 0
        self._running = b""
        self._effects: list[Send | Compute] = []
        self.computations = 0
        """How often it began to work something out."""
        self.declined = 0

    def step(self, now_ms: int, event: Received | Computed | Ticked) -> list[Send | Compute]:
        """Take one event."""
        match event:
            case Received(peer, Decide() as message):
                self._on_decide(now_ms, peer, message)
            case Computed():
                self._on_computed(event)
        for job in [job for job in self._jobs.values() if now_ms >= self._forgotten_ms(job)]:
            del self._jobs[job.hash]
        self._work()
        effects, self._effects = self._effects, []
        return effects

    def deadline(self) -> int:
        """When it next wants a ``Ticked``."""
        return min(map(self._forgotten_ms, self._jobs.values()), default=NEVER_MS)

    def _forgotten_ms(self, job: _Job) -> int:
        return NEVER_MS if job.text else job.heard_ms + self._limits.forget_ms

    # -- questions -----------------------------------------------------------------------------

    def _on_decide(self, now_ms: int, peer: str, message: Decide) -> None:
        known = self._answers.get(message.question)
        if known is not None:
            self._answers.move_to_end(message.question)
            self._answer(peer, message.question, known, message.is_hash_only)
            return
        job = self._jobs.get(message.question) or self._open(now_ms, message)
        if job is None or not self._is_taken(job, peer, message):
            self.declined += 1
            self._say(peer, message.question, DECLINED)
            return
        job.heard_ms = now_ms
        job.position = max(job.position, message.position)
        job.askers[peer] = message.is_hash_only and job.askers.get(peer, True)
        is_giver = not job.text and (
            job.giver in ("", peer) or now_ms >= job.giver_ms + self._limits.input_ms)
        if is_giver:
            job.giver, job.giver_ms = peer, now_ms
        self._say(peer, message.question, INPUT_WANTED if is_giver else COMPUTING)

    def _open(self, now_ms: int, message: Decide) -> _Job | None:
        if message.kind not in self._kinds:
            return None
        if len(self._jobs) >= self._limits.questions:
            oldest = min((job for job in self._jobs.values() if job.hash != self._running),
                         key=lambda job: (job.position, job.hash), default=None)
            if oldest is None or oldest.position > message.position:
                return None
            self._close(oldest, None)
        job = self._jobs[message.question] = _Job(message.kind, message.question, message.position, now_ms)
        return job

    def _is_taken(self, job: _Job, peer: str, message: Decide) -> bool:
        """Whether the asker can wait here, and what it sent, if anything, is the question."""
        if peer not in job.askers and len(job.askers) >= self._limits.askers:
            return False
        if job.text or not len(message.text):
            return True
        try:
            text = message.text.unpack()[0].decode()
            if len(text) > TEXT_BYTES_MAX or hash_of(job.kind, text) != job.hash:
                return False
            if to_text(from_text(self._kinds[job.kind].input, text)) != text:
                return False
        except (Malformed, UnicodeDecodeError):
            return False
        job.text = text
        return True

    # -- answers -------------------------------------------------------------------------------

    def _work(self) -> None:
        ready = [job for job in self._jobs.values() if job.text]
        if ready and not self._running:
            job = max(ready, key=lambda job: (job.position, job.hash))
            self._running = job.hash
            self.computations += 1
            self._effects.append(Compute(job.kind, job.hash, job.text))

    def _on_computed(self, event: Computed) -> None:
        """Keep the answer, also one that this process worked out for itself: others may ask it, too."""
        if event.hash == self._running:
            self._running = b""
        answer = None
        if event.text:
            answer = (hash_of(event.text), pack([event.text.encode()]))
            self._keep(event.hash, answer)
        job = self._jobs.get(event.hash)
        if job is not None:
            self._close(job, answer)

    def _keep(self, question: bytes, answer: tuple[bytes, Column]) -> None:
        if question not in self._answers:
            self._answer_bytes += len(answer[1].data)
        self._answers[question] = answer
        while len(self._answers) > self._limits.answers or self._answer_bytes > self._limits.answer_bytes:
            self._answer_bytes -= len(self._answers.popitem(last=False)[1][1].data)

    def _close(self, job: _Job, answer: tuple[bytes, Column] | None) -> None:
        del self._jobs[job.hash]
        for peer, is_hash_only in job.askers.items():
            if answer is None:
                self._say(peer, job.hash, DECLINED)
            else:
                self._answer(peer, job.hash, answer, is_hash_only)

    def _answer(self, peer: str, question: bytes, answer: tuple[bytes, Column], is_hash_only: bool) -> None:
        self._effects.append(Send(peer, Decided(question, answer[0], _NO_TEXT if is_hash_only else answer[1])))

    def _say(self, peer: str, question: bytes, cause: int) -> None:
        self._effects.append(Send(peer, Undecided(question, cause)))
