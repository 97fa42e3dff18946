"""What is derived of the replica and takes long, the placement and the seats of workflows: decided aside, while
the log goes on.

There is one owner of it in a process. The log is played through ``versions``: every entry applies at once, and the
placement follows under a version of its own. ``decider`` says where it is worked out: by the schedulers that are
named, or in this process, beside its loop. A process that is named so schedules for others, too; what both of its
parts want computed is computed once.

Nothing is derived of the past. Until the log was read to its end once, and over a jump, entries are played
plainly; then versions begin with the replica that came of it, and the placement before it stands until the next
one is decided. After each step what is wanted is compared with what was asked, so what is overtaken within a step
is never asked.

Seats have no versions (``seating``), and are always decided here, whether or not the placement is.

Invariants: the replica is at each position what playing in order makes of it; the placement is what the nodes of
its version give; no command reads what is derived here, so no entry waits and the replica is always whole.

Rejected: holding back the news of the nodes at the node's side until they are placed (that derives beside the
replica, under no version, what the replica's versions derive); versions while the log is caught up with (each
entry would ask, and the answers would not be used).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.cluster.log.play import Played, Player
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.placement import Placement
from skuld_py.cluster.scale.decider import NEVER_MS, Decider, DecidingEvent
from skuld_py.cluster.scale.decisions import SEATS, Decision, Unwanted, Wanted
from skuld_py.cluster.scale.scheduler import Scheduler
from skuld_py.cluster.scale.seating import Seating
from skuld_py.cluster.scale.versions import PlacedReplica, Scheme, Versions, VersionsEffect, placing
from skuld_py.config.scaling import Scaling
from skuld_py.model.events import Compute, Computed, Received, SchedulersChanged, Send, Ticked
from skuld_py.model.messages.decisions import DECLINED, Decide, Undecided
from skuld_py.model.seats import Seats

DerivingEvent = Received | Computed | Ticked


def scheme_of(scaling: Scaling, partitions: int) -> Scheme | None:
    """What is derived with these options; None: nothing, and each node places by itself when it hears of nodes."""
    return placing(partitions) if scaling.versions or scaling.schedulers else None


class Derivation:
    """``me`` is the node's name; ``player`` plays what is not played through versions."""

    def __init__(self, me: str, schedulers: Sequence[str], scheme: Scheme | None, player: Player) -> None:
        self.decider = Decider(me)
        self._scheduler = Scheduler() if me in schedulers else None
        self._scheme = scheme
        self._player = player
        self._versions: Versions | None = None
        self._begun = -1
        """The position at which versions began."""
        self._last: Replica | None = None
        """The replica that versions made last; any other one came over a jump."""
        self._earlier: tuple[int, Placement] | None = None
        """The placement before versions began."""
        self._wanted: dict[bytes, Wanted] = {}
        self._asked: dict[bytes, None] = {}
        self._computations: dict[bytes, None] = {}
        self._seating = Seating(me)
        self.decider.step(0, SchedulersChanged(tuple(schedulers)))
        if scheme is not None:
            derived = {each.name for each in scheme.derived}
            assert all(scheme.of(kind).reads.isdisjoint(derived) for kind in scheme.commands), "entries would wait"

    # -- the log -------------------------------------------------------------------------------

    def play(self, replica: Replica, position: int, raw: bytes) -> Played:
        """Play an entry, as ``play.play`` does."""
        if self._versions is None or replica is not self._last:
            return self._player(replica, position, raw)
        played, = self._note(self._versions.feed(position, raw))
        whole = self._versions.replica
        assert isinstance(whole, PlacedReplica)
        self._last = whole.without_placement()
        return attrs.evolve(played, replica=self._last)

    def _note(self, effects: Sequence[VersionsEffect]) -> list[Played]:
        found = []
        for effect in effects:
            if isinstance(effect, Played):
                found.append(effect)
            elif isinstance(effect, Wanted):
                self._wanted[effect.question.hash] = effect
            else:
                self._wanted.pop(effect.hash, None)
        return found

    def _begin(self, replica: Replica, scheme: Scheme) -> None:
        self._earlier = self.placement
        self._versions = Versions(PlacedReplica.of(replica), scheme)
        self._begun, self._last = replica.version, replica
        self._wanted.clear()
        self._note(self._versions.begin())

    # -- decisions -----------------------------------------------------------------------------

    def step(self, now_ms: int, event: DerivingEvent) -> list[Send | Compute]:
        """Another process asks or answers, something is computed, or time has passed."""
        if isinstance(event, Received) and isinstance(event.message, Decide):
            if self._scheduler is None:
                return [Send(event.peer, Undecided(event.message.question, DECLINED))]
            return self._once(self._scheduler.step(now_ms, event))
        if isinstance(event, Computed):
            self._computations.pop(event.hash, None)
        effects: list[Send | Compute] = []
        if self._scheduler is not None and not isinstance(event, Received):
            effects += self._once(self._scheduler.step(now_ms, event))
        return effects + self._decide(now_ms, event)

    def settle(self, now_ms: int, replica: Replica) -> list[Send | Compute]:
        """Ask for what is wanted as of the last entry played, and for nothing else."""
        if self._scheme is not None and replica is not self._last:
            self._begin(replica, self._scheme)
        self._want_seats(replica)
        effects: list[Send | Compute] = []
        while self._wanted.keys() != self._asked.keys():
            for wanted in [wanted for question, wanted in self._wanted.items() if question not in self._asked]:
                self._asked[wanted.question.hash] = None
                effects += self._decide(now_ms, wanted)
            for question in [question for question in self._asked if question not in self._wanted]:
                del self._asked[question]
                effects += self._decide(now_ms, Unwanted(question))
        return effects

    def _want_seats(self, replica: Replica) -> None:
        wanted = self._seating.look(replica)
        self._wanted = {question: each for question, each in self._wanted.items()
                        if each.question.kind != SEATS.name}
        if wanted is not None:
            self._wanted[wanted.question.hash] = wanted

    def _decide(self, now_ms: int, event: DecidingEvent) -> list[Send | Compute]:
        effects: list[Send | Compute] = []
        for effect in self.decider.step(now_ms, event):
            if isinstance(effect, Decision):
                self._on_decision(effect)
            else:
                effects.append(effect)
        return self._once(effects)

    def _once(self, effects: list[Send | Compute]) -> list[Send | Compute]:
        """The effects without computations that are under way: their results are told to all parts."""
        found = []
        for effect in effects:
            if isinstance(effect, Send) or effect.hash not in self._computations:
                found.append(effect)
            if isinstance(effect, Compute):
                self._computations[effect.hash] = None
        return found

    def _on_decision(self, decision: Decision) -> None:
        question = decision.question.hash
        self._asked.pop(question, None)
        wanted = self._wanted.pop(question, None)
        if decision.question.kind == SEATS.name:
            self._seating.decide(decision.question, decision.result)
        elif wanted is not None and self._versions is not None:
            self._note(self._versions.decide(question, decision.result))

    def deadline(self) -> int | None:
        """When it next wants a ``Ticked``."""
        dues = [self.decider.deadline(), *([self._scheduler.deadline()] if self._scheduler is not None else [])]
        return min((due_ms for due_ms in dues if due_ms < NEVER_MS), default=None)

    # -- what is known -------------------------------------------------------------------------

    @property
    def is_lagging(self) -> bool:
        """Whether the placement is not yet that of the newest nodes."""
        if self._versions is None or self._last is None:
            return self._scheme is not None
        return self._versions.version("placement") < self._last.version

    @property
    def seats(self) -> Seats:
        """The seats of workflows, as of their last decision."""
        return self._seating.seats

    @property
    def placement(self) -> tuple[int, Placement] | None:
        """The placement and its version; None before the first one."""
        if self._versions is None:
            return None
        version, (placement,) = self._versions.observe("placement")
        return (version, placement) if version >= self._begun else self._earlier

    @property
    def lists(self) -> Placement | None:
        """The owners of each partition; None when that is not decided here, or cannot be."""
        placement = self.placement
        return None if placement is None else placement[1] or None
