"""What is answered about the cluster as a whole: the JSON of its nodes, partitions and concerns, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from typing_extensions import TypedDict

from skuld_py.verbs.schemas import Says

if TYPE_CHECKING:
    from skuld_py.verbs.attention import Facts

ServiceWord = Literal["full", "unknown", "enqueue-only", "unavailable"]


class NodeStatus(TypedDict):
    """A node as another one sees it."""

    name: str
    is_live: bool
    leads: int
    owns: int
    clock: str
    offset_ms: int
    error_ms: int
    release: Annotated[str, Says("The release that it runs; empty where it has not said.")]
    rules: Annotated[int, Says("The newest rules that its program knows; 0 where it has not said.")]
    workers: Annotated[int, Says("Workers that report to it.")]
    slots: Annotated[int, Says("Tasks that these run at once.")]


class PartitionStatus(TypedDict):
    """Who leads a partition, owns it, and votes in it."""

    partition: int
    epoch: int
    leader: str
    owners: list[str]
    cohort: list[str]
    service: ServiceWord


class MoveStatus(TypedDict):
    """Data on its way to a node, or from it."""

    partition: int
    node: str
    role: str
    rows: int
    is_done: bool
    reason: str


class CollectionStatus(TypedDict):
    """What a node has deleted as ended long ago, on the partitions it leads; whom that waits for."""

    node: str
    collected: int
    sealed_ms: int
    awaited: list[str]
    unarchived: int
    unarchived_since_ms: int
    collected_per_s: int


class ConcernDocument(TypedDict):
    """Something an operator should know."""

    kind: str
    words: str


class Status(TypedDict):
    """The cluster as one of its nodes sees it; what is held of partitions, as those told that keep them."""

    service: Annotated[ServiceWord, Says("That of the partition that does least; unknown where nobody told who"
                                         " keeps a partition that seems well.")]
    attention: Annotated[list[ConcernDocument], Says("What an operator should know, worst first.")]
    silent: Annotated[list[str], Says("Live nodes that were asked what is held of partitions, and did not tell.")]
    node: str
    session: str
    nodes: list[NodeStatus]
    partitions: list[PartitionStatus]
    moves: list[MoveStatus]
    paused: list[str]
    collections: list[CollectionStatus]


class Ready(TypedDict):
    """A node of the cluster answers."""

    is_ready: bool
    node: str


class Health(TypedDict):
    """The gateway runs. Says nothing of the cluster: see status."""

    is_well: bool


def status_of(facts: Facts) -> dict[str, Any]:
    """The cluster as the nodes that were asked see it."""
    import attrs

    from skuld_py.model.service import services_of, worst
    from skuld_py.verbs.attention import concerns

    services = services_of(facts.described, facts.untold)
    found = {name: value for name, value in attrs.asdict(facts.described).items() if name != "request"}
    found["partitions"] = [{**row, "service": services[row["partition"]].value} for row in found["partitions"]]
    return {"service": worst(services).value, "attention": [attrs.asdict(concern) for concern in concerns(facts)],
            "silent": [*facts.silent], **found}
