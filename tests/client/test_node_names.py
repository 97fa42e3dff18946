"""A node's name may be typed as an address is."""

from __future__ import annotations

import pytest

from skuld_py.client.node_names import node_name
from skuld_py.errors import Refused


@pytest.mark.parametrize(("typed", "name"), [
    ("10.0.0.7:13000", "10.0.0.7:13000"), ("db:13000", "db:13000"), ("2001:db8::7:13000", "2001:db8::7:13000"),
    ("[2001:db8::7]:13000", "2001:db8::7:13000"), ("[2001:DB8:0::7]:13000", "2001:db8::7:13000"),
    ("[::1]:13000", "0::1:13000"), ("::1:13000", "0::1:13000"), ("0::1:13000", "0::1:13000")])
def test_brackets_or_none(typed: str, name: str) -> None:
    assert node_name("NODE", typed) == name


@pytest.mark.parametrize("typed", ["", "[::1]", "[]:1", "[10.0.0.7]:13000", "[::1]:x", "[::g]:1", 7, None])
def test_what_is_no_name_is_refused(typed: object) -> None:
    with pytest.raises(Refused, match="NODE"):
        node_name("NODE", typed)
