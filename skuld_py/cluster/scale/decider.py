"""Having expensive decisions made by schedulers, once for all members, and believing them only with reason.

What a hash can give. The hash of the question in the answer shows that this question was answered, not another.
The hash of the answer shows that what came is what was said. Neither shows that it is *right*: a scheduler that
computes wrongly hashes its wrong answer. What is right can be told only by computing, which is not to be done
twice. A part cannot be recomputed cheaply either: each list of a placement rests on the ranks of all partitions at
all nodes. And looks prove little: a placement with all shares within bounds may still be another than all others',
and two members that place differently are the harm to be kept out.

So an answer is used when **two schedulers, asked apart, give the same hash**, and it has no flaw that can be seen
without computing (lists, counts, known nodes, even shares). One sends the answer, the other only 16 bytes. One
scheduler that is broken, old or garbled, or one wrong answer that it keeps, can delay a decision, never make one.
Two that err alike pass; they run the program that a member would run, so the usual reason for that would have made
the member err, too. What is left is one fault in the same way in two machines, or malice of two.

A decision is computed here when fewer than two schedulers are known or answer, when time is up, and when answers
do not fit. One that was silent is not asked for a while (``rest_ms``): so one that died delays one decision by
``silence_ms``, and those that follow not at all. A scheduler whose answer the own result contradicts is counted
in ``blamed`` and not asked again until it has gone and come back. A process that schedules asks none.

All members ask the same scheduler first and the same one second, so that each question is worked out twice in the
whole cluster: the schedulers stand on a ring of consistent hashing, in which the hash of the question picks a
place. They come and go without many questions changing hands. (Placement itself is no such ring; see
``placement``.)

Source: "External Scheduler Processes" of Onyx's proposals for scale; Karger and others, "Consistent Hashing and
Random Trees", 1997. Rejected: believing one scheduler and auditing some decisions later (the harm is done by
then); a signature (shows which scheduler said it); a vote of all schedulers (each would work on everything).
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import attrs
from uhashring import HashRing
from xxhash import xxh3_64_intdigest

from skuld_py.cluster.scale.decisions import (
    KINDS,
    Decision,
    Kind,
    Question,
    Unwanted,
    Wanted,
    hash_of,
    read_result,
)
from skuld_py.errors import Malformed
from skuld_py.model.columns import Column, pack
from skuld_py.model.events import Compute, Computed, Received, SchedulersChanged, Send, Ticked
from skuld_py.model.messages.decisions import DECLINED, INPUT_WANTED, Decide, Decided, Undecided

NEVER_MS = 1 << 62
SOURCES = 2
"""How many schedulers must say the same."""
_NO_TEXT = Column()

DecidingEvent = Wanted | Unwanted | SchedulersChanged | Received | Computed | Ticked
DecidingEffect = Send | Compute | Decision


@attrs.frozen
class DeciderSettings:
    """Durations in milliseconds. Nothing that is decided depends on them."""

    limit_ms: int = 30_000
    """After this long the decision is computed here; computing it might take as long."""
    silence_ms: int = 2_000
    """A scheduler that does not answer for this long, not even that it works, is passed over."""
    rest_ms: int = 60_000
    """How long one that was silent is not asked."""
    resend_ms: int = 500
    """Between two questions to one that does not answer."""
    poll_ms: int = 5_000
    """Between two questions to one that works: thousands wait there."""
    kept: int = 8
    """Results kept, so that what was just decided is not asked again."""


@attrs.define
class _Open:
    """A question on its way. ``order``: the schedulers not passed over; the first ``SOURCES`` are being asked."""

    position: int
    question: Question
    order: list[str]
    until_ms: int
    again_ms: dict[str, int] = attrs.field(factory=dict)
    """When each is asked again."""
    patience_ms: dict[str, int] = attrs.field(factory=dict)
    """When each is passed over."""
    said: dict[str, bytes] = attrs.field(factory=dict)
    texts: dict[bytes, str] = attrs.field(factory=dict)
    """The answers, by their hash."""
    is_own: bool = False
    """Whether it is being computed here."""

    @property
    def sources(self) -> list[str]:
        return self.order[:SOURCES]

    def lacking(self) -> list[str]:
        """Sources that have not said all that is wanted: the first the answer, the others its hash."""
        return [name for name in self.sources if name not in self.said
                or (name == self.order[0] and self.said[name] not in self.texts)]

    def pass_over(self, names: Collection[str]) -> None:
        """Pass over a scheduler: those behind it move up. The new first has to send the answer, so begin asking
        anew."""
        if any(name in self.order for name in names):
            self.order = [name for name in self.order if name not in names]
            self.again_ms.clear()
            self.patience_ms.clear()


class Decider:
    """The machine of one member: ``Wanted`` is answered by exactly one ``Decision``, unless ``Unwanted`` comes
    first. The same question wanted again, at another position, is one question."""

    def __init__(self, me: str, settings: DeciderSettings | None = None,
                 kinds: Mapping[str, Kind] = KINDS) -> None:
        self._me = me
        self._settings = settings or DeciderSettings()
        self._kinds = kinds
        self._names: tuple[str, ...] = ()
        self._ring = _ring(())
        self._resting: dict[str, int] = {}
        """Until when one that was silent is not asked."""
        self._open: dict[bytes, _Open] = {}
        self._kept: OrderedDict[bytes, Any] = OrderedDict()
        self._effects: list[DecidingEffect] = []
        self.agreed = 0
        """Decisions that schedulers made."""
        self.computed = 0
        """Decisions made here."""
        self.mismatches = 0
        """Answers that did not fit: garbled, flawed, or contradicting each other."""
        self.blamed: Counter[str] = Counter()
        """Wrong answers, by scheduler."""

    def step(self, now_ms: int, event: DecidingEvent) -> list[DecidingEffect]:
        """Take one event."""
        match event:
            case Wanted(position, question):
                self._on_wanted(now_ms, position, question)
            case Unwanted(question_hash):
                self._open.pop(question_hash, None)
            case SchedulersChanged(names):
                self._on_schedulers(names)
            case Received(peer, Decided() as message):
                self._on_decided(peer, message)
            case Received(peer, Undecided() as message):
                self._on_undecided(now_ms, peer, message)
            case Computed():
                self._on_computed(event)
        for each in list(self._open.values()):
            self._look(now_ms, each)
        effects, self._effects = self._effects, []
        return effects

    def deadline(self) -> int:
        """When it next wants a ``Ticked``."""
        return min((min(each.until_ms, *(each.again_ms[name] for name in each.lacking()))
                    for each in self._open.values() if not each.is_own), default=NEVER_MS)

    # -- what is wanted ------------------------------------------------------------------------

    def _on_wanted(self, now_ms: int, position: int, question: Question) -> None:
        known = self._open.get(question.hash)
        if known is not None:
            known.position = max(known.position, position)
        elif question.hash in self._kept:
            self._kept.move_to_end(question.hash)
            self._effects.append(Decision(position, question, self._kept[question.hash], False))
        else:
            self._open[question.hash] = _Open(position, question, self._order(now_ms, question),
                                              now_ms + self._settings.limit_ms)

    def _on_schedulers(self, names: tuple[str, ...]) -> None:
        self._names = tuple(sorted(names))
        self._ring = _ring(name for name in self._names if name != self._me)
        for name in sorted(self.blamed.keys() - {*names}):
            del self.blamed[name]
        self._resting.clear()
        for each in self._open.values():
            each.pass_over([name for name in each.order if name not in names])

    def _order(self, now_ms: int, question: Question) -> list[str]:
        if self._me in self._names or not self._ring.get_nodes():
            return []
        return [name for name in self._ring.iterate_nodes(question.hash.hex())
                if not self.blamed[name] and now_ms >= self._resting.get(name, now_ms)]

    # -- asking --------------------------------------------------------------------------------

    def _look(self, now_ms: int, each: _Open) -> None:
        if each.is_own:
            return
        silent = [name for name in each.lacking() if now_ms >= each.patience_ms.get(name, NEVER_MS)]
        self._resting |= dict.fromkeys(silent, now_ms + self._settings.rest_ms)
        each.pass_over(silent)
        if now_ms >= each.until_ms or len(each.order) < SOURCES:
            self._compute(each)
        elif not self._conclude(each):
            for name in each.lacking():
                if now_ms >= each.again_ms.get(name, now_ms):
                    self._ask(now_ms, each, name, _NO_TEXT)

    def _ask(self, now_ms: int, each: _Open, name: str, text: Column) -> None:
        each.again_ms[name] = now_ms + self._settings.resend_ms
        each.patience_ms.setdefault(name, now_ms + self._settings.silence_ms)
        asked, is_hash_only = each.question, name != each.order[0]
        self._effects.append(Send(name, Decide(asked.kind, each.position, asked.hash, is_hash_only, text)))

    def _on_undecided(self, now_ms: int, peer: str, message: Undecided) -> None:
        each = self._asked(peer, message.question)
        if each is None:
            return
        each.patience_ms[peer] = now_ms + self._settings.silence_ms
        if message.cause == DECLINED:
            each.pass_over([peer])
        elif message.cause == INPUT_WANTED:
            self._ask(now_ms, each, peer, pack([each.question.text.encode()]))
        else:
            each.again_ms[peer] = now_ms + self._settings.poll_ms
            each.patience_ms[peer] += self._settings.poll_ms

    def _asked(self, peer: str, question: bytes) -> _Open | None:
        each = self._open.get(question)
        return each if each is not None and not each.is_own and peer in each.sources else None

    # -- answers -------------------------------------------------------------------------------

    def _on_decided(self, peer: str, message: Decided) -> None:
        each = self._asked(peer, message.question)
        if each is None:
            return
        try:
            text = message.text.unpack()[0].decode() if len(message.text) else ""
        except (Malformed, UnicodeDecodeError):
            text = "\0"  # no text has this hash
        is_garbled = bool(text) and hash_of(text) != message.answer
        if is_garbled or each.said.get(peer, message.answer) != message.answer:
            self._distrust(each)
            return
        each.said[peer] = message.answer
        if text:
            each.texts[message.answer] = text

    def _conclude(self, each: _Open) -> bool:
        """Whether all is said: the answer is taken, or what is said does not fit and it is computed here."""
        said = {each.said.get(name, b"") for name in each.sources}
        if b"" in said:
            return False
        if len(said) > 1:
            self._distrust(each)
            return True
        text = each.texts.get(each.said[each.order[0]])
        if text is None:
            return False
        result, flaw = read_result(self._kinds[each.question.kind], each.question, text)
        if flaw:
            self._distrust(each)
        else:
            self.agreed += 1
            self._decide(each, result)
        return True

    def _distrust(self, each: _Open) -> None:
        self.mismatches += 1
        self._compute(each)

    def _compute(self, each: _Open) -> None:
        each.is_own = True
        asked = each.question
        self._effects.append(Compute(asked.kind, asked.hash, asked.text))

    def _on_computed(self, event: Computed) -> None:
        each = self._open.get(event.hash)
        if each is None:
            return
        own = hash_of(event.text)
        self.blamed.update(name for name, said in each.said.items() if said != own)
        result, _ = read_result(self._kinds[each.question.kind], each.question, event.text)
        each.is_own = True
        self.computed += 1
        self._decide(each, result)

    def _decide(self, each: _Open, result: Any) -> None:
        del self._open[each.question.hash]
        self._kept[each.question.hash] = result
        while len(self._kept) > self._settings.kept:
            self._kept.popitem(last=False)
        self._effects.append(Decision(each.position, each.question, result, each.is_own))


def _ring(names: Iterable[str]) -> HashRing:
    """The schedulers in a ring: a function of their set, by a hash that is the same in every process."""
    return HashRing(nodes=sorted(names), hash_fn=lambda text: xxh3_64_intdigest(text.encode()))
