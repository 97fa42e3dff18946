"""Tokens and certificates that change while a gateway runs: read again at SIGHUP, ended by time, and limited to
queues."""

from __future__ import annotations

import http.client
import json
import signal
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import attrs
import pytest

from gateway.asking import Asker, until_true
from gateway.conftest import THROWAWAY
from skuld_py.embedded.local import LocalCluster
from skuld_py.gateway.access import hash_of, new_token

Open = Callable[[str], http.client.HTTPConnection]
pytestmark = pytest.mark.cluster


@attrs.frozen
class Place:
    """A gateway, and the file of its tokens."""

    path: Path
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def change(self, text: str) -> None:
        """Write the file and have it read."""
        self.path.write_text(text)
        self.process.send_signal(signal.SIGHUP)


def entry(name: str, token: str, more: str = "", scopes: str = '["enqueue", "work", "read", "admin"]') -> str:
    return f'[[token]]\nname = "{name}"\nsha256 = "{hash_of(token)}"\nscopes = {scopes}\n{more}\n'


@pytest.fixture
def start(cluster: LocalCluster, tmp_path: Path) -> Callable[[str], Place]:
    """Starts a gateway with the entries of some tokens."""
    def started(text: str) -> Place:
        path = tmp_path / "tokens.toml"
        path.touch(mode=0o600)
        path.write_text(text)
        url, process = cluster.start_gateway("--tokens", str(path), "--wait", "60s")
        return Place(path, url, process, cluster.gateway_log(len(cluster._gateways) - 1))
    return started


@pytest.fixture
def opened() -> Iterator[Open]:
    """Opens connections that stay open until the test ends."""
    with ExitStack() as connections:
        yield lambda url: connections.enter_context(
            closing(http.client.HTTPConnection(*Asker(url).address, timeout=60)))


def test_tokens_are_read_again_and_a_bad_file_changes_nothing(start: Callable[[str], Place], opened: Open) -> None:
    old, new = new_token(), new_token()
    place = start(entry("old", old))
    kept = opened(place.url)
    assert _status(kept, old) == 200

    place.change(entry("old", old) + entry("new", new))
    until_true(lambda: Asker(place.url, new).get("/v1/queues").status == 200)
    assert _status(kept, old) == 200

    place.change(entry("new", new) + "[[token")
    until_true(lambda: "ERROR" in place.log.read_text())
    told = place.log.read_text()
    assert all(word in told for word in (str(place.path), "TOML", "stay in force", "SIGHUP again"))
    assert _status(kept, old) == _status(kept, new) == 200

    place.change(entry("new", new))
    until_true(lambda: _status(kept, old) == 401)
    assert _status(kept, new) == 200 and place.process.poll() is None


def test_what_was_asked_goes_on_while_tokens_are_read_again(start: Callable[[str], Place], opened: Open,
                                                            queue: str) -> None:
    token, other = new_token(), new_token()
    place = start(entry("ci", token))
    asker = Asker(place.url, token)
    asking = opened(place.url)
    asking.request("POST", "/v1/tasks/claim", json.dumps({"queue": queue, "wait_s": 50}),
                   {"authorization": f"Bearer {token}", "content-type": "application/json"})

    place.change(entry("ci", token) + entry("other", other))
    until_true(lambda: Asker(place.url, other).get("/v1/queues").status == 200)
    task_id = asker.enqueue(queue)

    assert [held["id"] for held in json.load(asking.getresponse())["claims"]] == [task_id]


def test_a_gateway_without_tokens_outlives_the_signal(cluster: LocalCluster) -> None:
    url, process = cluster.start_gateway()
    log = cluster.gateway_log(len(cluster._gateways) - 1)

    process.send_signal(signal.SIGHUP)

    until_true(lambda: "--tokens" in log.read_text())
    assert Asker(url).get("/v1/queues").status == 200


def test_a_token_that_expires_ends_on_an_open_connection(start: Callable[[str], Place], opened: Open) -> None:
    token = new_token()
    place = start(entry("ci", token))
    kept = opened(place.url)
    assert _status(kept, token) == 200

    place.change(entry("ci", token, f"expires = {(datetime.now(UTC) + timedelta(seconds=1)).isoformat()}"))

    until_true(lambda: _status(kept, token) == 401)
    assert "time of this token is over" in Asker(place.url, token).get("/v1/queues").json["message"]


def test_a_follower_whose_token_is_gone_is_told_so_and_nothing_else(start: Callable[[str], Place],
                                                                    queue: str) -> None:
    gone, kept = new_token(), new_token()
    place = start(entry("gone", gone) + entry("kept", kept))
    asker = Asker(place.url, kept)
    asker.enqueue(queue)
    held = asker.claim(queue, lease_s=60)
    name = {name: held[name] for name in ("id", "token", "proof")}
    with Asker(place.url, gone).streaming(f"/v1/tasks/{held['id']}/log?follow=true&wait_s=50") as answer:
        asker.post("append", {**name, "seq": 0, "entries": [{"data": "first"}]})
        assert json.loads(answer.readline())["data"] == "first"

        place.change(entry("kept", kept))
        until_true(lambda: Asker(place.url, gone).get("/v1/queues").status in (401, 429))
        asker.post("append", {**name, "seq": 1, "entries": [{"data": "second"}]})
        rest = answer.read()

    assert [*json.loads(rest)] == ["error"] and json.loads(rest)["error"]["code"] in ("unauthorized",
                                                                                      "too_many_failures")
    assert b"second" not in rest


def test_a_token_of_some_queues_is_refused_elsewhere(start: Callable[[str], Place], queue: str) -> None:
    some, every = new_token(), new_token()
    place = start(entry("some", some, f'queues = ["{queue}"]') + entry("every", every))
    asker = Asker(place.url, some)
    task_id = asker.enqueue(queue)
    asker.enqueue(f"{queue}-2")

    for answer in (asker.post("enqueue", {"queue": "other", "payload": "x"}), asker.get("/v1/tasks/list"),
                   asker.post("claim", {"queue": "other", "wait_s": 0}), asker.get("/v1/queues"),
                   asker.post("cancel", {"ids": [task_id]}), asker.get("/v1/tasks/count?queue=other")):
        assert (answer.status, answer.json["code"], answer.json["field"]) == (403, "forbidden_queue", "queue")
        assert queue in answer.json["message"]
    assert asker.get(f"/v1/tasks/list?queue={queue}").lines[0]["id"] == task_id
    assert asker.claim(queue)["id"] == task_id
    assert Asker(place.url, every).get("/v1/tasks/count?queue=other").json == {"count": 0}


def _status(connection: http.client.HTTPConnection, token: str) -> int:
    """Ask over a connection that stays open."""
    connection.request("GET", "/v1/queues", headers={"authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


def test_a_certificate_is_read_again_and_a_bad_one_changes_nothing(cluster: LocalCluster, tmp_path: Path) -> None:
    path = tmp_path / "gateway.pem"
    path.touch(mode=0o600)
    path.write_bytes(THROWAWAY.read_bytes())
    url, process = cluster.start_gateway("--certificate", str(path))
    log = cluster.gateway_log(len(cluster._gateways) - 1)
    old = ssl.get_server_certificate(Asker(url).address)

    path.write_text("-----BEGIN PRIVATE KEY-----")
    process.send_signal(signal.SIGHUP)
    until_true(lambda: "ERROR" in log.read_text())
    assert "certificate that was read before stays in use" in log.read_text()
    assert ssl.get_server_certificate(Asker(url).address) == old

    path.write_text(another(tmp_path))
    process.send_signal(signal.SIGHUP)
    until_true(lambda: ssl.get_server_certificate(Asker(url).address) != old)
    assert f"the certificate of {path} is in use" in log.read_text()
    assert ssl.get_server_certificate(Asker(url).address) in path.read_text()


def test_a_gateway_that_no_node_answers_says_so_before_anybody_asks(cluster: LocalCluster) -> None:
    url, _ = cluster.start_gateway("--nodes", "127.0.0.1:1", "--timeout", "200ms")
    log = cluster.gateway_log(len(cluster._gateways) - 1)

    until_true(lambda: "no node answers to this gateway yet: " in log.read_text())
    assert "127.0.0.1:1" in log.read_text() and url


def another(place: Path) -> str:
    """A further certificate for loopback that signs itself, and its key."""
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-subj", "/CN=another", "-keyout", place / "k.pem", "-out", place / "c.pem"],
                   check=True, capture_output=True, timeout=60)
    return (place / "k.pem").read_text() + (place / "c.pem").read_text()
