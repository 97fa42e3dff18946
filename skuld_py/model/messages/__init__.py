"""Every message by name, and the table that numbers them on the wire.

Requests are verbs, answers their participles. Work is in columns: a message names many tasks, never one. Each
subject has a page of its own; all code imports messages from here.

To make a class takes about a millisecond, and there are a hundred and fifty. So a page is loaded when the first of
its names is asked for, and the tables hold names, not classes: a client, which is imported wherever one task is
enqueued, makes the classes that it uses and no others.

Rejected: pages that are all imported, which took a third of the time in which a client is.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skuld_py.model.messages.claims import Amend, Amended, Delegate, Grant, Granted
    from skuld_py.model.messages.clocks import AskTime, ToldTime
    from skuld_py.model.messages.copies import (
        Compare,
        Compared,
        Fetch,
        Fetched,
        Invite,
        Kept,
        Probe,
        Probed,
        Repair,
        Replicate,
    )
    from skuld_py.model.messages.counts import Count, Counted, CountRow, Sum, Summed
    from skuld_py.model.messages.decisions import DECISION_MESSAGES, Decide, Decided, Undecided
    from skuld_py.model.messages.dependencies import Note, Tell, Told, Watch, Watched
    from skuld_py.model.messages.descriptions import (
        CollectionRow,
        Describe,
        Described,
        HeldRow,
        MoveRow,
        NodeRow,
        PartitionRow,
        StarvedRow,
    )
    from skuld_py.model.messages.elections import (
        Abdicate,
        ClaimPage,
        ClaimsKept,
        Gossip,
        LeaderRow,
        PartialGossip,
        PullClaims,
        PushClaims,
        RequestVote,
        Sync,
        Synced,
        Vote,
    )
    from skuld_py.model.messages.enqueues import Acked, Enqueue
    from skuld_py.model.messages.greetings import Failed, Greet, Greeted, MemberRow
    from skuld_py.model.messages.leases import Append, Claim, Claimed, Complete, Renew, Renewed
    from skuld_py.model.messages.limits import Borrow, Freed, Lent, Reckon, Reckoned, Spent
    from skuld_py.model.messages.membership import (
        COORDINATION_MESSAGES,
        FetchReplica,
        JoinMe,
        NotNow,
        ReplicaPart,
        Share,
        Welcomed,
    )
    from skuld_py.model.messages.message import ROLE_CLIENT, ROLE_NODE, ClaimBatch, Message, TaskBatch
    from skuld_py.model.messages.operating import (
        FrozenRow,
        Recall,
        Recalled,
        RefusalRow,
        Retire,
        RevisionRow,
        Steer,
        Steered,
    )
    from skuld_py.model.messages.outcomes import DELAY_MS_MAX, Cancel, Conclude, Evict, Revival, Revive, Revived
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
        SETTING_BYTES_MAX,
        GetSettings,
        GotSettings,
        PulledSettings,
        PullSettings,
        PutSetting,
        SettingPut,
        SettingRow,
    )
    from skuld_py.model.messages.tasks import ENTRIES_MAX, CohortRow, Get, Got, List, Listed, TaskRow
    from skuld_py.model.messages.workers import (
        MISSING_MAX,
        WORKERS_IN_PAGE,
        BatchRow,
        Muster,
        Mustered,
        Report,
        Reported,
        SeatRow,
        WorkerRow,
    )
    from skuld_py.model.messages.workflows import (
        ENTRIES_IN_PAGE,
        WORKFLOWS_ASKED_MAX,
        WORKFLOWS_IN_PAGE,
        Advance,
        ChangeRow,
        Decreed,
        EntryRow,
        Follow,
        Followed,
        Kill,
        StepSpec,
        Submit,
        Survey,
        Surveyed,
        WorkflowRow,
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
    "Report", "Reported", "Muster", "Mustered", "Submit", "Kill", "Advance", "Decreed", "Survey", "Surveyed",
    "Follow", "Followed", "Steer", "Steered", "Evict", "Recall", "Recalled", "Retire",
)
"""The operation table: a message's code on the wire is the index of its name here. ``MESSAGES`` is of classes."""

_PAGES: dict[str, tuple[str, ...]] = {
    "claims": ("Amend", "Amended", "Delegate", "Grant", "Granted"),
    "clocks": ("AskTime", "ToldTime"),
    "copies": ("Compare", "Compared", "Fetch", "Fetched", "Invite", "Kept", "Probe", "Probed", "Repair",
               "Replicate"),
    "counts": ("Count", "CountRow", "Counted", "Sum", "Summed"),
    "decisions": ("DECISION_MESSAGES", "Decide", "Decided", "Undecided"),
    "dependencies": ("Note", "Tell", "Told", "Watch", "Watched"),
    "descriptions": ("CollectionRow", "Describe", "Described", "HeldRow", "MoveRow", "NodeRow", "PartitionRow",
                     "StarvedRow"),
    "elections": ("Abdicate", "ClaimPage", "ClaimsKept", "Gossip", "LeaderRow", "PartialGossip", "PullClaims",
                  "PushClaims", "RequestVote", "Sync", "Synced", "Vote"),
    "enqueues": ("Acked", "Enqueue"),
    "greetings": ("Failed", "Greet", "Greeted", "MemberRow"),
    "leases": ("Append", "Claim", "Claimed", "Complete", "Renew", "Renewed"),
    "limits": ("Borrow", "Freed", "Lent", "Reckon", "Reckoned", "Spent"),
    "membership": ("COORDINATION_MESSAGES", "FetchReplica", "JoinMe", "NotNow", "ReplicaPart", "Share",
                   "Welcomed"),
    "message": ("ROLE_CLIENT", "ROLE_NODE", "ClaimBatch", "Message", "TaskBatch"),
    "operating": ("FrozenRow", "Recall", "Recalled", "RefusalRow", "Retire", "RevisionRow", "Steer", "Steered"),
    "outcomes": ("DELAY_MS_MAX", "Cancel", "Conclude", "Evict", "Revival", "Revive", "Revived"),
    "reads": ("ENDS_MAX", "NOT_ENDED", "PAGE_ENTRIES_MAX", "Await", "Awaited", "Interest", "Logged", "Mend",
              "ReadLog", "Stirred"),
    "retention": ("Collect", "Collected", "Discard", "Discarded", "Ebb", "Ebbed", "Offer", "Offered"),
    "settings": ("SETTING_BYTES_MAX", "GetSettings", "GotSettings", "PullSettings", "PulledSettings", "PutSetting",
                 "SettingPut", "SettingRow"),
    "tasks": ("ENTRIES_MAX", "CohortRow", "Get", "Got", "List", "Listed", "TaskRow"),
    "workers": ("MISSING_MAX", "WORKERS_IN_PAGE", "BatchRow", "Muster", "Mustered", "Report", "Reported",
                "SeatRow", "WorkerRow"),
    "workflows": ("ENTRIES_IN_PAGE", "WORKFLOWS_ASKED_MAX", "WORKFLOWS_IN_PAGE", "Advance", "ChangeRow",
                  "Decreed", "EntryRow", "Follow", "Followed", "Kill", "StepSpec", "Submit", "Survey", "Surveyed",
                  "WorkflowRow"),
}
_PAGE_OF = {name: page for page, names in _PAGES.items() for name in names}


@cache
def message_of(code: int) -> type[Message]:
    """The class of messages with this code."""
    found: type[Message] = globals().get(OPERATIONS[code]) or __getattr__(OPERATIONS[code])
    return found


def __getattr__(name: str) -> Any:
    """A name that was not asked for before: its page is loaded, and all its names are here from now on."""
    here = globals()
    if name == "MESSAGES":
        here[name] = tuple(message_of(code) for code in range(len(OPERATIONS)))
    elif name in _PAGE_OF:
        page = import_module(f"{__name__}.{_PAGE_OF[name]}")
        here.update((each, getattr(page, each)) for each in _PAGES[_PAGE_OF[name]])
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return here[name]


__all__ = [
    "COORDINATION_MESSAGES",
    "DECISION_MESSAGES",
    "DELAY_MS_MAX",
    "ENDS_MAX",
    "ENTRIES_IN_PAGE",
    "ENTRIES_MAX",
    "MESSAGES",
    "MISSING_MAX",
    "NOT_ENDED",
    "OPERATIONS",
    "PAGE_ENTRIES_MAX",
    "ROLE_CLIENT",
    "ROLE_NODE",
    "SETTING_BYTES_MAX",
    "WORKERS_IN_PAGE",
    "WORKFLOWS_ASKED_MAX",
    "WORKFLOWS_IN_PAGE",
    "Abdicate",
    "Acked",
    "Advance",
    "Amend",
    "Amended",
    "Append",
    "AskTime",
    "Await",
    "Awaited",
    "BatchRow",
    "Borrow",
    "Cancel",
    "ChangeRow",
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
    "Decreed",
    "Delegate",
    "Describe",
    "Described",
    "Discard",
    "Discarded",
    "Ebb",
    "Ebbed",
    "Enqueue",
    "Evict",
    "EntryRow",
    "Failed",
    "Fetch",
    "FetchReplica",
    "Fetched",
    "Follow",
    "Followed",
    "Freed",
    "FrozenRow",
    "Get",
    "GetSettings",
    "Gossip",
    "Got",
    "GotSettings",
    "Grant",
    "Granted",
    "Greet",
    "Greeted",
    "HeldRow",
    "Interest",
    "Invite",
    "JoinMe",
    "Kept",
    "Kill",
    "LeaderRow",
    "Lent",
    "List",
    "Listed",
    "Logged",
    "MemberRow",
    "Mend",
    "Message",
    "MoveRow",
    "Muster",
    "Mustered",
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
    "Recall",
    "Recalled",
    "Reckon",
    "Reckoned",
    "Renew",
    "Renewed",
    "Repair",
    "ReplicaPart",
    "Replicate",
    "Report",
    "Reported",
    "RefusalRow",
    "RequestVote",
    "Retire",
    "Revival",
    "Revive",
    "Revived",
    "RevisionRow",
    "SeatRow",
    "SettingPut",
    "SettingRow",
    "Share",
    "Spent",
    "StarvedRow",
    "Steer",
    "Steered",
    "StepSpec",
    "Stirred",
    "Submit",
    "Sum",
    "Summed",
    "Survey",
    "Surveyed",
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
    "WorkerRow",
    "WorkflowRow",
    "message_of",
]
