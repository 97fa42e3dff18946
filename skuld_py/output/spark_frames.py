"""DataFrames: written to an output, and read of exactly the files that a manifest names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql.functions import count, lit
from pyspark.sql.types import StructType

from skuld_py.errors import Refused
from skuld_py.model.task import Task
from skuld_py.output.manifest import SCHEMA_CHARS_MAX, Manifest
from skuld_py.output.performing import Cluster
from skuld_py.output.places import uri_of
from skuld_py.output.reading import found_output

_PATTERN, _LITERAL = re.compile(r"[*?\[\]{}\\]"), r"\\\g<0>"
"""Spark takes each path that it is to read for a pattern, if it looks like one."""


def schema_of(frame: DataFrame) -> str:
    """As JSON; empty when it is too long to keep."""
    text = frame.schema.json()
    return text if len(text) <= SCHEMA_CHARS_MAX else ""


def write_frame(frame: DataFrame, place: str, format: str, partition_by: Sequence[str],
                options: Mapping[str, str]) -> int:
    """Write; gives how many rows."""
    counted = Observation()
    observed = frame.observe(counted, count(lit(1)).alias("rows"))
    writer = observed.write.format(format).mode("append").options(**options)
    if partition_by:
        writer = writer.partitionBy(*partition_by)
    writer.save(uri_of(place))
    return int(counted.get["rows"])


def read_frame(spark: SparkSession, place: str, manifest: Manifest, format: str, schema: Any,
               options: Mapping[str, Any]) -> DataFrame:
    """The files of a manifest as a DataFrame. What the caller gives goes before what the manifest says."""
    known = StructType.fromJson(json.loads(manifest.schema)) if manifest.schema else None
    wanted = known if schema is None else schema
    if not manifest.files:
        if wanted is None:
            raise Refused("empty_output", f"output: {place} has no file, and its schema is not known; give schema")
        return spark.createDataFrame([], wanted)
    kind = format or manifest.format
    if not kind:
        raise Refused("bad_output", f"format: the kind of {manifest.files[0].path} cannot be told; give format,"
                      " or use output_files")
    reader = spark.read.format(kind).options(**{**manifest.options, **options}).option("basePath", uri_of(place))
    if wanted is not None:
        reader = reader.schema(wanted)
    frame = reader.load([f"{uri_of(place)}/{_PATTERN.sub(_LITERAL, file.path)}" for file in manifest.files])
    return frame if known is None or schema is not None else frame.select(*(_quoted(name) for name in known.names))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def read_output(spark: SparkSession, task: Task | bytes | str, name: str | None = None, *,
                client: Cluster | None = None, format: str = "", schema: Any = None, **options: Any) -> DataFrame:
    """What a completed task wrote, as a DataFrame.

    ``task``: a task that was read, or an id, for which ``client`` is asked, or one by SKULD_NODES. ``name``: of
    the output, where there are several. The format, the schema and the options of what ``Output.write`` wrote are
    known; ``format``, ``schema`` and ``options`` go before them. Raises ``Refused``: ``not_ended``, ``no_output``,
    and ``damaged_output`` when the manifest is missing or not the one that was completed.
    """
    found = found_output(task, name, client)
    return read_frame(spark, found.place, found.manifest, format, schema, options)
