"""The grammar of names: what a queue, cluster, worker or node may be called.

One grammar for all, so that a name fits a ZooKeeper path, a store key, a file name and a
terminal: letters, digits, ``.``, ``_`` and ``-``, first a letter or digit, at most 200. Names of
nodes may also hold ``:`` (``host:port``) and those of workers ``@`` and ``:``.
"""

from __future__ import annotations

import re

from skuld_py.errors import Refused

NAME_CHARS_MAX = 200
QUEUES_OF_WORKFLOWS = "wf."
"""Queues of workflows begin with this; nobody else's do."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", re.ASCII)
WIDE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,199}", re.ASCII)
LIFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@~-]{0,229}", re.ASCII)
"""A member's id, that is one life of a node: its name, ``~``, and something that is never used again."""


def queues_of(workflow: str) -> str:
    """How the names of a workflow's queues begin."""
    return f"{QUEUES_OF_WORKFLOWS}{workflow}."


def check_name(field: str, name: object, grammar: re.Pattern[str] = NAME) -> str:
    """The name itself, or ``Refused`` naming the field and the grammar."""
    if not isinstance(name, str) or not grammar.fullmatch(name):
        raise Refused("bad_name", f"{field}: {str(name)[:64]!r} is not a name; use letters, digits, '.', '_'"
                      f" and '-', starting with a letter or digit, at most {NAME_CHARS_MAX}", field=field)
    return name
