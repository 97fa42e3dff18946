"""The commands in the material under ``scripts/deploy``: each with where it stands, as words for the program."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from deploy import chart
from skuld_py.keys.files import ClientKey, ClusterKey, write_new
from skuld_py.keys.pair import fresh

DEPLOY = chart.TOP / "scripts" / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))
INSTANCE = {"skuld-node@.service": "13000", "skuld-worker@.service": "reports"}
DEAF = ["/usr/bin/env", "--ignore-signal=HUP"]
"""In front of a program that a reload must not end before it hears signals."""
_IN_SHELL = re.compile(r"skuld (?:(?!\|\||&&|>|;).)+")


def environment() -> dict[str, str]:
    """What the services of systemd are given."""
    lines = (DEPLOY / "systemd" / "skuld.env").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and line[0] != "#")


def of_units() -> Iterator[tuple[str, list[str]]]:
    """From the services of systemd, for one instance."""
    for path in UNITS:
        line, = re.findall(r"^ExecStart=(.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        words = shlex.split(line.replace("%i", INSTANCE.get(path.name, "")))
        words = words[len(DEAF) :] if words[: len(DEAF)] == DEAF else words
        yield path.name, [words[0].rpartition("/")[2], *words[1:]]


def of_compose() -> Iterator[tuple[str, list[str]]]:
    """From the file for compose: commands, checks, and lines for a shell."""
    for name, service in COMPOSE["services"].items():
        command, check = service.get("command", []), service.get("healthcheck", {}).get("test", [])
        if service.get("image", "").startswith("skuld") and "entrypoint" not in service:
            yield name, ["skuld", *command]
        else:
            yield from _in_shell(name, " ".join(command))
        yield from _in_shell(name, " ".join(check).replace("$$(hostname)", name))


def of_chart(given: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """From the chart."""
    for document in chart.documents(given):
        pod = document.get("spec", {}).get("template", {}).get("spec", {})
        for container in pod.get("containers", ()):
            yield f"{document['metadata']['name']}/{container['name']}", ["skuld", *container["args"]]
            for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
                words = container.get(probe, {}).get("exec", {}).get("command", [])
                yield from _in_shell(f"{document['metadata']['name']}/{probe}", " ".join(words))


def _in_shell(place: str, line: str) -> Iterator[tuple[str, list[str]]]:
    for match in _IN_SHELL.finditer(line):
        yield place, shlex.split(match[0])


def without_paths(words: list[str], directory: Path) -> list[str]:
    """The same line, with files that are there in place of those of the machine it is for."""
    kinds = {"--tokens": "", "--certificate": "", "--key": "",
             "--cluster-key": ClusterKey("main", fresh(), "x").text,
             "--client-key": ClientKey("main", fresh(), fresh().public).text}
    files = {option: directory / option for option in kinds}
    for option, path in files.items():
        write_new(path, kinds[option])
    return [str(files.get(before, word)) for before, word in zip(["", *words], words, strict=False)]
