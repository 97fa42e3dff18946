"""The verbs that stop a whole queue, and let it go on.

A pause is in force where it is known, so both name the nodes that have not confirmed the change.
"""

from __future__ import annotations

from skuld_py.client.asking import Work, verb
from skuld_py.client.setting import Setting
from skuld_py.model.setting import PAUSED, UNSET, YES


class Pausing(Setting):
    """The verbs about pauses, of a client with a name."""

    @verb
    def pause(self, queue: str) -> Work[list[str]]:
        """Let nothing more be claimed from a queue, until ``resume``. Claims that are held stay, tasks may be
        added. Gives the names of registered nodes that have not confirmed it: where it is not in force yet."""
        return (yield from self._set(PAUSED, queue, YES))

    @verb
    def resume(self, queue: str) -> Work[list[str]]:
        """Let a queue's tasks be claimed again; gives the nodes that have not confirmed it."""
        return (yield from self._set(PAUSED, queue, UNSET))

    @verb
    def paused(self) -> Work[list[str]]:
        """The queues that are paused, in the order of their names."""
        values = yield from self._values(PAUSED)
        return [queue for queue, value in values.items() if value == YES]
