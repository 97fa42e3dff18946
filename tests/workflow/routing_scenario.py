"""Routing as texts: a step, its conditions and lifecycles, and what becomes of what it returns or raises.

    == what applies adds its steps
    s >> a, b, c
    condition {"from": "s", "to": "a", "when": "even"}
    returns 2 3 => a:2

``s`` is a step behind an input, unless an entry in JSON says what else it is. ``returns`` and ``raises`` are
outcomes in JSON, with ``attempt N``, ``last`` or ``given JSON`` before; ``=>`` what becomes of them: what goes
where, ``nothing``, ``retry``, or ``failed`` with the words of the failure. ``judged`` instead of ``=>`` is what
the lifecycles say. ``hooks MOMENT => names``.

The functions are those below. ``called NAME ...`` are those that were called by the last outcome, in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs

from skuld_py.workflow.definition.definition import Definition, Moment
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.routing.hooks import hooks, judged
from skuld_py.workflow.routing.passage import Failure, Outcome, Routed, Verdict
from skuld_py.workflow.routing.routes import route

_OUTCOME = re.compile(r"(returns|raises)(?: (.*?))?(?: (=>|judged) (.*))", re.S)


def _broken(*_: Any, **__: Any) -> Any:
    raise KeyError("no such word")


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "even": lambda value: value % 2 == 0,
    "odd": lambda value: value % 2 == 1,
    "yes": lambda value, **_: True,
    "no": lambda value, **_: False,
    "above": lambda value, least: value > least,
    "outside": lambda value, least, most: not least <= value <= most,
    "same": lambda value, given: value == given,
    "largest": lambda value, values: value == max(values),
    "late": lambda value, attempt, is_last: attempt > 2 or is_last,
    "is_value_error": lambda error: error["error"] == "ValueError",
    "words_of": lambda error: error["message"],
    "tenfold": lambda value, by=10: value * by,
    "broken": _broken,
    "to_restart": lambda error: "restart",
    "to_kill": lambda error: "kill",
    "to_defer": lambda error: None,
    "to_nonsense": lambda error: "perhaps",
    "kill_if": lambda error, type: "kill" if error["error"] == type else "defer",
}


@attrs.define
class Scenario:
    """One text, read."""

    name: str
    plain: dict[str, Any] = attrs.field(factory=lambda: {
        "id": "w", "edges": [["in", "s"]],
        "catalog": {"in": {"kind": "input", "files": "/data"}, "s": {"kind": "function", "function": "work"}}})
    claims: list[str] = attrs.field(factory=list)
    called: list[str] = attrs.field(factory=list)

    def told(self) -> list[str]:
        """Each claim as it should read."""
        definition = read(self.plain)
        return [self._told(definition, claim) for claim in self.claims]

    def _told(self, definition: Definition, claim: str) -> str:
        word, _, rest = claim.partition(" ")
        if word == "called":
            return " ".join(["called", *self.called])
        if word == "hooks":
            moment = Moment(rest.partition(" ")[0])
            found = (f"{hook.name}{json.dumps(hook.parameters) if hook.parameters else ''}"
                     for hook in hooks(definition, "s")[moment])
            return " ".join(["hooks", moment.value, "=>", *found])
        match = _OUTCOME.fullmatch(claim)
        assert match is not None, claim
        outcome = _outcome(match[1], match[2] or "")
        self.called = []
        if match[3] == "judged":
            judgement = judged(definition, "s", outcome, self._resolve)
            said = f"{judgement.policy.value}: {judgement.reason}"
        else:
            said = _routed(route(definition, "s", outcome, self._resolve))
        return claim[: match.start(4)] + said

    def _resolve(self, name: str) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            self.called.append(name)
            return FUNCTIONS[name.lstrip(":")](*args, **kwargs)
        return call


def scenarios(path: Path) -> Iterator[Scenario]:
    """Those of a file."""
    for text in re.split(r"^== ", path.read_text(), flags=re.M)[1:]:
        name, *lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        scenario = Scenario(name)
        for line in lines:
            _take(scenario, line)
        yield scenario


def _take(scenario: Scenario, line: str) -> None:
    word, _, rest = line.partition(" ")
    if word in ("condition", "lifecycle"):
        scenario.plain.setdefault(f"{word}s", []).append(json.loads(rest))
    elif line.startswith("s >> "):
        for step in line.removeprefix("s >> ").split(", "):
            scenario.plain["edges"].append(["s", step])
            scenario.plain["catalog"][step] = {"kind": "function", "function": "work"}
    elif word == "s":
        scenario.plain["catalog"]["s"] = json.loads(rest)
        if scenario.plain["catalog"]["s"]["kind"] == "input":
            del scenario.plain["catalog"]["in"]
            scenario.plain["edges"].remove(["in", "s"])
    else:
        scenario.claims.append(line)


def _outcome(word: str, text: str) -> Outcome:
    decoder, values, facts = json.JSONDecoder(), list[Any](), dict[str, Any]()
    while text := text.strip():
        key = re.match(r"attempt |last|given ", text)
        if key is not None:
            text = text[key.end():]
        value, end = (True, 0) if key is not None and key[0] == "last" else decoder.raw_decode(text)
        text = text[end:]
        if key is None:
            values.append(value)
        else:
            facts["is_last" if key[0] == "last" else key[0].strip()] = value
    made = Outcome(facts.pop("given", "segment"), **facts)
    if word == "raises":
        return attrs.evolve(made, failure=Failure(*values))
    return attrs.evolve(made, values=tuple(tuple(value) if isinstance(value, list) else value for value in values))


def _routed(routed: Routed) -> str:
    match routed.verdict:
        case Verdict.EMIT:
            return " ".join(f"{to}:{json.dumps(value)}" for to, value in routed.emitted) or "nothing"
        case Verdict.RETRY:
            return "retry"
        case _:
            assert routed.failure is not None
            return f"failed {routed.failure.type}: {routed.failure.message}"
