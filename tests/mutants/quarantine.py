"""Mutants of what becomes of nodes that an operator does not trust, or that are gone."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

QUARANTINE = "tests/node/test_quarantine.py::"
BAR = QUARANTINE + "test_what_a_bar_makes_of_each"
REFUSED = QUARANTINE + "test_what_would_do_harm_is_refused_by_name"
LED = QUARANTINE + "test_a_leader_in_quarantine_is_succeeded_and_named_until_it_is_trusted_again"
FROZEN = QUARANTINE + "test_what_is_frozen_a_leader_in_quarantine_leads_on_and_the_answer_names_it"
ABSENT = QUARANTINE + "test_who_is_gone_is_no_voter_any_more_while_another_voter_is_down_too"
GONE = QUARANTINE + "test_who_is_gone_is_no_voter_any_more_and_gets_no_vote_when_it_comes_back"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "C8", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(BAR, "outlaw-stands", "who is in quarantine does not stand", "evaluator._succeed",
             "if facts.me.name in document.outlaws and _lawful", "if False and _lawful"),
    _seen_by(BAR, "frozen-without-a-leader", "who leads what is frozen stands again, in quarantine or not",
             "evaluator._succeed", "    elif facts.me.name in", "    if facts.me.name in"),
    _seen_by(BAR, "led-by-nobody-for-all-are-outlaws", "where all voters are in quarantine one of them stands",
             "evaluator._succeed", " and _lawful(facts, document):", ":"),
    _seen_by(BAR, "led-by-nobody-for-the-others-are-down", "where no other voter is there an outlaw stands",
             "evaluator._lawful", " and name in able(facts)]", "]"),
    _seen_by(REFUSED, "reaped-and-solo", "who is reaped where nobody may go is not said to be", "wishes._reaped",
             "    _check_not_solo(document)\n", ""),
    _seen_by(BAR, "outlaw-leads-on", "who is in quarantine gives up what it leads", "evaluator._lead",
             "if facts.me.name in document.outlaws:", "if False:"),
    _seen_by(BAR, "outlaw-leads-on-in-solo", "who is in quarantine gives up what it leads in solo mode",
             "evaluator._lead", "    if is_frozen(document, now_ms):\n",
             "    if is_frozen(document, now_ms) or document.mode == SOLO:\n"),
    _seen_by(BAR, "outlaw-inherits", "nothing is handed over to who is in quarantine", "evaluator._hand_over",
             " and name not in document.outlaws]", "]"),
    _seen_by(BAR, "outlaw-gets-a-vote", "who is in quarantine gets no new vote", "evaluator._move",
             "[name for name in facts.filled if name not in document.outlaws]", "facts.filled"),
    _seen_by(BAR, "outlaw-gets-it-back", "nothing is handed back to who is in quarantine", "evaluator._hand_back",
             " and first not in document.outlaws", ""),
    _seen_by(FROZEN, "led-on-unsaid", "what a node in quarantine leads on is named", "Overseeing._note_frozen",
             "if freeze is not None and leads_on and asked.kind == QUARANTINE:",
             "if freeze is None and leads_on and asked.kind == QUARANTINE:"),
    _seen_by(FROZEN, "frozen-said-once", "what a node leads on is named again to who asks again",
             "Overseeing.on_read", "        self._note_frozen(event.partition, document, now_ms)\n",
             "        if document != event.document:\n"
             "            self._note_frozen(event.partition, document, now_ms)\n"),
    _seen_by(FROZEN, "frozen-said-of-the-trusted", "of who is trusted again nothing is said to be led on",
             "Overseeing._note_frozen", " and asked.kind == QUARANTINE:", ":"),
    _seen_by("tests/verbs/test_operators.py::test_what_a_node_in_quarantine_leads_on_is_told_of_all_partitions",
             "frozen-of-the-first-part", "what is led on is told of all partitions", "Operating._steer",
             "            frozen.update(", "            frozen = frozen or dict("),
    _seen_by(REFUSED, "nobody-left-to-lead", "somebody else can lead what a node in quarantine may not",
             "wishes._barred", "if target in document.cohort and not others:", "if False:"),
    _seen_by(REFUSED, "anybody-in-quarantine", "a node that nobody knows is not put into quarantine",
             "wishes._barred", "if target not in (*document.cohort, *document.learners) and target not in live:",
             "if False:"),
    _seen_by(REFUSED, "reaped-alive", "who is alive is not reaped", "wishes._reaped", "if target in live:",
             "if False:"),
    _seen_by(REFUSED, "reaped-without-a-majority", "who is needed for a majority is not reaped", "wishes._reaped",
             "if not quorum.has_majority(document.cohort, there):", "if False:"),
    _seen_by(REFUSED, "outlaw-promoted", "who is in quarantine is not promoted", "wishes._check_able",
             "if target in document.outlaws:", "if False:"),
    _seen_by(BAR, "reaped-before-all-is-held", "voters become fewer once those who stay were compared",
             "evaluator._obey", "if facts.is_gathered else", "if True else"),
    _seen_by(QUARANTINE + "test_a_wish_about_who_lives_is_taken_out", "reaped-in-spite",
             "who is back is not reaped", "evaluator.why_invalid",
             'return f"{wish.target} is alive" if wish.target in facts.live else ""', 'return ""'),
    _seen_by(QUARANTINE + "test_who_is_reaped_is_barred_too_and_who_has_no_vote_stays_as_it_is",
             "reaped-for-a-while", "who is reaped gets no new vote", "wishes._reaped",
             "    if target not in document.outlaws:\n", "    if False:\n"),
    _seen_by(ABSENT, "compared-with-who-is-down", "other voters that are down need not be compared",
             "Gatherings.is_through", "any(name in self._view.live for name in gathering.lacking)",
             "gathering.lacking"),
    _seen_by(GONE, "reaped-uncompared", "voters become fewer after the comparison", "Gatherings.is_through",
             "gathering.lacking):\n            return False\n", "gathering.lacking):\n            return True\n"),
    _seen_by(QUARANTINE + "test_nobody_who_is_there_is_passed_over_though_a_majority_was_compared",
             "compared-with-nobody", "those who stay are all compared before voters become fewer",
             "_Gathering.lacking", "[name for name in self.voters if name not in self.through]", "[]"),
    _seen_by(LED, "quarantine-in-silence", "status names who is in quarantine", "held._of",
             "for bar in document.barred:", "for bar in ():"),
    _seen_by(QUARANTINE + "test_bars_that_make_no_sense_hold_nobody_and_are_told_and_taken_out", "bars-vital",
             "a bar that makes no sense is passed over", "document.INTENTS", ', "barred")', ")"),
)
