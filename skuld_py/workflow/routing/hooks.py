"""Lifecycles: which functions are called around a step's work, in which order, and what becomes of exceptions.

    hooks(definition, "words")[Moment.BEFORE_BATCH]        # in this order
    judged(definition, "words", outcome, resolve)          # restart, kill, or leave it to the attempts

The order is that of brackets: in, as the lifecycles stand; out, the other way round. So what one opens before a
batch it closes when those behind it have closed theirs.

Source: Onyx's lifecycles. There an exception that no lifecycle takes kills the job at once; here the step's
attempts go first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from skuld_py.workflow.definition.definition import Definition, Moment, Policy
from skuld_py.workflow.routing.passage import Failure, Outcome, Resolve

OUTWARDS = frozenset({Moment.AFTER_TASK, Moment.AFTER_BATCH, Moment.AFTER_STOP})


@attrs.frozen
class Hook:
    """A function by name, and what it is given by name besides the worker's context."""

    name: str
    parameters: Mapping[str, Any]


@attrs.frozen
class Judgement:
    """``RESTART``: again, and this attempt does not count. ``KILL``: kill the workflow. ``DEFER``: the attempt
    failed, and there are more. ``reason``: who says so, and why, for people."""

    policy: Policy
    reason: str


def hooks(definition: Definition, step: str) -> Mapping[Moment, tuple[Hook, ...]]:
    """What is to be called for a step at each moment, in order."""
    about = [each for each in definition.lifecycles if each.is_of(step)]
    found = {}
    for moment in Moment:
        inwards = [Hook(each.calls[moment], each.parameters) for each in about if moment in each.calls]
        found[moment] = tuple(reversed(inwards) if moment in OUTWARDS else inwards)
    return found


def judged(definition: Definition, step: str, outcome: Outcome, resolve: Resolve) -> Judgement:
    """What becomes of a failure that no condition took: the first lifecycle that does not defer decides. One that
    raises or says something else kills: to go on could be for ever."""
    failure = outcome.failure or Failure("", "")
    words = f"{failure.type}: {failure.message}"
    for each in definition.lifecycles:
        if not each.is_of(step):
            continue
        said: Any = each.on_exception
        if not isinstance(said, Policy):
            function = resolve(said)
            try:
                said = _policy(function(outcome.error_value, **each.parameters))
            except Exception as error:
                reason = f"{each.on_exception} raised {type(error).__name__}: {error}, when asked about {words}"
                return Judgement(Policy.KILL, f"step {step}: {reason}")
        if said is not Policy.DEFER:
            return Judgement(said, f"step {step}: {words}")
    if outcome.is_last:
        return Judgement(Policy.KILL, f"step {step}: attempt {outcome.attempt}, the last one, failed: {words}")
    return Judgement(Policy.DEFER, f"step {step}: {words}")


def restarts(definition: Definition, step: str) -> bool:
    """Whether what of a step has spent its attempts is tried again: the first lifecycle that does not defer says
    so."""
    said = [each.on_exception for each in definition.lifecycles
            if each.is_of(step) and each.on_exception is not Policy.DEFER]
    return bool(said) and said[0] is Policy.RESTART


def _policy(said: Any) -> Policy:
    if isinstance(said, Policy):
        return said
    return Policy.DEFER if said is None else Policy(said)
