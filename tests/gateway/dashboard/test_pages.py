"""Every page, by the application in this process: what it shows, to whom, and that payloads are text."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from gateway.dashboard.visiting import ALL, EVIL, LIMITED, READER, Seen, Visitor
from skuld_py import Retry
from skuld_py.calls.payloads import call
from skuld_py.gateway.dashboard import tasks
from skuld_py.gateway.dashboard.looking import ACTIONS
from skuld_py.gateway.dashboard.quota_counts import KEPT_S, QuotaCounts
from skuld_py.gateway.dashboard.rates import Rates
from skuld_py.gateway.dashboard.rendering import POLICY, spark
from skuld_py.model import messages as m
from skuld_py.model.overview import Overview
from skuld_py.node.leadership import requests
from skuld_py.node.reads import listing
from skuld_py.verbs.options import STATES

SECTIONS = ("", "/queues", "/tasks", "/workflows", "/schedules", "/limits", "/workers", "/partitions", "/history",
            "/members", "/api")
KNOWN_TAGS = frozenset({
    "html", "head", "meta", "title", "link", "script", "body", "a", "header", "nav", "ul", "li", "div", "span",
    "button", "form", "input", "main", "footer", "h1", "h2", "p", "section", "dl", "dt", "dd", "table", "thead",
    "tbody", "caption", "tr", "th", "td", "small", "strong", "ol", "details", "summary", "pre", "label",
    "fieldset", "legend", "time", "textarea", "select", "option", "meter", "svg", "style", "defs", "marker",
    "path", "rect", "polygon", "g", "text"})


@pytest.fixture
def visitor() -> Iterator[Visitor]:
    with Visitor() as made:
        yield made


@pytest.fixture
def hostile(visitor: Visitor) -> tuple[Visitor, list[str]]:
    """A cluster in which all that users name is hostile; and its tasks' ids, that with most of a story first."""
    return visitor, visitor.do(_hostile(visitor.cluster))


async def _hostile(client: Any) -> list[str]:
    first = await client.enqueue("evil", EVIL.encode(), key=EVIL, headers={EVIL[:40]: EVIL})
    claim, = await client.claim("evil", lease_s=60)
    await client.update(claim, [EVIL, f'{{"kind":"log","at_ms":1,"text":"{EVIL[:25]}"}}',
                                '{"kind":"progress","at_ms":2,"done":3,"total":4,"note":"<b>n</b>"}'],
                        checkpoint=EVIL)
    await client.fail(claim, error=EVIL, retry_in_s=0)
    claim, = await client.claim("evil", lease_s=60)
    await client.complete(claim, result=EVIL)
    dead = await client.enqueue("evil", call(EVIL[:50], EVIL), retry=Retry(max_attempts=1))
    claim, = await client.claim("evil", lease_s=60)
    await client.fail(claim, error=EVIL)
    waits = await client.enqueue("evil", b"\xff\xfe" * 3_000, deps=[dead, first])
    await client.put_schedule("beat", "evil", EVIL.encode(), every_s=60)
    await client.set_limits("evil", concurrency=3, rate=10, per_s=60)
    await client.pause("evil")
    await client.freeze(reason=EVIL)
    return [str(first), str(dead), str(waits)]


def pages_of(ids: list[str]) -> list[str]:
    return [*SECTIONS, *(f"/tasks/{each}{more}" for each in ids for more in ("", "/log")), "/tasks?queue=evil",
            "/tasks?state=dead&state=completed&key=x", "/partitions?node=%3Cb%3E", "/queues?queue=%3Cscript%3E",
            *(f"/act/{verb}?queue=%3Cb%3E%22&reason=%22%3E%3Cscript%3E&ids={ids[0]}&back=javascript:alert(1)"
              for verb in ACTIONS)]


def test_every_page_is_there_and_says_where_one_is(visitor: Visitor) -> None:
    for path in SECTIONS:
        seen = visitor.get(path)

        assert seen.status == 200, (path, seen.words)
        assert seen.values("a", "aria-current") == ["page"], path
        assert seen.values("html", "lang") == ["en"] and seen.values("a", "href")[0] == "#content"
        assert {"viewport"} <= {*seen.values("meta", "name")}


def test_whatever_users_name_is_text_on_every_page(hostile: tuple[Visitor, list[str]]) -> None:
    visitor, ids = hostile
    for path in pages_of(ids):
        seen = visitor.get(path)

        assert seen.status == 200, (path, seen.words)
        assert _strangers_in(seen) == [], path
        assert "\u202e" not in seen.text and "\x1b" not in seen.text and "\x9b" not in seen.text, path


def _strangers_in(seen: Seen) -> list[object]:
    """Markup that no template of ours makes."""
    return [(tag, given) for tag, given in seen.tags
            if tag not in KNOWN_TAGS or any(name.startswith("on") or name == "style" for name in given)
            or (tag == "script" and not (given.get("src") or "").startswith("/dashboard/static/live.js?v="))
            or not (given.get("href") or "/").startswith(("/", "#")) or ("src" in given and tag != "script")]


def test_a_story_has_claims_log_progress_result_error_and_what_it_waits_for(
        hostile: tuple[Visitor, list[str]]) -> None:
    visitor, (first, dead, waits) = hostile

    seen = visitor.get(f"/tasks/{first}")
    assert "completed" in seen.words and "3/4 <b>n</b>" in seen.words
    assert seen.words.count("<script>alert(1)</script>") >= 5  # payload, key, header, error, log
    assert seen.values("meter", "value") == ["0.750"]

    seen = visitor.get(f"/tasks/{waits}")
    assert [tag for tag, _ in seen.tags].count("svg") == 1
    assert f"/dashboard/tasks/{dead}" in seen.values("a", "href")
    assert "blocked" in seen.words and "shown as base64, cut here" in seen.words


def test_what_is_cut_is_fetched_whole_as_a_file_that_no_browser_shows(visitor: Visitor) -> None:
    long = ("<b>" + "x" * 50_000).encode()
    task = visitor.do(visitor.cluster.enqueue("q", long))
    page = visitor.get(f"/tasks/{task}")
    assert len(page.text) < 12_000

    path, = [each for each in page.values("a", "href") if "content?name=payload" in each]
    whole = visitor.get(path.removeprefix("/dashboard"))

    assert whole.text.encode() == long
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-disposition"].startswith("attachment;")
    assert whole.headers["content-security-policy"] == "sandbox"


def test_pages_allow_no_script_but_ours_and_are_kept_by_nobody(visitor: Visitor) -> None:
    seen = visitor.get("")

    assert seen.headers["content-security-policy"] == POLICY and "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'") and "script-src 'self';" in POLICY
    assert seen.headers["cache-control"] == "no-store"
    assert seen.headers["x-content-type-options"] == "nosniff" and seen.headers["x-frame-options"] == "DENY"
    for path in (*seen.values("script", "src"), *seen.values("link", "href")):
        file = visitor.get(path.removeprefix("/dashboard"))
        assert file.status == 200 and "immutable" in file.headers["cache-control"]
    assert visitor.get("/static/..%2fsessions.py").status == 404


def test_tasks_are_found_by_queue_state_function_and_key_a_page_at_a_time(visitor: Visitor) -> None:
    made = visitor.do(visitor.cluster.enqueue_many("a", [call("shop:add", n) for n in range(120)]))
    visitor.do(visitor.cluster.enqueue("b", b"other", key="mine"))

    first = visitor.get("/tasks?queue=a")
    assert first.values("input", "value").count(str(made[0])) == 1
    assert len(_ids(first)) == 50
    found = _ids(first)
    while more := [each for each in first.values("a", "href") if "after=" in each]:
        first = visitor.get(more[-1].removeprefix("/dashboard"))
        assert len(_ids(first)) <= 50
        found += _ids(first)
    assert found == [str(each) for each in made]

    found = visitor.get("/tasks?key=mine")
    assert len(_ids(found)) == 1 and "found among" not in found.text and "search on" not in found.text
    assert len(_ids(visitor.get("/tasks?function=shop:add"))) == 50
    assert _ids(visitor.get("/tasks?function=shop:none")) == []
    assert _ids(visitor.get("/tasks?state=dead")) == []
    assert visitor.get(f"/find?id={made[7]}").headers["location"] == f"/dashboard/tasks/{made[7]}"


def test_tasks_are_found_by_an_argument_a_header_and_their_last_error(visitor: Visitor) -> None:
    add = call("shop:add", 1, day="2026-11-20")
    made = visitor.do(visitor.cluster.enqueue("a", add, headers={"tenant": "acme"}, retry=Retry(max_attempts=1)))
    claim, = visitor.do(visitor.cluster.claim("a"))
    visitor.do(visitor.cluster.fail(claim, error="no such row"))
    visitor.do(visitor.cluster.enqueue_many("a", [call("shop:add", n) for n in range(3)]))

    for query in ("argument=day%3D2026-11-*", "header=tenant%3Da*", "error=*ROW*", "error=*row&argument=1"):
        assert _ids(visitor.get(f"/tasks?{query}")) == [str(made)], query
    assert _ids(visitor.get("/tasks?header=team%3D*")) == _ids(visitor.get("/tasks?error=row")) == []
    seen = visitor.get("/tasks?error=*row&queue=a")
    assert "found among 4" in seen.words and "no such row" in seen.words
    assert "error: " in visitor.get(f"/tasks?error={'x' * 501}").words
    for verb in ("retry_all", "purge_all"):
        href, = [each for each in seen.values("a", "href") if each.startswith(f"/dashboard/act/{verb}?")]
        assert "error=%2Arow" in href and "queue=a" in href
    assert not [each for each in seen.values("a", "href") if "/act/cancel_all" in each], "it knows no errors"


def test_every_action_is_offered_by_some_page(hostile: tuple[Visitor, list[str]]) -> None:
    """But for those about nodes that are down, workflows, and voters that are lost, none of which is here."""
    visitor, ids = hostile
    visitor.do(visitor.cluster.enqueue("held", b"x"))
    held, = visitor.do(visitor.cluster.claim("held"))
    visitor.do(visitor.cluster.set_quota("evil", 9))
    found = {each.partition("/act/")[2].partition("?")[0]
             for path in (*SECTIONS, *(f"/tasks/{each}" for each in (*ids, held.id)), "/tasks?queue=evil")
             for seen in [visitor.get(path)]
             for each in (*seen.values("a", "href"), *seen.values("form", "action"),
                          *seen.values("button", "formaction")) if each and "/act/" in each}

    assert {*ACTIONS} - found <= {"reap", "kill_workflow", "force_epoch", "pause", "withdraw"}


def test_tasks_are_found_by_how_they_were_called_and_failed_and_the_same_are_offered_to_be_retried(
        visitor: Visitor) -> None:
    made = visitor.do(visitor.cluster.enqueue_many("a", [call("shop:add", day=day) for day in ("mon", "tue")],
                                                   headers={"tenant": "acme"}, retry=Retry(max_attempts=1)))
    for claim in visitor.do(visitor.cluster.claim("a", n=2)):
        visitor.do(visitor.cluster.fail(claim, "KeyError: ['day']"))

    seen = visitor.get("/tasks?queue=a&argument=day%3Dtue&header=tenant%3D*&error=*[*")
    assert _ids(seen) == [str(made[1])] and "KeyError: ['day']" in seen.words and "found among 2" in seen.words
    offered = [each for each in seen.values("a", "href") if "/act/" in each]
    assert [each.partition("?")[0].rpartition("/")[2] for each in offered] == ["retry_all", "purge_all"]
    assert all("argument=day%3Dtue&header=tenant%3D%2A&error=%2A%5B%2A" in each for each in offered)
    assert [each.partition("?")[0].rpartition("/")[2] for each in visitor.get("/tasks?queue=a").values("a", "href")
            if "/act/" in each] == ["retry_all", "purge_all", "cancel_all", "move_all"]


def _ids(seen: Seen) -> list[str]:
    return [given["value"] or "" for tag, given in seen.tags if tag == "input" and given.get("name") == "ids"]


def test_a_search_for_what_nodes_do_not_look_into_ends_and_says_how_far_it_came(
        visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "SCANNED", 30)
    made = visitor.do(visitor.cluster.enqueue_many("a", [call("shop:add", n) for n in range(100)]))
    visitor.do(visitor.cluster.enqueue("a", call("shop:rare")))

    seen, steps = visitor.get("/tasks?function=shop:rare"), 0
    assert "among the first 30: search on" in seen.words
    while not _ids(seen):
        on, = [each for each in seen.values("a", "href") if "after=" in each]
        assert "function=shop%3Arare" in on
        seen, steps = visitor.get(on.removeprefix("/dashboard")), steps + 1
    assert steps == 3 and len(made) == 100


def test_a_search_stops_when_its_time_is_over_though_it_has_found_nothing(
        visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes say how far they came, whatever they found; and the page says it, and goes on from there."""
    monkeypatch.setattr(listing, "SCAN_ROWS", 30)
    made = visitor.do(visitor.cluster.enqueue_many("a", [call("shop:add", n) for n in range(100)]))
    visitor.do(visitor.cluster.enqueue_many("a", [b"x"] * 2, delay_s=60))
    monkeypatch.setattr(tasks, "SCAN_S", 60)
    assert len(_ids(visitor.get("/tasks?queue=a&state=scheduled"))) == 2

    monkeypatch.setattr(tasks, "SCAN_S", 0)
    seen, steps = visitor.get("/tasks?queue=a&state=scheduled"), 0
    assert "searched up to 20" in seen.words and "no such tasks up to there: search on" in seen.words
    while not _ids(seen):
        on, = [each for each in seen.values("a", "href") if "after=" in each]
        assert "state=scheduled" in on and "queue=a" in on
        seen, steps = visitor.get(on.removeprefix("/dashboard")), steps + 1
    assert steps == 3 and len(made) == 100 and "searched up to" not in seen.words


def test_quotas_are_shown_with_what_is_open_beside_them(visitor: Visitor) -> None:
    assert "there are no quotas" in visitor.get("/limits").words
    visitor.do(visitor.cluster.set_quota("team-a.", 40))
    visitor.do(visitor.cluster.enqueue_many("team-a.mails", [b"x"] * 3))
    visitor.do(visitor.cluster.cancel(visitor.do(visitor.cluster.enqueue("team-a.sums", b"x"))))

    seen = visitor.get("/limits")
    assert seen.values("meter", "value") == ["3"] and seen.values("meter", "max") == ["40"]
    assert "/dashboard/queues?queue=team-a." in seen.values("a", "href")
    offered = [each for each in seen.values("a", "href") if "prefix=team-a." in each]
    assert [each.partition("?")[0] for each in offered] == [
        "/dashboard/act/set_quota", "/dashboard/act/remove_quota"]


def test_quotas_are_counted_once_for_all_who_look_within_seconds(visitor: Visitor) -> None:
    plain, now, counts = visitor.cluster.quota_use, [100.0], []

    async def quota_use() -> Any:
        counts.append(now[0])
        await asyncio.sleep(0)
        return await plain()

    visitor.cluster.quota_use = quota_use
    uses = QuotaCounts(lambda: now[0])
    call: Any = SimpleNamespace(client=visitor.cluster)

    async def looks(*at_s: float) -> list[Any]:
        found: list[Any] = []
        for now[0] in at_s:
            found += await asyncio.gather(uses.of(call), uses.of(call))
        return [[(row["prefix"], row["open"], row["tasks"]) for row in each["quotas"]] for each in found]

    visitor.do(visitor.cluster.set_quota("a.", 4))
    visitor.do(visitor.cluster.enqueue("a.x", b"x"))
    assert visitor.do(looks(100.0, 100.0 + KEPT_S - 1)) == [[("a.", 4, 1)]] * 4 and counts == [100.0]
    visitor.do(visitor.cluster.set_quota("a.", 9))
    assert visitor.do(looks(101.0)) == [[("a.", 9, 1)]] * 2 and counts == [100.0], "what it is shows at once"
    visitor.do(visitor.cluster.set_quota("b.", 5))
    assert visitor.do(looks(102.0)) == [[("a.", 9, 1), ("b.", 5, 0)]] * 2 and counts == [100.0, 102.0]
    visitor.do(visitor.cluster.enqueue("b.x", b"x"))
    assert visitor.do(looks(102.0 + KEPT_S))[0][1] == ("b.", 5, 1) and counts[2:] == [102.0 + KEPT_S]


def test_open_pages_of_limits_share_a_count(visitor: Visitor) -> None:
    plain, counts = visitor.cluster.quota_use, []

    async def quota_use() -> Any:
        counts.append(1)
        return await plain()

    visitor.cluster.quota_use = quota_use
    visitor.do(visitor.cluster.set_quota("a.", 4))
    for _ in range(3):
        assert visitor.get("/limits").values("meter", "max") == ["4"]
    assert counts == [1]


def test_the_history_of_partitions_says_who_changed_what_and_is_searched(visitor: Visitor) -> None:
    visitor.do(visitor.cluster.freeze(reason="a new <switch>"))

    for path in ("/history", "/history?partition=0", "/history?words=SWITCH"):
        seen = visitor.get(path)
        assert "freeze by" in seen.words and "a new <switch>" in seen.words and "1 revision" in seen.words, path
        assert "/dashboard/history?partition=0" in seen.values("a", "href")
    assert "nothing is known with these words" in visitor.get("/history?words=promote").words
    assert "partition: " in visitor.get("/history?partition=99999").words
    assert "/dashboard/history?partition=0" in visitor.get("/partitions").values("a", "href")


def test_the_history_is_for_who_may_read_all_of_the_cluster() -> None:
    with Visitor({"limited": LIMITED}) as visitor:
        visitor.sign_in("limited")
        assert "not for this token" in visitor.get("/history").words


def test_a_node_is_put_into_quarantine_trusted_again_or_reaped_from_its_row(
        visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    links = [each for each in visitor.get("/members").values("a", "href") if "/act/" in each]
    assert any("/act/quarantine?" in each and "off=" not in each for each in links)
    assert not any("/act/reap?" in each for each in links)

    name = visitor.do(visitor.cluster.status()).node
    held = (m.HeldRow(0, "quarantine", f"{name}, by anna (its disk)", 0),)
    monkeypatch.setattr("skuld_py.node.leadership.requests.held", lambda *arguments: held)
    back, = [each for each in visitor.get("/members").values("a", "href") if "/act/quarantine?" in each]
    asked = visitor.get(back.removeprefix("/dashboard"))
    assert "off=on" in back and "checked" in next(
        given for tag, given in asked.tags if tag == "input" and given.get("name") == "off")


def test_members_are_shown_with_whom_each_watches_and_who_leaves(
        visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> None:
    name = visitor.do(visitor.cluster.status()).node
    monkeypatch.setattr("skuld_py.node.leadership.requests.watches_of", lambda replica: {name: "n<2>:1"})
    seen = visitor.get("/members")
    assert "n<2>:1" in seen.words and "/dashboard/partitions?node=n%3C2%3E%3A1" in seen.values("a", "href")

    described = requests.described
    monkeypatch.setattr("skuld_py.node.leadership.requests.described", lambda *given: attrs.evolve(
        made := described(*given), nodes=tuple(attrs.evolve(row, is_leaving=True) for row in made.nodes)))
    assert "leaves" in visitor.get("/members").words and f"node {name} is taken out" in visitor.get("").words


def test_what_nodes_that_keep_a_partition_did_not_tell_is_shown(visitor: Visitor) -> None:
    seen = visitor.do(visitor.cluster.status())

    async def overview() -> Any:
        return Overview(seen, {"c:1": "no answer"}, frozenset(row.partition for row in seen.partitions))

    visitor.cluster.overview = overview
    assert "c:1" in visitor.get("").words


def test_what_would_do_more_than_the_page_shows_is_not_offered(visitor: Visitor) -> None:
    def offered(query: str) -> set[str]:
        seen = visitor.get(f"/tasks?queue=q&{query}").values("a", "href")
        return {each.partition("?")[0].rpartition("/")[2] for each in seen if "_all?" in each}

    assert offered("") == offered("state=dead") == set(), "nothing was found"
    visitor.do(visitor.cluster.enqueue("q", b"x", retry=Retry(max_attempts=1)))
    assert offered("") == {"purge_all", "cancel_all", "move_all"}, "none is dead"
    for claim in visitor.do(visitor.cluster.claim("q")):
        visitor.do(visitor.cluster.fail(claim, "no"))
    visitor.do(visitor.cluster.enqueue_many("q", [b"x"] * tasks.SHOWN))
    assert offered("") == {"retry_all", "purge_all", "cancel_all", "move_all"}
    behind, = {each for each in visitor.get("/tasks?queue=q").values("a", "href") if "after=" in each}
    assert offered(behind.partition("?")[2]) == {"retry_all", "purge_all", "cancel_all", "move_all"}
    assert offered("state=dead") == {"retry_all"}
    assert offered("state=waiting") == offered("state=dead&state=waiting") == set()


def test_what_waits_for_an_archive_is_shown_of_each_node(visitor: Visitor) -> None:
    seen = attrs.evolve(visitor.do(visitor.cluster.status()), collections=(
        m.CollectionRow("h:1", 3, 0, (), 12_345, 1_795_000_000_000),))

    async def overview() -> Any:
        return Overview(seen)

    visitor.cluster.overview = overview
    words = visitor.get("/members").words
    assert "to be archived" in words and "12,345" in words and "2026-11-18" in words


ADDRESSES = (
    "/tasks?start=99999999999999999999", "/queues?start=-1", "/queues?start=7", "/partitions?start=100000",
    "/members?from=99999999999999", "/tasks?queue=a&after=nonsense", "/tasks?since=yesterday", "/tasks/nonsense",
    "/tasks/00000000000000000000000000000000", "/workflow?id=never", "/act/enqueue", "/act/claim", "/nothing",
    "/tasks?" + "&".join(f"x{n}=1" for n in range(300)), "/tasks?queue=" + "q" * 5_000, "/find",
    "/find?id=%2F..%2F")


def test_whatever_stands_in_an_address_is_answered_with_a_page(visitor: Visitor) -> None:
    for path in ADDRESSES:
        seen = visitor.get(path)

        assert seen.status in (200, 303, 400, 404, 422), (path, seen.words)
        assert len(seen.text) < 60_000, path


def test_many_queues_are_shown_some_at_a_time(visitor: Visitor) -> None:
    for number in range(210):
        visitor.do(visitor.cluster.enqueue(f"queue-{number:03}", b""))

    seen = visitor.get("/queues")
    assert "210 queues" in seen.words and seen.words.count("queue-") == 200
    on, = [each for each in seen.values("a", "href") if "start=200" in each]
    assert visitor.get(on.removeprefix("/dashboard")).words.count("queue-") == 10
    assert visitor.get("/queues?queue=queue-20").words.count("queue-20") >= 10
    assert visitor.get("").words.count("queue-") == 8


def test_rates_are_those_between_two_looks_some_seconds_apart() -> None:
    def row(**counts: int) -> dict[str, Any]:
        return {"queue": "q", **dict.fromkeys(STATES, 0), **counts}

    rates = Rates()
    assert rates.of([row(waiting=10)], 100.0) == {}
    assert rates.of([row(waiting=20)], 101.0) == {}  # too soon to say
    assert attrs.astuple(rates.of([row(waiting=10, completed=20)], 104.0)["q"]) == (5.0, 5.0)
    assert rates.of([row(waiting=10)], 300.0) == {}  # too long ago to say


def test_an_address_that_a_worker_says_is_a_link_and_nothing_else_is() -> None:
    made = spark("4.0.0 local[2] app-1, http://10.0.0.7:4040, javascript:alert(1) <b>")

    assert made.count("<a ") == 1 and 'href="http://10.0.0.7:4040"' in made and "&lt;b&gt;" in made


def test_a_part_that_cannot_be_had_is_said_to_be_so_and_the_others_are_shown() -> None:
    with Visitor({"reader": READER}) as visitor:
        visitor.sign_in("reader")

        seen = visitor.get("")

        assert seen.status == 200
        assert "Not for you." in seen.words and "Queues with most to do" in seen.words


def test_a_token_that_is_limited_to_queues_sees_those_alone() -> None:
    with Visitor({"limited": LIMITED, "all": ALL}) as visitor:
        visitor.do(visitor.cluster.enqueue("secret", b"x"))
        visitor.do(visitor.cluster.enqueue("reports.day", b"x"))
        visitor.sign_in("limited")

        assert len(visitor.get("/tasks?queue=reports.day").values("a", "href")) > 10
        assert "secret" not in visitor.get("/queues").words
        for path in ("/tasks", "/tasks?queue=secret"):
            assert "forbidden_queue" in visitor.get(path).words
        offered = visitor.get("/tasks?queue=reports.day").values("a", "href")
        assert not [each for each in offered if "/act/" in each]
        assert visitor.act("purge", queue="secret").status == 403


def test_the_front_page_leads_to_the_dashboard_and_the_api_page_has_every_operation(visitor: Visitor) -> None:
    front = visitor.get("/")
    assert (front.status, front.headers["location"]) == (303, "/dashboard")
    assert visitor.post("/", {}).status == 404

    seen = visitor.get("/api")
    assert "/v1/tasks/{id}" in seen.words and "enqueue_many" in seen.values("details", "id")
    typed = """curl -H 'content-type: application/json' -d '{"queue": "reports"}' $URL/v1/queues/pause"""
    assert typed in seen.words
