"""Scenarios of the sharing of slots as texts: slots, workflows, who sits where, and exactly what is decided.

    == balanced: a slot more than two workflows can share evenly
    balanced
    slots 7
    j1: a b c
    j2: a b c
    => j1 2/1/1, j2 1/1/1

The first line names how workflows share. ``slots 7`` are s1 to s7; or they are listed with their tags and sites,
``s1[gpu] s2@north``. A workflow is its steps in order, ``a[1..4 x,y 30% kill]`` with least and most, tags, part
and flux; before the colon stand its spreading and its part (``j1 percentage 70%: ...``). ``before j1 a=s1,s2``
says who sat where. ``=>`` counts the seats of each step, or names them (``j1 a=s1,s2``); ``0`` is a workflow
without slots, and ``idle 3`` how many have no seat. ``! j2 ...`` is a part of the reason why one has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import attrs

from skuld_py.workflow.scheduling.allocation import Allocation, allocate
from skuld_py.workflow.scheduling.demand import UNBOUNDED, Demand, Flux, Sharing, Slot, Spreading, Step

_SLOT = re.compile(r"(\w+)(?:\[([\w,]+)\])?(?:@(\w+))?")
_STEP = re.compile(r"(\w+)(?:\[([^\]]*)\])?")
_WORKFLOW = re.compile(r"(\w+)(?: (balanced|percentage|colocated))?(?: (\d+)%)?: (.+)")


@attrs.define
class Scenario:
    """One text, read."""

    name: str
    sharing: Sharing = Sharing.BALANCED
    slots: list[Slot] = attrs.field(factory=list)
    demands: list[Demand] = attrs.field(factory=list)
    before: dict[str, dict[str, list[str]]] = attrs.field(factory=dict)
    expected: str = ""
    reasons: dict[str, str] = attrs.field(factory=dict)

    def decided(self) -> Allocation:
        """What is decided."""
        return allocate(self.sharing, self.slots, self.demands, self.before)

    def told(self, made: Allocation) -> str:
        """The same in the words of what is expected: by names where it has names."""
        by_name = "=" in self.expected
        parts = []
        for demand in self.demands:
            seats = made.seats.get(demand.name)
            if seats is None:
                parts.append(f"{demand.name} 0")
            elif by_name:
                named = (f"{step}={','.join(names)}" for step, names in seats.items())
                parts.append(" ".join([demand.name, *named]))
            else:
                parts.append(f"{demand.name} {'/'.join(str(len(names)) for names in seats.values())}")
        if "idle" in self.expected:
            parts.append(f"idle {len(made.idle)}")
        return ", ".join(parts)


def read(path: Path) -> Iterator[Scenario]:
    """The scenarios of a file."""
    for text in re.split(r"^== ", path.read_text(), flags=re.M)[1:]:
        name, *lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
        scenario = Scenario(name)
        for line in lines:
            _take(scenario, line)
        yield scenario


def _take(scenario: Scenario, line: str) -> None:
    word, _, rest = line.partition(" ")
    if line in (each.value for each in Sharing):
        scenario.sharing = Sharing(line)
    elif word == "slots":
        names = [f"s{number}" for number in range(1, int(rest) + 1)] if rest.isdigit() else rest.split()
        scenario.slots = [_slot(text) for text in names]
    elif word == "before":
        name, *seats = rest.split()
        scenario.before[name] = {step: names.split(",") for step, names in (seat.split("=") for seat in seats)}
    elif word == "=>":
        scenario.expected = rest
    elif word == "!":
        name, _, scenario.reasons[name] = rest.partition(" ")
    else:
        scenario.demands.append(_demand(line))


def _slot(text: str) -> Slot:
    name, tags, site = _match(_SLOT, text).groups()
    return Slot(name, frozenset((tags or "").split(",")) - {""}, site or "")


def _demand(line: str) -> Demand:
    name, spreading, part, steps = _match(_WORKFLOW, line).groups()
    found = tuple(_step(each.group(1), each.group(2) or "") for each in _STEP.finditer(steps))
    return Demand(name, found, Spreading(spreading or "balanced"), int(part or 0))


def _step(name: str, options: str) -> Step:
    step = Step(name)
    for option in options.split():
        if ".." in option:
            least, most = option.split("..")
            step = attrs.evolve(step, least=int(least), most=int(most) if most else UNBOUNDED)
        elif option.endswith("%"):
            step = attrs.evolve(step, percentage=int(option[:-1]))
        elif option in (each.value for each in Flux):
            step = attrs.evolve(step, flux=Flux(option))
        else:
            step = attrs.evolve(step, tags=frozenset(option.split(",")))
    return step


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    assert found is not None, text
    return found
