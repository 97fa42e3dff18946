"""Variables of the environment that begin like ours: whose they are, and which are nobody's.

A misspelt one would be a default that was not meant, without a word: so verbs and clients refuse it by name. A
client knows the names that it reads, those that verbs share, and what workers tell the programs that they start.
What begins with a verb's name is that verb's to judge: a client does not load the command line, and may run where
no verb does. Rejected: a list of all 750 names of the verbs' options here.

A process is looked at until its first client is made, and not again: what a task sets in its worker for a library
of its own is no misspelling of whoever started the worker, and must not end what works. Nor is it handed on to the
programs that a worker starts, Spark's JVM and the drivers of other tasks: their first clients would refuse it.

Kept free: the names of a wrong clock (``runtime.wrong_time``), those with ``SKULD_TEST_`` in front, and what
Kubernetes puts into pods for a Service that is called skuld or skuld-something (``SKULD_SERVICE_HOST``).
"""

from __future__ import annotations

import difflib
import functools
import os
import re
from collections.abc import Collection, Iterable, Mapping

from skuld_py.errors import Refused

PREFIX = "SKULD_"
SHARED = ("SKULD_NODES", "SKULD_TIMEOUT", "SKULD_JSON", "SKULD_ZOOKEEPER", "SKULD_CLUSTER", "SKULD_CLIENT_KEY",
          "SKULD_CLUSTER_KEY", "SKULD_ZOOKEEPER_CA", "SKULD_ZOOKEEPER_CERT", "SKULD_ZOOKEEPER_CERT_KEY",
          "SKULD_ZOOKEEPER_USER", "SKULD_ZOOKEEPER_PASSWORD_FILE")
"""Of options that several verbs have."""
OWN = ("SKULD_CONFIG", "SKULD_VERBOSE", "SKULD_ARCHIVE", "SKULD_RETENTION", "SKULD_DIRECT_JOIN",
       "SKULD_SCHEDULERS", "SKULD_SHARING", "SKULD_TRANSFER", "SKULD_VERSIONS")
"""Of other options, without the name of a verb in front."""
TOLD = ("SKULD_CLAIM", "SKULD_TASK", "SKULD_TOKEN", "SKULD_CREDENTIALS")
"""Of no option: what a worker is told for its tasks, and tells the programs that these run."""
VERBS = ("append", "archive", "backup", "bulk", "cancel", "certificates", "claim", "cluster", "complete",
         "completion", "config", "count", "demo", "dev", "drain", "enqueue", "fail", "freeze", "gateway",
         "get", "history", "keys", "limit", "limits", "list", "log", "manual", "members", "node", "pause",
         "paused", "promote", "purge", "quarantine", "quota", "quotas", "reap", "rebalance",
         "release", "renew", "reorder", "results", "resume", "retry", "ring", "schedule", "scheduler", "snooze",
         "solo", "status", "token", "top", "unfreeze", "unlimit", "unquota", "verify", "withdraw", "worker",
         "workers", "workflow", "zookeeper")

_FREE = (f"{PREFIX}WRONG_TIME_", f"{PREFIX}TEST_")
_LINK = re.compile(r"_SERVICE_(HOST|PORT(_\w+)?)|_PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?", re.ASCII)


def doubtful(environment: Collection[str]) -> set[str]:
    """Names that begin like ours and are of no shared option, nor told to programs, nor kept free."""
    return {name for name in environment
            if name.startswith(PREFIX) and not name.startswith(_FREE) and not _is_link(name, environment)
            }.difference(SHARED, TOLD)


def _is_link(name: str, environment: Collection[str]) -> bool:
    """Whether Kubernetes has put it there: where a Service is."""
    found = _LINK.search(name)
    if found is not None:
        return found.end() == len(name)
    return name.endswith("_PORT") and f"{name.removesuffix('_PORT')}_SERVICE_HOST" in environment


def remedy(name: str, known: Iterable[str], otherwise: str) -> str:
    """What to do about a name that is none of these."""
    near = difflib.get_close_matches(name, sorted(known), n=1)
    return f"did you mean {near[0]}?" if near else otherwise


def nobodys(environment: Collection[str]) -> set[str]:
    """Names that are neither a client's nor a verb's."""
    verbs = tuple(f"{PREFIX}{verb.upper()}_" for verb in VERBS)
    return {name for name in doubtful(environment).difference(OWN) if not name.startswith(verbs)}


def handed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for a program that a worker starts. A worker does not start with names of nobody, so those
    that are there a task has set."""
    left = nobodys(environment)
    return {name: value for name, value in environment.items() if name not in left}


@functools.cache
def check_process() -> None:
    """Refuse names in this process's environment that are neither a client's nor a verb's, unless it had none of
    them once."""
    check_client(os.environ)


def check_client(environment: Collection[str]) -> None:
    """Refuse names that are neither a client's nor a verb's."""
    if left := nobodys(environment):
        name = min(left)
        todo = remedy(name, (*SHARED, *OWN, *TOLD), "unset it, or see 'skuld --help' for how variables are named")
        raise Refused("bad_variable", f"${name}: neither clients nor verbs have an option of this name; {todo}",
                      variable=name)
