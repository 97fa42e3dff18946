"""What a claim asks of a worker: a function, its arguments, and how long it may take; or why it asks for nothing.

Found once for each claim, in the thread that claims: so it is known before anything starts whether Spark is
needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from skuld_py.calls.payloads import Call, decode_call
from skuld_py.client.claims import Claim
from skuld_py.errors import Refused
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


@attrs.frozen
class Assignment:
    """A claim, and its work, or why there is none."""

    claim: Claim
    work: Work | Refused

    @property
    def key(self) -> Key:
        """The claim's name."""
        return self.claim.id, self.claim.token, self.claim.proof

    @property
    def needs_spark(self) -> bool:
        """Whether it can begin only when Spark runs."""
        return isinstance(self.work, Work) and self.work.traits.needs_spark


def assigned(claim: Claim) -> Assignment:
    """By the claim's payload and headers."""
    return Assignment(claim, _work_of(claim))


def _work_of(claim: Claim) -> Work | Refused:
    try:
        call = decode_call(claim.payload)
        function = function_of(call)
        traits = traits_of_function(function)
        return Work(call, function, traits, limit_of(claim.headers, traits.timeout_s))
    except Refused as problem:
        return problem
