"""What is answered about the cluster as a whole: the JSON of its nodes, partitions and concerns, made once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from typing_extensions import TypedDict

from skuld_py.verbs.schemas import Says

if TYPE_CHECKING:
    from skuld_py.verbs.attention import Facts

ServiceWord = Literal["full", "unknown", "enqueue-only", "unavailable"]
LevelWord = Literal["ok", "warning", "critical", "unknown"]


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
    is_leaving: Annotated[bool, Says("Whether it is taken out: it hands on what it has, and may then be stopped.")]
    watches: Annotated[str, Says("The node whose death it notices; empty for one that is alone, or down.")]


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


class HeldStatus(TypedDict):
    """What operators hold or wish of a partition, or what keeps its leader from granting."""

    partition: int
    what: str
    words: str
    until_ms: Annotated[int, Says("0 for no end; of a horizon, that it is over.")]


class StarvedStatus(TypedDict):
    """A live workflow that no slot serves, and why."""

    workflow: str
    reason: str


class ConcernDocument(TypedDict):
    """Something an operator should know."""

    kind: str
    words: str


class Status(TypedDict):
    """The cluster as one of its nodes sees it; what is held of partitions, as those told that keep them."""

    level: Annotated[LevelWord, Says("As 'skuld verify' has it: critical where a partition does not all, unknown"
                                     " where nobody told who keeps one that seems well, a warning where something"
                                     " needs attention that nobody has chosen.")]
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
    is_unproven: Annotated[bool, Says("Whether claims count without a proof that they were granted.")]
    starved: list[StarvedStatus]
    starved_count: int
    held: Annotated[list[HeldStatus], Says("Of the partitions that the node keeps.")]


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
    from skuld_py.verbs.attention import concerns, level_of

    services, judged = services_of(facts.described, facts.untold), concerns(facts)
    found = {name: value for name, value in attrs.asdict(facts.described).items() if name != "request"}
    found["partitions"] = [{**row, "service": services[row["partition"]].value} for row in found["partitions"]]
    return {"level": level_of(worst(services), judged), "service": worst(services).value,
            "attention": [attrs.asdict(concern) for concern in judged], "silent": [*facts.silent], **found}
