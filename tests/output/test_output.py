"""Outputs on a real file system and a cluster in memory: what is written, when it is seen, and what never is."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner

import skuld_py
from skuld_py.calls.outputs import OutputFile
from skuld_py.calls.results import decode_result, encode_result
from skuld_py.cli.main import main
from skuld_py.client.claims import Claim
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused
from skuld_py.output import store
from skuld_py.output.places import dataset
from skuld_py.output.store import LocalStore
from skuld_py.output.sweeping import SWEEP_S, Turns
from skuld_py.testing import MemoryClient
from skuld_py.worker.context import ClaimLost, TaskContext

QUEUE = "outputs"
BIG = {"model": list(range(40_000)), "name": "Zürich"}


@skuld_py.task(queue=QUEUE, name="outputs.write_all")
def write_all(context: TaskContext, path: str) -> dict[str, Any]:
    counts, model = context.output(f"{path}/counts"), context.output(f"{path}/models", "model")
    counts.write_csv("a.csv", [["x", 1], ['say "y"\nz', 2]], header=("word", "n"))
    counts.write_csv("b/c.csv", [["é", 3]], header=("word", "n"))
    with model.open("weights.bin") as file:
        file.write(b"\x00" * 1000)
    context.output(f"{path}/lines").write_json("lines.json", [{"n": 1}, {"n": 2}])
    assert context.output(f"{path}/counts") is counts
    return {"big": model.reference(BIG), "small": 1}


@skuld_py.task(queue=QUEUE, name="outputs.fail")
def fail(context: TaskContext, path: str) -> None:
    context.output(path).write_json("lines.json", [1])
    raise ValueError("half-way")


class Holder:
    """One claim of a task, in the steps of a worker, each when the test says."""

    def __init__(self, client: MemoryClient, path: Path, text: str) -> None:
        claim = client.claim_one(QUEUE, lease_s=10)
        assert claim is not None
        self.client, self.claim = client, claim
        self.context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get,
        client.results_of,
                                   claim.clock)
        self.output = self.context.output(str(path))
        self.output.write_json("part.json", [text])
        self.stored: bytes | None = None

    def seal(self, value: Any = None) -> Holder:
        self.stored = encode_result(self.context.outputs.sealed(value))
        return self

    def complete(self) -> None:
        self.client.complete(self.claim, self.stored)


def seen(path: Path) -> list[str]:
    """What a reader sees that knows nothing of Skuld: it passes over names with an underscore or a dot in
    front."""
    every = [Path(directory, name).relative_to(path) for directory, _, names in os.walk(path) for name in names]
    return sorted(str(file) for file in every if not any(part.startswith(("_", ".")) for part in file.parts))


def part_of(client: MemoryClient, task: bytes) -> Any:
    file, = skuld_py.output_files(task, client=client)
    return json.loads(Path(file.path).read_text())


@pytest.fixture
def client() -> MemoryClient:
    return MemoryClient()


def test_what_a_task_wrote_is_there_when_it_is_completed_and_named(client: MemoryClient, tmp_path: Path) -> None:
    task = client.enqueue(QUEUE, write_all.call(str(tmp_path)))
    client.run_until_empty(QUEUE)

    assert seen(tmp_path) == [f"counts/task={task}/a.csv", f"counts/task={task}/b/c.csv",
                              f"lines/task={task}/lines.json", f"models/task={task}/weights.bin"]
    found = client.get(task)
    assert [(each.name, each.format, each.count, each.rows) for each in found.outputs] == [
        ("counts", "csv", 2, 3), ("model", "", 1, None), ("lines", "json", 1, 2)]
    assert found.outputs[1].bytes == 1000 and found.outputs[1].files == (OutputFile("weights.bin", 1000),)
    files = skuld_py.output_files(found, "counts")
    assert [Path(file.path).name for file in files] == ["a.csv", "c.csv"]
    with open(files[0].path, newline="") as opened:
        assert list(csv.reader(opened)) == [["word", "n"], ["x", "1"], ['say "y"\nz', "2"]]
    result = client.result(task)
    assert result["small"] == 1 and skuld_py.read_reference(result["big"]) == BIG
    assert not list(tmp_path.glob("*/_claims/*"))


def test_get_shows_what_a_task_wrote(
    client: MemoryClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("skuld_py.client.client.Client", lambda *_, **options: client.cluster.client())
    task = client.enqueue(QUEUE, write_all.call(str(tmp_path)))
    client.run_until_empty(QUEUE)

    shown = CliRunner().invoke(main, ["get", str(task), "--nodes", "127.0.0.1:1"]).output
    document = json.loads(CliRunner().invoke(main, ["get", str(task), "--nodes", "127.0.0.1:1", "--json"]).output)

    assert f"counts: 2 files, 39 bytes, 3 rows, below {tmp_path}/counts" in shown
    assert "model: 1 files, 1000 bytes, below" in shown
    lines = document["outputs"][2]
    assert (lines["name"], lines["format"], lines["count"], lines["rows"]) == ("lines", "json", 1, 2)
    assert document["value"]["big"]["bytes"] > 64 << 10 and document["value"]["small"] == 1


def test_what_a_failed_task_wrote_is_never_seen(client: MemoryClient, tmp_path: Path) -> None:
    task = client.enqueue(QUEUE, fail.call(str(tmp_path)), retry=skuld_py.Retry(1))
    client.run_until_empty(QUEUE, raises=False)

    assert client.get(task).state == "dead" and seen(tmp_path) == []
    with pytest.raises(Refused, match="not_ended"):
        skuld_py.output_files(task, client=client)
    swept = skuld_py.sweep_output(tmp_path, client)
    assert (swept.published, swept.deleted, len(swept.left)) == ((), 0, 1), "it may be revived"


def two_claims(client: MemoryClient, path: Path) -> tuple[bytes, Holder, Holder]:
    """A claim whose lease ended, and the next one."""
    task = client.enqueue(QUEUE, b"")
    first = Holder(client, path, "first")
    client.cluster.advance(60)
    second = Holder(client, path, "second")
    assert second.claim.token > first.claim.token
    return task, first, second


def test_a_zombie_that_completes_late_changes_nothing(client: MemoryClient, tmp_path: Path) -> None:
    task, first, second = two_claims(client, tmp_path)
    second.seal().complete()
    assert seen(tmp_path) == [], "completed, and its worker died"
    assert part_of(client, task) == "second"
    before = seen(tmp_path)

    with pytest.raises(ClaimLost):
        first.seal()
    first.context.outputs._check = first.output._check = lambda: None  # one that is stopped behind its checks
    first.seal().complete()

    assert part_of(client, task) == "second" and seen(tmp_path) == before
    swept = skuld_py.sweep_output(tmp_path, client)
    assert (swept.published, swept.deleted, swept.left) == ((), 1, ())
    assert seen(tmp_path) == before and not list((tmp_path / "_claims").iterdir())


def test_a_completion_that_becomes_known_late_and_is_earlier_changes_nothing(
    client: MemoryClient, tmp_path: Path
) -> None:
    task, first, second = two_claims(client, tmp_path)
    first.context.outputs._check = first.output._check = lambda: None
    first.seal("one")
    second.seal("two").complete()
    assert part_of(client, task) == "second"
    early = attrs.evolve(client.get(task), completed_token=first.claim.token,
                         outputs=skuld_outputs(first.stored or b""))

    file, = skuld_py.output_files(early)
    assert json.loads(Path(file.path).read_text()) == "second", "what was read stays"


def skuld_outputs(stored: bytes) -> tuple[Any, ...]:
    from skuld_py.calls.results import decode_outputs

    return decode_outputs(stored)


def test_a_sweep_mends_a_crash_between_completion_and_rename(client: MemoryClient, tmp_path: Path) -> None:
    task, _, second = two_claims(client, tmp_path)
    second.seal(5).complete()
    running = client.enqueue(QUEUE, b"")
    third = Holder(client, tmp_path, "third")

    swept = skuld_py.sweep_output(str(tmp_path), client)

    assert swept.published == (str(task),) and swept.deleted == 1
    assert swept.left == (f"{running}/{third.claim.token}",)
    assert seen(tmp_path) == [f"task={task}/part.json"] and part_of(client, task) == "second"
    assert client.result(task) == 5
    assert skuld_py.sweep_output(tmp_path, client) == attrs.evolve(swept, published=(), deleted=0)


def test_what_is_unknown_goes_when_that_is_asked_for_and_not_when_it_was_sealed(
    client: MemoryClient, tmp_path: Path
) -> None:
    client.enqueue(QUEUE, b"")
    client.enqueue(QUEUE, b"")
    Holder(client, tmp_path, "never sealed")
    sealed = Holder(client, tmp_path, "perhaps archived").seal()
    other = MemoryClient()

    assert skuld_py.sweep_output(tmp_path, other).deleted == 0
    assert skuld_py.sweep_output(tmp_path, other, unknown_after_s=3_600).deleted == 0
    swept = skuld_py.sweep_output(tmp_path, other, unknown_after_s=0)

    assert swept.deleted == 1 and swept.left == (f"{sealed.claim.id}/{sealed.claim.token}",)


def test_who_may_not_write_there_reads_what_is_not_published(
    client: MemoryClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "text")
    reference = holder.output.reference("a value")
    holder.seal().complete()

    def forbidden(source: str, target: str) -> None:
        raise PermissionError(errno.EACCES, "not yours")

    monkeypatch.setattr(store.os, "rename", forbidden)
    assert part_of(client, task) == "text" and seen(tmp_path) == []
    assert skuld_py.read_reference(reference) == "a value"


def test_a_manifest_that_is_not_the_completed_one_is_not_trusted(client: MemoryClient, tmp_path: Path) -> None:
    task = client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "text")
    reference = holder.output.reference("a value")
    holder.seal().complete()
    skuld_py.sweep_output(tmp_path, client)
    place = tmp_path / f"task={task}"

    (place / "_value-1").write_bytes(b"another")
    with pytest.raises(Refused, match="damaged_output"):
        skuld_py.read_reference(reference)
    plain = json.loads((place / "_skuld.json").read_text())
    for change in ({"files": [["../../secret", 1]]}, {"files": []}, {"token": "7"}, {"rows": "many"}):
        (place / "_skuld.json").write_text(json.dumps(plain | change))
        with pytest.raises(Refused, match="damaged_output"):
            skuld_py.output_files(task, client=client)
    shutil.rmtree(place)
    with pytest.raises(Refused, match="damaged_output"):
        skuld_py.output_files(task, client=client)


def test_a_long_list_is_in_the_manifest_alone(client: MemoryClient, tmp_path: Path) -> None:
    task = client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "text")
    for number in range(500):
        holder.output.open(f"file-{number:04}.bin").close()
    holder.seal("a value").complete()

    written, = client.get(task).outputs
    assert (written.count, written.files) == (501, None)
    assert len(skuld_py.output_files(task, client=client)) == 501
    assert client.result(task) == "a value"


def test_a_list_that_leaves_no_room_for_the_value_is_left_out(client: MemoryClient, tmp_path: Path) -> None:
    task = client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "text")
    for number in range(100):
        holder.output.open(f"file-{number:04}.bin").close()
    holder.seal(b"x" * (DEFAULT_LIMITS.entry_bytes - 1_000)).complete()

    assert client.get(task).outputs[0].files is None
    with pytest.raises(Refused, match="reference"):
        encode_result(holder.context.outputs.sealed(b"x" * DEFAULT_LIMITS.entry_bytes))


def test_an_older_reader_gets_bytes(client: MemoryClient, tmp_path: Path) -> None:
    client.enqueue(QUEUE, b"")
    stored = Holder(client, tmp_path, "text").seal({"a": 1}).stored or b""

    assert decode_result(stored) == {"a": 1}
    assert stored[:3] == b"\xc1\x01o" and stored.endswith(b'\xc1\x01j{"a":1}')
    for end in range(3, len(stored) - len(b'\xc1\x01j{"a":1}')):
        assert decode_result(stored[:end]) == stored[:end], "what is cut is bytes"
    assert decode_result(stored.replace(b"part.json", b"../p.json")) == stored.replace(b"part.json", b"../p.json")


@pytest.mark.parametrize("file", ["", "/etc/passwd", "../up", "a/../b", "a//b", "_hidden", "a/.b", "x\0"])
def test_a_file_stands_in_its_place_and_is_seen(client: MemoryClient, tmp_path: Path, file: str) -> None:
    client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "text")

    with pytest.raises(Refused, match="bad_output"):
        holder.output.open(file)


@pytest.mark.parametrize("path", ["", "a*b", "x{1}", 7, "s" * 1_001])
def test_what_is_no_path_is_refused(path: object) -> None:
    with pytest.raises(Refused, match="bad_output"):
        dataset(path)


def test_paths_are_compared_in_one_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written = ("a/b/", f"{tmp_path}/a/./b", f"file://{tmp_path}/a/b", Path("a/b"))
    assert {*map(dataset, written)} == {f"{tmp_path}/a/b"}
    assert dataset("hdfs://name/a/") == "hdfs://name/a"


def test_names_and_formats_are_one_each(client: MemoryClient, tmp_path: Path) -> None:
    client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path / "a", "text")

    for path, name in ((tmp_path / "b" / "a", ""), (tmp_path / "a", "other"), (tmp_path, "n" * 101)):
        with pytest.raises(Refused, match="bad_output"):
            holder.context.output(str(path), name)
    with pytest.raises(Refused, match="has json"):
        holder.output.write_csv("a.csv", [])
    holder.seal()
    with pytest.raises(Refused, match="sealed"):
        holder.output.open("late.bin")
    with pytest.raises(Refused, match="outputs of task"):
        holder.complete()
        skuld_py.output_files(holder.claim.id, "b", client=client)


def test_a_lost_claim_writes_nothing(client: MemoryClient, tmp_path: Path) -> None:
    client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "text")
    client.cluster.advance(60)

    for write in (lambda: holder.output.open("a.bin"), lambda: holder.output.write_json("b.json", []),
                  lambda: holder.output.reference(1), holder.seal):
        with pytest.raises(ClaimLost):
            write()


def test_a_directory_moves_once(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "in").mkdir(parents=True)
        (tmp_path / name / "in" / "file").write_text(name)
    files = LocalStore()

    assert files.move(f"{tmp_path}/one/in", f"{tmp_path}/to")
    assert not files.move(f"{tmp_path}/two/in", f"{tmp_path}/to")
    assert not files.move(f"{tmp_path}/one/in", f"{tmp_path}/else")
    assert (tmp_path / "to/file").read_text() == "one" and (tmp_path / "two/in/file").exists()
    assert not (tmp_path / "one").exists(), "an empty directory is left"


def test_children_are_synced_before_the_directories_that_name_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t/queue=q/day=1").mkdir(parents=True)
    for file in ("_SUCCESS", "queue=q/day=1/part-0.parquet"):
        (tmp_path / "t" / file).touch()
    synced: list[Path] = []
    monkeypatch.setattr(store, "sync", synced.append)

    store.sync_tree(tmp_path / "t")

    assert len(synced) == 5 and synced[-1] == tmp_path / "t"
    assert all(synced.index(path) < synced.index(path.parent) for path in synced[:-1])


def test_what_is_sealed_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "_claims/t/7"
    (place / "part=1").mkdir(parents=True)
    (place / "part=1" / "file").write_text("x")
    synced: list[str] = []
    fsync = os.fsync
    monkeypatch.setattr(store.os, "fsync", lambda handle: (synced.append(os.readlink(f"/proc/self/fd/{handle}")),
                                                           fsync(handle)))
    LocalStore().seal(str(place), "_skuld.json", b"{}")

    manifest = synced.index(f"{place}/._skuld.json")
    assert {f"{place}/part=1/file", f"{place}/part=1", str(place)} <= {*synced[: manifest + 3]}
    assert synced[-5:] == [str(place), *(str(each) for each in place.parents[:4])]


def test_a_path_has_its_turn_to_be_swept_now_and_then_and_those_of_long_ago_are_forgotten() -> None:
    turns = Turns()
    assert all(turns.take(f"/data/{number}", 0.0) for number in range(50))
    assert not turns.take("/data/7", SWEEP_S - 1) and len(turns) == 50
    assert turns.take("/data/7", SWEEP_S) and len(turns) == 1


def test_an_output_with_an_open_file_is_not_sealed(client: MemoryClient, tmp_path: Path) -> None:
    client.enqueue(QUEUE, b"")
    holder = Holder(client, tmp_path, "x")
    with holder.output.open("closed.bin") as file:
        file.write(b"whole")
    still = holder.output.open("open.bin")
    still.write(b"half")

    with pytest.raises(Refused, match=r"file: open\.bin of output .* is still open"):
        holder.seal()
    still.close()
    assert holder.seal().stored


def test_an_output_without_a_file_is_one(client: MemoryClient, tmp_path: Path) -> None:
    task = client.enqueue(QUEUE, b"")
    claim: Claim | None = client.claim_one(QUEUE, lease_s=10)
    assert claim is not None
    context = TaskContext(claim.id, claim.token, claim.queue, claim.deadline, client.get, client.results_of,
                          claim.clock)
    context.output(str(tmp_path))
    client.complete(claim, encode_result(context.outputs.sealed(None)))

    assert skuld_py.output_files(task, client=client) == [] and client.result(task) is None
    assert (tmp_path / f"task={task}").is_dir()


def test_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "FILES_MAX", 3)
    names: Sequence[str] = "abcd"
    for name in names:
        (tmp_path / name).touch()

    with pytest.raises(Refused, match="at most 3"):
        LocalStore().files(str(tmp_path))
