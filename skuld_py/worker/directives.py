"""What a task's function raises to say what is to become of its task.

    raise skuld_py.Snooze(300)                  # not now: give the task back, for five minutes
    raise skuld_py.Dead("no such customer")     # never: no other attempt could succeed

Neither is an ``Exception``, as ``ClaimLost`` is none: what a function says of its task is not to be swallowed by
code inside it that forgives errors.
"""

from __future__ import annotations

from skuld_py.client import checking
from skuld_py.errors import Refused
from skuld_py.model import messages as m


class Snooze(BaseException):
    """Give the task back until ``seconds`` from now, 0 to ten years; it costs no attempt."""

    def __init__(self, seconds: float) -> None:
        self.delay_ms = checking.as_ms("seconds", seconds, least=0, most=m.DELAY_MS_MAX)
        super().__init__(f"not before {seconds:g} s from now")

    @property
    def seconds(self) -> float:
        """How long, as it is kept."""
        return self.delay_ms / 1000


class Dead(BaseException):
    """The task has failed for good, for this reason; ``retry`` brings it back."""

    def __init__(self, reason: str) -> None:
        if not reason:
            raise Refused("bad_reason", "reason: say in words why no other attempt could succeed")
        super().__init__(reason)
