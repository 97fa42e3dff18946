"""Tasks that the nodes keep though their page was archived: each stays in one live file until it is gone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import attrs
import pyarrow.parquet as pq
import pytest

from archive.ended import NOON_MS, plain
from archive.test_archiver import archiver, refusing
from archive.test_layout import ids_of, kept, rows_of
from archive.world import Stop, World, world
from skuld_py.archive import arrow_store, compaction
from skuld_py.archive.archiver import Given, Question
from skuld_py.archive.arrow_files import digests_of
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.arrow_store import ArrowStore
from skuld_py.archive.live import live
from skuld_py.archive.rows import DAY_MS, Rows, day_of, row_of
from skuld_py.archive.source import ClusterSource
from skuld_py.client.archiving import Page
from skuld_py.errors import Refused, Uncertain
from skuld_py.model.body import Header, encode_body
from skuld_py.model.history import HISTORY_HEAD
from skuld_py.model.ids import to_text
from skuld_py.model.task import Task


@attrs.define(slots=False)
class Holding(World):
    """A cluster in which others come to need some tasks, once their page is written; ``held`` are neither deleted
    nor offered."""

    wanted: list[bytes] = attrs.field(factory=list)
    held: set[bytes] = attrs.field(factory=set)
    store: object = None

    def collectable(self, question: Question) -> Page:
        every = self.tasks
        self.tasks = {partition: [task for task in tasks if bytes(task.id) not in self.held]
                      for partition, tasks in every.items()}
        try:
            return super().collectable(question)
        finally:
            self.tasks = every

    def discard(self, page: Page) -> int:
        before = self.tasks[page.partition]
        count = super().discard(page)
        left = [*self.tasks[page.partition]]
        self.tasks[page.partition] = [task for task in before if task in left or bytes(task.id) in self.held]
        return count - (len(self.tasks[page.partition]) - len(left))

    def write(self, batch: str, given: Sequence[Given]) -> int:
        assert isinstance(self.store, ArrowStore)
        tasks = [self.known[record[0]] for record, _ in given]
        count = self.store.write(f"r{len(self.rows)}-{batch}", [
            row_of(task, digest=digest) for task, (_, digest) in zip(tasks, given, strict=True)])
        self.rows += tasks
        self.held.update(self.wanted)
        return count

    def begin(self) -> None:
        self.store.begin()  # type: ignore[attr-defined]

    def settled(self, ids: bytes) -> None:
        self.store.settled(ids)  # type: ignore[attr-defined]

    def end(self, is_whole: bool, are_gone: Callable[[Sequence[str]], bool]) -> None:
        assert is_whole
        self.store.end(is_whole, are_gone)  # type: ignore[attr-defined]


def test_what_others_come_to_need_before_it_goes_stands_in_one_file_when_it_goes_at_last(tmp_path: Path) -> None:
    tasks = [plain(number) for number in range(4)]
    over = Holding({0: [*tasks]}, 2, ahead=2, wanted=[bytes(tasks[0].id)])

    def run() -> None:
        with Site.held(tmp_path) as site:
            over.store = site.store
            assert archiver(over).run(wait_s=0).is_done
    run()
    assert over.tasks[0] == tasks[:1] and kept(tmp_path) == ids_of(tasks)
    run()
    over.held.clear()
    over.wanted.clear()
    run()

    assert over.tasks[0] == [] and kept(tmp_path) == ids_of(tasks)
    run()
    assert not any(file.is_open for file in live(tmp_path).files)


def test_what_an_earlier_process_wrote_and_did_not_confirm_does_not_count_as_written_again(tmp_path: Path) -> None:
    over = Holding({0: [plain(number) for number in range(6)]}, 2, ahead=2)
    over.failing["archived"] = [Stop()]
    with Site.held(tmp_path) as site, pytest.raises(Stop):
        over.store = site.store
        archiver(over).run(wait_s=0)
    known = len(kept(tmp_path))
    over.tasks[0].append(plain(6))
    over.known[bytes(plain(6).id)] = plain(6)

    with Site.held(tmp_path) as site:
        over.store = site.store
        report = archiver(over).run(wait_s=0)

    assert (report.written, report.deleted, report.is_done) == (7 - known, 7, True) and known > 0
    assert kept(tmp_path) == ids_of([plain(number) for number in range(7)])


def test_where_all_but_one_in_the_way_are_there_already_that_one_is_named() -> None:
    over = world(4, size=4)
    refused, write = refusing(over, 2), over.write
    over.write = lambda batch, given: write(batch, given) * 0  # type: ignore[method-assign]

    report = archiver(over).run(wait_s=0)

    assert (report.refused, report.written, report.batches) == (refused, 0, 0)


def test_nodes_that_do_not_answer_have_what_they_are_asked_for() -> None:
    asked: list[int] = []

    class Nodes(ClusterSource):
        def __init__(self, answers: list[object]) -> None:
            self._answers = answers
            self._client = self

        def get_many(self, ids: Sequence[str]) -> Sequence[str]:
            asked.append(len(ids))
            return ids

        def _all(self, calls: Sequence[Callable[[], object]]) -> list[object]:  # type: ignore[override]
            for call in calls:
                call()
            return [self._answers.pop(0) for _ in calls]
    ids = ["x"] * 100

    assert Nodes([[]] * 20).are_gone(ids) and sum(asked) == 100 and max(asked) <= 12
    assert not Nodes([[]] * 8 + [[plain(1)]]).are_gone(ids)
    assert not Nodes([[], Uncertain("timeout", "no answer")] + [[]] * 20).are_gone(ids)
    assert Nodes([]).are_gone([])


def test_pages_behind_one_that_cannot_be_written_are_awaited_while_replicas_are_asked() -> None:
    over = world(8, ahead=2)
    refused, collectable = refusing(over, 0), over.collectable

    def late(question: Question) -> Page:
        """The third page, and those behind it, take a moment."""
        is_late = question.after >= 2 and over.now_s < 1
        return Page(question.partition, (), True, due_ms=100) if is_late else collectable(question)
    over.collectable = late  # type: ignore[method-assign]

    report = archiver(over).run(wait_s=10)

    assert (report.refused, report.deleted) == (refused, 6)


def test_a_task_that_another_deleted_while_its_long_log_was_read_ends_no_run() -> None:
    over = world(2, 1)
    over.failing["collectable"] = [Refused("no_such_task", "id: no task 000006cvl5s5o")]

    report = archiver(over).run(wait_s=10)

    assert (report.deleted, report.is_done) == (3, True)


def test_of_a_page_that_went_in_part_nothing_counts_as_deleted() -> None:
    over = world(4)
    archived = over.archived
    over.archived = lambda pages: [  # type: ignore[method-assign]
        count - 1 if at == 0 and len(over.deleted) <= 2 else count for at, count in enumerate(archived(pages))]

    report = archiver(over).run(wait_s=0)

    assert (report.deleted, over.settled_ids) == (3, over.deleted[2:])


def test_a_number_that_no_column_has_is_refused(tmp_path: Path) -> None:
    record = (bytes(plain(1).id), encode_body(Header("q").encode(), b""), HISTORY_HEAD.pack(5, 1 << 63, 0), ())
    with Site.held(tmp_path) as site, pytest.raises(Refused, match="a record cannot be read") as refused:
        site.store.begin()
        Rows(site.store, "prod").write("b", [(record, 1)])
    assert refused.value.code == "not_written"


def test_a_record_that_cannot_be_read_is_refused_and_so_holds_up_its_page_alone() -> None:
    written: list[int] = []
    store = SimpleNamespace(begin=None, settled=None, end=None,
                            write=lambda batch, rows: written.append(len(rows)) or len(rows))
    good, bad = ((bytes(19) + bytes([number]), encode_body(Header("q").encode(), b""), history, ())
                 for number, history in enumerate((b"", b"\xff" * 25)))

    with pytest.raises(Refused, match="a record cannot be read: history record is cut short"):
        Rows(store, "c").write("b", [(good, 1), (bad, 2)])  # type: ignore[arg-type]
    Rows(store, "c").write("b", [(good, 1)])  # type: ignore[arg-type]
    assert written == [1]


# -- files that go meanwhile ----------------------------------------------------------------------------------


def compacted_by_another(root: Path, tasks: list[Task]) -> None:
    """The files that have these are closed, compacted and off the disk."""
    with Site.held(root) as other:
        other.store.begin()
        other.store.end(True)
        other.store.begin()
        other.store.write("small", rows_of([plain(99)]))
        other.store.settled(bytes(plain(99).id))
        other.store.end(False)
        assert other.compact(grace_ms=-1).unlinked >= 2
    assert kept(root) == ids_of([*tasks, plain(99)])


def test_a_run_that_only_waited_ends_well_where_others_have_compacted_meanwhile(tmp_path: Path) -> None:
    tasks = [plain(number) for number in range(4)]
    with Site.held(tmp_path) as earlier:
        earlier.store.begin()
        earlier.store.write("a", rows_of(tasks))
    with Site.held(tmp_path) as site:
        site.store.begin()
        compacted_by_another(tmp_path, tasks)

        site.store.end(True)


def test_a_file_that_goes_while_it_is_looked_at_is_looked_for_where_it_went(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [plain(number) for number in range(4)]

    def overtaken(path: Path, among: Sequence[str] = ()) -> list[tuple[str, str]]:
        monkeypatch.setattr(arrow_store, "digests_of", digests_of)
        compacted_by_another(tmp_path, tasks)
        return digests_of(path, among)
    with Site.held(tmp_path) as site, Site.held(tmp_path) as earlier:
        assert site.archive
        site.store.begin()
        earlier.store.begin()
        earlier.store.write("a", rows_of(tasks))
        monkeypatch.setattr(arrow_store, "digests_of", overtaken)

        site.store.write("b", rows_of([*tasks, plain(50)]))

    assert kept(tmp_path) == ids_of([*tasks, plain(50), plain(99)])


def test_a_file_that_is_lost_ends_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Site.held(tmp_path) as earlier:
        earlier.store.begin()
        earlier.store.write("a", rows_of([plain(1)]))
    path, = live(tmp_path).paths
    path.unlink()
    looked: list[Path] = []
    monkeypatch.setattr(arrow_store, "digests_of", lambda path: looked.append(path) or digests_of(path))
    with Site.held(tmp_path) as site, pytest.raises(Refused, match=f"root: {path} is not there"):
        site.store.begin()
    assert looked == [path]


# -- large files ----------------------------------------------------------------------------------------------


@pytest.fixture
def large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """A compacted file of several row groups, which is larger than what is learnt whole."""
    tasks = [plain(number) for number in range(60)]
    with Site.held(tmp_path) as site:
        site.store.begin()
        for number in range(0, 60, 20):
            site.store.write(f"b{number}", rows_of(tasks[number : number + 20]))
        site.store.settled(b"".join(bytes(task.id) for task in tasks))
        site.store.end(is_whole=False)
        monkeypatch.setattr(compaction, "RANGE_BYTES", 10_000)
        assert site.compact(grace_ms=0).into == 1
    monkeypatch.setattr(arrow_store, "LEARNED_ROWS_MAX", 10)
    return tasks


def test_a_task_goes_out_of_a_large_file_a_row_group_at_a_time(tmp_path: Path, large: list[Task]) -> None:
    path, = live(tmp_path).paths
    groups = pq.read_metadata(path).num_row_groups
    assert groups > 2
    new = plain(100, at_ms=NOON_MS)
    with Site.held(tmp_path) as site:
        site.store._began = -1  # as if the file had come meanwhile
        site.store.begin()
        site.store.write("c", [*rows_of(large[30:31], digest=6), *rows_of([new])])

    assert kept(tmp_path) == ids_of([*large, new])
    found = {row["id"]: row["digest"] for path in live(tmp_path).paths
             for row in pq.read_table(path, partitioning=None).to_pylist()}
    assert found[to_text(large[30].id)] == f"{6:016x}" and found[to_text(large[29].id)] == f"{5:016x}"
    assert max(pq.read_metadata(path).num_row_groups for path in live(tmp_path).paths) >= groups - 1


def test_of_a_large_file_is_learnt_what_a_batch_has_and_no_more(tmp_path: Path, large: list[Task]) -> None:
    with Site.held(tmp_path) as site:
        site.store._began = -1
        site.store.begin()
        site.store.write("c", rows_of([large[0], large[-1]]))
        assert {*site.store._places} == {*ids_of([large[0], large[-1]])}

    assert kept(tmp_path) == ids_of(large)


@pytest.fixture
def taken_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Two large files which are open: nobody knows of the tasks of an earlier layout whether they are deleted."""
    tasks = [plain(number) for number in range(60)]
    with Site.held(tmp_path) as site:
        site.store.begin()
        for number, queue in ((0, "one"), (30, "two")):
            rows = rows_of(tasks[number : number + 30])
            site.store.write(f"b{number}", [(row[0], queue, *row[2:]) for row in rows])
    monkeypatch.setattr(arrow_store, "LEARNED_ROWS_MAX", 10)
    return tasks


def test_a_task_of_a_large_file_of_which_nobody_knows_whether_it_is_deleted_is_offered_later_and_stands_once(
        tmp_path: Path, taken_over: list[Task]) -> None:
    needed = taken_over[20]

    def run(left: list[Task], offered: list[Task]) -> list[bool]:
        with Site.held(tmp_path) as site:
            site.store.begin()
            if offered:
                site.store.write("later", rows_of(offered))
            site.store.end(is_whole=True, are_gone=lambda ids: {*ids}.isdisjoint(ids_of(left)))
        return [file.is_open for file in live(tmp_path).files]

    assert sorted(run([needed], [])) == [False, True]
    run([], [needed])
    assert kept(tmp_path) == ids_of(taken_over)
    assert not any(run([], []))


def by_tens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups have ten tasks each, and a run asks for two of one file."""
    monkeypatch.setattr(arrow_store, "ASKED_ROWS_MAX", 15)
    monkeypatch.setattr(arrow_store, "ids_by_groups", lambda path, first: iter(
        [[task_id for task_id, _ in digests_of(path)][at : at + 10] for at in range(0, 30, 10)][first:]))


@pytest.mark.parametrize("needed", [15, 45])
def test_a_large_file_of_which_nodes_have_a_task_keeps_no_other_open_though_each_run_is_a_process(
        tmp_path: Path, taken_over: list[Task], monkeypatch: pytest.MonkeyPatch, needed: int) -> None:
    by_tens(monkeypatch)
    for _ in range(64):
        with Site.held(tmp_path) as site:
            site.store.begin()
            site.store.end(True, {*ids_of(taken_over[needed : needed + 1])}.isdisjoint)

    assert [file.is_open for file in live(tmp_path).files] == [needed < 30, needed >= 30]


def test_nodes_are_asked_for_row_groups_of_some_large_files_at_a_run_and_on_from_where_they_had_a_task(
        tmp_path: Path, taken_over: list[Task], monkeypatch: pytest.MonkeyPatch) -> None:
    by_tens(monkeypatch)
    monkeypatch.setattr("secrets.randbelow", lambda most: 0)
    asked: list[str] = []
    with Site.held(tmp_path) as site:
        def run(left: list[Task]) -> list[str]:
            def are_gone(ids: Sequence[str]) -> bool:
                asked.extend(ids)
                return {*ids}.isdisjoint(ids_of(left))
            asked.clear()
            site.store.begin()
            site.store.end(True, are_gone)
            return [*asked]

        assert run(taken_over[15:16]) == ids_of(taken_over[:20])
        assert run(taken_over[15:16]) == ids_of(taken_over[10:20] + taken_over[30:])
        assert run([]) == ids_of(taken_over[10:30])
        assert run([]) == []


def test_who_stands_by_remembers_only_what_is_not_known_to_be_gone(tmp_path: Path) -> None:
    tasks, counts = [plain(number) for number in range(24)], list[int]()
    with Site.held(tmp_path) as site, Site.held(tmp_path) as other:
        for number in range(8):
            part = tasks[number * 3 : number * 3 + 3]
            site.store.begin()
            site.store.write(f"b{number}", rows_of(part))
            other.store.begin()  # while the file is open
            site.store.settled(b"".join(bytes(task.id) for task in part))
            site.store.end(is_whole=True)
            other.store.end(is_whole=True)
            counts += [len(site.store._places), len(other.store._places)]
        other.store.begin()
        assert not site.store._left and not other.store._left

    assert max(counts) <= 3 * (arrow_store.KEPT_BATCHES + 2) < len(tasks)


def test_a_page_that_is_on_its_way_is_known_however_many_parts_the_batch_before_it_has(tmp_path: Path) -> None:
    """It was read before another archiver wrote it, and had it deleted; a task in the way has a batch halved."""
    late, tasks = plain(35), [plain(number) for number in range(8)]
    with Site.held(tmp_path) as site, Site.held(tmp_path) as other:
        assert site.archive
        for each in (site, other):
            each.store.begin()
        other.store.write("o", rows_of([late]))
        other.store.settled(bytes(late.id))
        other.store.end(is_whole=False)
        for number, task in enumerate(tasks):
            site.store.write(f"b{number}", rows_of([task]))

        assert site.store.write("c", rows_of([late])) == 0
    assert sorted(kept(tmp_path)) == sorted(ids_of([late, *tasks]))


def test_a_long_run_forgets_what_was_deleted_some_batches_ago(tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_store, "BATCH_ROWS", 3)
    tasks, counts = [plain(number) for number in range(30)], list[int]()
    with Site.held(tmp_path) as site:
        site.store.begin()
        for number in range(10):
            part = tasks[number * 3 : number * 3 + 3]
            site.store.write(f"b{number}", rows_of(part))
            site.store.settled(b"".join(bytes(task.id) for task in part))
            counts.append(len(site.store._places))
    assert max(counts) <= 3 * (arrow_store.KEPT_BATCHES + 2) < len(tasks)


def test_what_a_batch_took_of_memory_is_given_back_behind_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given_back: list[int] = []
    pool = SimpleNamespace(release_unused=lambda: given_back.append(len(live(tmp_path).files)))
    with Site.held(tmp_path) as site:
        site.store.begin()
        monkeypatch.setattr("pyarrow.default_memory_pool", lambda: pool)
        for number in range(3):
            site.store.write(f"b{number}", rows_of([plain(number)]))

    assert given_back == [1, 2, 3]


@pytest.mark.parametrize("is_merged", [False, True])
def test_tasks_of_which_nobody_knows_when_they_ended_are_kept_so_long_from_when_they_were_written(
        tmp_path: Path, is_merged: bool) -> None:
    """They were asked for long ago, and may have ended yesterday."""
    undated = [attrs.evolve(plain(number, state="dead"), claims=(), completed_ms=None, completed_token=None,
                            result=None, death="dep_failed") for number in range(2)]
    newest, written_ms = plain(9, at_ms=NOON_MS + 9 * DAY_MS), NOON_MS + 5 * DAY_MS

    def age() -> None:
        for path in (tmp_path / "files" / day_of(NOON_MS)).rglob("*.parquet"):
            os.utime(path, (written_ms / 1000, written_ms / 1000))
    with Site.held(tmp_path) as site:
        for number, task in enumerate([*undated, plain(5, at_ms=NOON_MS)]):
            site.store.write(f"b{number}", rows_of([task]))
        site.store.write("new", rows_of([newest]))
        site.store.settled(b"".join(bytes(task.id) for task in (*undated, plain(5, at_ms=NOON_MS), newest)))
        site.store.end(True, lambda ids: True)
        if is_merged:
            site.compact()
        age()
        assert site.compact(keep_days=6, grace_ms=0).dropped == (0 if is_merged else 1)
        assert {*ids_of([*undated, newest])} <= {*kept(tmp_path)}
        age()
        site.compact(keep_days=3)
    assert kept(tmp_path) == ids_of([newest])
