"""Without pyarrow the data source says what to type."""

from __future__ import annotations

import sys
from typing import Any, cast

import pytest

import skuld_py
from skuld_py.extras import MissingExtra


def test_a_missing_pyarrow_is_named_with_the_command_that_brings_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cast(Any, sys.modules), "pyarrow", None)

    with pytest.raises(MissingExtra, match=r"needs pyarrow, .* run: pip install 'skuld-py\[datasource\]'"):
        skuld_py.register(cast(Any, object()))
