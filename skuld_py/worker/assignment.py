"""What a claim asks of a worker: a function, its arguments, and how long it may take; or why it asks for nothing.

Found once for each claim, in the thread that claims: so it is known before anything starts whether Spark is
needed, and which tasks can run together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import attrs

from skuld_py.calls.payloads import Call, decode_call
from skuld_py.client.claims import Claim
from skuld_py.errors import Refused
from skuld_py.worker.kinds.allowed import check_allowed
from skuld_py.worker.lease import Key
from skuld_py.worker.registry import function_of, rebuilt, traits_of_function
from skuld_py.worker.time_limit import limit_of
from skuld_py.worker.traits import Traits


@attrs.frozen
class Work:
    """What is to be run."""

    call: Call
    function: Callable[..., Any]
    traits: Traits
    timeout_s: float | None

    def made(self) -> Work | Refused:
        """With what the function's annotations make of its arguments. To be called where it runs: classes of the
        application's do it."""
        try:
            return attrs.evolve(self, call=rebuilt(self.function, self.call))
        except Refused as problem:
            return problem


@attrs.frozen(eq=False)
class Kind:
    """What tasks of one batch have in common: a queue and a batched function, by its name and its module; at most
    ``most`` of them are one job. The same object for all of them."""

    queue: str
    name: str
    module: str
    most: int


@attrs.frozen
class Assignment:
    """A claim, and its work, or why there is none. ``kind``: of a task that runs in a batch."""

    claim: Claim
    work: Work | Refused
    kind: Kind | None = None

    @property
    def key(self) -> Key:
        """The claim's name."""
        return self.claim.id, self.claim.token, self.claim.proof

    @property
    def needs_spark(self) -> bool:
        """Whether it can begin only when Spark runs."""
        return isinstance(self.work, Work) and self.work.traits.needs_spark

    @property
    def has_past(self) -> bool:
        """Whether what its task went through is to be read, see ``blame``. To read it for all of a batch would
        take longer than the batch; that most of them were never claimed before, their claims say."""
        return self.needs_spark and (self.kind is None or not self.claim.is_first)


def assigned(claim: Claim) -> Assignment:
    """By the claim's payload and headers."""
    work = _work_of(claim)
    if not isinstance(work, Work) or not work.traits.batch:
        return Assignment(claim, work)
    return Assignment(claim, work, _kind(claim.queue, work.call.name, work.function.__module__, work.traits.batch))


def turns_of(made: Sequence[Assignment]) -> int:
    """How many slots these take one after the other: a batch takes one."""
    kinds = [each.kind for each in made if each.kind is not None]
    return len(made) - len(kinds) + len({*kinds})


_kind = cache(Kind)


def _work_of(claim: Claim) -> Work | Refused:
    try:
        call = decode_call(claim.payload)
        function = function_of(call)
        check_allowed(call.name)
        traits = traits_of_function(function)
        return Work(call, function, traits, limit_of(claim.headers, traits.timeout_s))
    except Refused as problem:
        return problem
