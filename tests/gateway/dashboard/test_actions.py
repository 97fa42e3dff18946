"""What pages do: only for who may, only by forms of ours, and with a line in the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.dashboard.visiting import ADMIN, ALL, HOST, READER, Visitor
from skuld_py import Retry
from skuld_py.gateway.access import new_token
from skuld_py.gateway.dashboard.forms import fields_of
from skuld_py.gateway.dashboard.looking import ACTIONS
from skuld_py.gateway.dashboard.sessions import LIFE_MS, Sessions

TOKENS = {"all": ALL, "reader": READER, "admin": ADMIN}


@pytest.fixture
def visitor() -> Iterator[Visitor]:
    with Visitor() as made:
        yield made


@pytest.fixture
def guarded() -> Iterator[Visitor]:
    with Visitor(TOKENS) as made:
        yield made


def depth(visitor: Visitor, queue: str) -> Any:
    return visitor.do(visitor.cluster.depths())[queue]


def test_what_pages_can_do_are_the_verbs_of_the_table_that_change_something() -> None:
    assert {"cancel", "retry", "purge", "pause", "resume", "set_limits", "remove_limits", "remove_schedule",
            "put_schedule", "freeze", "unfreeze", "promote", "reorder", "rebalance", "solo",
            "quarantine", "reap", "kill_workflow"} <= ACTIONS.keys()
    assert ACTIONS.keys().isdisjoint({"enqueue", "claim", "complete", "append", "get", "status",
                                      "submit_workflow"})


def test_an_action_says_what_it_will_do_then_does_it_and_is_noted(
        visitor: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    visitor.do(visitor.cluster.enqueue_many("reports", [b"x"] * 7))

    asked = visitor.get("/act/purge?queue=reports&back=/dashboard/queues")
    assert "It cannot be taken back." in asked.words and "Now in queue reports: 7 waiting" in asked.words
    assert depth(visitor, "reports").waiting == 7

    done = visitor.post("/act/purge", {"proof": asked.proof, "queue": "reports", "back": "/dashboard/queues"})
    assert done.status == 200 and "7 tasks of reports cancelled" in done.words
    assert "/dashboard/queues" in done.values("a", "href")
    assert depth(visitor, "reports").waiting == 0
    line, = [each for each in caplog.records if "audit" in each.getMessage()]
    assert line.facts | {"request_id": ""} == {  # type: ignore[attr-defined]
        "event": "action", "verb": "purge", "asked": {"queue": "reports"}, "bearer": "anybody",
        "address": "127.0.0.1", "outcome": "done", "request_id": ""}


def test_each_kind_of_action_is_done(visitor: Visitor) -> None:
    task = visitor.do(visitor.cluster.enqueue("q", b"x"))
    dead = visitor.do(visitor.cluster.enqueue("dying", b"x", retry=Retry(max_attempts=1)))
    claim, = visitor.do(visitor.cluster.claim("dying"))
    visitor.do(visitor.cluster.fail(claim))

    for verb, asked in (
            ("pause", {"queue": "q"}), ("resume", {"queue": "q"}),
            ("set_limits", {"queue": "q", "concurrency": "3", "rate": "5", "per_s": "1.5"}),
            ("remove_limits", {"queue": "q"}), ("freeze", {"reason": "a switch", "for_s": "60"}),
            ("unfreeze", {"partition": "0"}), ("solo", {"off": "on"}), ("rebalance", {}),
            ("put_schedule", {"name": "beat", "queue": "q", "every_s": "60", "payload": "tick"}),
            ("remove_schedule", {"name": "beat"}), ("retry", {"ids": str(dead)}),
            ("cancel", {"ids": [str(task)]})):
        done = visitor.act(verb, **asked)
        assert done.status == 200 and ": done" in done.words, (verb, done.words)

    states = [each.state for each in visitor.do(visitor.cluster.get_many([task, dead]))]
    assert states == ["cancelled", "waiting"]


def test_no_field_of_an_action_is_called_like_those_that_each_form_has() -> None:
    for verb in ACTIONS.values():
        assert {field.name for field in fields_of(verb)}.isdisjoint({"back", "proof"}), verb.name


def test_a_wrong_field_is_named_and_nothing_is_done(visitor: Visitor) -> None:
    for asked, field in (({"queue": "no name!"}, "queue"), ({}, "queue"),
                         ({"queue": "q", "concurrency": "many"}, "concurrency"),
                         ({"queue": "q", "per_s": "1e999"}, "per_s")):
        done = visitor.act("set_limits", **asked)

        assert done.status == 422 and f"{field}: " in done.words, done.words
        assert done.values("div", "class").count("field wrong") == 1
    assert visitor.do(visitor.cluster.limits()) == {}


@pytest.mark.parametrize("headers", [
    {"sec_fetch_site": "cross-site"}, {"sec_fetch_site": "same-site"}, {"sec_fetch_site": "none"},
    {"origin": "http://evil.example"}, {"origin": "null"}, {"cookie": ""}, {"cookie": "skuld-13080=forged"}])
def test_a_form_that_comes_from_elsewhere_does_nothing(visitor: Visitor, headers: dict[str, str]) -> None:
    visitor.do(visitor.cluster.enqueue("q", b"x"))
    proof = visitor.get("/act/purge").proof

    seen = visitor.post("/act/purge", {"proof": proof, "queue": "q"}, **headers)

    assert seen.status == 403 and "forbidden_form" in seen.words
    assert depth(visitor, "q").waiting == 1
    fine = visitor.post("/act/purge", {"proof": proof, "queue": "q"}, sec_fetch_site="same-origin",
                        origin=f"http://{HOST}")
    assert fine.status == 200


def test_a_form_without_the_proof_of_its_session_does_nothing(visitor: Visitor) -> None:
    visitor.do(visitor.cluster.enqueue("q", b"x"))
    with Visitor() as other:
        strange = other.get("/act/purge").proof
    mine = visitor.get("/act/purge").proof

    for proof in ("", strange, mine[:-1], mine.upper() + "x", "ü"):
        assert visitor.post("/act/purge", {"proof": proof, "queue": "q"}).status == 403
    assert visitor.send("POST", "/act/purge", b"{}", {"content_type": "application/json"}).status == 415
    assert visitor.send("GET", "/act/purge?queue=q&proof=" + mine, b"", {}).status == 200  # and asks
    assert depth(visitor, "q").waiting == 1


def test_who_may_only_read_is_offered_nothing_and_refused_all(
        guarded: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    guarded.do(guarded.cluster.enqueue("q", b"x"))
    guarded.sign_in("reader")

    for path in ("/queues", "/tasks?queue=q", "/schedules", "/limits"):
        assert not [each for each in guarded.get(path).values("a", "href") if "/act/" in each]
    for verb in ACTIONS:
        assert guarded.act(verb, queue="q", name="n", node="n", workflow="w", ids="0" * 32).status in (403, 422)
    assert guarded.act("purge", queue="q").status == 403
    assert depth(guarded, "q").waiting == 1
    assert "refused: forbidden_scope" in caplog.text


# -- signing in ----------------------------------------------------------------------------------


def test_pages_are_shown_to_nobody_who_has_not_signed_in(guarded: Visitor) -> None:
    for path in ("", "/tasks?queue=q", "/act/purge", "/api", "/tasks/" + "0" * 32 + "/content"):
        seen = guarded.get(path)
        assert seen.status == 303 and seen.headers["location"].startswith("/dashboard/sign-in?back=%2Fdashboard")
    assert guarded.post("/act/purge", {"queue": "q"}).status == 401
    assert guarded.get("", authorization=f"Bearer {guarded.tokens['all']}").status == 303


def test_a_token_opens_a_session_whose_cookie_no_script_and_no_other_site_has(guarded: Visitor) -> None:
    before = guarded.get("/sign-in")
    seen = guarded.sign_in("admin", "/dashboard/queues?start=0")

    assert seen.status == 303 and seen.headers["location"] == "/dashboard/queues?start=0"
    kept = seen.headers["set-cookie"].lower()
    assert "httponly" in kept and "samesite=strict" in kept and "path=/dashboard" in kept and "secure" not in kept
    assert guarded.tokens["admin"] not in seen.headers["set-cookie"]
    page = guarded.get("/queues")
    assert page.status == 200 and "admin" in page.words and page.proof != before.proof
    assert guarded.get("/v1/queues").status == 401  # the cookie opens pages alone


def test_a_cookie_over_tls_goes_no_other_way() -> None:
    with Visitor(TOKENS, is_secure=True) as visitor:
        kept = visitor.sign_in("all").headers["set-cookie"]

    assert kept.startswith("__Secure-skuld-13080=") and "Secure" in kept


@pytest.mark.parametrize("back", ["https://evil.example", "//evil.example", "/dashboardx", "/dashboard/\\evil",
                                  "javascript:alert(1)", "/v1/queues", "/dashboard/\n\nx"])
def test_signing_in_leads_to_a_page_of_ours_whatever_was_sent(guarded: Visitor, back: str) -> None:
    assert guarded.sign_in("all", back).headers["location"] == "/dashboard"


def test_wrong_tokens_are_refused_counted_and_noted(guarded: Visitor, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    proof = guarded.get("/sign-in").proof

    statuses = [guarded.post("/sign-in", {"proof": proof, "token": new_token()}).status for _ in range(8)]

    assert statuses[0] == 401 and statuses[-1] == 429
    assert "audit: sign_in by - from 127.0.0.1" in caplog.text
    unasked = guarded.post("/sign-in", {"token": guarded.tokens["all"]})
    assert unasked.status == 403


def test_a_session_ends_with_its_token_and_when_it_is_signed_out(guarded: Visitor) -> None:
    guarded.sign_in("all")
    assert guarded.get("/queues").status == 200
    guarded.rights({name: given for name, given in TOKENS.items() if name != "all"})
    assert guarded.get("/queues").status == 303
    guarded.rights({**TOKENS, "all": {**ALL, "until_ms": 1}})
    assert guarded.get("/queues").status == 303

    guarded.rights(TOKENS)
    page = guarded.get("/queues")
    assert guarded.post("/sign-out", {"proof": page.proof}).headers["location"] == "/dashboard/sign-in"
    assert guarded.get("/queues").status == 303


def test_sessions_are_what_this_process_signed_and_end() -> None:
    sessions, others = Sessions(), Sessions()
    session = sessions.begin("a" * 64, 1_000)
    text = sessions.text(session)

    assert sessions.read(text, 1_000) == session
    assert sessions.read(text, 1_000 + LIFE_MS) is None
    assert others.read(text, 1_000) is None
    longer = re.sub(r"\.(\d+)\.", r".9\1.", text)
    for changed in (text.replace("a" * 64, "b" * 64), longer, text[:-1], "", "....", "ü"):
        assert sessions.read(changed, 1_000) is None
    assert sessions.is_proof(session, sessions.proof(session))
    assert not sessions.is_proof(session, sessions.proof(sessions.begin("a" * 64, 1_000)))
