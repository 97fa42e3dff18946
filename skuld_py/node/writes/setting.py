"""The coordinator's side of settings: read what a majority of the nodes knows, have a change stored by one.

Any two majorities of the registered nodes share a node, so a change that was asked for after another one had been
acknowledged has a higher version. Where that is not so (nodes were added, disks were lost) the clock decides,
within the skew bound: a version is never below the present time in milliseconds.

A change is acknowledged when all live nodes have it, since a pause is in force only where it is known. When the
deadline passes first, a majority suffices, and without one nothing is acknowledged. None of this needs ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import attrs

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.limiting import CAPS_RULES, decode_limits
from skuld_py.model.messages.settings import SETTINGS_MAX
from skuld_py.model.schedule import SCHEDULE, Schedule
from skuld_py.model.setting import LIMITS, QUOTA, UNSET, check_setting, rank_of, setting_key
from skuld_py.node.knowledge.floor import FUTURE_MS_MAX
from skuld_py.node.knowledge.settings import PAGE_ROWS
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.requests import Asked, Served
from skuld_py.partition.leadership.quorum import has_majority, majority


class SettingOperation(Operation):
    """A question to all live nodes, for answers of a majority of the registered ones."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int,
                 question: m.GetSettings | m.PutSetting) -> None:
        super().__init__(operations, origin, now_ms)
        self._question = question
        self.nodes = operations.view.nodes

    def begin(self, now_ms: int) -> None:
        """Ask, unless a majority cannot answer."""
        live = [name for name in self.nodes if name in self.view.live]
        if not has_majority(self.nodes, live) or not live:
            self.refuse("unavailable", f"only {len(live)} of the cluster's {len(self.nodes)} nodes are live;"
                        f" settings need {majority(len(self.nodes))}: start the others")
            self.end()
            return
        self.ask(now_ms, {name: attrs.evolve(self._question, request=self.request) for name in live})


class ReadSettings(SettingOperation):
    """The registers as a majority knows them; and which version a change must have."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, question: m.GetSettings) -> None:
        super().__init__(operations, origin, now_ms, question)
        self._now_ms = now_ms
        self._answers: dict[str, m.GotSettings] = {}

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Join an answer in."""
        if not isinstance(message, m.GotSettings) or self.pending.pop(peer, None) is None:
            return
        self._answers[peer] = message
        if has_majority(self.nodes, self._answers):
            self.answer(self._joined())
            self.end()

    def _joined(self) -> m.GotSettings:
        """The greatest row of each register, as far as all answers are complete."""
        upto = min((answer.upto for answer in self._answers.values() if answer.upto), default=b"")
        best: dict[bytes, m.SettingRow] = {}
        for answer in self._answers.values():
            for row in answer.rows:
                key = setting_key(row.kind, row.name)
                if not upto or key <= upto:
                    best[key] = max(best.get(key, row), row, key=rank_of)
        keys = sorted(best)
        if len(keys) > PAGE_ROWS:
            keys = keys[:PAGE_ROWS]
            upto = keys[-1]
        version = max([self._now_ms, *(answer.version for answer in self._answers.values())])
        return m.GotSettings(self.origin.request, tuple(best[key] for key in keys), upto, version)

    def on_deadline(self, now_ms: int) -> None:
        """Too few answered."""
        self.refuse("unavailable", f"{len(self._answers)} of {len(self.nodes)} nodes answered, fewer than a"
                    " majority; try again")
        self.end()


class WriteSetting(SettingOperation):
    """Copies of one register. A version that came too late changes nothing, and is acknowledged all the same."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, question: m.PutSetting) -> None:
        super().__init__(operations, origin, now_ms, question)
        self._have: dict[str, None] = {}

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Count a copy."""
        if isinstance(message, m.SettingPut) and self.pending.pop(peer, None) is not None:
            self._have[peer] = None
            self._tell_if_over()

    def on_gone(self, now_ms: int, gone: Collection[str]) -> None:
        """Do not wait for nodes that are not live any more."""
        for name in gone:
            self.pending.pop(name, None)
        self._tell_if_over()

    def _tell_if_over(self) -> None:
        if not self.pending:
            self._tell()

    def _tell(self) -> None:
        if has_majority(self.nodes, self._have):
            missing = tuple(name for name in self.nodes if name not in self._have)
            self.answer(m.SettingPut(self.origin.request, len(self._have), missing))
        else:
            self.give_up(f"{len(self._have)} of {len(self.nodes)} nodes have stored the setting, fewer than a"
                         " majority; try again")
        self.end()

    def on_deadline(self, now_ms: int) -> None:
        """A live node is silent: say which nodes have the change."""
        self._tell()


class SettingRequests:
    """The requests about settings that one node serves. ``check``: whether a schedule is ever due, which costs
    this node work."""

    def __init__(self, operations: Operations, check: Callable[[Schedule, int], None]) -> None:
        self._operations = operations
        self._view = operations.view
        self._check = check
        settings = operations.view.settings
        self.asked: Asked = {
            m.GetSettings: lambda now_ms, origin, message: ReadSettings(operations, origin, now_ms, message),
            m.PutSetting: self._put,
        }
        self.served: Served = {
            m.GetSettings: self._tell, m.PutSetting: self._keep,
            m.PullSettings: lambda now_ms, peer, message: settings.answer(message),
            m.PulledSettings: lambda now_ms, peer, message: settings.join(message.rows),
        }

    def _put(self, now_ms: int, origin: Origin, message: m.PutSetting) -> Operation:
        settings, kind, name = self._view.settings, message.kind, message.name
        check_setting(kind, message.value)
        if message.value != UNSET and _needs_new_rules(kind, message.value):
            self._check_rules()
        if kind == SCHEDULE and message.value != UNSET:
            schedule = Schedule.decode(message.value)
            self._check(schedule, now_ms)
            message = attrs.evolve(message, value=schedule.upto(now_ms).encode())
        if settings.is_full(kind, name):
            raise Refused("too_many_settings", f"name: {SETTINGS_MAX} settings are kept already, those of resumed"
                          " queues and removed limits among them; only these can be set again")
        newest = max(now_ms + self._view.parameters.skew_ms + FUTURE_MS_MAX, settings.version(kind, name) + 1)
        if message.version > newest:
            raise Refused("bad_version", f"version: {message.version} is no successor of {newest - 1}; ask for the"
                          " setting and use the version told")
        return WriteSetting(self._operations, origin, now_ms, message)

    def _check_rules(self) -> None:
        rules = self._view.rules
        if rules < CAPS_RULES:
            raise Refused("old_rules", f"value: this cluster goes by rules {rules}, and caps for each holder and"
                          f" quotas need rules {CAPS_RULES}; once all its nodes know them, raise them with 'skuld"
                          f" cluster rules {self._view.parameters.cluster} --raise'", rules=rules)

    def _tell(self, now_ms: int, peer: str, message: m.GetSettings) -> m.GotSettings:
        rows, upto = self._view.settings.page(message.kind, message.name, message.after)
        return m.GotSettings(message.request, rows, upto, 1 + max((row.version for row in rows), default=0))

    def _keep(self, now_ms: int, peer: str, message: m.PutSetting) -> m.SettingPut:
        self._view.settings.join([m.SettingRow(message.kind, message.name, message.version, message.writer,
                                               message.value)])
        return m.SettingPut(message.request, 1, ())


def _needs_new_rules(kind: str, value: bytes) -> bool:
    """Whether nodes that know older rules only would not go by it."""
    return kind == QUOTA or (kind == LIMITS and decode_limits(value).has_caps)
