"""Mutants of the table of roles, and of the doors that go by it."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

ROLES, ACCESS = "tests/model/test_roles.py::", "tests/gateway/test_access.py::"
CLEARANCE = "tests/runtime/test_clearance.py::"
OF_CLIENTS = CLEARANCE + "test_a_role_may_ask_for_what_is_its_own_and_for_nothing_else"

MUTANTS: tuple[Mutant, ...] = (
    mutant("producers-retry", "a producer revives tasks of others", "roles._PRODUCING",
           '"mint"', '"mint", "retry"', "A4",
           ROLES + "test_who_does_not_steer_changes_no_task_and_no_queue_of_others", seeds=0),
    mutant("producers-cannot-cancel", "a key does not let its owner do what a token lets", "roles._PRODUCING",
           ', "cancel"', "", "A4", ROLES + "test_a_role_has_at_least_what_the_scope_of_its_kind_has", seeds=0),
    mutant("cancel-in-some-queues", "who is limited to queues cancels in others", "roles.UNLIMITED",
           '{"cancel", ', "{", "A4", ROLES + "test_what_reaches_any_queue_is_for_callers_of_all_queues", seeds=0),
    mutant("schedules-of-others", "who is limited to queues reads the payloads of schedules of others",
           "clearance._queues_of", 'message.name if message.kind in OF_QUEUES else ""', "message.name", "A4",
           CLEARANCE + "test_what_is_set_otherwise_than_for_a_queue_is_not_for_a_key_of_some", seeds=0),
    mutant("settings-of-others", "who is limited to queues reads what is set for others", "clearance._queues_of",
           "m.GetSettings):\n        yield", "m.GetSettings):\n        _ =", "A4",
           CLEARANCE + "test_a_key_of_some_queues_may_ask_for_those_alone", seeds=0),
    mutant("archiver-without-logs", "what is archived lacks the begins of long logs", "roles.VERBS",
           '"list_tasks", "log"}', '"list_tasks"}', "A4", OF_CLIENTS, seeds=0),
    mutant("admins-archive", "an admin has tasks deleted that nobody has written away", "roles.VERBS",
           "_READING | _STEERING", "_READING | _STEERING | {\"collectable\"}", "A4", OF_CLIENTS, seeds=0),
    mutant("callers-are-nodes", "a caller may have the role of a node", "roles.CLIENTS",
           " if role is not Role.NODE", "", "A4",
           ROLES + "test_only_nodes_speak_as_nodes_and_they_do_nothing_else", seeds=0),
    mutant("tokens-of-any-role", "a token may do what roles do that it has not", "Bearer.may",
           "for role in self.roles", "for role in VERBS", "A4",
           ACCESS + "test_roles_are_made_and_read_alike_and_may_do_what_the_table_says", seeds=0),
    mutant("tokens-of-no-right", "a token that may do nothing is taken", "access._is_whole",
           " and not keys.isdisjoint(_RIGHTS)", "", "A4", ACCESS + "test_a_wrong_file_is_refused_and_says_where",
           seeds=0),
    mutant("two-take-all", "two callers take all places of a gateway", "Places.taken",
           "        if has >= free:\n", "        if has >= (self._most + 1) // 2:\n", "A4",
           "tests/gateway/test_places.py::test_a_few_callers_that_take_all_they_get_leave_room_for_more", seeds=0),
    mutant("revisions-in-doubt", "to ask for the revisions of documents counts as a change of them",
           "operating.Recall", "    is_reading = True\n", "", "A4",
           CLEARANCE + "test_a_request_is_a_reading_one_if_readers_may_make_it[Recall]", seeds=0),
)
