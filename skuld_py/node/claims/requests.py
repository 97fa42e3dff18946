"""What holders and claimers ask for: claims, renewals, ends and revivals. Whichever node is asked finds the
leader, who grants and judges, and has its cohort record it."""

from __future__ import annotations

from skuld_py.errors import Refused
from skuld_py.model import messages as m
from skuld_py.model.history import RELEASED
from skuld_py.node.claims.ask_leaders import ConcludeOperation, RenewOperation, ReviveOperation
from skuld_py.node.claims.claim import ClaimOperation, lead_claim
from skuld_py.node.claims.verdicts import lead_conclusion, lead_renewal, lead_revival
from skuld_py.node.operations.admission import Admission
from skuld_py.node.operations.household import Household
from skuld_py.node.operations.operation import Operation, Origin
from skuld_py.node.operations.ownership import Ownership
from skuld_py.node.operations.requests import Asked, Served, led


class ClaimRequests:
    """Those of one node."""

    def __init__(self, node: Household, admission: Admission) -> None:
        self._node = node
        self._admission = admission
        self._ownership = Ownership(node)
        self.asked: Asked = {m.Claim: self._claim, m.Renew: self._renew, m.Conclude: self._conclude,
                             m.Revive: self._revive}
        self.served: Served = {
            m.Delegate: led(node, lead_claim), m.Renew: led(node, lead_renewal),
            m.Conclude: led(node, lead_conclusion), m.Revive: led(node, lead_revival),
            m.Grant: self._record, m.Amend: self._amend,
        }

    def _claim(self, now_ms: int, origin: Origin, message: m.Claim) -> Operation:
        if self._node.notary.demands(now_ms) and not message.takes_proofs:
            raise Refused("old_client", "claim: this client keeps no proofs of claims, without which nobody may"
                          " complete them here; upgrade it to the release of the nodes")
        return ClaimOperation(self._node, origin, now_ms, message)

    def _renew(self, now_ms: int, origin: Origin, message: m.Renew) -> Operation:
        self._node.notary.check(now_ms, message.ids, message.tokens, message.proofs)
        self._admission.group(message.ids)
        return RenewOperation(self._node, origin, now_ms, message)

    def _conclude(self, now_ms: int, origin: Origin, message: m.Conclude) -> Operation:
        self._node.notary.check(now_ms, message.ids, message.tokens, message.proofs)
        self._admission.check_entries("errors", message.errors)
        self._admission.group(message.ids)
        return ConcludeOperation(self._node, origin, now_ms, message)

    def _revive(self, now_ms: int, origin: Origin, message: m.Revive) -> Operation:
        self._admission.group(message.ids)
        return ReviveOperation(self._node, origin, now_ms, message)

    def release(self, now_ms: int, task_ids: bytes, tokens: bytes) -> None:
        """Release claims that nobody waits for; nobody is answered."""
        release = m.Conclude(0, RELEASED, 0, task_ids, tokens)
        self._node.start(ConcludeOperation(self._node, Origin(0), now_ms, release), now_ms)

    def _record(self, now_ms: int, peer: str, message: m.Grant) -> m.Granted | None:
        return self._ownership.vnode(message.partition).on_grant(now_ms, peer, message)

    def _amend(self, now_ms: int, peer: str, message: m.Amend) -> m.Amended | None:
        return self._ownership.vnode(message.partition).on_amend(now_ms, peer, message)
