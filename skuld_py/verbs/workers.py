"""The verb about workers, and its documents.

Who is there is known by reports that last for half a minute (``client.attending``); no claim depends on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

from typing_extensions import TypedDict

from skuld_py.verbs.options import Request
from skuld_py.verbs.schemas import Says
from skuld_py.verbs.verb import Scope, by_hand

if TYPE_CHECKING:
    from skuld_py.client.attending import Workers


class BatchDocument(TypedDict):
    """Tasks of one batched function that a worker runs together."""

    queue: str
    function: str
    tasks: int
    ended: Annotated[int, Says("Of its tasks.")]
    since_ms: int
    parts_done: Annotated[int, Says("Spark tasks that are over, of all its jobs so far.")]
    parts: Annotated[int, Says("Spark tasks of all its jobs so far, several jobs after a crash; 0 before Spark"
                              " has said so.")]


class WorkerDocument(TypedDict):
    """A worker that is there, as it said of itself."""

    name: Annotated[str, Says("The holder of its claims.")]
    key: Annotated[str, Says("The name of its key; empty in a cluster without keys.")]
    host: str
    slots: Annotated[int, Says("Tasks that it runs at once.")]
    queues: Annotated[dict[str, int], Says("The weight of each.")]
    release: str
    spark: Annotated[str, Says("Release, master and application; empty before Spark starts.")]
    since_ms: int
    running: int
    claimed: Annotated[int, Says("Tasks that it holds; those beyond the running ones wait in it.")]
    node: Annotated[str, Says("The node that it reports to.")]
    age_s: Annotated[float, Says("How long ago it has said so.")]
    batches: Annotated[list[BatchDocument], Says("Those under way, when it has said so.")]


class WorkersDocument(TypedDict):
    """The workers that said within half a minute that they are there, by name."""

    workers: list[WorkerDocument]
    slots: Annotated[int, Says("Of all of them together.")]
    missing: Annotated[list[str], Says("Nodes that did not answer in time; their workers are not among them.")]


def document(found: Workers) -> WorkersDocument:
    """The workers as JSON has them."""
    import attrs

    return WorkersDocument(workers=[cast(WorkerDocument, attrs.asdict(worker)) for worker in found.workers],
                           slots=found.slots, missing=[*found.missing])


workers = by_hand(
    "workers", "GET /v1/workers", Scope.READ, Request("NoWorkerInput", "Nothing can be asked for."),
    WorkersDocument, "The workers that are there: slots, queues, and what each has to do.", command="workers")

VERBS = (workers,)
