"""What the worker on its machine runs."""

from __future__ import annotations

from typing import Any

from skuld_py import task


@task(queue="sums")
def total(spark: Any, context: Any, most: int) -> int:
    """A sum that Spark works out."""
    return int(spark.range(most + 1).groupBy().sum("id").collect()[0][0])
