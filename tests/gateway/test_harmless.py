"""Answers may be looked at with curl on a terminal: what others wrote into tasks moves no cursor there."""

from __future__ import annotations

import json

import pytest

from skuld_py.client.json_text import is_harmless
from skuld_py.gateway import application

HARMFUL = {"payload": "\x9b31m \u202egpj.exe \u200b", "word": "Käse"}


@pytest.mark.parametrize("body", [application._encoded([HARMFUL]), bytes(application._json(HARMFUL).body)],
                         ids=["a line of a stream", "a document"])
def test_what_others_wrote_arrives_escaped(body: bytes) -> None:
    assert json.loads(body) == HARMFUL and "Käse" in body.decode()
    assert all(map(is_harmless, body.decode().rstrip("\n")))
