"""What holders and claimers ask for: claims, renewals, ends and revivals. Whichever node is asked finds the
leader, which grants and judges, and has its cohort record it."""

from __future__ import annotations

from functools import partial

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.history import RELEASED
from skuld_py.node.claims.ask_leaders import ConcludeOperation, RenewOperation, ReviveOperation
from skuld_py.node.claims.caps import allows_lease
from skuld_py.node.claims.claim import ClaimOperation, Parking, lead_claim
from skuld_py.node.claims.grant import Gates
from skuld_py.node.claims.verdicts import lead_conclusion, lead_renewal, lead_revival
from skuld_py.node.operations.admission import Admission
from skuld_py.node.operations.operation import Operation, Operations
from skuld_py.node.operations.outbox import Origin
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Asked, Served, led


class ClaimRequests:
    """The requests about claims that one node serves."""

    def __init__(self, operations: Operations, admission: Admission, gates: Gates, parked: Parking) -> None:
        self._operations = operations
        self._view = operations.view
        self._admission = admission
        self._gates = gates
        self._parked = parked
        self._ownership = Ownership(operations.view)
        self.asked: Asked = {m.Claim: self._claim, m.Renew: self._renew, m.Conclude: self._conclude,
                             m.Evict: self._evict, m.Revive: self._revive}
        self.served: Served = {
            m.Delegate: led(operations, partial(lead_claim, gates)),
            m.Renew: led(operations, partial(lead_renewal, gates.horizons)),
            m.Conclude: led(operations, lead_conclusion), m.Revive: led(operations, lead_revival),
            m.Grant: self._record, m.Amend: self._amend,
        }

    def _claim(self, now_ms: int, origin: Origin, message: m.Claim) -> Operation:
        if not message.takes_proofs and self._view.notary.demands(now_ms):
            raise Refused("old_client", "claim: this client keeps no proofs of claims, without which nobody may"
                          " complete them here; upgrade it to the release of the nodes")
        caps = self._view.settings.capped.get(message.queue)
        if caps is not None and not allows_lease(caps, message.lease_ms):
            raise Refused("lease_too_long", f"lease_s: {message.lease_ms / 1000:g} s is longer than"
                          f" {message.queue} allows, {caps.lease_ms / 1000:g} s; claim for a shorter time and"
                          " renew, or raise the cap ('skuld limit')", longest_ms=caps.lease_ms)
        return ClaimOperation(self._operations, self._gates, self._parked, origin, now_ms, message)

    def _renew(self, now_ms: int, origin: Origin, message: m.Renew) -> Operation:
        view, named = self._view, (message.ids, message.tokens, message.proofs)
        has_former = message.lease_ms and view.notary.former
        over = view.notary.renewed_no_more(now_ms, *named) if has_former else []
        view.notary.check(now_ms, *named, view.is_connected, over)
        self._admission.group(message.ids)
        return RenewOperation(self._operations, origin, now_ms, message, over)

    def _conclude(self, now_ms: int, origin: Origin, message: m.Conclude) -> Operation:
        view = self._view
        view.notary.check(now_ms, message.ids, message.tokens, message.proofs, view.is_connected)
        self._admission.check_entries("errors", message.errors)
        self._admission.group(message.ids)
        return ConcludeOperation(self._operations, origin, now_ms, message)

    def _evict(self, now_ms: int, origin: Origin, message: m.Evict) -> Operation:
        self._admission.group(message.ids)
        return ConcludeOperation(self._operations, origin, now_ms, m.Conclude(
            message.request, RELEASED, 0, message.ids, message.tokens))

    def _revive(self, now_ms: int, origin: Origin, message: m.Revive) -> Operation:
        self._admission.group(message.ids)
        return ReviveOperation(self._operations, origin, now_ms, message)

    def _record(self, now_ms: int, peer: str, message: m.Grant) -> m.Granted | None:
        return self._ownership.vnode(message.partition).on_grant(now_ms, peer, message)

    def _amend(self, now_ms: int, peer: str, message: m.Amend) -> m.Amended | None:
        return self._ownership.vnode(message.partition).on_amend(now_ms, peer, message)
