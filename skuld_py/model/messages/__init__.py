"""Every message by name, and the table that numbers them on the wire.

Requests are verbs, answers their participles. Work is in columns: a message names many tasks, never one. Clients'
messages are in ``client`` and its neighbours; those between nodes are in a file for each subject, gathered by
``between_nodes``. All code imports them from here.

The table holds names, and not classes, so that a client, which is imported wherever one task is enqueued, makes
the classes it uses and no others: those between nodes are loaded when the first of them is asked for.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from skuld_py.model.messages.client import (
    Acked,
    Append,
    Claim,
    Claimed,
    CohortRow,
    CollectionRow,
    Complete,
    Count,
    Counted,
    CountRow,
    Describe,
    Described,
    Enqueue,
    Failed,
    Get,
    Got,
    Greet,
    Greeted,
    List,
    Listed,
    MemberRow,
    MoveRow,
    NodeRow,
    PartitionRow,
    Renew,
    Renewed,
    TaskRow,
)
from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, ClaimBatch, Message, TaskBatch
from skuld_py.model.messages.outcomes import DELAY_MS_MAX, Cancel, Conclude, Revival, Revive, Revived
from skuld_py.model.messages.reads import (
    ENDS_MAX,
    NOT_ENDED,
    PAGE_ENTRIES_MAX,
    Await,
    Awaited,
    Interest,
    Logged,
    Mend,
    ReadLog,
    Stirred,
)
from skuld_py.model.messages.retention import (
    Collect,
    Collected,
    Discard,
    Discarded,
    Ebb,
    Ebbed,
    Offer,
    Offered,
)
from skuld_py.model.messages.settings import (
    GetSettings,
    GotSettings,
    PulledSettings,
    PullSettings,
    PutSetting,
    SettingPut,
    SettingRow,
)

if TYPE_CHECKING:
    from skuld_py.model.messages.between_nodes import (
        COORDINATION_MESSAGES,
        DECISION_MESSAGES,
        Abdicate,
        Amend,
        Amended,
        AskTime,
        Borrow,
        ClaimPage,
        ClaimsKept,
        Compare,
        Compared,
        Decide,
        Decided,
        Delegate,
        Fetch,
        Fetched,
        FetchReplica,
        Freed,
        Gossip,
        Grant,
        Granted,
        Invite,
        JoinMe,
        Kept,
        LeaderRow,
        Lent,
        Note,
        NotNow,
        PartialGossip,
        Probe,
        Probed,
        PullClaims,
        PushClaims,
        Reckon,
        Reckoned,
        Repair,
        ReplicaPart,
        Replicate,
        RequestVote,
        Share,
        Spent,
        Sum,
        Summed,
        Sync,
        Synced,
        Tell,
        Told,
        ToldTime,
        Undecided,
        Vote,
        Watch,
        Watched,
        Welcomed,
    )

    MESSAGES: tuple[type[Message], ...]

OPERATIONS: tuple[str, ...] = (
    "Greet", "Greeted", "Failed", "Enqueue", "Acked", "Claim", "Claimed", "Renew", "Renewed", "Append",
    "Complete", "Get", "Got", "Count", "Counted", "List", "Listed", "Describe", "Described", "Replicate",
    "Kept", "Delegate", "Grant", "Granted", "Amend", "Amended", "RequestVote", "Vote", "PullClaims",
    "ClaimPage", "PushClaims", "ClaimsKept", "Gossip", "Invite", "Compare", "Compared", "Repair", "Sync",
    "Synced", "Abdicate", "AskTime", "ToldTime", "Probe", "Probed", "Fetch", "Fetched", "Share", "JoinMe",
    "Welcomed", "NotNow", "FetchReplica", "ReplicaPart", "Decide", "Decided", "Undecided", "GetSettings",
    "GotSettings", "PutSetting", "SettingPut", "PullSettings", "PulledSettings", "Conclude", "Cancel", "Revive",
    "Revived", "Mend", "Watch", "Watched", "Tell", "Told", "Note", "Await", "Awaited", "ReadLog", "Logged",
    "Interest", "Stirred", "Ebb", "Ebbed", "Collect", "Collected", "Borrow", "Lent", "Reckon", "Reckoned",
    "Spent", "Freed", "Offer", "Offered", "Discard", "Discarded", "Sum", "Summed", "PartialGossip",
)
"""The operation table: a message's code on the wire is the index of its name here. ``MESSAGES`` is of classes."""


@cache
def message_of(code: int) -> type[Message]:
    """The class of messages with this code."""
    found: type[Message] = globals().get(OPERATIONS[code]) or __getattr__(OPERATIONS[code])
    return found


def __getattr__(name: str) -> Any:
    """A name of ``between_nodes``, which are all loaded with the first; or the whole table."""
    import skuld_py.model.messages.between_nodes as between_nodes

    here = globals()
    here.update((each, getattr(between_nodes, each)) for each in between_nodes.__all__)
    here["MESSAGES"] = tuple(here[each] for each in OPERATIONS)
    if name not in here:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return here[name]


__all__ = [
    "COORDINATION_MESSAGES",
    "DECISION_MESSAGES",
    "DELAY_MS_MAX",
    "DEPENDENCY_MESSAGES",
    "ENDS_MAX",
    "MESSAGES",
    "NOT_ENDED",
    "OPERATIONS",
    "PAGE_ENTRIES_MAX",
    "ROLE_CLIENT",
    "ROLE_NODE",
    "Abdicate",
    "Acked",
    "Amend",
    "Amended",
    "Append",
    "AskTime",
    "Await",
    "Awaited",
    "Borrow",
    "Cancel",
    "Claim",
    "ClaimBatch",
    "ClaimPage",
    "Claimed",
    "ClaimsKept",
    "CohortRow",
    "Collect",
    "Collected",
    "CollectionRow",
    "Compare",
    "Compared",
    "Complete",
    "Conclude",
    "Count",
    "CountRow",
    "Counted",
    "Decide",
    "Decided",
    "Delegate",
    "Describe",
    "Described",
    "Discard",
    "Discarded",
    "Ebb",
    "Ebbed",
    "Enqueue",
    "Failed",
    "Fetch",
    "FetchReplica",
    "Fetched",
    "Freed",
    "Get",
    "GetSettings",
    "Gossip",
    "Got",
    "GotSettings",
    "Grant",
    "Granted",
    "Greet",
    "Greeted",
    "Interest",
    "Invite",
    "JoinMe",
    "Kept",
    "LeaderRow",
    "Lent",
    "List",
    "Listed",
    "Logged",
    "MemberRow",
    "Mend",
    "Message",
    "MoveRow",
    "NodeRow",
    "NotNow",
    "Note",
    "Offer",
    "Offered",
    "PartialGossip",
    "PartitionRow",
    "Probe",
    "Probed",
    "PullClaims",
    "PullSettings",
    "PulledSettings",
    "PushClaims",
    "PutSetting",
    "ReadLog",
    "Reckon",
    "Reckoned",
    "Renew",
    "Renewed",
    "Repair",
    "ReplicaPart",
    "Replicate",
    "RequestVote",
    "Revival",
    "Revive",
    "Revived",
    "SettingPut",
    "SettingRow",
    "Share",
    "Spent",
    "Stirred",
    "Sum",
    "Summed",
    "Sync",
    "Synced",
    "TaskBatch",
    "TaskRow",
    "Tell",
    "Told",
    "ToldTime",
    "Undecided",
    "Vote",
    "Watch",
    "Watched",
    "Welcomed",
    "message_of",
]
