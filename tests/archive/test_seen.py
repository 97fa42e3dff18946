"""What is seen of an archive without asking for it: by who looks for a task that is gone, in metrics, and in a
cluster of one's own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from archive.test_layout import TASKS, rows_of
from skuld_py.archive.arrow_site import Site
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.model.archive_root import ArchiveRoot
from skuld_py.model.ids import none_said, time_of, to_text
from skuld_py.runtime.metrics import NodeMetrics, Snapshot

GONE = TASKS[4]
GONE_MS = time_of(GONE.id)
REFUSED = "refused"


def got(monkeypatch: pytest.MonkeyPatch, sealed_ms: int, root: str | None, verb: str = "get") -> str:
    """What ``skuld get`` says of it, of nodes that have collected up to a time, for an archive or for none."""
    seals = [SimpleNamespace(sealed_ms=each) for each in (0, sealed_ms)]

    def refuse(*_: object, **__: object) -> None:
        raise Refused("no_such_task", none_said([GONE.id]))

    @contextmanager
    def connected(*_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(get_many=lambda ids, min_seq: [], ends=refuse, log=refuse,
                              archive_root=refuse if root == REFUSED else lambda: root and ArchiveRoot(root),
                              status=lambda: SimpleNamespace(collections=seals))
    monkeypatch.setattr(f"skuld_py.cli.{verb}.connected", connected)
    ran = CliRunner().invoke(main, [verb, to_text(GONE.id)])
    assert ran.exit_code == 1 and ran.stderr.endswith("[no_such_task]\n"), ran.stderr
    return ran.stderr


@pytest.mark.parametrize("verb", ["get", "results", "log"])
def test_get_of_a_task_that_was_archived_says_so_and_what_it_says_finds_it(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    with Site.held(tmp_path) as site:
        site.store.begin()
        site.store.write("b", rows_of(TASKS[:6]))

    said = got(monkeypatch, GONE_MS, str(tmp_path), verb)

    words = re.search(r"what is collected may be in the archive: skuld (history .+) \[", said)
    assert words is not None, said
    found = CliRunner().invoke(main, shlex.split(words[1]), catch_exceptions=False)
    assert found.exit_code == 0 and to_text(GONE.id) in found.stdout.splitlines()[0]


def test_get_of_a_task_that_is_gone_without_an_archive_says_that(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "or is collected; what is collected was deleted by --retention [" in got(monkeypatch, GONE_MS, None)


def test_get_by_a_key_that_may_not_ask_where_the_archive_is_says_that_there_may_be_one(
        monkeypatch: pytest.MonkeyPatch) -> None:
    assert f"may be in the cluster's archive: skuld history ROOT --id {to_text(GONE.id)} [" in got(
        monkeypatch, GONE_MS, REFUSED)


def test_get_of_a_task_that_never_was_says_nothing_of_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "archive" not in got(monkeypatch, GONE_MS - 1, "/srv/archive")


def test_metrics_tell_how_much_waits_and_since_when() -> None:
    metrics = NodeMetrics(lambda *_: (), (), wall=lambda: 100.0)
    for snapshot, wanted in ((Snapshot(collected=3, unarchived=7, since_ms=40_000), (3, 7, 60)),
                             (Snapshot(), (0, 0, 0))):
        metrics._snapshot = snapshot
        found = {family.name: family.samples[0].value for family in metrics.collect() if family.samples}
        assert tuple(found[f"skuld_{name}"] for name in (
            "collected_tasks", "unarchived_tasks", "unarchived_seconds")) == wanted


@pytest.mark.parametrize("wants_archive", [True, False])
def test_a_cluster_of_ones_own_has_an_archiver_if_it_is_asked_for(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wants_archive: bool) -> None:
    (tmp_path / "ports.json").touch()  # of a cluster that was here before: no port is looked at
    begun: list[Any] = []

    class Cluster:
        addresses: tuple[str, ...] = ()

        def __init__(self, *_: object, **options: Any) -> None:
            begun.append(tuple(options["node_options"]))

        def start(self) -> None:
            if not wants_archive:
                raise Refused("enough", "it was started")

        def start_archiver(self, root: Path, *options: str) -> None:
            begun.append((root, *options))
            raise Refused("enough", "it was started")

        def stop(self) -> None:
            """Nothing runs."""
    monkeypatch.setattr("skuld_py.embedded.local.LocalCluster", Cluster)
    archive = tmp_path / "archive"
    asked = ["--archive", str(archive)] if wants_archive else []

    ran = CliRunner().invoke(main, ["dev", "--http", "0", "--no-keys", "--directory", str(tmp_path), *asked])

    assert ran.exit_code == 1 and "[enough]" in ran.stderr, ran.output
    assert begun == ([("--retention", "1m", "--archive"), (archive, "--every", "10s")] if wants_archive else [()])


@pytest.mark.parametrize("root", ["s3a://bucket/archive", "file:///srv/archive", ""])
def test_a_cluster_of_ones_own_takes_no_uri_for_the_name_of_a_directory(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise Refused("enough", "it was made")
    monkeypatch.setattr("skuld_py.embedded.local.LocalCluster", refuse)
    monkeypatch.chdir(tmp_path)

    ran = CliRunner().invoke(main, ["dev", "--archive", root])

    assert ran.exit_code == 2 and f"{root!r} is no directory; name one of this machine." in ran.stderr
    assert [*tmp_path.iterdir()] == []
