"""How long an engine may be silent, with literal times: 60 s, looked at once a second."""

from __future__ import annotations

from skuld_py.worker.silence import Silence


def looked(silence: Silence, start: int, end: int) -> list[bool]:
    """What looking once a second gave."""
    return [silence.is_too_long(float(second)) for second in range(start, end)]


def test_silence_is_too_long_after_60_s() -> None:
    assert looked(Silence(60.0, 0.0), 1, 62) == [False] * 60 + [True]


def test_an_answer_begins_it_anew() -> None:
    silence = Silence(60.0, 0.0)
    looked(silence, 1, 60)

    silence.broken()

    assert looked(silence, 60, 121) == [False] * 60 + [True]


def test_a_worker_that_slept_asks_before_the_engine_is_condemned() -> None:
    silence = Silence(60.0, 0.0)
    looked(silence, 1, 11)

    assert not silence.is_too_long(500.0)
    assert looked(silence, 501, 550) == [False] * 48 + [True]


def test_an_engine_that_answers_after_the_sleep_is_well() -> None:
    silence = Silence(60.0, 0.0)
    looked(silence, 1, 60)
    assert not silence.is_too_long(500.0)

    silence.broken()

    assert not any(looked(silence, 501, 561))
