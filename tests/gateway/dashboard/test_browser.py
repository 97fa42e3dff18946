"""The dashboard in a real browser, on a live cluster: every page, each kind of action, hostile payloads as text.

One test, for what costs is the browser and the cluster; it says at each step where it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway import chromium
from gateway.asking import Asker, until_true
from gateway.conftest import Guarded, start_guarded
from gateway.dashboard.visiting import EVIL
from skuld_py.embedded.local import LocalCluster
from skuld_py.gateway.dashboard.looking import ACTIONS

pytestmark = [pytest.mark.slow, pytest.mark.smoke, pytest.mark.cluster]
PAGES = ("", "/queues", "/tasks", "/tasks?queue=evil", "/workflows", "/schedules", "/limits", "/workers",
         "/partitions", "/history", "/history?partition=0", "/members", "/api")
SIGHT = """[document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor,
            document.querySelector('h1').innerText]"""
DESKTOP, PHONE = (1280, 800), (390, 800)


@pytest.fixture
def page() -> Iterator[chromium.Page]:
    program = chromium.found()
    if program is None:
        pytest.skip("NOT TESTED: that the dashboard works in a browser. None is installed here; on Debian and"
                    " Ubuntu: apt-get install chromium")
    with chromium.browser(program) as opened:
        yield opened


@pytest.fixture
def gateway(cluster: LocalCluster, tmp_path: Path) -> Guarded:
    return start_guarded(cluster, tmp_path / "tokens.toml")


def fill(asker: Asker) -> dict[str, str]:
    """A cluster with something on every page, named as badly as can be."""
    def post(path: str, **body: Any) -> Any:
        answer = asker.ask("POST", path, json.dumps(body).encode(), content_type="application/json")
        assert answer.status == 200, answer
        return answer.json

    task = post("/v1/tasks/enqueue", queue="evil", payload=EVIL, key=EVIL, headers={"<b>": EVIL}, priority=9)["id"]
    claim, = post("/v1/tasks/claim", queue="evil")["claims"]
    held = {name: claim[name] for name in ("id", "token", "proof")}
    entry = json.dumps({"kind": "progress", "at_ms": 1, "done": 1, "total": 2, "note": EVIL})
    post("/v1/tasks/append", **held, seq=0, entries=[{"data": EVIL}, {"data": entry}])
    post("/v1/tasks/fail", **held, error=EVIL, retry_in_s=0)
    dead = post("/v1/tasks/enqueue", queue="dying", payload=EVIL, retry={"max_attempts": 1})["id"]
    claim, = post("/v1/tasks/claim", queue="dying")["claims"]
    post("/v1/tasks/fail", **{name: claim[name] for name in ("id", "token", "proof")}, error=EVIL)
    waits = post("/v1/tasks/enqueue", queue="evil", payload=EVIL, deps=[task, dead])["id"]
    post("/v1/schedules/put", name="nightly", queue="evil", payload=EVIL, cron="0 3 * * *")
    post("/v1/queues/limit", queue="evil", concurrency=3)
    post("/v1/workflows/submit", definition={
        "id": "census", "edges": [["pages", "words"]], "metadata": {"by": EVIL},
        "catalog": {"pages": {"kind": "input", "files": f"/data/{EVIL[:29]}", "doc": EVIL[:29]},
                    "words": {"kind": "output", "path": "/data/words"}}})
    return {"task": task, "dead": dead, "waits": waits}


def test_every_page_and_action_in_a_browser(page: chromium.Page, gateway: Guarded) -> None:
    asker = gateway.with_scope("all")
    made = fill(asker)
    walk = Walk(page, gateway.url)

    walk.sign_in(gateway.tokens["all"])
    walk.look_at([*PAGES, f"/tasks/{made['task']}", f"/tasks/{made['task']}/log", f"/tasks/{made['waits']}",
                  f"/tasks/{made['dead']}", "/workflow?id=census", "/act/purge?queue=evil"])
    for path in (f"/tasks/{made['task']}", f"/tasks/{made['waits']}", "/tasks?queue=evil"):
        page.open(walk.url + path)
        assert "<script>alert(1)</script><img src=x onerror=alert(2)>" in page.run("document.body.innerText")
        assert page.run("document.querySelectorAll('main script, main img, main b').length") == 0
    assert walk.drawn(f"/tasks/{made['waits']}") == 3 and walk.drawn("/workflow?id=census") == 2

    walk.is_alive(asker)
    walk.is_reachable_by_keys()
    walk.act(made)
    walk.is_asked_before(made)
    assert page.complaints() == []


class Walk:
    """Somebody who goes through the pages."""

    def __init__(self, page: chromium.Page, url: str) -> None:
        self.page = page
        self.url = f"{url}/dashboard"
        page.size(*DESKTOP)
        page.ask("Page.addScriptToEvaluateOnNewDocument", source="window.alert = () => console.error('XSS')")

    def sign_in(self, token: str) -> None:
        self.page.open(self.url + "/queues")
        assert self.page.run("location.pathname") == "/dashboard/sign-in"
        self.page.run(f"document.getElementById('token').value = {json.dumps(token)}")
        self.page.click("button.do")
        assert self.page.run("location.pathname") == "/dashboard/queues"
        assert self.page.run("document.cookie") == ""
        assert self.page.complaints() == []

    def look_at(self, paths: list[str]) -> None:
        for path in paths:
            self.page.open(self.url + path)
            assert self.page.complaints() == [], path
            for size, scheme in ((DESKTOP, "light"), (PHONE, "dark")):
                self.page.size(*size, scheme)
                wide, ground, title = self.page.run(SIGHT)
                assert title and wide <= size[0], path
                assert (ground == "rgb(255, 255, 255)") == (scheme == "light"), path
        self.page.size(*DESKTOP)

    def drawn(self, path: str) -> int:
        """Boxes of the drawing on a page, each with its colours: the policy has let its style through."""
        self.page.open(self.url + path)
        assert self.page.run("document.querySelector('.drawing style').sheet.cssRules.length") == 1
        count: int = self.page.run("document.querySelectorAll('.drawing > svg > g > .box,"
                                   " .drawing > svg > a .box').length")
        return count

    def is_alive(self, asker: Asker) -> None:
        """What changes is shown without that somebody asks."""
        self.page.open(self.url + "/queues?queue=fresh")
        assert "no such queue" in self.page.run("document.querySelector('main').innerText")
        self.page.run("window.same = true")
        asker.enqueue("fresh")
        until_true(lambda: "1 queue" in self.page.run("document.querySelector('main').innerText"))
        assert self.page.run("window.same") is True
        self.page.run("document.getElementById('live').click()")
        assert self.page.run("document.getElementById('live').getAttribute('aria-pressed')") == "false"

    def is_reachable_by_keys(self) -> None:
        self.page.open(self.url + "/tasks?queue=evil")
        self.page.press("Tab", 9)
        assert self.page.run("document.activeElement.className") == "skip"
        assert self.page.run("document.activeElement.getBoundingClientRect().left") >= 0
        unnamed = self.page.run("""[...document.querySelectorAll('input:not([type=hidden]), select, textarea')]
            .filter((each) => !each.labels?.length && !each.ariaLabel).length""")
        assert unnamed == 0

    def is_asked_before(self, made: dict[str, str]) -> None:
        """The page of each action there is, with its button, its fields named, and nothing wrong."""
        for verb in ACTIONS:
            self.page.open(f"{self.url}/act/{verb}?queue=evil&ids={made['waits']}")
            assert self.page.run("document.querySelectorAll('form.action button.do').length") == 1, verb
            assert self.page.run("document.querySelector('h1').innerText"), verb
            assert self.page.run("""[...document.querySelectorAll('form.action :is(input, select, textarea)')]
                .filter((each) => each.type !== 'hidden' && !each.labels?.length).length""") == 0, verb
            assert self.page.complaints() == [], verb

    def act(self, made: dict[str, str]) -> None:
        """By a link of a page, the page that asks, and its button."""
        for path, verb, values in (
                ("/queues?queue=fresh", "pause", {}), ("/queues?queue=fresh", "purge", {}),
                ("/queues?queue=fresh", "set_limits", {"rate": "5"}), ("/schedules", "remove_schedule", {}),
                (f"/tasks/{made['dead']}", "retry", {}), (f"/tasks/{made['waits']}", "cancel", {}),
                ("/partitions", "freeze", {"reason": "a new switch"}), ("/partitions", "unfreeze", {}),
                ("/members", "promote", {}), ("/members", "quarantine", {"reason": "its disk"}),
                ("/members", "quarantine", {}),
                ("/limits", "set_quota", {"prefix": "evil.", "open": "9"}), ("/limits", "remove_quota", {}),
                ("/schedules", "put_schedule", {"name": "later", "queue": "evil", "every_s": "3600",
                                                "payload": "x"}),
                ("/tasks?queue=fresh", "cancel_all", {}), ("/tasks?queue=dying", "purge_all", {}),
                ("/partitions", "rebalance", {}), ("/partitions", "solo", {}),
                ("/workflow?id=census", "kill_workflow", {"reason": "enough"})):
            self.page.open(self.url + path)
            self.page.click(f"a[href*='/act/{verb}?']")
            for name, value in values.items():
                self.page.run(f"document.querySelector('[name={name}]').value = {json.dumps(value)}")
            self.page.click("button.do")
            words = self.page.run("document.querySelector('main').innerText")
            assert ": done" in words, (verb, words)
            leads_to = self.page.run("[...document.querySelectorAll('main a')].at(-1).href")
            assert leads_to == self.url + path, leads_to
