"""Mutants of where values come from and go to, and of ends in the log: seen by plays of whole workflows."""

from __future__ import annotations

from mutants.mutant import Mutant, mutant

WORLD = "tests/workflow/test_routed_world.py::test_values_are_fed_once_and_go_where_conditions_say"
WORLD += "_whatever_dies_or_is_lost"


def _played(name: str, rule: str, place: str, old: str, new: str) -> Mutant:
    return mutant(name, rule, place, old, new, "X2", WORLD, seeds=0)


MUTANTS: tuple[Mutant, ...] = (
    # where values go
    _played("routed-no-short-circuit", "conditions behind one that short-circuits add their steps",
            "workflow.routing.routes.Router._applied", "if condition.short_circuit:", "if False:"),
    _played("routed-no-exceptions", "what a function raises is no data for conditions",
            "workflow.routing.routes.Router._failed", "if each.exception)", "if False)"),
    _played("routed-retried-and-sent", "a value that is to be tried again is sent nowhere, and done",
            "workflow.routing.routes.Router._returned", "if any(condition.retry for condition in applied):",
            "if False:"),
    _played("routed-otherwise-to-all", "a value that no condition sends goes to all",
            "workflow.routing.routes.Router._otherwise", "return () if sends else self._children",
            "return self._children"),
    _played("routed-of-another-root", "children belong to their parents, not to the root",
            "worker.workflows.children.Nursery.lots", "payload(value, each.root, ",
            "payload(value, each.segment, "),
    # where values come from
    _played("fed-cursor-not-kept", "a next draw begins anew", "workflow.acking.feeder.Feeder._on_drawn",
            "self.book.cursor = event.cursor", "pass"),
    _played("fed-cursor-not-written", "a next life begins anew", "workflow.acking.checkpoint.Book.decode",
            "cursor = data[_HEAD.size : _HEAD.size + size]", 'cursor = b""'),
    _played("fed-cursor-behind", "a function's values are drawn twice", "workflows.sequences.Sequential.draw",
            "(offset + len(values)).to_bytes", "(offset + len(values) // 2).to_bytes"),
    _played("fed-from-the-beginning", "a next life draws again what stands at the beginning",
            "worker.workflows.sequences.Sequential._go",
            "self._begin(), [], 0, NO_MARK", "self._begin(), [], offset, NO_MARK"),
    _played("fed-past-a-value", "a value between two pages is lost", "workflows.partitions.Adapted.draw",
            "rows[part][:2] = [page.next_offset, page.is_end]",
            "rows[part][:2] = [page.next_offset + (not page.is_end), page.is_end]"),
    _played("fed-the-same-page", "a batch that is drawn again is its first page, again and again",
            "workflows.partitions.Adapted.again", "offset = page.next_offset", "pass"),
    _played("fed-and-committed", "what is under way is called processed",
            "workflows.partitions.Adapted.settle", "min(rows[part][0], open_from.get(part, rows[part][0]))",
            "rows[part][0]"),
    _played("fed-parts-end-with-one", "an input ends with the first of its parts",
            "workflows.partitions.Adapted._is_over", "and all(row[1]", "and any(row[1]"),
    # ends
    _played("exhausted-again-in-the-log", "an input ends twice",
            "cluster.log.commands.exhaust_input.ExhaustInput.change", "if self.step in known.exhausted:",
            "if False:"),
    _played("sealed-again-in-the-log", "an output is sealed twice",
            "cluster.log.commands.seal_output.SealOutput.change", "if self.step in known.sealed:", "if False:"),
    _played("sealing-with-an-open-input", "outputs are sealed while an input brings more",
            "cluster.log.workflows.Workflow.is_sealing", "self.is_live and not self.open_inputs",
            "self.is_live and bool(self.exhausted)"),
)
