"""Who may do what: roles as sets of verbs. One table for every door.

Keys of clients (``runtime.clearance``) and tokens of the gateway (``gateway.access``) both have roles of it. Verbs
have the names of ``verbs.table``; those that the table has not, because HTTP has no such route, have the names of
the client's methods (``collectable``, ``archived``), and all that only nodes say to each other is ``peer``.

Roles do not include each other, but for ``ADMIN``, which is written as the union that it is: so the table shows
all that a role may do. Whoever was told an id may read that task, look how it ends, and ask how the cluster is.
Who may enqueue may also cancel: to take back what was asked for by mistake is a part of asking. No task says whose
it is, so this goes for every id that a producer knows; hence it is not for callers that are limited to queues.
What has tasks deleted for good (``collectable``, ``archived``) is the archiver's alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType


class Role(StrEnum):
    """A kind of caller. One may have several."""

    NODE = "node"
    WORKER = "worker"
    PRODUCER = "producer"
    READER = "reader"
    ARCHIVER = "archiver"
    ADMIN = "admin"


PEER = "peer"
"""All that nodes say to each other."""
_OF_ALL = frozenset({"status", "get", "get_many", "results"})
_WORKING = _OF_ALL | {"claim", "renew", "renew_many", "append", "complete", "complete_many", "fail", "fail_many",
                      "snooze", "release", "log", "report", "take_seats", "advance",
                      "workflow", "workflows", "await_workflow"}
_PRODUCING = _OF_ALL | {"enqueue", "enqueue_many", "mint", "cancel", "submit_workflow", "kill_workflow",
                        "workflow", "workflows", "await_workflow"}
_READING = _OF_ALL | {"log", "list_tasks", "count", "queues", "paused", "schedules", "limits", "quotas", "workers",
                      "partition_history", "workflow", "workflows", "await_workflow", "follow_log"}
_STEERING = frozenset({"retry", "retry_all", "cancel_all", "purge_all", "move_all", "release_all",
                       "pause", "resume", "purge", "put_schedule",
                       "remove_schedule", "set_limits", "remove_limits", "set_quota", "remove_quota",
                       "freeze", "unfreeze", "promote", "reorder", "rebalance", "withdraw", "solo",
                       "quarantine", "reap", "drain", "force_epoch"})

VERBS: Mapping[Role, frozenset[str]] = MappingProxyType({
    Role.NODE: frozenset({PEER}),
    Role.WORKER: _WORKING,
    Role.PRODUCER: _PRODUCING,
    Role.READER: _READING,
    Role.ARCHIVER: _OF_ALL | {"collectable", "archived", "list_tasks", "log"},
    Role.ADMIN: _WORKING | _PRODUCING | _READING | _STEERING,
})
"""What each role may do. A worker reads logs, so as to go on where the claim before ended; an archiver, because
what it is offered holds the ends of long ones only."""
UNLIMITED = _STEERING | {"cancel", "collectable", "archived", "workers", "follow_log", "partition_history",
                         "quotas"}
"""Verbs that reach any queue, hence only for callers that are not limited to some."""
CLIENTS = tuple(role for role in Role if role is not Role.NODE)
"""Roles that a caller who is no node may have."""


def roles_for(verb: str) -> tuple[Role, ...]:
    """Which roles have a verb."""
    return tuple(role for role in Role if verb in VERBS[role])
