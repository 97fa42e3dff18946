"""What a script may have done to a cluster: the directives, over nodes that are wired to each other.

    cluster partitions=4            three nodes whose partitions are led; then, in any order,
    enqueue a b1..3 route=1         a client's verb: the trace of what it caused, and the answer
    claim 2 by=w1 at=n0 over=0s     ... of a named client, to a node, and how long what it causes is waited for
    pass 30s                        time, and what happens in it
    lose Watch Tell                 a fault, until ``lose nothing``
    states a b1                     a look at the copies
    given enqueue a; claim 1        what nobody wants to read about, and must not be refused

A client is ``me`` and asks ``follower``, a node that does not lead partition 0, unless the script says otherwise;
``leader`` does. A client's claims are its own: who ends one shows the token that it was told. Who was told none
may complete, with the token of a first claim.

To add a directive: a method and its name in ``ASKS`` or ``DOES``; an option is a row of ``OPTIONS``.
Rejected: directives for what tests reach into machines for; such tests are Python.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import attrs

from node import looks, operating
from node.machines import Machines
from node.trace import BACKGROUND, Names, Sent, answers_of, lines_of, node_of
from skuld_py.config.timing import Retention
from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.body import (
    ON_FAILURE_FAIL,
    ON_FAILURE_IGNORE,
    ON_FAILURE_INSTEAD,
    ON_FAILURE_WAIT,
    Body,
    Header,
    Retry,
    split_body,
)
from skuld_py.model.events import Answer, Effect, MembersChanged, Send, Session, SessionChanged
from skuld_py.model.history import FAILED, RELEASED, SNOOZED
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.outcomes import FIRST_TOKEN
from skuld_py.model.setting import LIMITS, PAUSED, UNSET, YES
from skuld_py.partition.leadership.suspicion import mark_suspect

POLICIES = {"wait": ON_FAILURE_WAIT, "fail": ON_FAILURE_FAIL, "ignore": ON_FAILURE_IGNORE,
            "instead": ON_FAILURE_INSTEAD}
SESSIONS = {session.value: session for session in Session}
KINDS = {kind.__name__: kind for kind in m.MESSAGES}
NOTHING, ME, FOLLOWER, GIVEN = "nothing", "me", "follower", "given "
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_RANGE = re.compile(r"([a-z-]+)(\d+)\.\.(\d+)")
LOOKS = {**looks.LOOKS, **operating.LOOKS}
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
T = TypeVar("T")


class BadScript(Exception):
    """A text that is no script: what is expected there."""


# -- words ---------------------------------------------------------------------------------------


def milliseconds(text: str) -> int:
    """The time that a text says; raises ``BadScript``."""
    found = _SPAN.fullmatch(text)
    if not found:
        raise BadScript(f"{text!r} is no time; a time is a number and one of {' '.join(_UNITS)}")
    return int(float(found[1]) * _UNITS[found[2]])


def names_in(words: Iterable[str]) -> list[str]:
    """All tasks that are named; ``a1..9`` are nine."""
    found: list[str] = []
    for word in words:
        run = _RANGE.fullmatch(word)
        found += [f"{run[1]}{number}" for number in range(int(run[2]), int(run[3]) + 1)] if run else [word]
    return found


def one_of(known: Mapping[str, T], what: str, word: str) -> T:
    """What a word stands for; raises ``BadScript``."""
    if word not in known:
        raise BadScript(f"{word!r} is no {what}; there are {', '.join(known) or NOTHING}")
    return known[word]


def number(text: str) -> int:
    """Raises ``BadScript`` where there is none."""
    if not text.isdecimal():
        raise BadScript(f"{text!r} is no number")
    return int(text)


OPTIONS: Mapping[str, Callable[[str], Any]] = {
    "by": str, "at": str, "over": milliseconds,
    "nodes": number, "partitions": number, "replicas": number, "keep": milliseconds, "slice": milliseconds,
    "page": number, "waiting": number,
    "queue": str, "route": number, "needs": lambda text: names_in(text.split(",")),
    "policy": lambda text: one_of(POLICIES, "policy", text), "patience": milliseconds, "attempts": number,
    "backoff": milliseconds, "after": milliseconds, "w": number,
    "lease": milliseconds, "wait": milliseconds, "delay": milliseconds, "error": str.encode, "result": str.encode,
    "epoch": number, "within": milliseconds,
    "final": number, "number": number, "concurrency": number, "rate": number, "window": milliseconds,
    "burst": number, "each": number, "longest": milliseconds}
"""What stands behind a directive's words, and how it is read."""


def taken_apart(line: str) -> tuple[str, list[str], dict[str, Any]]:
    """A directive's verb, words and options; raises ``BadScript``."""
    verb, *rest = line.split()
    pairs = (word.split("=", 1) for word in rest if "=" in word)
    options = {name: one_of(OPTIONS, "option", name)(text) for name, text in pairs}
    return verb, [word for word in rest if "=" not in word], options


# -- the cluster ---------------------------------------------------------------------------------


class Overheard(Machines):
    """Machines of which everything that is said is noted."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.sent: list[Sent] = []
        self.answered_ms: list[int] = []
        super().__init__(*args, **options)

    def _carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Send():
                is_lost = effect.peer == self.is_deaf or self.is_lost(effect.message)
                self.sent.append(Sent(node_of(name), node_of(effect.peer), effect.message, is_lost))
            case Answer():
                self.answered_ms.append(self.now_ms)
        super()._carry_out(name, effect)


@attrs.define
class How:
    """Which client asks which node, and how long what that causes is waited for."""

    by: str = ME
    at: str = FOLLOWER
    over: int = 200


class Stage:
    """A cluster, its clients, and what its tasks are called."""

    def __init__(self) -> None:
        self.machines: Overheard | None = None
        self.names = Names()
        self.ids: dict[str, bytes] = {}
        self.tokens: dict[tuple[str, bytes], int] = {}
        self.asked: dict[str, m.Message] = {}
        self.shown: set[type[m.Message]] = set()
        self.disks: dict[str, Any] = {}

    @property
    def here(self) -> Overheard:
        """The cluster; raises ``BadScript`` before there is one."""
        if self.machines is None:
            raise BadScript("a script begins with a cluster")
        return self.machines

    def perform(self, line: str) -> list[str]:
        """Do what a line says; what is told of it. Raises ``BadScript``."""
        if not line.startswith(GIVEN):
            return self._done(line)
        for part in line.removeprefix(GIVEN).split("; "):
            if refused := [told for told in self._done(part) if "failed: " in told or "failed, perhaps: " in told]:
                raise BadScript(f"{part}: {refused[0]}")
        return []

    def _done(self, line: str) -> list[str]:
        verb, words, options = taken_apart(line)
        does = one_of({**ASKS, **DOES, **LOOKS}, "directive", verb)
        if verb in LOOKS:
            return [*LOOKS[verb](self.here, self.names, self.blob(words))]
        if verb in DOES:
            self._call(does, verb, *words, **options)
        else:
            how = How(**{name: options.pop(name) for name in ("by", "at", "over") if name in options})
            self.ask(self._call(does, verb, how.by, *words, **options), how)
        return self._overheard()

    def _call(self, does: Callable[..., Any], verb: str, *words: str, **options: Any) -> Any:
        try:
            inspect.signature(does).bind(self, *words, **options)
        except TypeError as problem:
            raise BadScript(f"{verb}: {problem}") from None
        return does(self, *words, **options)

    def _overheard(self) -> list[str]:
        machines = self.here
        sent = [each for each in machines.sent if type(each.message) not in BACKGROUND - self.shown]
        told = lines_of(self.names, sent)
        for (client, answer), now_ms in zip(machines.answers, machines.answered_ms, strict=True):
            name = client.decode()
            told += [line if name == ME else f"{name}: {line}"
                     for line in answers_of(self.names, self.asked[name], now_ms, answer)]
        for heard in (machines.sent, machines.answers, machines.answered_ms):
            heard.clear()
        return told

    def ask(self, message: m.Message, how: How) -> m.Message | None:
        """Let a client ask, and time pass; its answer, if there is one by then."""
        machines, client = self.here, how.by.encode()
        self.asked[how.by] = message
        machines.ask(self.node(how.at), message, client)
        machines.pass_time(how.over)
        self._note_claims()
        return (machines.answers_to(client) or [None])[-1]

    def _note_claims(self) -> None:
        for client, answer in self.here.answers:
            for batch in answer.batches if isinstance(answer, m.Claimed) else ():
                for row, task_id in enumerate(ids.split(batch.ids)):
                    self.tokens[client.decode(), task_id] = batch.first_token + row

    def node(self, word: str) -> str:
        """The node that is meant; raises ``BadScript``."""
        names = self.here.names
        if 0 not in self.here.documents:
            return one_of({node_of(name): name for name in names}, "node", word)
        leader = self.leader(0)
        return one_of({**{node_of(name): name for name in names}, "leader": leader,
                       FOLLOWER: next((name for name in names if name != leader), leader)}, "node", word)

    def leader(self, partition: int) -> str:
        """The node that leads a partition; raises ``BadScript`` when none does."""
        leader = self.here.documents[partition][1].leader if partition in self.here.documents else ""
        if not leader:
            raise BadScript(f"nobody leads partition {partition}")
        return leader

    def blob(self, words: Iterable[str]) -> bytes:
        """The ids of tasks; raises ``BadScript`` when one was never named."""
        names = names_in(words)
        if missing := [name for name in names if name not in self.ids]:
            raise BadScript(f"there is no task {' '.join(missing)}; enqueue it, or name it")
        return b"".join(self.ids[name] for name in names)

    def held(self, by: str, words: Iterable[str], token: int = 0) -> tuple[bytes, bytes]:
        """Ids and tokens of a client's claims; raises ``BadScript`` where it has none, unless ``token`` does."""
        blob = self.blob(words)
        tokens = [self.tokens.get((by, each), token) for each in ids.split(blob)]
        if not all(tokens):
            raise BadScript(f"{by} was granted no claim of one of {' '.join(words)}")
        return blob, columns.pack_u64(tokens)

    # -- clients' verbs --------------------------------------------------------------------------

    def enqueue(self, by: str, *words: str, queue: str = "q", route: int = 0, needs: Iterable[str] = (),
                policy: int = ON_FAILURE_WAIT, patience: int = 3_600_000, attempts: int = 25, backoff: int = 0,
                after: int = 0, w: int = 0) -> m.Message:
        """Tasks; those that were named before have their ids already."""
        deps = tuple(sorted(ids.split(self.blob(needs))))
        self.name(*(name for name in names_in(words) if name not in self.ids), route=route)
        header = Header(queue, retry=Retry(attempts, backoff, jitter_percent=0), policy=policy if deps else 0,
                        dep_wait_ms=patience if deps else 0)
        due_ms = self.here.now_ms + after if after else 0
        raw, rest = split_body(Body(header, due_ms, 0, b"x", deps=deps).encode())
        blob = self.blob(words)
        batch = m.TaskBatch(raw, blob, columns.pack([rest] * len(ids.split(blob))))
        return m.Enqueue(1, w, (batch,))

    def claim(self, by: str, count: str = "1", *, queue: str = "q", wait: int = 0,
              lease: int = 60_000) -> m.Message:
        """As many tasks."""
        return m.Claim(1, queue, number(count), lease, wait, by)

    def complete(self, by: str, *words: str, result: bytes = b"", w: int = 0) -> m.Message:
        """Claims' tasks are done."""
        results = [result] * len(names_in(words)) if result else []
        return m.Complete(1, w, 0, *self.held(by, words, FIRST_TOKEN), b"", columns.pack(results))

    def fail(self, by: str, *words: str, delay: int = -1, error: bytes = b"", final: int = 0) -> m.Message:
        """Claims have failed."""
        return self._conclude(FAILED, by, words, delay, error, bool(final))

    def snooze(self, by: str, *words: str, delay: int = 0) -> m.Message:
        """Claims' tasks come back later."""
        return self._conclude(SNOOZED, by, words, delay)

    def release(self, by: str, *words: str) -> m.Message:
        """Claims are given up."""
        return self._conclude(RELEASED, by, words, 0)

    def _conclude(self, kind: int, by: str, words: tuple[str, ...], delay: int, error: bytes = b"",
                  is_final: bool = False) -> m.Message:
        blob, tokens = self.held(by, words)
        return m.Conclude(1, kind, delay, blob, tokens, columns.pack([error] if error else []),
                          is_final=is_final)

    def renew(self, by: str, *words: str, lease: int = 60_000) -> m.Message:
        """Claims last longer."""
        return m.Renew(1, lease, *self.held(by, words))

    def cancel(self, by: str, *words: str, w: int = 0) -> m.Message:
        """Tasks that nobody shall claim."""
        return m.Cancel(1, w, 0, self.blob(words))

    def evict(self, by: str, *words: str) -> m.Message:
        """An operator takes claims from whoever holds them."""
        return m.Evict(1, *self.held(by, words)[:2])

    def revive(self, by: str, *words: str) -> m.Message:
        """Dead tasks begin anew."""
        return m.Revive(1, self.blob(words))

    def get(self, by: str, *words: str) -> m.Message:
        """Tasks as readers see them."""
        return m.Get(1, self.blob(words))

    def wait(self, by: str, *words: str, wait: int = 0) -> m.Message:
        """How tasks end."""
        return m.Await(1, self.blob(words), wait)

    def log(self, by: str, word: str, *entries: str) -> m.Message:
        """Entries of a claim's log."""
        blob, tokens = self.held(by, [word], FIRST_TOKEN)
        token, = columns.unpack_u64(tokens)
        return m.Append(1, 0, blob, token, 0, columns.pack([each.encode() for each in entries]))

    def checkpoint(self, by: str, word: str, value: str, *entries: str, number: int = 0, w: int = 0) -> m.Message:
        """How far a claim's task is, and entries of its log."""
        blob, tokens = self.held(by, [word])
        token, = columns.unpack_u64(tokens)
        return m.Append(1, w, blob, token, 0, columns.pack([each.encode() for each in entries]), number=number,
                        at_ms=self.here.now_ms, checkpoint=columns.pack([value.encode()]))

    def limits(self, queue: str, *, concurrency: int = 0, rate: int = 0, window: int = 0, burst: int = 0,
               each: int = 0, longest: int = 0) -> None:
        """What holds for a queue, and for each holder; nothing, if nothing is said."""
        value = QueueLimits(concurrency, rate, window, burst, 0, each, longest)
        self._set(LIMITS, queue, value.encode() if value.given else UNSET)

    def pause(self, queue: str) -> None:
        """Nobody claims from a queue."""
        self._set(PAUSED, queue, YES)

    def resume(self, queue: str) -> None:
        """Claims are as before."""
        self._set(PAUSED, queue, UNSET)

    def _set(self, kind: str, queue: str, value: bytes) -> None:
        got = self.ask(m.GetSettings(1, kind, queue, b""), How())
        assert isinstance(got, m.GotSettings), got
        row = self.here.answers.index((ME.encode(), got))
        del self.here.answers[row], self.here.answered_ms[row]
        self.ask(m.PutSetting(1, kind, queue, got.version, "w", value), How())

    # -- time and faults -------------------------------------------------------------------------

    def cluster(self, *, nodes: int = 3, partitions: int = 1, replicas: int = 3, keep: int = 0, slice: int = 0,
                page: int = 200, waiting: int = 0) -> None:
        """Begin with nodes that have elected their leaders; or, if the last ones are waited for, with the others
        alone."""
        if self.machines is not None:
            raise BadScript("a second cluster")
        retention = Retention(keep, slice_ms=slice, page_tasks=page) if keep else None
        self.machines = Overheard(nodes, partitions=partitions, replicas=replicas, retention=retention,
                                  waiting=waiting)
        self.pass_("6s")
        for partition in range(0 if waiting else partitions):
            self.leader(partition)
        self.machines.sent.clear()

    def name(self, *words: str, route: int = 0) -> None:
        """Make ids of tasks that nobody has enqueued."""
        names = names_in(words)
        for name, task_id in zip(names, self.here.mint.mint(self.here.now_ms, len(names), route), strict=True):
            self.ids[name] = task_id
            self.names.add(name, task_id)

    def pass_(self, time: str) -> None:
        """Let time pass."""
        self.here.pass_time(milliseconds(time))
        self._note_claims()

    def _kinds(self, words: Iterable[str]) -> set[type[m.Message]]:
        return {one_of(KINDS, "message", word) for word in words}

    def lose(self, *words: str) -> None:
        """Messages that do not arrive from now on."""
        kinds = tuple(self._kinds(() if words == (NOTHING,) else words))
        self.here.is_lost = lambda message: isinstance(message, kinds)

    def show(self, *words: str) -> None:
        """Messages that are told though they are background."""
        self.shown |= self._kinds(words)

    def deafen(self, word: str) -> None:
        """A node hears nothing from the others."""
        self.here.is_deaf = "" if word == NOTHING else self.node(word)

    def restart(self, *words: str) -> None:
        """New processes on the same stores; what is on its way to or from old ones is lost, and what was lost by
        kind is not any more."""
        machines = self.here
        machines.flying.clear()
        self.lose(NOTHING)
        for name in [self.node(word) for word in words] or machines.names:
            machines.restart(name)
        machines.sent.clear()
        self.pass_("8s")

    def session(self, state: str, *words: str) -> None:
        """What nodes hear of their sessions."""
        for name in [self.node(word) for word in words] or self.here.names:
            self.here.give(name, SessionChanged(one_of(SESSIONS, "state of a session", state)))

    def resign(self, partition: str) -> None:
        """A leader leads no more."""
        at = number(partition)
        self.here.nodes[self.leader(at)].view.vnodes[at].resign(self.here.now_ms)

    def members(self, *words: str) -> None:
        """Who all nodes take for the members; all, if nobody is named."""
        names = [self.node(word) for word in words] or self.here.names
        for name in self.here.names:
            self.here.give(name, MembersChanged(tuple(each for each in self.here.members if each.name in names)))

    # -- operators and deaths: see ``node.operating`` ---------------------------------------------

    def down(self, *words: str) -> None:
        """Processes die."""
        for word in words:
            operating.down(self.here, self.node(word))

    def up(self, *words: str) -> None:
        """They are started again."""
        for word in words:
            operating.up(self.here, self.node(word))

    def place(self, *words: str) -> None:
        """Which nodes partitions are placed on."""
        operating.place(self.here, tuple(self.node(word) for word in words))

    def freeze(self, time: str = "0s") -> None:
        """Leader and cohort stay."""
        operating.freeze(self.here, milliseconds(time))

    def unfreeze(self) -> None:
        """They do not, any more."""
        operating.unfreeze(self.here)

    def wish(self, kind: str, word: str = "", *, epoch: int = 0, within: int = 30_000) -> None:
        """An operator's wish; of an unknown node as it is said."""
        known = {node_of(name): name for name in self.here.names}
        operating.wish(self.here, kind, known.get(word, word), epoch, within)

    def solo(self, word: str) -> None:
        """``on`` or ``off``."""
        operating.solo(self.here, word)

    def scrawl(self, field: str, value: str) -> None:
        """A field by hand."""
        operating.scrawl(self.here, field, value)

    def copy(self, word: str) -> None:
        """Keep what a node's disk has."""
        self.disks[word] = self.here.stores[self.node(word)].snapshot()

    def restore(self, word: str) -> None:
        """Restart a node on the disk that was copied; its copies are in doubt."""
        name = self.node(word)
        store = self.here.stores[name]
        store.restore(one_of(self.disks, "copied disk", word))
        mark_suspect(store, range(self.here.parameters.partitions), "turned back")
        store.commit()
        self.here.restart(name)


ASKS: Mapping[str, Callable[..., m.Message]] = {
    "enqueue": Stage.enqueue, "claim": Stage.claim, "complete": Stage.complete, "fail": Stage.fail,
    "snooze": Stage.snooze, "release": Stage.release, "renew": Stage.renew, "cancel": Stage.cancel,
    "evict": Stage.evict, "revive": Stage.revive, "get": Stage.get, "await": Stage.wait, "log": Stage.log,
    "checkpoint": Stage.checkpoint}
DOES: Mapping[str, Callable[..., None]] = {
    "cluster": Stage.cluster, "name": Stage.name, "pass": Stage.pass_, "limits": Stage.limits,
    "pause": Stage.pause, "resume": Stage.resume, "lose": Stage.lose, "deafen": Stage.deafen, "show": Stage.show,
    "restart": Stage.restart, "session": Stage.session, "resign": Stage.resign, "members": Stage.members,
    "copy": Stage.copy, "restore": Stage.restore, "down": Stage.down, "up": Stage.up, "place": Stage.place,
    "freeze": Stage.freeze, "unfreeze": Stage.unfreeze, "wish": Stage.wish, "solo": Stage.solo,
    "scrawl": Stage.scrawl}
