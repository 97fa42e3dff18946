"""How many files this process may have open: it takes what it wants of that, and says how many it has got.

A connection is a file, and shells give 1,024 of them by custom, often with leave to take more. Nodes and gateways
take them here, and bound their connections by the number that comes back.
"""

from __future__ import annotations

import resource

from skuld_py.errors import Refused


def may_have(most: int) -> int:
    """How many files may be open now; ``most``, if more."""
    return min(most, _numbers(most)[0])


def take(process: str, wanted: int, least: int) -> int:
    """Raise the limit to ``wanted``, as far as allowed; gives how many of these there are. ``Refused`` when they
    are fewer than ``least``. ``process``: what it is, in words."""
    soft, hard = _numbers(wanted)
    allowed = min(wanted, hard)
    if soft < allowed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    if allowed < least:
        raise Refused("too_few_files", f"files: this process may have {allowed} files open, and {process} needs"
                      f" {least} at least; {remedy(wanted)}", allowed=allowed, field="files")
    return allowed


def remedy(wanted: int) -> str:
    """What to do to have more."""
    return f"raise the limit, as by 'ulimit -n {wanted}' or LimitNOFILE={wanted}"


def _numbers(wanted: int) -> tuple[int, int]:
    """The soft limit and the hard one; what has no limit is as much as wanted."""
    soft, hard = (wanted if limit == resource.RLIM_INFINITY else limit
                  for limit in resource.getrlimit(resource.RLIMIT_NOFILE))
    return soft, hard
