"""What is answered, over HTTP and on the command line: the JSON of a task, a claim, a schedule, made once.

Types say what a document holds and become the published schemas; functions make documents. Times are milliseconds
since 1970, by the clocks of the cluster's nodes. Optional means null, and absent only where it is said so. A token
has 63 bits, of which many readers of JSON keep 53: it is decimal text. Bytes are base64 under ``NAME_base64``; the
text is beside it, under ``NAME``, when they are UTF-8.

Nothing heavy is imported: help of the command line looks at what verbs answer, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NotRequired, cast

from typing_extensions import TypedDict

from skuld_py.verbs.contents import CheckpointDocument, checkpoint_of, fields_of, value_of
from skuld_py.verbs.options import STATES
from skuld_py.verbs.outputs import OutputDocument, outputs
from skuld_py.verbs.schemas import (
    CallText,
    Function,
    IdText,
    IsCancelled,
    ProofText,
    ResultType,
    Says,
    State,
    Text,
    TokenText,
    Value,
)

if TYPE_CHECKING:
    from skuld_py.client.claims import Claim
    from skuld_py.client.reading import Depth
    from skuld_py.client.scheduling import Schedule
    from skuld_py.client.waiting import End
    from skuld_py.model.limiting import QueueLimits
    from skuld_py.model.task import ClaimView, LogEntry, Task


Copies = Annotated[int, Says("On how many disks it was when this was answered; of several tasks the least.")]


class Enqueued(TypedDict):
    """The task is stored."""

    id: IdText
    is_duplicate: Annotated[bool, Says("Whether the task was there already, under its unique name.")]
    copies: Copies


class EnqueuedMany(TypedDict):
    """All tasks are stored, with these ids, in the order of the request."""

    ids: list[IdText]
    are_duplicates: Annotated[list[bool], Says("Of each, whether it was there already, under its unique name.")]
    copies: Copies


class Ids(TypedDict):
    """Fresh ids. None is in use; all are of one partition."""

    ids: list[IdText]


class Granted(TypedDict):
    """A task claimed, without how long it is held: who counts that says so."""

    id: IdText
    token: TokenText
    proof: ProofText
    queue: str
    priority: int
    function: Function
    call: CallText
    payload: NotRequired[Text]
    payload_base64: str
    end_ms: int


class Held(Granted):
    """A task claimed. Work on it must stop ``valid_s`` after the request was sent, unless renewed."""

    valid_s: Annotated[float, Says("Seconds from the moment at which the request was sent, by the"
                                   " caller's own steady clock: safe however slow the way back was.")]


class Claimed(TypedDict):
    """What was claimed, best first; empty when nothing waits."""

    claims: list[Held]
    withheld: NotRequired[Annotated[Literal["paused", "limited", "capped", "leaderless"], Says(
        "Why it is empty though tasks may wait: the queue is paused, its limits allow no more just now, or no more"
        " to this holder, or some partitions have no leader. Left out when none waits.")]]


class Renewed(TypedDict):
    """The claim is held on, for ``valid_s`` from when the request was sent."""

    id: IdText
    token: TokenText
    is_cancelled: IsCancelled
    valid_s: float


class Renewal(TypedDict):
    """What became of one claim. Null: nobody knows in time, its old end holds; renew it again."""

    id: IdText
    token: TokenText
    is_held: bool | None
    is_cancelled: IsCancelled


class RenewedMany(TypedDict):
    """In the order of the request; those held are so for ``valid_s`` from when it was sent."""

    claims: list[Renewal]
    valid_s: float


class Failure(TypedDict):
    """What became of one claim. False: it was lost before; null: nobody knows in time, fail it again."""

    id: IdText
    token: TokenText
    is_failed: bool | None


class FailedMany(TypedDict):
    """In the order of the request."""

    claims: list[Failure]


class Done(TypedDict):
    """All of it is done."""

    count: int


class Cancelled(TypedDict):
    """So many are cancelled, now or since before."""

    count: int
    completed: Annotated[int, Says("How many had been completed before: those stay as they are.")]


class Appended(TypedDict):
    """The entries are stored."""

    next_seq: int


class LogLine(TypedDict):
    """One entry of a claim's log."""

    token: TokenText
    seq: int
    data: NotRequired[Text]
    data_base64: str


class ClaimDocument(TypedDict):
    """A claim of a task, whatever became of it."""

    token: TokenText
    holder: str
    start_ms: int
    end_ms: int
    is_released: bool
    completed_ms: int | None
    outcome: Annotated[str, Says("completed, failed, snoozed or released; empty while it is held, and"
                                 " for ever if it lapsed.")]
    until_ms: Annotated[int | None, Says("Its task was to rest until then.")]
    error: NotRequired[Text]
    error_base64: NotRequired[str | None]
    log: NotRequired[list[LogLine]]
    is_cut: NotRequired[Annotated[bool, Says("Whether the log's oldest entries are left out; the verb"
                                             " that reads logs gives all.")]]


class TaskDocument(TypedDict):
    """A task. Lists leave logs and results out, and errors unless they are asked for."""

    id: IdText
    queue: str
    priority: int
    state: State
    enqueued_ms: int
    function: Function
    call: CallText
    payload: NotRequired[Text]
    payload_base64: str
    due_ms: Annotated[int | None, Says("Not to be claimed before.")]
    expires_ms: int | None
    headers: dict[str, str]
    deps: Annotated[list[IdText], Says("The tasks that it waits for, or waited for.")]
    blocked_by: Annotated[list[IdText], Says(
        "While it is blocked: those of deps that it waits for still, and the tasks of its key whose"
                    " turn it is, ten of them at most.")]
    key: Annotated[str | None, Says("Tasks of one queue and key are worked on one after another.")]
    max_attempts: int
    death: Annotated[str | None, Says("Why it is dead: exhausted, permanent, expired or another word.")]
    died_ms: Annotated[int | None, Says("When it died of a task that it needed, if that is noted.")]
    cancelled_ms: int | None
    completed_ms: int | None
    completed_token: TokenText | None
    result_type: NotRequired[ResultType]
    value: NotRequired[Value]
    result: NotRequired[Text]
    result_base64: NotRequired[str | None]
    error: NotRequired[Text]
    error_base64: NotRequired[str | None]
    checkpoint: NotRequired[CheckpointDocument | None]
    outputs: NotRequired[list[OutputDocument]]
    seq: NotRequired[int]
    claims: list[ClaimDocument]


class EndDocument(TypedDict):
    """How a task has ended: completed, cancelled or dead; null while it has not."""

    id: IdText
    state: str | None
    result_type: ResultType
    value: Value
    result: NotRequired[Text]
    result_base64: str | None
    error: NotRequired[Text]
    error_base64: str | None


class Ends(TypedDict):
    """In the order asked."""

    ends: list[EndDocument]


class Counted(TypedDict):
    """How many tasks there are, completed ones included."""

    count: int


class QueueDepth(TypedDict):
    """How many tasks of a queue are in which state."""

    queue: str
    waiting: int
    claimed: int
    completed: int
    scheduled: int
    blocked: int
    cancelled: int
    dead: int


class Paused(TypedDict):
    """What holds for the queue now; ``missing`` are the nodes that have not confirmed it."""

    queue: str
    is_paused: bool
    missing: list[str]


class RefusedPartition(TypedDict):
    """A partition that stays as it is, and why."""

    partition: int
    reason: str


class FrozenPartition(TypedDict):
    """A partition that a node leads on, since it is frozen: by whom, and until when, 0 until it is let go."""

    partition: int
    by: str
    until_ms: int


class Overseen(TypedDict):
    """Of how many partitions something was changed, and which stay as they are. ``frozen``: those that a node in
    quarantine leads on."""

    changed: int
    refused: list[RefusedPartition]
    frozen: list[FrozenPartition]


class PausedQueues(TypedDict):
    """The queues that are paused, by name."""

    queues: list[str]


class Queues(TypedDict):
    """All queues that hold tasks, by name."""

    queues: list[QueueDepth]


class Limited(TypedDict):
    """The change is stored by a majority of the nodes; where these are it is not in force yet, as far as known."""

    queue: str
    is_limited: bool
    missing: list[str]


class LimitsOfQueue(TypedDict):
    """The limits of one queue; those it does not have are left out."""

    queue: str
    concurrency: NotRequired[int]
    rate: NotRequired[int]
    window_ms: NotRequired[int]
    burst: NotRequired[int]
    key_concurrency: NotRequired[int]
    holder_concurrency: NotRequired[int]
    lease_ms: NotRequired[Annotated[int, Says("The longest lease that may be claimed with.")]]


class LimitsOfQueues(TypedDict):
    """The queues that have limits, by name."""

    queues: list[LimitsOfQueue]


class QuotaSet(TypedDict):
    """The quota is stored by a majority of the nodes, or that there is none."""

    prefix: Annotated[str, Says("How the names of the queues begin.")]
    open: Annotated[int | None, Says(
        "So many of their tasks may be open, that is, not have ended; null: any number.")]
    missing: Annotated[list[str], Says("The nodes that have not confirmed it.")]


class Quota(TypedDict):
    """How many tasks may be open of the queues that begin so."""

    prefix: str
    open: int
    tasks: Annotated[int | None, Says("So many are open; null: that could not be counted now.")]


class Quotas(TypedDict):
    """The quotas, by how the names of queues begin."""

    quotas: list[Quota]


class Scheduled(TypedDict):
    """It is stored by a majority of the nodes."""

    name: str
    missing: Annotated[list[str], Says("The nodes that have not confirmed it.")]


class ScheduleDocument(TypedDict):
    """A periodic task."""

    name: str
    queue: str
    function: Function
    call: CallText
    payload: NotRequired[Text]
    payload_base64: str
    cron: str | None
    zone: str
    every_s: float | None
    priority: int
    catch_up: int
    since_ms: Annotated[int, Says("Ticks later than that are its own.")]
    headers: dict[str, str]


class Schedules(TypedDict):
    """All of them, in the order of their names."""

    schedules: list[ScheduleDocument]


# -- how they are made ---------------------------------------------------------------------------


def call_of(payload: bytes) -> dict[str, str | None]:
    """The fields of a payload that is a call, or none."""
    from skuld_py.calls.payloads import function_of
    from skuld_py.calls.sight import call_line

    return {"function": function_of(payload), "call": call_line(payload)}


def id_text(task_id: bytes) -> str:
    """An id as it is read and typed."""
    from skuld_py.model.ids import to_text

    return to_text(task_id)


def task(view: Task, *, has_logs: bool) -> TaskDocument:
    """A task; without logs, results and errors where they were not read. A listing that was asked for errors has
    them."""
    read = {"seq": view.seq, "checkpoint": checkpoint_of(view.checkpoint), **value_of(view.result),
            **fields_of("error", view.error), "outputs": outputs(view)}
    return cast(TaskDocument, {
        "id": id_text(view.id), "queue": view.queue, "priority": view.priority, "state": view.state,
        "enqueued_ms": view.enqueued_ms, **call_of(view.payload),
        **fields_of("payload", view.payload), "due_ms": view.due_ms or None,
        "expires_ms": view.expires_ms, "headers": dict(view.headers), "deps": [id_text(dep) for dep in view.deps],
        "blocked_by": [id_text(other) for other in view.blocked_by], "key": view.key or None,
        "max_attempts": view.retry.max_attempts,
        "death": view.death or None, "died_ms": view.died_ms,
        "cancelled_ms": view.cancelled_ms, "completed_ms": view.completed_ms,
        "completed_token": None if view.completed_token is None else str(view.completed_token),
        **(read if has_logs else _error_of(view)), "claims": [_claim(claim, has_logs) for claim in view.claims]})


def _error_of(view: Task) -> dict[str, object]:
    return {} if view.error is None else {**fields_of("error", view.error)}


def _claim(claim: ClaimView, has_log: bool) -> ClaimDocument:
    from skuld_py.model.task import LogEntry

    made = ClaimDocument(token=str(claim.token), holder=claim.holder, start_ms=claim.start_ms, end_ms=claim.end_ms,
                         is_released=claim.is_released, completed_ms=claim.completed_ms, outcome=claim.outcome,
                         until_ms=claim.until_ms)
    if not has_log:
        return made
    log = [log_line(LogEntry(claim.token, seq, data)) for seq, data in enumerate(claim.log, claim.left_out)]
    return cast(ClaimDocument, {**made, **fields_of("error", claim.error), "log": log, "is_cut": claim.is_cut})


def log_line(entry: LogEntry) -> LogLine:
    """An entry of a claim's log."""
    return cast(LogLine, {"token": str(entry.token), "seq": entry.seq, **fields_of("data", entry.data)})


def granted(claim: Claim) -> Granted:
    """A claim just granted."""
    return cast(Granted, {"id": id_text(claim.id), "token": str(claim.token), "proof": claim.proof.hex(),
                          "queue": claim.queue, "priority": claim.priority, **call_of(claim.payload),
                          **fields_of("payload", claim.payload),
                          "end_ms": claim.end_ms})


def end(found: End) -> EndDocument:
    """How a task has ended."""
    return cast(EndDocument, {"id": id_text(found.id), "state": found.state or None,
                              **value_of(found.result), **fields_of("error", found.error)})


def depth(queue: str, of: Depth) -> QueueDepth:
    """How full a queue is."""
    return cast(QueueDepth, {"queue": queue, **{state: getattr(of, state) for state in STATES}})


def limits_of(queue: str, of: QueueLimits) -> LimitsOfQueue:
    """What a queue is limited to."""
    return cast(LimitsOfQueue, {"queue": queue, **of.given})


def schedule(made: Schedule) -> ScheduleDocument:
    """A periodic task."""
    return cast(ScheduleDocument, {
        "name": made.name, "queue": made.queue, **call_of(made.payload),
        **fields_of("payload", made.payload), "cron": made.cron,
        "zone": made.zone, "every_s": made.every_s, "priority": made.priority, "catch_up": made.catch_up,
        "since_ms": made.since_ms, "headers": dict(made.headers)})
