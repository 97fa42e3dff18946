"""What inputs run, and outputs that have no function of their own."""

from __future__ import annotations

from typing import Any

from skuld_py.worker.registry import task
from skuld_py.worker.workflows.children import KEEP


@task(name=KEEP)
def keep(value: Any) -> Any:
    """The value, as it is: where it goes say the conditions of its step."""
    return value
