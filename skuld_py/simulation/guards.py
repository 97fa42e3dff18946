"""What each first line of defence must never let through, even where a second line would stop it.

An election is guarded twice and three times over: a stale vote is stopped by the pull, an older candidacy by the
revision of its swap, a stale page by the exchange that a restart begins. So a first line may be broken and no
client ever sees it. The guards hold every step of a candidacy, at the moment it is taken, against what the
candidate had been told by then: **what it counts is of the epoch it counts it for, and from nodes that it had
asked.** And a node that hands claims over, confirms them, says that it has filled, or leads, must be right in
saying so. A limit's home lends by reports of the leaders that it knows of; and a leader tells no more than it
must.

They read messages, documents and stores, never the machine's own books, and do their own arithmetic.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from skuld_py.model import messages as m
from skuld_py.model.columns import unpack_u64
from skuld_py.model.document import Document
from skuld_py.model.events import DocumentRead, ReadFailed, Received, SwapDocument
from skuld_py.model.history import FAILED, History, decode_history
from skuld_py.model.ids import split
from skuld_py.model.limiting import decode_limits
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.schedule import SCHEDULE
from skuld_py.model.setting import LIMITS, decode_setting, setting_key
from skuld_py.node.process import Told
from skuld_py.partition.data import tables
from skuld_py.simulation.bids import Bid, is_majority
from skuld_py.simulation.checkers.evidence import gives_way
from skuld_py.simulation.world.process import Process

VOTES_COUNT = "C7 votes that are counted were given for the epoch they are counted for"
CLAIMS_ARE_READ = "C6 claims counted as read are of the candidate's epoch, from voters that it asked"
MEMBERS_HAVE_FILLED = "D1 a new member counted as filled has said so in the candidate's epoch"
CLAIMS_ARE_KEPT = "C6 claims counted as kept were confirmed in the candidate's epoch"
HANDED_TO_ITS_CANDIDATE = "C7 claims are handed to and kept for the candidate that has the vote, nobody else"
TRUSTED_SPEAK = "C6 claims are handed over and kept by no suspect, nor before the document was read"
KEPT_IS_FSYNCED = "D7 claims that are confirmed are committed"
FILLED_IS_FULL = "D1 a new member that says it has filled holds, committed, what its sources held"
LEADS_BY_DOCUMENT = "C5 whoever grants is the leader that a document of this epoch names"
FILLED_PROMISE = "C7 a replica trusted again knows as new an epoch as it ever recorded claims in"
IS_SENT = "A4 no node has a message for another one that is too large to be sent"
MADE_BY_NOW = "C20 no schedule is passed on as made later than now"
READ_IS_FRESH = "C5 a document that is read is at least as new as when it was asked for"
CHANGE_IS_SMALL = "A4 a change of an open task tells of one claim besides the newest and the attempts of its round"
FOLLOWERS_OBJECT = "C3 a follower agrees to no claim of what it knows to be held, claimed later, or done"
ALL_HAVE_REPORTED = "C19 a home lends when each partition was reported by a leader not known to be deposed"

WHOLE_BYTES = 256
"""A history no longer than this may travel whole, whatever changes of it."""
Blame = Callable[[str, str], None]
Where = tuple[str, int]
"""Node and partition."""
_SUSPECT = tables.suspect_key(0)[:-2]


Handlers = Mapping[type, Callable[[str, str, Any], None]]
"""Handlers of messages, by class: sender, receiver, message."""


class Guards:
    """Watch one run. ``is_excused``: whether a node's copies may lack what it once had."""

    def __init__(self, processes: Mapping[str, Process], counts: Counter[str], blame: Blame,
                 is_excused: Callable[[str], bool], going: Collection[bytes]) -> None:
        self._processes = processes
        self._counts = counts
        self._blame = blame
        self._is_excused = is_excused
        self._going = going
        self.skew_ms = 0
        """How far clocks may differ: a lease that ended no longer ago may be held."""
        self.now_ms: Callable[[], int] = lambda: 0
        """The true time."""
        self.is_total_loss = False
        """Whether more may be lost than a majority can make up for."""
        self._bids: dict[Where, Bid] = {}
        self._leaders: dict[tuple[int, int], Document] = {}
        """By partition and epoch."""
        self._remaining: dict[tuple[int, int], dict[frozenset[str], None]] = {}
        """Who remains as operators have said, by partition and epoch."""
        self._promised: dict[Where, int] = {}
        self._voted: dict[Where, dict[int, str]] = {}
        self._recorded: dict[Where, int] = {}
        """The newest epoch in which a node handed claims over or recorded some, in all its lives."""
        self._has_read: dict[Where, None] = {}
        """The documents that a node was given in this life."""
        self._looked: dict[str, tuple[int, int]] = {}
        """As of which boot and commit of a node the following is: a turn begins with nothing staged."""
        self._doubted: dict[str, Collection[int]] = {}
        """Of which partitions a node's memory was in doubt when its turn began."""
        self._pages: dict[tuple[str, str, int, int, bytes], m.PushClaims] = {}
        self._sources: dict[tuple[str, str, int, int], dict[str, dict[tuple[str, bytes], bytes]]] = {}
        self._proposed: dict[tuple[str, str, int, int], tuple[m.Grant, list[bytes | None]]] = {}
        """Claims that a follower was asked to record, and what it knew of their tasks when that turn began; by
        asker, follower, number of the request, and partition."""
        self._reads: dict[Where, list[int]] = {}
        self._led: dict[Where, None] = {}
        """Which partitions a node has led by a document; of these it reports to itself, unseen."""
        self._known: dict[Where, int] = {}
        """The newest epoch that a node knows to have a leader."""
        self._asked: dict[tuple[str, int], m.Reckon] = {}
        self._wishes: dict[tuple[str, str, int], str] = {}
        """The queue that a node was asked for a loan of, by asker, node and number of the request."""
        self._reported: dict[tuple[str, str, int], dict[int, None]] = {}
        """Partitions of which a home was told, by the queue and the version of its limits."""
        self._arrivals = self._handlers_of_arrivals()
        self._departures = self._handlers_of_departures()

    def _handlers_of_arrivals(self) -> Handlers:
        return {
            m.Vote: self._on_vote, m.ClaimPage: self._on_page, m.Synced: self._on_synced,
            m.ClaimsKept: self._on_kept, m.Sync: self._on_sync, m.PushClaims: self._on_push,
            m.Borrow: self._on_borrow, m.Reckoned: self._on_reckoned, m.Grant: self._on_grant}

    def _handlers_of_departures(self) -> Handlers:
        return {
            m.RequestVote: self._open, m.PullClaims: self._pull, m.Sync: self._sync, m.PushClaims: self._push,
            m.Vote: self._vote, m.ClaimPage: self._hand, m.ClaimsKept: self._keep, m.Synced: self._synced,
            m.Granted: self._granted, m.Amended: self._record, m.Grant: self._lead, m.Amend: self._amend,
            m.Reckon: self._reckon, m.Lent: self._lend, m.PutSetting: self._put}

    def _check(self, rule: str, is_kept: object, name: str, what: object) -> None:
        self._counts[rule] += 1
        if not is_kept:
            self._blame(rule, f"{name}: {what}")

    # -- what happens --------------------------------------------------------------------------

    def on_start(self, process: Process, suspected: Collection[int]) -> None:
        """A new boot: candidacies and questions are forgotten, and where its memory is in doubt, votes."""
        books: tuple[dict[Any, Any], ...] = (self._bids, self._reads, self._has_read, self._known, self._asked,
                                             self._wishes, self._reported)
        for book in books:
            for key in [key for key in book if key[0] == process.name]:
                del book[key]
        is_hurt = self._is_excused(process.name)
        for where in [where for where in self._promised if where[0] == process.name]:
            known = _epoch_of(process.store.committed("meta", tables.promise_key(where[1])))
            if where[1] in suspected or (is_hurt and known < self._promised[where]):
                self._forget(where)

    def on_turn(self, process: Process, events: Iterable[Told]) -> None:
        """A node is about to take these events."""
        state = process.boots, process.store.commits
        if self._looked.get(process.name) != state:
            self._looked[process.name] = state
            self._doubted[process.name] = _in_doubt(process.store)
        for event in events:
            if type(event) is Received:
                arrival = self._arrivals.get(type(event.message))
                if arrival is not None:
                    arrival(process.name, event.peer, event.message)
            elif type(event) is DocumentRead:
                self._has_read[process.name, event.partition] = None
                self._know(process.name, event.partition, event.document.epoch)

    def on_send(self, process: Process, peer: str, message: m.Message) -> None:
        """A message leaves a node."""
        departure = self._departures.get(type(message))
        if departure is not None:
            departure(process.name, peer, message)

    def _put(self, name: str, peer: str, message: m.PutSetting) -> None:
        if message.kind == SCHEDULE and message.value:
            now_ms = self._processes[name].clock.read(self.now_ms())
            self._check(MADE_BY_NOW, json.loads(message.value)["since_ms"] <= now_ms, name, f"{now_ms}: {message}")

    def on_too_large(self, name: str, peer: str, message: m.Message, problem: str, is_told: bool) -> None:
        """A message cannot be sent. An answer was asked for, and the asker is told."""
        is_sent = is_told or peer not in self._processes
        self._check(IS_SENT, is_sent, name, f"{type(message).__name__} to {peer}: {problem}")

    def on_written(self, now_ms: int, partition: int, before: Document | None, document: Document) -> None:
        """A document took effect."""
        if document.force is not None:
            remaining = self._remaining.setdefault((partition, document.force.epoch), {})
            remaining[frozenset(document.force.remaining)] = None
        if not document.leader:  # of a cluster that was restored
            self._leaders.pop((partition, document.epoch), None)
        self._leaders.setdefault((partition, document.epoch), document)
        self._led[document.leader, partition] = None

    # -- the candidate -------------------------------------------------------------------------

    def _bid(self, name: str, partition: int, epoch: int) -> Bid | None:
        bid = self._bids.get((name, partition))
        return bid if bid is not None and bid.epoch == epoch else None

    def _open(self, name: str, voter: str, request: m.RequestVote) -> None:
        if request.is_trial or self._bid(name, request.partition, request.epoch) is not None:
            return
        document = self._leaders.get((request.partition, request.base))
        old = document.cohort if document is not None else ()
        is_forced = frozenset(request.cohort) in self._remaining.get((request.partition, request.base), ())
        self._bids[name, request.partition] = Bid(request.epoch, old, request.cohort, {name: None},
                                                  is_forced=is_forced)

    def _on_vote(self, name: str, voter: str, vote: m.Vote) -> None:
        bid = self._bid(name, vote.partition, vote.epoch)
        if bid is not None and vote.is_granted and not vote.is_trial:
            bid.votes[voter] = None

    def _on_page(self, name: str, voter: str, page: m.ClaimPage) -> None:
        bid = self._bid(name, page.partition, page.epoch)
        if bid is not None and bid.cursors.get(voter) == page.after and not page.next:
            bid.read[voter] = None

    def _on_synced(self, name: str, member: str, synced: m.Synced) -> None:
        bid = self._bid(name, synced.partition, synced.epoch)
        if bid is not None:
            bid.filled[member] = None

    def _on_kept(self, name: str, voter: str, kept: m.ClaimsKept) -> None:
        bid = self._bid(name, kept.partition, kept.epoch)
        pushed = bid.pushed.get(voter) if bid is not None else None
        if bid is not None and pushed is not None and pushed.after == kept.after and not pushed.next:
            bid.kept[voter] = None

    def _pull(self, name: str, voter: str, pull: m.PullClaims) -> None:
        bid = self._voted_in(name, pull.partition, pull.epoch, pull)
        if bid is not None:
            bid.cursors[voter] = pull.after

    def _sync(self, name: str, member: str, sync: m.Sync) -> None:
        bid = self._read_up(name, sync.partition, sync.epoch, sync)
        if bid is not None:
            are_read = all(source in bid.read for source in sync.sources if source != name)
            self._check(CLAIMS_ARE_READ, are_read, name, f"{sync} of {bid}")

    def _push(self, name: str, voter: str, page: m.PushClaims) -> None:
        bid = self._filled_up(name, page.partition, page.epoch, page)
        if bid is not None:
            bid.pushed[voter] = page

    def on_swap(self, process: Process, swap: SwapDocument) -> None:
        """A node would lead, or tends the document that it leads by."""
        name, document = process.name, swap.document
        others = {*document.previous.cohort, *document.cohort} - {name}
        is_alone = document.cohort == (name,) and frozenset((name,)) in self._remaining.get(
            (swap.partition, document.previous.epoch), ())
        if (swap.partition, document.epoch) in self._leaders or not others or is_alone:
            return
        bid = self._filled_up(name, swap.partition, document.epoch, swap)
        if bid is not None and bid.pushed:
            self._check(CLAIMS_ARE_KEPT, is_majority({**bid.kept, name: None}, bid.new), name, f"{swap} of {bid}")

    def _voted_in(self, name: str, partition: int, epoch: int, step: object) -> Bid | None:
        """The candidacy, which must have its votes by now."""
        bid = self._bid(name, partition, epoch)
        is_voted_in = bid is not None and bid.is_voted_in
        self._check(VOTES_COUNT, is_voted_in, name, f"{step} of {bid}")
        return bid

    def _read_up(self, name: str, partition: int, epoch: int, step: object) -> Bid | None:
        """The candidacy, which must have read its voters' claims by now."""
        bid = self._voted_in(name, partition, epoch, step)
        if bid is not None:
            self._check(CLAIMS_ARE_READ, bid.is_read_by(name), name, f"{step} of {bid}")
        return bid

    def _filled_up(self, name: str, partition: int, epoch: int, step: object) -> Bid | None:
        """The candidacy, whose new members must hold the data by now. What it tells itself is not seen."""
        bid = self._read_up(name, partition, epoch, step)
        if bid is not None:
            added = [member for member in bid.new if member not in bid.old] if bid.old else []
            have_filled = all(member in bid.filled for member in added if member != name)
            self._check(MEMBERS_HAVE_FILLED, have_filled, name, f"{step} of {bid}")
        return bid

    def _lead(self, name: str, peer: str, message: m.Grant | m.Amend) -> None:
        document = self._leaders.get((message.partition, message.epoch))
        self._check(LEADS_BY_DOCUMENT, document is not None and document.leader == name, name, message)

    def _amend(self, name: str, peer: str, message: m.Amend) -> None:
        self._lead(name, peer, message)
        for task_id, record in zip(split(message.ids), message.histories.unpack(), strict=True):
            idle = _idle(decode_history(record)) if len(record) > WHOLE_BYTES else []
            self._check(CHANGE_IS_SMALL, len(idle) <= 1, name, f"{task_id.hex()} with the claims {idle}")

    # -- the voter -----------------------------------------------------------------------------

    def _vote(self, name: str, candidate: str, vote: m.Vote) -> None:
        where = (name, vote.partition)
        self._promised[where] = max(vote.promised, self._promised.get(where, 0))
        if vote.is_granted and not vote.is_trial:
            self._voted.setdefault(where, {})[vote.epoch] = candidate

    def _hand(self, name: str, candidate: str, page: m.ClaimPage | m.ClaimsKept) -> None:
        where = (name, page.partition)
        is_owed = (self._voted.get(where, {}).get(page.epoch) == candidate
                   and page.epoch >= self._promised.get(where, 0))
        self._check(HANDED_TO_ITS_CANDIDATE, is_owed, name, f"{page} to {candidate}")
        is_doubted = (page.partition in self._doubted.get(name, ())
                      and page.partition in _in_doubt(self._processes[name].store))
        self._check(TRUSTED_SPEAK, where in self._has_read and not is_doubted, name, f"{page} to {candidate}")
        self._recorded[where] = max(page.epoch, self._recorded.get(where, 0))

    def _record(self, name: str, leader: str, told: m.Granted | m.Amended) -> None:
        where = (name, told.partition)
        self._promised[where] = max(told.promised, self._promised.get(where, 0))
        if told.is_accepted:
            self._recorded[where] = max(told.promised, self._recorded.get(where, 0))
            self._know(name, told.partition, told.promised)

    def _on_grant(self, name: str, leader: str, grant: m.Grant) -> None:
        prefix, store = tables.prefix_of(grant.partition), self._processes[name].store
        self._proposed[name, leader, grant.request, grant.partition] = grant, [
            store.committed("history", prefix + task_id) for task_id in split(grant.ids)]

    def _granted(self, name: str, leader: str, told: m.Granted) -> None:
        """A follower knew when it agreed what it knew both before and after its turn; within the turn a claim may
        have been released, or a task ended."""
        self._record(name, leader, told)
        grant, records = self._proposed.pop((name, leader, told.request, told.partition), (None, []))
        if grant is None or not told.is_accepted:
            return
        prefix, store = tables.prefix_of(grant.partition), self._processes[name].store
        vetoed, over_ms = unpack_u64(told.vetoed), grant.start_ms - self.skew_ms
        for index, (task_id, before) in enumerate(zip(split(grant.ids), records, strict=True)):
            now = store.committed("history", prefix + task_id)
            if index not in vetoed and before is not None and now is not None:
                token = grant.first_token + index
                objections = [each for each in _objections(before, token, over_ms)
                              if each in _objections(now, token, over_ms)]
                self._check(FOLLOWERS_OBJECT, not objections, name, f"{told} to {grant}, knowing {objections}")

    def _on_push(self, name: str, candidate: str, page: m.PushClaims) -> None:
        self._pages[name, candidate, page.partition, page.epoch, page.after] = page

    def _keep(self, name: str, candidate: str, kept: m.ClaimsKept) -> None:
        self._hand(name, candidate, kept)
        page = self._pages.get((name, candidate, kept.partition, kept.epoch, kept.after))
        prefix, store = tables.prefix_of(kept.partition), self._processes[name].store
        pushed = zip(split(page.ids), page.histories.unpack(), strict=True) if page is not None else ()
        lacking = [task_id.hex() for task_id, history in pushed
                   if not _covers("history", store.committed("history", prefix + task_id), history)]
        self._check(KEPT_IS_FSYNCED, page is not None and not lacking, name, f"{kept} without {lacking}")

    # -- the new member ------------------------------------------------------------------------

    def _on_sync(self, name: str, candidate: str, sync: m.Sync) -> None:
        held = {source: _committed(self._processes[source].store, sync.partition)
                for source in sync.sources if source != name and not self._is_excused(source)}
        self._sources[name, candidate, sync.partition, sync.epoch] = held

    def _synced(self, name: str, candidate: str, synced: m.Synced) -> None:
        held = self._sources.pop((name, candidate, synced.partition, synced.epoch), None)
        store = self._processes[name].store
        lacking = [f"{table} {key.hex()} of {source}" for source, rows in (held or {}).items()
                   for (table, key), record in rows.items()
                   if key[2:22] not in self._going and not self._is_excused(source)
                   and not _covers(table, store.committed(table, key), record)]
        self._check(FILLED_IS_FULL, not lacking, name, f"{synced} to {candidate}, lacking {lacking[:3]}")

    # -- the home of a queue's limits ----------------------------------------------------------

    def _know(self, name: str, partition: int, epoch: int) -> None:
        self._known[name, partition] = max(epoch, self._known.get((name, partition), 0))

    def _on_borrow(self, name: str, borrower: str, wish: m.Borrow) -> None:
        self._wishes[name, borrower, wish.request] = wish.queue

    def _reckon(self, name: str, leader: str, question: m.Reckon) -> None:
        self._asked[name, question.request] = question

    def _on_reckoned(self, name: str, leader: str, report: m.Reckoned) -> None:
        question = self._asked.get((name, report.request))
        if question is not None:
            told = self._reported.setdefault((name, question.queue, question.version), {})
            told.update((partition, None) for partition, epoch in
                        zip(unpack_u64(report.partitions), unpack_u64(report.epochs), strict=True)
                        if epoch >= self._known.get((name, partition), 0))

    def _lend(self, name: str, borrower: str, lent: m.Lent) -> None:
        queue = self._wishes.pop((name, borrower, lent.request), "")
        if lent.count and _bounds_claims(self._processes[name].store, queue, lent.version):
            told = self._reported.get((name, queue, lent.version), {})
            silent = [partition for partition in dict.fromkeys(partition for partition, _ in self._leaders)
                      if partition not in told and (name, partition) not in self._led]
            self._check(ALL_HAVE_REPORTED, not silent, name, f"{lent} of {queue} to {borrower}, without {silent}")

    # -- memory --------------------------------------------------------------------------------

    def before_commit(self, process: Process) -> None:
        """A suspect that is trusted again from now on has learnt a promise that is new enough. If that is its own,
        with the name of a candidate, it votes by it as before."""
        for _, key, before, after in process.store.changes("meta"):
            if not key.startswith(_SUSPECT):
                continue
            partition = int.from_bytes(key[len(_SUSPECT) :], "big")
            if after is not None:
                self._forget((process.name, partition))
            elif before is not None and not self.is_total_loss:
                record = process.store.held("meta", tables.promise_key(partition)) or bytes(8)
                recorded = self._recorded.get((process.name, partition), 0)
                self._check(FILLED_PROMISE, int.from_bytes(record[:8], "big") >= recorded, process.name,
                            f"partition {partition}: promised {record!r}, recorded claims in {recorded}")
                if candidate := record[8:].decode():
                    self._voted[process.name, partition] = {_epoch_of(record): candidate}

    def _forget(self, where: Where) -> None:
        self._promised.pop(where, None)
        self._voted.pop(where, None)

    # -- documents -----------------------------------------------------------------------------

    def on_read_asked(self, name: str, partition: int, version: int) -> None:
        """A node asks for a document, which has this version now."""
        self._reads.setdefault((name, partition), []).append(version)

    def on_removed(self, partition: int) -> None:
        """A document is gone, and versions begin anew: what was asked for may be none, or one of these."""
        for (_, asked), versions in self._reads.items():
            if asked == partition:
                versions[:] = [-1] * len(versions)

    def on_news(self, name: str, event: Told) -> None:
        """The registry's answer arrives. Documents come in the order of the questions. A failure may overtake one,
        and is taken for the answer to the question that demands most."""
        asked = self._reads.get((name, event.partition)) if isinstance(event, DocumentRead | ReadFailed) else None
        if asked and isinstance(event, DocumentRead):
            version = asked.pop(0)
            self._check(READ_IS_FRESH, event.version >= version, name, f"{event}, which was {version} before")
        elif asked:
            asked.remove(max(asked))


def _epoch_of(promise: bytes | None) -> int:
    return int.from_bytes((promise or b"")[:8], "big")


def _objections(record: bytes, token: int, over_ms: int) -> list[int]:
    """Why a task must not be claimed with this token, by what is known of it: 0 for its end, or the tokens of
    later claims and of those that may be held after ``over_ms``."""
    history = decode_history(record)
    done = [0] if history.completion.value or history.cancelled.value else []
    return done + [other for other, claim in history.claims.entries.items() if other > token or (
        other != token and not claim.kind and claim.end.value > over_ms)]


def _idle(history: History) -> list[int]:
    """The claims on which nothing rests, unless they change just now. All claims of an ended task may be told."""
    if history.completion.value or history.cancelled.value or history.death_round > history.round:
        return []
    newest, base = history.newest_token, history.base
    return [token for token, claim in history.claims.entries.items()
            if token != newest and (token <= base or claim.kind not in (0, FAILED))]


def _bounds_claims(store: MemoryStore, queue: str, version: int) -> bool:
    """Whether these limits of a queue, which the node still knows, say how many claims are held at once."""
    key = setting_key(LIMITS, queue)
    record = store.held("meta", key)
    row = decode_setting(key, record) if record is not None else None
    return row is not None and row.version == version and bool(row.value and decode_limits(row.value).concurrency)


def _in_doubt(store: MemoryStore) -> list[int]:
    """The partitions whose memory is not to be trusted."""
    marks = store.tables["meta"].irange(_SUSPECT, _SUSPECT + b"\xff\xff")
    return [int.from_bytes(key[len(_SUSPECT) :], "big") for key in marks]


def _committed(store: MemoryStore, partition: int) -> dict[tuple[str, bytes], bytes]:
    """Bodies and histories that would outlive a crash."""
    prefix = tables.prefix_of(partition)
    return {(table, key): record for table in ("body", "history")
            for key in {**store.rows(table, prefix), **store.undo[table]} if key.startswith(prefix)
            if (record := store.committed(table, key)) is not None}


def _covers(table: str, record: bytes | None, known: bytes) -> bool:
    """Whether a record knows all that another one knew."""
    if record is None or table == "body":
        return record == known or (record is not None and gives_way(known, record))
    history = decode_history(record)
    return history.merge(decode_history(known)) == history
