"""How settings are read and changed, for the verbs that do so.

A setting is changed in two requests: what a majority of the nodes knows says which version the change must have,
then that version is stored by a majority (``model.setting``). Between the two another client may change it too;
then the later version stands, and of equal ones the same everywhere. Both requests may be repeated.

A setting that has the wanted value already is stored again under its version. So nothing that rests on it changes;
nodes that lack it get it, and all that have it confirm it.
"""

from __future__ import annotations

from skuld_py.client.asking import Work, ask
from skuld_py.model import messages as m
from skuld_py.model import names


class Setting:
    """Needs a name to sign changes with."""

    holder: str

    def _set(self, kind: str, queue: str, value: bytes) -> Work[list[str]]:
        names.check_name("queue", queue)
        got = (yield from ask(m.GotSettings, m.GetSettings(0, kind, queue, b""))).message
        version, writer = next(((row.version, row.writer) for row in got.rows if row.value == value),
                               (got.version, self.holder))
        put = yield from ask(m.SettingPut, m.PutSetting(0, kind, queue, version, writer, value))
        return [*put.message.missing]

    def _values(self, kind: str, queue: str = "") -> Work[dict[str, bytes]]:
        """The values that are set, by name, in the order of names; of one queue or of all."""
        found: dict[str, bytes] = {}
        after, is_over = b"", False
        while not is_over:
            got = (yield from ask(m.GotSettings, m.GetSettings(0, kind, queue, after))).message
            found.update((row.name, row.value) for row in got.rows if row.value)
            after, is_over = got.upto, not got.upto
        return found
