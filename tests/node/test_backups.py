"""A copy of a store is never taken for the disk that its node runs on; neither is any other old directory."""

from __future__ import annotations

import attrs
import pytest

from node.machines import Machines
from node.test_rebuilding import COHORT, FIXED, KEY, of_all, remains
from skuld_py.cluster.log.replica import Place, Replica
from skuld_py.config import Parameters
from skuld_py.errors import Refused
from skuld_py.model.events import DocumentRead
from skuld_py.model.memory_store import MemoryStore
from skuld_py.model.registration import Registration
from skuld_py.node.life.backup import Copied, load_copied, mark_copy
from skuld_py.node.life.identity import Start, Verdict, begin_start
from skuld_py.node.life.rebuilding import EPOCHS_LOST, Memory, Return, rebuilt
from skuld_py.node.life.start import prepare
from skuld_py.partition.leadership.promise import EPOCHS_AHEAD
from skuld_py.partition.leadership.standing import Standing
from skuld_py.partition.leadership.suspicion import suspects

PARTITIONS = 2
COPIED = Copied(5_000, "data", 2)
BACK = Return(100_000, 7_000)


def entry_of(start: Start) -> Registration:
    return Registration("h", 1, start.identity.incarnation, start.identity.starts)


def served() -> tuple[MemoryStore, Registration]:
    """A store on which a node runs, and its entry."""
    store = MemoryStore()
    start = begin_start(store, None, "data", PARTITIONS)
    store.commit()
    return store, entry_of(start)


def test_a_copy_of_the_newest_start_is_suspect_when_its_node_starts_on_it_and_no_copy_any_more_then() -> None:
    store, entry = served()
    assert mark_copy(store, "copy", 9_000) == Copied(9_000, "data", 1) == load_copied(store)
    assert mark_copy(store, "copy of it", 10_000).taken_ms == 9_000
    start = begin_start(store, entry, "fresh", PARTITIONS)
    assert start.verdict is Verdict.WIPED and not start.is_empty
    assert list(suspects(store, PARTITIONS)) == [0, 1] and "is a backup" in start.alarms[0]
    assert load_copied(store) is None


def test_a_copy_of_which_the_registry_knows_nothing_is_suspect_too() -> None:
    store, _ = served()  # its node was never a member: a disk like it would be fresh
    mark_copy(store, "copy", 9_000)
    assert begin_start(store, None, "fresh", PARTITIONS).verdict is Verdict.FORGOTTEN


def test_a_copy_that_a_cluster_was_restored_from_is_the_disk_once_and_rolled_back_the_second_time() -> None:
    store, _ = served()
    mark_copy(store, "copy", 9_000)
    store.commit()
    once = store.snapshot()
    start = begin_start(store, Registration("h", 1, "copy", 1), "fresh", PARTITIONS)
    assert (start.verdict, start.identity.starts) == (Verdict.SAME, 2) and not suspects(store, PARTITIONS)
    store.commit()
    store.restore(once)
    assert begin_start(store, entry_of(start), "fresh", PARTITIONS).verdict is Verdict.ROLLED_BACK


def test_where_there_is_one_copy_of_each_task_a_node_does_not_start_on_a_backup() -> None:
    store, entry = served()
    mark_copy(store, "copy", 9_000)
    store.commit()
    with pytest.raises(Refused, match="skuld cluster restore c --accept-loss"):
        prepare(store, entry, "fresh", Parameters("c", "id", PARTITIONS, 1))


def test_nothing_is_copied_of_a_directory_on_which_no_node_has_run() -> None:
    with pytest.raises(Refused, match="no node has served"):
        mark_copy(MemoryStore(), "copy", 9_000)


def test_a_backup_beside_a_majority_is_not_relied_on_and_its_node_fills() -> None:
    made = rebuilt("c", [*of_all()[:2], remains("h:3", copied=COPIED)], KEY, moment=lambda ms: f"at {ms}")
    assert "not relied on: /h:3 is a backup of h:3 from at 5000" in made.warnings[-1]
    assert made.registrations["h:3"].starts == 3 and made.registrations["h:1"].starts == 2
    assert made.documents[0].no_grant_before_ms == 0


def test_one_goes_back_to_backups_by_consent_and_behind_all_that_may_have_been_granted_since() -> None:
    given = [remains("h:1"), remains("h:3", copied=COPIED)]
    with pytest.raises(Refused, match=r"/h:3 is a backup.* say --accept-loss") as refused:
        rebuilt("c", given, KEY)
    assert refused.value.code == "outdated"
    made = rebuilt("c", given, KEY, BACK)
    document = made.documents[0]
    assert (document.spent, document.horizon_ms, document.no_grant_before_ms) == (
        4 + EPOCHS_LOST, 107_000, 107_500)
    assert "is lost" in made.warnings[-1] and made.registrations["h:3"].starts == 2


def test_one_goes_back_behind_claims_as_long_as_a_backup_shows() -> None:
    """With leases of hours and a horizon of half an hour tasks had two holders."""
    memory = Memory(4, Standing(4, 1, COHORT), False, 5_000 + 7_000 + 500)
    given = [remains("h:1"), remains("h:3", copied=COPIED, memories=(memory,))]
    assert rebuilt("c", given, KEY, BACK).documents[0].no_grant_before_ms == 107_500
    longer = attrs.evolve(given[1], memories=(attrs.evolve(memory, lapse_ms=memory.lapse_ms + 1),))
    with pytest.raises(Refused, match="horizon: when /h:3 was taken, a claim went on for 1 minutes more"):
        rebuilt("c", [given[0], longer], KEY, BACK)
    assert rebuilt("c", [given[0], longer], KEY, attrs.evolve(BACK, horizon_ms=7_001)).documents[0].epoch == 4
    assert rebuilt("c", [*of_all()[:2], longer], KEY, BACK).documents[0].no_grant_before_ms == 0


def test_one_goes_back_where_nothing_newer_is_there_and_in_no_other_partition() -> None:
    names = ("h:1", "h:2", "h:3", "h:4", "h:5")
    memories = tuple(Memory(4, Standing(4, 1, cohort), False) for cohort in (names[:3], names[2:]))
    fixed = {**FIXED, "partitions": 2}
    given = [remains(node, memories=memories, fixed=fixed, copied=COPIED if node in names[2:] else None)
             for node in names]
    with pytest.raises(Refused, match="say --accept-loss"):
        rebuilt("c", given, KEY)
    made = rebuilt("c", given, KEY, BACK)
    kept, lost = made.documents.values()
    assert (kept.spent, kept.no_grant_before_ms, kept.promises) == (4 + EPOCHS_LOST, 0, {"h:3": 4 + EPOCHS_LOST})
    assert (lost.spent, lost.no_grant_before_ms, lost.promises) == (4 + EPOCHS_LOST, 107_500, {})
    assert "gone back to old copies in partitions 1: /h:3 is a backup" in made.warnings[-1]


def test_who_starts_on_a_backup_fills_where_the_newest_is_there_before_it_votes() -> None:
    machines = Machines(partitions=1)
    machines.pass_time(2_000)
    document = machines.documents[0][1]
    name = next(each for each in document.cohort if each != document.leader)
    vnode = machines.nodes[name].view.vnodes[0]
    told = attrs.evolve(document, spent=document.epoch + EPOCHS_AHEAD,
                        promises={name: document.epoch + EPOCHS_AHEAD})
    machines.give(name, DocumentRead(0, 99, told))
    assert "is an old copy" in vnode.suspicion and not vnode.is_trusted


def test_a_partition_in_doubt_makes_no_older_copy_of_its_directory() -> None:
    standing, sound = Standing(4, 1, COHORT), Memory(4, Standing(4, 1, COHORT), False)
    fixed = {**FIXED, "partitions": 2}
    told = remains("h:1", fixed=fixed, memories=(Memory(6, standing, False, candidate="h:3"), sound))
    doubtful = remains("h:3", fixed=fixed, memories=(Memory(0, Standing(), True), sound))
    second = remains("h:2", fixed=fixed, memories=(sound, Memory(0, Standing(), True)))
    made = rebuilt("c", [told, second, doubtful], KEY)
    assert "older copy" not in "".join(made.warnings)


def test_too_few_are_too_few_also_by_consent() -> None:
    with pytest.raises(Refused, match="1 more of h:1, h:2"):
        rebuilt("c", [remains("h:3", copied=COPIED)], KEY, BACK)


def test_an_older_copy_is_known_by_the_log_of_the_others() -> None:
    newest = Replica(version=9, nodes={"h:3": Place("h:3~2", 7), "h:2": Place("", 8)})
    before = Replica(version=6)
    made = rebuilt("c", [remains("h:1", replica=newest), remains("h:2", replica=before),
                         remains("h:3", replica=before)], KEY)
    assert made.warnings[-1].startswith("not relied on: /h:3 is an older copy: it kept the log up to position 6,")
    assert "/h:2" not in made.warnings[-1]
    seen = attrs.evolve(before, version=7)
    assert not rebuilt("c", [remains("h:1", replica=newest), remains("h:2", replica=before),
                             remains("h:3", replica=seen)], KEY).warnings


def test_an_older_copy_is_known_by_the_votes_that_its_node_asked_for() -> None:
    standing = Standing(4, 1, COHORT)
    told = remains("h:1", memories=(Memory(6, standing, False, candidate="h:3"),))
    made = rebuilt("c", [told, remains("h:2"), remains("h:3", 5)], KEY)
    assert "stood for epoch 6 of partition 0, as /h:1 shows, and it knows of epochs up to 5" in made.warnings[-1]
    with pytest.raises(Refused, match="older copy"):
        rebuilt("c", [told, remains("h:3", 5)], KEY)
