"""What tasks wrote, as documents and in words, for ``get`` and the gateway.

The files are not listed: a document would have ten thousand. ``skuld_py.output_files`` gives them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, cast

from typing_extensions import TypedDict

from skuld_py.verbs.schemas import Says

if TYPE_CHECKING:
    from skuld_py.model.task import Task


class OutputDocument(TypedDict):
    """What a task wrote to one place, as its completion says."""

    name: str
    path: Annotated[str, Says("The dataset's. The files stand in task=ID below it.")]
    format: str
    count: Annotated[int, Says("How many files.")]
    bytes: int
    rows: Annotated[int | None, Says("Where they were counted.")]
    sha256: Annotated[str, Says("Of the list of files, which stands beside them.")]


def outputs(task: Task) -> list[OutputDocument]:
    """All of a task."""
    return [cast(OutputDocument, {field: getattr(written, field) for field in OutputDocument.__annotations__})
            for written in task.outputs]


def outputs_said(task: Task) -> Iterator[str]:
    """A line for people about each."""
    for written in task.outputs:
        rows = "" if written.rows is None else f", {written.rows} rows"
        yield f"{written.name}: {written.count} files, {written.bytes} bytes{rows}, below {written.path}"
