"""What a compaction, or a look into the history, holds at a time fits memory, whatever the files say, or do not
say, of their rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from archive.ended import NOON_MS, plain
from archive.test_layout import blob, ids_of, kept, rows_of
from skuld_py.archive import arrow_history, compaction
from skuld_py.archive.arrow_history import ArrowHistory
from skuld_py.archive.arrow_site import Site
from skuld_py.archive.filters import Filters
from skuld_py.archive.live import live


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    with Site.held(tmp_path) as made:
        made.store.begin()
        yield made


@pytest.mark.parametrize("most", [10_000, 40])
def test_a_compaction_holds_as_many_rows_as_fit_and_few_of_their_weights(
        tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Also where each file has ids from all over the day."""
    tasks = [plain(number) for number in range(240)]
    for number in range(12):
        site.store.write(f"b{number:02}", rows_of(tasks[number::12]))
    site.store.settled(blob(tasks))
    site.store.end(is_whole=False)
    size = sum(weight for _, weight in compaction._weights(live(tmp_path).paths[0], 1 << 30, 10)[0])  # 20 rows
    monkeypatch.setattr(compaction, "RANGE_BYTES", size)
    monkeypatch.setattr(compaction, "WEIGHTS", most)
    held, known, weights = taken(monkeypatch), list[int](), compaction._weights

    def weighing(path: Path, share: int, most: int) -> tuple[list[tuple[str, int]], int]:
        found = weights(path, share, most)
        known.append(len(found[0]))
        return found
    monkeypatch.setattr(compaction, "_weights", weighing)

    assert site.compact().rows == 240 == sum(table.num_rows for table in held)

    assert kept(tmp_path) == ids_of(tasks)
    assert max(table.num_rows for table in held) <= 2 * 20 + 12 * (240 // most) and sum(known) <= most + 12


@pytest.mark.parametrize(("payloads", "room", "each"), [
    ([b"p" * 50_000] * 200, 500_000, 20), ([b"p" * 3_000] * 200, 120_000, 100),
    ([b""] * 160 + [b"%d" % number * 25_000 for number in range(40)], 500_000, 20)],
    ids=["all tasks have one large payload", "all tasks have one payload", "few tasks are large"])
def test_a_compaction_holds_what_fits_however_little_of_it_the_files_have(
        tmp_path: Path, site: Site, monkeypatch: pytest.MonkeyPatch, payloads: list[bytes], room: int, each: int
        ) -> None:
    """Files of which a row group does not fit are not decoded whole either."""
    tasks = [plain(number, payload=payload) for number, payload in enumerate(payloads)]
    for number in range(0, 200, each):
        site.store.write(f"b{number:03}", rows_of(tasks[number : number + each]))
    site.store.settled(blob(tasks))
    site.store.end(is_whole=False)
    monkeypatch.setattr(compaction, "RANGE_BYTES", room)
    held, in_parts, part = taken(monkeypatch), list[bool](), compaction._part

    def parted(path: Path, first: str, behind: str | None, some: bool) -> pa.Table:
        in_parts.append(some)
        return part(path, first, behind, some)
    monkeypatch.setattr(compaction, "_part", parted)

    assert site.compact().rows == 200

    assert kept(tmp_path) == ids_of(tasks)
    assert max(table.nbytes for table in held) <= 2 * room
    assert any(in_parts)


def taken(monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """What a compaction holds at a time, from now on."""
    held, take = list[pa.Table](), compaction._Outputs.take

    def took(outputs: compaction._Outputs, table: pa.Table) -> int:
        held.append(table)
        return take(outputs, table)
    monkeypatch.setattr(compaction._Outputs, "take", took)
    return held


def test_of_files_that_lie_side_by_side_no_more_is_held_than_of_one(tmp_path: Path, site: Site,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    """Each has a task that took so long to end that it is older than all others."""
    files, each, size = 40, 20, 10_000
    tasks = [[plain(0, at_ms=NOON_MS + file), *(plain(0, at_ms=NOON_MS + 1_000 + file * each + number,
                                                      payload=bytes(size)) for number in range(1, each))]
             for file in range(files)]
    for number, some in enumerate(tasks):
        site.store.write(f"b{number:02}", rows_of(some))
    monkeypatch.setattr(arrow_history, "HELD_BYTES", each * size)
    held, first_of = list[int](), arrow_history._first_of

    def taking(table: pa.Table, room: int) -> pa.Table:
        found = first_of(table, room)
        held.append(found.nbytes)
        return found
    monkeypatch.setattr(arrow_history, "_first_of", taking)
    rows = ArrowHistory(live(tmp_path), Filters()).rows()

    found = [next(rows)["id"] for _ in range(files)]

    assert len(held) >= files and sum(held) <= 5 * each * size < files * each * size // 5
    assert [*found, *(row["id"] for row in rows)] == ids_of([task for some in tasks for task in some])
