"""What executors are sent: a Python that has nothing installed imports the application's modules out of it."""

from __future__ import annotations

import logging
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from skuld_py.worker import registry, shipping

BARE = str(Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}")
FILES = {
    "ship_app.py": "import skuld_py\nimport ship_beside\n\n@skuld_py.task\ndef run(spark, context): ...\n\n"
                   "def twice(n):\n    return ship_beside.twice(n)\n",
    "ship_beside.py": "def twice(n):\n    return 2 * n\n",
    "ship_unused.py": "raise SystemExit\n",
    "ship_package/__init__.py": "",
    "ship_package/inner/jobs.py": "from importlib.resources import files\n\n"
                                  "TEXT = (files('ship_package') / 'words.txt').read_text()\n",
    "ship_package/words.txt": "some words",
    "ship_space/jobs.py": "NUMBER = 7\n",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with an application, first in the path; nothing of it stays imported."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "_functions", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("ship_"):
            del sys.modules[name]


def packed(directory: Path, *apps: str) -> Path:
    for app in apps:
        import_module(app)
    return shipping.pack(apps, directory)


def bare(archive: Path, *lines: str) -> str:
    """What a Python says that has nothing but the archive, in front of its path as Spark puts it."""
    code = "\n".join((f"import sys; sys.path.insert(1, {str(archive)!r})", *lines))
    ran = subprocess.run([BARE, "-I", "-S", "-c", code], capture_output=True, text=True, cwd="/", check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_a_module_and_those_beside_it_are_imported_where_nothing_is_installed(home: Path) -> None:
    archive = packed(home, "ship_app")

    assert bare(archive, "import ship_app, skuld_py", "print(ship_app.twice(4), ship_app.run.task_name)") == (
        "8 ship_app:run")
    part = ("from skuld_py.worker.batches.part import Order, run_part",
            "done, = run_part(Order('ship_app:twice', 'ship_app', 1, 9, 9), [(b'', None)])",
            "print(done.endings[0].words.partition(' here')[0])")
    assert bare(archive, *part) == "Refused: no task function is called 'ship_app:twice'"
    assert "ship_unused.py" not in zipfile.ZipFile(archive).namelist()


def test_a_package_goes_with_all_that_lies_in_it(home: Path) -> None:
    archive = packed(home, "ship_package.inner.jobs", "ship_space.jobs")

    words = ("import ship_package.inner.jobs, ship_space.jobs",
             "print(ship_package.inner.jobs.TEXT, ship_space.jobs.NUMBER)")
    assert bare(archive, *words) == "some words 7"


def test_libraries_that_executors_have_go_before_those_sent(home: Path) -> None:
    archive = packed(home, "ship_app")
    (home / "theirs").mkdir()
    (home / "theirs" / "msgpack.py").write_text("OURS = False\n")

    assert bare(archive, f"sys.path.append({str(home / 'theirs')!r})", "import skuld_py, msgpack",
                "print(msgpack.OURS, sys.path[-1].endswith('/needs'))") == "False True"


def test_what_cannot_be_used_out_of_an_archive_is_named_and_left_out(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (home / "ship_package" / "fast.so").touch()
    (home / "ship_package" / "big.bin").write_bytes(bytes(shipping.DATA_BYTES_MAX + 1))

    with caplog.at_level(logging.WARNING):
        names = zipfile.ZipFile(packed(home, "ship_package")).namelist()

    assert not [name for name in names if name.endswith((".so", ".bin"))]
    assert "fast.so" in caplog.text and "big.bin" in caplog.text


def test_what_came_in_an_archive_is_not_sent_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(home / "theirs.zip", "w") as theirs:
        theirs.writestr("ship_zipped.py", "NUMBER = 3\n")
        theirs.writestr("ship_folder/__init__.py", "NUMBER = 4\n")
    monkeypatch.syspath_prepend(home / "theirs.zip")

    names = zipfile.ZipFile(packed(home, "ship_zipped", "ship_folder")).namelist()

    assert not [name for name in names if name.startswith("ship_")]


def test_of_installed_packages_only_those_named_are_sent(tmp_path: Path) -> None:
    assert shipping.tops(["attrs"]) == ["attrs"]
    names = zipfile.ZipFile(packed(tmp_path, "skuld_py.demo.census")).namelist()

    assert len(names) == len(set(names)) and "skuld_py/demo/census.py" in names
