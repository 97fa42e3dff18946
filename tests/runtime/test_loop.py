"""The loop around scripted machines: the order of a batch, what it hears, and what it turns away."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import attrs
import msgpack
import pytest
import zmq
from hypothesis import given
from hypothesis import strategies as st

from skuld_py.cluster.scale.decisions import ask_placement, computed
from skuld_py.config import DEFAULT_LIMITS, PROTOCOL_VERSION, PROTOCOLS, RULES
from skuld_py.errors import Refused
from skuld_py.keys.pair import Pair
from skuld_py.model.columns import pack
from skuld_py.model.coordination import Announce, Append, OriginRead, PulseStands
from skuld_py.model.document import Member
from skuld_py.model.events import (
    Answer,
    Asked,
    Compute,
    MembersChanged,
    NodesChanged,
    ReadDocument,
    Received,
    RulesChanged,
    Send,
    Session,
    SessionChanged,
    Settled,
    Ticked,
    Withheld,
)
from skuld_py.model.messages import (
    MESSAGES,
    Acked,
    Claim,
    ClaimBatch,
    Claimed,
    Failed,
    Get,
    Gossip,
    Greet,
    Invite,
    Kept,
    Message,
)
from skuld_py.model.messages.decisions import DECLINED, Undecided
from skuld_py.model.messages.membership import NotNow
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster
from skuld_py.node.process import Told, Wish
from skuld_py.runtime.clock import Clock
from skuld_py.runtime.door import Arrival
from skuld_py.runtime.keyring import Keyring
from skuld_py.runtime.loop import ACQUAINTANCES_MAX, Loop
from skuld_py.runtime.transport import Transport
from skuld_py.wire.codec import Envelope, decode, encode

pytestmark = pytest.mark.usefixtures("memory_of_a_node")

CLUSTER = "test"
PEER = Member("bert", "127.0.0.1", 7002, "boot")


class Script:
    """A machine that answers each event by a rule, and remembers them."""

    def __init__(self, rule: Callable[[Told], list[Wish]] = lambda event: []) -> None:
        self.rule = rule
        self.events: list[Told] = []
        self.due_ms: int | None = None

    def step(self, now_ms: int, event: Told) -> list[Wish]:
        self.events.append(event)
        if isinstance(event, Ticked):
            self.due_ms = None
        return self.rule(event)

    def deadline(self) -> int | None:
        return self.due_ms


class World:
    """Transport, store and registry in one, writing down in which order they were used."""

    cluster = CLUSTER
    limits = DEFAULT_LIMITS

    def __init__(self) -> None:
        self.arrived: list[tuple[bytes, list[bytes]]] = []
        self.done: list[tuple[Any, ...]] = []
        self.peers: dict[str, tuple[str, int]] = {}
        self.marked: dict[bytes, str] = {}
        self.spoken: dict[bytes, int] = {}
        self.keys = ""
        self.protocol = PROTOCOLS[0]
        self.commit_problem: Exception | None = None

    def receive(self, limit: int) -> list[Arrival]:
        taken, self.arrived = self.arrived[:limit], self.arrived[limit:]
        return [Arrival(*each, self.keys) for each in taken]

    def send(self, peer: str, messages: Sequence[Message]) -> None:
        self.done.append(("send", peer, *messages))

    def answer(self, client: bytes, messages: Sequence[Message]) -> None:
        self.done.append(("answer", client, *messages))

    def bid_farewell(self) -> None:
        if self.done[-1:] != [("farewell",)]:
            self.done.append(("farewell",))

    def mark_peer(self, client: bytes, name: str) -> None:
        self.marked[client] = name

    def note_protocol(self, client: bytes, protocol: int) -> None:
        self.spoken[client] = protocol

    def commit(self) -> None:
        self.done.append(("commit",))
        if self.commit_problem is not None:
            raise self.commit_problem

    def perform(self, effect: Wish) -> None:
        self.done.append(("perform", effect))

    def set_peers(self, peers: dict[str, tuple[str, int]]) -> None:
        self.peers = peers

    def wake(self) -> None:
        pass

    def wait(self, timeout_ms: int | None) -> None:
        pass


def make(script: Script) -> tuple[World, Loop]:
    world: Any = World()
    return world, Loop(script, world, world, world, Clock())


def announce(loop: Loop, *news: MembersChanged | NodesChanged | RulesChanged | SessionChanged) -> None:
    """What the machine says when it has read the log."""
    loop._heed([Announce(event) for event in news])


def heard(*arrived: list[bytes] | Envelope) -> tuple[Script, World, Loop]:
    """A loop after one batch with these frames, and what came of it."""
    script = Script()
    world, loop = make(script)
    announce(loop, NodesChanged((PEER.name,)))
    loop.post(SessionChanged(Session.CONNECTED))
    world.arrived = [(b"origin", each if isinstance(each, list) else encode(each)) for each in arrived]
    loop.turn()
    script.events = [event for event in script.events if isinstance(event, Asked | Received)]
    return script, world, loop


# -- the order of a batch ---------------------------------------------------------------------------


def test_promises_leave_after_the_commit_and_each_addressee_gets_one_envelope() -> None:
    gossip, kept, acked = Gossip((), ()), Kept(1, b""), Acked(1, 2)

    def rule(event: Told) -> list[Wish]:
        if isinstance(event, Settled):
            return [Send("anna", Invite(9))]
        return [Send("anna", gossip), Send("bert", kept), Answer(b"c", acked), Send("anna", kept),
                Send("bert", gossip), ReadDocument(1), Answer(b"d", acked), Send("anna", gossip)]

    world, loop = make(Script(rule))
    loop.post(SessionChanged(Session.CONNECTED))
    loop.turn()

    commit = world.done.index(("commit",))
    assert world.done[:commit] == [("send", "anna", gossip, gossip, Invite(9)), ("send", "bert", gossip)]
    assert sorted(world.done[commit + 1:], key=repr) == sorted([
        ("send", "bert", kept), ("send", "anna", kept), ("perform", ReadDocument(1)),
        ("answer", b"c", acked), ("answer", b"d", acked)], key=repr)


def test_after_a_failed_commit_no_promise_leaves(caplog: pytest.LogCaptureFixture) -> None:
    world, loop = make(Script(lambda event: [Answer(b"c", Acked(1, 1)), Send("bert", Kept(1, b""))]))
    world.commit_problem = OSError("disk")
    loop.post(SessionChanged(Session.CONNECTED))
    with pytest.raises(OSError, match="disk"):
        loop.run()
    assert world.done == [("commit",)]
    assert "disk" in caplog.text


def test_an_error_of_the_machine_ends_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Told) -> list[Wish]:
        raise ZeroDivisionError("planted")

    world, loop = make(Script(fail))
    loop.post(SessionChanged(Session.CONNECTED))
    with pytest.raises(ZeroDivisionError):
        loop.run()
    assert world.done == []
    assert "planted" in caplog.text


def test_an_error_of_another_thread_ends_the_loop(caplog: pytest.LogCaptureFixture) -> None:
    world, loop = make(Script())
    loop.post(SessionChanged(Session.CONNECTED))
    loop.fail(ZeroDivisionError("planted"))
    with pytest.raises(ZeroDivisionError):
        loop.run()
    assert world.done == []
    assert "planted" in caplog.text


def test_what_cannot_be_computed_ends_the_loop() -> None:
    asked = Compute("no-such-kind", b"hash", b"text")
    script = Script(lambda event: [asked] if isinstance(event, SessionChanged) else [])
    _, loop = make(script)
    loop.post(SessionChanged(Session.CONNECTED))
    with pytest.raises(KeyError):
        loop.run()


def test_all_registry_news_come_before_a_bounded_number_of_frames() -> None:
    script = Script()
    world, loop = make(script)
    world.arrived = [(b"c", encode(Envelope("", CLUSTER, (Greet(number),)))) for number in range(300)]
    news: list[Told] = [SessionChanged(Session.CONNECTED), PulseStands("a"), OriginRead(-1, "")]
    for event in news:
        loop.post(event)
    loop.turn()
    assert script.events[:3] == news
    assert len(script.events) == 3 + 256 + 1
    loop.turn()
    assert len(script.events) == 3 + 256 + 1 + 44 + 1
    assert loop.counters.batches == 2


def test_a_batch_of_nothing_is_no_batch() -> None:
    script = Script()
    world, loop = make(script)
    loop.turn()
    assert (script.events, world.done) == ([], [])


def test_members_become_peers() -> None:
    world, loop = make(Script())
    announce(loop, MembersChanged((PEER,)))
    assert world.peers == {"bert": ("127.0.0.1", 7002)}


def test_peers_are_dialled_before_anything_is_sent_to_them() -> None:
    def rule(event: Told) -> list[Wish]:
        if not isinstance(event, SessionChanged):
            return []
        return [Send("bert", Gossip((), ())), Send("bert", Kept(1, b"")), Announce(MembersChanged((PEER,)))]

    world, loop = make(Script(rule))
    dial, dialled = world.set_peers, []
    world.set_peers = lambda peers: (dialled.append(len(world.done)), dial(peers))
    loop.post(SessionChanged(Session.CONNECTED))
    loop.turn()
    assert dialled == [0]


def test_what_is_wished_of_the_log_is_done_after_the_commit() -> None:
    world, loop = make(Script(lambda event: [Append(0, b"x")] if isinstance(event, SessionChanged) else []))
    loop.post(SessionChanged(Session.CONNECTED))
    loop.turn()
    assert world.done == [("commit",), ("perform", Append(0, b"x"))]


def test_it_says_when_it_is_a_member() -> None:
    joined: list[int] = []
    world: Any = World()
    loop = Loop(Script(), world, world, world, Clock(), lambda: joined.append(1))
    announce(loop, SessionChanged(Session.SUSPENDED), MembersChanged((PEER,)))
    assert joined == []
    announce(loop, SessionChanged(Session.CONNECTED))
    assert joined == [1]


def test_a_stranger_is_heard_about_the_log_and_answered_at_the_address_that_is_its_name() -> None:
    question = NotNow("id", "joiner~1", "busy")

    def rule(event: Told) -> list[Wish]:
        return [Send(event.peer, question)] if isinstance(event, Received) else []

    script = Script(rule)
    world, loop = make(script)
    announce(loop, MembersChanged((PEER,)))
    names = [f"127.0.0.1:{port}" for port in range(1, ACQUAINTANCES_MAX + 3)]
    for name in [*names, "nowhere", "h:x"]:
        world.arrived.append((b"o", encode(Envelope(name, CLUSTER, (question, Invite(0))))))
    loop.turn()

    assert [event for event in script.events if isinstance(event, Received)] == [
        Received(name, question) for name in [*names, "nowhere", "h:x"]]
    assert loop.counters.strangers == len(names) + 2
    assert world.peers == {"bert": ("127.0.0.1", 7002)} | {
        name: ("127.0.0.1", port) for port, name in enumerate(names[2:], 3)}


def test_a_scheduler_which_is_no_member_is_heard_about_decisions_and_keeps_as_many_as_it_may() -> None:
    question = Undecided(bytes(16), DECLINED)
    script = Script(lambda event: [Send(event.peer, question)] if isinstance(event, Received) else [])
    world: Any = World()
    loop = Loop(script, world, world, world, Clock(), acquaintances_max=2)
    for port in (1, 2, 3):
        world.arrived.append((b"o", encode(Envelope(f"127.0.0.1:{port}", CLUSTER, (question,)))))
    loop.turn()

    assert len([event for event in script.events if isinstance(event, Received)]) == 3
    assert world.peers == {f"127.0.0.1:{port}": ("127.0.0.1", port) for port in (2, 3)}


def test_nobody_is_heard_under_the_node_s_own_name() -> None:
    script = Script()
    world: Any = World()
    loop = Loop(script, world, world, world, Clock(), me="anna")
    announce(loop, MembersChanged((PEER, Member("anna", "127.0.0.1", 7001, "boot"))),
             NodesChanged(("anna", "bert")))
    question = NotNow("id", "joiner~1", "busy")
    for name in ("anna", "bert"):
        world.arrived.append((b"o", encode(Envelope(name, CLUSTER, (question, Invite(0))))))
    loop.turn()

    assert [event for event in script.events if isinstance(event, Received)] == [
        Received("bert", question), Received("bert", Invite(0))]
    assert loop.counters.own_name == 1


def test_the_last_wishes_are_carried_out_until_done_or_time_is_over() -> None:
    script = Script()
    world, loop = make(script)
    loop.stop()
    looks = iter([False, False, True])
    loop.finish([Append(0, b"leave")], lambda: next(looks), 60_000)
    assert world.done == [("commit",), ("perform", Append(0, b"leave")), ("farewell",)]
    loop.finish([], lambda: False, 20)


def test_a_node_that_stops_answers_what_comes_after_its_farewell() -> None:
    acked = Acked(1, 1)
    world, loop = make(Script(lambda event: [Answer(event.client, acked)] if isinstance(event, Asked) else []))
    receive = world.receive

    def late(limit: int) -> list[Arrival]:
        if world.done[-1:] == [("farewell",)] and len(world.done) < 5:
            world.arrived = [(b"late", encode(Envelope("", CLUSTER, (Get(1, b""),))))]
        return receive(limit)
    world.receive = late  # type: ignore[method-assign]
    loop.finish([], lambda: True, 60_000)

    assert world.done == [("commit",), ("farewell",), ("commit",), ("answer", b"late", acked), ("farewell",)]


# -- what is heard ----------------------------------------------------------------------------------


def test_clients_ask_and_peers_are_received() -> None:
    script, world, _ = heard(Envelope("", CLUSTER, (Greet(1), Get(2, b""))),
                             Envelope("bert", CLUSTER, (Kept(3, b""), Invite(0))))
    assert script.events == [Asked(b"origin", Greet(1)), Asked(b"origin", Get(2, b"")),
                             Received("bert", Kept(3, b"")), Received("bert", Invite(0))]
    assert world.done == [("commit",)]


def test_a_peer_is_heard_once_it_is_known_as_live_or_as_registered() -> None:
    for news in (MembersChanged((PEER,)), NodesChanged((PEER.name,))):
        script = Script()
        world, loop = make(script)
        announce(loop, news)
        world.arrived = [(b"o", encode(Envelope("bert", CLUSTER, (Invite(0),))))]
        loop.turn()
        assert Received("bert", Invite(0)) in script.events


def test_the_connection_of_a_node_is_told_from_those_of_clients() -> None:
    world, loop = make(Script())
    announce(loop, NodesChanged(frozenset({"bert"}), frozenset()))
    for origin, sender in ((b"1", "bert"), (b"2", "carl"), (b"3", "")):
        world.arrived.append((origin, encode(Envelope(sender, CLUSTER, (Greet(1),)))))
    loop.turn()

    assert world.marked == {b"1": "bert"}


def test_a_stranger_is_not_heard() -> None:
    script, world, loop = heard(Envelope("mallory", CLUSTER, (Invite(0),)))
    assert script.events == []
    assert world.done == [("commit",)]
    assert loop.counters.strangers == 1


def test_a_client_of_another_cluster_is_told_both_names_and_a_node_nothing() -> None:
    script, world, loop = heard(Envelope("", "other", (Greet(4), Get(5, b""))),
                                Envelope("bert", "other", (Invite(0),)), Envelope("bert", "", (Invite(0),)))
    assert script.events == []
    failures = [message for call in world.done if call[0] == "answer" for message in call[2:]]
    assert [(failed.request, failed.code, failed.is_definite) for failed in failures] == [
        (4, "wrong_cluster", True), (5, "wrong_cluster", True)]
    assert "other" in failures[0].text
    assert CLUSTER in failures[0].text
    assert loop.counters.wrong_cluster == 3


def test_a_client_may_greet_before_it_knows_the_cluster_but_do_nothing_else() -> None:
    script, world, _ = heard(Envelope("", "", (Greet(1),)), Envelope("", "", (Get(2, b""),)))
    assert script.events == [Asked(b"origin", Greet(1))]
    assert [call[2].code for call in world.done if call[0] == "answer"] == ["wrong_cluster"]


def test_nobody_may_send_what_is_not_for_his_role() -> None:
    claim = Claim(7, "queue", 1, 1_000, 0, "holder")
    script, world, loop = heard(Envelope("", CLUSTER, (Invite(0), Greet(1))),
                                Envelope("bert", CLUSTER, (claim, Invite(0))))
    assert script.events == [Asked(b"origin", Greet(1)), Received("bert", Invite(0))]
    assert [call[2].code for call in world.done if call[0] == "answer"] == ["forbidden"]
    assert loop.counters.wrong_role == 2


def test_a_malformed_request_is_answered_and_other_garbage_is_counted() -> None:
    greet, kept = (MESSAGES.index(of) for of in (Greet, Kept))

    def header(*message: object) -> list[bytes]:
        return [msgpack.packb([PROTOCOL_VERSION, CLUSTER, "", [message]])]

    script, world, loop = heard(header(greet, 9, "one too many"), header(kept, 9, "no bytes"), [b"\xc1"], [],
                                [b""] * 5_000, header(greet, -1))
    assert script.events == []
    answers = [call for call in world.done if call[0] == "answer"]
    assert [(client, failed.request, failed.code) for _, client, failed in answers] == [
        (b"origin", 9, "malformed")]
    assert loop.counters.malformed == 6


@given(st.lists(st.lists(st.binary(max_size=40) | st.just(encode(Envelope("", CLUSTER, (Greet(1),)))[0]),
                         max_size=4), max_size=4))
def test_no_frames_whatsoever_stop_the_loop(batch: list[list[bytes]]) -> None:
    _, world, loop = heard(*batch)
    assert ("commit",) in world.done
    assert loop.counters.malformed <= len(batch)


def test_a_client_is_answered_in_the_protocol_that_it_speaks() -> None:
    for protocol in PROTOCOLS:
        script, world, _ = heard(Envelope("", CLUSTER, (Greet(1),), protocol))
        assert script.events == [Asked(b"origin", Greet(1))]
        assert world.spoken == {b"origin": protocol}


def test_who_speaks_no_protocol_of_ours_is_told_so() -> None:
    script, world, loop = heard([msgpack.packb([PROTOCOL_VERSION + 1, {"new": 1}])])
    assert script.events == []
    told = [call[2] for call in world.done if call[0] == "answer"]
    assert [(failed.request, failed.code) for failed in told] == [(0, "unknown_protocol")]
    assert "upgrade the older of the two" in told[0].text
    assert (loop.counters.unknown_protocol, loop.counters.malformed) == (1, 0)


def test_peers_are_written_to_in_what_all_members_understand() -> None:
    world, loop = make(Script())
    announce(loop, RulesChanged(RULES))
    assert world.protocol == PROTOCOL_VERSION
    announce(loop, RulesChanged(2))
    assert world.protocol == PROTOCOLS[0]


# -- keys -------------------------------------------------------------------------------------------


ANNA = KeyRow("a" * 40, "anna", (NODE_ROLE,))


def keyed(*rows: KeyRow) -> tuple[Script, World, Loop, Keyring]:
    """A loop that knows these keys."""
    script, world = Script(), World()
    keyring = Keyring(Pair("", ""), Pair(ANNA.key, ""), Roster((ANNA, *rows)))
    anyone: Any = world
    loop = Loop(script, anyone, anyone, anyone, Clock(), me="anna", keyring=keyring)
    announce(loop, NodesChanged((PEER.name, "dora")))
    return script, world, loop, keyring


BERT, CARL = KeyRow("b" * 40, PEER.name, (NODE_ROLE,)), KeyRow("c" * 40, PEER.name, ("reader",))


@pytest.mark.parametrize(("key", "sender", "is_heard"), [
    (BERT.key, PEER.name, True), (BERT.key, "dora", False), (CARL.key, PEER.name, False),
    ("x" * 40, PEER.name, False), ("", PEER.name, False)])
def test_a_node_is_heard_under_the_name_of_its_key_alone(key: str, sender: str, is_heard: bool) -> None:
    script, world, loop, _ = keyed(BERT, CARL)
    world.keys = key
    world.arrived = [(b"o", encode(Envelope(sender, CLUSTER, (Invite(0),))))]
    loop.turn()
    heard = [event for event in script.events if not isinstance(event, Settled)]
    assert heard == ([Received(sender, Invite(0))] if is_heard else [])
    assert loop.counters.forged == (0 if is_heard else 1)


def test_a_key_is_looked_up_with_every_message() -> None:
    script, world, loop, keyring = keyed(CARL)
    world.keys = CARL.key
    get, claim = Get(1, b""), Claim(2, "queue", 1, 1_000, 0, "holder")
    world.arrived = [(b"o", encode(Envelope("", CLUSTER, (get, claim))))]
    loop.turn()
    keyring.put(keyring.roster.revoking(CARL.key))
    world.arrived = [(b"o", encode(Envelope("", CLUSTER, (attrs.evolve(get, request=3),))))]
    loop.turn()
    assert [event for event in script.events if not isinstance(event, Settled)] == [Asked(b"o", get)]
    refused = [(call[2].request, call[2].code) for call in world.done if call[0] == "answer"]
    assert refused == [(2, "denied"), (3, "denied")]
    assert loop.counters.denied == 2


def test_a_new_roster_is_dialled_by() -> None:
    _, world, loop, keyring = keyed()
    announce(loop, MembersChanged((PEER,)))
    world.peers = {}
    keyring.on_change = loop.dial_anew
    keyring.put(Roster((ANNA, BERT)))
    loop.turn()
    assert world.peers == {PEER.name: (PEER.host, PEER.port)}
    world.peers = {}
    keyring.put(Roster((ANNA, BERT)))
    loop.turn()
    assert world.peers == {}, "it is the same roster"


def test_a_node_whose_key_is_revoked_ends_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    _, world, loop, keyring = keyed(BERT)
    keyring.mine = ANNA
    keyring.on_change = loop.dial_anew
    keyring.put(Roster((BERT,)))
    loop.turn()  # its row is gone and not revoked: it is about to be put back
    keyring.put(keyring.roster.revoking(ANNA.key))
    vars(world)["wait"] = lambda timeout_ms: loop.stop()

    with pytest.raises(Refused, match="of anna is revoked; remove node"):
        loop.run()
    assert "the node ends: key aaaa" in caplog.text and "Traceback" not in caplog.text


WAITER = KeyRow("w" * 40, "wanda", ("worker",))
WAITING = Claim(2, "queue", 1, 1_000, 60_000, "holder")


@pytest.mark.parametrize("change", [
    lambda roster: roster.revoking(WAITER.key),
    lambda roster: Roster((ANNA, attrs.evolve(WAITER, until_ms=1))),
    lambda roster: Roster((ANNA, attrs.evolve(WAITER, roles=("reader",)))),
    lambda roster: Roster((ANNA, attrs.evolve(WAITER, queues=("other",))))])
def test_a_claim_that_waits_is_worth_nothing_once_its_key_may_not_make_it(
        change: Callable[[Roster], Roster]) -> None:
    """A revoked key went on to be given tasks for as long as its last claim waited, up to a day."""
    script, world, loop, keyring = keyed(WAITER)
    world.keys = WAITER.key
    world.arrived = [(b"o", encode(Envelope("", CLUSTER, (WAITING,))))]
    loop.turn()
    keyring.put(change(keyring.roster))
    granted = Claimed(2, 0, (ClaimBatch(b"i" * 20, 7, 9, pack([b"secret"])),))
    script.rule = lambda event: [Answer(b"o", granted)] if event == RulesChanged(RULES) else []
    loop.post(RulesChanged(RULES))
    loop.turn()
    loop.turn()

    (refused,) = [call[2] for call in world.done if call[0] == "answer"]
    assert (refused.request, refused.code, refused.is_definite) == (2, "denied", True)
    assert [event for event in script.events if isinstance(event, Withheld)] == [Withheld(granted)]


def test_a_claim_that_waits_is_answered_while_its_key_counts() -> None:
    script, world, loop, _ = keyed(WAITER)
    world.keys = WAITER.key
    world.arrived = [(b"o", encode(Envelope("", CLUSTER, (WAITING,))))]
    loop.turn()
    granted = Claimed(2, 0, (ClaimBatch(b"i" * 20, 7, 9, pack([b"secret"])),))
    script.rule = lambda event: [Answer(b"o", granted)] if event == RulesChanged(RULES) else []
    loop.post(RulesChanged(RULES))
    loop.turn()

    assert [call[2] for call in world.done if call[0] == "answer"] == [granted]
    assert loop._askers is not None and not len(loop._askers), "an answered claim is remembered no more"


# -- running ----------------------------------------------------------------------------------------


@pytest.fixture
def transport() -> Iterator[Transport]:
    opened = Transport("anna", CLUSTER, "127.0.0.1", 0)
    yield opened
    opened.close()


def test_it_runs_until_stopped_and_wakes_for_frames_news_and_deadlines(transport: Transport) -> None:
    ticked, told = threading.Event(), threading.Event()

    def rule(event: Told) -> list[Wish]:
        if isinstance(event, Ticked):
            ticked.set()
        elif isinstance(event, SessionChanged):
            told.set()
        elif isinstance(event, Asked):
            script.due_ms = Clock().now_ms() + 20
            return [Answer(event.client, Acked(1, 1))]
        return []

    script = Script(rule)
    world: Any = World()
    loop = Loop(script, world, transport, world, Clock())
    thread = threading.Thread(target=loop.run)
    thread.start()
    try:
        with zmq.Context() as context, context.socket(zmq.DEALER) as client:
            client.setsockopt(zmq.LINGER, 0)
            client.setsockopt(zmq.RCVTIMEO, 10_000)
            client.connect(f"tcp://127.0.0.1:{transport.port}")
            client.send_multipart(encode(Envelope("", CLUSTER, (Greet(1),))))
            assert decode(client.recv_multipart()) == Envelope("anna", CLUSTER, (Acked(1, 1),))
        assert ticked.wait(60)
        loop.post(SessionChanged(Session.LOST))
        assert told.wait(60)
    finally:
        loop.stop()
        thread.join(10)
    assert not thread.is_alive()


def test_a_failure_is_said_in_words_that_fit_a_message() -> None:
    """The codes of the loop's own refusals survive the wire."""
    _, world, _ = heard(Envelope("", "o" * 200, (Greet(4),)))
    failed = next(call[2] for call in world.done if call[0] == "answer")
    assert isinstance(failed, Failed)
    assert decode(encode(Envelope("anna", CLUSTER, (failed,)))).messages == (failed,)


def test_what_the_machine_wants_computed_comes_back_as_an_event() -> None:
    question = ask_placement(("a", "b", "c"), 8, 3)
    asked = Compute(question.kind, question.hash, question.text)
    script = Script()
    script.rule = lambda event: [asked] if isinstance(event, SessionChanged) else []
    world, loop = make(script)
    has_come = threading.Event()
    world.wake = has_come.set  # type: ignore[method-assign]
    loop.post(SessionChanged(Session.CONNECTED))
    has_come.clear()
    loop.turn()
    assert has_come.wait(60)
    loop.turn()

    assert computed(asked) in script.events
    assert not any(done[0] == "perform" for done in world.done)
