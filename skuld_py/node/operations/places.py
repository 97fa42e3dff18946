"""Places for operations that wait at a node: bounded in all and for each client, so that no client takes all."""

from __future__ import annotations

from functools import partial

from skuld_py.node.operations.operation import Operation


class Places:
    """The taken places, by the numbers of operations."""

    def __init__(self) -> None:
        self._whose: dict[int, bytes] = {}
        self._count_of: dict[bytes, int] = {}

    def take(self, operation: Operation, most: int, most_each: int) -> bool:
        """Whether an operation of a client has a place, from now on until it ends."""
        number, client = operation.request, operation.origin.client or b""
        if number not in self._whose:
            mine = self._count_of.get(client, 0)
            if len(self._whose) >= most or mine >= most_each:
                return False
            self._whose[number] = client
            self._count_of[client] = mine + 1
            operation.at_end.append(partial(self._leave, number))
        return True

    def _leave(self, number: int) -> None:
        client = self._whose.pop(number)
        self._count_of[client] -= 1
        if not self._count_of[client]:
            del self._count_of[client]
