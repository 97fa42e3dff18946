"""Where a claim is tried first, by what gossip said and what was granted since."""

from __future__ import annotations

from skuld_py.model import columns
from skuld_py.model import messages as m
from skuld_py.model.body import Body, Header, encode_body
from skuld_py.node.knowledge.heads import UNKNOWN, Router, head_of

SLACK_MS = 500
QUEUES_MAX = 20


def task_id(time_ms: int) -> bytes:
    return time_ms.to_bytes(8, "big") + bytes(12)


def head(time_ms: int, priority: int = 0) -> bytes:
    return head_of(priority, task_id(time_ms))


def router(**heads: bytes) -> Router:
    """Each node's head of queue q."""
    made = Router("me", SLACK_MS, QUEUES_MAX)
    for node, at in heads.items():
        made.note(node, ["q"], at)
    return made


def order(made: Router, *others: str) -> list[str]:
    hinted = made.hinted("q", ["a", "b", "c"])
    return made.order("q", [*hinted, *others])


def test_the_best_head_comes_first_by_priority_then_by_age() -> None:
    assert router(a=head(300), b=head(100), c=head(900, 5)).hinted("q", ["a", "b", "c"]) == ["c", "b", "a"]


def test_a_node_that_is_down_is_no_hint() -> None:
    assert router(a=head(1), b=head(2)).hinted("q", ["b"]) == ["b"]


def test_who_has_a_task_of_higher_priority_is_asked_before_oneself() -> None:
    assert order(router(me=head(1, 0), a=head(900, 1))) == ["a", "me"]
    assert order(router(me=head(900, 1), a=head(1, 0))) == ["me", "a"]


def test_who_is_older_by_more_than_a_gossip_s_age_is_asked_before_oneself() -> None:
    assert order(router(me=head(1_000), a=head(499), b=head(500), c=head(1))) == ["c", "a", "me", "b"]


def test_a_node_of_which_nothing_is_told_comes_behind_those_of_which_something_is() -> None:
    made = Router("me", SLACK_MS, QUEUES_MAX)
    made.note("a", ["p", "q"], head(1))
    made.note("b", ["q"], head(5))

    assert made.hinted("q", ["a", "b"]) == ["b", "a"]
    assert made.order("q", ["b", "a", "c"]) == ["me", "b", "a", "c"], "oneself costs nothing to ask"


def test_a_name_that_was_granted_is_as_old_as_its_asking() -> None:
    body = Body(Header("q", window_ms=1_000), payload=b"x", made_ms=700, unique="n")
    made = router(me=head(800), a=head_of(0, task_id(0), 600))
    assert order(router(me=head(1_200), a=head_of(0, task_id(0), 600))) == ["a", "me"]
    assert order(router(me=head(1_200), a=head_of(0, task_id(0), 701))) == ["me", "a"]

    made.note_granted("a", "q", [m.ClaimBatch(task_id(0), 1, 9, columns.pack([body.encode()]))])
    made.note("me", ["q"], head(1_200))
    assert order(made) == ["me", "a"], "what is left there is not older than 700"


def test_a_granted_body_that_makes_no_sense_is_as_old_as_its_id() -> None:
    """Of what one node passes on from another only the headers are checked."""
    header = Body(Header("q", window_ms=1_000), made_ms=700, unique="n").header.encode()
    made = router(me=head(800), a=head(600))
    made.note_granted("a", "q", [m.ClaimBatch(task_id(650), 1, 9, columns.pack([encode_body(header, b"")]))])
    made.note("me", ["q"], head(1_140))

    assert order(made) == ["me", "a"]


def test_an_unknown_head_is_never_surely_better() -> None:
    assert order(router(me=head(9_000), a=UNKNOWN), "c") == ["me", "a", "c"]


def test_the_newest_gossip_replaces_all_that_was_said_before() -> None:
    made = router(a=head(1))
    made.note("a", ["other"], head(1))

    assert made.hinted("q", ["a"]) == []
    assert made.hinted("other", ["a"]) == ["a"]


def test_a_gossip_as_full_as_can_be_replaces_nothing_but_what_it_names() -> None:
    made = router(a=head(7))
    made.note("a", [f"p{number}" for number in range(QUEUES_MAX)], b"")

    assert made.hinted("q", ["a"]) == ["a"]
    made.drop("a")
    assert made.hinted("q", ["a"]) == made.hinted("p5", ["a"]) == []


def test_a_head_that_is_not_told_anew_is_remembered() -> None:
    made = router(a=head(5), b=head(7))
    made.note("a", ["p", "q"], head(1))

    assert made.hinted("q", ["a", "b"]) == ["a", "b"]


def test_what_was_granted_is_not_there_any_more() -> None:
    made = router(me=head(2_000), a=head(100))
    body = encode_body(Header("q").encode(), b"payload")
    granted = m.ClaimBatch(task_id(100) + task_id(1_800), 1, 9, columns.pack([body, body]))
    assert order(made) == ["a", "me"]

    made.note_granted("a", "q", [granted])

    assert order(made) == ["me", "a"]


def test_a_grant_of_nothing_moves_no_head() -> None:
    made = router(me=head(2_000), a=head(100))

    made.note_granted("a", "q", [m.ClaimBatch(b"", 1, 9, columns.pack([]))])

    assert order(made) == ["a", "me"]


def test_who_had_nothing_is_forgotten() -> None:
    made = router(a=head(1))
    assert made.is_listed("a", "q")

    made.forget("a", "q")

    assert made.hinted("q", ["a"]) == []
    assert not made.is_listed("a", "q")
