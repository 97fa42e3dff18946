"""Stories that break A1 to A3, A6 and X1, and for each of these one that does not."""

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
    completed,
    lived,
    log_key,
    record,
    record_of,
    slot,
    stored,
)
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header
from skuld_py.model.columns import pack_u64
from skuld_py.model.history import (
    CANCELLED,
    DIED,
    FAILED,
    RELEASED,
    REVIVED,
    encode_claim,
    encode_mark,
    revival_of,
)
from skuld_py.model.history import History as TaskHistory
from skuld_py.model.ids import named_id
from skuld_py.model.outcomes import RESULT_SEQ
from skuld_py.model.setting import PAUSED, UNSET, YES, encode_setting, setting_key
from skuld_py.partition.data import tables
from skuld_py.simulation.checkers import indexes, interface
from skuld_py.simulation.history import Status

BUSY = m.Failed(0, "busy", "no", True)
FORGED = m.Failed(0, "unknown_claim", "no", True)
PREFIX = tables.prefix_of(0)
PLACE = tables.place_of(Header("q"))
READY = PREFIX + PLACE + TASK
LEASE = tables.lease_key(PREFIX, 200, TASK)
COUNTS = PREFIX + b"q"
HELD = b"\x01" + PLACE


NAMED = Body(Header("q", window_ms=5_000), payload=b"payload", made_ms=2_000, unique="n")
NAMED_ID = named_id("q", "n", 0, "")
NAMED_READY = PREFIX + PLACE + (2_000).to_bytes(8, "big") + NAMED_ID
WINDOW_KEY = PREFIX + (5_000).to_bytes(4, "big")


def named_story(ready: bytes) -> Story:
    """A unique name that waits, where it is said to wait."""
    return (Story().store("body", PREFIX + NAMED_ID, NAMED.encode()).store("ready", ready, b"\2")
            .store("window", WINDOW_KEY, b""))


def counts(waiting: int = 0, claimed: int = 0, completed: int = 0) -> bytes:
    return pack_u64([waiting, claimed, completed, 0, 0, 0, 0])


def claimed() -> Story:
    """A task on lease."""
    return stored().store("history", KEY, record(TOKEN)).store("lease", LEASE, HELD)


def ended(kind: int) -> Story:
    """A task whose claim its holder ended."""
    return stored().store("history", KEY, record(TOKEN, flags=kind))


def counted(value: bytes) -> Story:
    return stored().store("ready", READY, b"").store("counts", COUNTS, value)


def revived() -> Story:
    """A task that began anew once."""
    return stored().store("history", KEY, TaskHistory(revived=revival_of(1, TOKEN)).encode())


def revival(request: int) -> m.Message:
    return m.Revive(request, TASK)


def unheard(request: int) -> m.Message:
    return m.Renew(request, 50, TASK, pack_u64([TOKEN]))


def put() -> Story:
    """A setting that all nodes have."""
    row = m.SettingRow(PAUSED, "q", 5, "ops", YES)
    return Story().store("meta", setting_key(PAUSED, "q"), encode_setting(row))


def denied(at_ms: int) -> Story:
    """A task that was revived and claimed by 20 ms, and is said not to be dead."""
    rows = encode_claim(TOKEN, 10, 99, b"w", FAILED, 50) + encode_claim(NEWER, 20, 99, b"w")
    return (stored().store("history", KEY, encode_mark(REVIVED, 1, TOKEN) + rows).claim(NEWER, 15, 20)
            .tell(lambda request: m.Revive(request, TASK), m.Revived(0, bytes([m.Revival.NOT_DEAD])), at_ms))


NEEDY = Body(Header("q", policy=1, dep_wait_ms=9), deps=(TASK,)).encode()
NEEDY_OF_TWO = Body(Header("q", policy=1, dep_wait_ms=9), deps=(TASK, OTHER)).encode()


def note(task: bytes, token: int, seq: int) -> bytes:
    return tables.log_key(PREFIX, task, token, seq)


def blocked() -> Story:
    """A task that waits for another one, which nobody has enqueued."""
    return (Story().store("body", PREFIX + THIRD, NEEDY).store("dep", PREFIX + b"\0" + TASK + THIRD, b"\0\0")
            .store("need", PREFIX + TASK + THIRD, b""))


def twice_blocked() -> Story:
    """One that waits for two."""
    return (Story().store("body", PREFIX + THIRD, NEEDY_OF_TWO)
            .store("dep", PREFIX + b"\0" + TASK + THIRD, b"\0\0")
            .store("dep", PREFIX + b"\0" + OTHER + THIRD, b"\0\1"))


def subscribed(family: int) -> Story:
    """A task that partition 5 waits for, or is to be told of as done."""
    row = PREFIX + bytes([family]) + TASK + b"\0\5" + b"\1" * family
    return stored().store("log", note(TASK, 2, 5), b"").store("tell", row, b"")


ENTRIES = ((TOKEN, 3, b"entry"),)


def seen() -> Story:
    """A task that was shown with all it had."""
    return Story().read(40, history=record(TOKEN, done=TOKEN), entries=ENTRIES)


def mark(kind: int, a: int) -> bytes:
    return encode_mark(kind, a, 1)


def marked(kind: int, a: int) -> Story:
    """A task that was shown with a mark."""
    return Story().read(40, history=mark(kind, a))


def twice(client: str, request: int) -> Story:
    """One request number, two operations."""
    story = Story()
    for at_ms in (1, 5):
        operation = story.history.invoke(at_ms, client, "n1", request, m.Count(request, ""))
        story.history.finish(at_ms + 1, operation, UNSURE)
    return story


CASES: Cases = {
    interface.retries_are_one_effect: (
        {
            "an enqueue is a conflict": (lambda: Story().enqueue().enqueue(REFUSED, at_ms=5), "c2#2"),
            "a completion is a conflict": (lambda: Story().complete().complete(answer=REFUSED), "c2#2"),
            "an entry is a conflict": (lambda: Story().append().append(REFUSED), "c2#2"),
            "an earlier one is": (lambda: Story().append(REFUSED).append(UNSURE).append(), "c1#1"),
            "a batch is": (lambda: Story().enqueue(task=TASK + OTHER).enqueue(REFUSED, task=TASK + OTHER), "c2#2"),
            "one of a batch is": (lambda: Story().enqueue(task=TASK + OTHER).enqueue(REFUSED), "c2#2"),
            "a number is used twice": (lambda: twice("c", 3), "c#3"),
        },
        lambda: Story().enqueue().enqueue().enqueue(BUSY).enqueue(REFUSED, b"other")
        .enqueue(REFUSED, task=TASK + OTHER).append(REFUSED).append(UNSURE).append(REFUSED, b"x", seq=4)),
    interface.refusals_have_no_effect: (
        {
            "a task is there": (lambda: stored(("n2",)).enqueue(REFUSED), "n2"),
            "a task is claimed": (lambda: Story().enqueue(BUSY).claim(), "w#2"),
            "an entry is there": (lambda: Story().append(REFUSED).store("log", log_key(3), b"entry"), "n1"),
            "an entry is read": (
                lambda: Story().append(REFUSED).read(20, entries=((TOKEN, 3, b"entry"),)), "c2#2"),
            "a completion is there": (lambda: completed().complete(answer=BUSY), "n1"),
            "a failure is there": (lambda: ended(FAILED).tell(lambda request: m.Conclude(
                request, FAILED, -1, TASK, pack_u64([TOKEN])), BUSY), "n1"),
            "a release is there": (lambda: ended(RELEASED).tell(lambda request: m.Renew(
                request, 0, TASK, pack_u64([TOKEN])), BUSY), "n1"),
            "a release by who was never granted the claim is there": (
                lambda: ended(RELEASED).claim().tell(lambda request: m.Conclude(
                    request, RELEASED, 0, TASK, pack_u64([TOKEN])), FORGED), "n1"),
            "a checkpoint is there": (
                lambda: Story().mark(1, answer=REFUSED).store("log", slot(), record_of(TOKEN, 1)), "n1"),
            "open too long": (lambda: Story().know(patience_ms=500, end_ms=1_600).ask(99), "c#99"),
            "answered too late": (
                lambda: Story().know(patience_ms=500).tell(m.Describe, UNSURE, 10, 1_511, "late"), "late#1"),
            "a revival is denied": (lambda: denied(30), "c2#2"),
            "a cancelling is there": (
                lambda: stored().cancel(answer=BUSY).store("history", KEY, encode_mark(CANCELLED, 5, 0)), "n1"),
            "what is not there is cancelled": (lambda: stored().cancel(task=OTHER), "c1#1"),
            "a refused call did it at first": (
                lambda: stored().enqueue(None).enqueue(REFUSED).call(Status.FAIL, last=2), "n1"),
            "an end that a leader refused is there": (lambda: ended(FAILED).conclude(TOKEN, 0, 20), "n1"),
            "a renewal that a leader refused is there": (
                lambda: Story().claim(end_ms=60).renew(TOKEN, 0, 20).store("history", KEY, record(TOKEN)), "n1"),
            "a renewal of a refused call is there": (
                lambda: Story().claim(end_ms=60).tell(unheard, None).call(Status.FAIL, "renew")
                .store("history", KEY, record(TOKEN)), "n1"),
            "a revival that was refused at the second asking is there": (
                lambda: revived().tell(revival, None).tell(revival, m.Revived(0, bytes([m.Revival.NOT_DEAD])))
                .call(Status.FAIL, "retry", last=2), "n1 shows 1 revivals"),
            "a setting that was refused is there": (lambda: put().put(5, answer=REFUSED), "n1 has"),
        },
        lambda: stored().enqueue(REFUSED).enqueue(UNSURE).enqueue(REFUSED, b"other").append(BUSY)
        .know(patience_ms=500, end_ms=1_600).ask(100).claim_nothing(m.Claimed(0, 0, ()))
        .store("history", KEY, record(TOKEN))
        .tell(lambda request: m.Claim(request, "q", 1, 50, 1_000, "w"), UNSURE, 10, 2_500)
        .enqueue(None).enqueue(REFUSED).call(Status.INFO, last=2)
        .claim(end_ms=60).renew(TOKEN, 99, 15).renew(TOKEN, 0, 20).conclude(TOKEN, 0, 20)
        .tell(lambda request: m.Conclude(request, RELEASED, 0, TASK, pack_u64([TOKEN + 1])), FORGED)
        .store("history", KEY, record(TOKEN + 1, flags=RELEASED))),
    interface.reads_show_what_was_done: (
        {
            "no task": (lambda: Story().enqueue().read(20, is_there=False), "c2#2"),
            "another body": (lambda: Story().enqueue().read(20, body=b"x"), "c2#2"),
            "no body": (lambda: Story().enqueue().read(20), "c2#2"),
            "no completion": (lambda: Story().complete().read(20, history=record(TOKEN)), "completed"),
            "no history": (lambda: Story().complete().read(20), "completed"),
            "no entry": (lambda: Story().append().read(20, entries=((TOKEN, 2, b"entry"),)), "c2#2"),
            "other entry": (lambda: Story().append().read(20, entries=((TOKEN, 3, b"x"),)), "c2#2"),
            "no claim": (lambda: Story().claim().read(20, history=record(TOKEN + 1)), "c2#2"),
            "no checkpoint": (lambda: Story().mark(1).read(20), "c2#2"),
            "an older checkpoint": (
                lambda: Story().mark(1).read(20, entries=((0, 0, record_of(TOKEN, 0)),)), "c2#2"),
            "a checkpoint that was seen": (
                lambda: Story().read(10, entries=((0, 0, record_of(NEWER, 0)),))
                .read(20, entries=((0, 0, record_of(TOKEN, 9)),)), "lacks checkpoint"),
            "no second entry": (
                lambda: Story().append().append(seq=4, at_ms=15).read(20, entries=((TOKEN, 3, b"entry"),)),
                "c3#3"),
            "no setting": (lambda: Story().put(5).read_setting(20, 0), "c2#2"),
            "an older setting": (lambda: Story().put(5).read_setting(20, 4), "c2#2"),
            "another value": (lambda: Story().put(5).read_setting(20, 5, b""), "c2#2"),
            "an older setting than the newest": (
                lambda: Story().put(6).put(5, at_ms=9).read_setting(20, 5), "c3#3"),
            "a version that is taken": (lambda: Story().put(5).read_setting(20, 5, version=5), "c2#2"),
            "a setting of a majority": (
                lambda: Story().put(5, copies=2).read_setting(20, 4).know(is_fixed=True), "c2#2"),
            "a claim that was seen": (
                lambda: seen().read(60, history=record(done=TOKEN), entries=ENTRIES), "lacks ('claimed'"),
            "an end that was seen": (
                lambda: Story().read(4, history=record(TOKEN, flags=1)).read(9, history=record(TOKEN)), "'ended'"),
            "an entry that was seen": (
                lambda: seen().read(60, history=record(TOKEN, done=TOKEN)), "lacks ('entry'"),
            "a completion that was seen": (
                lambda: seen().read(60, history=record(TOKEN), entries=ENTRIES), "lacks ('completed'"),
            "a cancelling that was seen": (
                lambda: marked(CANCELLED, 5).read(60, history=record()), "lacks ('cancelled'"),
            "a revival that was seen": (
                lambda: marked(REVIVED, 2).read(60, history=mark(REVIVED, 1)), "lacks ('revived', 1"),
            "a death that was seen": (lambda: marked(DIED, 2).read(60, history=mark(DIED, 1)), "lacks ('died', 1"),
            "all that was seen": (lambda: seen().read(60, is_there=False), "lacks"),
            "an end that was told": (
                lambda: Story().await_end(2, 40).read(50, history=record(TOKEN)), "lacks ('completed'"),
            "a cancelling that was told": (
                lambda: Story().await_end(5, 40).read(50, history=record(TOKEN)), "lacks ('cancelled'"),
            "a completion that nobody is told of": (
                lambda: seen().await_end(255, 60), "was completed"),
            "a result that is gone": (
                lambda: Story().read(20, history=record(TOKEN, done=TOKEN), entries=((TOKEN, RESULT_SEQ, b"r"),))
                .read(30, history=record(TOKEN, TOKEN + 1, done=TOKEN + 1)), "has no result"),
            "a completion that is told as a cancelling": (lambda: seen().await_end(5, 60), "was completed"),
            "an entry that was told": (
                lambda: Story().read_log(3, 1, 40).read(50, history=record(TOKEN)), "lacks ('entry'"),
            "less than was asked for": (
                lambda: Story().read(60, history=record(TOKEN, done=TOKEN), entries=ENTRIES, least=4), "3 facts"),
            "nothing of what was asked for": (lambda: Story().read(60, is_there=False, least=1), "0 facts"),
            "at the next moment": (lambda: Story().enqueue(at_ms=1).read(3, is_there=False), "c2#2"),
        },
        lambda: lived().read(40, body=BODY, history=record(TOKEN, done=TOKEN), entries=((TOKEN, 3, b"entry"),))
        .enqueue(task=OTHER, at_ms=50).read(51, task=OTHER, is_there=False)
        .complete(60, 1, task=OTHER).enqueue(None, task=THIRD, at_ms=61).read(70, task=OTHER, body=BODY)
        .read(70, task=THIRD, is_there=False).claim(9, 80, task=THIRD).read(90, task=THIRD, history=record(9))
        .put(5).read_setting(20, 5).read_setting(20, 9, UNSET).read_setting(20, 0, queue="r").read_setting(3, 0)
        .put(12, at_ms=25, copies=2).put(13, at_ms=25, answer=UNSURE).read_setting(30, 5)
        .read(95, body=BODY, history=record(TOKEN, done=TOKEN), entries=ENTRIES, least=3)
        .read(96, body=BODY, history=record(TOKEN, done=TOKEN), entries=((TOKEN, 4, b"x"), *ENTRIES))
        .read(97, body=BODY, history=record(TOKEN, done=TOKEN), entries=ENTRIES)
        .await_end(2, 98).await_end(255, 98, task=OTHER).await_end(6, 98, task=THIRD).read_log(3, 1, 98)
        .read(99, is_bare=True).read(101, entries=((TOKEN, 5, b"x"), (TOKEN, 4, b"x"), *ENTRIES), body=BODY,
                                     history=record(TOKEN, done=TOKEN))),
    indexes.counts_match: (
        {
            "never counted": (lambda: stored().store("ready", READY, b""), "n1"),
            "counted twice": (lambda: counted(counts(2)), "n1"),
            "counted where nothing is": (lambda: Story().store("counts", COUNTS, counts(1)), "n1"),
            "a claim not counted": (lambda: claimed().store("counts", COUNTS, counts(1)), "n1"),
            "a completion not counted": (lambda: completed().store("counts", COUNTS, counts(0, 1)), "n1"),
            "on one node": (lambda: counted(counts(1)).store("counts", COUNTS, counts(), NODES[2:]), "n3"),
            "one that waits not counted": (lambda: blocked().store("counts", COUNTS, counts()), "n1"),
        },
        lambda: claimed().store("counts", COUNTS, counts(1, 1, 1)).store("ready", READY[:-20] + OTHER, b"")
        .store("body", PREFIX + OTHER, BODY).store("history", PREFIX + OTHER, record(done=TOKEN))
        .store("body", PREFIX + THIRD, NEEDY).store("dep", PREFIX + b"\0" + TASK + THIRD, b"\0\0")
        .store("body", PREFIX + NAMED_ID, NAMED.encode()).store("ready", NAMED_READY, b"\2")
        .store("counts", COUNTS, pack_u64([2, 1, 1, 0, 1, 0, 0]))),
    indexes.indexes_match: (
        {
            "nowhere": (stored, "n1"),
            "in both": (lambda: claimed().store("ready", READY, b""), "2 places"),
            "completed and ready": (lambda: completed().store("ready", READY, b""), "1 places"),
            "completed and leased": (lambda: completed().store("lease", LEASE, HELD), "1 places"),
            "leased twice": (
                lambda: claimed().store("lease", tables.lease_key(PREFIX, 300, TASK), HELD), "2 places"),
            "in the place of another priority": (
                lambda: stored().store("ready", PREFIX + tables.place_of(Header("q", 1)) + TASK, b""), "0 places"),
            "as old as its window": (
                lambda: named_story(PREFIX + PLACE + NAMED_ID), "0 places"),
            "a window of a name is not noted": (
                lambda: named_story(NAMED_READY).drop("window", WINDOW_KEY, "n2"), "n2: nothing says"),
            "a ready entry of nothing": (lambda: Story().store("ready", READY, b""), "of no task"),
            "a lease of nothing": (lambda: Story().store("lease", LEASE, b"\x00"), "lease entry"),
            "a lease of what is done": (
                lambda: Story().store("lease", LEASE, b"\x00").store("history", KEY, record(done=TOKEN)),
                "lease entry"),
            "waits for what is met": (lambda: blocked().store("log", note(THIRD, 1, 1), b""), "its notes leave"),
            "waits and is ready": (
                lambda: blocked().store("ready", READY[:-20] + THIRD, b"\2"), "2 places"),
            "waits for one of two": (
                lambda: Story().store("body", PREFIX + THIRD, NEEDY_OF_TWO)
                .store("dep", PREFIX + b"\0" + TASK + THIRD, b"\0\0")
                .store("dep", PREFIX + b"\1" + THIRD, b"\0\1"), "its notes leave"),
            "a number of what is waited for is wrong": (
                lambda: twice_blocked().store("dep", PREFIX + b"\1" + THIRD, b"\0\1"), "another number"),
            "a number of nothing": (
                lambda: Story().store("dep", PREFIX + b"\1" + THIRD, b"\0\1"), "waits for nothing"),
            "who waits is no task": (
                lambda: Story().store("dep", PREFIX + b"\0" + TASK + THIRD, b"\0\0"), "is no task"),
            "who waits for a task is not known": (
                lambda: Story().store("log", note(TASK, 2, 5), b""), "lacking for"),
            "a partition waits for what is done": (
                lambda: subscribed(0).store("history", KEY, record(done=TOKEN)), "not made by"),
            "who was told is to be told": (
                lambda: subscribed(1).store("history", KEY, record(done=TOKEN))
                .store("log", note(TASK, 3, 5 << 2 | 1), b""), "not made by"),
            "what a task needs is not known": (
                lambda: blocked().drop("need", PREFIX + TASK + THIRD, "n2"), "n2: need entry"),
            "what is no task needs something": (
                lambda: Story().store("need", PREFIX + TASK + THIRD, b""), "of no task"),
            "told of another end": (
                lambda: Story().store("log", note(TASK, 2, 5), b"").store("history", KEY, record(done=TOKEN))
                .store("log", note(TASK, 3, 5 << 2 | 2), b""), "lacking for"),
        },
        lambda: claimed().store("body", PREFIX + OTHER, BODY).store("ready", READY[:-20] + OTHER, b"")
        .store("log", note(TASK, 2, 5), b"").store("tell", PREFIX + b"\0" + TASK + b"\0\5", b"")
        .store("body", PREFIX + THIRD, NEEDY_OF_TWO).store("log", note(THIRD, 1, 1), b"")
        .store("dep", PREFIX + b"\0" + OTHER + THIRD, b"\0\1").store("dep", PREFIX + b"\1" + THIRD, b"\0\1")
        .store("need", PREFIX + TASK + THIRD, b"").store("need", PREFIX + OTHER + THIRD, b"")
        .store("body", PREFIX + NAMED_ID, NAMED.encode()).store("ready", NAMED_READY, b"\2")
        .store("window", WINDOW_KEY, b"")),
}
