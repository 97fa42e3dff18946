"""Which tasks a query asks for, as far as the queue can tell: conditions on columns that narrow what is read.

A condition that is taken here holds for every row that is read, so Spark need not look again; any other stays
Spark's. Two conditions on one column are both to hold: what both name is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from skuld_py.calls.payloads import check_name
from skuld_py.client.reading import STATES
from skuld_py.datasource.choices import ReadChoices
from skuld_py.errors import Refused
from skuld_py.model import names
from skuld_py.model.ids import TaskId, from_text


@attrs.frozen
class Asked:
    """What is read. ``ids``: these only; None for any. ``is_nothing``: conditions exclude each other."""

    choices: ReadChoices
    ids: tuple[TaskId, ...] | None = None
    is_nothing: bool = False

    def narrowed(self, column: str, values: Sequence[Any]) -> Asked | None:
        """With the condition that a column has one of these values; None when that is not to be had here."""
        texts = [value for value in values if isinstance(value, str)]
        match column:
            case "queue":
                queues = _both(self.choices.queues, [each for each in texts if _is_name(each)])
                return self._with(attrs.evolve(self.choices, queues=queues), not queues)
            case "state":
                states = _both(self.choices.states, [each for each in texts if each in STATES])
                return self._with(attrs.evolve(self.choices, states=states), not states)
            case "function" if len(values) == 1:
                return self._of_function(values[0])
            case "id":
                found = tuple(sorted({each for text in texts if (each := _id_of(text)) is not None}))
                ids = found if self.ids is None else tuple(each for each in found if each in self.ids)
                return attrs.evolve(self, ids=ids, is_nothing=self.is_nothing or not ids)
            case _:
                return None

    def _with(self, choices: ReadChoices, is_nothing: bool) -> Asked:
        return attrs.evolve(self, choices=choices, is_nothing=self.is_nothing or is_nothing)

    def _of_function(self, name: Any) -> Asked | None:
        try:
            check_name(name)
        except Refused:
            return attrs.evolve(self, is_nothing=True)
        if self.choices.function not in (None, name):
            return attrs.evolve(self, is_nothing=True)
        return attrs.evolve(self, choices=attrs.evolve(self.choices, function=name))


def _both(known: tuple[str, ...], wanted: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in wanted if not known or each in known))


def _is_name(text: str) -> bool:
    return names.NAME.fullmatch(text) is not None


def _id_of(text: str) -> TaskId | None:
    try:
        return from_text(text) if text == text.lower() else None
    except Refused:
        return None
