"""Bodies to test with, of every shape: with and without each option, limits often."""

from __future__ import annotations

import attrs
from hypothesis import strategies as st

from skuld_py.model.body import (
    DEFAULT_RETRY,
    PRIORITY_MAX,
    PRIORITY_MIN,
    RETRY_RANGES,
    WINDOW_MS_MAX,
    Body,
    Header,
    Retry,
)
from skuld_py.model.prelude import DEPS, NAMED, TIME_MS_MAX, Prelude


def _ordered(retry: Retry) -> Retry:
    low, high = sorted((retry.backoff_ms, retry.backoff_max_ms))
    return attrs.evolve(retry, backoff_ms=low, backoff_max_ms=high)


GIVEN_TIMES = st.integers(1, TIME_MS_MAX)
TIMES = st.just(0) | GIVEN_TIMES
RETRIES = st.just(DEFAULT_RETRY) | st.builds(
    Retry, **{field: st.integers(*both) for field, both in RETRY_RANGES.items()}).map(_ordered)
CHARS = st.characters(exclude_categories=["Cs"])
PAIRS = st.dictionaries(st.text(CHARS, min_size=1, max_size=8), st.text(CHARS, max_size=8), max_size=3).map(
    lambda pairs: tuple(sorted(pairs.items())))
HEADERS = st.builds(Header, st.from_regex(r"[a-z][a-z0-9._-]{0,9}", fullmatch=True),
                    st.integers(PRIORITY_MIN, PRIORITY_MAX), RETRIES, PAIRS)
NAMES = st.text(CHARS, max_size=8)
DEPENDENCIES = st.sets(st.binary(min_size=20, max_size=20), max_size=3).map(lambda ids: tuple(sorted(ids)))


@st.composite
def _bodies(draw: st.DrawFn) -> Body:
    unique = draw(st.just("") | NAMES)
    prelude = Prelude(draw(TIMES), draw(TIMES), draw(GIVEN_TIMES) if unique else 0, unique,
                      draw(st.just("") | NAMES), draw(st.just(()) | DEPENDENCIES))
    header = attrs.evolve(
        draw(HEADERS), policy=draw(st.integers(1, 4)) if prelude.flags & DEPS else 0,
        dep_wait_ms=draw(TIMES) if prelude.flags & DEPS else 0,
        window_ms=draw(st.integers(1, WINDOW_MS_MAX)) if prelude.flags & NAMED else 0)
    return Body.of(header, prelude, draw(st.binary(max_size=12)))


BODIES = _bodies()
