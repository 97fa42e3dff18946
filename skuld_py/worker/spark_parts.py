"""A part of a database's table as a DataFrame; see ``workflows.parts``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from skuld_py.worker.workflows.parts import part_credentials


def read_part(spark: SparkSession, part: Mapping[str, Any]) -> DataFrame:
    """The rows of a part, as Spark reads them, by the worker's credentials. ``Refused``: ``bad_credentials``."""
    given = part_credentials(part)
    options = {**part["options"], **given, "url": part["url"], "dbtable": part["table"]}
    reader = spark.read.format("jdbc").options(**options)
    if not part["where"]:
        return reader.load()
    del options["url"], options["dbtable"]
    return spark.read.jdbc(part["url"], part["table"], predicates=[part["where"]], properties=options)
