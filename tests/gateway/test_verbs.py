"""Every verb through a real gateway and a real node: what it does, what it answers, and what it refuses."""

from __future__ import annotations

import base64
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner, Result

from gateway.asking import Answer, Asker, until_true
from skuld_py import __version__
from skuld_py.cli.main import main
from skuld_py.client.client import Client
from skuld_py.config import RULES
from skuld_py.embedded.local import LocalCluster
from skuld_py.model.ids import TEXT_CHARS
from skuld_py.model.leases import RATE

pytestmark = pytest.mark.cluster
NO_ID = "0" * TEXT_CHARS
STATES = ("waiting", "claimed", "completed", "scheduled", "blocked", "cancelled", "dead")


def refused(answer: Answer, status: int, code: str, field: str | None) -> dict[str, Any]:
    """That it is a refusal, in the shape of all, about this field."""
    assert answer.status == status, answer
    document: dict[str, Any] = answer.json
    assert (document["code"], document["field"], document["outcome"]) == (code, field, "refused"), document
    assert document["message"] and isinstance(document["retry"], bool) and document["request_id"]
    return document


def name_of(held: dict[str, Any]) -> dict[str, str]:
    """A claim, as whoever acts for it names it."""
    return {name: held[name] for name in ("id", "token", "proof")}


# -- enqueue -------------------------------------------------------------------------------------


def test_a_task_lives_its_life(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue, "sup?")
    waiting = anybody.get(f"/v1/tasks/{task_id}").json
    held = anybody.claim(queue, lease_s=30, holder="mill-7")
    name = name_of(held)
    claimed = anybody.get(f"/v1/tasks/{task_id}").json
    entries = [{"data": "half way"}, {"data_base64": "/w=="}]
    appended = anybody.post("append", {**name, "seq": 0, "entries": entries})
    renewed = anybody.post("renew", {**name, "lease_s": 60})
    done = anybody.post("complete", name)
    after = anybody.get(f"/v1/tasks/{task_id}").json

    assert (waiting["id"], waiting["queue"], waiting["priority"]) == (task_id, queue, 0)
    assert (waiting["payload"], base64.b64decode(waiting["payload_base64"])) == ("sup?", b"sup?")
    assert [document["state"] for document in (waiting, claimed, after)] == ["waiting", "claimed", "completed"]
    assert (held["id"], held["payload"], held["queue"]) == (task_id, "sup?", queue)
    assert held["token"].isdigit() and 0 < held["valid_s"] < 30
    assert appended.json == {"next_seq": 2}
    assert renewed.json["token"] == held["token"] and 30 < renewed.json["valid_s"] < 60
    assert done.json == {"count": 1, "copies": 1}
    [claim] = after["claims"]
    assert (claim["token"], claim["holder"], claim["is_released"]) == (held["token"], "mill-7", False)
    assert after["completed_ms"] == claim["completed_ms"] and after["completed_token"] == held["token"]
    assert [(line["seq"], line.get("data"), line["data_base64"]) for line in claim["log"]] == [
        (0, "half way", base64.b64encode(b"half way").decode()), (1, None, "/w==")]


def test_bytes_that_are_no_text_come_back_as_they_were(anybody: Asker, queue: str) -> None:
    raw = bytes(range(256))

    answer = anybody.post("enqueue", {"queue": queue, "payload_base64": base64.b64encode(raw).decode()})
    held = anybody.claim(queue)

    assert answer.status == 200 and base64.b64decode(held["payload_base64"]) == raw and "payload" not in held


@pytest.mark.parametrize("payload", ["", "\x00\x1b[2J\r\n", "\N{GRINNING FACE}", '{"a": [1]}'])
def test_any_text_is_a_payload(anybody: Asker, queue: str, payload: str) -> None:
    task_id = anybody.enqueue(queue, payload)

    assert anybody.get(f"/v1/tasks/{task_id}").json["payload"] == payload


def test_ids_of_the_callers_make_enqueueing_repeatable(anybody: Asker, queue: str) -> None:
    ids = anybody.get("/v1/ids?count=3").json["ids"]
    tasks = [{"id": task_id, "payload": str(number)} for number, task_id in enumerate(ids)]

    answers = [anybody.post("enqueue_many", {"queue": queue, "tasks": tasks}) for _ in range(3)]
    single = anybody.post("enqueue", {"queue": queue, **tasks[0]})
    other = anybody.post("enqueue", {"queue": queue, "id": ids[0], "payload": "other"})

    assert len({*ids}) == 3 and all(len(task_id) == TEXT_CHARS for task_id in ids)
    assert [answer.json["ids"] for answer in answers] == [ids] * 3
    assert single.json == {"id": ids[0], "is_duplicate": False, "copies": 1}
    refused(other, 409, "conflict", "id")
    assert anybody.get(f"/v1/tasks/count?queue={queue}").json == {"count": 3}
    assert anybody.get(f"/v1/tasks/{ids[0]}").json["payload"] == "0"


def test_higher_priorities_go_first_and_the_oldest_among_equals(anybody: Asker, queue: str) -> None:
    for priority, payload in ((0, "b"), (-5, "c"), (7, "a")):
        anybody.post("enqueue", {"queue": queue, "payload": payload, "priority": priority,
                                 "id": anybody.get("/v1/ids").json["ids"][0]})

    # Across partitions the order is approximate: one at a time, each from the best that is known.
    held = anybody.post("claim", {"queue": queue, "n": 3, "wait_s": 10}).json["claims"]

    assert sorted(claim["payload"] for claim in held) == ["a", "b", "c"]
    assert {claim["payload"]: claim["priority"] for claim in held} == {"a": 7, "b": 0, "c": -5}


def test_copies_beyond_the_replicas_are_refused(anybody: Asker, queue: str) -> None:
    refused(anybody.post("enqueue", {"queue": queue, "payload": "x", "w": 2}), 422, "bad_w", "w")

    assert anybody.get(f"/v1/tasks/count?queue={queue}").json == {"count": 0}


# -- claims --------------------------------------------------------------------------------------


def test_nobody_is_told_to_hold_on_for_longer_than_is_safe(anybody: Asker, queue: str) -> None:
    """Two clocks more, the gateway's and the caller's, may be as wrong as those of the cluster."""
    anybody.enqueue(queue)
    sent = time.monotonic()
    held = anybody.claim(queue, lease_s=100, wait_s=0)
    answered = time.monotonic()
    name = name_of(held)

    renewals = [anybody.post("renew", {**name, "lease_s": 100}).json["valid_s"],
                anybody.post("renew_many", {"claims": [name], "lease_s": 100}).json["valid_s"]]
    took_s = time.monotonic() - sent

    most = 100 * (1 - 2 * RATE) ** 2
    assert held["valid_s"] <= most + (answered - sent) and max(renewals) <= most
    assert min(held["valid_s"], *renewals) > 99 - took_s


def test_a_claim_without_tasks_is_empty(anybody: Asker, queue: str) -> None:
    assert anybody.post("claim", {"queue": queue}).json == {"claims": []}


def test_a_waiting_claim_gets_the_task_that_comes(anybody: Asker, queue: str) -> None:
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(
        anybody.post("claim", {"queue": queue, "wait_s": 20, "lease_s": 30})))
    asking.start()

    task_id = anybody.enqueue(queue)
    asking.join(30)

    [held] = answers[0].json["claims"]
    assert held["id"] == task_id
    # Counted from the sending of the request: what it waited comes on top.
    assert 0 < held["valid_s"] < 51


def test_what_is_claimed_for_somebody_who_has_gone_is_given_back(anybody: Asker, queue: str) -> None:
    body = b'{"queue": "%s", "wait_s": 30, "lease_s": 3600}' % queue.encode()
    with socket.create_connection(anybody.address) as connection:
        connection.sendall(b"POST /v1/tasks/claim HTTP/1.1\r\nhost: localhost\r\n"
                           b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body))
        # Answered after it: so the claim is on its way.
        assert anybody.get("/v1/health").status == 200
    anybody.enqueue(queue)

    assert anybody.claim(queue, wait_s=20)["payload"] == "x"


def test_renewing_says_what_is_lost(anybody: Asker, queue: str) -> None:
    anybody.enqueue(queue)
    anybody.enqueue(queue)
    kept, given = (anybody.claim(queue, lease_s=60) for _ in range(2))
    names = [name_of(held) for held in (kept, given)]
    assert anybody.post("release", {"claims": names[1:]}).json == {"count": 1}

    many = anybody.post("renew_many", {"claims": names, "lease_s": 30})
    single = anybody.post("renew", names[1])

    assert [row["is_held"] for row in many.json["claims"]] == [True, False] and 0 < many.json["valid_s"] < 30
    assert not any(row["is_cancelled"] for row in (*many.json["claims"], anybody.post("renew", names[0]).json))
    assert refused(single, 409, "fenced", None)["retry"] is False
    assert anybody.claim(queue)["id"] == given["id"]


def test_a_claim_that_was_never_granted_is_unknown_to_every_verb(anybody: Asker, queue: str) -> None:
    anybody.enqueue(queue)
    held = anybody.claim(queue, lease_s=60)
    other = {**name_of(held), "token": str(int(held["token"]) + 1)}
    bare = {"id": held["id"], "token": held["token"]}

    for name in (other, bare, {**bare, "proof": "00" * 8}):
        for verb, more in {"renew": {}, "complete": {}, "fail": {}, "snooze": {"delay_s": 1},
                           "append": {"seq": 0, "entries": [{"data": "x"}]}}.items():
            refused(anybody.post(verb, {**name, **more}), 404, "unknown_claim", "proof")
        for verb in ("renew_many", "release", "complete_many", "fail_many"):
            refused(anybody.post(verb, {"claims": [name_of(held), name]}), 404, "unknown_claim", "proof")
    refused(anybody.post("renew", {**bare, "proof": "nonsense"}), 422, "bad_proof", "proof")

    view = anybody.get(f"/v1/tasks/{held['id']}").json
    assert view["state"] == "claimed" and held["proof"] not in json.dumps(view)
    assert anybody.post("renew", {**name_of(held), "token": int(held["token"])}).status == 200


def test_many_are_completed_at_once_and_again(anybody: Asker, queue: str) -> None:
    ids = anybody.post("enqueue_many", {"queue": queue, "tasks": [{"payload": "x"}] * 10}).json["ids"]
    held = anybody.post("claim", {"queue": queue, "n": 10, "wait_s": 10}).json["claims"]
    while len(held) < 10:
        held += anybody.post("claim", {"queue": queue, "n": 10, "wait_s": 10}).json["claims"]
    names = [name_of(claim) for claim in held]
    names[0]["value"], names[1]["result"] = {"pages": [12, None]}, "12"

    answers = [anybody.post("complete_many", {"claims": names}) for _ in range(2)]

    assert [answer.json for answer in answers] == [{"count": 10, "copies": 1}] * 2
    assert {claim["id"] for claim in held} == {*ids}
    ends = anybody.post("results", {"ids": [name["id"] for name in names[:3]]}).json["ends"]
    assert [(end["result_type"], end["value"]) for end in ends] == [
        ("json", {"pages": [12, None]}), ("bytes", None), ("none", None)]
    row = next(row for row in anybody.get("/v1/queues").json["queues"] if row["queue"] == queue)
    assert row == {"queue": queue, **dict.fromkeys(STATES, 0), "completed": 10}


def test_a_checkpoint_is_set_with_an_entry_or_alone_and_not_by_a_claim_that_is_over(anybody: Asker,
                                                                                   queue: str) -> None:
    task_id = anybody.enqueue(queue)
    name = name_of(anybody.claim(queue))
    assert anybody.get(f"/v1/tasks/{task_id}").json["checkpoint"] is None

    both = {**name, "seq": 0, "entries": [{"data": "a"}], "checkpoint": "row 1"}
    assert anybody.post("append", both).json == {"next_seq": 1}
    alone = {**name, "seq": 1, "number": 7, "checkpoint_base64": "cm93IDI="}
    assert anybody.post("append", alone).json == {"next_seq": 1}
    refused(anybody.post("append", {**name, "seq": 1}), 422, "bad_count", "entries")
    refused(anybody.post("append", {**alone, "checkpoint_base64": "eA=="}), 409, "conflict", "seq")
    anybody.post("release", {"claims": [name]})
    refused(anybody.post("append", {**alone, "number": 8}), 409, "fenced", "checkpoint")

    shown = anybody.get(f"/v1/tasks/{task_id}").json["checkpoint"]
    assert {key: shown[key] for key in ("token", "number", "size", "result_type", "checkpoint")} == {
        "token": name["token"], "number": 7, "size": 5, "result_type": "bytes", "checkpoint": "row 2"}


def test_the_same_entry_again_is_harmless_and_another_one_is_refused(anybody: Asker, queue: str) -> None:
    anybody.enqueue(queue)
    held = anybody.claim(queue)
    entry = {**name_of(held), "seq": 0, "entries": [{"data": "a"}]}

    answers = [anybody.post("append", entry) for _ in range(2)]
    other = anybody.post("append", {**entry, "entries": [{"data": "b"}]})

    assert [answer.json for answer in answers] == [{"next_seq": 1}] * 2
    refused(other, 409, "conflict", "seq")


def test_an_attempt_fails_is_put_off_and_ends_with_a_result(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue)
    failed = anybody.claim(queue)
    failure = {**name_of(failed), "error": "no", "retry_in_s": 0}
    assert anybody.post("fail", failure).status == 200
    put_off = anybody.claim(queue)
    assert anybody.post("snooze", {**name_of(put_off), "delay_s": 0}).status == 200
    last = anybody.claim(queue)
    name = name_of(last)

    both = anybody.post("complete", {**name, "result": "x", "result_base64": "eA=="})
    done = anybody.post("complete", {**name, "result": "42"})
    late = anybody.post("fail", name_of(put_off))

    refused(both, 422, "bad_result", "result")
    assert done.status == 200 and late.status == 409
    view = anybody.get(f"/v1/tasks/{task_id}").json
    assert (view["result"], view["error"], view["state"]) == ("42", "no", "completed")


def test_an_attempt_that_fails_for_good_leaves_its_task_dead(anybody: Asker, queue: str) -> None:
    anybody.enqueue(queue)
    one = name_of(anybody.claim(queue))

    assert anybody.post("fail", {**one, "error": "no such day", "final": True}).status == 200

    dead = anybody.get(f"/v1/tasks/{one['id']}").json
    assert (dead["state"], dead["death"], dead["error"]) == ("dead", "permanent", "no such day")


def test_who_asks_for_a_unique_name_again_is_told_so(anybody: Asker, queue: str) -> None:
    task = {"queue": queue, "payload": "x", "unique": "n"}

    first, again = (anybody.post("enqueue", task).json for _ in range(2))
    many = anybody.post("enqueue_many", {"queue": queue, "tasks": [
        {"payload": "y", "unique": "n"}, {"payload": "z", "unique": "m"}]}).json

    assert first["id"] == again["id"] == many["ids"][0] != many["ids"][1]
    assert (first["is_duplicate"], again["is_duplicate"], many["are_duplicates"]) == (False, True, [True, False])


def test_an_entry_too_large_is_refused(anybody: Asker, queue: str) -> None:
    anybody.enqueue(queue)
    held = anybody.claim(queue)
    claim = {name: held[name] for name in ("id", "token", "proof")}

    answer = anybody.post("append", {**claim, "seq": 0, "entries": [{"data": "x" * 65_537}]})

    assert (answer.status, answer.json["code"], answer.json["field"]) == (413, "entry_too_large", "entries")


def test_what_is_cancelled_can_be_claimed_by_nobody_and_what_lives_is_not_retried(
    anybody: Asker, queue: str
) -> None:
    living, cancelled = [anybody.enqueue(queue) for _ in range(2)]

    alive = anybody.post("retry", {"ids": [living]})
    assert anybody.post("cancel", {"ids": [cancelled]}).json == {"count": 1, "completed": 0}

    refused(alive, 409, "not_dead", "ids")
    assert anybody.claim(queue)["id"] == living
    assert anybody.post("claim", {"queue": queue, "n": 10, "wait_s": 0.3}).json == {"claims": []}
    view = anybody.get(f"/v1/tasks/{cancelled}").json
    assert (view["state"], view["claims"]) == ("cancelled", []) and view["cancelled_ms"] > 0


def test_what_had_been_completed_is_not_cancelled_and_each_door_says_so(
        anybody: Asker, cluster: LocalCluster, queue: str) -> None:
    done = anybody.enqueue(queue)
    anybody.post("complete", name_of(anybody.claim(queue)))
    waits = [anybody.enqueue(queue) for _ in range(2)]

    answer = anybody.post("cancel", {"ids": [done, *waits, done]}).json
    said = [CliRunner().invoke(main, ["cancel", *words, "--nodes", ",".join(cluster.addresses)]).stdout
            for words in ([done, *waits], [done, "--json"], waits)]

    assert answer == {"count": 2, "completed": 1}
    assert said[0] == "2 tasks cancelled, 1 had been completed\n" and said[2] == "2 tasks cancelled\n"
    assert json.loads(said[1]) == {"cancelled": 0, "completed": 1}


def test_what_waits_in_a_queue_is_purged_over_http_and_on_the_command_line(
        anybody: Asker, cluster: LocalCluster, queue: str) -> None:
    def skuld(*arguments: str) -> Result:
        return CliRunner().invoke(main, ["purge", *arguments, "--nodes", ",".join(cluster.addresses)])
    body = json.dumps({"queue": queue}).encode()
    ids = [anybody.enqueue(queue) for _ in range(3)]
    claimed = anybody.claim(queue)["id"]

    answers = [anybody.ask("POST", "/v1/queues/purge", body, content_type="application/json") for _ in range(2)]
    ids.append(anybody.enqueue(queue))
    said = [skuld(queue), skuld(queue, "--json"), skuld("a b")]

    assert [answer.json for answer in answers] == [{"count": 2}, {"count": 0}]
    assert said[0].stdout == f"1 task of {queue} cancelled\n"
    assert json.loads(said[1].stdout) == {"queue": queue, "cancelled": 0}
    assert said[2].exit_code == 1 and "queue: 'a b'" in said[2].stderr
    states = {task_id: anybody.get(f"/v1/tasks/{task_id}").json["state"] for task_id in ids}
    assert states == dict.fromkeys(ids, "cancelled") | {claimed: "claimed"}


def test_what_runs_when_it_is_cancelled_goes_to_nobody_else(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue)
    held = anybody.claim(queue)
    anybody.post("cancel", {"ids": [task_id]})
    running = anybody.get(f"/v1/tasks/{task_id}").json["state"]
    name = name_of(held)
    until_true(lambda: bool(anybody.post("renew", name).json["is_cancelled"]))
    told = [anybody.post("renew", name).json, *anybody.post("renew_many", {"claims": [name]}).json["claims"]]

    anybody.post("release", {"claims": [name]})

    assert [each["is_cancelled"] for each in told] == [True, True] and told[1]["is_held"]
    assert (running, anybody.get(f"/v1/tasks/{task_id}").json["state"]) == ("claimed", "cancelled")
    assert anybody.post("claim", {"queue": queue, "wait_s": 0.3}).json == {"claims": []}


# -- options -------------------------------------------------------------------------------------


def test_what_a_task_is_enqueued_with_is_what_is_read(anybody: Asker, queue: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    due_ms, expires_ms = now_ms + 3_600_000, now_ms + 7_200_000
    answer = anybody.post("enqueue", {
        "queue": queue, "payload": "x", "not_before_ms": due_ms, "expires_ms": expires_ms,
        "headers": {"trace": "7"}, "retry": {"max_attempts": 3, "backoff_s": 0.5, "jitter": 0}})

    view = anybody.get(f"/v1/tasks/{answer.json['id']}").json
    assert (view["state"], view["due_ms"], view["expires_ms"]) == ("scheduled", due_ms, expires_ms)
    assert (view["headers"], view["max_attempts"], view["death"]) == ({"trace": "7"}, 3, None)
    assert anybody.post("claim", {"queue": queue}).json == {"claims": []}
    row = next(row for row in anybody.get("/v1/queues").json["queues"] if row["queue"] == queue)
    assert row == {"queue": queue, **dict.fromkeys(STATES, 0), "scheduled": 1}


def test_each_of_many_has_times_of_its_own(anybody: Asker, queue: str) -> None:
    now_ms = time.time_ns() // 1_000_000
    times: list[dict[str, int]] = [{}, {"not_before_ms": now_ms + 3_600_000}, {"expires_ms": now_ms + 3_600_000}]
    ids = anybody.post("enqueue_many", {"queue": queue, "retry": {"max_attempts": 7}, "tasks": [
        {"payload": "x", **time_ms} for time_ms in times]}).json["ids"]

    views = {view["id"]: view for view in anybody.post("get_many", {"ids": ids}).lines}

    assert [(views[made]["state"], views[made]["due_ms"], views[made]["expires_ms"]) for made in ids] == [
        ("waiting", None, None), ("scheduled", times[1]["not_before_ms"], None),
        ("waiting", None, times[2]["expires_ms"])]
    assert {view["max_attempts"] for view in views.values()} == {7}


def test_a_task_that_has_no_attempt_left_is_dead_until_it_is_retried(anybody: Asker, queue: str) -> None:
    answer = anybody.post("enqueue", {"queue": queue, "payload": "x",
                                      "retry": {"max_attempts": 1, "backoff_s": 0}})
    task_id = answer.json["id"]
    lost = anybody.claim(queue)
    anybody.post("release", {"claims": [name_of(lost)]})
    name = name_of(anybody.claim(queue))

    failed = anybody.post("fail_many", {"claims": [{**name, "error": "no disk"}]})
    dead = anybody.get(f"/v1/tasks/{task_id}").json
    again = anybody.post("fail_many", {"claims": [name_of(lost)]})
    assert anybody.post("retry", {"ids": [task_id]}).json == {"count": 1}

    assert [row["is_failed"] for row in failed.json["claims"]] == [True]
    assert (dead["state"], dead["death"], dead["error"]) == ("dead", "exhausted", "no disk")
    assert (dead["claims"][1]["outcome"], dead["claims"][1]["error"]) == ("failed", "no disk")
    assert again.json["claims"] == [{"id": task_id, "token": lost["token"], "is_failed": False}]
    assert anybody.claim(queue)["id"] == task_id


def test_a_task_that_has_expired_is_claimed_by_nobody(anybody: Asker, queue: str) -> None:
    expires_ms = time.time_ns() // 1_000_000 + 200
    task_id = anybody.post("enqueue", {"queue": queue, "payload": "x", "expires_ms": expires_ms}).json["id"]

    until = time.monotonic() + 60
    while (view := anybody.get(f"/v1/tasks/{task_id}").json)["state"] != "dead":
        assert time.monotonic() < until, view
        for held in anybody.post("claim", {"queue": queue, "wait_s": 0.2}).json["claims"]:
            anybody.post("release", {"claims": [name_of(held)]})
    assert view["death"] == "expired"


def test_each_of_many_completions_has_its_result(anybody: Asker, queue: str) -> None:
    ids = anybody.post("enqueue_many", {"queue": queue, "tasks": [{"payload": "x"}] * 3}).json["ids"]
    held = anybody.post("claim", {"queue": queue, "n": 3, "wait_s": 10}).json["claims"]
    while len(held) < 3:
        held += anybody.post("claim", {"queue": queue, "n": 3, "wait_s": 10}).json["claims"]
    results: dict[str, dict[str, str]] = dict(zip(ids, [{"result": "42"}, {"result_base64": "/w=="}, {}],
                                                  strict=True))

    done = anybody.post("complete_many", {"claims": [
        {**name_of(claim), **results[claim["id"]]} for claim in held]})

    assert done.json == {"count": 3, "copies": 1}
    views = {view["id"]: view for view in anybody.post("get_many", {"ids": ids}).lines}
    assert [(views[made].get("result"), views[made]["result_base64"]) for made in ids] == [
        ("42", "NDI="), (None, "/w=="), (None, None)]


# -- queues --------------------------------------------------------------------------------------


def test_nothing_is_claimed_from_a_paused_queue(anybody: Asker, cluster: LocalCluster, queue: str) -> None:
    def ask(verb: str) -> Answer:
        body = b'{"queue": "%s"}' % queue.encode()
        return anybody.ask("POST", f"/v1/queues/{verb}", body, content_type="application/json")
    task_id = anybody.enqueue(queue)

    pausing = ask("pause")
    while_paused = anybody.post("claim", {"queue": queue, "wait_s": 0.3}).json
    typed = CliRunner().invoke(main, ["claim", queue, "--nodes", ",".join(cluster.addresses)])
    paused = anybody.get("/v1/queues/paused").json["queues"]
    with Client(cluster.addresses) as client:
        same, claims = client.paused(), client.claim(queue)
    resuming = ask("resume")

    assert pausing.json == {"queue": queue, "is_paused": True, "missing": []}
    assert (claims, claims.withheld, while_paused) == ([], "paused", {"claims": [], "withheld": "paused"})
    assert (typed.exit_code, typed.stdout) == (0, "") and typed.stderr.startswith(f"{queue} is paused, so nothing")
    assert queue in paused and same == paused
    assert resuming.json == {"queue": queue, "is_paused": False, "missing": []}
    assert anybody.claim(queue)["id"] == task_id and queue not in anybody.get("/v1/queues/paused").json["queues"]


# -- periodic tasks ------------------------------------------------------------------------------


def test_a_schedule_enqueues_until_it_is_removed(anybody: Asker, queue: str) -> None:
    def ask(verb: str, **document: Any) -> Answer:
        return anybody.ask("POST", f"/v1/schedules/{verb}", json.dumps(document).encode(),
                           content_type="application/json")
    put = ask("put", name=queue, queue=queue, payload="tick", every_s=0.2, priority=2, headers={"trace": "7"},
              retry={"max_attempts": 3})
    listed = {row["name"]: row for row in anybody.get("/v1/schedules").json["schedules"]}
    first, second = (anybody.claim(queue) for _ in range(2))
    removed = ask("remove", name=queue)
    count = anybody.get(f"/v1/tasks/count?queue={queue}").json

    assert put.json == removed.json == {"name": queue, "missing": []}
    shown = listed[queue]
    assert (shown["queue"], shown["payload"], shown["every_s"], shown["cron"], shown["priority"]) == (
        queue, "tick", 0.2, None, 2)
    assert shown["headers"] == {"trace": "7"}
    assert (first["payload"], first["priority"]) == ("tick", 2) and first["id"] != second["id"]
    task = anybody.get(f"/v1/tasks/{first['id']}").json
    assert (task["max_attempts"], task["headers"]) == (3, {"trace": "7"})
    assert queue not in {row["name"] for row in anybody.get("/v1/schedules").json["schedules"]}
    assert anybody.post("claim", {"queue": queue, "n": 100, "wait_s": 0}).status == 200
    assert anybody.get(f"/v1/tasks/count?queue={queue}").json["count"] <= count["count"] + 1
    refused(ask("remove", name=queue), 404, "no_such_schedule", "name")
    refused(ask("put", name=queue, queue=queue, cron="61 * * * *"), 422, "bad_cron", "cron")
    refused(ask("put", name=queue, queue=queue, cron="* * * * *", zone="Mars"), 422, "bad_zone", "zone")
    assert ask("put", name=queue, queue=queue).status == ask("put", name=queue, queue=queue, cron="").status == 422


# -- whole queues --------------------------------------------------------------------------------


def post(asker: Asker, path: str, body: dict[str, Any]) -> Answer:
    return asker.ask("POST", path, json.dumps(body).encode(), content_type="application/json")


def test_a_limited_queue_gives_no_more_until_something_ends(anybody: Asker, queue: str) -> None:
    for _ in range(3):
        anybody.enqueue(queue)
    limited = post(anybody, "/v1/queues/limit", {"queue": queue, "concurrency": 1, "rate": 1_000, "burst": 5})
    first = anybody.post("claim", {"queue": queue, "n": 3, "wait_s": 10}).json["claims"]
    second = anybody.post("claim", {"queue": queue, "n": 3}).json["claims"]
    known = anybody.get(f"/v1/queues/limits?queue={queue}").json
    is_listed = queue in [row["queue"] for row in anybody.get("/v1/queues/limits").json["queues"]]
    removed = post(anybody, "/v1/queues/unlimit", {"queue": queue})
    rest = anybody.post("claim", {"queue": queue, "n": 3}).json["claims"]

    assert limited.json == {"queue": queue, "is_limited": True, "missing": []}
    assert removed.json == {"queue": queue, "is_limited": False, "missing": []}
    assert (len(first), len(second), len(rest)) == (1, 0, 2)
    assert known == {"queues": [{"queue": queue, "concurrency": 1, "rate": 1_000, "window_ms": 1_000, "burst": 5}]}
    assert is_listed
    assert anybody.get(f"/v1/queues/limits?queue={queue}").json == {"queues": []}


def test_a_queue_that_caps_its_holders_says_why_a_claim_is_refused(anybody: Asker, queue: str) -> None:
    for _ in range(3):
        anybody.enqueue(queue)
    post(anybody, "/v1/queues/limit", {"queue": queue, "holder_concurrency": 2, "longest_lease_s": 60})
    known = anybody.get(f"/v1/queues/limits?queue={queue}").json
    refused = anybody.post("claim", {"queue": queue, "lease_s": 61})
    first = anybody.post("claim", {"queue": queue, "n": 3, "lease_s": 60, "wait_s": 10}).json["claims"]
    second = anybody.post("claim", {"queue": queue, "lease_s": 60}).json

    assert known == {"queues": [{"queue": queue, "holder_concurrency": 2, "lease_ms": 60_000}]}
    assert refused.status == 422 and (refused.json["code"], refused.json["field"]) == ("lease_too_long", "lease_s")
    assert "allows, 60 s" in refused.json["message"]
    assert len(first) == 2 and second == {"claims": [], "withheld": "capped"}


@pytest.mark.parametrize(("limits", "field"), [
    ({}, "concurrency"), ({"concurrency": 0}, "concurrency"), ({"concurrency": 1.0}, "concurrency"),
    ({"concurrency": None}, "concurrency"), ({"concurrency": 1_000_001}, "concurrency"), ({"rate": "5"}, "rate"),
    ({"rate": 5, "per_s": 0}, "per_s"), ({"rate": 5, "per_s": 1e9}, "per_s"), ({"burst": 5}, "burst"),
    ({"rate": 5, "burst": 0}, "burst"), ({"key_concurrency": 1_001}, "key_concurrency"), ({"width": 1}, "width"),
    ({"holder_concurrency": 1_000_001}, "holder_concurrency"), ({"longest_lease_s": 0}, "longest_lease_s"),
    ({"longest_lease_s": 86_401}, "longest_lease_s"),
])
def test_limits_without_sense_are_refused_by_field(anybody: Asker, queue: str, limits: dict[str, Any],
                                                   field: str) -> None:
    answer = post(anybody, "/v1/queues/limit", {"queue": queue, **limits})

    assert answer.status == 422, answer
    assert (answer.json["field"], answer.json["outcome"]) == (field, "refused")
    assert anybody.get(f"/v1/queues/limits?queue={queue}").json == {"queues": []}


# -- reading -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [f"/v1/tasks/{NO_ID}", f"/v1/tasks/{NO_ID}/log"])
def test_an_unknown_task_is_404(anybody: Asker, path: str) -> None:
    refused(anybody.get(path), 404, "no_such_task", "id")


@pytest.mark.parametrize("task_id", ["foo", "w" * 32, "0" * 31, "0" * 33, "%00", "..%2f", "%2e%2e", "%ff",
                                     "0" * 5_000])
def test_what_is_no_id_is_404_too(anybody: Asker, task_id: str) -> None:
    assert anybody.get(f"/v1/tasks/{task_id}").json["code"] in ("no_such_task", "no_such_route")
    assert anybody.get(f"/v1/tasks/{task_id}").status == 404


def test_the_status_is_the_clusters(anybody: Asker, cluster: LocalCluster) -> None:
    document = anybody.get("/v1/status").json

    assert [(node["name"], node["release"], node["rules"]) for node in document["nodes"]] == [
        (address, __version__, RULES) for address in cluster.addresses]
    assert [(row["partition"], row["leader"]) for row in document["partitions"]] == [
        (0, cluster.addresses[0]), (1, cluster.addresses[0])]


def test_health_needs_no_cluster(cluster: LocalCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        lonely = Asker(cluster.start_gateway("--nodes", address, "--timeout", "300ms")[0])

        assert lonely.get("/v1/health").json == {"is_well": True}
        lost = lonely.get("/v1/queues")

    assert lost.status == 503 and lost.json["code"] == "unreachable" and lost.json["retry"]
    assert lost.json["outcome"] == "refused" and lost.headers["retry-after"] == "1"


# -- uncertain -----------------------------------------------------------------------------------


def test_what_is_uncertain_is_told_apart_from_what_is_refused(cluster: LocalCluster, queue: str) -> None:
    """A node that stands still has taken the request, and may yet carry it out."""
    asker = Asker(cluster.start_gateway("--timeout", "1s")[0])
    task_id = asker.enqueue(queue)
    held = asker.claim(queue, lease_s=60)
    process = cluster.node_process_id(0)
    assert process is not None
    verbs: dict[str, Callable[[], Answer]] = {
        "claim": lambda: asker.post("claim", {"queue": queue}),
        "enqueue": lambda: asker.post("enqueue", {"queue": queue, "payload": "y"}),
        "enqueue with id": lambda: asker.post("enqueue", {"queue": queue, "payload": "x", "id": task_id}),
        "complete": lambda: asker.post("complete", name_of(held)),
    }
    asker.get("/v1/ids")  # so that making ids does not have to wait for the node's greeting
    os.kill(process, signal.SIGSTOP)
    try:
        answers = {name: verb() for name, verb in verbs.items()}
    finally:
        os.kill(process, signal.SIGCONT)

    assert {name: answer.status for name, answer in answers.items()} == dict.fromkeys(verbs, 504)
    assert {answer.json["outcome"] for answer in answers.values()} == {"uncertain"}
    assert {name: answer.json["retry"] for name, answer in answers.items()} == {
        "claim": False, "enqueue": False, "enqueue with id": True, "complete": True}
    assert answers["enqueue with id"].json["ids"] == [task_id]
    [fresh] = answers["enqueue"].json["ids"]
    until = time.monotonic() + 60
    while (again := asker.post("enqueue", {"queue": queue, "payload": "y", "id": fresh})).status != 200:
        assert time.monotonic() < until, again
    assert asker.get(f"/v1/tasks/count?queue={queue}").json == {"count": 2}


# -- the catalogue of the original ---------------------------------------------------------------


def test_ends_are_awaited(anybody: Asker, queue: str) -> None:
    done = anybody.enqueue(queue, "a")
    held = anybody.claim(queue, lease_s=60)
    cancelled, waits = (anybody.enqueue(queue, text) for text in ("b", "c"))
    anybody.post("cancel", {"ids": [cancelled]})
    asked = {"ids": [done, cancelled], "wait_s": 30}
    waiting: list[Answer] = []
    thread = threading.Thread(target=lambda: waiting.append(anybody.post("results", asked)))
    thread.start()
    anybody.post("complete", {**name_of(held), "result": "42"})
    thread.join()

    first, second = waiting[0].json["ends"]
    assert (first["id"], first["state"], first["result"], first["error_base64"]) == (done, "completed", "42", None)
    assert (second["state"], second["result_base64"]) == ("cancelled", None)
    late = anybody.post("results", {"ids": [waits], "wait_s": 0.2}).json["ends"]
    assert late == [{"id": waits, "state": None, "result_type": "none", "value": None, "result_base64": None,
                     "error_base64": None}]
    assert anybody.post("results", {"ids": [waits]}).json["ends"] == late


def test_tasks_are_listed_and_counted_by_state_and_time(anybody: Asker, queue: str) -> None:
    first, second, third = (anybody.enqueue(queue) for _ in range(3))
    anybody.post("cancel", {"ids": [second]})

    def listed(query: str) -> list[str]:
        return [line["id"] for line in anybody.get(f"/v1/tasks/list?queue={queue}&{query}").lines]
    assert listed("state=cancelled") == [second] == listed("state=dead,cancelled&limit=1")
    assert listed("state=waiting") == [first, third]
    made_s = anybody.get(f"/v1/tasks/{third}").json["enqueued_ms"] / 1000
    assert third in listed(f"since_s={made_s}") and listed(f"until_s={made_s}&since_s={made_s}") == []
    assert anybody.get(f"/v1/tasks/count?queue={queue}&state=waiting").json["count"] == 2
    refused(anybody.get(f"/v1/tasks/list?queue={queue}&state=waiting,asleep"), 422, "bad_field", "state")


def test_tasks_are_listed_by_an_argument_a_header_or_their_last_error(anybody: Asker, queue: str) -> None:
    task = anybody.post("enqueue", {"queue": queue, "call": "shop:bill", "kwargs": {"day": "2026-11-20"},
                                    "headers": {"tenant": "acme"}}).json["id"]
    claim, = anybody.post("claim", {"queue": queue}).json["claims"]
    anybody.post("fail", {**{name: claim[name] for name in ("id", "token", "proof")}, "error": "no such row",
                          "retry_in_s": 60})
    anybody.enqueue(queue)

    def listed(query: str) -> list[str]:
        return [line["id"] for line in anybody.get(f"/v1/tasks/list?queue={queue}&{query}").lines]
    for query in ("argument=day=2026-11-*", "header=tenant=a*", "error=*ROW", "error=*row&state=scheduled"):
        assert listed(query) == [task], query
    for query in ("argument=2026*", "header=tenant", "error=row", "error=*row&state=dead"):
        assert listed(query) == [], query
    refused(anybody.get("/v1/tasks/list?error="), 422, "bad_field", "error")


def test_a_read_shows_no_less_than_was_seen(anybody: Asker, queue: str) -> None:
    task_id = anybody.enqueue(queue)
    anybody.claim(queue, lease_s=60)

    assert anybody.get(f"/v1/tasks/{task_id}?min_seq=1").json["seq"] == 1
    refused(anybody.get(f"/v1/tasks/{task_id}?min_seq=-1"), 422, "bad_field", "min_seq")
    assert anybody.get(f"/v1/tasks/{task_id}?min_seq=2").status == 503


def test_the_routes_of_the_original(anybody: Asker, queue: str) -> None:
    """C3, C5 to C12 of its suite, with what it did wrong put right."""
    ids = [anybody.enqueue(queue, "sup") for _ in range(10)]

    listed = anybody.get(f"/v1/tasks/list?queue={queue}")
    assert [(row["id"], row["payload"]) for row in listed.lines] == [(task_id, "sup") for task_id in sorted(ids)]
    assert anybody.get(f"/v1/tasks/count?queue={queue}").json == {"count": 10}
    assert len(anybody.get("/v1/ids").json["ids"][0]) == TEXT_CHARS
    for method, path in (("POST", "count"), ("POST", "list"), ("GET", "enqueue"), ("GET", "claim"),
                         ("GET", "complete"), ("POST", ids[0])):
        answer = anybody.ask(method, f"/v1/tasks/{path}", b"{}" if method == "POST" else None,
                             content_type="application/json")
        refused(answer, 405, "method_not_allowed", "method")
    for body in (b"{", b""):
        answer = anybody.ask("POST", "/v1/tasks/enqueue", body, content_type="application/json")
        refused(answer, 400, "bad_json", "body")
    refused(anybody.get("/v1/tasks/foo"), 404, "no_such_task", "id")


def test_the_gateway_and_the_client_see_the_same(anybody: Asker, cluster: LocalCluster, queue: str) -> None:
    with Client(cluster.addresses) as client:
        task_id = client.enqueue(queue, b"from python")
        held = anybody.claim(queue, holder="http")
        view = client.get(task_id)

    assert held["id"] == str(task_id) and view.claims[0].holder == "http"
    assert str(view.claims[0].token) == held["token"]
