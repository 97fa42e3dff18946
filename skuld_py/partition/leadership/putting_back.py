"""A document that is gone while its partition is led: may its leader write it again as it knew it?

Only if no newer epoch had a leader before the document went: then the newest document would be overwritten by an
older one. A newer leader has the votes of a majority of this leader's cohort. So a majority that has promised
nothing newer, asked after the document was seen to be gone, tells that there was none; and from then on there can
be none, for a swap needs the document that it was made of: by its version, and, since versions begin anew with a
document that is created, by how often it was put back (``Document.put_back``).

Rejected: to write it at once (a leader that was deposed a moment before would bring its epoch back); to elect a
new leader by what the voters remember (they do not know the horizon).
"""

from __future__ import annotations

import attrs

from skuld_py.model.document import Document
from skuld_py.partition.leadership import quorum


@attrs.define
class PuttingBack:
    """The question, and what was answered. ``promised``: the newest epoch that each voter has promised."""

    document: Document
    me: str
    next_ask_ms: int = 0
    promised: dict[str, int] = attrs.field(factory=dict)

    def note(self, put_back: int) -> None:
        """It was put back so often, as who has read it says; 0 where that is not known."""
        self.document = attrs.evolve(self.document, put_back=max(self.document.put_back, put_back))

    @property
    def is_allowed(self) -> bool:
        """Whether a majority has promised nothing newer."""
        return quorum.has_majority(self.document.cohort, [self.me, *(
            name for name, epoch in self.promised.items() if epoch <= self.document.epoch)])

    @property
    def unasked(self) -> list[str]:
        """The voters that have not answered."""
        return [name for name in self.document.cohort if name != self.me and name not in self.promised]
