"""Whether a name that the manual sets in backticks still means something: a file, an option, a name of the code.

Names of the code are what stands in it as such: what is defined, asked for or passed by name, and short texts
without spaces, as the codes of refusals are, or routes of HTTP. Comments and docstrings do not count.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache

import click

from manual import commands
from manual.written import TOP
from skuld_py.cli.main import main

_WORD = re.compile(r"[A-Za-z_]\w*")
_CODE = re.compile(r"[\w.\[\]()|<>=\"', >-]+")
_ROUTE = re.compile(r"(?:GET|POST) /v1/[\w/{}]+")
TEXT_CHARS_MAX = 60
FOREIGN = frozenset({
    "wf.ID.STEP", "PATH/task=ID",
    "async def", "acks_late", "job_timeout", "touch",  # of other queues
    "ulimit -Hn", "pip install .", "pip install '.[all,java]'", ".venv", "json.loads",  # of system and Python
    "sbom.json", "licences.txt", "vulnerabilities.json",  # written by scripts/supply
    "skuld-gateway.service", "skuld-worker@.service",  # beside one that is named whole
    "~/.local/state/skuld", "$XDG_STATE_HOME/skuld", "127.0.0.1",  # of a machine
    "spark://HOST:PORT", "k8s://https://HOST:PORT", "spark-defaults.conf",  # forms and settings of Spark
    "spark.authenticate", "spark.cores.max", "spark.deploy.recoveryMode", "_spark_metadata",
    "module:function", ":name", "TMPDIR", "SKULD_TASK", "SKULD_TOKEN", "SKULD_CREDENTIALS",  # of tasks, of drivers
    "--conf spark.executorEnv.SKULD_NODES=...",
    "HOST:PORT", "NAME:PASSWORD", "batch=B/queue=Q/day=D", "zk1:2181,zk2:2181/pipelines", "/etc/hosts",  # forms
    "/data/words", "/data/words/_claims/ID/TOKEN", "/data/words/task=ID", "hdfs://", "s3a://",
    "enableServiceLinks: false", "SKULD_SERVICE_HOST", "systemctl reload skuld-gateway",  # of what runs a cluster
})


def is_known(span: str) -> bool:
    """Whether it means something today."""
    first, _, rest = span.partition(" ")
    if span in FOREIGN or first == "skuld":  # whose lines are parsed
        return True
    if first.startswith("--"):
        return first in commands.every_option()
    if first.startswith("SKULD_"):
        return span in variables()
    if span.startswith("["):
        return span[1:-1] in {"all", *main.list_commands(click.Context(main))}
    if first.startswith(("scripts/", ".ci/")):
        return (TOP / first).exists() and (not rest or rest.isupper() or not commands.wrong(
            [word for word in span.split() if not word.isupper()]))
    if first == "python":
        return not commands.wrong(span.split())
    if is_path(span):
        return True
    return _CODE.fullmatch(span) is not None and all(word in names() for word in _WORD.findall(span))


def is_path(span: str) -> bool:
    """Whether it is a file or a folder of the checkout, or of the package; ``*`` stands for the rest of a name."""
    if span.startswith("/") or not ("/" in span or span.startswith(".") or span.endswith(".py")):
        return span in names()
    places = (TOP, TOP / "skuld_py")
    return span in names() or any(path for place in places for form in (span, f"{span}.py")
                                  for path in place.glob(form))


@cache
def variables() -> frozenset[str]:
    """What options are called in the environment."""
    context = click.Context(main)
    found = {name for parameter in main.params for name in _variables_of(parameter)}
    for verb in main.list_commands(context):
        command = main.get_command(context, verb)
        assert command is not None
        found |= {name for parameter in command.params for name in _variables_of(parameter)}
    return frozenset(found)


def _variables_of(parameter: click.Parameter) -> list[str]:
    named = parameter.envvar or ()
    return [named] if isinstance(named, str) else list(named)


@cache
def names() -> frozenset[str]:
    """All names in the code of the package, and the names of its modules."""
    paths = sorted((TOP / "skuld_py").rglob("*.py"))
    found = {part for path in paths for part in path.relative_to(TOP).with_suffix("").parts} | set(dir(builtins))
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            found.update(_names_of(node))
    return frozenset(found)


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.arg | ast.keyword):
        yield node.arg or ""
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        if len(node.value) <= TEXT_CHARS_MAX and (" " not in node.value or _ROUTE.fullmatch(node.value)):
            yield node.value
