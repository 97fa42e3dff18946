"""Pairs of keys: what a fresh one may look like."""

from __future__ import annotations

import pytest
import zmq

from skuld_py.keys.pair import fresh


def test_a_fresh_key_is_none_that_a_command_line_takes_for_an_option(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([(b"-" + b"a" * 39, b"b" * 40), (b"c-" + b"a" * 38, b"d" * 40)])
    monkeypatch.setattr(zmq, "curve_keypair", lambda: next(drawn))

    assert fresh().public == "c-" + "a" * 38
