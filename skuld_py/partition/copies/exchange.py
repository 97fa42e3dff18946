"""Anti-entropy: one side goes down the trees with a peer, and both give each other what differs.

    Probe    root -> inner nodes -> leaves                    idle: one small question, one small answer
    Compare  digests of the units in leaves that differ, page by page
    (pause)
    Fetch    a second look at the units that differed; what still does is sent, both ways
    Repair   what the peer lacks

**Pull guarantee.** When ``is_done``, the initiator holds everything the peer held when the exchange began.
Each digest of the initiator is compared by the peer later than the initiator took it, and records only
grow: what is equal then was held here before, what differs is fetched. **Push** is an offer: a lost
``Repair`` is not noticed in this pass, and the next one finds the difference again. ``is_clean``: the pass
ended and neither side gave anything. Answers are promises, so a clean pass speaks of fsynced records.

**Two looks.** A write on its way to both sides differs for a moment. What a page shows is therefore noted
and looked at again after ``confirm_ms``; only what still differs is sent. Nothing rests on the pause: too
short, and a record is sent without need.

**Laps.** After ``exchange_units`` differing units the exchange sends them and rests, with its place kept, so
that others get their turn; it goes on from there when resumed. So memory is bounded and nothing is lost.

**Claims need no word of their own.** A history is a lattice that holds its claims, and its digest covers
them, so both directions of a merge settle every case: a claim that a follower missed comes from the leader;
a claim that only a minority recorded before its leader fell comes to the leader, whose re-grant of that
task then waits for its end, as it must, since somebody may hold it; a release or completion known to either
side dominates at both. Pulling from the leader alone would be no better: no replica's claim is ever false,
some are only unknown elsewhere.

**What was collected** (``partition.data.watermark``) is lacking for good: a sealed side says so of units that it
does not have (``gone``), and the other deletes the task instead of giving it. The seal that a peer told at the
start of a pass is taken over at its end and no sooner: by then all that the peer had is here.

The answering side keeps nothing between questions. A question is repeated until its answer comes; the
answer carries the question's ``turn``, and one that is late or comes twice is dropped.

Rejected: trees sent whole, as Skuld did (bytes with every task); repairs acknowledged one by one (the next
pass says the same for all of them at once).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum

import attrs

from skuld_py.config import Limits
from skuld_py.config.timing import Timing
from skuld_py.errors import Malformed
from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.events import Effect, Send
from skuld_py.model.ids import ID_BYTES, time_of
from skuld_py.partition.copies.garbage import collect
from skuld_py.partition.data.merkle import FANOUT, LEAVES
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import covers, in_messages, merge_rows, row_of, size_of
from skuld_py.partition.data.units import Unit, check_units, read_page, read_units

LEAF_LEVEL = 2
NAMED = 4
"""Tasks of which something was lacking that are named one by one."""


class Phase(Enum):
    """What an exchange waits for."""

    PROBING = "probing"
    WALKING = "walking"
    PAUSING = "pausing"
    FETCHING = "fetching"
    RESTING = "resting"
    DONE = "done"


class Event(Enum):
    """What becomes of a phase."""

    MORE = "there is more of it"
    ON = "it is through"
    END = "nothing differs, or nothing more does"
    DUE = "its time, or its turn, has come"


LIFE: Mapping[Phase, Mapping[Event, Phase]] = {
    Phase.PROBING: {Event.MORE: Phase.PROBING, Event.ON: Phase.WALKING, Event.END: Phase.DONE},
    Phase.WALKING: {Event.MORE: Phase.WALKING, Event.ON: Phase.PAUSING, Event.END: Phase.DONE},
    Phase.PAUSING: {Event.DUE: Phase.FETCHING},
    Phase.FETCHING: {Event.MORE: Phase.FETCHING, Event.ON: Phase.RESTING, Event.END: Phase.DONE},
    Phase.RESTING: {Event.DUE: Phase.WALKING},
    Phase.DONE: {},
}
"""The life of an exchange; what is not here cannot be. Silence changes no phase: ``has_expired``."""


@attrs.define
class Progress:
    """What an exchange has moved so far: pages compared; rows and bytes of rows fetched and given.

    ``conflicts``: bodies and log entries that exist on both sides with different content. ``gained``: units of
    which something was lacking here, and ``named`` the first of their tasks.
    """

    pages: int = 0
    fetched_rows: int = 0
    fetched_bytes: int = 0
    given_rows: int = 0
    given_bytes: int = 0
    conflicts: int = 0
    gained: int = 0
    named: dict[bytes, None] = attrs.field(factory=dict)

    def gain(self, units: Sequence[bytes]) -> None:
        """Something of these units was lacking."""
        self.gained += len(units)
        if len(self.named) < NAMED:
            self.named.update((unit[:ID_BYTES], None) for unit in units[:NAMED])


@attrs.frozen
class Pass:
    """An exchange that ended: nothing that the peer held when it began is lacking here. ``serial`` counts the
    passes that this node began. ``oldest``: the first unit that differed; none when it is clean."""

    partition: int
    peer: str
    serial: int
    oldest: bytes
    progress: Progress

    @property
    def is_clean(self) -> bool:
        """Neither side had anything to give."""
        return not self.oldest


@attrs.define
class Exchange:
    """A pass over one partition with one peer. ``number`` gives each question a number of its own."""

    replica: Replica
    peer: str
    limits: Limits
    timing: Timing
    partitions: int
    number: Callable[[], int]
    phase: Phase = Phase.PROBING
    oldest: bytes = b""
    """The first unit in which the sides differed, so far."""
    is_leaving: bool = False
    """Only give: this replica is to be dropped, and takes nothing any more."""
    progress: Progress = attrs.field(factory=Progress)
    deadline_ms: int = 0
    """When ``on_deadline`` is due."""
    _expires_ms: int = 0
    _question: m.Message | None = None
    """What the peer is to answer; none while nothing is asked."""
    _turn: int = -1
    _level: int = 0
    _parents: Sequence[int] = ()
    _leaves: int = 0
    _after: bytes = b""
    _upto: bytes = b""
    _noted: list[bytes] = attrs.field(factory=list)
    _asked: list[Unit] = attrs.field(factory=list)
    _sealed_ms: int = 0
    """What the peer told when the pass began."""

    @property
    def is_done(self) -> bool:
        """The pass has come to its end: all that the peer held when it began is here."""
        return self.phase is Phase.DONE

    @property
    def is_clean(self) -> bool:
        """It ended, and neither side had anything to give."""
        return self.is_done and not self.oldest

    @property
    def is_resting(self) -> bool:
        """It made a lap and waits for ``resume``."""
        return self.phase is Phase.RESTING

    def has_expired(self, now_ms: int) -> bool:
        """Whether the peer has been silent for too long; the pass is void."""
        return self._question is not None and now_ms >= self._expires_ms

    # -- questions -----------------------------------------------------------------------------

    def begin(self, now_ms: int) -> list[Effect]:
        """Ask for the root. The replica's tree must be built."""
        return self._probe(now_ms)

    def resume(self, now_ms: int) -> list[Effect]:
        """The next lap."""
        return self._go_on(now_ms, Event.DUE)

    def on_deadline(self, now_ms: int) -> list[Effect]:
        """Ask again what was not answered, or take the second look."""
        if self.phase is Phase.PAUSING:
            return self._go_on(now_ms, Event.DUE)
        if self._question is None:
            return []
        self.deadline_ms = now_ms + self.timing.resend_ms
        return [Send(self.peer, self._question)]

    def _go_on(self, now_ms: int, event: Event) -> list[Effect]:
        self.phase, self._question = LIFE[self.phase][event], None
        return _ENTRIES[self.phase](self, now_ms)

    def _ask(self, now_ms: int, question: m.Message) -> list[Effect]:
        self._question = question
        self.deadline_ms = now_ms + self.timing.resend_ms
        self._expires_ms = now_ms + self.timing.exchange_page_ms
        return [Send(self.peer, question)]

    def _next_turn(self) -> int:
        self._turn = self.number()
        return self._turn

    def _probe(self, now_ms: int) -> list[Effect]:
        digests = self.replica.tree.nodes.level(self._level, self._parents)
        return self._ask(now_ms, m.Probe(
            self.replica.partition, self._next_turn(), self._level, columns.pack_u64(self._parents),
            columns.pack_u64(digests)))

    def _compare(self, now_ms: int) -> list[Effect]:
        replica = self.replica
        page = read_page(replica.store, replica.prefix, self._leaves, self._after, b"", self.limits)
        self._upto = page.upto
        return self._ask(now_ms, m.Compare(
            replica.partition, self._next_turn(), self._leaves.to_bytes(LEAVES // 8, "big"), self._after,
            page.upto, columns.pack(list(page.digests)), columns.pack_u64(list(page.digests.values()))))

    def _wait(self, now_ms: int) -> list[Effect]:
        self.deadline_ms = now_ms + self.timing.confirm_ms
        return []

    def _fetch(self, now_ms: int) -> list[Effect]:
        self._asked = list(_units(self.replica, self._noted, self.limits))
        return self._ask(now_ms, m.Fetch(
            self.replica.partition, self._next_turn(), columns.pack([unit.key for unit in self._asked]),
            columns.pack_u64([unit.digest for unit in self._asked]), _gone(self.replica, self._asked)))

    def _finish(self, _: int) -> list[Effect]:
        """All that the peer had is here, so what it has collected is lacking here for good, too."""
        if not self.is_leaving:
            self.replica.watermark.seal(self._sealed_ms)
        return []

    # -- answers -------------------------------------------------------------------------------

    def on_answer(self, now_ms: int, answer: m.Probed | m.Compared | m.Fetched) -> list[Effect]:
        """The peer's answer; one to an older question is dropped. Raises ``Malformed``."""
        if answer.turn != self._turn:
            return []
        match answer:
            case m.Probed() if self.phase is Phase.PROBING:
                return self._on_probed(now_ms, answer)
            case m.Compared() if self.phase is Phase.WALKING:
                return self._on_compared(now_ms, answer)
            case m.Fetched() if self.phase is Phase.FETCHING:
                return self._on_fetched(now_ms, answer)
        return []

    def _on_probed(self, now_ms: int, answer: m.Probed) -> list[Effect]:
        """Go down where trees differ; the pass is done when nowhere, and void while a side is building."""
        if answer.is_building or not self.replica.tree.is_built:
            self._expires_ms = now_ms
            return []
        if not self._level:
            if max(answer.closed_ms, answer.sealed_ms) > now_ms + self.replica.skew_ms:
                raise Malformed("Probed.closed_ms", "lies in the future")
            self._sealed_ms = answer.sealed_ms
            self.replica.watermark.close(answer.closed_ms)
        differing = sorted(columns.unpack_u64(answer.differing))
        if not differing:
            return self._go_on(now_ms, Event.END)
        if self._level < LEAF_LEVEL:
            if differing[-1] >= FANOUT ** self._level:
                raise Malformed("Probed.differing", "there is no such node")
            self._level, self._parents = self._level + 1, differing
            return self._go_on(now_ms, Event.MORE)
        if differing[-1] >= LEAVES:
            raise Malformed("Probed.differing", "there is no such leaf")
        for leaf in differing:
            self._leaves |= 1 << leaf
        return self._go_on(now_ms, Event.ON)

    def _on_compared(self, now_ms: int, answer: m.Compared) -> list[Effect]:
        """Note what differs and walk on, or stop for the second look."""
        units = answer.units.unpack("Compared.units")
        upto = answer.upto
        check_units("Compared.units", units, self._after, upto)
        if self._upto and not b"" < upto <= self._upto:
            raise Malformed("Compared.upto", "is not within the page")
        self.progress.pages += 1
        self._noted += units
        self._after = upto
        if upto and len(self._noted) < self.timing.exchange_units:
            return self._go_on(now_ms, Event.MORE)
        return self._go_on(now_ms, Event.ON if self._noted else Event.END)

    def _on_fetched(self, now_ms: int, answer: m.Fetched) -> list[Effect]:
        """Take what the peer has, give what it lacks, go on with the noted units, then with the walk."""
        theirs = columns.unpack_u64(answer.digests)
        if not 0 < len(theirs) <= len(self._asked):
            raise Malformed("Fetched.digests", "answers another question")
        digests = {unit.key: digest for unit, digest in zip(self._asked, theirs, strict=False)}
        differing = [unit.key for unit in self._asked if digests.get(unit.key, unit.digest) != unit.digest]
        self.oldest = min(filter(None, [self.oldest, *differing[:1]]), default=b"")
        _drop(self.replica, [unit.key for unit in self._asked], answer.gone, self._sealed_ms)
        if not self.is_leaving:
            self.progress.conflicts += len(merge_rows(self.replica, now_ms, self.partitions, answer.tasks))
            self.progress.fetched_rows += len(answer.tasks)
            self.progress.fetched_bytes += sum(map(size_of, answer.tasks))
        mine = list(read_units(self.replica.store, self.replica.prefix, differing))
        was = {unit.key: unit.digest for unit in self._asked}
        self.progress.gain([unit.key for unit in mine if unit.digest not in (was[unit.key], 0)])
        known = _covered(mine, digests, answer.tasks) if self.is_leaving else set()
        rows = [row_of(unit) for unit in mine if unit.digest != digests[unit.key] and unit.key not in known]
        self.progress.given_rows += len(rows)
        self.progress.given_bytes += sum(map(size_of, rows))
        repairs = [Send(self.peer, m.Repair(self.replica.partition, tuple(part)))
                   for part in in_messages(rows, self.limits)]
        self._asked = []
        del self._noted[: len(theirs)]
        event = Event.MORE if self._noted else Event.ON if self._after else Event.END
        return [*repairs, *self._go_on(now_ms, event)]


_ENTRIES: Mapping[Phase, Callable[[Exchange, int], list[Effect]]] = {
    Phase.PROBING: Exchange._probe, Phase.WALKING: Exchange._compare, Phase.PAUSING: Exchange._wait,
    Phase.FETCHING: Exchange._fetch, Phase.RESTING: Exchange._wait, Phase.DONE: Exchange._finish}
"""What an exchange does when it comes to a phase."""


def _covered(mine: Sequence[Unit], digests: Mapping[bytes, int], theirs: Sequence[m.TaskRow]) -> set[bytes]:
    """Of units that differed, those of which the peer's knows all that ours does. It sent all that it has."""
    held = [unit for unit in mine if digests[unit.key]]
    if len(theirs) != len(held):
        raise Malformed("Fetched.tasks", "are not the units that differ")
    return {unit.key for unit, row in zip(held, theirs, strict=True) if covers(row, row_of(unit))}


# -- the answering side ----------------------------------------------------------------------------


def answer_probe(replica: Replica, question: m.Probe) -> m.Probed:
    """Which nodes differ here."""
    if not replica.tree.is_built:
        return m.Probed(question.partition, question.turn, True, b"")
    parents, theirs = columns.unpack_u64(question.parents), columns.unpack_u64(question.digests)
    if (any(parent >= FANOUT for parent in parents)
            or (question.level < LEAF_LEVEL and parents != (0,) * question.level)):
        raise Malformed("Probe.parents", "there is no such node")
    numbers = [parent * FANOUT + child for parent in parents for child in range(FANOUT)] if question.level else [0]
    if len(theirs) != len(numbers):
        raise Malformed("Probe.digests", "are not those of the nodes below the parents")
    mine = replica.tree.nodes.level(question.level, parents)
    differing = [number for number, a, b in zip(numbers, mine, theirs, strict=True) if a != b]
    watermark = replica.watermark
    return m.Probed(question.partition, question.turn, False, columns.pack_u64(differing), watermark.closed_ms,
                    watermark.sealed_ms)


def answer_compare(replica: Replica, limits: Limits, question: m.Compare) -> m.Compared:
    """Units of a page that differ, or are only here, or only there."""
    units = question.units.unpack("Compare.units")
    check_units("Compare.units", units, question.after, question.upto)
    leaves = int.from_bytes(question.leaves, "big")
    if not leaves:
        raise Malformed("Compare.leaves", "none is named")
    theirs = dict(zip(units, columns.unpack_u64(question.digests), strict=True))
    page = read_page(replica.store, replica.prefix, leaves, question.after, question.upto, limits)
    differing = [unit for unit, digest in page.digests.items() if theirs.get(unit) != digest]
    lacking = [unit for unit in units if unit not in page.digests and (not page.upto or unit <= page.upto)]
    return m.Compared(question.partition, question.turn, page.upto, columns.pack(sorted(differing + lacking)))


def answer_fetch(replica: Replica, limits: Limits, question: m.Fetch) -> m.Fetched:
    """Digests of the units asked for, and those units that differ here."""
    keys = question.units.unpack("Fetch.units")
    check_units("Fetch.units", keys)
    _drop(replica, keys, question.gone, 0)
    theirs = columns.unpack_u64(question.digests)
    mine = [unit for unit, _ in zip(_units(replica, keys, limits), theirs, strict=False)]
    rows = [row_of(unit) for unit, digest in zip(mine, theirs, strict=False) if unit.digest not in (digest, 0)]
    digests = columns.pack_u64([unit.digest for unit in mine])
    return m.Fetched(question.partition, question.turn, digests, tuple(rows), _gone(replica, mine))


def _gone(replica: Replica, units: Sequence[Unit]) -> bytes:
    """Indexes of units of which nothing is here because their tasks were collected."""
    lacking = {index: unit.key[:ID_BYTES] for index, unit in enumerate(units) if not unit.digest}
    gone = replica.gone(list(lacking.values()))
    return columns.pack_u64([index for index, task_id in lacking.items() if task_id in gone])


def _drop(replica: Replica, keys: Sequence[bytes], gone: bytes, sealed_ms: int) -> None:
    """Delete what a peer has collected, up to where this copy is closed and that peer is sealed."""
    indexes = columns.unpack_u64(gone)
    if any(index >= len(keys) for index in indexes):
        raise Malformed("gone", "there is no such unit")
    named = list(dict.fromkeys(keys[index][:ID_BYTES] for index in indexes))
    upto_ms = max(sealed_ms, replica.watermark.closed_ms)
    old = [task_id for task_id in named if time_of(task_id) <= upto_ms]
    if old:
        collect(replica, old)


def _units(replica: Replica, keys: Sequence[bytes], limits: Limits) -> Iterator[Unit]:
    """The first of these units, as many as one message holds."""
    size = 0
    for unit in read_units(replica.store, replica.prefix, keys[: limits.page_rows]):
        yield unit
        size += unit.size + 64
        if size >= limits.page_bytes:
            return
