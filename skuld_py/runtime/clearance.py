"""What the owner of a key may ask for: each request of clients is that of a verb, and roles say who has it.

Everyone may greet and ask how the cluster is: that is how a client finds its nodes. A key that is limited to
queues may enqueue, claim, list, count, and ask what is set only there. Schedules have names of their own, and show
payloads, so none of them is for such a key. Requests that name tasks by their ids alone tell no queue;
what they may do is shown by a claim's proof, or it is only reading, and an id is known to who was told it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence

import attrs

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.archive_root import ARCHIVE
from skuld_py.model.body import Header
from skuld_py.model.names import queues_of
from skuld_py.model.roles import CLIENTS, UNLIMITED, Role, roles_for
from skuld_py.model.roster import KeyRow
from skuld_py.model.setting import OF_QUEUES
from skuld_py.workflow.definition.names import QUEUES

_VERBS: Mapping[type[m.Message], str] = {
    m.Describe: "status",
    m.Enqueue: "enqueue",
    m.Claim: "claim",
    m.Renew: "renew",
    m.Append: "append",
    m.Complete: "complete",
    m.Conclude: "fail",
    m.Get: "get",
    m.Await: "results",
    m.ReadLog: "log",
    m.List: "list_tasks",
    m.Count: "count",
    m.GetSettings: "paused",
    m.PutSetting: "pause",
    m.Cancel: "cancel",
    m.Revive: "retry",
    m.Evict: "release_all",
    m.Offer: "collectable",
    m.Discard: "archived",
    m.Report: "report",
    m.Muster: "workers",
    m.Submit: "submit_workflow",
    m.Kill: "kill_workflow",
    m.Advance: "advance",
    m.Survey: "workflows",
    m.Follow: "follow_log",
    m.Steer: "freeze",
    m.Retire: "drain",
    m.Recall: "partition_history",
}
_SAID: Mapping[type[m.Message], str] = {
    m.Greet: "what clients do",
    m.GetSettings: "reading pauses, limits and schedules",
    m.PutSetting: "changing pauses, limits and schedules",
    m.Steer: "what operators do",
    m.Conclude: "fail, release and snooze",
}
"""Requests that serve several verbs."""
MAY: Mapping[type[m.Message], tuple[Role, ...]] = {
    m.Greet: CLIENTS, **{of: roles_for(verb) for of, verb in _VERBS.items()}}
"""Which roles may send a request."""
UNLIMITED_ONLY = tuple(of for of, verb in _VERBS.items() if verb in UNLIMITED)
"""Requests that a key limited to queues may not make: they reach tasks of any queue."""


def check_clearance(owner: KeyRow | None, message: m.Message) -> None:
    """``Refused`` unless the owner of a key may ask for that; None: the key counts no more."""
    kind = type(message)
    if isinstance(message, m.GetSettings | m.PutSetting) and message.kind == ARCHIVE:
        kind = m.Get if isinstance(message, m.GetSettings) else m.Offer  # where it is, all may know
    if owner is None:
        raise Refused("denied", "key: it is revoked, or its time is over; ask the cluster's operator for another")
    if kind not in _requests_of(owner.roles):
        may = MAY.get(kind, ())
        raise Refused("denied", f"{_verb(kind)}: the key of {owner.name} has the {_roles(owner.roles)}, and"
                      f" this needs {' or '.join(may)}; use another key, or have the role added ('skuld keys"
                      " authorise')", operation=kind.__name__)
    if owner.queues:
        _check_queues(owner, message)


@functools.lru_cache(maxsize=256)
def _requests_of(roles: tuple[str, ...]) -> frozenset[type[m.Message]]:
    """What a key of these roles may ask for. There are few kinds of keys, and each request asks this."""
    return frozenset(of for of, may in MAY.items() if any(role in may for role in roles))


def _check_queues(owner: KeyRow, message: m.Message) -> None:
    kind = type(message)
    if kind in UNLIMITED_ONLY:
        raise Refused("denied", f"{_verb(kind)}: the key of {owner.name} is limited to queues"
                      f" {_said(owner.queues)}, and this reaches others; use a key without that limit",
                      operation=kind.__name__)
    for queue in _queues_of(message):
        if not queue.startswith(owner.queues):
            raise Refused("denied", f"queue: {queue or 'all queues'}, but the key of {owner.name} is limited to"
                          f" those that begin with {_said(owner.queues)}", operation=kind.__name__)


def _queues_of(message: m.Message) -> Iterable[str]:
    """The queues that a request names; ``""`` for all. A header that is none is refused where it is read."""
    if isinstance(message, m.Enqueue):
        for batch in message.batches:
            try:
                yield Header.decode(batch.header).queue
            except ValueError:
                continue
    elif isinstance(message, m.Claim | m.List | m.Count):
        yield message.queue
    elif isinstance(message, m.Report):
        for row in message.workers:
            yield from row.queues
            yield from (batch.queue for batch in row.batches)
            if row.takes_seats:
                yield QUEUES
    elif isinstance(message, m.Submit | m.Kill | m.Advance):
        yield queues_of(message.workflow)
    elif isinstance(message, m.Survey):
        yield from map(queues_of, message.ids) if message.ids else ("",)
    elif isinstance(message, m.GetSettings):
        yield message.name if message.kind in OF_QUEUES else ""


def signed(report: m.Report, owner: KeyRow | None) -> m.Report:
    """A worker's report under the name of its key, whatever it says of that itself; without keys, under none."""
    name = owner.name if owner is not None else ""
    return attrs.evolve(report, workers=tuple(attrs.evolve(row, key=name) for row in report.workers))


def _verb(kind: type[m.Message]) -> str:
    """What a request is for, as its asker knows it; a message between nodes is none of theirs."""
    return _SAID.get(kind) or _VERBS.get(kind, kind.__name__).replace("_", " ")


def _roles(names: Sequence[str]) -> str:
    return f"role {names[0]}" if len(names) == 1 else f"roles {' and '.join(names)}"


def _said(words: Iterable[str]) -> str:
    return ", ".join(words)
