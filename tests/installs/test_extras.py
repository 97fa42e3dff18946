"""A part that is not installed is named with the command that brings it, in one line, whoever meets it."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skuld_py.embedded import python
from skuld_py.extras import PACKAGES, as_missing
from skuld_py.worker import spark_jvm

TOP = Path(__file__).resolve().parents[2]
PACKAGED = {"puresasl": "pure-sasl"}
"""By the name it is imported by, that of a package which is called otherwise."""
OPTIONAL = [package for packages in PACKAGES.values() for package in packages]
LIGHT = {"attrs", "click", "cronsim", "msgpack", "pyzmq", "rich", "sortedcontainers", "typing_extensions",
         "tzdata", "xxhash"}
ROWS = {
    "node": (["node", "--cluster", "c", "--data", "DIRECTORY"], "skuld node", "node"),
    "cluster create": (["cluster", "create", "c"], "skuld cluster", "node"),
    "cluster log": (["cluster", "log", "c"], "skuld cluster", "node"),
    "members": (["members", "--cluster", "c"], "skuld members", "node"),
    "ring": (["ring", "--cluster", "c"], "skuld ring", "node"),
    "gateway": (["gateway", "--nodes", "127.0.0.1:1"], "skuld gateway", "gateway"),
    "archive": (["archive", "DIRECTORY"], "skuld archive", "spark"),
    "history": (["history", "DIRECTORY"], "skuld history", "spark"),
    "dev": (["dev"], "skuld dev", "node,gateway,spark"),
    "dev without a gateway": (["dev", "--http", "0"], "skuld dev", "node,spark"),
    "demo": (["demo"], "skuld demo", "node,spark"),
    "zookeeper": (["zookeeper", "--data", "DIRECTORY", "--port", "0"],
                  "ZooKeeper, whose jars come with PySpark,", "spark"),
}


LIGHT_PROCESS = """
import json, sys
optional, lines, directory = json.load(sys.stdin)
sys.modules.update(dict.fromkeys(optional))
from click.testing import CliRunner
from skuld_py.cli.main import main
for line in lines:
    said = CliRunner().invoke(main, [directory if word == "DIRECTORY" else word for word in line])
    print(json.dumps([said.exit_code, said.stderr]))
"""


def run(lines: list[list[str]], directory: Path, without: list[str]) -> list[tuple[int, str]]:
    """Status and standard error of verbs, where these packages cannot be imported."""
    ran = subprocess.run([sys.executable, "-c", LIGHT_PROCESS], input=json.dumps([without, lines, str(directory)]),
                         env=python.environment(), capture_output=True, text=True, check=True)
    return [(status, said) for status, said in map(json.loads, ran.stdout.splitlines())]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What the verbs of a plain install say."""
    lines, directory = [arguments for arguments, _, _ in ROWS.values()], tmp_path_factory.mktemp("light")
    (directory / "batch=1").mkdir()  # of an archive
    return dict(zip(ROWS, run(lines, directory, OPTIONAL), strict=True))


@pytest.mark.parametrize("row", ROWS)
def test_a_verb_names_the_extra_that_it_needs_in_one_line(row: str, said: dict[str, tuple[int, str]]) -> None:
    _, who, extras = ROWS[row]
    status, line = said[row]

    assert status == (4 if row in ("node", "gateway", "worker") else 1)
    assert re.fullmatch(rf"error: {who} needs \w+, which is not installed here; run: pip install"
                        rf" 'skuld-py\[{extras}\]' \[missing_extra\]\n", line)


def test_a_worker_of_plain_functions_is_in_a_plain_install(tmp_path: Path) -> None:
    (status, line), = run([["worker", "--queue", "q", "--app", "no_such_app"]], tmp_path, OPTIONAL)

    assert status == 4 and "there is no module no_such_app" in line


def test_a_program_is_told_in_a_document(tmp_path: Path) -> None:
    (_, document), = run([["gateway", "--json"]], tmp_path, OPTIONAL)

    assert json.loads(document)["code"] == "missing_extra"
    assert json.loads(document)["facts"] == {"package": "h11", "extra": "gateway"}


def test_a_thin_pyspark_is_no_spark(tmp_path: Path) -> None:
    (_, line), = run([["archive", "DIRECTORY"]], tmp_path, ["py4j", "pyarrow"])

    assert "needs py4j" in line


def test_what_no_extra_brings_is_no_missing_extra() -> None:
    assert as_missing(ModuleNotFoundError("no", name="acme.jobs"), "skuld worker") is None
    assert as_missing(ModuleNotFoundError("no"), "skuld worker") is None


def test_extras_are_those_of_the_package_and_the_plain_install_is_light() -> None:
    options = configparser.ConfigParser()
    options.read(TOP / "setup.cfg")
    extras = options["options.extras_require"]

    assert all("prometheus-client" in names_of(extras[extra]) for extra in ("node", "gateway", "spark"))
    assert {extra: {*names_of(extras[extra])} - {"prometheus-client"} for extra in PACKAGES} == {
        extra: {PACKAGED.get(package, package) for package in packages} - {"py4j"}
        for extra, packages in PACKAGES.items()}  # py4j comes with pyspark
    assert set(names_of(options["options"]["install_requires"])) == LIGHT
    assert "skuld_py.simulation*" in options["options.packages.find"]["exclude"]


def test_the_range_of_pyspark_is_that_which_a_worker_takes() -> None:
    text = (TOP / "setup.cfg").read_text(encoding="utf-8")
    (least, below), = re.findall(r"^    pyspark >=([\d.]+), <([\d.]+)$", text, re.MULTILINE)

    assert least == ".".join(map(str, spark_jvm.OLDEST))
    assert below == f"{spark_jvm.NEWEST[0]}.{spark_jvm.NEWEST[1] + 1}"


def names_of(lines: str) -> list[str]:
    """The packages of a list of requirements."""
    return [re.split(r"[ \[]", line)[0] for line in lines.split("\n") if line and not line.startswith("#")]
