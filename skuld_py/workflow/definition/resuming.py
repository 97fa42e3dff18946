"""A new workflow from an old one's finished steps.

    fresh = resumed(changed, old, finished={"lines", "words"})

What a step returned depends on the step and on everything before it, and where its values went on its
conditions. Where all of that is the same in both definitions, and the old workflow finished the step, it is taken
over: it does not run again. Those steps of which a later one needs the values become inputs that draw them from
the old workflow. The others are left out, outputs among them: what they wrote is there. So is what only steps that
are taken over need.

An input that draws from a step of its own workflow comes after that step as if an edge led there; where the step
is taken over, it draws from the old workflow.

How a step is run, on how many slots, for how long, how often, changes nothing of what it returns. Lifecycles are
not compared either: they are about the worker.

Rejected: to compare names only, as Onyx's resume points do. A changed function would go on from what the former
one made.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import attrs

from skuld_py.errors import Refused
from skuld_py.workflow.definition.definition import Definition, neighbours, ordered
from skuld_py.workflow.definition.entries import Entry, Kind
from skuld_py.workflow.definition.faults import Faults, meant, quoted
from skuld_py.workflow.definition.names import ALL
from skuld_py.workflow.definition.reading import reached_from, read
from skuld_py.workflow.definition.rules import is_about
from skuld_py.workflow.definition.sources import Outputs
from skuld_py.workflow.definition.writing import digest, plain_of, plain_of_condition, plain_of_entry

RUNNING = ("least", "most", "tags", "percentage", "flux", "timeout_s", "attempts", "max_pending", "root_timeout_s",
           "doc")
"""Keys of an entry that say how it is run."""


def contents(definition: Definition) -> Mapping[str, str]:
    """Of each step the digest of what its values and their ways depend on."""
    found: dict[str, str] = {}
    told = [(each, digest(json.dumps(plain_of_condition(each), sort_keys=True))) for each in definition.conditions]
    drawn = {step: source for source, step in definition.own_draws}
    for step in ordered(definition.entries, [*definition.edges, *definition.own_draws]):
        entry = definition.entries[step]
        source = entry.source
        parents = [found[parent] for parent in definition.parents[step]]
        if isinstance(source, Outputs) and source.content:
            if source.routed:
                found[step] = source.content
                continue
            found.setdefault(source.step, source.content)
            entry = attrs.evolve(entry, source=Outputs("", source.step, together=source.together))
            parents = [source.content]
        elif step in drawn:
            parents = [found[drawn[step]]]
        children = frozenset(definition.children[step])
        conditions = [words for each, words in told if is_about(each, step, children)]
        rows = [step, _told(entry), parents, definition.children[step], conditions]
        found[step] = digest(json.dumps(rows, sort_keys=True))
    return found


def taken_over(new: Definition, old: Definition, finished: Collection[str]) -> tuple[str, ...]:
    """The steps that need not run again, in order: those that are the same in both, with all before them, and that
    the old workflow finished. Not one that comes after a step that runs: it would have values twice."""
    mine, theirs = contents(new), contents(old)
    taken = {step for step in new.order if step in finished and mine[step] == theirs.get(step)
             and (step in old.entries or not new.children[step])}
    after = neighbours(new.entries, [*new.edges, *new.own_draws])
    while True:
        again = {each for step in _needed(new, taken) for each in reached_from(step, after)} & taken
        if not again:
            return tuple(step for step in new.order if step in taken)
        taken -= again


def resumed(new: Definition, old: Definition, finished: Collection[str]) -> Definition:
    """The new workflow without what it takes over. Refused when it has the old one's id, or nothing is left."""
    if new.id == old.id:
        raise Refused("bad_workflow", f"id: {new.id} is the workflow that is to be resumed; give the new one a"
                      " name of its own", id=new.id)
    faults = Faults()
    for step in sorted({*finished} - {*new.entries, *old.entries}):
        faults.add("finished", "", f"{quoted(step)} is no step of {old.id}", meant(step, old.entries))
    faults.refuse()
    taken = {*taken_over(new, old, finished)}
    left = _needed(new, taken)
    if not left:
        raise Refused("nothing_left", f"workflow {new.id} would do nothing: {old.id} has finished all of its"
                      " steps", id=new.id)
    mine, entries = contents(new), {step: new.entries[step] for step in left}
    for step in new.order:
        if step in taken and not entries.keys().isdisjoint(new.children[step]):
            entries[step] = _drawing(step, old, mine[step])
    for source, step in new.own_draws:
        if step in left and source in taken:
            entries[step] = _together(new.entries[step], source, old, mine[source])
    made = attrs.evolve(
        new, entries=entries, edges=tuple(edge for edge in new.edges if edge[1] in left),
        conditions=tuple(each for each in new.conditions
                         if any(is_about(each, step, new.children[step]) for step in left)),
        lifecycles=tuple(each for each in new.lifecycles if each.step in {*left, ALL}))
    return read(plain_of(made))


def drawn_from(definition: Definition) -> tuple[str, ...]:
    """The other workflows that inputs draw from."""
    sources = (entry.source for entry in definition.entries.values())
    return tuple(dict.fromkeys(source.workflow for source in sources
                               if isinstance(source, Outputs) and source.workflow))


def taken_from(definition: Definition) -> list[Outputs]:
    """What inputs draw of steps that were taken over."""
    return [entry.source for entry in definition.entries.values()
            if isinstance(entry.source, Outputs) and entry.source.content]


def check_former(faults: Faults, definition: Definition, former: Mapping[str, Definition], killed: Collection[str],
                 unfinished: Mapping[str, Collection[str]]) -> None:
    """Note what inputs are to draw from other workflows and what is not there: of ``former`` the definitions are
    known, some of them were ``killed``, and steps of some are ``unfinished``, whatever who resumes says."""
    for step, entry in definition.entries.items():
        source = entry.source
        if not isinstance(source, Outputs) or not source.workflow:
            continue
        of = source.workflow
        if of not in former:
            faults.add(step, "workflow.id", f"the cluster knows no workflow {of}", "submit that one first")
        elif source.step and source.step not in former[of].entries:
            faults.add(step, "workflow.step", f"{of} has no step {source.step}",
                       meant(source.step, former[of].entries))
        elif source.content and contents(former[of])[source.step] != source.content:
            faults.add(step, "workflow.content", f"step {source.step} of {of} is not what was taken over",
                       "resume from that workflow's own definition")
        elif source.content and source.step in unfinished.get(of, ()):
            faults.add(step, "workflow.step", f"step {source.step} of {of} is not finished: of it, or before it,"
                       " something is still to be drawn or done, or was cancelled, or is dead", "leave it out of"
                       " what is finished, and it runs again")
        elif of in killed and not source.content:
            faults.add(step, "workflow.id", f"{of} was killed, and nobody knows which of its steps were finished",
                       "resume from it, naming those")


def _needed(new: Definition, taken: Collection[str]) -> list[str]:
    """The steps that run, in order: leaves, and what sends to a step that runs."""
    found: list[str] = []
    after = neighbours(new.entries, [*new.edges, *new.own_draws])
    for step in reversed(ordered(new.entries, [*new.edges, *new.own_draws])):
        if step not in taken and (not new.children[step] or any(to in found for to in after[step])):
            found.insert(0, step)
    return found


def _drawing(step: str, old: Definition, content: str) -> Entry:
    """An input that draws what a step of the old workflow gave; of an older one, if the old one drew it itself."""
    source = old.entries[step].source
    if not (isinstance(source, Outputs) and source.content):
        source = Outputs(old.id, step, routed=True, content=content)
    return Entry(step, Kind.INPUT, source=source, most=1)


def _together(entry: Entry, drawn: str, old: Definition, content: str) -> Entry:
    """An input that drew from a step of its own workflow, which is taken over: it draws from the old one, or from
    where that one drew."""
    known = [each.source for each in old.entries.values()
             if isinstance(each.source, Outputs) and each.source.content == content]
    of = known[0].workflow if known else old.id
    assert isinstance(entry.source, Outputs)
    return attrs.evolve(entry, source=attrs.evolve(entry.source, workflow=of, step=drawn, content=content))


def _told(entry: Entry) -> dict[str, Any]:
    told = {key: value for key, value in plain_of_entry(entry).items() if key not in RUNNING}
    return told | ({"batch": True} if entry.batch else {})
