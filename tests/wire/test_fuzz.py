"""Hostile bytes by the thousand: never anything but an ``Envelope`` or ``Malformed``.

Seeded, so that a failure is a number to replay; and searched by hypothesis, which shrinks what it finds. A million
and more are for ``scripts/fuzz``.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.model.messages import MESSAGES
from skuld_py.wire.codec import decode, encode
from wire import fuzzing
from wire.fuzzing import SORTS, Sort

SEED = 20_260
INPUTS = 4_000
"""Of each sort."""

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-(1 << 63), (1 << 64) - 1), st.floats(),
                    st.text(max_size=20), st.binary(max_size=50))
TREES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=6), max_leaves=20)


@pytest.mark.parametrize("sort", SORTS, ids=lambda sort: str(sort.__name__))
def test_hostile_bytes_give_an_envelope_or_malformed(sort: Sort) -> None:
    outcomes = fuzzing.try_out(sort, f"{SEED} {sort.__name__}", INPUTS)

    assert outcomes.total() == INPUTS
    assert outcomes["malformed"] > INPUTS // 4
    if sort not in (fuzzing.noise, fuzzing.noise_behind_a_message):
        assert outcomes["accepted"] > INPUTS // 100, "the checks behind the first were hardly reached"


@settings(max_examples=400, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=4))
def test_any_frames_give_an_envelope_or_malformed(frames: list[bytes]) -> None:
    fuzzing.outcome_of(frames)


@settings(max_examples=600, deadline=None)
@given(code=st.integers(0, len(MESSAGES)), values=st.lists(TREES, max_size=10),
       cluster=st.sampled_from(["", "main", 7]), frames=st.lists(st.binary(max_size=40), max_size=3))
def test_any_values_in_a_message_give_an_envelope_or_malformed(code: int, values: list[Any], cluster: Any,
                                                               frames: list[bytes]) -> None:
    fuzzing.outcome_of([msgpack.packb([1, cluster, "", [[code, *values]]]), *frames])


def test_there_are_enough_inputs_and_the_corpus_is_valid() -> None:
    valid = fuzzing.corpus(Random(SEED))

    assert INPUTS * len(SORTS) >= 20_000
    assert all(encode(decode(frames)) == frames for frames in valid)
    assert {type(message) for frames in valid for message in decode(frames).messages} == set(MESSAGES)


def test_what_must_not_be_is_told_with_how_to_replay_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "decode", lambda frames: 1 // 0)

    with pytest.raises(ZeroDivisionError) as raised:
        fuzzing.try_out(fuzzing.noise, "a seed", 10)

    assert raised.value.__notes__[0].startswith("noise, seed 'a seed', input 0: [")
