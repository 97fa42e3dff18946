"""A revision reads as it was written, and what is none is refused."""

from __future__ import annotations

import json

import attrs
import pytest

from skuld_py.errors import Malformed
from skuld_py.model.document import Document, seats_of
from skuld_py.model.revision import HORIZON, Revision, revision_of

DOCUMENT = Document(4, "n1", "boot", seats_of(("n1", "n2")), "w", "freeze by anna: why")
REVISION = Revision(7, 4, "n1", ("n1", "n2"), "n2", "freeze by anna: why", "w")


def test_it_says_who_wrote_what_and_why() -> None:
    assert revision_of(DOCUMENT, 7, "n2") == REVISION
    later = json.dumps({**json.loads(REVISION.encode()), "of_later": 1}).encode()
    assert Revision.decode(later, 99) == attrs.evolve(REVISION, at_ms=99)


def test_a_moved_horizon_is_routine() -> None:
    assert not REVISION.is_routine and attrs.evolve(REVISION, cause=HORIZON).is_routine


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"{}", b"null", b"[" * 50_000, b"\xff",
                                 json.dumps({**attrs.asdict(REVISION), "epoch": True}).encode(),
                                 json.dumps({**attrs.asdict(REVISION), "voters": [1]}).encode()])
def test_what_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(Malformed, match="revision"):
        Revision.decode(raw, 0)
