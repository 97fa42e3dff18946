"""Mutants of workflows: who gets which slots."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

SHARING = "tests/workflow/test_sharing.py::"
SAYS = SHARING + "test_a_scenario_is_decided_as_it_says"


def _seen_by(test: str, name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "X1", test, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    _seen_by(SAYS, "half-a-workflow-runs", "a workflow gets slots that do not cover its steps",
             "sharing._claimed", "return count if count >= each.least else 0", "return count"),
    _seen_by(SAYS, "no-slot-is-passed-on", "what was offered in vain stays idle", "sharing._passed_on",
             "    while spare and waiting:", "    while False:"),
    _seen_by(SAYS, "the-smallest-first", "slots go to who has the least before those that they cover",
             "sharing._passed_on", "return count >= each.least, max(0, each.least - count), count",
             "return False, 0, count"),
    _seen_by(SAYS, "more-than-a-hundred", "who comes beyond a hundred percent is promised something",
             "sharing._promised", "if total > 100:", "if False:"),
    _seen_by(SAYS, "remainders-in-order", "of equal remainders the earlier workflow's is rounded up",
             "sharing._promised", "key=lambda index: (-left[index], -index)",
             "key=lambda index: (-left[index], index)"),
    _seen_by(SAYS, "part-below-the-least", "a step gets its part though it needs more", "spreading._parts",
             "max(part, room.least)", "part"),
    _seen_by(SAYS, "part-above-the-most", "a step gets a part that it cannot use", "spreading._weighted",
             "if part > rooms[index].most]", "if False]"),
    _seen_by(SAYS, "state-moves", "a step that keeps state is given more slots", "spreading.room_of",
             "if running and step.flux is Flux.KILL:", "if False:"),
    _seen_by(SAYS, "filled-above-the-least", "a step that recovers is given more than its least",
             "spreading.room_of", "if running and step.flux is Flux.RECOVER:", "if False:"),
    _seen_by(SAYS, "nobody-changes-seats", "a step waits for tags that another step has and does not need",
             "seating.Seating._chain", "if other not in came and _least(kinds, at) is not None:", "if False:"),
    _seen_by(SAYS, "groups-across-sites", "a group's slots are at several sites", "grouping.Sites.__init__",
             "sites.setdefault(slot.site, {})", 'sites.setdefault("", {})'),
    _seen_by(SAYS, "groups-move", "groups that sit are seated anew each time", "allocation._Round._grouped",
             "if len({self._slots[name].site for name in names}) == 1]", "if False]"),
    _seen_by(SAYS, "everybody-moves", "slots change seats though nothing has changed", "allocation._Round._keep",
             "step.tags, names[:count],", "step.tags, names[:0],"),
    _seen_by(SAYS, "tags-forgotten", "a slot stays at a step whose tags it has no longer",
             "allocation._Round._asking", "if name in self._slots and step.tags <= self._slots[name].tags]",
             "if name in self._slots]"),
    _seen_by(SAYS, "the-last-is-left-out", "who lacks tags takes others' slots with it",
             "allocation._Round.played", "            starved.update(failed)\n            if not failed:",
             "            starved.update(failed and {asking[-1].demand.name: \"\"})\n            if not failed:"),
    _seen_by(SAYS, "slots-of-who-is-left-out", "who is left out keeps slots", "allocation._Round._seated",
             "seating.give_up([(each.demand.name, step.name) for step in each.demand.steps])", "pass"),
    _seen_by(SAYS, "spare-is-wasted", "slots stay idle that somebody could use", "allocation._Round._use",
             "if count < open_[index][1] and", "if False and"),
)
