"""The table of roles names every verb and no other, and each door goes by it."""

from __future__ import annotations

import pytest

from skuld_py.cli import keys
from skuld_py.model.roles import CLIENTS, PEER, UNLIMITED, VERBS, Role, roles_for
from skuld_py.model.roster import ROLES
from skuld_py.verbs.table import VERBS as TABLE
from skuld_py.verbs.verb import Scope

OF_ARCHIVERS = {"collectable", "archived"}
OF_CLIENTS_ALONE = OF_ARCHIVERS | {"report", "take_seats", "advance"}
SCOPES = {Scope.ENQUEUE: Role.PRODUCER, Scope.WORK: Role.WORKER, Scope.READ: Role.READER,
          Scope.ADMIN: Role.ADMIN}


def test_every_verb_of_the_table_has_a_role_and_no_other_verb_has_one() -> None:
    every = frozenset().union(*VERBS.values())

    assert {verb.name for verb in TABLE if verb.scope is not None} | OF_CLIENTS_ALONE | {PEER} == every
    assert VERBS.keys() == {*Role}


def test_only_nodes_speak_as_nodes_and_they_do_nothing_else() -> None:
    assert roles_for(PEER) == (Role.NODE,) and VERBS[Role.NODE] == {PEER} and Role.NODE not in CLIENTS


@pytest.mark.parametrize("scope", Scope)
def test_a_role_has_at_least_what_the_scope_of_its_kind_has(scope: Scope) -> None:
    assert {verb.name for verb in TABLE if verb.scope == scope} <= VERBS[SCOPES[scope]]


def test_who_does_not_steer_changes_no_task_and_no_queue_of_others() -> None:
    of_admins_alone = VERBS[Role.ADMIN] - VERBS[Role.PRODUCER] - VERBS[Role.WORKER] - VERBS[Role.READER]

    assert of_admins_alone == {
        "retry", "retry_all", "cancel_all", "purge_all", "move_all", "release_all",
        "pause", "resume", "purge", "put_schedule", "remove_schedule",
        "set_limits", "remove_limits", "set_quota", "remove_quota",
        "freeze", "unfreeze", "promote", "reorder", "rebalance", "withdraw", "solo",
        "quarantine", "reap", "drain", "force_epoch"}
    assert roles_for("cancel") == roles_for("enqueue")
    assert roles_for("enqueue") == (Role.PRODUCER, Role.ADMIN) and roles_for("claim") == (Role.WORKER, Role.ADMIN)
    assert [roles_for(verb) for verb in sorted(OF_ARCHIVERS)] == [(Role.ARCHIVER,)] * 2
    assert (roles_for("report"), roles_for("workers")) == ((Role.WORKER, Role.ADMIN), (Role.READER, Role.ADMIN))


def test_what_reaches_any_queue_is_for_callers_of_all_queues() -> None:
    assert OF_ARCHIVERS | {"cancel", "workers", "follow_log", "partition_history", "quotas"} | (
        VERBS[Role.ADMIN] - VERBS[Role.PRODUCER] - VERBS[Role.WORKER] - VERBS[Role.READER]) == UNLIMITED


def test_every_list_of_roles_is_that_of_the_table() -> None:
    assert tuple(CLIENTS) == tuple(keys.ROLES.choices)
    assert tuple(Role) == ROLES
