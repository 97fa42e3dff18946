"""Hostile HTTP: each is answered in the shape of all failures, names its field, and changes nothing."""

from __future__ import annotations

import contextlib
import json
import random
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.asking import Asker
from gateway.test_gates import CLAIM, ID, holding

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("unchanged")]

ENQUEUE = {"queue": "bad-input", "payload": "x"}
ENTRY = {**CLAIM, "seq": 0, "entries": [{"data": "x"}]}
NAMES = ["", " ", "a b", ".", "..", "-x", "_x", "a/b", "a\x00", "a\n", "\u202eabc", "e\u0301", "a\u200b",
         "é", "x" * 201, "*", "a\r\nset-cookie: x"]

FIELDS: list[tuple[str, dict[str, Any], str]] = [
    *(("enqueue", {**ENQUEUE, "queue": name}, "queue") for name in [*NAMES, None, 7, True, [], {}, ["a"]]),
    *(("claim", {"queue": name}, "queue") for name in NAMES),
    *(("claim", {"queue": "bad-input", "holder": name}, "holder") for name in [*NAMES[:5], None, 1]),
    *(("enqueue", {**ENQUEUE, "priority": value}, "priority")
      for value in (1 << 31, -(1 << 31) - 1, 1 << 63, 1 << 200, 1.0, 1.5, "1", True, None, [])),
    *(("enqueue", {**ENQUEUE, "w": value}, "w") for value in (0, -1, 10, 1.0, "1", True, None)),
    *(("enqueue", {**ENQUEUE, "id": value}, "id")
      for value in ("", "x", "w" * 32, "0" * 31, "0" * 33, "V" * 32, 0, None, True, "０" * 32)),
    *(("enqueue", {**ENQUEUE, "payload": value}, "payload") for value in (None, 1, True, [], {})),
    *(("enqueue", {"queue": "bad-input", "payload_base64": value}, "payload_base64")
      for value in ("=", "a", "ab", "abc", "ab=c", "ab==x", "a-_=", "YQ ==", "YQ==\n", "é", None, 1, [])),
    *(("enqueue", {**ENQUEUE, name: value}, name) for name in ("not_before_ms", "expires_ms")
      for value in (0, -1, 1 << 53, 1 << 64, 4_000_000_000_000, 1.5, "2027-01-01", True, None, [])),
    ("enqueue", {**ENQUEUE, "not_before_ms": 7, "expires_ms": 7}, "expires_ms"),
    *(("enqueue", {**ENQUEUE, "delay_s": value}, "delay_s") for value in (-1, "1", None, 1e308, True)),
    ("enqueue", {**ENQUEUE, "delay_s": 1, "not_before_ms": 1 << 40}, "delay_s"),
    ("enqueue", {**ENQUEUE, "delay_s": 1, "id": "0" * 32}, "delay_s"),
    *(("enqueue", {**ENQUEUE, "retry": value}, "retry") for value in (None, 3, [], "x")),
    *(("enqueue", {**ENQUEUE, "retry": {name: value}}, f"retry.{name}") for name, values in {
        "max_attempts": (0, 1_001, 1.0, "3", None, True), "backoff_s": (-0.1, 1 << 32, "1", None),
        "factor": (0.9, 656, "2"), "max_backoff_s": (-1, 1 << 32), "jitter": (-0.1, 1.1), "attempts": (3,),
    }.items() for value in values),
    ("enqueue", {**ENQUEUE, "retry": {"backoff_s": 2, "max_backoff_s": 1}}, "retry"),
    *(("enqueue", {**ENQUEUE, "headers": value}, "headers") for value in (
        None, [], "x", {"": "x"}, {"k" * 256: ""}, {"k": "x" * 4_097}, {str(n): "" for n in range(256)})),
    *(("enqueue", {**ENQUEUE, "headers": {"k": value}}, "headers.k") for value in (1, None, ["x"], {})),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x", "not_before_ms": 2, "expires_ms": 1}]},
     "tasks.0"),
    *(("fail", {**CLAIM, "error": value}, "error") for value in (None, 1, {}, ["x"])),
    *(("fail", {**CLAIM, "retry_in_s": value}, "retry_in_s") for value in (-1, "1", None, 1e308)),
    ("fail_many", {"claims": [CLAIM, {**CLAIM, "error": 1}]}, "claims.1.error"),
    *(("snooze", {**CLAIM, "delay_s": value}, "delay_s") for value in (-1, "1", None, 1e308)),
    ("snooze", CLAIM, "delay_s"),
    ("complete", {**CLAIM, "result": "x", "value": 1}, "value"),
    ("complete_many", {"claims": [{**CLAIM, "result": "x", "result_base64": ""}]}, "claims.0"),
    ("enqueue", {"queue": "bad-input"}, "payload"),
    *(("enqueue", {"queue": "bad-input", "call": value}, "call")
      for value in ("", "x" * 201, "a\n", "\u202e", 1, None, [], {})),
    *(("enqueue", {"queue": "bad-input", "call": "f", name: value}, name)
      for name in ("args", "kwargs") for value in (None, 1, "x", True)),
    ("enqueue", {"queue": "bad-input", "call": "f", "args": {}}, "args"),
    ("enqueue", {"queue": "bad-input", "call": "f", "kwargs": []}, "kwargs"),
    ("enqueue", {"queue": "bad-input", "call": "f", "args": [0, 1 << 64]}, "args[1]"),
    ("enqueue", {"queue": "bad-input", "call": "f", "kwargs": {"a": [1 << 64]}}, "kwargs['a'][0]"),
    ("enqueue", {"queue": "bad-input", "call": "f", "args": [json.loads("[" * 40 + "]" * 40)]},
     "args[0]" + "[0]" * 32),
    ("enqueue", {**ENQUEUE, "call": "f"}, "payload"),
    ("enqueue", {**ENQUEUE, "args": [1]}, "call"),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"call": "f"}, {"call": "f", "payload": "x"}]}, "tasks.1"),
    ("enqueue", {**ENQUEUE, "payload_base64": "YQ=="}, "payload"),
    ("enqueue", {"payload": "x"}, "queue"),
    ("enqueue", {**ENQUEUE, "prioritty": 1}, "prioritty"),
    *(("enqueue", {**ENQUEUE, name: value}, name) for name in ("key", "unique")
      for value in ("", "x" * 256, "é" * 128, 1, None, [], {})),
    *(("enqueue", {**ENQUEUE, "deps": value}, "deps") for value in (None, "x", ID, {}, 1, [ID] * 1_001)),
    *(("enqueue", {**ENQUEUE, "deps": [value]}, "deps.0") for value in ("", "x", 0, None, [])),
    *(("enqueue", {**ENQUEUE, "unique_window_s": value}, "unique_window_s") for value in (0, 1e9, "1h", None)),
    *(("enqueue", {**ENQUEUE, "on_dep_failure": value}, "on_dep_failure") for value in ("", "retry", None, 1)),
    *(("enqueue", {**ENQUEUE, "dep_wait_s": value}, "dep_wait_s") for value in (-1, 1e12, "1h", None)),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x", "unique": "a"}, {"payload": "x"}]},
     "tasks"),
    ("enqueue", {**ENQUEUE, "dependencies": []}, "dependencies"),
    ("enqueue", {**ENQUEUE, "\u202e": 1}, "\u202e"),
    ("enqueue_many", {"queue": "bad-input", "tasks": []}, "tasks"),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x"}] * 1_001}, "tasks"),
    ("enqueue_many", {"queue": "bad-input", "tasks": {"0": {"payload": "x"}}}, "tasks"),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x"}, {"payload": 1}]}, "tasks.1.payload"),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x"}, {}]}, "tasks.1"),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x", "id": ID}, {"payload": "y"}]}, "tasks"),
    ("enqueue_many", {"queue": "bad-input", "tasks": [{"payload": "x", "id": ID}] * 2}, "tasks"),
    *(("claim", {"queue": "bad-input", "n": value}, "n") for value in (0, -1, 1_001, 10**9, 1.0, "1", True, None)),
    *(("claim", {"queue": "bad-input", "lease_s": value}, "lease_s")
      for value in (0, -1, 0.0009, 86_400.1, 10 * 365 * 86_400, 1e308, "60", True, None, [])),
    *(("claim", {"queue": "bad-input", "wait_s": value}, "wait_s") for value in (-0.1, 3_601, "1", True, None)),
    *((verb, {"id": ID, "token": value, **more}, "token")
      for verb, more in (("renew", {}), ("complete", {}), ("append", {"seq": 0, "entries": [{"data": "x"}]}))
      for value in (0, -1, 1 << 53, 1 << 64, 1.0, "", "0", "01", "-1", "+1", "1.0", "1e3", " 1", "1\n", "１",
                    str(1 << 63), "9" * 19, "9" * 20, True, None, [], {})),
    *(("append", {**ENTRY, "seq": value}, "seq") for value in (-1, 1 << 32, 1 << 64, 1.0, "0", True, None)),
    *(("append", {**ENTRY, "entries": value}, "entries")
      for value in ([], None, "x", {}, [{"data": "x"}] * 1_001)),
    ("append", {**ENTRY, "entries": ["x"]}, "entries.0"),
    ("append", {**ENTRY, "entries": [{"data": "x", "data_base64": ""}]}, "entries.0"),
    ("append", {**CLAIM, "entries": [{"data": "x"}]}, "seq"),
    *((verb, {"claims": value}, "claims") for verb in ("release", "renew_many", "complete_many")
      for value in ([], None, {}, [CLAIM] * 1_001)),
    ("complete_many", {"claims": [CLAIM, {"id": ID}]}, "claims.1.token"),
    ("complete_many", {"claims": [CLAIM, ID]}, "claims.1"),
    ("get_many", {"ids": [ID, "x"]}, "ids.1"),
    ("get_many", {"ids": []}, "ids"),
    *(("complete", value, "body") for value in ([], "x", 1, None, True, [CLAIM])),  # type: ignore[list-item]
]


@pytest.fixture(scope="module")
def unchanged(anybody: Asker) -> Iterator[None]:
    """After all of them the cluster holds what it held before."""
    with holding(anybody):
        yield


@pytest.mark.parametrize(("verb", "body", "field"), FIELDS, ids=lambda value: json.dumps(value)[:60])
def test_a_wrong_field_is_named(anybody: Asker, verb: str, body: dict[str, Any], field: str) -> None:
    answer = anybody.post(verb, body)

    assert answer.status == 422, answer
    assert (answer.json["field"], answer.json["outcome"], answer.json["retry"]) == (field, "refused", False)
    assert answer.json["code"].startswith("bad_") and answer.json["message"].startswith(f"{field}: ")


@pytest.mark.parametrize("query", [
    "queue=", "queue=a%20b", "queue=%00", "queue=%ff", "queue=a&queue=b", "queue", "queue=%F0%9F%98%80", "limit=0",
    "limit=-1", "limit=x", "limit=1.5", "limit=", "limit=99999999999999999999999999x", "ques=a", "%", "=1",
    "&".join(f"a{n}=1" for n in range(100)),
])
def test_a_wrong_query_is_refused(anybody: Asker, query: str) -> None:
    answer = anybody.get(f"/v1/tasks/list?{query}")

    assert answer.status in (400, 422) and answer.json["field"], answer


def test_a_query_beside_a_body_is_refused(anybody: Asker) -> None:
    answer = anybody.post("enqueue?queue=bad-input", ENQUEUE)

    assert (answer.status, answer.json["field"]) == (400, "query")


@pytest.mark.parametrize("text", [
    b'{"queue": "bad-input", "payload": "x", "priority": NaN}',
    b'{"queue": "bad-input", "payload": "x", "payload": "y"}',
    b'{"queue": "bad-input", "payload": "\\ud800"}', b'{"queue": "bad-input", "payload": "\xff"}',
    b'{"queue": "bad-input", "payload": "x"', b'{"queue": "bad-input", "payload": "x"} x', b"[" * 40_000,
    b"", b"\x00",
    b'{"queue": "bad-input", "payload": "x", "priority": ' + b"9" * 10_000 + b"}",
    b'{"queue": "bad-input", "payload": "x", "priority": 1e400}', b"\x1f\x8b\x08\x00",
], ids=lambda text: repr(text[:70]))
def test_what_is_no_json_is_refused(anybody: Asker, text: bytes) -> None:
    answer = anybody.ask("POST", "/v1/tasks/enqueue", text, content_type="application/json")

    assert (answer.status, answer.json["code"], answer.json["field"]) == (400, "bad_json", "body")


def test_an_id_of_the_future_is_refused(anybody: Asker) -> None:
    answer = anybody.post("enqueue", {**ENQUEUE, "id": "0" + "v" * 11 + "0" * 20})

    assert (answer.status, answer.json["code"], answer.json["field"]) == (422, "future_id", "id")


# -- bytes that are hardly HTTP ------------------------------------------------------------------

HEAD = b"POST /v1/tasks/enqueue HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
BODY = json.dumps(ENQUEUE).encode()
LENGTH = b"content-length: %d\r\n" % len(BODY)
CHUNKED = b"transfer-encoding: chunked\r\n"
SMUGGLED = {
    "a length and chunks": HEAD + LENGTH + CHUNKED + b"\r\n0\r\n\r\n",
    "two lengths": HEAD + LENGTH + b"content-length: 3\r\n\r\n" + BODY,
    "a list of lengths": HEAD + b"content-length: 3, %d\r\n\r\n" % len(BODY) + BODY,
    "a signed length": HEAD + b"content-length: +%d\r\n\r\n" % len(BODY) + BODY,
    "a folded line": HEAD + b"x: a\r\n b\r\n" + b"content-length : 3\r\n\r\n" + BODY,
    "a space before the colon": HEAD + b"content-length : %d\r\n\r\n" % len(BODY) + BODY,
    "an unknown encoding": HEAD + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"transfer-encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "a bad chunk size": HEAD + CHUNKED + b"\r\n-1\r\n" + BODY,
    "a chunk size of letters": HEAD + CHUNKED + b"\r\nzz\r\n" + BODY,
    "a chunk without an end": HEAD + CHUNKED + b"\r\n2\r\n{}xx0\r\n\r\n",
    "a huge chunk size": HEAD + CHUNKED + b"\r\n" + b"f" * 30 + b"\r\n" + BODY,
    "NUL in a header": HEAD + b"x: a\x00b\r\n\r\n",
    "CR in a header": HEAD + b"x: a\rb\r\n\r\n",
    "no version": b"GET /v1/queues\r\n\r\n",
    "no host": b"GET /v1/queues HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /v1/queues HTTP/1.1\r\nhost: localhost\r\nhost: evil\r\n\r\n",
    "a space in the path": b"GET /v1/ queues HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "no HTTP at all": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "ZeroMQ's greeting": b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + bytes(48),
}


@pytest.mark.parametrize("text", SMUGGLED.values(), ids=SMUGGLED.keys())
def test_what_can_be_read_in_two_ways_is_refused_and_the_connection_closed(anybody: Asker, text: bytes) -> None:
    answer = anybody.raw(text)

    statuses = [line.split()[1] for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
    assert statuses in ([b"400"], [b"431"], []), answer
    if statuses:
        assert b"connection: close" in answer.lower()
        assert json.loads(answer.partition(b"\r\n\r\n")[2])["outcome"] == "refused"


def test_a_bare_line_feed_smuggles_nothing(anybody: Asker) -> None:
    """Lenient ends of lines are allowed by RFC 9112; they must not become a second request."""
    answer = anybody.raw(b"GET /v1/health HTTP/1.1\nhost: localhost\n\n")

    assert answer.count(b"HTTP/1.1 ") <= 1


@pytest.mark.parametrize("text", [
    b"GET /" + b"x" * (8 << 20) + b" HTTP/1.1\r\nhost: localhost\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * (1 << 20) + b"\r\n\r\n",
    b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 100_000 + b"\r\n",
], ids=["a long path", "a long header", "many headers"])
def test_a_head_too_large_is_refused(anybody: Asker, text: bytes) -> None:
    with socket.create_connection(anybody.address, timeout=60) as connection:
        connection.settimeout(20)
        found = b""
        with contextlib.suppress(OSError):  # it stops listening
            connection.sendall(text)
        with contextlib.suppress(OSError):
            while part := connection.recv(65_536):
                found += part

    assert found == b"" or found.split()[1] == b"431"


@pytest.mark.parametrize(("head", "words"), [
    (b"GET /v1/health HTTP/1.1\r\nupgrade: websocket\r\nconnection: upgrade\r\nhost: localhost\r\n\r\n", b"200"),
    (b"GET http://localhost/v1/health HTTP/1.1\r\nhost: localhost\r\n\r\n", b"404"),
    (b"OPTIONS * HTTP/1.1\r\nhost: localhost\r\n\r\n", b"404"),
    (b"CONNECT evil:443 HTTP/1.1\r\nhost: localhost\r\n\r\n", b"404"),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
    (b"GET /v1/health HTTP/1.0\r\nhost: localhost\r\n\r\n", b"200"),
])
def test_other_forms_of_requests_get_an_answer(anybody: Asker, head: bytes, words: bytes) -> None:
    assert anybody.raw(head).split()[1] == words


def test_random_bytes_are_survived(anybody: Asker) -> None:
    dice = random.Random(7)
    good = HEAD + LENGTH + b"\r\n" + BODY.replace(b"bad-input", b"bad input")
    for _ in range(300):
        broken = bytearray(good if dice.random() < 0.7 else dice.randbytes(200))
        for _ in range(dice.randrange(1, 4)):
            broken[dice.randrange(len(broken))] ^= 1 << dice.randrange(8)
        with socket.create_connection(anybody.address, timeout=60) as connection:
            connection.sendall(broken)

    assert anybody.get("/v1/health").status == 200


@pytest.mark.slow
def test_whoever_drips_a_head_is_cut_off(anybody: Asker) -> None:
    """Byte by byte, always soon enough for a timer that each byte would start anew."""
    began = time.monotonic()
    with socket.create_connection(anybody.address, timeout=60) as connection:
        connection.settimeout(0.2)
        while time.monotonic() < began + 30:
            try:
                connection.sendall(b"G" if time.monotonic() - began < 0.1 else b"x")
                if connection.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break

    assert time.monotonic() - began < 15


@pytest.mark.slow
def test_whoever_sends_nothing_is_cut_off(anybody: Asker) -> None:
    with socket.create_connection(anybody.address, timeout=60) as connection:
        assert connection.recv(1) == b""


def test_errors_tell_nothing_of_the_inside(anybody: Asker) -> None:
    for verb, body, _ in FIELDS[:40]:
        text = anybody.post(verb, body).body.decode()
        assert not [word for word in ("Traceback", "pydantic", "File ", ".py", "site-packages") if word in text]
