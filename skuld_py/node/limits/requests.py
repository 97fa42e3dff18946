"""What the leaders and the home of a limited queue ask each other."""

from __future__ import annotations

from typing import ClassVar

from skuld_py.model import messages as m
from skuld_py.node.limits.borrower import Loans
from skuld_py.node.limits.lender import Lender
from skuld_py.node.operations.requests import Asked, Served


class LimitRequests:
    """The requests about limits that one node serves."""

    asked: ClassVar[Asked] = {}

    def __init__(self, lender: Lender, loans: Loans) -> None:
        self._lender = lender
        self._loans = loans
        self.served: Served = {
            m.Borrow: lender.on_borrow, m.Spent: lender.on_spent, m.Freed: self._freed,
            m.Reckon: lambda now, peer, msg: loans.on_reckon(peer, msg),
        }

    def _freed(self, now_ms: int, peer: str, message: m.Freed) -> None:
        self._lender.on_freed(message)
        self._loans.moisten(message.queue)
