"""What nodes tell each other and their clients, as lines of a text: tasks by their names, nodes as n0 n1 n2.

    n2 > n0 n1: Replicate a b -> Kept       two nodes are told the same, and both answer so
    n2 > n0: Tell a (lost)
    n1 > n2: Freed q (3 times)              in whatever order among others

An answer stands behind its question, by the number that both have; of several with one number, behind the one of
its own word (``Amend``, ``Amended``), else behind the last one. Alike lines stand where the first one was.
Left out are ``BACKGROUND`` messages: what nodes say all the time, whatever clients want.

Rejected: a line for each message, in the order of their sending. That is three times the lines, and half of them
would change with the order of two nodes' answers.
Source: the traces of etcd-io/raft, ``testdata/*.txt``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.history import decode_history
from skuld_py.model.outcomes import entries_of
from skuld_py.model.state import State
from skuld_py.model.task import LogEntry, view

BACKGROUND: frozenset[type[m.Message]] = frozenset({
    m.Gossip, m.PartialGossip, m.AskTime, m.ToldTime, m.RequestVote, m.Vote, m.PullClaims, m.ClaimPage,
    m.PushClaims, m.ClaimsKept, m.Sync, m.Synced, m.Abdicate, m.Invite, m.Probe, m.Probed, m.Compare, m.Compared,
    m.Fetch, m.Fetched, m.Repair, m.PullSettings, m.PulledSettings})
_NODE = re.compile(r"127\.0\.0\.1:130(\d\d)")
_NUMBERED = re.compile(r"(.*?)(\d+)")


def node_of(name: str) -> str:
    """``n0`` for the first node."""
    return _NODE.sub(lambda found: f"n{int(found[1])}", name)


def span(milliseconds: int) -> str:
    """A time as texts have it."""
    return f"{milliseconds / 1_000:g}s"


class Names:
    """What the tasks of a script are called."""

    def __init__(self) -> None:
        self._of: dict[bytes, str] = {}

    def add(self, name: str, task_id: bytes) -> None:
        """Call a task so."""
        self._of[task_id] = name

    def of(self, blob: bytes) -> str:
        """The names of a column of ids; ``a1..9`` are nine."""
        runs: list[tuple[str, int, int]] = []
        for name in (self._of[task_id] for task_id in ids.split(blob)):
            found = _NUMBERED.fullmatch(name)
            word, number = (found[1], int(found[2])) if found else (name, -1)
            if runs and found and runs[-1][0] == word and runs[-1][2] == number - 1:
                runs[-1] = (word, runs[-1][1], number)
            else:
                runs.append((word, number, number))
        return " ".join(word if first < 0 else f"{word}{first}" if first == last else f"{word}{first}..{last}"
                        for word, first, last in runs)

    def beside(self, told: Iterable[tuple[bytes, str]]) -> list[str]:
        """What is told of tasks, a line for those of which the same is."""
        alike: dict[str, list[bytes]] = {}
        for task_id, words in told:
            alike.setdefault(words, []).append(task_id)
        return [f"{self.of(b''.join(task_ids))}: {words}" for words, task_ids in alike.items()]

    def inside(self, text: str) -> str:
        """A text for people, with names for ids and nodes."""
        for task_id, name in self._of.items():
            text = text.replace(ids.to_text(task_id), name)
        return node_of(text)


@attrs.frozen
class Sent:
    """A message between nodes."""

    sender: str
    receiver: str
    message: m.Message
    is_lost: bool


@attrs.define
class _Asked:
    sender: str
    receiver: str
    words: str
    answer: str = ""


# -- between nodes -------------------------------------------------------------------------------


def _indexes(word: str) -> Callable[[Names, bytes], str]:
    return lambda _, rows: " ".join([word, *map(str, columns.unpack_u64(rows))]) if rows else ""


def _plain(_: Names, value: object) -> str:
    return str(value)


def _all_of(names: Names, rows: Iterable[Any]) -> str:
    return names.of(b"".join(getattr(row, "ids", b"") or getattr(row, "id", b"") for row in rows))


FACTS: Mapping[str, Callable[[Names, Any], str]] = {
    "queue": _plain, "want": _plain, "count": _plain, "code": _plain,
    "ids": Names.of, "id": Names.of, "batches": _all_of, "tasks": _all_of,
    "refused": lambda names, blob: f"refused {names.of(blob)}" if blob else "",
    "old": lambda names, blob: f"old {names.of(blob)}" if blob else "",
    "vetoed": _indexes("vetoed"), "kept": _indexes("kept"), "unknown": _indexes("unknown"),
    "is_accepted": lambda _, is_accepted: "" if is_accepted else "refused",
    "is_last": lambda _, is_last: "for the last time" if is_last else "",
    "is_trial": lambda _, is_trial: "on trial" if is_trial else ""}
"""What is told of a message besides its kind, by field."""


def words_of(names: Names, message: m.Message) -> str:
    """A message in words."""
    told = (FACTS[field.name](names, getattr(message, field.name)) for field in attrs.fields(type(message))
            if field.name in FACTS)
    return " ".join([type(message).__name__, *filter(None, told)])


def lines_of(names: Names, sent: Iterable[Sent]) -> list[str]:
    """A trace."""
    asked: list[_Asked] = []
    open_: dict[tuple[str, str, int], list[_Asked]] = {}
    for each in sent:
        request = getattr(each.message, "request", 0) or getattr(each.message, "turn", 0)
        words = words_of(names, each.message) + (" (lost)" if each.is_lost else "")
        questions = open_.get((each.receiver, each.sender, request), [])
        if questions and request:
            question = next((one for one in questions if one.words[:3] == words[:3]), questions[-1])
            questions.remove(question)
            question.answer = f" -> {words}"
        else:
            asked.append(_Asked(each.sender, each.receiver, words))
            open_.setdefault((each.sender, each.receiver, request), []).append(asked[-1])
    return _gathered(asked)


def _gathered(asked: Iterable[_Asked]) -> list[str]:
    """Alike questions of a node to several others are one line, and alike lines too."""
    groups: list[tuple[_Asked, set[str]]] = []
    for each in asked:
        for first, receivers in reversed(groups):
            if (first.sender, first.words, first.answer) == (each.sender, each.words, each.answer):
                if each.receiver not in receivers:
                    receivers.add(each.receiver)
                    break
        else:
            groups.append((each, {each.receiver}))
    found = Counter(f"{first.sender} > {' '.join(sorted(receivers))}: {first.words}{first.answer}"
                    for first, receivers in groups)
    return [line if times == 1 else f"{line} ({times} times)" for line, times in found.items()]


def _ended(names: Names, question: m.Message, answer: m.Acked) -> str:
    if not isinstance(question, m.Cancel):
        return ""
    task_ids = ids.split(question.ids)
    return names.of(b"".join(task_ids[number] for number in columns.unpack_u64(answer.ended)))


# -- to clients ----------------------------------------------------------------------------------


def answers_of(names: Names, question: m.Message, now_ms: int, answer: m.Message) -> list[str]:
    """What a client was answered."""
    match answer:
        case m.Acked():
            ended = _ended(names, question, answer)
            return [f"acked by {answer.copies}{ended and f', completed before: {ended}'}"]
        case m.Failed():
            doubt = "" if answer.is_definite else ", perhaps"
            return [f"failed{doubt}: {answer.code}: {names.inside(answer.text)}"]
        case m.Claimed():
            why = f" ({answer.withheld})" if answer.withheld else ""
            return [f"claimed {_all_of(names, answer.batches) or 'nothing'}{why}"]
        case m.Got():
            return names.beside((row.id, _seen(now_ms, row)) for row in answer.tasks) or ["no task"]
        case m.SettingPut():
            return [f"set on {answer.copies}"]
        case m.Renewed():
            rows = _renewed(answer, now_ms, "in" if isinstance(question, m.Conclude) else "for")
        case m.Revived():
            rows = (m.Revival(outcome).name.lower().replace("_", " ") for outcome in answer.outcomes)
        case m.Awaited():
            rows = _awaited(answer)
        case _:
            return [words_of(names, answer)]
    return names.beside(zip(ids.split(question.ids), rows, strict=True))


def _renewed(answer: m.Renewed, now_ms: int, word: str) -> Iterable[str]:
    """A claim lasts *for* some time; its task may be claimed again *in* some time."""
    unknown, cancelled = columns.unpack_u64(answer.unknown), columns.unpack_u64(answer.cancelled)
    for row, end_ms in enumerate(columns.unpack_u64(answer.ends)):
        told = f"{word} {span(max(0, end_ms - now_ms))}" if end_ms else "lost"
        yield ("unknown" if row in unknown else told) + (", cancelled" if row in cancelled else "")


def _awaited(answer: m.Awaited) -> Iterable[str]:
    for end, *told in zip(answer.ends, answer.results.unpack(), answer.errors.unpack(), strict=True):
        word = "not ended" if end == m.NOT_ENDED else State(end).name.lower()
        yield " ".join([word, *(each.decode() for each in told if each)])


def _seen(now_ms: int, row: m.TaskRow) -> str:
    logged = [LogEntry(*key, data) for key, data in entries_of(row).items()]
    task = view(row.id, row.body.unpack()[0], decode_history(row.history), logged, now_ms=now_ms)
    facts = [(each or b"").decode() for each in (task.result, task.error)]
    return " ".join([task.state, *filter(None, facts)])
