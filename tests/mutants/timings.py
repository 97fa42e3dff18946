"""Mutants of timings, and of what is told of settings."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

TIMINGS = "tests/cli/test_timings.py::"
FIT = TIMINGS + "test_what_does_not_fit_together_is_refused_by_both_names_and_the_remedy"

MUTANTS: tuple[Mutant, ...] = (
    mutant("timings-unchecked", "durations that do not fit together are taken", "check_timing",
           "        if most < least:\n", "        if False:\n", "A1", FIT, seeds=0),
    mutant("one-gossip-lost", "a leader is deposed when one gossip is lost", "timing._ORDERS",
           "\"silence_ms\", 2, \"gossip_ms\"", "\"silence_ms\", 1, \"gossip_ms\"", "A1", FIT, seeds=0),
    mutant("no-time-to-catch-up", "new voters never have the time to catch up", "timing._ORDERS",
           "\"sync_ms\", 1, \"exchange_page_ms\"", "\"sync_ms\", 0, \"exchange_page_ms\"", "A1", FIT, seeds=0),
    mutant("killed-while-it-stops", "a node is killed that still hands over what it leads", "cli.timings",
           "\"handover_ms\": 30.0", "\"handover_ms\": 60.0", "A1",
           TIMINGS + "test_what_is_wrong_in_the_file_is_named", seeds=0),
    mutant("horizon-within-the-skew", "a horizon is nearer than clocks may differ", "check_timing",
           "    if timing.horizon_ms < 4 * skew_ms:\n", "    if False:\n", "A1", FIT, seeds=0),
    mutant("skew-not-asked", "a node starts with a horizon that its cluster's skew eats up",
           "runtime.server.serve", "    check_timing(timing, parameters.skew_ms)\n", "", "A1",
           TIMINGS + "test_a_node_asks_its_cluster_for_the_skew_before_it_touches_anything", seeds=0),
    mutant("loans-of-any-length", "a home lends for longer than the next one waits", "timing.TIMINGS",
           " and field.name != \"loan_ms\"", "", "A1",
           TIMINGS + "test_a_home_lends_as_long_as_all_others_do", seeds=0),
    mutant("timings-not-given", "a node runs with other timings than it was told", "cli.node.node",
           "attrs.evolve(DEFAULT_TIMING, **timings_of(timings), ", "attrs.evolve(DEFAULT_TIMING, ", "A1",
           TIMINGS + "test_the_command_line_then_the_environment_then_the_file", seeds=0),
    mutant("table-of-timings-skipped", "the table of timings is read and forgotten", "settings._entries",
           "            yield from ((f\"{TIMING}-{inner}\", ((*path, key, inner), each))"
           " for inner, each in value.items())\n", "            continue\n", "A1",
           TIMINGS + "test_the_command_line_then_the_environment_then_the_file", seeds=0),
    mutant("given-twice", "of two values in one file either may count", "Settings._check_keys",
           "            if key in seen:\n", "            if False:\n", "A1",
           TIMINGS + "test_what_is_wrong_in_the_file_is_named", seeds=0),
    mutant("origin-unknown", "a setting is told without where it comes from", "config._origin",
           "    if source is ParameterSource.DEFAULT_MAP:\n", "    if False:\n", "A1",
           TIMINGS + "test_every_setting_is_shown_with_its_value_and_where_it_comes_from", seeds=0),
)
