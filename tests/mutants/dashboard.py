"""Mutants of the dashboard: who is let in, whose forms count, and what is text on a page."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

PAGES = "tests/gateway/dashboard/test_pages.py::"
ACTIONS = "tests/gateway/dashboard/test_actions.py::"
COUNTED = PAGES + "test_quotas_are_counted_once_for_all_who_look_within_seconds"
TEXT = PAGES + "test_whatever_users_name_is_text_on_every_page"
ELSEWHERE = ACTIONS + "test_a_form_that_comes_from_elsewhere_does_nothing"
SESSIONS = ACTIONS + "test_sessions_are_what_this_process_signed_and_end"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "A4", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(TEXT, "dashboard-payloads-as-markup", "a payload is markup on a page", "rendering._environment",
             "autoescape=True", "autoescape=False"),
    _seen_by(TEXT, "dashboard-turned-text", "a payload turns the direction of what follows it",
             "rendering._harmless", "text if text.isprintable() else harmless_text(text, is_one_line=False)",
             "text"),
    _seen_by(COUNTED, "dashboard-counts-at-each-look", "each look at the quotas counts all queues",
             "quota_counts.QuotaCounts.of", "if self._clock() >= self._until_s or not", "if True or not"),
    _seen_by(COUNTED, "dashboard-counts-for-ever", "what is open beside a quota is counted once for all times",
             "quota_counts.QuotaCounts.of", "if self._clock() >= self._until_s or not",
             "if not self._until_s or not"),
    _seen_by(COUNTED, "dashboard-quotas-uncounted", "a new quota is not counted before the others are",
             "quota_counts.QuotaCounts.of", " or not quotas.keys() <= self._counted.keys():", ":"),
    _seen_by(COUNTED, "dashboard-counts-side-by-side", "who looks while a count is under way counts as well",
             "quota_counts.QuotaCounts.of", "async with self._is_counting:", "if True:"),
    _seen_by(PAGES + "test_open_pages_of_limits_share_a_count", "dashboard-counts-of-its-own",
             "the page of quotas counts by itself", "dashboard.cluster.limits", ', by=counts.of', ""),
    _seen_by(PAGES + "test_an_address_that_a_worker_says_is_a_link_and_nothing_else_is",
             "dashboard-links-of-any-scheme", "what a worker says is a link that runs a script", "rendering.spark",
             "if not _ADDRESS.fullmatch(bare):", 'if ":" not in bare:'),
    _seen_by(PAGES + "test_what_is_cut_is_fetched_whole_as_a_file_that_no_browser_shows",
             "dashboard-payloads-as-pages", "a browser shows a payload as a page of the gateway",
             "tasks.whole_content", '"content-type": "application/octet-stream"', '"content-type": "text/html"'),
    _seen_by(PAGES + "test_tasks_are_found_by_queue_state_function_and_key_a_page_at_a_time",
             "dashboard-lists-without-end", "a page lists all tasks there are", "tasks._found",
             "if len(found) == SHOWN:", "if False:"),
    _seen_by(PAGES + "test_a_search_for_what_nodes_do_not_look_into_ends_and_says_how_far_it_came",
             "dashboard-searches-without-end", "a search is over where it stopped", "tasks._found",
             '"last": last, "scanned": scanned, "reached_ms"', '"last": None, "scanned": scanned, "reached_ms"'),
    _seen_by(PAGES + "test_a_search_stops_when_its_time_is_over_though_it_has_found_nothing",
             "dashboard-searches-all-there-is", "a search that finds nothing reads all tasks there are",
             "tasks._found", "scanned >= SCANNED or steady_s() > end_s", "scanned >= SCANNED"),
    _seen_by(PAGES + "test_many_queues_are_shown_some_at_a_time", "dashboard-queues-without-end",
             "a page shows all queues", "cluster._some", "rows[start : start + most]", "rows[start:]"),
    _seen_by(PAGES + "test_a_node_is_put_into_quarantine_trusted_again_or_reaped_from_its_row",
             "dashboard-barred-for-ever", "a node in quarantine is offered to be put there again",
             "dashboard.cluster.members", 'if row["what"] == "quarantine"', 'if row["what"] == ""'),
    _seen_by(PAGES + "test_the_history_of_partitions_says_who_changed_what_and_is_searched",
             "dashboard-history-unsearched", "a history shows what was not asked for", "dashboard.cluster.history",
             "    if words:\n", "    if False:\n"),
    _seen_by(ELSEWHERE, "dashboard-forms-of-other-sites", "a form that another site sent is done",
             "Dashboard.check_form", 'site == "same-origin" and ', ""),
    _seen_by(ELSEWHERE, "dashboard-forms-of-other-origins", "a form is done whose origin is another one",
             "Dashboard.check_form", "(origin is None or urlsplit(origin).netloc == host)", "True"),
    _seen_by(ACTIONS + "test_a_form_without_the_proof_of_its_session_does_nothing",
             "dashboard-forms-without-proof", "a form counts that no page of ours made", "Dashboard.check_form",
             'if not is_ours or not self.sessions.is_proof(session, forms.one(form, "proof")):',
             "if not is_ours:"),
    _seen_by(ACTIONS + "test_who_may_only_read_is_offered_nothing_and_refused_all",
             "dashboard-acts-for-readers", "a page does what the token of who looks may not", "Gateway.perform",
             "            _check_scope(bearer, verb, request.state.id)\n", "            pass\n"),
    _seen_by(PAGES + "test_a_token_that_is_limited_to_queues_sees_those_alone", "dashboard-shows-other-queues",
             "who is limited to queues sees the tasks of others", "Gateway.perform",
             "        _check_reach(bearer, verb, asked)\n", ""),
    _seen_by(ACTIONS + "test_an_action_says_what_it_will_do_then_does_it_and_is_noted", "dashboard-acts-unseen",
             "nothing in the log says who did what", "_Act._done", '        note("done")\n', ""),
    _seen_by(ACTIONS + "test_signing_in_leads_to_a_page_of_ours_whatever_was_sent", "dashboard-leads-away",
             "who signs in is sent to a site that the link named", "dashboard._back",
             'wanted.startswith((f"{ROOT}/", f"{ROOT}?"))', "wanted"),
    _seen_by(ACTIONS + "test_a_session_ends_with_its_token_and_when_it_is_signed_out", "dashboard-outlives-tokens",
             "a session goes on when its token is over", "Dashboard.bearer",
             "found if found is not None and found.is_valid(_now_ms()) else None", "found"),
    _seen_by(ACTIONS + "test_a_token_opens_a_session_whose_cookie_no_script_and_no_other_site_has",
             "dashboard-cookies-for-scripts", "a script can read the cookie", "Dashboard.keep", "httponly=True",
             "httponly=False"),
    _seen_by(ACTIONS + "test_wrong_tokens_are_refused_counted_and_noted", "dashboard-guesses-without-end",
             "any number of tokens is tried by the form", "_SignIn._signed",
             "            self._gateway.note_unknown(request)\n", ""),
    _seen_by(SESSIONS, "dashboard-sessions-of-anybody", "a session that somebody wrote himself counts",
             "Sessions.read", "if is_ours and now_ms", "if now_ms"),
    _seen_by(SESSIONS, "dashboard-sessions-without-end", "a session never ends", "Sessions.read",
             " and now_ms < session.until_ms", ""),
)
