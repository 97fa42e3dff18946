"""The invariants, each a function from the evidence of a run to a verdict, under its id in the project's list.

True: held, and was put to the test. False: broken, with the offending operations. None: unknown, nothing in the
run could have broken it; never a pass. By family: ``durability`` and ``survival`` (D), ``claims``, ``outcomes``,
``needs``, ``keys``, ``limits``, ``ticks``, ``times`` and ``epochs`` (C), ``checkpoints`` (C and D), ``order`` (O),
``convergence`` (V), ``interface`` and ``indexes`` (A). Parts of these rules stand in ``settings``, ``reading``,
``refusals`` and ``mints``.

Checkers share no arithmetic with the code they check, and cost at most n log n in the length of a history.
"""

from __future__ import annotations

from skuld_py.simulation.checkers import (
    checkpoints,
    claims,
    convergence,
    durability,
    epochs,
    indexes,
    interface,
    keys,
    limits,
    needs,
    order,
    outcomes,
    survival,
    ticks,
    times,
)
from skuld_py.simulation.checkers.evidence import Checker, Evidence, Finding

__all__ = ["ALL", "Checker", "Evidence", "Finding", "check"]

ALL: tuple[Checker, ...] = (
    durability.acked_enqueues_survive, durability.nothing_from_nowhere, durability.bodies_are_immutable,
    durability.acked_completions_stay, durability.acked_entries_stay,
    survival.data_outlives_deaths, survival.data_outlives_power_cuts, survival.data_outlives_amnesia,
    survival.data_outlives_corruption, durability.garbage_stays_away, durability.ids_are_unique,
    needs.what_is_needed_is_kept, checkpoints.acked_checkpoints_stay,
    claims.one_holder_per_token, claims.tokens_rise, claims.leases_do_not_overlap,
    epochs.deposed_leaders_grant_nothing, epochs.epochs_rise, epochs.leaders_know_all_claims,
    epochs.votes_are_kept, claims.completed_is_not_granted, claims.renewals_are_the_holders,
    claims.stale_writers_are_fenced, claims.holders_are_pessimists, claims.claims_are_of_the_queue,
    needs.dependencies_are_done, claims.tasks_are_mutexes, keys.lanes_are_in_order, outcomes.attempts_are_bounded,
    needs.nobody_waits_in_vain, keys.names_are_unique, limits.limits_are_kept, ticks.ticks_are_tasks,
    times.claims_come_in_time, claims.only_holders_act, checkpoints.claims_that_are_over_set_no_checkpoint,
    order.leaders_take_the_best, order.order_is_nearly_global, order.nobody_starves,
    convergence.convergence_is_bounded, convergence.replicas_are_equal, convergence.merge_keeps_its_laws,
    convergence.quiet_replicas_are_silent,
    interface.retries_are_one_effect, interface.refusals_have_no_effect, interface.reads_show_what_was_done,
    indexes.counts_match, indexes.indexes_match, epochs.claims_end_before_the_horizon,
)


def check(evidence: Evidence) -> list[Finding]:
    """All verdicts, in the order of the list."""
    return [checker(evidence) for checker in ALL]
