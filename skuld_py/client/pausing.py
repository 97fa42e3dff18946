"""The verbs that set what holds for a whole queue.

A setting is changed in two requests: what a majority of the nodes knows says which version the change must have,
then that version is stored by a majority (``model.setting``). Between the two another client may change it too;
then the later version stands, and of equal ones the same everywhere. Both requests may be repeated.
"""

from __future__ import annotations

from skuld_py.client.asking import Work, ask, verb
from skuld_py.model import messages as m
from skuld_py.model import names
from skuld_py.model.setting import PAUSED, UNSET, YES


class Pausing:
    """Needs a name to sign changes with."""

    holder: str

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
        found: list[str] = []
        after, is_over = b"", False
        while not is_over:
            got = (yield from ask(m.GotSettings, m.GetSettings(0, PAUSED, "", after))).message
            found += [row.name for row in got.rows if row.value == YES]
            after, is_over = got.upto, not got.upto
        return found

    def _set(self, kind: str, queue: str, value: bytes) -> Work[list[str]]:
        names.check_name("queue", queue)
        got = yield from ask(m.GotSettings, m.GetSettings(0, kind, queue, b""))
        put = yield from ask(m.SettingPut, m.PutSetting(0, kind, queue, got.message.version, self.holder, value))
        return [*put.message.missing]
