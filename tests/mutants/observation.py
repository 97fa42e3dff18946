"""Mutants of what people are told: remarks, the log that is made of them, metrics, request numbers, traces."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

REMARKS = "tests/node/test_remarks.py::"
CHRONICLE = "tests/runtime/test_chronicle.py::"
METRICS = "tests/runtime/test_metrics.py::"
JOURNAL = "tests/gateway/test_journal.py::"
TRACING = "tests/worker/test_tracing.py::"
LOGS = "tests/cli/test_logs.py::"
DIGEST = "tests/runtime/test_digest.py::"
SERVICE = ("tests/model/test_service.py::"
           "test_a_partition_stores_by_a_majority_of_its_owners_and_grants_by_a_leader_that_may")
WORST = "tests/model/test_service.py::test_a_cluster_does_what_its_worst_partition_does"
FILLING = "tests/model/test_service.py::test_who_fills_again_stores_nothing_and_records_no_grant"
VOTERS = "tests/model/test_service.py::test_voters_count_and_copies"
BY_HAND = "tests/model/test_document.py::test_what_operators_wish_stops_nothing_and_is_kept_as_it_was"
HELD = "tests/node/test_overseeing.py::test_what_keeps_a_leader_from_granting_is_named"
VERIFY = "tests/cli/test_verify.py::test_a_state_has_a_line_and_an_exit_status"


def told(name: str, rule: str, place: str, old: str, new: str, test: str) -> Mutant:
    """A mutant that no run of the simulator can see: nothing follows from what people are told."""
    return mutant(name, rule, place, old, new, "L2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    told("served-by-a-minority", "a partition without a majority is said to store tasks", "service._majority",
         "len(names) // 2 + 1", "len(names) // 2", SERVICE),
    told("served-by-who-fills", "who has lost its memory is said to store and to grant", "service.service_of",
         " and name not in filling", "", FILLING),
    told("served-by-owners-alone", "a partition is said to store by owners that have no vote yet",
         "service.service_of", "sum(name in able for name in voters) < _majority(voters) or ", "", VOTERS),
    told("barriers-cut-off", "of many rows those that say that nothing is granted are cut off", "held.held",
         "rows.sort(key=bars, reverse=True)", "pass", "tests/node/test_held.py::"
         "test_of_more_than_an_answer_has_room_for_what_keeps_a_leader_from_granting_is_told"),
    told("losses-cut-off", "long names cut off how much is lost", "held._lost",
         "who if len(who) <= room else who[: room - 1] + '…'", "who", "tests/node/test_held.py::"
         "test_how_much_is_lost_is_told_whatever_the_names_are"),
    told("hands-that-blind", "a text that no message can carry is taken for a wish", "document._word",
         "if len(_text(value).encode()) > WORD_BYTES:", "if len(_text(value)) > WORD_BYTES:", BY_HAND),
    told("remaining-twice", "who is said to remain twice is a voter twice, of whom no message may tell",
         "document._words", "if len({*words}) != len(words):", "if False:", BY_HAND),
    told("hands-that-blind-by-times", "a time that no message can carry is taken for a wish", "document._moment",
         "if _number(value) > MOMENT_MS_MAX:", "if _number(value) < 0:", BY_HAND),
    told("hands-that-blind-by-what-is-no-wish", "a barrier written by hand keeps a node from saying how it is",
         "held.held", "min(until_ms, MOMENT_MS_MAX)", "until_ms", "tests/node/test_held.py::"
         "test_whatever_is_written_by_hand_who_is_asked_how_the_cluster_is_can_answer"),
    told("served-by-the-dead", "a partition whose leader is down is said to grant claims", "service.service_of",
         "leader is not None and leader.is_live and", "leader is not None and", SERVICE),
    told("served-by-a-wrong-clock", "a leader that grants nothing for its clock is said to grant",
         "service.service_of", " and leader.clock not in DOUBTED", "", SERVICE),
    told("served-by-the-best", "a cluster is said to do what its best partition does", "service.worst",
         "max(services.values()", "min(services.values()", WORST),
    told("verified-by-concerns-alone", "a partition that grants nothing is a warning", "verify.judged",
         "CRITICAL if service is not Service.FULL else ", "", VERIFY),
    told("verified-whatever-is-said", "what needs attention is well", "verify.judged",
         "WARNING if is_warned else OK", "OK", VERIFY),
    told("verified-against-what-was-chosen", "one copy, which was chosen, is a warning for ever", "verify.judged",
         "concern.kind not in CHOSEN", "concern.kind", VERIFY),
    told("served-before-the-barrier", "a leader that may grant nothing yet is said to grant", "service.service_of",
         "if grants and not is_barred else", "if grants else", VERIFY),
    told("served-by-clocks-at-odds", "leaders that grant nothing, as no clocks agree, are said to grant",
         "service.DOUBTED", 'DOUBTED = ("outside", "far", "disagreed")', 'DOUBTED = ("outside", "far")', VERIFY),
    told("horizons-that-stay-unsaid", "nothing tells that a horizon does not move", "held._stayed",
         "if is_known and document.horizon_ms", "if False and document.horizon_ms", HELD),
    told("horizons-that-are-over-to-come", "a horizon that is over is told as one to come", "held._stayed",
         " if now_ms < document.horizon_ms else 0", "", HELD),
    told("served-behind-the-horizon", "a leader of which the horizon is over is said to grant", "service.bars",
         "return not row.until_ms", "return False", VERIFY),
    told("horizons-of-what-is-unread", "a horizon stays by a document that was read long ago", "held._stayed",
         "document.leader == vnode.leader and view.is_connected", "True", HELD),
    told("barriers-unsaid", "nothing tells that a leader may grant nothing yet", "held._of",
         "if now_ms < document.no_grant_before_ms and document.loss is None:", "if False:", HELD),
    told("election-without-a-word", "nothing tells that a node leads", "Vnode.note_elected",
         "        self.remark(Kind.ELECTED, why, self.election.epoch)\n", "",
         REMARKS + "test_an_election_names_partition_epoch_and_reason"),
    told("deposed-for-no-reason", "why a leader leads no longer is not told", "Vnode.resign",
         "            self.remark(Kind.DEPOSED, why, self.election.epoch)\n",
         "            self.remark(Kind.DEPOSED, \"\", self.election.epoch)\n",
         REMARKS + "test_a_leader_without_a_session_says_why_it_leads_no_longer"),
    told("session-lost-by-each-that-stops", "a node that ends its session says that it has lost it",
         "Node._on_session", "is_end = self.view.is_leaving and session is Session.LOST", "is_end = False",
         REMARKS + "test_a_node_that_stops_ends_its_session_and_does_not_lose_it"),
    told("leads-and-grants-nothing", "a node that may grant nothing says that it leads", "status.described",
         "leader if leader != view.me.name or view.may_grant else", "leader if True else",
         "tests/node/test_describing.py::test_a_leader_that_may_not_grant_is_none_for_itself_as_it_is_for_others"),
    told("majority-told-at-each-look", "a lost majority is told again and again", "Steward._note_majority",
         "            self._without_majority[partition] = None\n", "            pass\n",
         REMARKS + "test_members_are_told_as_they_come_and_go_and_a_majority_when_it_is_lost_and_back"),
    told("majority-lost-at-each-start", "a node that starts says that majorities are lost",
         "Steward._note_majority",
         " and me in live and not has_majority(", " and not has_majority(",
         REMARKS + "test_a_node_that_starts_and_knows_nobody_yet_says_nothing_of_majorities"),
    told("clock-told-at-each-judgement", "a clock is told of without a doubt", "Timekeeper._say",
         "if was is not self.verdict and (was in DOUBTS or self.verdict in DOUBTS):",
         "if was is not self.verdict:",
         REMARKS + "test_a_clock_in_doubt_is_told_and_its_recovery_and_not_that_it_is_heard_first"),
    told("grants-not-counted", "claims granted are not counted", "GrantOperation.decide",
         "                self.view.bulletin.counts.granted += len(ballot.grant.ids) - len(failed)\n", "",
         REMARKS + "test_claims_are_counted_by_the_request"),
    told("depths-of-all-names", "every queue is named in the metrics", "Depths._add",
         "len(self._found) < QUEUES_MAX", "True",
         REMARKS + "test_depths_go_round_the_led_partitions_and_name_so_many_queues"),
    told("chronicle-without-a-pause", "each of many like things is a line", "chronicle._Group.take",
         "        self.next_ms = now_ms + self.pause_ms\n", "",
         CHRONICLE + "test_four_thousand_elections_are_a_few_lines_that_count_them_all"),
    told("chronicle-pause-constant", "a storm is a line a second", "chronicle._Group.take",
         "min(2 * self.pause_ms, PAUSE_MS_MAX)", "PAUSE_MS",
         CHRONICLE + "test_four_thousand_elections_are_a_few_lines_that_count_them_all"),
    told("chronicle-pause-for-ever", "what was quiet is not told at once again", "chronicle._Group.take",
         "        self.pause_ms = PAUSE_MS if was_quiet else",
         "        self.pause_ms = PAUSE_MS_MAX if was_quiet else",
         CHRONICLE + "test_what_was_quiet_is_told_at_once_again"),
    told("chronicle-unbounded", "groups of like remarks are kept for ever", "Chronicle.note",
         "            if len(self._groups) >= GROUPS_MAX:\n                self._forget()\n", "",
         CHRONICLE + "test_the_groups_that_are_kept_are_bounded_and_none_is_lost_at_the_end"),
    told("look-at-each-turn", "metrics are taken after each batch", "NodeMetrics.look",
         "begun_s < self._next_s or ", "",
         METRICS + "test_a_scrape_reads_no_machine_and_a_look_waits_its_pause"),
    told("look-without-a-share", "a long look is followed by a short pause", "NodeMetrics.look",
         "max(PAUSE_S, SHARE * (ended_s - begun_s))", "PAUSE_S",
         METRICS + "test_a_look_that_took_long_is_followed_by_a_long_pause"),
    told("metrics-for-everybody", "metrics without a host are shown to all machines", "exposition.LOOPBACK",
         '"127.0.0.1"', '"0.0.0.0"', METRICS + "test_a_port_alone_is_on_loopback"),
    told("any-request-id", "a request's number is logged as it came", "journal.request_id",
         "given if _ID.fullmatch(given) else secrets.token_hex(8)", "given",
         JOURNAL + "test_another_one_is_replaced"),
    told("series-of-strangers", "any method makes a series of its own", "Reporting.close",
         "self._request.method if self._request.method in METHODS else OTHER", "self._request.method",
         JOURNAL + "test_a_method_of_a_stranger_s_own_making_makes_no_series"),
    told("ready-without-a-node", "a gateway is ready without a node", "gateway.reading.ready",
         '        raise refusal("not_ready", f"no node of the cluster answers: {error.message}") from error\n',
         "        return situations.Ready(is_ready=not error.code, node=\"\")\n",
         JOURNAL + "test_a_gateway_whose_nodes_do_not_answer_is_well_and_not_ready"),
    told("any-traceparent", "a tracer is given whatever a header says", "tracing.is_traceparent",
         "return _FORM.fullmatch(text) is not None", "return bool(text)",
         TRACING + "test_what_is_no_traceparent_is_none"),
    told("trace-in-a-named-task", "the same task enqueued in another span is another one", "Enqueueing.enqueue",
         "headers if is_named else traced(headers)", "traced(headers)",
         TRACING + "test_a_task_enqueued_in_a_span_has_it_and_one_with_a_chosen_id_has_not"),
    told("strangers-write-the-log", "each of many like events is a line", "Digest.note",
         "if known.count or now_s < known.next_s:", "if False:",
         DIGEST + "test_like_events_are_one_line_at_once_and_one_for_each_pause"),
    told("digest-forgets", "what was not told by the end is never told", "Digest.close",
         "        self.look(math.inf)\n", "        pass\n",
         DIGEST + "test_a_node_counts_the_connections_that_it_cuts"),
    told("line-for-each-made-up-key", "each key that a stranger makes up is a line", "Handshakes._name",
         'public if whose else f"strangers to {domain}"', "public",
         DIGEST + "test_keys_of_a_stranger_s_own_making_are_told_together"),
    told("nodes-silent-by-default", "a node says nothing unless asked", "logs.log_options",
         'default="info"', 'default="warning"',
         LOGS + "test_what_a_node_says_of_itself_is_shown_unless_asked_otherwise"),
)
