"""Mutants of what operators are told, and of what is asked before something is changed."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

DRAIN = "tests/cli/test_drain.py::"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "L2", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(DRAIN + "test_what_does_not_pass_is_raised_at_once", "drain-in-the-dark",
             "a drain whose key opens nothing goes on to its limit", "drain._asked",
             "            raise\n        return error", "            pass\n        return error"),
    _seen_by(DRAIN + "test_who_may_not_know_how_far_it_is_takes_nothing_out", "drained-before-asked",
             "a node is taken out by who cannot see how far it is", "drain.drain",
             "        _asked(client.status)\n", ""),
    _seen_by(DRAIN + "test_it_shows_the_client_s_key", "drain-without-a-key",
             "a drain shows the nodes no key", "options.key_option",
             "        with _key_shown():\n", "        if True:\n"),
    _seen_by(DRAIN + "test_the_limit_says_why_nothing_is_known", "drain-without-a-reason",
             "why no node answers is not said", "drain.watch",
             "says how far it is: {words}", "has answered"),
)
