"""Answers may be looked at with curl on a terminal: what others wrote into tasks moves no cursor there."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from skuld_py.client.json_text import is_harmless
from skuld_py.gateway import application, endpoint

HARMFUL = {"payload": "\x9b31m \u202egpj.exe \u200b", "word": "Käse"}


@pytest.mark.parametrize("body", [lambda: application._encoded([HARMFUL]),
                                  lambda: bytes(endpoint.answer_of(HARMFUL).body)],
                         ids=["a line of a stream", "a document"])
def test_what_others_wrote_arrives_escaped(body: Callable[[], bytes]) -> None:
    found = body()
    assert json.loads(found) == HARMFUL and "Käse" in found.decode()
    assert all(map(is_harmless, found.decode().rstrip("\n")))
