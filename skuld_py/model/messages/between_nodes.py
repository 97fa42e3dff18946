"""The messages between nodes, all pages of them, which a client never needs.

To make a class takes about a millisecond, and there are more of these than of the clients'. So the package loads
this page when somebody first asks for one of its names (see its ``__getattr__``): a node as it is imported, a
client never.
"""

from __future__ import annotations

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
from skuld_py.model.messages.counts import Sum, Summed
from skuld_py.model.messages.decisions import DECISION_MESSAGES, Decide, Decided, Undecided
from skuld_py.model.messages.dependencies import Note, Tell, Told, Watch, Watched
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

__all__ = [
    "COORDINATION_MESSAGES",
    "DECISION_MESSAGES",
    "Abdicate",
    "Amend",
    "Amended",
    "AskTime",
    "Borrow",
    "ClaimPage",
    "ClaimsKept",
    "Compare",
    "Compared",
    "Decide",
    "Decided",
    "Delegate",
    "Fetch",
    "FetchReplica",
    "Fetched",
    "Freed",
    "Gossip",
    "Grant",
    "Granted",
    "Invite",
    "JoinMe",
    "Kept",
    "LeaderRow",
    "Lent",
    "NotNow",
    "Note",
    "PartialGossip",
    "Probe",
    "Probed",
    "PullClaims",
    "PushClaims",
    "Reckon",
    "Reckoned",
    "Repair",
    "ReplicaPart",
    "Replicate",
    "RequestVote",
    "Share",
    "Spent",
    "Sum",
    "Summed",
    "Sync",
    "Synced",
    "Tell",
    "Told",
    "ToldTime",
    "Undecided",
    "Vote",
    "Watch",
    "Watched",
    "Welcomed",
]
