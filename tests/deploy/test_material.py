"""What is given to run a cluster with: it has the form that its programs want, and its commands can be typed.

Nothing here starts a container or a service. ``skuld manual deploying`` says what was never run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from compose_spec import ComposeSpecification

from deploy import chart, typed
from deploy.typed import COMPOSE, DEPLOY, UNITS
from manual import commands
from skuld_py.cli.failures import LASTING, MISUSED

EVERYTHING = {**chart.values(), "worker": {**chart.values()["worker"], "enabled": True}}
TYPED = [*typed.of_units(), *typed.of_compose(), *typed.of_chart(EVERYTHING)]
TO_PEOPLE = f"{MISUSED} {LASTING}"
EXPOSURE_MAX = 2.0
"""Of 10, as systemd reckons how much a service may do that it need not."""


@pytest.mark.parametrize(("place", "words"), TYPED, ids=[f"{place} {words[1]}" for place, words in TYPED])
def test_each_command_can_be_typed(place: str, words: list[str], tmp_path: Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in typed.environment().items():
        monkeypatch.setenv(name, value)

    assert commands.wrong(typed.without_paths(words, tmp_path)) == "", place


def test_there_is_a_command_for_each_part_everywhere() -> None:
    verbs = {place: words[1] for place, words in TYPED if words[1] != "status"}

    assert set(verbs.values()) == {"node", "gateway", "worker", "keys"}
    assert {"skuld-node@.service", "node-0", "node-1", "node-2", "gateway", "worker", "demo-node/node",
            "demo-gateway/gateway", "demo-worker/worker", "create"} <= set(verbs)


# -- systemd -------------------------------------------------------------------------------------

no_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None,
                                reason="NOT CHECKED: this machine has no systemd-analyze")


def placed(unit: Path, directory: Path) -> str:
    """An instance of a unit, with a program in it that this machine has."""
    text = unit.read_text(encoding="utf-8").replace("/opt/skuld/bin/skuld", shutil.which("true") or "/bin/true")
    path = directory / unit.name.replace("@", f"@{typed.INSTANCE.get(unit.name, '')}")
    path.write_text(text, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_reload_at_the_start_ends_no_service(unit: Path) -> None:
    lines = unit.read_text(encoding="utf-8").splitlines()
    if any(line.startswith("ExecReload=") for line in lines):
        assert any(line.startswith(f"ExecStart={' '.join(typed.DEAF)} /") for line in lines)


@no_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_systemd_understands_every_line(unit: Path, tmp_path: Path) -> None:
    ran = subprocess.run(["systemd-analyze", "verify", "--man=no", placed(unit, tmp_path)], capture_output=True,
                         text=True, check=False)

    assert [line for line in ran.stderr.splitlines() if unit.stem.rstrip("@") in line] == []
    assert ran.returncode == 0, ran.stderr


@no_systemd
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_service_may_do_no_more_than_it_needs(unit: Path, tmp_path: Path) -> None:
    ran = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={int(EXPOSURE_MAX * 10)}",
                          placed(unit, tmp_path)], capture_output=True, text=True, check=False,
                         env={**os.environ, "SYSTEMD_PAGER": "cat"})

    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_service_comes_back_and_is_bounded(unit: Path) -> None:
    said = dict(re.findall(r"^(\w+)=(.*)$", unit.read_text(encoding="utf-8"), re.MULTILINE))

    assert said["User"] == "skuld"
    assert said["Restart"] in ("always", "on-failure") and said["RestartPreventExitStatus"] == TO_PEOPLE
    assert re.fullmatch(r"\d+[MG]", said["MemoryMax"]) and int(said["LimitNOFILE"]) >= 65_536


# -- containers ----------------------------------------------------------------------------------


def test_the_linter_of_dockerfiles_has_nothing_to_say() -> None:
    program = Path(sys.executable).with_name("hadolint")
    ran = subprocess.run([program, "--no-color", DEPLOY / "Dockerfile"], capture_output=True, text=True,
                         check=False)

    assert (ran.returncode, ran.stdout) == (0, "")


def test_the_image_is_made_in_two_stages_runs_as_nobody_and_copies_what_is_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    _, build, final = re.split(r"^FROM ", text, flags=re.MULTILINE)

    assert " AS build" in build and "--require-hashes" in build and "pip" not in final
    assert re.search(r"^USER 10001", final, re.MULTILINE)
    copied = [name for line in re.findall(r"^COPY (.+)$", build, re.MULTILINE) for name in line.split()[:-1]]
    assert [name for name in copied if not (chart.TOP / name).exists()] == []


def test_the_compose_file_is_one() -> None:
    ComposeSpecification.model_validate(COMPOSE)
    services = COMPOSE["services"]

    assert {"zookeeper", "node-0", "node-1", "node-2", "gateway", "worker"} <= set(services)
    for name, service in services.items():
        assert set(service.get("depends_on", ())) <= set(services), name
        assert {each.partition(":")[0] for each in service.get("volumes", ()) if each[0] != "."} <= set(
            COMPOSE["volumes"]), name
        assert set(service.get("secrets", ())) <= set(COMPOSE["secrets"]), name
        if name != "zookeeper":
            assert service["read_only"] and service["cap_drop"] == ["ALL"] and service["mem_limit"], name


FAKE = """#!/bin/sh
cd "$(dirname "$0")"
count=$(($(cat count) + 1)); echo "$count" > count
[ "$CUT before" = "$count before" ] && [ "$WHEN" = before ] && exit 1
for last; do :; done
case "$1 $2" in
  "cluster create") [ -e cluster ] && exit 1; touch cluster;;
  "cluster secure") [ -e cluster ] || exit 1; touch "$last";;
  "keys make") [ -e "$last" ] && exit 1; touch "$last";;
  *) exit 1;;
esac
[ "$CUT" = "$count" ] && [ "$WHEN" = behind ] && exit 1
exit 0
"""
"""Does what the program does to the files, and is cut off once, before or behind what it does."""


@pytest.mark.parametrize("when", ["before", "behind"])
@pytest.mark.parametrize("cut", range(1, 7))
def test_a_cluster_that_compose_makes_is_made_whatever_is_cut_off(cut: int, when: str, tmp_path: Path) -> None:
    script = " ".join(COMPOSE["services"]["create"]["command"]).replace("/keys", str(tmp_path)).replace("$$", "$")
    program = tmp_path / "skuld"
    program.write_text(FAKE)
    program.chmod(0o700)
    (tmp_path / "count").write_text("0")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CUT": str(cut), "WHEN": when}
    statuses = [subprocess.run(["/bin/sh", "-ec", script], env=environment, check=False).returncode
                for _ in range(3)]

    assert statuses[1:] == [0, 0]
    assert sorted(path.stem for path in tmp_path.glob("*.key")) == ["gateway", "main", "reader", "worker"]


def test_prometheus_looks_at_each_part_that_shows_metrics() -> None:
    told = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text(encoding="utf-8"))
    group, = told["scrape_configs"][0]["static_configs"]
    words_of = {name: service.get("command", []) for name, service in COMPOSE["services"].items()}
    shown = {f"{name}:{words[words.index('--metrics') + 1].rpartition(':')[2]}"
             for name, words in words_of.items() if "--metrics" in words}

    assert set(group["targets"]) == shown and len(shown) == 5
    assert group["labels"] == {"cluster": "main"} and (DEPLOY / told["rule_files"][0]).exists()


def test_no_file_names_a_registry_or_a_tag_that_moves() -> None:
    for path in sorted(DEPLOY.rglob("*")):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"image: *\S+(:latest|[^:\s]+/[^:\s]+\.\w+/)", text), path
            assert ":latest" not in text, path
