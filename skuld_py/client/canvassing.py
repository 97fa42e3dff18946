"""Ask other nodes for what the first cannot know: whom, ``model.overview`` says."""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.client.asking import Work, ask
from skuld_py.errors import SkuldError
from skuld_py.model import messages as m
from skuld_py.model.overview import EACH_S, SILENCE_S, TOTAL_S, Canvass, Overview


def canvassed(first: m.Described, greeted: m.Greeted, clock: Callable[[], float]) -> Work[Overview]:
    """The cluster as ``first`` and those who keep the other partitions see it. A node that does not answer is
    waited for once, and all such no longer than ``SILENCE_S``; with those that answer it takes ``TOTAL_S`` at
    most."""
    from skuld_py.client.dial import address_of  # needs an open connection's packages

    addresses = {member.name: address_of(member.host, member.port) for member in greeted.members}
    canvass, end_s, silence_s = Canvass(first), clock() + TOTAL_S, SILENCE_S
    while name := canvass.wanted():
        asked_s = clock()
        left_s = min(EACH_S, silence_s, end_s - asked_s)
        if name not in addresses or left_s <= 0:
            canvass.miss(name, "was not asked in time" if name in addresses else "came a moment ago")
            continue
        try:
            told = yield from ask(m.Described, m.Describe(0), is_idempotent=False, only=addresses[name],
                                  within_s=left_s)
        except SkuldError as problem:
            silence_s -= clock() - asked_s
            canvass.miss(name, f"did not answer ({problem.code})")
        else:
            canvass.hear(name, told.message)
    return canvass.overview()
