"""A read shows the end of a task's log: a worker that resumes the task wants what was noted last.

It shows the entries of the newest claim, then those of the one before, each from its last entry back, as far as
the limits of reading go; and all notes, which say where a task stands. For each claim it says how many entries are
left out (``Cuts``). So readers tell a log that is cut from one that has a gap, and the number of facts that a task
shows does not fall when a new entry takes the place of older ones.

Rejected: the beginning, as far as it goes. Newer checkpoints than that were never seen again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skuld_py.config import DEFAULT_LIMITS
from skuld_py.model import messages as m
from skuld_py.model.outcomes import FIRST_TOKEN, LOG_SEQS, Entries

Cuts = Mapping[int, int]
"""Token -> how many of its entries are left out; the first that is shown has this number."""
WHOLE: Cuts = {}


def is_long(row: m.TaskRow) -> bool:
    """Whether a row holds more of a log than one read shows."""
    return len(row.entries) > DEFAULT_LIMITS.log_entries or len(row.entries.data) > DEFAULT_LIMITS.log_bytes


def join_cuts(said: Sequence[Cuts], entries: Entries) -> dict[int, int]:
    """How many entries are left out of what several copies show together: if a copy that is behind shows the
    beginning of a log, and others its end, that beginning is left out, too."""
    joined: dict[int, int] = {}
    for token in dict.fromkeys(token for cuts in said for token in cuts):
        told = [cuts[token] for cuts in said if token in cuts]
        joined[token] = min([count for count in told if (token, count) in entries], default=max(told))
    return joined


def cut(entries: Entries, cuts: Cuts) -> tuple[dict[tuple[int, int], bytes], dict[int, int]]:
    """The end of the joined log, within the limits, and how many entries are left out. Results and errors stay."""
    kept = {key: data for key, data in entries.items() if key[0] < FIRST_TOKEN or key[1] >= LOG_SEQS}
    left = dict(cuts)
    room, count = DEFAULT_LIMITS.log_bytes, m.ENTRIES_MAX - len(kept)
    for token, seq in sorted(entries.keys() - kept.keys(), reverse=True):
        if seq < left.get(token, 0):
            continue
        room, count = room - len(entries[token, seq]), count - 1
        if room < 0 or count < 0:
            room, left[token] = -1, seq + 1
        else:
            kept[token, seq] = entries[token, seq]
    return kept, left
