"""What Spark says when it fails, in one line.

An error of Java arrives as a page of stack traces, whose first line names nothing but a method of the gateway; the
innermost cause is what a reader can act on.
"""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

FAILURES = (PySparkException, Py4JError, OSError)
"""What is raised by whatever runs in Spark; the last when its JVM has ended meanwhile."""
MEMORY = "Spark's JVM has ended, perhaps for want of memory; try --conf spark.driver.memory=4g"

PACKAGES = ("; its package brings it, for s3a --conf"
            " spark.jars.packages=org.apache.hadoop:hadoop-aws:3.4.2")

_LACKING = re.compile(r"^Class \S+ not found|^No FileSystem for scheme")
_STATE = re.compile(r"\bSQLSTATE: (\w\w)\w{3}\b")
_OF_QUERIES = frozenset({"0A", "21", "22", "23", "38", "39", "42", "P0"})
"""Classes of states that a query itself is to blame for, and not what it reads, nor Spark."""
_CAUSE = re.compile(r"^Caused by: (?:(?:\w+\.)*([\w$]+): )?(.+)$", re.MULTILINE)
_FIRST = re.compile(r"^(?!An error occurred)(?:: )?(?:(?:\w+\.)*([\w$]+(?:Exception|Error)): )?(\S.*)$",
                    re.MULTILINE)


def said(error: Exception) -> str:
    """The innermost cause, or else the first line that says something; without a full stop. Of what is not
    installed in Spark also what brings it. Before a single word, say a host's name, stands what is wrong."""
    text = str(error)
    found = _CAUSE.findall(text) or _FIRST.findall(text)[:1]
    kind, words = found[-1] if found else ("", type(error).__name__)
    words = words.strip().rstrip(".")
    if kind and " " not in words:
        words = f"{kind}: {words}"
    return words + (PACKAGES if _LACKING.search(words) else "")


def is_of_query(error: Exception) -> bool:
    """Whether a query is to blame, which may show only while it runs, as where it divides by zero."""
    found = _STATE.findall(str(error))
    return bool(found) and _OF_QUERIES.issuperset(found)
