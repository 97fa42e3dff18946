"""Calls of threads that travel together: which join, which thread asks for all, and which goes on if it cannot.

Calls of one kind gather in a *party*. It leaves once no other one of its lane is under way: one of its threads,
the newest that is awake, asks for all of them, and the others wait for what it gives. A thread that is
interrupted, or whose time is over, is gone; then another one of them asks again for the same items, which is
harmless, for only what may be asked again travels together. So no call fails for another one's interrupt.

Nothing is counted and no call is moved from one list to another, so an exception can never leave one in between: a
party gathers while ``items`` is None, is under way from then on, and is over once ``outcomes`` is set (``waiter``
says why).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from skuld_py.client.asking import Joint, Work
from skuld_py.client.coalescing import BYTES_MAX, COUNT_MAX, UNDER_WAY_MAX
from skuld_py.client.waiter import Waiter


class Caller(Waiter):
    """A thread whose call travels with others, until ``deadline``."""

    __slots__ = ("deadline", "joint", "number", "party")

    def __init__(self, joint: Joint[Any, Any], deadline: float) -> None:
        super().__init__()
        self.joint = joint
        self.deadline = deadline
        self.party: Party | None = None
        self.number = -1

    @property
    def is_answered(self) -> bool:
        """Whether there is an outcome."""
        return self.party is not None and self.party.outcomes is not None

    @property
    def outcome(self) -> Any:
        """What came of it."""
        assert self.party is not None and self.party.outcomes is not None
        return self.party.outcomes[self.number]


@attrs.define(eq=False)
class Party:
    """Calls that travel together."""

    members: list[Caller] = attrs.field(factory=list)
    size: int = 0
    items: list[Any] | None = None
    driver: Caller | None = None
    outcomes: Sequence[Any] | None = None

    @property
    def together(self) -> Callable[[Sequence[Any]], Work[Sequence[Any]]]:
        """How to ask for all: by the same call each time, which remembers what it must."""
        return self.members[0].joint.together

    @property
    def is_over(self) -> bool:
        """Whether no caller waits for it any more."""
        return self.outcomes is not None or all(member.is_gone for member in self.members)

    @property
    def is_full(self) -> bool:
        """Whether it makes a full request."""
        return len(self.members) >= COUNT_MAX or self.size >= BYTES_MAX

    def is_under_way_beside(self, caller: Caller) -> bool:
        """Whether it is, by another thread: a signal handler does not wait for the call that it interrupts."""
        return self.items is not None and (self.driver is None or self.driver.thread != caller.thread)

    def leave(self) -> None:
        """Settle which calls travel: none that was given up before."""
        travellers = [member for member in self.members if not member.is_gone]
        for number, member in enumerate(travellers):
            member.number = number
        self.items = [member.joint.item for member in travellers]

    def wake_newest(self) -> None:
        """Wake the thread that has the most time left: one has to ask for all."""
        for member in reversed(self.members):
            if not member.is_gone:
                member.wake()
                return


@attrs.define(eq=False)
class Parties:
    """The parties of one lane; used under its owner's lock only."""

    open: list[Party] = attrs.field(factory=list)

    def tidy(self) -> None:
        """Forget those that are over."""
        self.open = [party for party in self.open if not party.is_over]

    def join(self, caller: Caller) -> None:
        """One more call, with those that have not left."""
        self.tidy()
        if not self.open or self.open[-1].items is not None or self.open[-1].is_full:
            self.open.append(Party())
        party = self.open[-1]
        caller.party = party
        party.members.append(caller)
        party.size += caller.joint.size

    def driven_by(self, caller: Caller) -> Party | None:
        """The caller's party, if it is the caller that asks for it now."""
        party = caller.party
        assert party is not None
        if party.outcomes is not None:
            return None
        if party.items is None:
            self.tidy()
            under_way = sum(other.is_under_way_beside(caller) for other in self.open)
            if under_way and not (party.is_full and under_way < UNDER_WAY_MAX):
                return None
            party.leave()
        if party.driver is None or party.driver.is_gone:
            party.driver = caller
        return party if party.driver is caller else None

    def pass_on(self, caller: Caller) -> None:
        """The caller leaves: let the callers that wait for it go on."""
        party = caller.party
        if party is None or party.driver is not caller:
            return
        if party.outcomes is None:
            party.wake_newest()
        else:
            for member in party.members:
                if member is not caller:
                    member.wake()
        self.tidy()
        for other in self.open:
            if other.items is None:
                other.wake_newest()
