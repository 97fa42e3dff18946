"""Direct join: what a member does for joiners, how a joiner goes from one to the next; and nobody is missed."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import attrs
import pytest

from cluster.test_playing import Log
from skuld_py.cluster.log.commands import JoinDirect, Joining, Leave, PrepareJoin
from skuld_py.cluster.log.play import Outcome
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.watched import watched
from skuld_py.cluster.scale.direct_join import Greeter, Knocking
from skuld_py.config.scaling import Scaling
from skuld_py.model.document import Member
from skuld_py.model.events import Send
from skuld_py.model.messages.membership import JoinMe, NotNow, Welcomed

OPTIONS = Scaling(direct_join=True, gather_ms=10, knock_ms=2_000, knock_pause_ms=200, knocks=5)
FAR_MS = 1_000_000


def join_me(joiner: str, cluster_id: str = "c1") -> JoinMe:
    return JoinMe(cluster_id, joiner, f"node-{joiner}", "127.0.0.1", 1, "boot", "data")


def ask(greeter: Greeter, replica: Replica, *joiners: str, now_ms: int = 0) -> list[Send]:
    return [send for joiner in joiners
            for send in greeter.on_join_me(now_ms, f"node-{joiner}", join_me(joiner), replica)]


def log_of(*names: str) -> Log:
    log = Log()
    for name in names:
        log.join(name)
    return log


def refusals(sends: list[Send]) -> list[str]:
    return [send.message.reason for send in sends if isinstance(send.message, NotNow)]


# -- the member's side -----------------------------------------------------------------------------


def test_who_asks_within_a_short_while_comes_in_by_one_entry() -> None:
    log, greeter = log_of("a", "b"), Greeter("a", "c1", OPTIONS)

    assert ask(greeter, log.replica, "x", "y", "x", "z") == []
    assert greeter.deadline() == 10
    assert greeter.propose(9, log.replica) is None
    entry = greeter.propose(10, log.replica)
    assert entry is not None
    assert (entry.observer, entry.before, [each.id for each in entry.joiners]) == ("a", "b", ["x", "y", "z"])
    log.write("a", entry)

    assert greeter.on_played(20, log.replica) == [
        Send(f"node-{name}", Welcomed("c1", name, log.replica.version)) for name in "xyz"]
    assert list(log.replica.ring.walk()) == ["a", "x", "y", "z", "b"]
    assert log.replica.members["x"] == Member("node-x", "127.0.0.1", 1, "boot", "data")
    assert greeter.deadline() is None


def test_a_question_of_who_is_in_is_answered_at_once_and_writes_nothing() -> None:
    log, greeter = log_of("a", "b"), Greeter("a", "c1", OPTIONS)
    message = attrs.evolve(join_me("b"), name="b")

    assert greeter.on_join_me(0, "b", message, log.replica) == [
        Send("b", Welcomed("c1", "b", log.replica.version))]
    assert greeter.deadline() is None


def test_one_entry_at_a_time_is_on_the_way_and_who_comes_meanwhile_is_in_the_next() -> None:
    log, greeter = log_of("a"), Greeter("a", "c1", OPTIONS)
    ask(greeter, log.replica, "x")
    first = greeter.propose(10, log.replica)
    assert first is not None
    ask(greeter, log.replica, "y", "x", now_ms=11)
    assert greeter.propose(FAR_MS, log.replica) is None
    log.write("a", first)
    greeter.on_played(12, log.replica)

    second = greeter.propose(12, log.replica)
    assert second is not None
    assert [each.id for each in second.joiners] == ["y"]


def test_an_entry_that_came_too_late_is_written_again_with_whom_the_member_watches_now() -> None:
    log, greeter = log_of("a", "b", "c"), Greeter("a", "c1", OPTIONS)
    watched_first = log.replica.ring.after("a")
    ask(greeter, log.replica, "x")
    entry = greeter.propose(10, log.replica)
    assert entry is not None
    log.write("a", Leave(watched_first))
    assert log.write("a", entry).outcome is Outcome.UNCHANGED

    assert greeter.on_played(20, log.replica) == []
    again = greeter.propose(20, log.replica)
    assert again is not None
    assert again.before != watched_first
    assert log.write("a", again).outcome is Outcome.APPLIED


def test_who_has_asked_somebody_else_or_not_for_long_is_not_written() -> None:
    log, greeter = log_of("a", "b"), Greeter("a", "c1", OPTIONS)
    ask(greeter, log.replica, "x", "y", "z")
    log.write("b", JoinDirect("b", log.replica.ring.after("b"), ()))
    log.join("x")
    log.write("y", Leave("y"))

    assert greeter.propose(1_999, log.replica) is not None
    late = Greeter("a", "c1", OPTIONS)
    ask(late, log.replica, "z")
    assert late.propose(2_000, log.replica) is None


def test_an_entry_whose_joiners_have_not_asked_for_long_or_are_in_is_not_wanted() -> None:
    log, greeter = log_of("a", "b"), Greeter("a", "c1", OPTIONS)
    ask(greeter, log.replica, "x", "y")
    assert greeter.propose(10, log.replica) is not None
    assert greeter.is_wanted(1_999, log.replica) and not greeter.is_wanted(2_000, log.replica)
    ask(greeter, log.replica, "x", now_ms=1_000)
    assert not greeter.is_wanted(2_000, log.replica)
    ask(greeter, log.replica, "y", now_ms=1_000)
    assert greeter.is_wanted(2_000, log.replica)
    log.join("x")

    assert not greeter.is_wanted(2_000, log.replica)


def test_who_was_left_out_goes_before_who_asked_later() -> None:
    log, greeter = log_of("a", "b"), Greeter("a", "c1", OPTIONS)
    ask(greeter, log.replica, "x", "y")
    assert greeter.propose(10, log.replica) is not None
    ask(greeter, log.replica, "z", now_ms=11)
    greeter.on_played(12, log.replica)
    again = greeter.propose(12, log.replica)

    assert again is not None and [each.id for each in again.joiners] == ["x", "y", "z"]


def test_a_former_life_of_a_node_that_is_in_is_neither_heard_nor_written() -> None:
    log, greeter = log_of("a", "b"), Greeter("a", "c1", OPTIONS)
    n = Member("n", "127.0.0.1", 1, "boot")
    former, newer = (JoinMe("c1", life, "n", n.host, n.port, n.boot, "") for life in ("n~1", "n~2"))
    assert greeter.on_join_me(0, "n", former, log.replica) == []
    log.write("b", JoinDirect("b", log.replica.ring.after("b"), (Joining("n~2", n),)))

    assert greeter.propose(10, log.replica) is None
    assert refusals(greeter.on_join_me(11, "n", former, log.replica)) == ["left"]
    assert isinstance(greeter.on_join_me(11, "n", newer, log.replica)[0].message, Welcomed)


def test_joiners_of_one_entry_are_bounded_and_so_are_those_who_wait() -> None:
    log = log_of("a")
    greeter = Greeter("a", "c1", attrs.evolve(OPTIONS, greet_joiners=2, greet_waiting=5))

    assert refusals(ask(greeter, log.replica, *"stuvwxy")) == ["busy", "busy"]
    assert refusals(ask(greeter, log.replica, "s")) == []
    entry = greeter.propose(10, log.replica)
    assert entry is not None
    assert [each.id for each in entry.joiners] == ["s", "t"]


def test_what_cannot_be_is_refused_at_once() -> None:
    log, greeter = log_of("a"), Greeter("a", "c1", OPTIONS)
    log.write("p", PrepareJoin("p", Member("p", "127.0.0.1", 1, "boot")))
    log.write("a", Leave("q"))

    assert refusals(ask(greeter, log.replica, "p", "q")) == ["joining", "left"]
    assert refusals(ask(Greeter("stranger", "c1", OPTIONS), log.replica, "x")) == ["no-member"]


@pytest.mark.parametrize("message", [join_me("x", cluster_id="c0"), join_me("y")])
def test_who_belongs_to_another_cluster_or_speaks_for_another_is_not_heard(message: JoinMe) -> None:
    log, greeter = log_of("a"), Greeter("a", "c1", OPTIONS)

    assert greeter.on_join_me(0, "node-x", message, log.replica) == []
    assert greeter.propose(FAR_MS, log.replica) is None


# -- the joiner's side -----------------------------------------------------------------------------


def knocking() -> Knocking:
    return Knocking("c1", join_me("x"), OPTIONS, lambda most: most, 0)


def test_a_joiner_that_nobody_answers_asks_others_ever_more_slowly_and_gives_up() -> None:
    joiner, now_ms, asked = knocking(), 0, []
    while (due := joiner.deadline()) is not None and not joiner.is_given_up:
        assert now_ms <= due < FAR_MS
        now_ms = due
        asked += [(now_ms, send.peer) for send in joiner.knock(now_ms, ["a", "b", "c"])
                  if not asked or send.peer != asked[-1][1]]

    assert joiner.is_given_up
    assert len(asked) == OPTIONS.knocks
    pauses = [later[0] - earlier[0] - OPTIONS.knock_ms for earlier, later in pairwise(asked)]
    assert pauses == [201, 401, 801, 1_601]


def test_who_does_not_answer_is_asked_again_ever_more_seldom_before_somebody_else_is() -> None:
    joiner, asked = knocking(), []
    for now_ms in range(OPTIONS.knock_ms + 1):
        asked += [(now_ms, send.peer) for send in joiner.knock(now_ms, ["a", "b", "c"])]

    assert [now_ms for now_ms, _ in asked] == [0, 100, 300, 700, 1_500]
    assert len({peer for _, peer in asked}) == 1


def test_a_refusal_is_the_end_of_one_question_only() -> None:
    joiner = knocking()
    (question,) = joiner.knock(0, ["a", "b"])
    joiner.on_not_now(1, "somebody", NotNow("c1", "x", "busy"))
    joiner.on_not_now(1, question.peer, NotNow("c1", "other", "busy"))
    assert joiner.deadline() == OPTIONS.knock_again_ms
    joiner.on_not_now(1, question.peer, NotNow("c1", "x", "busy"))
    joiner.on_not_now(1, question.peer, NotNow("c1", "x", "busy"))

    assert joiner.deadline() == 1 + 201
    assert [send.peer for send in joiner.knock(202, ["a", "b"])] != [question.peer]


def test_a_welcome_ends_the_asking_whoever_gives_it() -> None:
    joiner = knocking()
    joiner.knock(0, ["a"])
    joiner.on_welcomed("b", Welcomed("c1", "other", 7))
    joiner.on_welcomed("b", Welcomed("c0", "x", 7))
    assert joiner.welcome is None
    joiner.on_welcomed("b", Welcomed("c1", "x", 8))

    assert joiner.welcome == ("b", 8)
    assert joiner.deadline() is None


def test_who_knows_nobody_gives_up_as_well() -> None:
    joiner = knocking()
    while (due := joiner.deadline()) is not None and due < FAR_MS:
        assert joiner.knock(due, []) == []

    assert joiner.is_given_up


# -- all together ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_dead_joiners_and_greeters_are_all_reported_by_whoever_watches_them(seed: int) -> None:
    random, log = Random(seed), log_of("a", "b", "c")
    alive = ["a", "b", "c"]
    for batch in range(4):
        greeter_id = random.choice(alive)
        greeter = Greeter(greeter_id, "c1", OPTIONS)
        joiners = [f"j{batch}{index}" for index in range(random.randint(1, 6))]
        ask(greeter, log.replica, *joiners)
        entry = greeter.propose(10, log.replica)
        assert entry is not None
        log.write(greeter_id, entry)
        alive += joiners
        dying = random.sample(alive, random.randint(0, len(alive) - 1))
        alive = [name for name in alive if name not in dying]
        while reports := [(watcher, name) for watcher in alive for name in watched(log.replica, watcher)
                          if name not in alive]:
            watcher, name = random.choice(reports)
            log.write(watcher, Leave(name))

        assert sorted(log.replica.members) == sorted(alive)
        assert sorted(log.replica.ring.walk()) == (sorted(alive) if len(alive) > 1 else [])


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_lost_or_said_twice_all_come_in_once(seed: int) -> None:
    random, log = Random(seed), log_of("a", "b", "c")
    greeters = {name: Greeter(name, "c1", OPTIONS) for name in "abc"}
    joiners = {name: Knocking("c1", attrs.evolve(join_me(name), name=name), attrs.evolve(OPTIONS, knocks=40),
                              lambda most: random.randint(0, most), 0) for name in "uvwxyz"}
    entries: dict[str, JoinDirect] = {}
    for now_ms in range(0, 120_000, 20):
        sends = [(name, send) for name, joiner in joiners.items() for send in joiner.knock(now_ms, "abc")]
        for name, send in [each for each in sends for _ in range(random.choice((0, 1, 1, 2)))]:
            message = send.message
            assert isinstance(message, JoinMe)
            answer(random, joiners, greeters[send.peer].on_join_me(now_ms, name, message, log.replica))
        for name, greeter in greeters.items():
            if name in entries and random.random() < 0.5:
                log.write(name, entries.pop(name))
                answer(random, joiners, greeter.on_played(now_ms, log.replica))
            elif name not in entries and (entry := greeter.propose(now_ms, log.replica)) is not None:
                entries[name] = entry

    assert {*log.replica.members} == {*"abcuvwxyz"}
    assert sorted(log.replica.ring.walk()) == sorted("abcuvwxyz")
    assert all(joiner.welcome is not None for joiner in joiners.values())


def answer(random: Random, joiners: dict[str, Knocking], sends: list[Send]) -> None:
    """Some answers are lost."""
    for send in sends:
        if isinstance(send.message, Welcomed) and random.random() < 0.6:
            joiners[send.peer].on_welcomed("somebody", send.message)
