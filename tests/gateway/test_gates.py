"""What stands before the verbs: methods, tokens, types, sizes, limits. Nothing is done that was not let in."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from gateway.asking import Answer, Asker
from gateway.conftest import THROWAWAY, Guarded, write_tokens
from skuld_py.cli.failures import LASTING
from skuld_py.embedded.local import LocalCluster
from skuld_py.gateway.access import new_token
from skuld_py.verbs.options import QUEUE
from skuld_py.verbs.table import VERBS
from skuld_py.verbs.verb import Scope, Verb

pytestmark = pytest.mark.cluster
ID = "0" * 32
CLAIM = {"id": ID, "token": str((1 << 32) + 1)}
BODIES: dict[str, dict[str, Any]] = {
    "submit_workflow": {"definition": {"id": "gates", "edges": [["a", "b"]], "catalog": {
        "a": {"kind": "input", "function": "app:lines"}, "b": {"kind": "function", "function": "app:count"}}}},
    "kill_workflow": {"workflow": "nobody"},
    # besides a queue
    "enqueue": {"payload": "x"}, "enqueue_many": {"tasks": [{"payload": "x"}]}, "renew": CLAIM,
    "renew_many": {"claims": [CLAIM]}, "release": {"claims": [CLAIM]},
    "append": {**CLAIM, "seq": 0, "entries": [{"data": "x"}]}, "complete": CLAIM,
    "complete_many": {"claims": [CLAIM]}, "get_many": {"ids": [ID]},
    "fail": CLAIM, "fail_many": {"claims": [CLAIM]}, "snooze": {**CLAIM, "delay_s": 1}, "cancel": {"ids": [ID]},
    "retry": {"ids": [ID]}, "results": {"ids": [ID]}, "set_limits": {"concurrency": 1},
    "set_quota": {"prefix": "a.", "open": 9}, "remove_quota": {"prefix": "none."},
    "put_schedule": {"name": "yearly", "queue": "yearly", "cron": "0 0 1 1 *"},
    "remove_schedule": {"name": "none"}, "promote": {"node": "nobody"}, "reorder": {"node": "nobody"},
    "move_all": {"to": "elsewhere"}, "release_all": {"holder": "nobody"},
    "quarantine": {"node": "nobody"}, "reap": {"node": "nobody"}, "drain": {"node": "nobody"},
}

QUERIES = {"workflow": "?workflow=nobody", "await_workflow": "?workflow=nobody&wait_s=0"}


def body_of(verb: Verb, queue: str) -> bytes:
    """A body that the verb takes."""
    of = {"queue": queue} if QUEUE in verb.asks.options else {}
    return json.dumps({**of, **BODIES.get(verb.name, {})}).encode()


def ask(asker: Asker, verb: Verb, queue: str, **headers: str) -> Answer:
    path = verb.path.replace("{id}", ID) + QUERIES.get(verb.name, "")
    if verb.method == "GET":
        return asker.ask("GET", path, **headers)
    return asker.ask("POST", path, body_of(verb, queue), **{"content_type": "application/json", **headers})


def everything(asker: Asker) -> list[Any]:
    """What a state that has not changed looks like."""
    return [asker.get("/v1/queues").json, asker.get("/v1/tasks/list").lines, asker.get("/v1/queues/paused").json]


@pytest.fixture
def unchanged(anybody: Asker) -> Iterator[None]:
    """The cluster holds afterwards what it held before."""
    with holding(anybody):
        yield


@contextmanager
def holding(anybody: Asker) -> Iterator[None]:
    """Compare what the cluster holds before and after."""
    anybody.enqueue("unchanged")
    before = everything(anybody)
    yield
    assert lasting(*everything(anybody)) == lasting(*before)


def lasting(queues: Any, tasks: Any, paused: Any) -> list[Any]:
    """What of it only a request changes: leases of other tests' claims end by themselves, and workflows that they
    have cancelled go on ending."""
    def is_listed(row: Any) -> bool:
        return not row["queue"].startswith("wf.")
    return [[(row["queue"], row["completed"]) for row in queues["queues"] if is_listed(row)],
            [{field: value for field, value in row.items() if field not in ("state", "death", "died_ms")}
             for row in tasks if is_listed(row)], paused]


# -- methods -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", sorted({verb.path for verb in VERBS} | {"/openapi.json"}))
@pytest.mark.usefixtures("unchanged")
def test_other_methods_do_nothing(anybody: Asker, path: str, queue: str) -> None:
    verbs = {verb.method: verb for verb in VERBS if verb.path == path}
    allowed = {*verbs} or {"GET"}
    body = body_of(verbs["POST"], queue) if "POST" in verbs else b'{"queue": "%s"}' % queue.encode()
    is_stream = any(verb.is_stream for verb in verbs.values())

    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "GeT", "BREW"):
        if method in allowed or (method == "HEAD" and "GET" in allowed and not is_stream):
            continue
        answer = anybody.ask(method, path.replace("{id}", ID), body, content_type="application/json")
        assert answer.status == 405, (method, answer)
        assert {*answer.headers["allow"].split(", ")} == allowed
        assert method == "HEAD" or answer.json["code"] == "method_not_allowed"
    assert anybody.get(f"/v1/tasks/count?queue={queue}").json == {"count": 0}


@pytest.mark.parametrize("path", ["/v", "/v1", "/v1/", "/v1/tasks", "/v1/tasks/", "/v1/tasks//log", "/v2/queues",
                                  "/V1/queues", "/v1/queues/", "/v1/tasks/x/y/z", "/v1/tasks/..%2f..%2fetc",
                                  "//v1/queues", "/v1/%71ueues%00", "/docs", "/tasks/enqueue"])
def test_other_paths_are_not_there(anybody: Asker, path: str) -> None:
    for method in ("GET", "POST"):
        answer = anybody.ask(method, path)
        assert (answer.status, answer.json["code"]) in ((404, "no_such_route"), (404, "no_such_task"),
                                                        (405, "method_not_allowed")), (path, answer)
    assert anybody.get(path).status == 404


def test_head_is_get_without_its_body(anybody: Asker) -> None:
    answer = anybody.ask("HEAD", "/v1/queues")

    assert answer.status == 200 and answer.body == b"" and int(answer.headers["content-length"]) > 0


# -- tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
@pytest.mark.usefixtures("unchanged")
def test_each_verb_takes_its_scope_and_no_other(guarded: Guarded, verb: Verb, queue: str) -> None:
    for scope in (scope for scope in Scope if scope != verb.scope and verb.scope is not None):
        answer = ask(guarded.with_scope(scope), verb, queue)
        assert (answer.status, answer.json["code"]) == (403, "forbidden_scope"), (scope, answer)
        assert str(verb.scope) in answer.json["message"]


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_each_verb_is_let_through_with_its_scope(guarded: Guarded, verb: Verb, queue: str) -> None:
    # An id of all zeros is known to nobody: it is looked for, and not found.
    answer = ask(guarded.with_scope(verb.scope or Scope.READ), verb, queue)

    assert answer.status in (200, 404, 409), answer


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.scope is not None], ids=lambda verb: verb.name)
@pytest.mark.usefixtures("unchanged")
def test_without_a_known_token_nothing_is_done(guarded: Guarded, verb: Verb, queue: str) -> None:
    good = guarded.tokens["all"]

    for wrong in ("", "Bearer", f"Bearer {guarded.tokens['unknown']}", f"Bearer {good[:-1]}", f"Basic {good}",
                  good, f"Bearer {good} {good}"):
        answer = ask(Asker(guarded.url), verb, queue, authorization=wrong)
        assert (answer.status, answer.json["code"]) in ((401, "unauthorized"), (429, "too_many_failures")), answer
        assert answer.status != 401 or answer.headers["www-authenticate"] == "Bearer"
        assert good not in str(answer)


def test_health_and_the_document_are_open(guarded: Guarded) -> None:
    stranger = Asker(guarded.url)

    assert stranger.get("/v1/health").status == 200 and stranger.get("/openapi.json").status == 200


def test_wrong_tokens_are_slowed_down_and_right_ones_are_not(guarded: Guarded) -> None:
    stranger, friend = Asker(guarded.url, guarded.tokens["unknown"]), guarded.with_scope("all")

    answers = [stranger.get("/v1/queues") for _ in range(20)]

    slowed = [answer for answer in answers if answer.status == 429]
    assert slowed and {answer.status for answer in answers} <= {401, 429}
    assert slowed[0].json["retry"] and slowed[0].headers["retry-after"]
    assert friend.get("/v1/queues").status == 200


def test_the_token_is_asked_for_before_the_body_is_read(guarded: Guarded) -> None:
    """The body never comes; an answer does."""
    with socket.create_connection(Asker(guarded.url).address, timeout=60) as connection:
        connection.sendall(b"POST /v1/tasks/enqueue HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
                           b"content-length: 1000\r\n\r\n")
        assert connection.recv(65_536).split()[1] in (b"401", b"429")


def test_the_token_names_the_holder(guarded: Guarded, queue: str) -> None:
    asker = guarded.with_scope("all")
    task_id = asker.enqueue(queue)
    asker.claim(queue)

    assert asker.get(f"/v1/tasks/{task_id}").json["claims"][0]["holder"] == "gateway:all"


def test_tls_is_spoken_where_there_is_a_certificate(cluster: LocalCluster) -> None:
    url, _ = cluster.start_gateway("--certificate", str(THROWAWAY))
    address = Asker(url).address

    trusting = ssl.create_default_context(cafile=THROWAWAY)
    connection = http.client.HTTPSConnection(*address, context=trusting, timeout=60)
    connection.request("GET", "/v1/health")
    answer = connection.getresponse()
    assert url.startswith("https://127.0.0.1:") and (answer.status, json.load(answer)) == (200, {"is_well": True})
    connection.close()
    with socket.create_connection(address, timeout=60) as plain:
        plain.sendall(b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert b"200" not in plain.recv(65_536)


@pytest.mark.parametrize(("options", "words"), [
    (["--host", "0.0.0.0"], ["host: 0.0.0.0", "--tokens", "[insecure_host]"]),
    (["--host", "::"], ["host: ::", "--tokens", "[insecure_host]"]),
    (["--host", "example.org"], ["host: example.org", "--tokens"]),
    (["--host", "192.0.2.1", "--certificate", str(THROWAWAY)], ["host: 192.0.2.1", "--tokens", "[insecure_host]"]),
    (["--host", "192.0.2.1", "--behind-proxy"], ["host: 192.0.2.1", "--tokens", "[insecure_host]"]),
    (["--host", "192.0.2.1", "--tokens", "GOOD"],
     ["host: 192.0.2.1", "--certificate", "--key", "--behind-proxy", "127.0.0.1", "[insecure_host]"]),
    (["--host", "192.0.2.1", "--tokens", "GOOD", "--behind-proxy"], ["cannot listen at 192.0.2.1"]),
    (["--host", "192.0.2.1", "--tokens", "GOOD", "--certificate", str(THROWAWAY)],
     ["cannot listen at 192.0.2.1"]),
    (["--port", "70000"], ["--port"]),
    (["--tokens", "/no/such/file"], ["--tokens"]),
    (["--tokens", __file__], ["tokens", "[bad_tokens]"]),
    (["--key", __file__], ["--key", "--certificate"]),
    (["--certificate", "GOOD"], ["certificate", "tokens.toml", "key", "[bad_certificate]"]),
    (["--certificate", str(THROWAWAY), "--key", __file__], [f"{__file__} may be read by others", "chmod 600",
                                                            "[exposed_key]"]),
    (["--certificate", str(THROWAWAY), "--key", "GOOD"], ["certificate", "[bad_certificate]"]),
    (["--certificate", "CHAIN"], ["key: ", "chain.pem has no private key; give --key FILE", "[bad_certificate]"]),
    (["--certificate", "OPEN"], ["may be read by others (mode 0640)", "[exposed_key]"]),
    (["--body", "0"], ["--body"]),
    (["--nodes", "here"], ["node: 'here'", "[bad_address]"]),
    (["--nodes", ","], ["nodes", "[no_nodes]"]),
    (["--wait", "10 days"], ["--wait", "10s"]),
])
def test_a_gateway_that_cannot_start_says_why(options: list[str], words: list[str], tmp_path: Path) -> None:
    good = tmp_path / "tokens.toml"
    write_tokens(good, {"ci": (new_token(), ["read"])})
    exposed = tmp_path / "exposed.pem"
    exposed.touch(mode=0o640)
    exposed.write_bytes(THROWAWAY.read_bytes())
    chain = tmp_path / "chain.pem"
    chain.write_text("-----BEGIN CERTIFICATE-----\n")
    files = {"GOOD": str(good), "OPEN": str(exposed), "CHAIN": str(chain)}
    options = [files.get(option, option) for option in options]
    ended = subprocess.run([sys.executable, "-m", "skuld_py", "gateway", "--port", "0", *options],
                           capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode in (1, 2, LASTING)
    assert [word for word in words if word not in ended.stderr] == [], ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken_is_said(anybody: Asker) -> None:
    ended = subprocess.run([sys.executable, "-m", "skuld_py", "gateway", "--port", str(anybody.address[1])],
                           capture_output=True, text=True, timeout=60, check=False)

    assert ended.returncode == 1 and "--port" in ended.stderr and "[port_in_use]" in ended.stderr


# -- types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("headers", "status", "field"), [
    ({"content_type": "text/plain"}, 415, "content-type"),
    ({"content_type": ""}, 415, "content-type"),
    ({"content_type": "application/x-www-form-urlencoded"}, 415, "content-type"),
    ({"content_type": "multipart/form-data; boundary=x"}, 415, "content-type"),
    ({"content_type": "application/json; charset=utf-16"}, 415, "content-type"),
    ({"content_type": "application/jsonp"}, 415, "content-type"),
    ({"content_encoding": "gzip"}, 415, "content-encoding"),
    ({"accept": "text/html"}, 406, "accept"),
    ({"accept": "image/*, text/*;q=0.5"}, 406, "accept"),
])
@pytest.mark.usefixtures("unchanged")
def test_other_types_are_refused(anybody: Asker, queue: str, headers: dict[str, str], status: int,
                                 field: str) -> None:
    given = {"content_type": "application/json", **headers}
    answer = anybody.ask("POST", "/v1/tasks/enqueue", b'{"queue": "%s", "payload": "x"}' % queue.encode(), **given)

    assert (answer.status, answer.json["field"]) == (status, field)


@pytest.mark.parametrize("headers", [
    {"content_type": "application/json; charset=utf-8"}, {"content_type": "Application/JSON"},
    {"accept": "text/html, */*;q=0.1"}, {"accept": "application/json"}, {"accept": "application/*"}])
def test_types_that_mean_json_are_taken(anybody: Asker, queue: str, headers: dict[str, str]) -> None:
    given = {"content_type": "application/json", **headers}

    assert anybody.ask("POST", "/v1/tasks/enqueue", b'{"queue": "%s", "payload": "x"}' % queue.encode(),
                       **given).status == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "", "127.0.0.1.evil.example",
                                  "localhost.evil"])
def test_a_borrowed_name_does_not_reach_an_open_gateway(anybody: Asker, host: str) -> None:
    answer = anybody.ask("GET", "/v1/queues", host=host)

    assert (answer.status, answer.json["code"], answer.json["field"]) == (400, "bad_host", "host")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:13080", "127.0.0.1", "[::1]", "[::1]:13080"])
def test_its_own_names_do(anybody: Asker, host: str) -> None:
    assert anybody.ask("GET", "/v1/queues", host=host).status == 200


def test_no_answer_invites_a_browser(anybody: Asker) -> None:
    answer = anybody.ask("GET", "/v1/queues", origin="http://evil.example")

    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["x-content-type-options"] == "nosniff" and "server" not in answer.headers


# -- limits --------------------------------------------------------------------------------------


def test_a_body_too_large_is_refused_by_its_length(narrow: Asker, queue: str) -> None:
    body = json.dumps({"queue": queue, "payload": "x" * (1 << 20)}).encode()

    answer = narrow.ask("POST", "/v1/tasks/enqueue", body, content_type="application/json")

    assert (answer.status, answer.json["code"], answer.json["field"]) == (413, "body_too_large", "body")


def test_a_body_too_large_is_refused_before_it_is_sent(narrow: Asker) -> None:
    with socket.create_connection(narrow.address, timeout=60) as connection:
        connection.sendall(b"POST /v1/tasks/enqueue HTTP/1.1\r\nhost: localhost\r\n"
                           b"content-type: application/json\r\ncontent-length: 2000000\r\n\r\n")
        assert connection.recv(65_536).split()[1] == b"413"


def test_a_body_too_large_is_refused_without_a_length(narrow: Asker) -> None:
    head = (b"POST /v1/tasks/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            b"transfer-encoding: chunked\r\n\r\n")
    chunk = b"10000\r\n" + b" " * 0x10000 + b"\r\n"

    assert b" 413 " in narrow.raw(head + chunk * 17 + b"0\r\n\r\n").split(b"\r\n")[0]


def test_a_length_that_is_none_is_refused(narrow: Asker) -> None:
    for length in (b"-1", b"1e3", b"9" * 30, b"+5", b"0x5"):
        head = b"POST /v1/tasks/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
        answer = narrow.raw(head + b"content-length: " + length + b"\r\n\r\n")
        assert answer.split()[1] in (b"400", b"413"), answer


def test_payloads_beyond_the_limit_are_refused_and_at_the_limit_are_not(anybody: Asker, queue: str) -> None:
    at_most, beyond = (anybody.post("enqueue", {"queue": queue, "payload": "x" * size})
                       for size in (1 << 20, (1 << 20) + 1))

    assert at_most.status == 200
    assert (beyond.status, beyond.json["code"], beyond.json["field"]) == (413, "payload_too_large", "payload")


def test_a_claim_too_many_that_waits_is_told_so(narrow: Asker, queue: str) -> None:
    answers: list[Answer] = []
    asked = {"queue": queue, "wait_s": 60}
    threads = [threading.Thread(target=lambda: answers.append(narrow.post("claim", asked))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert sorted(answer.status for answer in answers) == [200, 503, 503], answers
    busy = [answer for answer in answers if answer.status == 503]
    assert {answer.json["code"] for answer in busy} == {"busy"} and all(answer.json["retry"] for answer in busy)
    for wait_s in (0.1, 0):
        assert narrow.post("claim", {"queue": queue, "wait_s": wait_s}).status == 200


def test_one_caller_cannot_take_all_places_and_is_told_when_to_come_again(crowded: Guarded) -> None:
    greedy, modest = crowded.with_scope("admin"), crowded.with_scope("enqueue")
    with slow_bodies(greedy, "retry"):
        answer = until(429, lambda: greedy.get("/v1/status"))
        assert (answer.json["code"], answer.headers["retry-after"]) == ("too_many_at_once", "1")
        assert greedy.get("/v1/health").status == 200
        with slow_bodies(modest, "enqueue"):
            assert until(429, lambda: modest.get("/v1/ids")).json["retry"]
            assert crowded.with_scope("read").get("/v1/queues").status == 200
            assert Asker(crowded.url).get("/v1/health").status == 200
            assert Asker(crowded.url).get("/v1/queues").status == 401
    assert until(200, lambda: greedy.get("/v1/status"))


def test_what_waits_has_places_of_its_own_and_one_caller_half_of_them(crowded: Guarded, queue: str) -> None:
    greedy, modest = crowded.with_scope("all"), crowded.with_scope("read")
    path = f"/v1/tasks/{greedy.enqueue(queue)}/log?follow=true&wait_s=60"
    with ExitStack() as followers:
        for _ in range(8):
            assert followers.enter_context(greedy.streaming(path)).status == 200
        assert greedy.get(path).status == 429
        assert greedy.get(path.replace("true", "false")).status == greedy.get("/v1/status").status == 200
        for _ in range(4):
            assert followers.enter_context(modest.streaming(path)).status == 200
        assert modest.get(path).status == 429
        assert modest.get("/v1/queues").status == greedy.get("/v1/queues").status == 200


def test_a_caller_without_a_token_is_its_address(narrow: Asker) -> None:
    with slow_bodies(narrow, "enqueue"):
        assert until(429, lambda: narrow.get("/v1/queues")).json["code"] == "too_many_at_once"
        assert narrow.get("/openapi.json").status == 429
        assert narrow.get("/v1/health").status == 200
    assert until(200, lambda: narrow.get("/v1/queues"))


@contextmanager
def slow_bodies(asker: Asker, verb: str) -> Iterator[None]:
    """Four requests whose bodies do not come."""
    head = (f"POST /v1/tasks/{verb} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
            f"authorization: Bearer {asker.token}\r\ncontent-length: 10\r\n\r\n")
    with ExitStack() as opened:
        for _ in range(4):
            opened.enter_context(socket.create_connection(asker.address, timeout=60)).sendall(head.encode())
        yield


def until(status: int, ask: Callable[[], Answer], wait_s: float = 20) -> Answer:
    """The first answer with this status."""
    end = time.monotonic() + wait_s
    while (answer := ask()).status != status:
        assert time.monotonic() < end, answer
    return answer


@pytest.mark.parametrize("body", [b"[" + b"[]," * 2_000_000 + b"[]]",
                                  b"{" + b",".join(b'"%d":0' % key for key in range(500_000)) + b"}"],
                         ids=["lists", "keys"])
def test_a_body_of_too_many_values_is_refused(anybody: Asker, body: bytes) -> None:
    answer = anybody.ask("POST", "/v1/tasks/enqueue", body, content_type="application/json")

    assert (answer.status, answer.json["code"], answer.json["field"]) == (413, "body_too_large", "body")


def test_two_tokens_are_not_one(guarded: Guarded) -> None:
    good = f"authorization: Bearer {guarded.tokens['all']}\r\n"
    for pair in (good + good, good + "authorization: Bearer x\r\n", "Authorization: Basic x\r\n" + good):
        answer = Asker(guarded.url).raw(f"GET /v1/queues HTTP/1.1\r\nhost: x\r\n{pair}\r\n".encode())
        assert b" 400 " in answer.split(b"\r\n")[0] and b'"field":"authorization"' in answer, answer


def test_waiting_ends_at_the_gateways_limit(narrow: Asker, queue: str) -> None:
    assert narrow.post("claim", {"queue": queue, "wait_s": 3600}).json == {"claims": []}


def test_a_gateway_told_to_stop_ends_what_waits_and_then_itself(cluster: LocalCluster, queue: str) -> None:
    url, process = cluster.start_gateway()
    answers: list[Answer] = []
    asking = threading.Thread(target=lambda: answers.append(
        Asker(url).post("claim", {"queue": queue, "wait_s": 30})))
    asking.start()
    while Asker(url).post("claim", {"queue": "other"}).status != 200 or not asking.is_alive():
        pass

    process.terminate()

    assert process.wait(25) == 0
    asking.join(10)
    assert not answers or answers[0].json == {"claims": []} or answers[0].status == 503
