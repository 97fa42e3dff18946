"""The order of archiving, against a cluster and a place that note what is done to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import attrs
import pytest

from archive.ended import plain
from archive.world import PARTITIONS, Stop, World, world
from skuld_py.archive import archiver as archiving
from skuld_py.archive.archiver import Archiver, Given, Question, Report
from skuld_py.archive.pacing import Yielding
from skuld_py.client.archiving import Page
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model.ids import ID_BYTES


def archiver(over: World, **more: object) -> Archiver:
    names = iter(range(1_000))
    return Archiver(over, over, PARTITIONS, name_batch=lambda: f"b{next(names):03}", clock=lambda: over.now_s,
                    pause=over.pause, **more)  # type: ignore[arg-type]


def test_all_that_is_offered_is_written_once_and_then_deleted() -> None:
    over = world(5, 0, 3)

    report = archiver(over).run(wait_s=10)

    assert (report.written, report.deleted, report.waiting) == (8, 8, {})
    assert sorted(bytes(task.id) for task in over.rows) == sorted(over.deleted)
    assert len({bytes(task.id) for task in over.rows}) == 8
    assert over.pauses == 0


def test_pages_of_all_partitions_go_into_one_batch_and_are_confirmed_behind_it() -> None:
    over = world(2, 2, 1)

    report = archiver(over).run(wait_s=0)

    assert over.said == [("written", 5), ("archived", 0), ("archived", 1), ("archived", 2)]
    assert (over.batches, report.batches) == (["b000"], 1)


def test_a_full_batch_is_written_before_the_next_page_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "BATCH_TASKS", 2)
    monkeypatch.setattr(archiving, "AT_ONCE", 1)
    over = world(2, 2, 1)

    archiver(over).run(wait_s=0)

    assert over.said == [("written", 2), ("archived", 0), ("written", 2), ("archived", 1), ("written", 1),
                         ("archived", 2)]


def test_no_more_pages_are_asked_for_than_make_a_batch_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "PAGE_TASKS", 2)
    monkeypatch.setattr(archiving, "BATCH_TASKS", 4)
    over = world(8, 8, 8, ahead=8)

    archiver(over).run(wait_s=0)

    assert [count for what, count in over.said if what == "written"] == [4] * 6


def test_without_a_rate_no_batch_waits() -> None:
    over = world(4, 4, 1)

    archiver(over).run(wait_s=0)

    assert over.pauses == 0 and over.now_s == 0.0


def test_what_pages_tell_of_what_has_ended_and_what_goes_sets_the_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of other archivers' pages, and of releases that do not count, nothing is known. Before there is any page
    all are asked."""
    over, pace = world(4, ahead=4), Yielding(PARTITIONS)
    said: list[tuple[str, int, int]] = []
    monkeypatch.setattr(pace, "told", lambda now_s, partition, ended: said.append(("told", partition, ended)))
    monkeypatch.setattr(pace, "went", lambda partition, tasks: said.append(("went", partition, tasks)))
    collectable = over.collectable

    def counted(question: Question) -> Page:
        page = attrs.evolve(collectable(question), ended=7 + question.partition)
        return attrs.evolve(page, is_others=question.partition == 1,
                            due_ms=0 if question.partition == 2 else page.due_ms)
    over.collectable = counted  # type: ignore[method-assign]

    report = archiver(over, pace=pace).run(wait_s=0)

    assert report.deleted == 4
    assert [each for each in said if each[0] == "went"] == [("went", 0, 2)] * 2
    assert said[:2] == [("told", 0, 7), ("told", 1, 8)] and over.asked[:3] == [0, 1, 2]
    assert {each for each in said[2:] if each[0] == "told"} == {("told", 0, 7)}


def test_what_has_ended_is_told_without_what_was_deleted_since() -> None:
    over, told = world(5, 3, 0, ahead=2), list[tuple[int, int]]()
    collectable = over.collectable
    over.collectable = lambda question: attrs.evolve(  # type: ignore[method-assign]
        collectable(question), ended=len(over.tasks[question.partition]) + 1)

    archiver(over, on_batch=lambda report: told.append((report.deleted, report.ended))).run(wait_s=0)

    assert len(told) > 1 and all(deleted + ended == 8 + PARTITIONS for deleted, ended in told)


def test_what_has_ended_where_no_page_was_read_yet_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There was no room for any in the first batch."""
    monkeypatch.setattr(archiving, "BATCH_TASKS", 2)
    over, told = world(4, 3, 2, ahead=2), list[tuple[int, int]]()
    collectable = over.collectable
    over.collectable = lambda question: attrs.evolve(  # type: ignore[method-assign]
        collectable(question), ended=len(over.tasks[question.partition]))

    archiver(over, on_batch=lambda report: told.append((report.deleted, report.ended))).run(wait_s=0)

    assert told[0] == (2, 7) and all(deleted + ended == 9 for deleted, ended in told)
    assert 0 < len(over.asked) < PARTITIONS, "once, and only those that were not heard of"


@pytest.mark.parametrize("answer", [0, Uncertain("timeout", "no answer")])
def test_where_a_page_is_gone_and_nobody_says_so_it_does_not_hide_what_ends(answer: int | SkuldError) -> None:
    over, pace, forgotten = world(2, 2, ahead=4), Yielding(PARTITIONS), list[int]()
    pace.forget = forgotten.append  # type: ignore[method-assign]
    archived = over.archived
    over.archived = lambda pages: [  # type: ignore[method-assign]
        answer if page.partition else count for page, count in zip(pages, archived(pages), strict=True)]

    archiver(over, pace=pace).run(wait_s=0)

    assert forgotten == [1]


def test_a_run_ends_where_pages_stay_on_offer_and_none_of_them_can_be_deleted() -> None:
    """As when a replica is not to be reached, and is not known to be away."""
    over = world(40, 40, ahead=8)

    def silent(pages: Sequence[Page]) -> list[SkuldError]:
        over.pause(10)
        assert over.now_s < 100
        return [Uncertain("timeout", "not all replicas answered in time") for _ in pages]
    over.archived = silent  # type: ignore[assignment,method-assign]

    report = archiver(over).run(wait_s=30)

    assert (report.deleted, report.is_done, {*report.waiting}) == (0, False, {0, 1})


def test_another_archiver_that_works_in_vain_is_not_waited_for_without_end() -> None:
    """Its page has a task that cannot be written, and it comes again and again."""
    over = world(2, ahead=4)
    collectable = over.collectable

    def offered(question: Question) -> Page:
        page = collectable(question)
        return attrs.evolve(page, ended=3, is_others=True, upto_ms=5) if question.partition == 1 else page
    over.collectable = offered  # type: ignore[method-assign]

    def pause(seconds: float) -> None:
        over.now_s += seconds
        assert over.now_s < 100
    over.pause = pause  # type: ignore[method-assign]

    report = archiver(over).run(wait_s=30)

    assert (report.deleted, report.waiting, report.is_done) == (2, {1: archiving.OTHER}, False)
    assert 30 <= over.now_s < 35


@pytest.mark.parametrize("what", ["ended", "upto_ms", "deleted"])
def test_another_archiver_that_works_is_waited_for(what: str) -> None:
    over = world(2, ahead=4)
    collectable = over.collectable

    def offered(question: Question) -> Page:
        page, steps = collectable(question), int(over.now_s / 20)
        if question.partition != 1 or steps >= 9:
            return page
        seen = {"ended": 9 + steps, "upto_ms": 0, what: 9 - steps if what == "ended" else steps}
        return attrs.evolve(page, is_others=True, **seen)
    over.collectable = offered  # type: ignore[method-assign]

    report = archiver(over).run(wait_s=30)

    assert report.is_done and 180 <= over.now_s < 185


def test_a_goal_falls_where_a_leader_hears_that_another_node_keeps_more() -> None:
    over, due = world(0, ahead=4), iter([100, 40])
    collectable = over.collectable
    over.collectable = lambda question: attrs.evolve(  # type: ignore[method-assign]
        collectable(question), upto_ms=50, due_ms=next(due, 60) if question.partition == 1 else 50)

    report = archiver(over).run(wait_s=30)

    assert report.is_done and over.now_s < 5


def test_what_another_archiver_deletes_does_not_hide_what_ends() -> None:
    over, pace, forgotten = world(ahead=4), Yielding(PARTITIONS), list[int]()
    pace.over = forgotten.append  # type: ignore[method-assign]
    collectable = over.collectable
    over.collectable = lambda question: attrs.evolve(  # type: ignore[method-assign]
        collectable(question), is_others=question.partition == 1)

    archiver(over, pace=pace).run(wait_s=0)

    assert forgotten == [1]


def test_a_partition_that_is_done_or_has_no_leader_does_not_keep_what_ends_unknown() -> None:
    """The one is asked for its number, the other tells no more."""
    over, pace = world(0, 40, 1, ahead=4), Yielding(PARTITIONS)
    collectable = over.collectable

    def offered(question: Question) -> Page:
        over.now_s += 1
        asked.append(question.partition)
        if asked.count(2) > 2 and question.partition == 2:
            raise Refused("no_leader", "no leader")
        return collectable(question)
    asked: list[int] = []
    over.collectable = offered  # type: ignore[method-assign]

    report = archiver(over, pace=pace).run(wait_s=0)

    assert (report.deleted, report.waiting) == (41, {2: ("its leader",)})
    assert pace.ends is not None
    assert over.asked.count(0) >= 2 and over.asked.count(2) == 1


def test_a_batch_is_full_by_its_bytes_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "BATCH_BYTES", 1_000)
    monkeypatch.setattr(archiving, "AT_ONCE", 1)
    over = World({0: [plain(0, payload=b"x" * 1_000)], 1: [plain(1)]})

    archiver(over).run(wait_s=0)

    assert over.said[0] == ("written", 1)


def test_no_more_pages_are_asked_for_than_a_batch_has_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """They come at once, and a page may be large; so what is held has a bound in bytes, not in pages."""
    page_bytes = DEFAULT_LIMITS.page_bytes
    monkeypatch.setattr(archiving, "BATCH_BYTES", 2 * page_bytes)
    over, asked = world(6, 6, 6, size=1, ahead=4), list[int]()
    payload = b"x" * (page_bytes - 2_000)
    over.tasks = {partition: [attrs.evolve(task, payload=payload) for task in tasks]
                  for partition, tasks in over.tasks.items()}

    def offered(questions: Sequence[Question]) -> Sequence[Page | SkuldError]:
        asked.append(len(questions))
        return World.offered(over, questions)
    monkeypatch.setattr(over, "offered", offered)

    assert archiver(over).run(wait_s=0).deleted == 18

    assert asked[:2] == [2, 1] and max(asked) == 2
    assert max(count for what, count in over.said if what == "written") == 3


def test_records_are_held_until_they_are_written_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    over, held = world(4, 4, ahead=4), list[int]()

    def archived(pages: Sequence[Page]) -> Sequence[int | SkuldError]:
        held.extend(len(page.records) for page in pages)
        return World.archived(over, pages)
    monkeypatch.setattr(over, "archived", archived)

    assert archiver(over).run(wait_s=0).deleted == 8
    assert held and not any(held)


@pytest.mark.parametrize("error", [Refused("not_written", "the disk is full"), Stop()])
def test_nothing_is_confirmed_when_the_write_fails(error: BaseException) -> None:
    over = world(3, 3)
    over.failing["write"] = [error] * 100

    with pytest.raises(type(error)):
        archiver(over).run(wait_s=10)

    assert over.said == [] and over.deleted == []
    assert [len(left) for left in over.tasks.values()] == [3, 3]


@pytest.mark.parametrize("fails", [False, True])
def test_a_run_that_fails_waits_for_what_is_being_written_and_says_why_it_failed_itself(
        monkeypatch: pytest.MonkeyPatch, fails: bool) -> None:
    monkeypatch.setattr(archiving, "BATCH_TASKS", 2)
    over, begun = world(2, ahead=8), list[Callable[[], None]]()

    def beside(work: Callable[[], None]) -> Callable[[], None]:
        begun.append(work)
        over.failing["collectable"] = [Refused("bad_request", "no such partition")]
        over.failing["write"] = [Refused("not_written", "the disk is full")] * 100 * fails
        return lambda: begun.remove(work) or work()  # type: ignore[func-returns-value]

    one = archiver(over, beside=beside)
    with pytest.raises(Refused, match="no such partition"):
        one.run(wait_s=10)
    assert not begun and len(over.rows) == 2 * (not fails)
    over.failing.clear()
    with suppress(Refused):
        one.run(wait_s=0)
    assert len(over.rows) == 2 * (not fails), "it is not written again"


def refusing(over: World, *numbers: int) -> dict[bytes, str]:
    """Tasks, by their place, that no batch may contain; gives what is said of them."""
    tasks = [task for each in over.tasks.values() for task in each]
    bad = [tasks[number].id for number in numbers]
    write = over.write

    def picky(batch: str, given: Sequence[Given]) -> int:
        if any(record[0] in bad for record, _ in given):
            raise Refused("not_written", f"one of {len(given)} is out of bounds")
        return write(batch, given)
    over.write = picky  # type: ignore[method-assign]
    return dict.fromkeys(map(bytes, bad), "one of 1 is out of bounds")


@pytest.mark.parametrize("bad", [(0,), (7,), (3, 4), tuple(range(8)), (9,)])
def test_a_task_that_cannot_be_written_is_named_and_holds_up_its_partition_only(bad: tuple[int, ...]) -> None:
    over = world(8, 40, 40, size=200)
    refused = refusing(over, *bad)

    report = archiver(over).run(wait_s=10)

    held = {0 if number < 8 else 1 for number in bad}
    assert report.refused == refused
    assert [partition for partition, left in over.tasks.items() if left] == sorted(held)
    assert report.written == len(over.rows) == len({task.id for task in over.rows}) == 88 - len(bad)
    assert report.deleted == sum(count for partition, count in enumerate((8, 40, 40)) if partition not in held)


def test_a_place_that_takes_nothing_ends_the_run_soon() -> None:
    over = world(200, 200, 200, size=200)
    asked: list[int] = []

    def full(batch: str, given: Sequence[Given]) -> int:
        asked.append(len(given))
        raise Refused("not_written", "the disk is full")
    over.write = full  # type: ignore[method-assign]

    with pytest.raises(Refused, match="the disk is full"):
        archiver(over).run(wait_s=10)
    assert asked[0] == 600 and len(asked) < 30 and over.deleted == []


def test_what_was_written_and_not_confirmed_is_offered_and_written_again() -> None:
    over = world(2, 2)
    over.failing["archived"] = [Stop()]

    with pytest.raises(Stop):
        archiver(over).run(wait_s=10)
    assert (len(over.rows), over.deleted) == (4, [])
    report = archiver(over).run(wait_s=10)

    assert (report.written, report.deleted) == (4, 4)
    ids = [bytes(task.id) for task in over.rows]
    assert len(ids) == 8 and len(set(ids)) == 4 == len(set(over.deleted))


PASSING_ERRORS = [Uncertain("timeout", "no answer"), Refused("no_leader", "no leader")]


@pytest.mark.parametrize("error", PASSING_ERRORS)
def test_a_page_that_could_not_be_confirmed_is_confirmed_later_and_not_written_twice(error: SkuldError) -> None:
    over = world(2, 2)
    over.failing["archived"] = [error]

    report = archiver(over).run(wait_s=10)

    assert (report.written, report.deleted, len(over.rows)) == (4, 4, 4)


def test_what_comes_again_in_another_page_is_not_written_again_unless_it_has_changed() -> None:
    over = world(5, size=4)
    over.failing["archived"] = [Uncertain("timeout", "no answer")]
    running = archiver(over)

    def pause(seconds: float) -> None:
        World.pause(over, seconds)
        over.size = 3
        over.tasks[0][1] = attrs.evolve(over.tasks[0][1], seq=99)
    running._pause = pause
    report = running.run(wait_s=10)

    assert (report.deleted, report.written, over.tasks[0]) == (5, 6, [])
    assert sorted(task.seq == 99 for task in over.rows) == [False] * 5 + [True]


def test_what_is_written_is_remembered_until_it_is_deleted_and_no_longer() -> None:
    over = world(3)
    over.failing["archived"] = [Uncertain("timeout", "no answer")]
    running = archiver(over)

    running.run(wait_s=10)

    assert running._written == {}


@pytest.mark.parametrize("error", PASSING_ERRORS)
def test_a_partition_without_a_leader_is_asked_again(error: SkuldError) -> None:
    over = world(2, 2)
    over.failing["collectable"] = [error]

    assert archiver(over).run(wait_s=10).deleted == 4


def test_any_other_refusal_ends_the_run() -> None:
    over = world(2)
    over.failing["collectable"] = [Refused("no_archive", "start all nodes with --archive")]

    with pytest.raises(Refused, match="--archive"):
        archiver(over).run(wait_s=10)
    assert over.said == []


def test_a_partition_that_waits_is_named_once_patience_is_over_and_the_others_are_done() -> None:
    over = world(1, 1, 1)
    over.awaited[1] = ("h:2",)

    report = archiver(over).run(wait_s=10)

    assert (report.deleted, report.waiting) == (2, {1: ("h:2",)})
    assert 10 <= over.now_s < 12


def test_patience_begins_anew_with_what_is_deleted() -> None:
    over = world(1, 1, 1)
    over.awaited[1] = ("h:2",)
    running = archiver(over)

    def pause(seconds: float) -> None:
        World.pause(over, seconds)
        if over.now_s >= 9:
            over.awaited.pop(1, None)
    running._pause = pause
    report = running.run(wait_s=10)

    assert (report.deleted, report.waiting) == (3, {})


def test_a_page_that_is_not_on_offer_any_more_ends_with_patience() -> None:
    over = world(2)
    over.discard = lambda page: 0  # type: ignore[method-assign]

    report = archiver(over).run(wait_s=5)

    assert (report.written, report.deleted, report.waiting) == (2, 0, {0: ()})


def test_tasks_of_which_nothing_can_be_shown_are_confirmed_without_a_row() -> None:
    """A completion may stand alone, where the task itself never arrived."""
    over = world(1)
    bare = Page(0, (), True, (), 1, b"\1" * ID_BYTES, b"12345678", records=[None])
    pages = [bare]
    over.collectable = lambda asked: (  # type: ignore[method-assign]
        pages.pop() if pages else Page(asked.partition, (), False))
    told: list[Page] = []
    over.discard = lambda page: told.append(page) or 1  # type: ignore[method-assign, func-returns-value]

    report = archiver(over).run(wait_s=0)

    assert ([page.ids for page in told], report.written, report.deleted) == ([bare.ids], 0, 1)


def test_each_batch_is_told_of() -> None:
    over = world(4, 1)
    told: list[tuple[int, int]] = []

    def note(report: Report) -> None:
        told.append((report.written, report.deleted))
    archiver(over, on_batch=note).run(wait_s=0)

    assert told == [(3, 3), (5, 5)]


# -- several pages on offer ------------------------------------------------------------------------------


def test_several_pages_of_a_partition_go_into_one_batch_and_the_next_is_read_meanwhile(
        monkeypatch: pytest.MonkeyPatch) -> None:
    over = world(20, 0, 2, ahead=8)
    read: list[int] = []
    collectable = over.collectable
    over.collectable = lambda asked: read.append(len(over.rows)) or collectable(asked)  # type: ignore

    report = archiver(over).run(wait_s=0)

    assert [count for verb, count in over.said if verb == "written"][:2] == [10, 8]
    assert read.count(0) > 2 * archiving.PAGES_EACH, "the second batch is read before the first is written"
    assert (report.written, report.deleted, report.waiting, len(over.deleted)) == (22, 22, {}, 22)


def test_a_page_that_did_not_go_is_read_again_and_not_written_again() -> None:
    over = world(9, 3, ahead=8)
    over.failing["archived"] = [Uncertain("timeout", "no answer")] * 2

    report = archiver(over).run(wait_s=10)

    assert (report.written, report.deleted, report.waiting, len(over.rows)) == (12, 12, {}, 12)


@pytest.mark.parametrize(("upto_ms", "is_done"), [(99, False), (102, True), (500, True)])
def test_a_run_is_done_when_all_is_gone_that_had_ended_when_it_began(upto_ms: int, is_done: bool) -> None:
    """Though no slice is under way: it ended before what was old enough, and the next one is to begin."""
    over, asked = world(), list[Question]()

    def collectable(question: Question) -> Page:
        asked.append(question)
        return Page(question.partition, (), False, due_ms=100 + len(asked), upto_ms=upto_ms + 1)
    over.collectable = collectable  # type: ignore[method-assign]

    report = archiver(over).run(wait_s=3)

    assert report.is_done is is_done
    assert report.waiting == ({} if is_done else dict.fromkeys(range(PARTITIONS), ()))
    assert {question.wanted_ms for question in asked[PARTITIONS:]} == (set() if is_done else {101, 102, 103})


def test_what_cannot_be_written_is_no_end_of_the_rest_and_the_run_says_so() -> None:
    over = world(8, 8, ahead=2)
    refused = refusing(over, 0)

    report = archiver(over).run(wait_s=10)

    assert report.refused == refused and not report.is_done and report.waiting == {}
    assert over.now_s <= archiving.STUCK_S and over.tasks[1] == []
    assert report.deleted == 14 and len(over.tasks[0]) == 2


def test_no_partition_is_left_behind_when_batches_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archiving, "BATCH_TASKS", 2)
    monkeypatch.setattr(archiving, "AT_ONCE", 1)
    over = world(20, 20, 20, ahead=8)

    archiver(over).run(wait_s=0)

    first = [each for verb, each in over.said if verb == "archived"][:6]
    assert sorted(first) == [0, 0, 1, 1, 2, 2]
