"""Questions to every node: how many tasks, and which. Answers cover all partitions or none.

Counts come from a partition's leader when it answered, else from the copy that knows the most.
Pages of a listing are joined over the owners, so a task missing on one copy is still listed.
"""

from __future__ import annotations

import attrs

from skuld_py.model import columns, ids
from skuld_py.model import messages as m
from skuld_py.node.merging import join_histories, sum_counts
from skuld_py.node.operation import Host, Operation, Origin
from skuld_py.partition.quorum import has_majority
from skuld_py.partition.standing import Names


class SurveyOperation(Operation):
    """Ask all live nodes; answer when every partition is covered by a majority of its owners."""

    def __init__(self, host: Host, origin: Origin, now_ms: int, question: m.Count | m.List) -> None:
        super().__init__(host, origin, now_ms)
        self._question = question
        self._answers: dict[str, m.Counted | m.Listed] = {}

    def begin(self, now_ms: int) -> None:
        """Ask."""
        if not self._groups():
            self.refuse("not_ready", "the cluster waits for more nodes; see 'skuld status'")
            self.end()
            return
        self.ask(now_ms, {peer: self.local_question() for peer in sorted(self.host.live)})

    def _groups(self) -> dict[int, tuple[Names, ...]]:
        """The cohorts of every partition; nothing unless all have had a leader."""
        groups = {partition: self.host.vnode(partition).standing.groups
                  for partition in range(self.host.parameters.partitions)}
        return groups if all(groups.values()) else {}

    def _is_covered(self) -> bool:
        """Whether of every partition a majority of the voters has answered for it."""
        answered: dict[int, dict[str, None]] = {}
        for name, answer in self._answers.items():
            for partition in columns.unpack_u64(answer.partitions):
                answered.setdefault(partition, {})[name] = None
        return all(has_majority(cohort, answered.get(partition, {}))
                   for partition, cohorts in self._groups().items() for cohort in cohorts)

    def local_question(self) -> m.Message:
        """The question, numbered as ours."""
        question = self._question
        if isinstance(question, m.Count):
            return m.Count(self.request, question.queue)
        return attrs.evolve(question, request=self.request)

    def on_reply(self, now_ms: int, peer: str, message: m.Message) -> None:
        """Note an answer."""
        if not isinstance(message, m.Counted | m.Listed) or peer not in self.pending:
            return
        del self.pending[peer]
        self._answers[peer] = message
        if not self.pending or isinstance(message, m.Listed):
            self._try_to_answer(is_last=not self.pending)

    def _try_to_answer(self, is_last: bool) -> None:
        if not self._is_covered():
            if is_last:
                self._fall_short()
            return
        if isinstance(self._question, m.Count):
            self.answer(self._sum())
        else:
            self.answer(self._page(self._question))
        self.end()

    def _fall_short(self) -> None:
        self.refuse("unavailable", "fewer than a majority of some partition's owners answered; try again")
        self.end()

    def on_deadline(self, now_ms: int) -> None:
        """Some node is silent; perhaps the others cover everything."""
        self._try_to_answer(is_last=True)

    def _sum(self) -> m.Counted:
        chosen: list[m.CountRow] = []
        answers = [answer for answer in self._answers.values() if isinstance(answer, m.Counted)]
        for partition in range(self.host.parameters.partitions):
            best: tuple[bool, int, list[m.CountRow]] = (False, -1, [])
            for answer in answers:
                rows = [row for row in answer.rows if row.partition == partition]
                total = sum(sum(row.counts) for row in rows)
                is_led = partition in columns.unpack_u64(answer.led)
                if (is_led, total) > best[:2]:
                    best = (is_led, total, rows)
            chosen += best[2]
        return m.Counted(self.origin.request, b"", b"", tuple(sum_counts(chosen)))

    def _page(self, question: m.List) -> m.Listed:
        answers = [answer for answer in self._answers.values() if isinstance(answer, m.Listed)]
        ends = [answer.upto for answer in answers if answer.upto]
        upto = min(ends, default=b"")
        found: dict[bytes, tuple[bytes, bytes]] = {}
        for answer in answers:
            rows = zip(ids.split(answer.ids), answer.bodies.unpack("bodies"),
                       answer.histories.unpack("histories"), strict=True)
            for task_id, body, history in rows:
                if not upto or task_id <= upto:
                    old = found.get(task_id, (body, b""))
                    found[task_id] = (body, join_histories(old[1], history))
        page, size = list[bytes](), 0
        for task_id in sorted(found):
            if len(page) == question.limit or size >= self.host.limits.page_bytes:
                upto = page[-1]
                break
            page.append(task_id)
            size += sum(map(len, found[task_id]))
        return m.Listed(self.origin.request, b"", upto, b"".join(page),
                        columns.pack([found[task_id][0] for task_id in page]),
                        columns.pack([found[task_id][1] for task_id in page]))
