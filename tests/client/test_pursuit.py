"""The rules of asking, without a socket: scripts of what nodes do, and any script at all."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as some

from skuld_py.client.pursuit import (
    ATTEMPT_S,
    FORGET_S,
    GREETING_S,
    LEAVING_S,
    SILENCE_S,
    Heard,
    Listen,
    Nodes,
    Pause,
    Step,
    Try,
    pursue,
)
from skuld_py.errors import Refused, SkuldError, Uncertain
from skuld_py.model import columns
from skuld_py.model import messages as m

TIMEOUT_S = 5.0
COUNTED = m.Counted(1, b"", b"", ())
DEAF, GONE, CUT = "deaf", "gone", "cut"
Reply = m.Message | str
"""An answer; or a node that takes requests and is silent, or breaks the connection, or none that takes any."""


def failed(code: str, is_definite: bool = True) -> m.Failed:
    return m.Failed(1, code, "words", is_definite)


@attrs.define(slots=False)
class World:
    """Nodes that behave by a script, then as its last line says, in a time of their own."""

    script: Sequence[Reply]
    now: float = 100.0
    answer_s: float = 0.01
    sent: list[tuple[float, str]] = attrs.field(factory=list)
    _line: int = 0

    def take(self, step: Step) -> Heard:
        now = self.script[min(self._line, len(self.script) - 1)]
        if isinstance(step, Try):
            if now == GONE or not step.nodes:
                self._line += now == GONE
                return Heard(self.now)
            self.sent.append((self.now, step.nodes[0]))
            return Heard(self.now, step.nodes[0])
        if isinstance(step, Listen):
            self._line += 1
            if isinstance(now, m.Message):
                self.now += self.answer_s
                return Heard(self.now, answer=now) if self.now <= step.until else Heard(step.until)
            if now == CUT:
                self.now += min(self.answer_s, step.until - self.now)
                return Heard(self.now, is_cut=True)
        self.now = max(self.now, step.until)
        assert isinstance(step, Listen | Pause)
        return Heard(self.now)

    def pursue(self, *, is_idempotent: bool, wait_s: float = 0, nodes: Nodes | None = None,
               timeout_s: float = TIMEOUT_S, is_reading: bool = False, only: str = "") -> m.Message | SkuldError:
        pursuit = pursue(nodes or Nodes(["a", "b", "c"]), self.now, timeout_s, is_idempotent=is_idempotent,
                         wait_s=wait_s, is_reading=is_reading, only=only)
        try:
            step = next(pursuit)
            while True:
                step = pursuit.send(self.take(step))
        except StopIteration as end:
            answer: m.Message = end.value
            return answer
        except SkuldError as error:
            return error


@pytest.mark.parametrize(("script", "is_idempotent", "kind", "code"), [
    ([COUNTED], True, m.Counted, ""),
    ([failed("bad_w")], True, Refused, "bad_w"),
    ([failed("uncertain", False)], False, Uncertain, "uncertain"),
    ([failed("uncertain", False), COUNTED], True, m.Counted, ""),
    ([failed("busy"), failed("busy"), COUNTED], False, m.Counted, ""),
    ([failed("busy")], True, Refused, "busy"),
    ([DEAF], True, Uncertain, "deadline"),
    ([DEAF], False, Uncertain, "deadline"),
    ([DEAF, COUNTED], True, m.Counted, ""),
    ([DEAF, failed("busy")], True, Uncertain, "deadline"),
    ([failed("uncertain", False), failed("busy")], True, Uncertain, "deadline"),
    ([failed("uncertain", False), failed("conflict")], True, Uncertain, "conflict"),
    ([failed("conflict", False)], True, Uncertain, "conflict"),
    ([failed("too_old", False)], True, Uncertain, "too_old"),
    ([GONE], True, Refused, "unreachable"),
    ([GONE, GONE, COUNTED], False, m.Counted, ""),
    ([failed("busy"), GONE], True, Refused, "busy"),
    ([DEAF, GONE], True, Uncertain, "deadline"),
    ([CUT], True, Uncertain, "deadline"),
    ([CUT], False, Uncertain, "disconnected"),
    ([CUT, COUNTED], True, m.Counted, ""),
    ([CUT, failed("bad_w")], True, Uncertain, "bad_w"),
    ([CUT, failed("busy")], True, Uncertain, "deadline"),
    ([failed("busy"), CUT], False, Uncertain, "disconnected"),
])
def test_a_call_ends_in_what_is_known(script: list[Reply], is_idempotent: bool, kind: type, code: str) -> None:
    outcome = World(script).pursue(is_idempotent=is_idempotent)

    assert type(outcome) is kind
    assert getattr(outcome, "code", "") == code


@pytest.mark.parametrize("script", [[DEAF, failed("unavailable")], [failed("unavailable"), DEAF],
                                    [DEAF, failed("unavailable"), DEAF]])
def test_a_read_leaves_nothing_in_doubt(script: list[Reply]) -> None:
    outcome = World(script).pursue(is_idempotent=True, is_reading=True)

    assert isinstance(outcome, Refused) and outcome.code == "unavailable"


@pytest.mark.parametrize("wait_s", [0.0, 1.0, 3.0, 30.0])
def test_what_was_refused_is_not_asked_again_too_late_for_an_answer(wait_s: float) -> None:
    """As a claim is that no leader grants: it is refused at the end of each wait."""
    world = World([failed("no_leader")], answer_s=wait_s or 0.01)
    outcome = world.pursue(is_idempotent=False, wait_s=wait_s)

    assert isinstance(outcome, Refused) and outcome.code == "no_leader"
    assert len(world.sent) > (wait_s < TIMEOUT_S)


def test_what_is_not_idempotent_is_sent_once_when_nobody_answers() -> None:
    world = World([DEAF])
    world.pursue(is_idempotent=False)

    assert len(world.sent) == 1


def test_nor_when_the_wait_ends_a_moment_early_as_event_loops_let_it() -> None:
    pursuit = pursue(Nodes(["a", "b"]), 100.0, TIMEOUT_S, is_idempotent=False)
    next(pursuit)
    listening = pursuit.send(Heard(100.0, "a"))
    assert listening == Listen(100 + TIMEOUT_S)

    with pytest.raises(Uncertain):
        pursuit.send(Heard(100 + TIMEOUT_S - 0.001))


@pytest.mark.parametrize("script", [[DEAF], [GONE, COUNTED], [failed("busy"), COUNTED], [CUT, COUNTED]])
def test_where_only_one_node_will_do_no_other_is_asked(script: list[Reply]) -> None:
    world = World(script)
    outcome = world.pursue(is_idempotent=False, is_reading=True, only="b")

    assert {name for _, name in world.sent} == {"b"}
    if script == [DEAF]:
        assert isinstance(outcome, Uncertain) and "no answer from b before" in outcome.message
        assert len(world.sent) == 1, "it was sent once"
    else:
        assert outcome == COUNTED


def test_another_node_is_asked_when_one_is_silent() -> None:
    world = World([DEAF, COUNTED])
    world.pursue(is_idempotent=True)

    (first_at, first), (second_at, second) = world.sent
    assert first != second
    assert ATTEMPT_S <= second_at - first_at < ATTEMPT_S + 0.1


@pytest.mark.parametrize(("reply", "pauses_s"), [
    (DEAF, [1.5, 3.0, 6.0, 12.0]),
    (failed("busy"), [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 1.6, 1.6]),
    (failed("no_leader"), [0.05, 0.1, 0.2, 0.2, 0.2]),
])
def test_it_is_asked_ever_more_seldom(reply: Reply, pauses_s: list[float]) -> None:
    world = World([reply] * (len(pauses_s) + 1) + [COUNTED])
    world.pursue(is_idempotent=True, wait_s=0, timeout_s=60.0)

    moments = [moment for moment, _ in world.sent]
    assert [after - before for before, after in itertools.pairwise(moments)][: len(pauses_s)] == [
        pytest.approx(pause_s, abs=0.02) for pause_s in pauses_s]


def test_a_silent_node_is_passed_over_for_a_while() -> None:
    nodes, world = Nodes(["a", "b"]), World([DEAF, COUNTED])
    for _ in range(6):
        world.pursue(is_idempotent=True, nodes=nodes)
    deaf = world.sent[0][1]
    assert [node for _, node in world.sent].count(deaf) == 1

    world.now += SILENCE_S
    for _ in range(2):
        world.pursue(is_idempotent=True, nodes=nodes)
    assert [node for _, node in world.sent].count(deaf) == 2


@pytest.mark.parametrize("code", ["conflict", "too_old"])
def test_what_no_question_changes_is_asked_once_however_much_it_leaves_in_doubt(code: str) -> None:
    world = World([failed(code, False)])
    world.pursue(is_idempotent=True)

    assert len(world.sent) == 1


def test_it_never_asks_twice_in_one_moment_while_nodes_are_gone() -> None:
    world = World([failed("busy"), GONE])
    moments: list[float] = []
    take = world.take

    def count(step: Step) -> Heard:
        if isinstance(step, Try):
            moments.append(world.now)
        return take(step)
    world.take = count  # type: ignore[method-assign]
    world.pursue(is_idempotent=False, wait_s=30)

    assert world.now == pytest.approx(100 + TIMEOUT_S + 30)
    assert len(moments) == len(set(moments))


def test_an_answer_may_take_the_wait_besides_the_timeout() -> None:
    world = World([DEAF])
    world.pursue(is_idempotent=False, wait_s=30)

    assert world.now == pytest.approx(100 + TIMEOUT_S + 30)


replies = some.sampled_from([COUNTED, failed("bad_w"), failed("busy"), failed("uncertain", False),
                             failed("conflict", False), DEAF, GONE, CUT])


@given(some.lists(replies, min_size=1, max_size=8), some.booleans(), some.sampled_from([0.0, 2.0]))
def test_whatever_nodes_do_it_ends_in_time_and_refuses_only_what_did_not_happen(
        script: list[Reply], is_idempotent: bool, wait_s: float) -> None:
    world = World(script)

    outcome = world.pursue(is_idempotent=is_idempotent, wait_s=wait_s)

    assert world.now <= 100 + TIMEOUT_S + wait_s + 0.1
    heard = [line for line in script if line != GONE][: len(world.sent)]
    heard += [script[-1]] * (len(world.sent) - len(heard))
    doubts = [line for line in heard
              if line in (DEAF, CUT) or (isinstance(line, m.Failed) and not line.is_definite)]
    if isinstance(outcome, Refused):
        assert not doubts
    if not is_idempotent:
        assert len(doubts) <= 1


def test_members_come_and_go_and_those_that_were_given_stay() -> None:
    nodes = Nodes(["a", "b"])
    assert nodes.is_greeting_due(100.0) and not nodes.is_greeting_due(100.0 + GREETING_S / 2)
    nodes.learn(["b", "c"], 100.0)
    assert nodes.names == ["a", "b", "c"] and not nodes.is_greeting_due(100.0)
    nodes.learn(["b", "d"], 100.0 + FORGET_S / 2)
    assert nodes.names == ["a", "b", "c", "d"]
    nodes.learn(["d"], 100.0 + FORGET_S)
    assert nodes.names == ["a", "b", "d"]
    assert nodes.is_greeting_due(100.0 + FORGET_S + GREETING_S)


@pytest.mark.parametrize(("steps", "kind"), [
    ([Heard(100.0, is_closed=True)], Refused),
    ([Heard(100.0, "a"), Heard(100.1, is_closed=True)], Uncertain),
    ([Heard(100.0, "a"), Heard(102.0), Heard(102.1, is_closed=True)], Uncertain),
    ([Heard(100.0, "a"), Heard(100.1, answer=failed("busy")), Heard(100.2), Heard(100.2, is_closed=True)],
     Refused),
], ids=["unsent", "sent", "in doubt", "refused before"])
def test_what_a_closed_client_says_of_a_call_is_what_is_known(steps: list[Heard], kind: type) -> None:
    pursuit = pursue(Nodes(["a", "b"]), 100.0, TIMEOUT_S, is_idempotent=True)
    next(pursuit)
    with pytest.raises(kind) as raised:
        for step in steps:
            pursuit.send(step)
    assert raised.value.code == "closed"


def test_who_granted_claims_is_asked_first_for_them_unless_it_was_silent() -> None:
    nodes, ids = Nodes(["a", "b", "c"]), bytes(range(20)) + bytes(range(1, 21))
    batch = m.ClaimBatch(ids, 7 << 32, 99, columns.pack([b"", b""]))
    pursuit = pursue(nodes, 100.0, TIMEOUT_S, is_idempotent=False)
    next(pursuit)
    pursuit.send(Heard(100.0, "b"))
    with pytest.raises(StopIteration):
        pursuit.send(Heard(100.1, "b", m.Claimed(1, 0, (batch,))))

    named = m.Complete(2, 0, 0, ids, columns.pack_u64([7 << 32, 8 << 32]), proofs=bytes(16))
    assert nodes.first_for(named) == "b"
    assert nodes.first_for(m.Complete(2, 0, 0, ids[20:], columns.pack_u64([8 << 32]), proofs=bytes(8))) == ""
    assert nodes.first_for(m.Greet(3)) == ""
    assert {nodes.in_turn(100.2, "b")[0] for _ in range(9)} == {"b"}
    assert {nodes.in_turn(100.2)[0] for _ in range(9)} == {"a", "b", "c"}
    nodes.note_silence("b", 100.2)
    assert {nodes.in_turn(100.3, "b")[-1] for _ in range(9)} == {"b"}


def test_a_report_goes_to_the_node_that_took_the_one_before() -> None:
    nodes, report = Nodes(["a", "b", "c"]), m.Report(1, 30_000, ())
    assert nodes.first_for(report) == ""
    pursuit = pursue(nodes, 100.0, TIMEOUT_S, is_idempotent=True)
    next(pursuit)
    pursuit.send(Heard(100.0, "b"))
    with pytest.raises(StopIteration):
        pursuit.send(Heard(100.1, "b", m.Reported(1)))

    assert nodes.first_for(report) == "b" and nodes.first_for(m.Greet(3)) == ""


def test_who_granted_claims_and_is_busy_is_not_asked_again_before_the_others() -> None:
    pursuit = pursue(Nodes(["a", "b", "c"]), 100.0, TIMEOUT_S, is_idempotent=True, first="b")
    asked: list[str] = []
    step = next(pursuit)
    now = 100.0
    while len(asked) < 3:
        assert isinstance(step, Try)
        asked.append(step.nodes[0])
        pursuit.send(Heard(now, step.nodes[0]))
        step = pursuit.send(Heard(now, step.nodes[0], m.Failed(1, "busy", "behind", True)))
        assert isinstance(step, Pause)
        now = step.until
        step = pursuit.send(Heard(now))

    assert asked[0] == "b" and {*asked} == {"a", "b", "c"}


def test_a_node_that_said_farewell_is_sent_nothing_until_it_may_be_back() -> None:
    nodes = Nodes(["a", "b", "c"])
    nodes.note_farewell("b", 100.0)

    assert {nodes.in_turn(100.1) for _ in range(9)} == {("a", "c"), ("c", "a")}
    assert nodes.in_turn(100.1, "b") in (("a", "c"), ("c", "a"))
    nodes.note_farewell("a", 100.1)
    nodes.note_farewell("c", 100.1)
    assert nodes.in_turn(100.2) == ()
    assert {*nodes.in_turn(100.1 + LEAVING_S)} == {"a", "b", "c"}
    nodes.learn(["a"], 100.1 + LEAVING_S)
    assert not nodes._leaving_until


def test_where_all_nodes_leave_it_is_asked_when_one_may_be_back() -> None:
    nodes, world = Nodes(["a"]), World([COUNTED])
    nodes.note_farewell("a", world.now)

    assert world.pursue(is_idempotent=False, nodes=nodes) == COUNTED
    assert [moment for moment, _ in world.sent] == [pytest.approx(100 + LEAVING_S, abs=0.1)]


class Unconnected(World):
    """Notes how long nodes are given."""

    def take(self, step: Step) -> Heard:
        if isinstance(step, Pause):
            self.pauses = [*vars(self).get("pauses", ()), step.until - self.now]
        return super().take(step)


def test_a_connection_that_is_just_made_is_tried_soon_and_one_that_takes_long_more_seldom() -> None:
    world = Unconnected([GONE] * 6 + [COUNTED])
    assert world.pursue(is_idempotent=True) == COUNTED
    assert world.pauses == [pytest.approx(pause_s) for pause_s in (0.005, 0.01, 0.02, 0.04, 0.05, 0.05)]


def test_what_is_idempotent_is_asked_elsewhere_at_once_when_its_connection_breaks() -> None:
    world = World([CUT, COUNTED])
    assert world.pursue(is_idempotent=True) == COUNTED

    (first_at, first), (second_at, second) = world.sent
    assert first != second and second_at - first_at < 0.1


def test_it_is_asked_ever_more_seldom_when_connections_break_again_and_again() -> None:
    world = World([CUT] * 8 + [COUNTED])
    world.pursue(is_idempotent=True, timeout_s=60.0)

    moments = [moment for moment, _ in world.sent]
    assert [after - before for before, after in itertools.pairwise(moments)] == [
        pytest.approx(pause_s, abs=0.02) for pause_s in (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 1.6, 1.6)]


def test_what_is_not_idempotent_is_in_doubt_at_once_when_its_connection_breaks() -> None:
    world = World([CUT, COUNTED])
    outcome = world.pursue(is_idempotent=False, wait_s=30)

    assert isinstance(outcome, Uncertain) and outcome.code == "disconnected"
    assert len(world.sent) == 1 and world.now - 100 < 0.1


def test_a_read_whose_connection_breaks_is_asked_elsewhere_and_leaves_nothing_in_doubt() -> None:
    world = World([CUT, failed("bad_queue")])
    outcome = world.pursue(is_idempotent=True, is_reading=True)

    assert isinstance(outcome, Refused) and outcome.code == "bad_queue"
