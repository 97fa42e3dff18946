"""Stories that break D1 to D11, and for each of these one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import (
    ACKED,
    BODY,
    KEY,
    NEWER,
    OTHER,
    REFUSED,
    TASK,
    THIRD,
    TOKEN,
    Story,
    completed,
    lived,
    log_key,
    record,
    stored,
)
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.ids import IdMint
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import durability, survival
from skuld_py.simulation.history import Status
from skuld_py.simulation.notes import What

URGENT = encode_body(Header("q", 5).encode(), b"payload")
OTHERS_KEY = tables.prefix_of(0) + OTHER


OLDER, = IdMint(7).mint(900, 1, 0)
AHEAD, = IdMint(8).mint(6_011, 1, 0)


def called(*tasks: bytes) -> Story:
    """Tasks enqueued by calls of one client, one after the other."""
    story = Story()
    for number, task in enumerate(tasks):
        answer = ACKED if number + 1 < len(tasks) and task != AHEAD else REFUSED
        story.enqueue(answer, task=task, at_ms=1 + 5 * number, client="p").call(Status.OK, clock_ms=1_000)
    return story


def lost(kind: str, table: str = "body") -> Story:
    """A flawless life, a fault after it, and then a record is missing on n2."""
    key = log_key(3) if table == "log" else KEY
    return lived().strike(kind, 20).drop(table, key, "n2")


def wiped() -> Story:
    """n1 voted, then forgot everything."""
    return lived().note(5, "n1", What.VOTED, 1, whom="n2").strike("wipe", 20)


CASES: Cases = {
    durability.acked_enqueues_survive: (
        {
            "one owner lacks it": (lambda: stored(("n1", "n2")).enqueue(), "n3 has None"),
            "nobody has it": (lambda: Story().enqueue(), "c1#1"),
            "one has another": (lambda: stored(("n1", "n2")).store("body", KEY, b"x", ("n3",)).enqueue(), "n3"),
            "weakly acknowledged, and nothing destroyed": (lambda: Story().enqueue(m.Acked(0, 1), w=1), "c1#1"),
            "weakly acknowledged, and only paused": (
                lambda: Story().enqueue(m.Acked(0, 1), w=1).strike("pause", 20), "c1#1"),
            "by a majority, though fewer are told of": (
                lambda: Story().enqueue(m.Acked(0, 1)).strike("wipe", 20), "c1#1"),
            "by a majority, and a node wiped": (lambda: Story().enqueue().strike("wipe", 20), "c1#1"),
        },
        lambda: stored().enqueue().enqueue(None, b"lost").enqueue(m.Acked(0, 1), task=OTHER, w=1)
        .strike("wipe", 20)),
    durability.nothing_from_nowhere: (
        {
            "a body stored": (stored, "n1"),
            "another body": (lambda: stored().enqueue(payload=b"other"), "n1"),
            "a body claimed": (lambda: Story().claim(), "w#1"),
            "a body read": (lambda: Story().read(20, body=BODY), "c1#1"),
            "an entry stored": (lambda: Story().store("log", log_key(3), b"x").append(data=b"y"), "n1"),
            "an entry read": (lambda: Story().append().read(20, entries=((TOKEN, 4, b"entry"),)), "c2#2"),
            "an entry of another token": (
                lambda: Story().append().read(20, entries=((NEWER, 3, b"entry"),)), "c2#2"),
            "a completion stored": (lambda: Story().store("history", KEY, record(done=TOKEN)), "n1"),
            "a completion by another token": (
                lambda: Story().complete().read(20, history=record(done=NEWER)), "c2#2"),
            "a claim of nobody": (lambda: Story().store("history", KEY, record(TOKEN)), "n1"),
        },
        lambda: lived().enqueue(REFUSED, b"other").enqueue(None, task=OTHER)),
    durability.bodies_are_immutable: (
        {
            "two are acknowledged": (lambda: Story().enqueue().enqueue(payload=b"other"), "c2#2"),
            "two are stored": (lambda: stored(("n1", "n2")).store("body", KEY, URGENT, ("n3",)), "n3"),
            "a claim shows another": (lambda: Story().enqueue().claim(body=URGENT), "w#2"),
            "a read shows another": (lambda: stored().read(20, body=URGENT), "c1#1"),
        },
        lambda: lived().read(20, body=BODY).enqueue(REFUSED, b"other")),
    durability.acked_completions_stay: (
        {
            "on two only": (lambda: completed(("n1", "n2")).complete(), "n3"),
            "claimed only": (lambda: stored().store("history", KEY, record(TOKEN)).complete(), "n1"),
            "nobody knows the task": (lambda: Story().complete(), "c1#1"),
            "weakly acknowledged, and nothing destroyed": (lambda: Story().complete(w=1), "c1#1"),
            "by a majority, and bytes of a node changed": (
                lambda: Story().complete().strike("corrupt", 20), "c1#1"),
        },
        lambda: completed().complete().complete(w=1, task=OTHER).strike("wipe", 20)),
    durability.acked_entries_stay: (
        {
            "lost on one": (lambda: Story().store("log", log_key(3), b"entry", ("n1", "n3")).append(), "n2"),
            "other content": (lambda: Story().store("log", log_key(3), b"other").append(), "c1#1"),
            "other place": (lambda: Story().store("log", log_key(2), b"entry").append(), "c1#1"),
            "other token": (lambda: Story().store("log", log_key(3, NEWER), b"entry").append(), "c1#1"),
            "two contents": (lambda: Story().store("log", log_key(2), b"a", ("n1",))
                             .store("log", log_key(2), b"b", ("n2",)), "n2"),
            "two contents acknowledged": (lambda: Story().append().append(data=b"other").know(owners={}), "c2#2"),
        },
        lambda: Story().store("log", log_key(3), b"entry").append().append(None, b"lost", seq=4)
        .append(m.Acked(0, 1), seq=5, w=1).strike("wipe", 20)),
    survival.data_outlives_deaths: (
        {
            "a task is lost": (lambda: lost("kill"), "n2"),
            "a completion is lost": (lambda: lost("crash", "history"), "n2"),
            "an entry is lost": (lambda: lost("blackout", "log"), "n2"),
        },
        lambda: lived().strike("kill", 20)),
    survival.data_outlives_power_cuts: (
        {
            "a task is lost": (lambda: lost("power cut"), "n2"),
            "a completion is lost": (lambda: lost("crash before commit", "history"), "n2"),
            "an entry is lost": (lambda: lost("crash after commit", "log"), "n2"),
        },
        lambda: lived().strike("blackout", 20)),
    survival.data_outlives_amnesia: (
        {
            "a task is lost": (lambda: lost("wipe"), "n2"),
            "an entry is lost": (lambda: lost("roll back", "log"), "n2"),
            "it votes": (lambda: wiped().note(30, "n1", What.VOTED, 2, whom="n2"), "n1"),
            "it records claims": (lambda: wiped().note(30, "n1", What.ACKED, 1, whom="n2"), "n1"),
            "it votes at once": (lambda: wiped().strike("pause", 20).note(21, "n1", What.VOTED, 2), "n1"),
            "it filled before, and votes": (lambda: wiped().note(30, "n1", What.TRUSTED, 0)
                                            .strike("roll back", 40).note(50, "n1", What.VOTED, 2), "n1"),
        },
        lambda: wiped().note(6, "n2", What.VOTED, 1).note(7, "n4", What.VOTED, 1).note(20, "n1", What.VOTED, 1)
        .strike("wipe", 20, "n3").note(20, "n3", What.VOTED, 1).note(27, "n3", What.VOTED, 1)
        .strike("wipe", 60, "n4").note(25, "n2", What.VOTED, 2).note(30, "n1", What.TRUSTED, 0)
        .note(40, "n1", What.VOTED, 3)),
    survival.data_outlives_corruption: (
        {
            "a task is lost": (lambda: lost("corrupt"), "n2"),
            "a completion is lost": (lambda: lost("corrupt", "history"), "n2"),
            "a wrong byte is shown": (lambda: lived().strike("corrupt", 20).read(30, body=URGENT), "nobody sent"),
        },
        lambda: lived().strike("corrupt", 20)),
    durability.garbage_stays_away: (
        {
            "claimed": (lambda: Story().know(collected={TASK: 5}).claim(at_ms=6), "w#1"),
            "read": (lambda: Story().know(collected={TASK: 5}).read(6), "c1#1"),
            "stored": (lambda: stored(("n3",)).know(collected={TASK: 5}), "n3"),
            "claimed while it goes": (lambda: Story().know(collected={TASK: 9}, going={TASK: 5}).claim(at_ms=6),
                                      "w#1"),
            "nobody had ended it": (lambda: Story().enqueue().know(going={TASK: 5}), "c1#1"),
        },
        lambda: Story().enqueue().complete().know(collected={TASK: 20}, going={TASK: 15}).claim(at_ms=10)
        .read(15).read(20).read(30, is_there=False)),
    durability.ids_are_unique: (
        {
            "made twice": (lambda: Story().enqueue().enqueue(payload=b"other").enqueue(task=OTHER), "c2#2"),
            "made twice, once in vain": (
                lambda: Story().enqueue(None).enqueue(payload=b"other", at_ms=5).enqueue(task=OTHER), "c2#2"),
            "falling": (lambda: Story().enqueue(task=OTHER, client="p").enqueue(at_ms=5, client="p"), "p#2"),
            "falling in one batch": (lambda: Story().enqueue(task=OTHER + TASK), "c1#1"),
            "twice in one batch": (lambda: Story().enqueue(task=TASK + TASK).enqueue(task=OTHER), "c1#1"),
            "of a fresh mint below what was acknowledged": (lambda: called(TASK, OLDER), "is not above"),
            "of a mint that was driven ahead": (lambda: called(AHEAD, AHEAD), "5011 ms ahead"),
        },
        lambda: Story().enqueue(task=OTHER, client="a").enqueue(task=TASK, client="b")
        .enqueue(task=THIRD, at_ms=3, client="a").enqueue(REFUSED, b"again", task=OTHER, at_ms=5, client="a")
        .enqueue(ACKED, task=OTHER, at_ms=6, client="b")
        .enqueue(task=AHEAD, at_ms=7, client="d").call(Status.OK, clock_ms=2_000)
        .enqueue(task=OLDER, at_ms=9, client="d").call(Status.OK, clock_ms=2_000)),
}
