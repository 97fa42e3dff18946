"""What must be true of a record beyond the kinds of its fields.

Two sorts: that fields which list the same things have equal counts (declared by the message itself, in
``columns``), and the few rules below. They are here and not in the machines because a machine takes
apart what it is handed without asking again: a header that does not parse, a payload without the options that
its header says stand before it, or a log number that does not fit its key, must not get that far.

Bounds on sizes that a cluster may lower (a payload's, a batch's) are not here: they hold for clients' messages,
which the node refuses by name, and not between nodes, where what was stored must still travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from skuld_py.config import LEASE_MS_MAX
from skuld_py.model.body import Header
from skuld_py.model.bounds import PROOF_BYTES, U32_MAX
from skuld_py.model.checkpoint import BYTES_MAX, SLOT, Checkpoint
from skuld_py.model.columns import Column, pack, unpack_u64
from skuld_py.model.history import check_history, epoch_of
from skuld_py.model.ids import ID_BYTES
from skuld_py.model.names import NAME
from skuld_py.model.notes import check_note
from skuld_py.model.outcomes import FIRST_TOKEN, LOG_SEQS
from skuld_py.model.prelude import Prelude, only_deps
from skuld_py.wire.stream import Fault

if TYPE_CHECKING:
    from skuld_py.model.messages import (
        Amend,
        Append,
        ClaimBatch,
        ClaimPage,
        CohortRow,
        Complete,
        Conclude,
        Get,
        Got,
        Grant,
        LeaderRow,
        Listed,
        Note,
        Offered,
        PushClaims,
        ReadLog,
        Renew,
        RequestVote,
        Sync,
        TaskBatch,
        TaskRow,
    )

Rule = Callable[[Any], None]
PRIORITY_BYTES = 5
"""What stands behind a queue's name in a place: 0, and the inverted priority."""


def check_header(batch: TaskBatch) -> None:
    """The header parses and names a queue; before each payload stands what the header says."""
    problem, prelude = _read_header(batch.header)
    if problem:
        raise Fault(problem, ".header")
    if prelude:
        _check_preludes(prelude, batch.payloads)


@lru_cache(maxsize=1_024)
def _read_header(header: bytes) -> tuple[str, int]:
    """What is wrong with it, or ``""``, and the flags of its prelude. Tasks share few headers: kept."""
    try:
        parsed = Header.decode(header)
    except ValueError as problem:
        return f"is no task header: {problem}", 0
    return "" if NAME.fullmatch(parsed.queue) else "its queue has no valid name", parsed.prelude


def _check_preludes(prelude: int, rests: Column) -> None:
    rows = rests.unpack()
    for index, rest in enumerate(() if only_deps(prelude, rows) else rows):
        try:
            Prelude.decode(prelude, rest)
        except ValueError as problem:
            raise Fault(str(problem), f".payloads[{index}]") from None


def check_claims(batch: ClaimBatch) -> None:
    """Bodies that parse as far as nodes that pass them on look at them; proofs of all claims, or of none."""
    _check_proofs(batch.ids, batch.proofs)
    _check_bodies(batch.bodies, ".bodies")


def check_listed(page: Listed) -> None:
    """Bodies as in ``check_claims``, and histories that parse: a reader would take others for damage of its own
    disk."""
    _check_bodies(page.bodies, ".bodies")
    for index, history in enumerate(page.histories.unpack()):
        _check_history(history, f".histories[{index}]")


def check_offered(page: Offered) -> None:
    """In columns: a body, a history and a number of entries for each task, and as many entries as that makes.
    Histories are parsed by who makes rows of them."""
    _check_one_for_each(page.ids, page.bodies, ".bodies")
    if len(page.histories) != len(page.bodies):
        raise Fault(f"lists {len(page.histories)}, but bodies lists {len(page.bodies)}", ".histories")
    _check_bodies(pack([body for body in page.bodies.unpack() if body]), ".bodies")
    counts = unpack_u64(page.counts)
    if counts and len(counts) != len(page.bodies):
        raise Fault(f"lists {len(counts)}, but bodies lists {len(page.bodies)}", ".counts")
    if not sum(counts) == len(page.entries) == len(page.tokens) // 8 == len(page.seqs) // 8:
        raise Fault(f"add up to {sum(counts)}, but entries lists {len(page.entries)}", ".counts")
    if page.seqs and max(unpack_u64(page.seqs)) > U32_MAX:
        raise Fault(f"numbers entries beyond {U32_MAX}", ".seqs")


def _check_bodies(bodies: Column, path: str) -> None:
    heads: dict[bytes, None] = {}
    for start in _starts(bodies.unpack()):
        heads[start[2 : 2 + int.from_bytes(start[:2], "big")]] = None
    for head in heads:
        problem, _ = _read_header(head)
        if problem:
            raise Fault(problem, path)


def _starts(bodies: Sequence[bytes]) -> Iterable[bytes]:
    """The bodies to check: of many with one header, only what they begin with, found by passes in C."""
    if len(bodies) < 2:
        return bodies
    size = 2 + int.from_bytes(bodies[0][:2], "big")
    starts = {*map(itemgetter(slice(size)), bodies)}
    return starts if len(starts) == 1 else bodies


def _check_history(record: bytes, path: str) -> None:
    if record:
        try:
            check_history(record)
        except ValueError as problem:
            raise Fault(str(problem), path) from None


def check_append(request: Append) -> None:
    """One task, and numbers that do not run out."""
    _check_one_id(request.id)
    _check_proofs(request.id, request.proofs)
    if request.token < FIRST_TOKEN:
        raise Fault("is no claim's token", ".token")
    if request.seq + len(request.entries) > LOG_SEQS:
        raise Fault(f"numbers entries beyond {LOG_SEQS - 1}", ".seq")
    if len(request.checkpoint.data) > BYTES_MAX:
        raise Fault(f"has {len(request.checkpoint.data)} bytes, more than {BYTES_MAX}", ".checkpoint")


def check_complete(request: Complete) -> None:
    """Claims, and a result for each, or none at all. Under lower tokens stand notes, and no results."""
    _check_one_for_each(request.ids, request.results, ".results")
    _check_claim_tokens(request.tokens)
    _check_proofs(request.ids, request.proofs)


def check_conclude(request: Conclude) -> None:
    """An error for each claim, or none at all."""
    _check_one_for_each(request.ids, request.errors, ".errors")
    _check_proofs(request.ids, request.proofs)


def check_renew(request: Renew) -> None:
    """A proof for each claim, or none at all."""
    _check_proofs(request.ids, request.proofs)


def check_get(request: Get) -> None:
    """A least number of facts for each task, or none at all."""
    if len(request.least) not in (0, 8 * (len(request.ids) // ID_BYTES)):
        raise Fault(f"lists {len(request.least) // 8}, but ids lists {len(request.ids) // ID_BYTES}", ".least")


def check_got(answer: Got) -> None:
    """An aside for each task, or none at all."""
    if len(answer.asides) not in (0, len(answer.tasks)):
        raise Fault(f"lists {len(answer.asides)}, but there are {len(answer.tasks)} tasks", ".asides")


def check_read_log(request: ReadLog) -> None:
    """One task."""
    _check_one_id(request.id)


def check_places(page: Amend | ClaimPage | PushClaims) -> None:
    """Where tasks wait, if that is known: a queue, and a priority. They become keys; most are the same."""
    for place in dict.fromkeys(page.places.unpack()):
        queue, end = place[:-PRIORITY_BYTES], place[-PRIORITY_BYTES:]
        if place and not (end[:1] == b"\0" and queue.isascii() and NAME.fullmatch(queue.decode())):
            raise Fault("are not all places of tasks", ".places")


def check_amend(request: Amend) -> None:
    """Errors come with the tokens of their claims; a task whose claim failed without one has the token 0, and an
    empty error."""
    check_places(request)
    _check_one_for_each(request.ids, request.errors, ".errors")
    if len(request.tokens) != 8 * len(request.errors):
        raise Fault(f"lists {len(request.tokens) // 8}, but errors lists {len(request.errors)}", ".tokens")
    named = [token for token, error in zip(unpack_u64(request.tokens), request.errors.unpack(), strict=True)
             if token or error]
    if min(named, default=FIRST_TOKEN) < FIRST_TOKEN:
        raise Fault("are not all claims' tokens", ".tokens")


def _check_one_for_each(ids: bytes, column: Column, path: str) -> None:
    if len(column) not in (0, len(ids) // ID_BYTES):
        raise Fault(f"lists {len(column)}, but ids lists {len(ids) // ID_BYTES}", path)


def _check_proofs(ids: bytes, proofs: bytes) -> None:
    if proofs and len(proofs) * ID_BYTES != len(ids) * PROOF_BYTES:
        raise Fault(f"lists {len(proofs) // PROOF_BYTES}, but ids lists {len(ids) // ID_BYTES}", ".proofs")


def check_grant(request: Grant) -> None:
    """A lease that ends after it begins, within the longest there may be, under tokens of the leader's epoch."""
    if not request.start_ms <= request.end_ms <= request.start_ms + LEASE_MS_MAX:
        raise Fault(f"is no end of a lease that begins at {request.start_ms}", ".end_ms")
    last = request.first_token + max(0, len(request.ids) // ID_BYTES - 1)
    if not request.first_token & U32_MAX or {epoch_of(request.first_token), epoch_of(last)} != {request.epoch}:
        raise Fault(f"is no token of epoch {request.epoch}, or the last one is none", ".first_token")


def check_candidacy(request: RequestVote | Sync) -> None:
    """Its epoch lies above that of the document it was read from, and its cohort is not empty."""
    if request.base >= request.epoch:
        raise Fault(f"is not below the epoch {request.epoch}", ".base")
    _check_cohort(request.cohort)


def check_cohort_row(row: CohortRow) -> None:
    """Voters: some, and each once."""
    _check_cohort(row.cohort)


def check_leader_row(row: LeaderRow) -> None:
    """A cohort is seated by an epoch, which is the leader's or an earlier one."""
    if row.era > row.epoch:
        raise Fault(f"is above the epoch {row.epoch}", ".era")
    _check_cohort(row.cohort)


def _check_cohort(cohort: tuple[str, ...]) -> None:
    if not cohort or len(dict.fromkeys(cohort)) != len(cohort):
        raise Fault("names nobody, or somebody twice", ".cohort")


def check_note_rows(request: Note) -> None:
    """Notes as there are. Many are the same but for the task."""
    notes = list(zip(unpack_u64(request.tokens), unpack_u64(request.seqs), strict=True))
    for index, note in enumerate(notes if len(set(notes)) > 1 else notes[:1]):
        _check_note(*note, f".seqs[{index}]")


def _check_claim_tokens(tokens: bytes) -> None:
    """A token counts claims in its lower half; so one whose epoch's lowest byte is not 0 is a claim's."""
    if b"\0" in tokens[3::8] and min(unpack_u64(tokens), default=FIRST_TOKEN) < FIRST_TOKEN:
        raise Fault("are not all claims' tokens", ".tokens")


def _check_note(token: int, seq: int, path: str) -> None:
    try:
        check_note(token, seq)
    except ValueError as problem:
        raise Fault(str(problem), path) from None


def check_task_row(row: TaskRow) -> None:
    """One task, log numbers that fit a key, and records that parse, as far as readers look at them."""
    _check_one_id(row.id)
    if row.seqs and max(unpack_u64(row.seqs)) > U32_MAX:
        raise Fault(f"numbers entries beyond {U32_MAX}", ".seqs")
    for index, number in enumerate(zip(unpack_u64(row.tokens), unpack_u64(row.seqs), strict=True)):
        if number == SLOT:
            _check_checkpoint(row.entries.unpack()[index])
        elif number[0] < FIRST_TOKEN:
            _check_note(*number, ".seqs")
    _check_bodies(row.body, ".body")
    _check_history(row.history, ".history")


def _check_checkpoint(record: bytes) -> None:
    try:
        Checkpoint.decode(record)
    except ValueError as problem:
        raise Fault(str(problem), ".entries") from None


def _check_one_id(task_id: bytes) -> None:
    if len(task_id) != ID_BYTES:
        raise Fault(f"has {len(task_id)} bytes, not {ID_BYTES}", ".id")


RULES: dict[str, Rule] = {
    "TaskBatch": check_header,
    "ClaimBatch": check_claims,
    "Append": check_append,
    "Amend": check_amend,
    "ClaimPage": check_places,
    "PushClaims": check_places,
    "Complete": check_complete,
    "Renew": check_renew,
    "Conclude": check_conclude,
    "Get": check_get,
    "Got": check_got,
    "Listed": check_listed,
    "Offered": check_offered,
    "ReadLog": check_read_log,
    "TaskRow": check_task_row,
    "Note": check_note_rows,
    "Grant": check_grant,
    "RequestVote": check_candidacy,
    "Sync": check_candidacy,
    "CohortRow": check_cohort_row,
    "LeaderRow": check_leader_row,
}
"""By the name of the class, so that to know a rule is not to make the class it is about."""
