"""Mutants of first lines that a second line hides: seeds must see each all the same, by a guard of the simulator.

Most are sought in runs of the profile in which they can be met soon. Two need more than one stroke of bad luck at
once, and have a directed test as well.
"""

from __future__ import annotations

from mutants.mutant import Edit, Mutant
from skuld_py.simulation.guards import (
    CLAIMS_ARE_KEPT,
    CLAIMS_ARE_READ,
    FILLED_IS_FULL,
    FILLED_PROMISE,
    HANDED_TO_ITS_CANDIDATE,
    KEPT_IS_FSYNCED,
    LEADS_BY_DOCUMENT,
    MEMBERS_HAVE_FILLED,
    READ_IS_FRESH,
    VOTES_COUNT,
)

FORGETFUL = ("--profile", "amnesia")
KEPT = '    """The page pushed is fsynced; the next one starts behind ``next``, if there is one."""\n'
SYNCED = '    """The sender holds, fsynced, all that the voters named held when they had voted."""\n'
TO_ITS_CANDIDATE = ("        if not self.is_trusted or self.promise != Promise(request.epoch, candidate):\n"
                    "            return None\n")
HANDED = "        self._serve(now_ms)\n        page = self.claim_page(request.after)\n"
TAKEN = "        self._serve(now_ms)\n        self.join_claims(now_ms, request)\n"


def hidden(name: str, rule: str, guard: str, *edits: tuple[str, str, str], tests: tuple[str, ...] = (),
           seeds: int = 100, options: tuple[str, ...] = FORGETFUL) -> Mutant:
    """A first line broken; ``guard`` is the rule of the simulator that sees it."""
    return Mutant(name, rule, tuple(Edit(*edit) for edit in edits), guard.split(maxsplit=1)[0], tests, seeds,
                  options, guard=guard)


MUTANTS: tuple[Mutant, ...] = (
    hidden("stale-vote-counts", "a vote for another epoch counts for this one", VOTES_COUNT, (
        "Election.on_vote", "(Phase.TRYING if vote.is_trial else Phase.VOTING) or vote.epoch != self.epoch:",
        "(Phase.TRYING if vote.is_trial else Phase.VOTING):")),
    hidden("stale-page-counts", "claims of another epoch count as read", CLAIMS_ARE_READ, (
        "Election.on_page", "        if self.phase is not Phase.PULLING or page.epoch != self.epoch:\n",
        "        if self.phase is not Phase.PULLING:\n"), (
        "Candidacy.on_page",
        "        if self._election.phase is not Phase.PULLING or page.epoch != self._election.epoch:\n",
        "        if self._election.phase is not Phase.PULLING:\n")),
    hidden("stale-word-of-a-member-counts", "a new member that filled for another epoch counts for this one",
           MEMBERS_HAVE_FILLED, (
               "Election.on_synced", "        if self.phase is Phase.SYNCING and epoch == self.epoch:\n",
               "        if self.phase is Phase.SYNCING:\n"), seeds=200),
    hidden("stale-confirmation-counts", "claims kept for another epoch count as kept", CLAIMS_ARE_KEPT, (
        "Election.on_kept", "        if self.phase is not Phase.PUSHING or kept.epoch != self.epoch:\n",
        "        if self.phase is not Phase.PUSHING:\n")),
    hidden("verdict-of-another-write-counts", "the verdict on any swap settles a candidacy", LEADS_BY_DOCUMENT, (
        "Election.on_swapped",
        "        if self.phase is not Phase.SWAPPING or event.write_id != self._write_id:\n",
        "        if self.phase is not Phase.SWAPPING:\n"), tests=(
            "tests/partition/test_election.py::"
            "test_a_won_swap_leads_a_lost_one_does_not_and_one_of_another_candidacy_is_nothing",)),
    hidden("pull-answered-for-an-older-vote", "claims are handed to whoever once had the vote",
           HANDED_TO_ITS_CANDIDATE, (
               "Vnode.on_pull", TO_ITS_CANDIDATE + HANDED,
               "        if not self.is_trusted or request.epoch > self.promise.epoch:\n"
               "            return None\n" + HANDED)),
    hidden("claims-from-anybody-at-large", "claims are read from a replica that has promised another epoch",
           HANDED_TO_ITS_CANDIDATE, ("Vnode.on_pull", TO_ITS_CANDIDATE + HANDED, HANDED)),
    hidden("push-accepted-by-epoch-alone", "claims are kept for a candidate that has not the vote",
           HANDED_TO_ITS_CANDIDATE, (
               "Vnode.on_push", TO_ITS_CANDIDATE + TAKEN,
               "        if not self.is_trusted or self.promise.epoch != request.epoch:\n"
               "            return None\n" + TAKEN), tests=(
                   "tests/partition/test_vnode.py::"
                   "test_claims_are_kept_for_the_candidate_promised_and_nobody_else",)),
    hidden("claims-to-anybody-at-large", "claims pushed by a candidate of an older epoch are confirmed",
           HANDED_TO_ITS_CANDIDATE, ("Vnode.on_push", TO_ITS_CANDIDATE + TAKEN, TAKEN)),
    hidden("confirmed-before-the-commit", "claims are confirmed before they are stored", KEPT_IS_FSYNCED, (
        "ClaimsKept", KEPT, KEPT + "\n    is_promise = False\n")),
    hidden("filled-before-the-commit", "a new member says that it has filled before all of it is stored",
           FILLED_IS_FULL, ("Synced", SYNCED, SYNCED + "\n    is_promise = False\n"), seeds=200),
    hidden("filled-by-one-source", "a new member fills from one of the voters it was told", FILLED_IS_FULL, (
        "Moves.on_pass", "            if all(name in sync.through for name in sync.sources):\n",
        "            if sync.through:\n"), seeds=200),
    hidden("document-read-without-sync", "a node takes what its ZooKeeper server shows, which may be behind",
           READ_IS_FRESH, (
               "steps_of",
                "        return Step.SYNC, Step.GET\n", "        return (Step.GET,)\n"),
           options=()),
    hidden("suspect-adopts-the-lowest-promise", "a suspect adopts the lowest promise that it was told",
           FILLED_PROMISE, (
               "Moves._trust", "vnode.trust(now_ms, max((job.promised[name] for name in told), default=0))",
               "vnode.trust(now_ms, min((job.promised[name] for name in told), default=0))"), seeds=200),
)
