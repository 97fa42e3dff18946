"""What each command reads and writes of the replica, so that an entry need not wait for groups that it ignores.

The replica's fields fall into groups; a footprint names groups. It covers all that a command does: ``apply``,
``reactions`` and ``diff``. What is written is read, too, since a new mapping is made from the old one.

A command that is not named here reads and writes everything, which is always right and always slow. Tests prove
the footprints: they play each entry on replicas whose other groups are those of another replica.
"""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from skuld_py.cluster.log.commands.abort_join import AbortJoin
from skuld_py.cluster.log.commands.accept_join import AcceptJoin
from skuld_py.cluster.log.commands.add_slot import AddSlot
from skuld_py.cluster.log.commands.exhaust_input import ExhaustInput
from skuld_py.cluster.log.commands.forget_node import ForgetNode
from skuld_py.cluster.log.commands.gc import Gc
from skuld_py.cluster.log.commands.join_direct import JoinDirect
from skuld_py.cluster.log.commands.kill_workflow import KillWorkflow
from skuld_py.cluster.log.commands.leave import Leave
from skuld_py.cluster.log.commands.leave_slot import LeaveSlot
from skuld_py.cluster.log.commands.notify_join import NotifyJoin
from skuld_py.cluster.log.commands.prepare_join import PrepareJoin
from skuld_py.cluster.log.commands.retire_node import RetireNode
from skuld_py.cluster.log.commands.seal_output import SealOutput
from skuld_py.cluster.log.commands.set_replicas import SetReplicas
from skuld_py.cluster.log.commands.set_rules import SetRules
from skuld_py.cluster.log.commands.set_sharing import SetSharing
from skuld_py.cluster.log.commands.submit_workflow import SubmitWorkflow

Groups = frozenset[str]

GROUPS: Mapping[str, tuple[str, ...]] = {
    "rules": ("rules",),
    "ring": ("members", "roster", "ring", "joins", "joiners", "aborted"),
    "left": ("left",),
    "nodes": ("nodes",),
    "copies": ("replicas",),
    "slots": ("slots", "parked"),
    "writers": ("writers",),
    "collected": ("collected",),
    "workflows": ("workflows",),
    "sharing": ("sharing",),
}
"""The fields of each group. ``failed`` and ``version`` are the log's own."""

ENVELOPE: Groups = frozenset({"rules", "left", "writers"})
"""What is read of the replica before the command of an entry is looked at."""


@attrs.frozen
class Footprint:
    """Names of groups; ``reads`` includes ``writes``."""

    reads: Groups
    writes: Groups


def footprint(reads: str, writes: str) -> Footprint:
    """A footprint from names separated by blanks; ``reads`` beyond what is written."""
    return Footprint(frozenset(f"{reads} {writes}".split()), frozenset(writes.split()))


FOOTPRINTS: Mapping[str, Footprint] = {
    PrepareJoin.kind: footprint("left", "ring nodes slots"),
    NotifyJoin.kind: footprint("left", "ring"),
    AcceptJoin.kind: footprint("left", "ring nodes slots"),
    AbortJoin.kind: footprint("left", "ring"),
    JoinDirect.kind: footprint("left", "ring nodes slots"),
    Leave.kind: footprint("", "left ring nodes slots writers"),
    AddSlot.kind: footprint("left ring", "slots"),
    LeaveSlot.kind: footprint("", "slots"),
    RetireNode.kind: footprint("copies", "nodes"),
    ForgetNode.kind: footprint("copies", "nodes"),
    SetReplicas.kind: footprint("nodes", "copies"),
    Gc.kind: footprint("", "collected left ring slots workflows writers"),
    SetRules.kind: footprint("", "rules"),
    SubmitWorkflow.kind: footprint("rules", "workflows"),
    KillWorkflow.kind: footprint("", "workflows"),
    ExhaustInput.kind: footprint("", "workflows"),
    SealOutput.kind: footprint("", "workflows"),
    SetSharing.kind: footprint("", "sharing"),
}
"""By kind of command."""
