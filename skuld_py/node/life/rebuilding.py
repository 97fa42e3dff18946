"""What ZooKeeper knew of a cluster, made anew from what its nodes keep with their data. A pure function.

* **Nobody who voted is passed over.** Of every cohort that may be a partition's newest, a majority of the data
  directories must be there: the newest that any of them knows of, and those of candidacies whose end they do not
  know. A cohort that followed was elected by a majority of one of these, so one directory of it knows of that.
* **Tokens rise.** No voter promises an epoch that is more than ``EPOCHS_AHEAD`` above the newest it knows to be
  told of. But where voters were given up, epochs went on from there among those who remained, and the others may
  be the ones whose directories are given. So far more is written off as spent: ``EPOCHS_LOST``.
* **No task gets two holders.** The first leaders read the claims of a majority that granted them, as ever. Where a
  candidacy is open, its cohort may have granted what the voters do not know; there nothing is granted before the
  last claim is over that any directory knows of. And the horizon is no nearer than that claim's end, so that who
  gives voters up after a restore waits for it.
* A barrier stays. Voters that were given up may have granted what no directory knows of; nothing is granted before
  the latest barrier that any directory remembers, and the horizon is no nearer. One further away than a horizon
  is named, since it may come from a wrong clock; it stays all the same, for a long lease may have asked for it.
* Who was a member then is none any more. Nodes whose directories are not given find no entry of themselves and
  count as forgotten: they fill from the others. Voters among them find one that is of no data that they may have,
  so none that lost its disk votes as if it remembered.

* **What is old is not taken for what is newest.** A backup says that it is one. A copy of a directory is known by
  what the others remember: that its node joined the log behind the position that it kept, or stood for an epoch
  that it never promised. Neither counts for a majority, and their nodes find another entry than theirs, so that
  they fill. Only where nothing newer is there, and the operator accepts that, one goes back to them, in those
  partitions alone: then nothing is granted before all is over that may have been granted since, and the epochs go
  on far above those that may have been. The other partitions' documents say that these nodes have promised what
  they cannot know, so that they fill there before they vote.

What operators wished (a freeze, solo) is gone, and so are entries of the log of the last moments, and the key by
which claims are proved: whoever works on a claim loses it when it is renewed next, and its task is done again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import attrs

from skuld_py.cluster.log.replica import Joins, Place, Replica
from skuld_py.cluster.log.ring import Ring
from skuld_py.config import Parameters
from skuld_py.errors import Refused
from skuld_py.model.document import Document, seats_of
from skuld_py.model.registration import Registration
from skuld_py.model.store import Store
from skuld_py.node.life.backup import Copied, load_copied
from skuld_py.node.life.identity import Identity, load_identity
from skuld_py.node.life.keepsake import load_keepsake
from skuld_py.partition.data.tables import end_of, prefix_of
from skuld_py.partition.leadership.barrier import load_barrier
from skuld_py.partition.leadership.promise import load_promise
from skuld_py.partition.leadership.quorum import has_majority, majority
from skuld_py.partition.leadership.standing import Standing, load_standing
from skuld_py.partition.leadership.suspicion import suspects

CLUSTER_KEY, NODE_KEY, PARAMETERS_KEY = b"cluster", b"node", b"parameters"
NOT_GIVEN = "not-given"
"""Registered as the data of a voter whose directory is not given: whatever it starts with is not that."""
EPOCHS_LOST = 1 << 20
"""So many epochs may have come that no directory knows of, since a copy was taken, say: one a second for twelve
days. 31 bits hold 2,000 times as many."""
SHOWN = 8
"""Nodes and partitions that are named one by one."""


@attrs.frozen
class Memory:
    """What a directory remembers of a partition. ``lapse_ms``: when the last claim that it knows of is over;
    ``candidate``: to whom it promised the newest epoch, as far as it knows; ``barrier_ms``: until when nothing was
    to be granted."""

    promised: int
    standing: Standing
    is_suspect: bool
    lapse_ms: int = 0
    candidate: str = ""
    barrier_ms: int = 0


@attrs.frozen
class Remains:
    """A data directory, as far as it matters here. ``place`` names it for people."""

    place: str
    cluster_id: str
    node: str
    fixed: Mapping[str, object]
    identity: Identity
    memories: Sequence[Memory]
    replica: Replica | None = None
    copied: Copied | None = None

    @property
    def position(self) -> int:
        """That of the log as it was kept."""
        return -1 if self.replica is None else self.replica.version


@attrs.frozen
class Return:
    """That it is accepted to go back to old copies. ``now_ms``: since 1970; ``horizon_ms``: how far ahead of that
    claims may have been granted."""

    now_ms: int
    horizon_ms: int


@attrs.frozen
class Rebuilt:
    """What is to be written into ZooKeeper. ``warnings``: what is not as it was, for people."""

    parameters: Parameters
    registrations: Mapping[str, Registration]
    documents: Mapping[int, Document]
    origin: Replica
    warnings: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[str]:
        """Those whose directories were given, sorted; the others that are registered may not be there at all."""
        return sorted(name for name, entry in self.registrations.items() if entry.incarnation != NOT_GIVEN)


def read_remains(store: Store, place: str) -> Remains:
    """What a store has to say; ``Refused`` when no node has served from it."""
    found = store.get_many("meta", [CLUSTER_KEY, NODE_KEY, PARAMETERS_KEY])
    identity = load_identity(store)
    if len(found) < 3 or identity is None:
        raise Refused("no_data", f"{place} is not the data directory of a node that has served: it does not say of"
                      " which cluster and node it is; leave it out", data=place)
    fixed = _object(found[PARAMETERS_KEY], place)
    partitions = fixed.get("partitions")
    count = partitions if type(partitions) is int and 0 < partitions <= 1 << 16 else 0
    return Remains(place, found[CLUSTER_KEY].decode(errors="replace"), found[NODE_KEY].decode(errors="replace"),
                   fixed, identity, memories_of(store, count), load_keepsake(store), load_copied(store))


def memories_of(store: Store, partitions: int) -> list[Memory]:
    """What a store remembers of each partition."""
    doubted = suspects(store, partitions)
    memories = []
    for partition in range(partitions):
        promise = load_promise(store, partition)
        memories.append(Memory(promise.epoch, load_standing(store, partition), partition in doubted,
                               _last_lapse_ms(store, partition), promise.candidate,
                               load_barrier(store, partition)))
    return memories


def _object(raw: bytes, place: str) -> dict[str, object]:
    try:
        fields = json.loads(raw)
    except ValueError:
        fields = None
    if not isinstance(fields, dict):
        raise Refused("no_data", f"{place}: its record of the cluster's parameters cannot be read; leave it out",
                      data=place)
    return fields


def _last_lapse_ms(store: Store, partition: int) -> int:
    prefix, last_ms = prefix_of(partition), 0
    for key, _ in store.walk("lease", prefix, end_of(prefix)):
        last_ms = int.from_bytes(key[2:10], "big")
    return last_ms


def rebuilt(name: str, remains: Sequence[Remains], claim_key: str, back: Return | None = None,
            moment: Callable[[int], str] = str, latest_ms: int = 0) -> Rebuilt:
    """The cluster ``name`` of these directories, with a new key to prove claims by. ``back``: given, one goes back
    to old copies where nothing newer is there. ``moment``: says a time. ``latest_ms``: given, the end of a horizon
    that was written just now; a barrier that is later is warned of. ``Refused`` when they are of different
    clusters, or too few."""
    _check_alike(name, remains)
    parameters = _parameters(name, remains[0], claim_key)
    old = outdated(remains, moment)
    is_back = bool(_lacking(parameters, remains, old)) and bool(old)
    if is_back and back is None:
        _check_enough(parameters, remains, {}, old)
        raise Refused("outdated", f"from: {'; '.join(old.values())}. Without newer ones, what was acknowledged"
                      " since is lost: give the directories that these nodes ran on last, or say --accept-loss")
    _check_enough(parameters, remains, {} if is_back else old, old)
    if is_back and back is not None:
        _check_far_enough(parameters, remains, back)
    documents, given_up = {}, []
    for partition in range(parameters.partitions):
        memories = {each.node: each.memories[partition] for each in remains}
        if any(memory.standing.epoch for memory in memories.values()):
            is_lost = not _has_kept(memories, old)
            given_up += [partition] * is_lost
            documents[partition] = _document(memories, {each.node: each.identity.incarnation for each in remains},
                                             parameters.skew_ms, back if is_lost else None, () if is_lost else old)
    registrations = {each.node: _registration(each, is_old=not is_back and each.node in old) for each in remains}
    absent_voters = {voter: attrs.evolve(_registration_of(voter), incarnation=NOT_GIVEN)
                     for document in documents.values() for voter in document.cohort if voter not in registrations}
    kept = [each.replica for each in remains if each.replica is not None]
    base = attrs.evolve(Replica.base(parameters), replicas=_copies(parameters, documents))
    origin = _origin(max(kept, key=lambda replica: replica.version, default=base), registrations)
    return Rebuilt(parameters, {**registrations, **absent_voters}, documents, origin,
                   (*_warnings(name, remains, origin, old, given_up, "" if back is None else moment(
                       back.now_ms + back.horizon_ms + parameters.skew_ms)),
                    *_far(documents, latest_ms + parameters.skew_ms, moment) * bool(latest_ms)))


def _copies(parameters: Parameters, documents: Mapping[int, Document]) -> int:
    """How many copies of each task are to be kept, where no directory kept the log, which may have changed that:
    as many as when the cluster was created, or as a partition has voters, if these are more. So none is given up
    by mistake; where the number was made smaller, an operator has to say so again."""
    return max(parameters.replicas, *(len(document.seats) for document in documents.values()), 0)


def _has_kept(memories: Mapping[str, Memory], old: Collection[str]) -> bool:
    """Whether what is newest of a partition is there without the old directories."""
    kept = [node for node, memory in memories.items() if node not in old and not memory.is_suspect]
    return all(has_majority(cohort, kept) for cohort in _cohorts(memories.values()))


def _warnings(name: str, remains: Sequence[Remains], origin: Replica, old: Mapping[str, str],
              given_up: Sequence[int], barrier: str) -> tuple[str, ...]:
    found = []
    if all(each.replica is None for each in remains):
        copies = "1 copy" if origin.replicas == 1 else f"{origin.replicas} copies"
        found.append("none of the directories had kept the coordination log (releases before did not): workflows,"
                     f" nodes taken out and raised rules are forgotten; run 'skuld cluster rules {name} --raise'"
                     f" again. It is to keep {copies} of each task; if that was another number, say"
                     f" 'skuld cluster replicas {name} NUMBER'")
    given = {each.node for each in remains}
    absent = sorted(origin.nodes.keys() - given)
    if absent:
        found.append(f"not given: {', '.join(absent[:SHOWN])}; started again they fill from the others")
    if given_up:
        which = f"{', '.join(map(str, given_up[:SHOWN]))}{', …' if len(given_up) > SHOWN else ''}"
        found.append(f"gone back to old copies in partitions {which}: {'; '.join(old.values())}. What was"
                     f" acknowledged there since is lost, and nothing is granted there before {barrier}, when"
                     " every claim is over that may have been granted since")
    elif old:
        found.append(f"not relied on: {'; '.join(old.values())}; started on them, their nodes fill from the others"
                     " first")
    return tuple(found)


def _far(documents: Mapping[int, Document], latest_ms: int, moment: Callable[[int], str]) -> tuple[str, ...]:
    """A barrier that a wrong clock or a hand has set far ahead stays in every directory, and no verb lifts it."""
    far = {partition: document.no_grant_before_ms for partition, document in documents.items()
           if document.no_grant_before_ms > latest_ms}
    if not far:
        return ()
    which = f"{', '.join(map(str, [*far][:SHOWN]))}{', …' if len(far) > SHOWN else ''}"
    return (f"nothing is granted in partitions {which} before {moment(max(far.values()))}, as their directories"
            " remember from when voters were given up. That is further away than --horizon. If no lease was that"
            " long, a clock was wrong then, or a hand: mend no_grant_before_ms in their documents in ZooKeeper"
            " before the nodes are started, and again after each restore",)


def outdated(remains: Sequence[Remains], moment: Callable[[int], str] = str) -> dict[str, str]:
    """Nodes whose directory is not the one that they ran on last, by what the others remember, and why."""
    newest = max((each.replica for each in remains if each.replica is not None),
                 key=lambda replica: replica.version, default=None)
    found = {}
    for each in remains:
        place = newest.nodes.get(each.node) if newest is not None and each.replica is not None else None
        if each.copied is not None:
            found[each.node] = f"{each.place} is a backup of {each.node} from {moment(each.copied.taken_ms)}"
        elif place is not None and place.member and place.since > each.position:
            found[each.node] = (f"{each.place} is an older copy: it kept the log up to position {each.position},"
                                f" and {each.node} joined at {place.since}")
        elif stood := _stood(each, remains):
            found[each.node] = f"{each.place} is an older copy: {each.node} {stood}"
    return found


def _stood(one: Remains, remains: Iterable[Remains]) -> str:
    """For which epoch a node has asked others, beyond all its directory knows of: it promises itself first. Where
    its memory is in doubt it may have forgotten that, and its directory is no older for it."""
    for other in remains:
        for partition, (mine, memory) in enumerate(zip(one.memories, other.memories, strict=True)):
            if memory.candidate == one.node and memory.promised > mine.promised and not mine.is_suspect:
                return (f"stood for epoch {memory.promised} of partition {partition}, as {other.place} shows, and"
                        f" it knows of epochs up to {mine.promised}")
    return ""


def _parameters(name: str, remains: Remains, claim_key: str) -> Parameters:
    try:
        return Parameters(name, remains.cluster_id, claim_key=claim_key, **{  # type: ignore[arg-type]
            field: remains.fixed[field] for field in ("partitions", "replicas", "skew_ms", "rules")})
    except (KeyError, TypeError) as problem:
        raise Refused("no_data", f"{remains.place}: its record of the cluster's parameters is not whole:"
                      f" {problem!r}", data=remains.place) from problem


def _check_alike(name: str, remains: Sequence[Remains]) -> None:
    first, nodes = remains[0], dict[str, str]()
    for each in remains:
        if each.cluster_id != first.cluster_id:
            raise Refused("other_cluster", f"from: {each.place} is of cluster {each.cluster_id}, and {first.place}"
                          f" of {first.cluster_id}; give the directories of one", data=each.place)
        fields = sorted(field for field in {*each.fixed, *first.fixed} - {"cluster"}
                        if each.fixed.get(field) != first.fixed.get(field))
        if fields or len(each.memories) != len(first.memories):
            raise Refused("other_cluster", f"from: {each.place} and {first.place} do not agree on the cluster's"
                          f" {', '.join(fields)}", data=each.place)
        if each.node in nodes:
            raise Refused("twice", f"from: {each.place} and {nodes[each.node]} are both of node {each.node}; give"
                          " the one that it ran on last", data=each.place)
        known = each.fixed.get("cluster", name)
        if known != name:
            raise Refused("other_cluster", f"NAME: {each.place} is of the cluster named {known}", data=each.place)
        nodes[each.node] = each.place


def _check_enough(parameters: Parameters, remains: Sequence[Remains], left_out: Collection[str],
                  old: Mapping[str, str]) -> None:
    """Refuse without a majority of every cohort that may be the newest of its partition."""
    lacking = _lacking(parameters, remains, left_out)
    if lacking:
        words = "; ".join(f"{need} more of {', '.join(absent)} (partitions {', '.join(map(str, which[:SHOWN]))}"
                          f"{', …' if len(which) > SHOWN else ''})"
                          for (need, absent), which in [*lacking.items()][:SHOWN])
        why = f" ({'; '.join(old.values())})" if old else ""
        raise Refused("too_few", f"from: what was acknowledged may be on directories that are not given; give"
                      f" those of {words}{why}")


def _check_far_enough(parameters: Parameters, remains: Iterable[Remains], back: Return) -> None:
    """Refuse where a backup shows that claims last for longer than it is waited. One that was granted for as long
    since would go on beside the next claim of its task."""
    for each in remains:
        if each.copied is not None:
            ends_ms = max((memory.lapse_ms for memory in each.memories), default=0) - parameters.skew_ms
            longest_ms = ends_ms - each.copied.taken_ms
            if longest_ms > back.horizon_ms:
                raise Refused("too_near", f"horizon: when {each.place} was taken, a claim went on for"
                              f" {-(-longest_ms // 60_000)} minutes more, and claims as long may have been granted"
                              " since: say --horizon with the longest lease that is asked for, at least with"
                              " that")


def _lacking(parameters: Parameters, remains: Sequence[Remains],
             left_out: Collection[str]) -> dict[tuple[int, tuple[str, ...]], list[int]]:
    """How many more of which nodes are needed, and for which partitions."""
    lacking: dict[tuple[int, tuple[str, ...]], list[int]] = {}
    for partition in range(parameters.partitions):
        memories = {each.node: each.memories[partition] for each in remains}
        trusted = [node for node, memory in memories.items() if not memory.is_suspect and node not in left_out]
        for cohort in _cohorts(memories.values()):
            if not has_majority(cohort, trusted):
                absent = tuple(sorted(name for name in cohort if name not in trusted))
                need = majority(len(cohort)) - (len(cohort) - len(absent))
                lacking.setdefault((need, absent), []).append(partition)
    return lacking


def _cohorts(memories: Iterable[Memory]) -> list[tuple[str, ...]]:
    """The cohorts that may be the newest: the newest known, and open candidacies since."""
    memories = list(memories)
    newest = _newest(memories)
    open_ = dict.fromkeys(cohort for memory in memories for at, cohort in memory.standing.pending
                          if at > newest.epoch)
    return [cohort for cohort in (newest.cohort, *open_) if cohort]


def _newest(memories: Iterable[Memory]) -> Standing:
    return max((memory.standing for memory in memories), key=lambda standing: (standing.epoch, standing.era))


def _document(memories: Mapping[str, Memory], incarnations: Mapping[str, str], skew_ms: int,
              lost: Return | None, forgetful: Collection[str]) -> Document:
    """``lost``: given, one goes back to old copies. ``forgetful``: who starts on one, and has to fill first."""
    newest = _newest(memories.values())
    epoch = max(max(memory.promised, memory.standing.epoch) for memory in memories.values())
    is_open = len(_cohorts(memories.values())) > 1
    lapse_ms = max(memory.lapse_ms for memory in memories.values())
    is_barred = lost is not None or (is_open and lapse_ms > 0)
    if lost is not None:
        lapse_ms = max(lapse_ms, lost.now_ms + lost.horizon_ms)
    barrier_ms = max(memory.barrier_ms for memory in memories.values())
    spent = epoch + EPOCHS_LOST
    return Document(epoch, seats=seats_of(newest.cohort, incarnations), era=epoch, spent=spent,
                    promises={voter: spent for voter in newest.cohort if voter in forgetful},
                    horizon_ms=max(lapse_ms, barrier_ms - skew_ms),
                    no_grant_before_ms=max(barrier_ms, lapse_ms + skew_ms if is_barred else 0),
                    write_id=f"restored-{epoch}", cause="restored from data directories" if lost is None else
                    "restored from old copies")


def _registration(remains: Remains, *, is_old: bool) -> Registration:
    """One that a node started on this directory fits, or, where it is old, does not fit by its starts."""
    return attrs.evolve(_registration_of(remains.node), incarnation=remains.identity.incarnation,
                        starts=remains.identity.starts + is_old)


def _registration_of(node: str) -> Registration:
    host, _, port = node.rpartition(":")
    return Registration(host, int(port) if port.isdecimal() else 0)


def _origin(replica: Replica, registrations: Iterable[str]) -> Replica:
    """The newest replica that was kept, without the lives that were in it. Its nodes stay placed."""
    nodes = {name: attrs.evolve(place, member="") for name, place in replica.nodes.items()}
    for name in registrations:
        nodes.setdefault(name, Place(since=replica.version))
    lives = {*replica.members, *replica.joiners, *replica.joins.observers}
    return attrs.evolve(
        replica, members={}, roster=(), ring=Ring(), joins=Joins(), joiners={}, slots={}, parked={},
        nodes=nodes, left={**replica.left, **dict.fromkeys(sorted(lives), replica.version)})
