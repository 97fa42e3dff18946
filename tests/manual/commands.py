"""Whether a command that is written somewhere can be typed: what is wrong with it, or nothing.

``skuld`` lines are read by the program's own parser, which imports verbs and runs none. Scripts must be there, and
what they are given must be known to the module that they start. A request must be one of the gateway's OpenAPI
document.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import click

from manual.written import TOP
from skuld_py.cli.main import main
from skuld_py.cli.verbed import inner_of
from skuld_py.gateway import openapi
from skuld_py.gateway.limits import Limits

_STARTS = re.compile(r"exec (?:python -m ([\w.]+)|skuld (\w+))")
SYSTEM = ("chmod", "cp", "tr", "wc", "xargs")
"""Programs of the system that lines of ours lead to."""


def wrong(words: list[str]) -> str:
    """What is wrong with a command."""
    program = words[0]
    if program == "skuld":
        return wrong_for_skuld(words[1:])
    if program == "python" and words[1] == "-m":
        shown = _help_of(words[2])
        return _unknown_options(words[3:], shown) if shown else f"there is no program {words[2]}"
    if program == "curl":
        return wrong_request(words[1:])
    if "/" in program:
        return wrong_script(program, words[1:])
    return "" if program in SYSTEM else f"nobody knows the program {program}"


# -- skuld ---------------------------------------------------------------------------------------


def verb_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The verb that a line names, and what follows it."""
    command: click.Command = main
    rest = list(words)
    while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
        found = command.get_command(click.Context(command), rest.pop(0))
        if found is None:
            raise click.UsageError(f"there is no such verb in 'skuld {' '.join(words)}'")
        command = found
    if rest and rest[0] in (below := inner_of(command)):
        return below[rest[0]], rest[1:]
    return command, rest


def wrong_for_skuld(words: list[str]) -> str:
    """A whole line: its verb, its options, their values, and what it must have."""
    try:
        verb, rest = verb_of(words)
        if not isinstance(verb, click.Group):
            verb.make_context("skuld", rest)
        elif rest not in (["--help"], ["--version"]):
            return "there is no verb"
    except click.ClickException as error:
        return error.format_message()
    except click.exceptions.Exit:
        pass  # of --help
    return ""


def wrong_mention(words: list[str]) -> str:
    """What may be said of a verb in passing: it exists, and has these options."""
    try:
        verb, rest = verb_of([word for word in words if word not in ("VERB", "TOPIC")])
    except click.UsageError as error:
        return error.format_message()
    known = {name for parameter in verb.params for name in parameter.opts} | {"--help"}
    return " ".join(word for word in rest if word.startswith("-") and word not in known)


@cache
def every_option() -> frozenset[str]:
    """The long options of all verbs."""
    found = {"--help"}
    commands: list[click.Command] = [main]
    while commands:
        command = commands.pop()
        found |= {name for parameter in command.params for name in parameter.opts if name.startswith("--")}
        if isinstance(command, click.Group):
            context = click.Context(command)
            inner = (command.get_command(context, name) for name in command.list_commands(context))
            commands += [each for each in inner if each is not None]
        elif below := inner_of(command):
            commands += below.values()
    return frozenset(found)


# -- scripts -------------------------------------------------------------------------------------


def wrong_script(program: str, arguments: list[str]) -> str:
    """A script of this checkout, and what it is given."""
    path = TOP / program
    if not path.is_file() or not os.access(path, os.X_OK):
        return f"there is no script {program}"
    if program == "scripts/bench":
        return "".join(name for name in arguments[:1] if not (TOP / "bench" / f"bench_{name}.py").exists())
    if not arguments:
        return ""
    text = path.read_text(encoding="utf-8")
    started = _STARTS.search(text)
    if started is None:
        return f"nobody knows what {program} takes"
    module, verb = started.groups()
    return wrong_for_skuld([verb, *arguments]) if verb else _unknown_options(arguments, _help_of(module) + text)


def _unknown_options(arguments: list[str], shown: str) -> str:
    return " ".join(word for word in arguments if word.startswith("--") and not re.search(rf"{word}\b", shown))


@cache
def _help_of(module: str) -> str:
    places = os.pathsep.join((str(TOP), str(TOP / "tests")))
    ran = subprocess.run([sys.executable, "-m", module, "--help"], cwd=TOP, capture_output=True, text=True,
                         env={**os.environ, "PYTHONPATH": places}, timeout=60, check=False)
    return ran.stdout if ran.returncode == 0 else ""


# -- requests ------------------------------------------------------------------------------------


def wrong_request(words: list[str]) -> str:
    """A line of curl: the route, the method, and the fields of the body."""
    body = json.loads(words[words.index("-d") + 1]) if "-d" in words else {}
    path = urlsplit(next(word for word in words if word.startswith("http"))).path
    method = "post" if body else "get"
    told = openapi.document(Limits())
    route = path if path in told["paths"] else str(Path(path).parent / "{id}")
    operation = told["paths"].get(route, {}).get(method)
    if operation is None:
        return f"there is no {method} {path}"
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    model = told["components"]["schemas"][asked["$ref"].rpartition("/")[2]] if "$ref" in asked else asked
    missing = set(model.get("required", ())) - body.keys()
    return " ".join(sorted(missing | body.keys() - model.get("properties", {}).keys()))
