"""What Spark says: of pages of stack traces the line that helps."""

from __future__ import annotations

import pytest

from skuld_py.archive.spark_errors import is_of_query, said

JAVA = """An error occurred while calling o1.getResult.
: org.apache.spark.SparkException: Exception thrown in awaitResult:
\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)
Caused by: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
Caused by: java.io.IOException: No space left on device.
\t... 1 more
"""


READ = """An error occurred while calling o1.getResult.
: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Encountered error while reading file. SQLSTATE: KD001
"""
DIVIDED = ": org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n\tat x"


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


@pytest.mark.parametrize(("text", "is_bad"), [
    (DIVIDED, True), ("[UNRESOLVED_COLUMN] nope. SQLSTATE: 42703; line 1", True), (READ, False), (JAVA, False),
    (READ + DIVIDED, False), ("[INTERNAL_ERROR] Oh. SQLSTATE: XX000", False), ("", False)])
def test_who_is_to_blame_is_told_by_the_state(text: str, is_bad: bool) -> None:
    assert is_of_query(ValueError(text)) is is_bad
