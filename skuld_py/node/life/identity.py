"""Is this data directory the one the node last ran on? Decided at each start, before the node says a word.

A directory has an ``incarnation``, a random id made with it, and counts its ``starts``. Both are committed
before they are registered under the node's name. So what is registered never runs ahead of the directory it
came from, and a directory that cannot show as much is another one (wiped, exchanged), or an older state of it
(rolled back). Either way promises and claims may be forgotten. Then a new incarnation is made, which ends all
seats that rest on the old one, and every partition gets a durable mark of suspicion **before** the new
incarnation is registered: a crash in between is judged the same way again at the next start.

A node that was never a member has promised nothing. So an empty directory without an entry is a fresh one, and so
is one that bears the mark ``unjoined``: all of its starts ended before that. The mark is for the very identity it
was made with, and goes in the first batch of a member. A directory without it that finds no entry belongs to a
*forgotten* node, whose entry was removed once no partition needed its vote (``runtime.zookeeper.entry_sweep``).
Nothing tells any more how old it is, so it is judged like one that was rolled back. Where the cluster keeps one
copy it is refused, for no peer could fill it. Directories of releases without the mark count as those of members.

From the first start on each partition has a promise record, if only of epoch 0; one that is missing later was
lost.

The limit: a copy of the directory that was taken *during* the node's newest start, and put back before the next,
shows the right incarnation and the right count. It is recognised only partition by partition, where a document
tells of a vote that it does not know of (``Candidacy``). Counting on a timer would only make the window shorter,
at a registry write per beat; a count per promise would put the registry into the path of every grant. Copies that
``skuld backup`` takes have an identity of their own, and are always recognised.

Source: the store incarnation that Flynn added to Manatee's peers; "amnesia" in the project's reliability notes.
"""

from __future__ import annotations

from enum import Enum

import attrs

from skuld_py.model.registration import Registration
from skuld_py.model.store import Store
from skuld_py.partition.data.tables import partition_of_meta, promise_key
from skuld_py.partition.leadership.promise import Promise, save_promise
from skuld_py.partition.leadership.suspicion import mark_damaged, mark_suspect

IDENTITY_KEY = b"identity"
UNJOINED_KEY = b"unjoined"
COPY_KEY = b"copy"
"""In a copy of a store on which no node has run: of when it is (``node.life.backup``)."""
_CHUNK = 1_000
_HURT = "a record of the node itself in the data directory fails its checksum"
_COPY = "the data directory is a backup: what the node promised and stored since it was taken is not in it"
_FORGOTTEN = "this node was a member, and ZooKeeper has no entry of it any more: it was forgotten"


@attrs.frozen
class Identity:
    """A data directory, and how often a node has started on it."""

    incarnation: str
    starts: int


class Verdict(Enum):
    """What a directory is to the name it starts under."""

    FRESH = "fresh"
    SAME = "same"
    WIPED = "wiped"
    ROLLED_BACK = "rolled back"
    FORGOTTEN = "forgotten"


@attrs.frozen
class Start:
    """A start: who the node is from now on, and what was found, in words for the log (empty: all is well)."""

    identity: Identity
    verdict: Verdict
    alarms: tuple[str, ...]
    is_empty: bool = False
    """Whether a node that was a member got a directory in which nothing is."""


def judge(stored: Identity | None, registered: Registration | None, *, is_unjoined: bool = False) -> Verdict:
    """Compare the directory's identity with what is registered under the node's name."""
    if registered is None or not registered.incarnation:
        return Verdict.FRESH if stored is None or is_unjoined else Verdict.FORGOTTEN
    if stored is None or stored.incarnation != registered.incarnation:
        return Verdict.WIPED
    return Verdict.ROLLED_BACK if stored.starts < registered.starts else Verdict.SAME


def begin_start(store: Store, registered: Registration | None, fresh: str, partitions: int) -> Start:
    """Stage one more start, with all the marks it calls for; the caller commits, then registers.

    ``fresh`` is a new random incarnation, in case one is needed. Records of ``meta`` that cannot be read are
    dropped first: those of a partition make it damaged, any other one makes the node as good as wiped.
    """
    hurt, is_node_hurt = _drop_unreadable(store, partitions)
    stored, is_unjoined = load_identity(store), _is_unjoined(store)
    verdict = Verdict.WIPED if is_node_hurt else judge(stored, registered, is_unjoined=is_unjoined)
    alarms = [f"partition {partition}: {reason}" for partition, reason in hurt.items()]
    for partition, reason in hurt.items():
        mark_damaged(store, [partition], reason)
    lost = _restore_promises(store, partitions)
    if verdict is Verdict.SAME and stored is not None:
        mark_damaged(store, lost, "its promise was lost")
        alarms += [f"partition {partition}: its promise was lost" for partition in lost if partition not in hurt]
        identity = Identity(stored.incarnation, stored.starts + 1)
    else:
        identity = Identity(fresh, 1)
    if verdict not in (Verdict.SAME, Verdict.FRESH):
        reason = (_HURT if is_node_hurt else _COPY if store.get("meta", COPY_KEY) is not None else
                  _reason(verdict, stored, registered))
        mark_suspect(store, range(partitions), reason)
        alarms.append(f"all partitions: {reason}")
    _save_identity(store, identity)
    store.pop_many("meta", [COPY_KEY])
    if verdict is Verdict.FRESH or (verdict is Verdict.SAME and is_unjoined):
        store.put_many("meta", [(UNJOINED_KEY, record_of(identity))])
    is_empty = verdict is Verdict.WIPED and stored is None and not is_node_hurt and not hurt
    return Start(identity, verdict, tuple(alarms), is_empty)


def _drop_unreadable(store: Store, partitions: int) -> tuple[dict[int, str], bool]:
    """Partitions that lose a record of ``meta`` with the reason, and whether the node itself loses one."""
    hurt: dict[int, str] = {}
    is_node_hurt = False
    start: bytes | None = b""
    while start is not None:
        dropped, start = store.purge("meta", start, b"\xff" * 64, _CHUNK)
        for key in dropped:
            partition = partition_of_meta(key)
            if partition is None or partition >= partitions:
                is_node_hurt = True
            else:
                hurt[partition] = f"record {key!r} of table meta fails its checksum"
    return hurt, is_node_hurt


def _restore_promises(store: Store, partitions: int) -> list[int]:
    """Give each partition without a promise an empty one; says which had none."""
    known = store.get_many("meta", [promise_key(partition) for partition in range(partitions)])
    lost = [partition for partition in range(partitions) if promise_key(partition) not in known]
    for partition in lost:
        save_promise(store, partition, Promise())
    return lost


def _reason(verdict: Verdict, stored: Identity | None, registered: Registration | None) -> str:
    if verdict is Verdict.FORGOTTEN:
        return _FORGOTTEN
    known, wanted = stored or Identity("none", 0), registered or Registration()
    if verdict is Verdict.ROLLED_BACK:
        return f"the data directory was turned back: it knows of {known.starts} starts, not of {wanted.starts}"
    return (f"the data directory is not the one registered: its incarnation is {known.incarnation}, not"
            f" {wanted.incarnation}")


def load_identity(store: Store) -> Identity | None:
    """What is stored; None in a directory no node has started on."""
    record = store.get("meta", IDENTITY_KEY)
    return None if record is None else Identity(record[8:].decode(), int.from_bytes(record[:8], "big"))


def note_joined(store: Store) -> None:
    """Stage that the node is a member; to be committed no later than its first promise."""
    if store.get("meta", UNJOINED_KEY) is not None:
        store.pop_many("meta", [UNJOINED_KEY])


def _is_unjoined(store: Store) -> bool:
    """Whether the node was never a member with this directory."""
    mark = store.get("meta", UNJOINED_KEY)
    return mark is not None and mark == store.get("meta", IDENTITY_KEY)


def _save_identity(store: Store, identity: Identity) -> None:
    store.put_many("meta", [(IDENTITY_KEY, record_of(identity))])


def record_of(identity: Identity) -> bytes:
    """As it is stored."""
    return identity.starts.to_bytes(8, "big") + identity.incarnation.encode()
