"""Stories that break O1 to O3 and V1 to V4, and for each of these one that does not."""

from __future__ import annotations

from simulation.planted_stories.cases import Cases
from simulation.story import (
    HEADER,
    KEY,
    NEWER,
    NODES,
    OTHER,
    TOKEN,
    Story,
    completed,
    log_key,
    record,
    stored,
)
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, encode_body
from skuld_py.model.columns import pack_u64
from skuld_py.model.history import HISTORY_HEAD, encode_claim
from skuld_py.model.ids import IdMint, named_id
from skuld_py.model.setting import PAUSED, setting_key
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import convergence, order
from skuld_py.simulation.notes import What

MANY = IdMint(2).mint(1_000, 12, 0)
OTHERS_KEY = tables.prefix_of(0) + OTHER


def picked(worst: bytes, left: bytes, request: int = 7, node: str = "n1", boot: str = "1") -> Story:
    return Story().note(5, node, What.PICKED, worst=worst, left=left, request=request, whom=boot)


def queued(count: int, *, claimed: int, header: bytes = HEADER) -> Story:
    """So many tasks, then a claim of one of them."""
    story = Story()
    for task_id in MANY[:count]:
        story.enqueue(task=task_id)
    return story.claim(TOKEN, 10, task=MANY[claimed], body=encode_body(HEADER, b"payload"))


def asked_late(story: Story, count: int) -> Story:
    """Unique names in a window that began before all else was asked for; the second call for each is told so."""
    for number in range(count):
        body = named(number, 2_000)
        story.enqueue(task=named_id("q", body.unique, 0, ""), payload=body.rest, header=body.header.encode())
        story.enqueue(m.Acked(0, 3, pack_u64([0])), named(number, 900).rest, header=body.header.encode(),
                      task=named_id("q", body.unique, 0, ""))
    return story


def named(number: int, made_ms: int) -> Body:
    return Body(Header("q", window_ms=5_000), payload=b"payload", made_ms=made_ms, unique=f"n{number}")


def claim_named(story: Story, number: int) -> Story:
    body = named(number, 2_000)
    return story.claim(TOKEN, 10, task=named_id("q", body.unique, 0, ""), body=body.encode())


def healed() -> Story:
    """Calm since 100 ms, equal at 200 ms, within 500 ms."""
    return completed().know(calm_ms=100, equal_ms=200, bound_ms=500)


def exchanged(*amounts: int, at_ms: int = 201) -> Story:
    story = healed()
    for index, amount in enumerate(amounts):
        story.note(at_ms + index, "n1", What.EXCHANGED, whom="n2", amount=amount)
    return story


def two_claims(*, start_ms: int) -> bytes:
    return HISTORY_HEAD.pack(0, 0, 99) + encode_claim(TOKEN, start_ms, 99, b"w")


CASES: Cases = {
    order.leaders_take_the_best: (
        {
            "a better one is left": (lambda: picked(b"b", b"a"), "left b'a'"),
            "of a partition that gave less": (
                lambda: merged(picked(b"c", b"d"), picked(b"a", b"b")), "left b'b'"),
            "of the first partition": (lambda: merged(picked(b"a", b"b"), picked(b"c", b"d")), "left b'b'"),
        },
        lambda: merged(picked(b"a", b"c"), picked(b"b", b""), picked(b"z", b"zz", request=8),
                       picked(b"z", b"zz", boot="2"), picked(b"y", b"yy", node="n2"),
                       picked(b"x", b"x", request=9))),
    order.order_is_nearly_global: (
        {
            "far too late": (lambda: queued(12, claimed=11), "11 better tasks"),
            "too late for one of a hundred": (lambda: queued(6, claimed=5), "up to 5"),
            "too late before the queue is drained": (
                lambda: queued(6, claimed=5).claim(NEWER, 20, task=MANY[0], count=100).know(calm_ms=15),
                "up to 5"),
            "asked for later, in a window that began earlier": (
                lambda: claim_named(asked_late(Story().enqueue(task=b"".join(MANY)), 1), 0), "12 better tasks"),
            "behind lower ones": (lambda: queued(2, claimed=1).enqueue(
                task=b"".join(IdMint(3).mint(1_000, 9, 0)), header=Header("q", 5).encode()), "10 better tasks"),
        },
        lambda: asked_late(queued(12, claimed=2), 12)
        .enqueue(task=IdMint(3).mint(999, 1, 0)[0], header=Header("r").encode())
        .enqueue(task=IdMint(4).mint(1, 1, 0)[0], at_ms=10)
        .enqueue(task=IdMint(5).mint(1, 1, 0)[0], header=Header("q", -1).encode())
        .claim(NEWER, 20, task=MANY[0]).claim(5, 20, task=MANY[1]).claim(6, 30, task=MANY[3])
        .claim(7, 40, task=MANY[0]).claim(8, 50, task=MANY[11], client="drainer").know(calm_ms=50)),
    order.nobody_starves: (
        {
            "waiting": (lambda: stored().know(calm_ms=100), "n1"),
            "claimed and not done": (lambda: stored().store("history", KEY, record(TOKEN)).know(calm_ms=100)
                                     .claim(), "n1"),
            "completed on two": (lambda: completed(("n1", "n2")).store("body", KEY, b"x", ("n3",)).claim()
                                 .know(calm_ms=100), "n3"),
            "claimed too late": (lambda: healed().claim(at_ms=700), "701"),
            "claimed again too late": (lambda: healed().claim(at_ms=10).claim(NEWER, at_ms=700), "701"),
            "completed too late": (lambda: healed().complete(700), "700"),
            "nobody's turn": (healed, "None"),
        },
        lambda: healed().claim(at_ms=10).claim(NEWER, at_ms=300).claim(NEWER + 1, at_ms=900)
        .store("body", OTHERS_KEY, b"").store("history", OTHERS_KEY, record(done=TOKEN))
        .complete(20, task=OTHER)),
    convergence.convergence_is_bounded: (
        {
            "never equal": (lambda: healed().know(equal_ms=None), "not equal"),
            "too late": (lambda: healed().know(equal_ms=601), "601"),
            "much too late": (lambda: healed().know(calm_ms=0, equal_ms=900), "900"),
        },
        lambda: healed().know(equal_ms=600)),
    convergence.replicas_are_equal: (
        {
            "a body lacks": (lambda: stored(("n1", "n3")), "n2 has None"),
            "the first lacks it": (lambda: stored(("n2", "n3")), "n1 has None"),
            "a body differs": (lambda: stored().store("body", KEY, b"x", ("n3",)), "n3"),
            "a history differs": (lambda: completed(("n1", "n2")).store("body", KEY, b"", ("n3",))
                                  .store("history", KEY, record(TOKEN), ("n3",)), "history"),
            "a setting lacks": (
                lambda: completed().store("meta", setting_key(PAUSED, "q"), b"v", ("n1",)), "n2 has"),
            "the first lacks a setting": (
                lambda: completed().store("meta", setting_key(PAUSED, "q"), b"v", ("n3",)), "n3 has"),
            "a setting differs": (lambda: completed().store("meta", setting_key(PAUSED, "q"), b"v")
                                  .store("meta", setting_key(PAUSED, "q"), b"w", ("n2",)), "n2 has b'w'"),
            "a log entry lacks": (lambda: stored().store("log", log_key(0), b"entry", ("n1",)), "log"),
        },
        lambda: completed().store("ready", b"\0\0other tables may differ", b"", ("n1",))
        .store("meta", setting_key(PAUSED, "q"), b"v").store("meta", b"promise\0\0", b"v", ("n1",))
        .store("body", b"\0\1other partitions too", b"", ("n1",))),
    convergence.merge_keeps_its_laws: (
        {
            "a claim has two holders and no canonical order": (
                lambda: Story().store("history", KEY, record(NEWER, TOKEN)[:24] + record(TOKEN)[24:]
                                      + record(NEWER)[24:], NODES).store("history", KEY, wrong_head(), ("n2",)),
                "stored as"),
            "a wrong horizon": (lambda: Story().store("history", KEY, wrong_head(), ("n1",)), "stored as"),
            "a completion without time": (
                lambda: Story().store("history", KEY, HISTORY_HEAD.pack(0, 7, 0), ("n3",)), "stored as"),
        },
        lambda: completed(("n1",)).store("history", KEY, record(TOKEN, NEWER), ("n2",))
        .store("history", KEY, record(TOKEN, flags=1), ("n3",))),
    convergence.quiet_replicas_are_silent: (
        {
            "the third speaks": (lambda: exchanged(0, 0, 1), "amount=1"),
            "a later one speaks": (lambda: exchanged(2, 1, 0, 0, 3), "amount=3"),
            "one of another pair": (lambda: exchanged(0, 0, 0).note(300, "n2", What.EXCHANGED, whom="n1", amount=0)
                                    .note(301, "n2", What.EXCHANGED, whom="n1", amount=0)
                                    .note(302, "n2", What.EXCHANGED, whom="n1", amount=5), "amount=5"),
        },
        lambda: merged(exchanged(9, 9, 9, at_ms=198), exchanged(3, 1, 0, 0))
        .note(400, "n1", What.EXCHANGED, whom="n3", amount=1)),
}


def wrong_head() -> bytes:
    return HISTORY_HEAD.pack(0, 0, 98) + record(TOKEN)[24:]


def merged(*stories: Story) -> Story:
    """The last story with the notes of all."""
    last = stories[-1]
    last.notes[:] = [note for story in stories for note in story.notes]
    return last
