"""What the text of the protocol says a client sends, sent to a real node byte by byte; and hostile bytes after it.

The client here is a bare socket and the text: it knows nothing of the library's client. Only the proof of its
claim it takes from the node, for each cluster has a key of its own. The node is one of a cluster of one, so that
numbers that depend on the cluster (copies, ends of leases) differ from the text's; kinds of answers, ids, payloads
and counts do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import attrs
import pytest
import zmq

from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.errors import Malformed
from skuld_py.model import messages as m
from skuld_py.wire.codec import Envelope, decode, encode
from wire import fuzzing
from wire import protocol_text as text
from wire.protocol_text import Example

pytestmark = pytest.mark.cluster

HOSTILE = 3_000
SAME = {m.Greeted: ("cluster", "partitions", "payload_bytes_max"), m.Failed: ("code", "is_definite"),
        m.Got: ("lacking", "cohorts"), m.Counted: ("rows",), m.Listed: ("upto", "ids", "bodies"), m.Acked: (),
        m.Claimed: (), m.Renewed: ("unknown", "cancelled"), m.Revived: ("outcomes",), m.Described: ("session",),
        m.GotSettings: ("rows", "upto"), m.SettingPut: ("missing",), m.Awaited: (), m.Logged: (), m.Reported: (),
        m.Mustered: ("last", "missing"), m.Decreed: ("outcome", "reason"), m.Surveyed: ("last",), m.Followed: (),
        m.Steered: (), m.Recalled: ()}
"""Fields that a cluster of one answers as the text has them."""
OF_CLAIMS = (m.Renew, m.Append, m.Complete, m.Conclude)


class Wire:
    """A bare socket to a node."""

    def __init__(self, address: str) -> None:
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.connect(f"tcp://{address}")

    def send(self, frames: list[bytes]) -> None:
        self._socket.send_multipart(frames)

    def receive(self) -> list[bytes]:
        assert self._socket.poll(10_000), "no answer within ten seconds"
        return self._socket.recv_multipart()

    def close(self) -> None:
        self._context.destroy(linger=0)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    with LocalCluster(tmp_path_factory.mktemp("cluster"), nodes=1, partitions=8, replicas=1, name=text.CLUSTER,
                      skew_ms=2_000, what_is_missing=what_is_missing) as made:
        yield made


@pytest.fixture
def wire(cluster: LocalCluster) -> Iterator[Wire]:
    made = Wire(cluster.addresses[0])
    yield made
    made.close()


def conversation() -> list[tuple[Example, Example]]:
    """Questions and answers of the text, in the order of their numbers."""
    _, sections = text.read(text.FILE.read_text(encoding="utf-8"))
    pairs = [(asked, told) for section in sections
             for asked, told in zip(section.examples, section.examples[1:], strict=False) if asked.who == "C"]
    return sorted(pairs, key=lambda pair: pair[0].message.request)  # type: ignore[attr-defined]


def test_a_node_answers_the_conversation_of_the_text(wire: Wire) -> None:
    told_of = conversation()
    assert len(told_of) >= 11

    proofs = b""
    for asked, told in told_of:
        question = asked.message
        wire.send(encode(attrs.evolve(asked.envelope, messages=(attrs.evolve(question, proofs=proofs),)))
                  if isinstance(question, OF_CLAIMS) else asked.frames)
        envelope = decode(wire.receive())
        answer, expected = envelope.messages[0], told.message
        assert type(answer) is type(expected), (asked.meaning, answer)
        assert envelope.cluster == text.CLUSTER
        same = ("request", *SAME[type(expected)])
        assert [getattr(answer, name) for name in same] == [getattr(expected, name) for name in same], answer
        if isinstance(answer, m.Claimed) and isinstance(expected, m.Claimed):
            proofs, = (batch.proofs for batch in answer.batches)
            assert [batch.ids for batch in answer.batches] == [batch.ids for batch in expected.batches]
            assert [batch.bodies for batch in answer.batches] == [batch.bodies for batch in expected.batches]
        if isinstance(answer, m.Got) and isinstance(expected, m.Got):
            assert [row.body for row in answer.tasks] == [row.body for row in expected.tasks]
            assert [row.entries for row in answer.tasks] == [row.entries for row in expected.tasks]


def ask(wire: Wire, message: m.Message) -> m.Message:
    wire.send(encode(Envelope("", text.CLUSTER, (message,))))
    return decode(wire.receive()).messages[0]


def test_hostile_bytes_change_nothing_and_the_node_goes_on(cluster: LocalCluster, wire: Wire) -> None:
    process, random = cluster.node_process_id(0), Random("a node")
    before = ask(wire, m.Count(1 << 40, ""))
    valid, told, sent = fuzzing.corpus(random), 0, 0
    while sent < HOSTILE:
        frames = fuzzing.SORTS[sent % len(fuzzing.SORTS)](random, random.choice(valid))
        try:
            decode(frames)
            continue  # a message, if an odd one: what it asks for is done
        except Malformed:
            sent += 1
        if frames:
            wire.send(frames)

    wire.send(encode(Envelope("", text.CLUSTER, (m.Count(1 << 40, ""),))))
    while type(answer := decode(wire.receive()).messages[0]) is m.Failed:
        told += answer.code == "malformed"
    assert answer == before
    assert told > 50, "hardly any sender was told"
    assert cluster.node_process_id(0) == process and process is not None


@pytest.mark.parametrize(("frames", "code", "words"), [
    (encode(Envelope("", "mane", (m.Count(9, ""),))), "wrong_cluster", "mane"),
    (encode(Envelope("", text.CLUSTER, (m.AskTime(9),))), "forbidden", "AskTime"),
    ([encode(Envelope("", text.CLUSTER, (m.Count(9, ""),)))[0][:-1] + b"\xa1/"], "malformed", "Count.queue"),
    (encode(Envelope("", text.CLUSTER, (m.Get(9, b""),))), "empty", "ids")])
def test_a_question_that_is_wrong_is_answered_with_its_code(wire: Wire, frames: list[bytes], code: str,
                                                            words: str) -> None:
    wire.send(frames)
    answer = decode(wire.receive()).messages[0]

    assert isinstance(answer, m.Failed)
    assert (answer.request, answer.code, answer.is_definite) == (9, code, True) and words in answer.text
