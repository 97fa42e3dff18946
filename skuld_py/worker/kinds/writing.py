"""Where the rows of a task are written, so that no other claim's rows are among them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from skuld_py.calls.kinds.fields import Option
from skuld_py.worker.context import TaskContext


def written(df: Any, path: str, format: str, context: TaskContext,
            options: Mapping[str, Option]) -> dict[str, str]:
    """Write the rows below ``path``, in a place that no other claim writes to. What the result says of it."""
    place = context.claim_path(path)
    df.write.format(format).options(**options).mode("errorifexists").save(place)
    return {"path": place, "format": format}
