"""Rights of callers: bearer tokens with roles or scopes, read from a file, and again when the gateway is told to.

The file holds the tokens' SHA-256 and never a token. A token is 32 random bytes of our making, so a plain hash is
enough: there is nothing to guess, and a hash made slow on purpose would only let strangers keep us busy. All
hashes are compared, each in constant time, so that the time of an answer says nothing about any of them.

    [[token]]
    name = "ci"
    sha256 = "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    roles = ["producer", "reader"]
    expires = 2027-01-31T00:00:00Z
    queues = ["reports"]

Roles are those of ``model.roles``, as the keys of a cluster's clients have them. ``scopes``, beside or instead of
them, say the same by kinds of verbs, none of which includes another; a scope has nothing that the role of its kind
has not.

The last two may be left out: a token then has no end, and all queues. ``queues`` are beginnings of names, and mean
what they mean for the keys of a cluster's clients: such a token may enqueue, claim, list and count only there, go
on with what it has claimed, and read tasks whose ids it was told; and submit, kill and see the workflows all of
whose queues begin so. What reaches tasks of any queue is not for it.

Unknown keys are errors: a misspelt scope must not become a token that may do nothing, or everything. Other users
of the machine must not be able to read or to change the file. Rejected for the verbs: basic authentication and
cookies, which a browser sends by itself to wherever a hostile page points it. The dashboard's pages have a cookie,
which opens them alone: it names a token by its ``mark_of``, and counts as long as the file has that token.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import stat
import tomllib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Set
from datetime import datetime
from pathlib import Path
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.model.names import NAME, check_name
from skuld_py.model.roles import CLIENTS, UNLIMITED, VERBS, Role
from skuld_py.model.roster import QUEUES_MAX
from skuld_py.verbs.verb import Scope, Verb

PREFIX = "skuld_"
_TOKEN = re.compile(PREFIX + r"[A-Za-z0-9_-]{43}", re.ASCII)
_NEEDED, _RIGHTS, _MORE = (frozenset(keys.split()) for keys in ("name sha256", "roles scopes", "expires queues"))
_SHA256 = re.compile(r"[0-9a-f]{64}", re.ASCII)
FILE_BYTES_MAX = 1 << 20
ADDRESSES_MAX = 4_096


@attrs.frozen
class Bearer:
    """The sender of a request: the name of its token, and what it may do; ``queues``: only with queues that begin
    so, if any are named. ``until_ms``: when the token ends (None: never)."""

    name: str
    scopes: frozenset[Scope]
    queues: tuple[str, ...] = ()
    until_ms: int | None = None
    roles: frozenset[Role] = frozenset()

    def may(self, verb: Verb) -> bool:
        """Whether it has the scope of a verb, or a role that has the verb."""
        return verb.scope in self.scopes or any(verb.name in VERBS[role] for role in self.roles)

    def is_valid(self, now_ms: int) -> bool:
        """Whether its token has not ended."""
        return self.until_ms is None or now_ms < self.until_ms

    def reaches(self, verb: Verb, queue: str | None) -> bool:
        """Whether its queues are all that a request touches. ``queue``: the one that it names, or how those of the
        workflow begin that it names."""
        if not self.queues:
            return True
        if queue is not None and not queue.startswith(self.queues):
            return False
        if verb.name in UNLIMITED:
            return False
        match verb.scope:
            case Scope.WORK | Scope.ENQUEUE:  # with a queue that was looked at, or with what was claimed there
                return True
            case Scope.READ:
                return queue is not None or verb.has_id or "ids" in [option.name for option in verb.asks.options]
            case _:
                return verb.scope is None


ANYBODY = Bearer("anybody", frozenset(Scope))
"""Any sender, where there are no tokens: a gateway on loopback."""


def new_token() -> str:
    """A token that cannot be guessed."""
    return PREFIX + secrets.token_urlsafe(32)


def hash_of(token: str) -> str:
    """What the file holds of a token."""
    return hashlib.sha256(token.encode()).hexdigest()


def mark_of(token: str) -> str:
    """What names a token to those that must not show it, and of which nobody makes it, or its line in the file."""
    return _mark(hashlib.sha256(token.encode()).digest())


def _mark(digest: bytes) -> str:
    return hashlib.sha256(b"mark" + digest).hexdigest()


class Tokens:
    """The tokens of a file."""

    def __init__(self, bearers: dict[str, Bearer]) -> None:
        self._bearers = [(bytes.fromhex(digest), bearer) for digest, bearer in bearers.items()]

    def find(self, authorization: str | None) -> Bearer | None:
        """The sender of this ``Authorization`` header; None when it is unknown."""
        kind, _, token = (authorization or "").partition(" ")
        if kind.lower() != "bearer" or not _TOKEN.fullmatch(token):
            return None
        digest = hashlib.sha256(token.encode()).digest()
        found = None
        for known, bearer in self._bearers:
            if hmac.compare_digest(known, digest):
                found = bearer
        return found

    def marked(self, mark: str) -> Bearer | None:
        """The bearer of the token with this mark; None when there is no such token, or not any more."""
        return next((bearer for digest, bearer in self._bearers if hmac.compare_digest(_mark(digest), mark)), None)

    @classmethod
    def read(cls, path: Path) -> Tokens:
        """Read a file; raises ``Refused`` that names the file, the token and the key."""
        try:
            mode = path.stat().st_mode
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise _refusal(path, f"may be read or changed by others than its owner; run: chmod 600 {path}")
            with path.open("rb") as stream:
                raw = stream.read(FILE_BYTES_MAX + 1)
        except OSError as error:
            raise _refusal(path, f"cannot be read: {error.strerror}") from error
        if len(raw) > FILE_BYTES_MAX:
            raise _refusal(path, f"is larger than {FILE_BYTES_MAX} bytes")
        try:
            document = tomllib.loads(raw.decode())
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as problem:
            raise _refusal(path, f"is no TOML: {problem}") from None
        return cls(_bearers_of(path, document))


def _refusal(path: Path, problem: str) -> Refused:
    return Refused("bad_tokens", f"tokens: {path} {problem}", field="tokens")


def _bearers_of(path: Path, document: dict[str, Any]) -> dict[str, Bearer]:
    strange = document.keys() - {"token"}
    tables = document.get("token")
    if strange or not isinstance(tables, list) or not tables:
        raise _refusal(path, f"holds {', '.join(sorted(strange)) or 'no token'}; it is a list of [[token]] tables")
    bearers: dict[str, Bearer] = {}
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict) or not _is_whole(table.keys()):
            raise _refusal(path, f"token {number}: the keys are name, sha256, and roles or scopes, and perhaps"
                           " expires and queues, no more and no less")
        try:
            name = check_name("name", table["name"])
        except Refused as refusal:
            raise _refusal(path, f"token {number}: {refusal.message}") from None
        digest = table["sha256"]
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise _refusal(path, f"token {name}: sha256 is 64 digits of lower case hexadecimal")
        if digest in bearers or name in [bearer.name for bearer in bearers.values()]:
            raise _refusal(path, f"token {name}: its name or sha256 stands there twice")
        bearers[digest] = Bearer(name, frozenset(map(Scope, _listed(path, name, table, "scopes", Scope))),
                                 _beginnings_of(path, name, table), _until_ms(path, name, table),
                                 frozenset(map(Role, _listed(path, name, table, "roles", CLIENTS))))
    return bearers


def _is_whole(keys: Set[str]) -> bool:
    return _NEEDED <= keys <= _NEEDED | _RIGHTS | _MORE and not keys.isdisjoint(_RIGHTS)


def _listed(path: Path, name: str, table: Mapping[str, Any], key: str, words: Iterable[str]) -> list[str]:
    """The words under a key, each one of those there are; none where the key is left out."""
    if key not in table:
        return []
    listed, known = table[key], [*map(str, words)]
    if not isinstance(listed, list) or not listed or any(word not in known for word in listed):
        raise _refusal(path, f"token {name}: {key} are a list of {', '.join(known)}")
    return listed


def _beginnings_of(path: Path, name: str, table: Mapping[str, Any]) -> tuple[str, ...]:
    if "queues" not in table:
        return ()
    try:
        return check_queues(table["queues"])
    except Refused as refusal:
        raise _refusal(path, f"token {name}: {refusal.message}") from None


def check_queues(listed: object) -> tuple[str, ...]:
    """The queues that a token is limited to; ``Refused`` for what is no list of them, or an empty one."""
    if not isinstance(listed, list) or not 0 < len(listed) <= QUEUES_MAX or not all(
            isinstance(queue, str) and NAME.fullmatch(queue) for queue in listed):
        raise Refused("bad_queue", f"queues: are 1 to {QUEUES_MAX} beginnings of queues' names; leave them out for"
                      " a token of all queues", field="queues")
    return tuple(listed)


def _until_ms(path: Path, name: str, table: Mapping[str, Any]) -> int | None:
    if "expires" not in table:
        return None
    expires = table["expires"]
    if not isinstance(expires, datetime) or expires.tzinfo is None:
        raise _refusal(path, f"token {name}: expires is a date, a time and an offset without quotes, such as"
                       " 2027-01-31T00:00:00Z")
    return int(expires.timestamp() * 1000)


class Failures:
    """Wrong tokens, counted by address: a bucket of one second's worth each, for the newest addresses."""

    def __init__(self, per_s: float, clock: Callable[[], float]) -> None:
        self._per_s = per_s
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def are_too_many(self, address: str) -> bool:
        """Count one more; whether it is beyond the rate."""
        now = self._clock()
        left, at = self._left.pop(address, (self._per_s, now))
        left = min(self._per_s, left + (now - at) * self._per_s)
        is_beyond = left < 1
        self._left[address] = (left if is_beyond else left - 1, now)
        if len(self._left) > ADDRESSES_MAX:
            self._left.popitem(last=False)
        return is_beyond

    def __len__(self) -> int:
        return len(self._left)
