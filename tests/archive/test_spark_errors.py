"""What Spark says: of pages of stack traces the line that helps."""

from __future__ import annotations

import pytest

from skuld_py.archive.spark_errors import said

JAVA = """An error occurred while calling o1.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: java.io.IOException: No space left on device.
\t... 1 more
"""


@pytest.mark.parametrize(("text", "words"), [
    (JAVA, "No space left on device"),
    ("[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL ==\nSELEC 1",
     "[PARSE_SYNTAX_ERROR] Syntax error at or near 'SELEC'. SQLSTATE: 42601 (line 1, pos 0)"),
    ("\n[TABLE_OR_VIEW_NOT_FOUND] no table.", "[TABLE_OR_VIEW_NOT_FOUND] no table"),
    ("An error occurred while calling o1.parquet.\n: java.io.IOException: Mkdirs failed\n\tat x", "Mkdirs failed"),
    ("An error occurred.\n: java.lang.IllegalArgumentException: java.net.UnknownHostException: nohost\n\tat x\n"
     "Caused by: java.net.UnknownHostException: nohost\n\t... 9 more", "UnknownHostException: nohost"),
    (": java.net.UnknownHostException: nohost\n\tat x", "UnknownHostException: nohost"),
    ("[Errno 28] No space left on device", "[Errno 28] No space left on device"), ("", "ValueError")])
def test_the_line_that_helps(text: str, words: str) -> None:
    assert said(ValueError(text)) == words
