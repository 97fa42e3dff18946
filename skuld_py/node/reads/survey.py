"""A page of a listing: a question to every node. Answers cover all partitions asked for, or none.

Pages are joined over the owners, so a task missing on one copy is still listed. A question about one partition
needs the answers of its owners only; what a node of an older release says of others is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.model.columns import Column
from skuld_py.node.knowledge.view import View
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.reads.merge import join_errors, join_histories
from skuld_py.partition.leadership.quorum import has_majority
from skuld_py.partition.leadership.standing import Names

NOT_READY = "not_ready", "the cluster waits for more nodes; see 'skuld status'"
FELL_SHORT = "unavailable", "fewer than a majority of some partition's owners answered; try again"


def groups_of(view: View) -> dict[int, tuple[Names, ...]]:
    """The cohorts of every partition; nothing unless all have had a leader."""
    groups = {partition: view.vnodes[partition].standing.groups for partition in range(view.parameters.partitions)}
    return groups if all(groups.values()) else {}


def is_covered(groups: Mapping[int, tuple[Names, ...]], answered: Mapping[str, bytes]) -> bool:
    """Whether a majority of each cohort of each partition has answered for it. ``answered``: node -> partitions.
    Partitions have few different cohorts and are answered for by few different sets of nodes."""
    names: dict[int, list[str]] = {}
    for name, partitions in answered.items():
        for partition in columns.unpack_u64(partitions):
            names.setdefault(partition, []).append(name)
    judged = {(cohorts, tuple(names.get(partition, ()))) for partition, cohorts in groups.items()}
    return bool(groups) and all(has_majority(cohort, found)
                                for cohorts, found in sorted(judged) for cohort in cohorts)


class ListOperation(Operation):
    """Ask all live nodes; answer when a majority of every partition's voters has answered."""

    def __init__(self, operations: Operations, origin: Origin, now_ms: int, question: m.List) -> None:
        super().__init__(operations, origin, now_ms)
        self._question = question
        self._answers: dict[str, m.Listed] = {}

    def begin(self, now_ms: int) -> None:
        """Ask."""
        if self._question.place > self.view.parameters.partitions:
            self.refuse("bad_partition", f"partition: {self._question.place - 1} does not exist; there are"
                        f" {self.view.parameters.partitions}, numbered from 0")
            self.end()
            return
        if not groups_of(self.view):
            self.refuse(*NOT_READY)
            self.end()
            return
        question = attrs.evolve(self._question, request=self.request)
        self.ask(now_ms, dict.fromkeys(sorted(self.view.live), question))

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Note an answer."""
        if isinstance(message, m.Listed) and self.pending.pop(peer, None) is not None:
            self._answers[peer] = message
            self._try_to_answer(is_last=not self.pending)

    def on_deadline(self, now_ms: int) -> None:
        """Some node is silent; perhaps the others cover everything."""
        self._try_to_answer(is_last=True)

    def _try_to_answer(self, is_last: bool) -> None:
        groups = {each: cohorts for each, cohorts in groups_of(self.view).items() if self._is_wanted(each)}
        if is_covered(groups, {name: answer.partitions for name, answer in self._answers.items()}):
            self.answer(self._page(self._question))
            self.end()
        elif is_last:
            self.refuse(*FELL_SHORT)
            self.end()

    def _is_wanted(self, partition: int) -> bool:
        return self._question.place in (0, partition + 1)

    def _page(self, question: m.List) -> m.Listed:
        answers = self._answers.values()
        ends = [answer.upto for answer in answers if answer.upto]
        upto = min(ends, default=b"")
        found: dict[bytes, tuple[bytes, bytes, bytes]] = {}
        has_errors = question.with_errors and all(
            len(answer.errors) == len(answer.ids) // ids.ID_BYTES for answer in answers)
        for answer in answers:
            task_ids = ids.split(answer.ids)
            rows = zip(task_ids, answer.bodies.unpack("bodies"), answer.histories.unpack("histories"),
                       answer.errors.unpack("errors") if has_errors else [b""] * len(task_ids), strict=True)
            for task_id, body, history, error in rows:
                if (not upto or task_id <= upto) and (not question.place or self._is_wanted(
                        ids.partition_of(task_id, self.view.parameters.partitions))):
                    old = found.get(task_id, (body, b"", b""))
                    found[task_id] = (body, join_histories(old[1], history), join_errors(old[2], error))
        page, size = list[bytes](), 0
        for task_id in sorted(found):
            if len(page) == question.limit or size >= self.view.limits.page_bytes:
                upto = page[-1]
                break
            page.append(task_id)
            size += sum(map(len, found[task_id]))
        return m.Listed(self.origin.request, b"", upto, b"".join(page),
                        columns.pack([found[task_id][0] for task_id in page]),
                        columns.pack([found[task_id][1] for task_id in page]),
                        columns.pack([found[task_id][2] for task_id in page]) if has_errors else Column())
