"""Who looks at pages: a cookie that names a token by its mark, signed, and the proofs that forms carry.

A session ends after ``LIFE_MS``, when its token ends or leaves the file, and when the gateway stops: it is signed
by a key that this process made and shows nobody. Rejected: a key made from the file of tokens, by which several
gateways would know each other's sessions. Then who has read that file, which holds hashes, could make a session.

A form proves that a page of ours made it, for this session. Other sites can have a browser send a form, and the
cookie is ``SameSite=Strict`` besides; but they cannot know the proof. Who has not signed in has a session of
nobody, so that nobody can be signed in unasked.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

import attrs

LIFE_MS = 12 * 3600 * 1000
_TEXT = re.compile(r"([0-9a-f]{64}|)\.([0-9]{1,15})\.([0-9a-f]{32})\.([0-9a-f]{64})", re.ASCII)


@attrs.frozen
class Session:
    """``mark``: of a token, empty for nobody. ``until_ms``: since 1970. ``nonce``: no other session has it."""

    mark: str
    until_ms: int
    nonce: str

    @property
    def body(self) -> str:
        """What is signed."""
        return f"{self.mark}.{self.until_ms}.{self.nonce}"


class Sessions:
    """Those of one gateway process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def begin(self, mark: str, now_ms: int) -> Session:
        """A new one."""
        return Session(mark, now_ms + LIFE_MS, secrets.token_hex(16))

    def text(self, session: Session) -> str:
        """What the cookie holds."""
        return f"{session.body}.{self._signed('session', session.body)}"

    def read(self, text: str, now_ms: int) -> Session | None:
        """The session of a cookie; None if it is none of ours, or over."""
        found = _TEXT.fullmatch(text)
        if found is None:
            return None
        session = Session(found[1], int(found[2]), found[3])
        is_ours = hmac.compare_digest(self._signed("session", session.body), found[4])
        return session if is_ours and now_ms < session.until_ms else None

    def proof(self, session: Session) -> str:
        """What forms made for this session carry."""
        return self._signed("form", session.body)

    def is_proof(self, session: Session, text: str) -> bool:
        """Whether a form was made for this session."""
        return text.isascii() and hmac.compare_digest(self.proof(session), text)

    def _signed(self, what: str, text: str) -> str:
        return hmac.new(self._key, f"{what}:{text}".encode(), hashlib.sha256).hexdigest()
