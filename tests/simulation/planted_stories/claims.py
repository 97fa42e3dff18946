"""Stories that break C1 to C14, and for each of these one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import (
    BODY,
    KEY,
    NEWER,
    NODES,
    OTHER,
    REFUSED,
    TASK,
    THIRD,
    TOKEN,
    UNSURE,
    Story,
    log_key,
    record,
)
from skuld_py.model.document import LEAD, REAP, Floor, Loss, Previous, Promotion
from skuld_py.model.history import SNOOZED, token_of
from skuld_py.model.messages import Acked
from skuld_py.model.setting import UNSET
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import claims, epochs
from skuld_py.simulation.notes import What

ELSEWHERE = OTHER[:-1] + bytes([OTHER[-1] ^ 1])
OTHERS_KEY = tables.prefix_of(0) + OTHER
LATER = token_of(2, 1)


def led() -> Story:
    """n1 leads epoch 1 from 1 ms on."""
    return Story().write(1, 1)


def wish(kind: str) -> Promotion:
    """That n3 leads, or is no voter any more."""
    return Promotion("wish", kind, "n3", 1, 9_000, "me")


OPERATED = (
    lambda: led().write(2, 2, cohort=("n1", "n2"), loss=Loss(2, ("n3",), ("n1", "n2"), "me", "why", 1, 1_100))
    .write(3, 3, cohort=("n1", "n2")),
    lambda: led().write(1, 2, promote=wish(REAP)).write(2, 3, cohort=("n1", "n2")),
    lambda: led().know(resized=(2,)).write(2, 3, cohort=("n1", "n2")),
    lambda: led().write(1, 2, "", era=1).write(2, 3, era=1),
)
"""Documents that an operator had changed: voters given up or reaped, fewer copies, a cluster that was restored."""


def seated(*tokens: int, at_ms: int = 30, node: str = "n2") -> Story:
    """A claim is told at 11 ms, with a lease to 99 ms; n2 is made leader at 32 ms knowing these tokens."""
    return (led().claim().write(2, 32, "n2").note(at_ms, node, What.SEATING, 2, tokens=frozenset(tokens)))


def completed_by(copies: int) -> Acked:
    return Acked(0, copies)


CASES: Cases = {
    claims.one_holder_per_token: (
        {
            "two clients": (lambda: Story().claim().claim(client="v"), "v#2"),
            "two requests": (lambda: Story().claim().claim(at_ms=20), "w#2"),
            "two tasks": (lambda: Story().claim().claim(task=OTHER), "w#2"),
            "two holders stored": (lambda: Story().store("history", KEY, record(TOKEN), ("n1",))
                                   .store("history", KEY, record(TOKEN, holder=b"v"), ("n2",)), "n2"),
            "two tasks stored": (lambda: Story().store("history", KEY, record(TOKEN))
                                 .store("history", OTHERS_KEY, record(TOKEN)), OTHER.hex()),
        },
        lambda: Story().claim(5).claim(6).claim(7, task=OTHER).store("history", KEY, record(5, 6))
        .store("history", OTHERS_KEY, record(7))),
    claims.only_holders_act: (
        {
            "a completion": (lambda: Story().claim(client="v").complete(20, client="w"), "w#2"),
            "by another token": (lambda: Story().claim().complete(20, token=NEWER, client="w"), "w#2"),
            "an entry": (lambda: Story().claim(task=OTHER).append(at_ms=20, client="w"), TASK.hex()),
            "a renewal": (lambda: Story().claim(5).renew(6, 99, 20), "w#2"),
            "an ending": (lambda: Story().claim(5).conclude(6, 99, 20), "w#2"),
            "a completion stored": (lambda: Story().claim(5).store("history", KEY, record(5, done=6)), "n1"),
            "an entry stored": (lambda: Story().claim(5).store("log", log_key(6), b"x"), "n1"),
        },
        lambda: Story().claim(5).renew(5, 99, 20).conclude(5, 99, 30).renew(6, 0, 40).conclude(6, 0, 50)
        .complete(60, token=6, answer=REFUSED).store("history", KEY, record(5, 6)).ask(70)),
    claims.tokens_rise: (
        {
            "reused": (lambda: Story().claim(5, 10).claim(5, 20), "w#2"),
            "falls": (lambda: Story().claim(LATER, 10).claim(NEWER, 20), "w#2"),
            "falls below one before the last": (lambda: Story().claim(9, 10).claim(3, 10, 25).claim(8, 20), "w#3"),
            "at the next moment": (lambda: Story().claim(9, 10, 11).claim(8, 12), "w#2"),
        },
        lambda: Story().claim(5, 10).claim(6, 20).claim(4, 9, 21).claim(5, 30, task=OTHER).claim(3, 10)),
    claims.leases_do_not_overlap: (
        {
            "by one millisecond": (lambda: Story().hold(1, 10, 21).hold(2, 20, 30), "w2"),
            "inside": (lambda: Story().hold(1, 10, 90).hold(2, 20, 30), "w2"),
            "with one before the last": (lambda: Story().hold(1, 10, 90).hold(2, 95, 96).hold(3, 50, 60), "w3"),
            "with the longest": (lambda: Story().hold(1, 10, 90).hold(2, 90, 91).hold(4, 85, 86), "w4"),
            "by more than the clocks are off": (
                lambda: Story().know(skew_excess_ms=5).hold(1, 10, 26).hold(2, 20, 40), "w2"),
        },
        lambda: Story().hold(1, 10, 20).hold(2, 20, 30).hold(3, 25, 25).hold(9, 15, 40, OTHER)),
    epochs.deposed_leaders_grant_nothing: (
        {
            "an old epoch": (lambda: led().write(2, 5).claim(), "w#1"),
            "an epoch of nobody": (lambda: led().claim(LATER), "w#1"),
            "nothing was ever written": (lambda: Story().claim(), "w#1"),
            "nobody recorded it": (lambda: led().claim().note(9, "n2", What.ACKED), "['n1']"),
            "recorded too late": (
                lambda: led().claim().note(12, "n2", What.ACKED, tokens=frozenset([TOKEN])), "['n1']"),
            "recorded by a stranger": (
                lambda: led().claim().note(9, "n4", What.ACKED, tokens=frozenset([TOKEN])), "['n1']"),
            "recorded by too few of five": (
                lambda: led().write(2, 2, cohort=(*NODES, "n4", "n5")).claim(LATER).know(replicas=5)
                .note(9, "n2", What.ACKED, tokens=frozenset([LATER])), "['n1', 'n2']"),
        },
        lambda: led().claim().write(2, 11, "n2").claim(NEWER, 10, 20).claim(LATER, 30)
        .note(11, "n2", What.ACKED, tokens=frozenset([TOKEN, NEWER]))
        .note(31, "n3", What.ACKED, 2, tokens=frozenset([LATER]))),
    epochs.epochs_rise: (
        {
            "two leaders": (lambda: led().write(1, 2, "n2"), "two leaderships"),
            "two boots": (lambda: led().write(1, 2, boot="again"), "two leaderships"),
            "two floors": (lambda: led().write(1, 2, floor=Floor(1)), "two leaderships"),
            "two histories": (lambda: led().write(1, 2, previous=Previous(1)), "two leaderships"),
            "two orders of succession": (lambda: led().write(1, 2, cohort=("n1", "n3", "n2")), "two leaderships"),
            "falls": (lambda: Story().write(2, 1).write(1, 2), "falls"),
            "zero": (lambda: Story().write(0, 1), "falls"),
            "a small cohort": (lambda: Story().write(1, 1, cohort=("n1", "n2")), "cohort of 2"),
            "a large cohort": (lambda: Story().write(1, 1, cohort=(*NODES, "n4")), "cohort of 4"),
            "a node counted once more": (lambda: Story().write(1, 1, cohort=(*NODES, "n3")), "cohort of 4"),
            "a node counted twice": (lambda: Story().write(1, 1, cohort=("n1", "n2", "n2")), "cohort of 3"),
            "a leader without a seat": (lambda: Story().write(1, 1, "n4"), "seat"),
            "an era that stays": (lambda: Story().write(1, 1, era=1).write(2, 2, cohort=("n1", "n2", "n4"), era=1),
                                  "era"),
            "an era that moves": (lambda: Story().write(1, 1, era=1).write(2, 2, era=2), "era"),
            "an era that is forgotten": (lambda: Story().write(1, 1, era=1).write(2, 2), "era"),
            "a small cohort beside a wish": (
                lambda: led().write(1, 2, promote=wish(LEAD)).write(2, 3, cohort=("n1", "n2")), "cohort of 2"),
            "an era that moves in a restore, though it was led": (
                lambda: Story().know(restored=(2,)).write(1, 1, era=1).note(1, "n1", What.LED).write(2, 3, era=2),
                "era"),
            "an era that moves after a restore": (
                lambda: Story().know(restored=(1,)).write(1, 2, era=1).write(2, 3, era=2), "era"),
            "an era that moves before a restore": (
                lambda: Story().know(restored=(4,)).write(1, 2, era=1).write(2, 3, era=2), "era"),
            "an era that is not that of the restore": (
                lambda: Story().know(restored=(2,)).write(1, 2, "", era=1).write(2, 3, era=2), "era"),
            "an era from nowhere": (lambda: Story().write(3, 1, era=2), "era"),
            "a horizon that falls": (
                lambda: Story().write(1, 1, horizon_ms=9).write(2, 2, horizon_ms=8), "horizon"),
            "a leader of nothing": (lambda: led().note(5, "n1", What.LED, 2), "n1 leads"),
            "another leader": (lambda: led().note(5, "n2", What.LED, 1), "n2 leads"),
            "a leader too soon": (lambda: led().note(0, "n1", What.LED, 1), "n1 leads"),
            "a leader of another time": (lambda: led().write(2, 5, "n2").note(6, "n1", What.LED, 2), "n1 leads"),
        },
        lambda: Story().write(1, 1, era=1).note(1, "n1", What.LED).write(1, 2, era=1, horizon_ms=50)
        .write(3, 3, "n2", ("n2", "n3", "n1"), era=1, horizon_ms=50)
        .write(4, 4, "n4", ("n4", "n1", "n2"), era=4, horizon_ms=60).note(9, "n2", What.LED, 3)
        .know(restored=(4, 12)).write(5, 9, "n4", ("n4", "n1", "n2"), era=5, horizon_ms=60)
        .write(6, 12, "n4", ("n4", "n1", "n2"), era=6, horizon_ms=60)
        .write(6, 12, "n4", ("n4", "n1", "n2"), era=6, horizon_ms=60)),
    epochs.leaders_know_all_claims: (
        {
            "knows nothing": (seated, "n2"),
            "knows another": (lambda: seated(NEWER), "w#1"),
            "knows the old, not the new": (
                lambda: led().claim(end_ms=20).claim(NEWER, 21).write(2, 32, "n2")
                .note(31, "n2", What.SEATING, 2, tokens=frozenset([TOKEN])), hex(NEWER)),
            "in the last moment": (lambda: seated(at_ms=98), "n2"),
            "renewed before": (lambda: led().claim().renew(TOKEN, 99, 20).write(2, 32, "n2")
                               .note(30, "n2", What.SEATING, 2), "n2"),
            "given up afterwards": (lambda: seated().complete(31).renew(TOKEN, 99, 31, lease_ms=0), "n2"),
        },
        lambda: Story().write(1, 1).note(5, "n1", What.SEATING, 1).claim(at_ms=10, until_ms=30)
        .claim(LATER, task=OTHER, until_ms=20).claim(9, task=ELSEWHERE).know(partitions=2)
        .note(30, "n2", What.SEATING, 2).write(2, 32, "n2")
        .note(33, "n3", What.SEATING, 2, tokens=frozenset())
        .note(34, "n1", What.SEATING, 3, tokens=frozenset([TOKEN, LATER])).write(3, 35, "n1")
        .renew(TOKEN, 99, 38, lease_ms=0).complete(39, task=OTHER).note(39, "n3", What.SEATING, 4)
        .write(4, 40, "n3").note(100, "n1", What.SEATING, 5).write(5, 101)),
    epochs.votes_are_kept: (
        {
            "two candidates": (lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2")
                               .note(2, "n1", What.VOTED, 2, whom="n3"), "n3"),
            "two candidates, one later": (lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2")
                                          .note(2, "n1", What.ACKED, 2, whom="n2")
                                          .note(3, "n1", What.VOTED, 2, whom="n1"), "n1"),
            "another leader": (lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2")
                               .note(2, "n1", What.ACKED, 2, whom="n3"), "n3"),
            "an older vote": (lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2")
                              .note(2, "n1", What.VOTED, 1, whom="n2"), "epoch=1"),
            "an older claim": (lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2")
                               .note(2, "n1", What.ACKED, 1, whom="n3"), "epoch=1"),
            "a vote older than a claim": (lambda: Story().note(1, "n1", What.ACKED, 2, whom="n2")
                                          .note(2, "n1", What.VOTED, 1, whom="n3"), "epoch=1"),
            "another than a leader it forgot": (
                lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2").write(2, 3, "n2")
                .note(4, "n1", What.TRUSTED, 0).note(5, "n1", What.VOTED, 2, whom="n3"), "n3"),
            "an older vote than for a leader it forgot": (
                lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2").write(2, 3, "n2")
                .note(4, "n1", What.TRUSTED, 0).note(5, "n1", What.VOTED, 1, whom="n3"), "epoch=1"),
            "an older claim after several": (
                lambda: Story().note(1, "n1", What.ACKED, 1).note(2, "n1", What.ACKED, 3)
                .note(3, "n1", What.ACKED, 2), "epoch=2"),
        },
        lambda: Story().note(1, "n1", What.VOTED, 2, whom="n2").note(2, "n1", What.VOTED, 2, whom="n2")
        .note(3, "n1", What.ACKED, 2, whom="n2").note(4, "n2", What.VOTED, 1, whom="n3")
        .note(4, "n1", What.LED, 1).note(4, "n1", What.SEATING, 1)
        .note(5, "n1", What.VOTED, 3, whom="n3").note(6, "n1", What.VOTED, 4, whom="n2")
        .write(3, 7, "n3").note(8, "n1", What.TRUSTED, 0).note(9, "n1", What.VOTED, 4, whom="n3")),
    epochs.claims_end_before_the_horizon: (
        {
            "a claim": (lambda: Story().write(1, 1, horizon_ms=98).claim(), "w#1"),
            "a renewal": (lambda: Story().write(1, 1, horizon_ms=99).claim().renew(TOKEN, 100, 20), "w#2"),
            "written too late": (
                lambda: Story().write(1, 1, horizon_ms=50).claim().write(1, 12, horizon_ms=99), "w#1"),
        },
        lambda: Story().write(1, 1, horizon_ms=50).write(1, 11, horizon_ms=99).claim().renew(TOKEN, 0, 20)
        .write(1, 30, horizon_ms=200).renew(TOKEN, 200, 30).renew(TOKEN, 900, 40, lease_ms=0)),
    claims.completed_is_not_granted: (
        {
            "by a majority": (lambda: Story().complete(10).claim(at_ms=20), "w#2"),
            "by all": (lambda: Story().complete(10, 3).claim(at_ms=20), "w#2"),
            "on more than was asked for": (
                lambda: Story().complete(10, 1, answer=completed_by(3)).claim(at_ms=20), "w#2"),
            "completed twice": (lambda: Story().complete(30).complete(10).claim(at_ms=20), "w#3"),
            "at the next moment": (lambda: Story().complete(10).claim(at_ms=12), "w#2"),
            "cancelled": (lambda: Story().cancel(10).claim(at_ms=20), "w#2"),
            "cancelled on all": (lambda: Story().cancel(10, 3).claim(at_ms=12), "w#2"),
        },
        lambda: Story().claim(at_ms=5).complete(10).claim(at_ms=8, until_ms=20).claim(at_ms=20, task=OTHER)
        .complete(10, 1, task=OTHER).cancel(10, 1, task=OTHER).cancel(10, answer=UNSURE, task=THIRD)
        .claim(at_ms=20, task=THIRD)),
    claims.renewals_are_the_holders: (
        {
            "by an old holder": (lambda: Story().claim(5, 10).claim(6, 20).renew(5, 100, 30), "w#3"),
            "backwards": (lambda: Story().claim(5, 10).renew(5, 110, 20).renew(5, 100, 30), "w#3"),
            "to before the claim's end": (lambda: Story().claim(5, 10).renew(5, 90, 20), "w#2"),
            "by another": (lambda: Story().claim(5, 10).renew(5, 100, 20, client="v"), "v#2"),
            "of a claim nobody has": (lambda: Story().claim(5, 10).renew(4, 100, 5), "w#2"),
            "of a task nobody claimed": (lambda: Story().renew(4, 100, 5), "w#1"),
            "ended by an old holder": (lambda: Story().claim(5, 10).claim(6, 20).conclude(5, 30, 30), "w#3"),
            "ended by another": (lambda: Story().claim(5, 10).conclude(5, 20, 20, client="v"), "v#2"),
            "ended though nobody has it": (lambda: Story().claim(5, 10).conclude(4, 20, 20), "w#2"),
        },
        lambda: Story().claim(5, 10).renew(5, 100, 20).renew(5, 105, 30).claim(6, 40).renew(5, 0, 50)
        .renew(6, 99, 60).renew(5, 1, 70, lease_ms=0).conclude(5, 0, 75).conclude(6, 90, 80, kind=SNOOZED)
        .claim(7, 95).renew(6, 0, 97)),
    claims.stale_writers_are_fenced: (
        {
            "renewed": (lambda: Story().claim(5, 10).claim(6, 20).renew(5, 100, 30), "w#3"),
            "released": (lambda: Story().claim(5, 10).claim(6, 20).renew(5, 100, 30, lease_ms=0), "w#3"),
            "ended": (lambda: Story().claim(5, 10).claim(6, 20).conclude(5, 31, 30), "w#3"),
            "renewed though ended": (lambda: Story().claim(5, 10).conclude(5, 21, 20).renew(5, 100, 30), "w#3"),
            "released though ended": (
                lambda: Story().claim(5, 10).conclude(5, 21, 20).renew(5, 100, 30, lease_ms=0), "w#3"),
            "logged under the new token": (
                lambda: Story().claim(5, 10).claim(6, 20).append(token=5, at_ms=30)
                .store("log", log_key(3, 6), b"entry"), "n1"),
            "shown under the new token": (
                lambda: Story().claim(5, 10).claim(6, 20).append(token=5, at_ms=30)
                .read(40, entries=((6, 3, b"entry"),)), "c4#4"),
        },
        lambda: Story().claim(5, 10).conclude(5, 15, 15).renew(5, 0, 18).claim(6, 20).renew(5, 0, 30)
        .conclude(5, 0, 30).append(token=5, at_ms=30)
        .append(token=6, at_ms=31).store("log", log_key(3, 5), b"entry").store("log", log_key(3, 6), b"entry")
        .store("log", log_key(4, 6), b"mine")),
    claims.holders_are_pessimists: (
        {
            "past the claim": (lambda: Story().know(skew_ms=4).claim().hold(TOKEN, 11, 102), hex(TOKEN)),
            "past the renewal": (
                lambda: Story().claim().renew(TOKEN, 120, 20).hold(TOKEN, 11, 121), hex(TOKEN)),
            "past what is recorded": (
                lambda: Story().claim().renew(TOKEN, 120, 20).store("history", KEY, record(TOKEN, end_ms=110))
                .hold(TOKEN, 11, 111), hex(TOKEN)),
            "past what was told": (
                lambda: Story().claim().store("history", KEY, record(TOKEN, end_ms=120)).hold(TOKEN, 11, 100),
                hex(TOKEN)),
            "without a claim": (lambda: Story().hold(TOKEN, 11, 12), hex(TOKEN)),
            "of another task": (lambda: Story().claim(task=OTHER).hold(TOKEN, 11, 12), hex(TOKEN)),
            "in wall time": (lambda: Story().know(wall_start_ms=1_000).claim(end_ms=1_050)
                             .hold(TOKEN, 11, 51), hex(TOKEN)),
        },
        lambda: Story().know(skew_ms=4, wall_start_ms=1_000).claim(end_ms=1_099).renew(TOKEN, 1_120, 20)
        .renew(TOKEN, 1_110, 15).hold(TOKEN, 11, 122).hold(9, 11, 11)),
    claims.claims_are_of_the_queue: (
        {
            "another queue": (lambda: Story().claim(queue="r"), "w#1"),
            "no body": (lambda: Story().claim(body=b""), "w#1"),
            "too many": (lambda: Story().claim(task=TASK + OTHER), "2 tasks"),
            "twice the same": (lambda: Story().claim(task=TASK + TASK, count=2), "1 different"),
            "paused for ever": (lambda: Story().put(5, at_ms=2).claim(at_ms=10), "paused on all nodes"),
            "paused until later": (
                lambda: Story().put(5, at_ms=2).put(6, UNSET, at_ms=12).claim(at_ms=10), "paused on all nodes"),
            "resumed by an older change": (
                lambda: Story().put(5, at_ms=2).put(4, UNSET, at_ms=5).claim(at_ms=10), "paused on all nodes"),
            "resumed in vain": (
                lambda: Story().put(5, at_ms=2).put(6, UNSET, at_ms=5, answer=REFUSED).claim(at_ms=10), "paused"),
            "paused twice": (
                lambda: Story().put(5, at_ms=2).put(7, at_ms=5).put(6, UNSET, at_ms=3).claim(at_ms=10), "paused"),
            "resumed after the second": (
                lambda: Story().put(5, at_ms=2).put(8, UNSET, at_ms=40).put(6, UNSET, at_ms=3).put(7, at_ms=5)
                .claim(at_ms=10), "paused on all nodes"),
            "by a node that knew": (
                lambda: Story().note(5, "n1", What.PICKED, worst=b"x", is_paused=True), "n1 knew"),
        },
        lambda: Story().claim(task=TASK + OTHER, count=2).claim(body=BODY)
        .put(5, at_ms=12).claim(at_ms=10, until_ms=30).claim(at_ms=13)
        .put(6, UNSET, at_ms=15).claim(at_ms=14, until_ms=15).claim(at_ms=20)
        .put(7, at_ms=30, copies=2).claim(at_ms=40).put(8, UNSET, at_ms=45, copies=0).claim(at_ms=46)
        .put(9, at_ms=50, queue="r").put(9, at_ms=50, kind="other").put(10, at_ms=50, answer=UNSURE)
        .claim(at_ms=60).note(61, "n1", What.PICKED, worst=b"x", is_paused=False)),
    claims.tasks_are_mutexes: (
        {
            "not given up": (lambda: Story().claim(5, 10).hold(5, 11, 60).claim(6, 20), hex(6)),
            "granted before it was": (lambda: Story().claim(6, 10).claim(5, 20), hex(6)),
            "one token twice": (lambda: Story().claim(5, 10).claim(5, 20), hex(5)),
            "the last but one not given up": (
                lambda: Story().claim(5, 10).hold(5, 11, 60).claim(6, 12, 70).claim(7, 20, 30), hex(7)),
            "one millisecond too soon": (lambda: Story().claim(5, 10).hold(5, 11, 31).claim(6, 12, 30), hex(6)),
        },
        lambda: Story().claim(5, 10).hold(5, 11, 30).claim(6, 12, 40).hold(6, 40, 40).claim(7, 20, 31)
        .claim(4, 5, task=OTHER)),
}
