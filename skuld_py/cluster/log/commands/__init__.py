"""The commands of the coordination log: one module each, with what it changes and what it leads to."""

from __future__ import annotations

from skuld_py.cluster.log.commands.abort_join import AbortJoin
from skuld_py.cluster.log.commands.accept_join import AcceptJoin
from skuld_py.cluster.log.commands.add_slot import AddSlot
from skuld_py.cluster.log.commands.command import Command, Inapplicable, Reaction, Rejoin
from skuld_py.cluster.log.commands.exhaust_input import ExhaustInput
from skuld_py.cluster.log.commands.forget_node import ForgetNode
from skuld_py.cluster.log.commands.gc import Gc
from skuld_py.cluster.log.commands.join_direct import JoinDirect, Joining
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

COMMANDS: dict[str, type[Command]] = {each.kind: each for each in (
    PrepareJoin, NotifyJoin, AcceptJoin, AbortJoin, JoinDirect, Leave, AddSlot, LeaveSlot, RetireNode, ForgetNode,
    Gc, SetRules, SubmitWorkflow, KillWorkflow, ExhaustInput, SealOutput, SetSharing, SetReplicas)}
"""Commands by ``kind``, their name in the log."""

__all__ = ["COMMANDS", "AbortJoin", "AcceptJoin", "AddSlot", "Command", "ExhaustInput", "ForgetNode", "Gc",
           "Inapplicable", "JoinDirect", "Joining", "KillWorkflow", "Leave", "LeaveSlot", "NotifyJoin",
           "PrepareJoin", "Reaction", "Rejoin", "RetireNode", "SealOutput", "SetReplicas", "SetRules",
           "SetSharing", "SubmitWorkflow"]
