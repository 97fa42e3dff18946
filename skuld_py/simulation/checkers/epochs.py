"""C4 to C7, X2: epochs rise, their leaders carry all claims over, and a deposed leader can do nothing more."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from skuld_py.model import messages as m
from skuld_py.model.document import REAP, Document
from skuld_py.model.history import epoch_of
from skuld_py.model.ids import split
from skuld_py.simulation.checkers.claims import Newest, granted_renewals
from skuld_py.simulation.checkers.evidence import Evidence, Finding, Told, Written, completions_of, judge
from skuld_py.simulation.notes import Note, What


def deposed_leaders_grant_nothing(evidence: Evidence) -> Finding:
    """[C4] A claim asked for after an epoch was written is of that epoch or a later one; and of an epoch
    that was written at all, with the acknowledgements of a majority of its cohort where those are noted."""
    times: dict[int, list[tuple[int, int]]] = {}
    documents: dict[tuple[int, int], Document] = {}
    for write in evidence.writes:
        if not write.document.leader:
            continue
        times.setdefault(write.partition, []).append((write.time_ms, write.document.epoch))
        documents[write.partition, write.document.epoch] = write.document
    newest = {partition: Newest(rows) for partition, rows in times.items()}
    acks = _acks(evidence)

    def broken() -> Iterator[str]:
        for told in evidence.told:
            partition, epoch = evidence.partition(told.task), epoch_of(told.token)
            if (partition, epoch) not in documents:
                yield f"{told.task.hex()} token {told.token:#x} of an epoch never written: {told.operation}"
            elif newest[partition].before(told.operation.invoked_ms) > epoch:
                yield (f"{told.task.hex()} token {told.token:#x}, epoch"
                       f" {newest[partition].before(told.operation.invoked_ms)} was written: {told.operation}")
            elif acks is not None:
                yield from _lacks_acks(told, documents[partition, epoch], acks.get((partition, told.token), {}))
    return judge("C4 deposed leaders grant nothing", len(evidence.told), broken())


def _acks(evidence: Evidence) -> dict[tuple[int, int], dict[str, int]] | None:
    """(partition, token) -> the nodes that recorded it, and since when; None without notes."""
    acks: dict[tuple[int, int], dict[str, int]] = {}
    notes = evidence.noted(What.ACKED)
    for note in notes:
        for token in note.tokens:
            acks.setdefault((note.partition, token), {}).setdefault(note.node, note.time_ms)
    return acks if notes else None


def _lacks_acks(told: Told, document: Document, acks: dict[str, int]) -> Iterator[str]:
    by_then = [name for name in document.cohort
               if name == document.leader or (name in acks and acks[name] <= told.operation.done_ms)]
    if len(by_then) < len(document.cohort) // 2 + 1:
        yield f"token {told.token:#x} was recorded by {by_then} of {document.cohort}: {told.operation}"


def epochs_rise(evidence: Evidence) -> Finding:
    """[C5] Each leadership of a partition has a higher epoch than the last, hence one leader and one cohort of N;
    later writes of an epoch change none of it; and no node grants unless a document names it leader."""
    last: dict[int, Written] = {}
    seated: dict[tuple[int, int], Written] = {}
    forced: dict[int, None] = {}
    """Partitions of which an operator gave voters up: their cohorts grow again."""
    led = {(note.partition, note.epoch) for note in evidence.noted(What.LED)}
    broken = []
    for write in evidence.writes:
        before = last.get(write.partition)
        if not write.document.leader:  # of a cluster that was restored: what follows begins anew
            last[write.partition] = write
            continue
        wish = write.document.promote
        is_given_up = write.document.loss is not None or (wish is not None and wish.kind == REAP)
        forced.update({write.partition: None} if is_given_up else {})
        sizes = (evidence.replicas, *evidence.resized)
        least = 1 if write.partition in forced or evidence.resized else evidence.replicas
        old, since_ms = (before.document, before.time_ms) if before else (Document(), 0)
        if write.document.epoch > old.epoch and old.leader and (write.partition, old.epoch) not in led and any(
                since_ms <= time_ms <= write.time_ms for time_ms in evidence.restored):
            old = attrs.evolve(old, seats=())  # it was lost before anybody read it: the cohort is founded anew
        problem = _problem(old, write.document, least, max(sizes))
        if problem:
            broken.append(f"partition {write.partition}: {problem}: {before} and then {write}")
        last[write.partition] = write
        seated.setdefault((write.partition, write.document.epoch), write)
    for note in evidence.noted(What.LED):
        since = seated.get((note.partition, note.epoch))
        if since is None or since.document.leader != note.node or since.time_ms > note.time_ms:
            broken.append(f"{note.node} leads without a document: {note}; {since}")
    return judge("C5 epochs rise, and each has one leader", len(evidence.writes), broken)


def _problem(old: Document, new: Document, least: int, replicas: int) -> str:
    if new.epoch < old.epoch or not new.epoch:
        return "the epoch falls"
    if new.epoch == old.epoch and _leadership(old) != _leadership(new):
        return "an epoch has two leaderships"
    if not least <= len({*new.cohort}) == len(new.cohort) <= replicas:
        return f"a cohort of {len(new.cohort)}"
    if new.leader not in new.cohort:
        return "the leader has no seat"
    if (new.era or old.era) and new.era != (old.era if {*new.cohort} == {*old.cohort} else new.epoch):
        return "the era does not follow the cohort"
    return "the horizon falls" if new.horizon_ms < old.horizon_ms else ""


def _leadership(document: Document) -> tuple[object, ...]:
    return (document.leader, document.boot, document.cohort, document.era, document.floor, document.previous)


def leaders_know_all_claims(evidence: Evidence) -> Finding:
    """[C6] A node that became leader knew, when it asked for that, every live claim of which a client had been
    told.

    Live: not given up, its task not being completed, its end not yet past by true time, so that no voter's
    clock, half the skew bound ahead at most, can have seen it lapse with the whole bound added.
    """
    won = {(write.partition, write.document.epoch, write.document.leader) for write in evidence.writes}
    gone = _give_ups(evidence)
    told = sorted(evidence.told, key=lambda told: told.operation.done_ms, reverse=True)
    live: list[tuple[int, Told]] = []
    count, broken = 0, []
    for note in evidence.noted(What.SEATING):
        while told and told[-1].operation.done_ms < note.time_ms:
            known = told.pop()
            end_ms = known.end_ms - evidence.wall_start_ms
            live.append((min(end_ms, *gone.get(known.task, (end_ms,))), known))
        live = [(end_ms, claim) for end_ms, claim in live if note.time_ms < end_ms]
        if (note.partition, note.epoch, note.node) not in won:
            continue
        for _, claim in live:
            if evidence.partition(claim.task) == note.partition and epoch_of(claim.token) < note.epoch:
                count += 1
                if claim.token not in note.tokens:
                    broken.append(f"{note.node} leads epoch {note.epoch} from {note.time_ms} ms and does not know"
                                  f" token {claim.token:#x}: {claim.operation}")
    return judge("C6 a new leader knows every live claim", count, broken)


def _give_ups(evidence: Evidence) -> dict[bytes, list[int]]:
    """Task -> when a client asked for its completion, or for the end of a claim of it."""
    gone: dict[bytes, list[int]] = {}
    for operation in evidence.history.of(m.Complete):
        for task_id, _ in completions_of(operation):
            gone.setdefault(task_id, []).append(operation.invoked_ms)
    for operation in evidence.history.of(m.Renew):
        assert isinstance(operation.message, m.Renew)
        if not operation.message.lease_ms:
            for task_id in split(operation.message.ids):
                gone.setdefault(task_id, []).append(operation.invoked_ms)
    for operation in evidence.history.of(m.Conclude):
        assert isinstance(operation.message, m.Conclude)
        for task_id in split(operation.message.ids):
            gone.setdefault(task_id, []).append(operation.invoked_ms)
    return gone


def votes_are_kept(evidence: Evidence) -> Finding:
    """[C7] A node votes for one candidate in an epoch, follows no other in it, and follows no older leader. (What
    is promised is durable, says the monitor.)

    A node that lost its memory and filled again is held to the epochs that had a leader by then, since a majority
    knows of them. A vote for a candidate that a minority voted for may be forgotten by all: the candidate can win
    no more by it, as nodes that forgot hand it no claims, and one swap of the document alone can follow another.
    """
    promised: dict[tuple[str, int], Note] = {}
    followed: dict[tuple[str, int], dict[int, str]] = {}
    count, broken = 0, []
    for note in evidence.noted(What.VOTED, What.ACKED, What.TRUSTED):
        where = (note.node, note.partition)
        if note.what is What.TRUSTED:
            _forget_the_unled(evidence, note, promised, followed)
            continue
        count += 1
        before = promised.setdefault(where, note)
        if note.epoch < before.epoch:
            broken.append(f"{note} after {before}")
        else:
            promised[where] = note
        first = followed.setdefault(where, {}).setdefault(note.epoch, note.whom)
        if first != note.whom:
            broken.append(f"{note}, after it was promised to {first}")
    return judge("C7 votes and promises are kept", count, broken)


def _forget_the_unled(evidence: Evidence, trusted: Note, promised: dict[tuple[str, int], Note],
                      followed: dict[tuple[str, int], dict[int, str]]) -> None:
    where = (trusted.node, trusted.partition)
    led = {write.document.epoch: write.document.leader for write in evidence.writes
           if write.partition == trusted.partition and write.time_ms <= trusted.time_ms}
    followed[where] = {epoch: whom for epoch, whom in followed.get(where, {}).items() if led.get(epoch) == whom}
    before = promised.pop(where, None)
    newest = max(followed[where], default=0)
    if before is not None and newest:
        promised[where] = attrs.evolve(before, epoch=newest, whom=followed[where][newest])


def claims_end_before_the_horizon(evidence: Evidence) -> Finding:
    """[X2] No claim that a client was told of, or renewed, ends after the horizon written by then. So an operator
    that has lost a cohort, and waits for its document's horizon, waits for every claim."""
    horizons: dict[int, list[tuple[int, int]]] = {}
    for write in evidence.writes:
        if write.document.horizon_ms:
            horizons.setdefault(write.partition, []).append((write.time_ms, write.document.horizon_ms))
    known = {partition: Newest(rows) for partition, rows in horizons.items()}
    ends = [(told.operation, told.task, told.end_ms) for told in evidence.told]
    ends += [(operation, task_id, end_ms) for operation, task_id, _, end_ms in granted_renewals(evidence)]
    asked = [(operation, end_ms, known[evidence.partition(task_id)]) for operation, task_id, end_ms in ends
             if evidence.partition(task_id) in known]
    broken = (f"ends at {end_ms} ms, the horizon is {horizon.before(operation.done_ms + 1)} ms: {operation}"
              for operation, end_ms, horizon in asked if end_ms > horizon.before(operation.done_ms + 1))
    return judge("X2 no claim ends after the horizon", len(asked), broken)
