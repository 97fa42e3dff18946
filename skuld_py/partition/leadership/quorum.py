"""What a majority is: all that count votes, copies, answers or clocks compute with this.

Any two majorities of one cohort share a member; that one fact carries elections, claims and reads. An empty cohort
is won by any candidate, by convention, so that the first epoch needs no special case.

Rejected: counting "peers excluding myself", from which Skuld derived half a cohort for even sizes.
Source: etcd/raft's quorum package for the joint form.
"""

from __future__ import annotations

from collections.abc import Collection


def majority(size: int) -> int:
    """The least count of nodes at which any two sets overlap; 0 of no nodes."""
    return size // 2 + 1 if size else 0


def has_majority(cohort: Collection[str], voters: Collection[str]) -> bool:
    """Whether the voters include a majority of the cohort; strangers do not count."""
    return len([name for name in cohort if name in voters]) >= majority(len(cohort))


def has_joint_majority(old: Collection[str], new: Collection[str], voters: Collection[str]) -> bool:
    """Whether the voters include a majority of both cohorts."""
    return has_majority(old, voters) and has_majority(new, voters)
