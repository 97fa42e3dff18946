"""How people may name a node: as the cluster does, or as its address is written."""

from __future__ import annotations

import re
from contextlib import suppress
from ipaddress import IPv6Address

from skuld_py.model.names import WIDE_NAME, check_name

_IPV6 = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*)):([0-9]{1,5})", re.ASCII)


def node_name(field: str, text: object) -> str:
    """A node's name as it is typed: that of a node at an IPv6 address with or without brackets around that, and
    without the zero that such a name may begin with. ``Refused`` when it is none."""
    if isinstance(text, str) and (match := _IPV6.fullmatch(text)):
        with suppress(ValueError):
            host = str(IPv6Address(match[1] or match[2]))
            text = f"{'0' * host.startswith(':')}{host}:{match[3]}"
    return check_name(field, text, WIDE_NAME)
