"""Bodies to test with, of every shape: with and without each option, limits often."""

from __future__ import annotations

from hypothesis import strategies as st

from skuld_py.model.body import (
    DEFAULT_RETRY,
    PRIORITY_MAX,
    PRIORITY_MIN,
    RETRY_RANGES,
    TIME_MS_MAX,
    Body,
    Header,
    Retry,
)

TIMES = st.just(0) | st.integers(1, TIME_MS_MAX)
RETRIES = st.just(DEFAULT_RETRY) | st.builds(
    Retry, **{field: st.integers(*both) for field, both in RETRY_RANGES.items()}).filter(
        lambda retry: retry.backoff_ms <= retry.backoff_max_ms)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
PAIRS = st.dictionaries(TEXTS.filter(bool), TEXTS, max_size=3).map(lambda pairs: tuple(sorted(pairs.items())))
HEADERS = st.builds(Header, st.from_regex(r"[a-z][a-z0-9._-]{0,9}", fullmatch=True),
                    st.integers(PRIORITY_MIN, PRIORITY_MAX), RETRIES, PAIRS)
BODIES = st.builds(Body, HEADERS, TIMES, TIMES, st.binary(max_size=12))
