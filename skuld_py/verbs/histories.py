"""The verb about the histories of partition documents, and its documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

from typing_extensions import TypedDict

from skuld_py.verbs.operators import PARTITION
from skuld_py.verbs.options import Option, Request, Whole
from skuld_py.verbs.schemas import Says
from skuld_py.verbs.verb import Scope, verb

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.operating import Revision


class RevisionDocument(TypedDict):
    """What a partition's document said from then on."""

    partition: int
    version: Annotated[int, Says("The document's in ZooKeeper; it begins anew where the document was put back.")]
    at_ms: Annotated[int, Says("By ZooKeeper's clock.")]
    epoch: int
    leader: str
    voters: list[str]
    writer: Annotated[str, Says("The node that wrote it.")]
    cause: Annotated[str, Says("Why; of an operator's wish also who wished it.")]
    write_id: Annotated[str, Says("Of the attempt that wrote it; it begins with that of a request.")]


class PartitionHistory(TypedDict):
    """Revisions of partition documents, the newest first."""

    revisions: list[RevisionDocument]


MOST = Option(
    "most", Whole(1, 108), None, told="At most so many of each partition; 5 of each of all partitions if left out,"
    " and all that are kept of a single one.")


def document(revisions: Sequence[Revision]) -> PartitionHistory:
    """Revisions as JSON has them."""
    import attrs

    return PartitionHistory(revisions=[
        cast(RevisionDocument, {**attrs.asdict(each), "voters": [*each.voters]}) for each in revisions])


@verb("GET /v1/partitions/history", Scope.READ,
      Request("PartitionHistoryInput", "Of which partition, and how much.", (PARTITION, MOST)), PartitionHistory,
      "Who changed leaders, voters and wishes of partitions, when, and why.")
async def partition_history(client: AsyncClient, partition: int | None, most: int | None) -> PartitionHistory:
    """Of the command line it is 'skuld cluster history'."""
    return document(await client.partition_history(partition, most=most))


VERBS = (partition_history,)
