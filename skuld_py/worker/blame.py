"""Whose fault it is when an engine dies, and who runs alone until that is known.

An engine that dies takes all its tasks along, and one of them may be the cause: it ate the memory, or killed the
process. Nobody can tell which from one death. So:

* The first death costs none of them an attempt. Each is given back, and the log of its claim says ``engine_died``.
* A task whose newest word is that one is *accused*, on whichever worker it is claimed next: there it runs alone.
  Tasks that have started go on, none starts beside it, and the worker claims nothing meanwhile.
* If the engine dies while an accused task runs, it was that task: it fails, which costs an attempt, and its next
  claim finds it accused again.
* A task that failed by itself while it was alone is accused no more. Claims that ended without a word, or were
  given back for another reason, prove nothing.

So a task that kills its engine dies by its retry policy, after one death more than it has attempts, and a
neighbour is thrown back once for all of them. What is remembered stands in the task's own log: another worker
reads it, and no message had to change. A worker of an earlier release writes no such entry: it accuses nobody.

Rejected: to fail all tasks of an engine that died (neighbours would die of another one's fault); to count deaths
in the worker's memory (another worker claims the task next).
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from skuld_py.model.task import ClaimView
from skuld_py.worker.journal import ENGINE_DIED, decode_entry

LAST_ENTRIES = 2
"""The word stands at the end of a log, in front of why the claim was given back."""
MEMORY = " (out of memory?)"


@attrs.frozen
class Verdict:
    """What becomes of a task whose engine died under it, in words; and whether it failed, or is given back."""

    words: str
    has_failed: bool


def deaths_under(earlier: Sequence[ClaimView]) -> int:
    """How many engines died under a task since it last ended by itself, by its earlier claims, oldest first. It is
    accused if any did."""
    deaths = 0
    for claim in reversed(earlier):
        if any(decode_entry(entry)["kind"] == ENGINE_DIED for entry in claim.log[-LAST_ENTRIES:]):
            deaths += 1
        elif claim.outcome == "failed":
            break
    return deaths


def verdict(is_accused: bool, what: str) -> Verdict:
    """Of a task in an engine that died; ``what`` it did: it ended, or does not answer."""
    words = f"Spark's JVM {what}"
    return Verdict(words + MEMORY if is_accused else words, is_accused)


def admitted(waiting: Sequence[int | None], running: Sequence[int]) -> list[int]:
    """Which of those that wait may start now, told by how many engines died under each; None: not known yet. Of
    the accused the one with the fewest deaths is first: what killed an engine alone comes after its neighbours.
    """
    if any(running):
        return []
    plain = [index for index, deaths in enumerate(waiting) if deaths == 0]
    if plain or running:
        return plain
    accused = [(deaths, index) for index, deaths in enumerate(waiting) if deaths]
    return [min(accused)[1]] if accused else []


def may_claim(waiting: Sequence[int | None], running: Sequence[int]) -> bool:
    """Whether there is room for more: not while an accused task runs or waits for its turn."""
    return not any(running) and not any(waiting)
