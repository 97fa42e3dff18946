"""One table of all messages: which may leave before the commit of the turn that made them, and which must not.

A message that rests on what is only staged, and leaves, tells of what a crash forgets. So every class has a row
here with its reason; a new one fails until somebody has thought about it.
"""

from __future__ import annotations

import pytest

from skuld_py.model.events import Answer, Compute, Effect, ReadDocument, Send, SwapDocument
from skuld_py.model.messages import MESSAGES
from skuld_py.model.messages.message import Message
from skuld_py.node.turn import Turn, sort

QUESTION = "asks, and rests on nothing that the asker has stored"
DATA = "data on its way: the sender counts its own copy only with the answers, after its commit"
HINT = "a hint: who acts on it asks again, or does what is harmless when it is wrong"
LOG = "tells of the coordination log, which ZooKeeper keeps, and of nothing that this node stores"
DURABLE = "says that something is stored, or counted: fsynced first"
PROMISED = "goes by an epoch that the sender has promised in the same turn"
READ = "shows what is stored: nobody shall see what a crash takes back"
ANSWER = "tells a client, or on behalf of one, what has become of its request"
CLIENT = "a client's alone: a node that passed it on would do so as a promise"

EARLY = {
    **dict.fromkeys(("Renew", "Append", "Complete", "Conclude", "Cancel", "Revive", "PutSetting", "Discard"),
                    "a request passed on: who carries it out answers for it"),
    **dict.fromkeys(("Get", "Count", "List", "GetSettings", "Offer", "Delegate", "Watch", "Borrow", "Reckon",
                     "AskTime", "Sum", "Probe", "Compare", "Fetch", "Interest", "PullSettings",
                     "Decide", "Muster"), QUESTION),
    **dict.fromkeys(("Replicate", "Mend", "Note", "Repair", "PulledSettings"), DATA),
    **dict.fromkeys(("Gossip", "PartialGossip", "Invite", "Freed", "Mustered"), HINT),
    **dict.fromkeys(("Share", "JoinMe", "Welcomed", "NotNow", "FetchReplica", "ReplicaPart", "Decided",
                     "Undecided"), LOG),
    **dict.fromkeys(("Grant", "Amend"), "the leader counts its own record only with the answers, which come later;"
                    " one that crashes in between leads no more"),
    **dict.fromkeys(("Ebb", "Collect"), "a leader asks, whose epoch the receivers check; it counts itself later"),
    "Sync": "names the voters whose votes and pages the candidate was sent: they have stored them",
    "Lent": "a loan lives in memory, on both sides, and ends by the clock",
    "Spent": "a loan lives in memory; what was granted of it and is lost in a crash holds less, not more",
    "ToldTime": "a clock shows what it shows",
}
LATE = {
    **dict.fromkeys(("Kept", "Granted", "Amended", "ClaimsKept", "Synced", "Ebbed", "Collected", "Told", "Tell",
                     "Watched", "Discarded", "Reckoned"), DURABLE),
    **dict.fromkeys(("RequestVote", "Vote", "PullClaims", "PushClaims", "Abdicate"), PROMISED),
    **dict.fromkeys(("ClaimPage", "Got", "Logged", "Summed", "Counted", "Listed", "Offered", "GotSettings",
                     "Probed", "Compared", "Fetched", "Stirred"), READ),
    **dict.fromkeys(("Greeted", "Failed", "Acked", "Claimed", "Renewed", "Described", "Awaited", "Revived",
                     "SettingPut", "Reported"), ANSWER),
    **dict.fromkeys(("Decreed", "Surveyed", "Followed", "Steered", "Recalled"), ANSWER),
    **dict.fromkeys(("Greet", "Enqueue", "Claim", "Describe", "Await", "ReadLog", "Report", "Submit", "Kill",
                     "Advance", "Survey", "Follow", "Steer", "Retire", "Recall", "Evict"), CLIENT),
}


def leaves_early(effect: Effect) -> bool:
    """By the very function that the real loop and the simulator share."""
    turn: Turn[Effect] = Turn([], [])
    sort([effect], turn)
    return bool(turn.early)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_leaves_when_its_row_says(kind: type[Message]) -> None:
    name = kind.__name__
    assert (name in EARLY) != (name in LATE), f"{name} needs a row: may it leave before the commit, and why?"

    assert leaves_early(Send("n2", object.__new__(kind))) == (name in EARLY)


def test_no_row_outlives_its_message_and_no_message_is_without_a_number() -> None:
    def below(kind: type[Message]) -> set[str]:
        return {kind.__name__}.union(*(below(each) for each in kind.__subclasses__()))
    numbered = {kind.__name__ for kind in MESSAGES}

    assert EARLY.keys() | LATE.keys() == numbered
    assert {name for each in Message.__subclasses__() if each.__module__.startswith("skuld_py.")
            for name in below(each)} <= numbered


@pytest.mark.parametrize("kind", [Answer, ReadDocument, SwapDocument, Compute])
def test_what_goes_to_clients_and_to_the_registry_waits_for_the_commit(kind: type[Effect]) -> None:
    assert not leaves_early(object.__new__(kind))
