"""Exit statuses of what runs as a service: 4 if it is of no use to start it again, 1 if it passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import skuld_py
from skuld_py.cli.failures import LASTING, LASTING_CODES, REFUSED
from skuld_py.cli.main import main
from skuld_py.errors import Refused

NODE = ("node", "--cluster", "c", "--data", "data")


def exit_of(monkeypatch: pytest.MonkeyPatch, code: str, *words: str) -> int:
    def refuse(*_: object, **__: object) -> None:
        raise Refused(code, "no")
    for place in ("skuld_py.runtime.server.serve", "skuld_py.runtime.zookeeper.clusters.read_parameters"):
        monkeypatch.setattr(place, refuse)
    return CliRunner().invoke(main, words, prog_name="skuld").exit_code


@pytest.mark.parametrize("code", ["wrong_data", "bad_key_file", "zookeeper_denied", "revoked_key", "denied",
                                  "no_address", "unheard_address", "address_in_use", "missing_extra"])
def test_a_node_that_needs_a_person_says_so_by_its_status(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    assert exit_of(monkeypatch, code, *NODE) == LASTING
    assert exit_of(monkeypatch, code, "members", "--cluster", "c") == REFUSED, "a verb that ends is as it was"


@pytest.mark.parametrize("code", ["port_in_use", "data_in_use", "zookeeper_unreachable", "unknown_cluster"])
def test_what_passes_is_worth_another_start(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    assert exit_of(monkeypatch, code, *NODE) == REFUSED


def test_what_is_missing_is_named_with_its_choices_in_one_line() -> None:
    said = CliRunner().invoke(main, ["keys", "make", "shop", "--cluster", "c"]).stderr

    assert "Missing option '--role'. Choose from: worker, producer, reader, archiver, admin\n" in said


def test_each_lasting_code_is_one_that_is_said() -> None:
    top = Path(skuld_py.__file__).parent
    raised = re.compile(r'(?:Refused|MissingExtra)\("(\w+)"')
    said = {code for path in top.rglob("*.py") for code in raised.findall(path.read_text())}

    assert LASTING_CODES - said == set()
