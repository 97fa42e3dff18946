"""Writes on their way to the servers: carried out, refused, or in doubt.

A write whose answer is lost may have been applied, may be applied yet (a frozen server finds it in its buffer; a
survivor of a lost quorum had it logged), or never. Requests and answers of one connection keep their order, as
ZooKeeper promises.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from skuld_py.simulation.world.zookeeper.sessions import Connection, News, Service
from skuld_py.simulation.world.zookeeper.wishes import Wanted

_RESURRECTED = 0.2
"""Share of the writes sent without a quorum that a surviving server had logged, and that count later."""


@attrs.frozen(eq=False)
class Proposal:
    """``apply`` gives the answer, or None where nothing was changed, which ``refused`` says then."""

    kind: str
    doubt: float
    apply: Callable[[], News | None]
    refused: News | None
    uncertain: News
    wanted: Wanted | None = None

    @property
    def article(self) -> str:
        """Before the kind, in the names of what is counted."""
        return "an" if self.kind[0] in "aeiou" else "a"


class Writes(Service):
    """The service, with writes whose outcome may stay unknown."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.before_swap: Callable[[], None] | None = None
        """What strikes the service, once, when the next swap is on its way."""
        self._buffered: list[tuple[Connection, Proposal]] = []

    def _flush(self) -> None:
        """Servers that run again carry out what they find in their buffers, if the session still lives."""
        buffered, self._buffered = self._buffered, []
        for connection, proposal in buffered:
            if connection.is_stalled:
                self._buffered.append((connection, proposal))
            elif connection.session in self._open and proposal.apply() is not None:
                self.counts[f"{proposal.kind} uncertain, applied late"] += 1

    def _propose(self, connection: Connection, proposal: Proposal) -> None:
        """A write arrives at its server, or does not."""
        uncertain, wanted = proposal.uncertain, proposal.wanted
        if connection.is_stalled or (self.is_frozen and not connection.is_cut):
            self._buffered.append((connection, proposal))
            self._fail_later(connection, uncertain, wanted)
            return
        if not self.is_quorate:
            self.counts[f"{proposal.kind} without quorum"] += 1
            if self._random.random() < _RESURRECTED:
                self._buffered.append((connection, proposal))
            self._fail_later(connection, uncertain, wanted)
            return
        is_ambiguous = self._random.random() < proposal.doubt
        if is_ambiguous and not self.is_steady and self._random.random() < 0.3:
            self.counts[f"connection broken at {proposal.article} {proposal.kind}"] += 1
            self._break(connection, self._random.randint(1, self.options.session_ms * 3 // 2))
            connection.is_stalled = True
            self._propose(connection, proposal)
            return
        if connection.is_cut or connection.is_broken or (is_ambiguous and self._random.random() < 0.5):
            self.counts[f"{proposal.kind} uncertain, not applied"] += 1
            self._fail_later(connection, uncertain, wanted)
        elif connection.session not in self._open:
            self._fail_later(connection, uncertain, wanted)
        else:
            self._carry_out(connection, proposal, is_ambiguous)

    def _carry_out(self, connection: Connection, proposal: Proposal, is_ambiguous: bool) -> None:
        made = proposal.apply()
        self.counts[f"{proposal.kind} {'lost' if made is None else 'won'}"] += 1
        if made is not None and is_ambiguous:
            self.counts[f"{proposal.kind} uncertain, applied"] += 1
            if not self.is_steady and self._random.random() < 0.3:
                self.counts[f"session ended behind {proposal.article} {proposal.kind}"] += 1
                self.expire(connection)
            made = proposal.uncertain
        answer = made if made is not None else proposal.refused
        assert answer is not None
        self._answer(connection, answer, proposal.uncertain, proposal.wanted)
