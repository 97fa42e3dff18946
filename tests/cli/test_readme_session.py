"""The walk through a queue's life, as a user types it: every command a process, every server a real one.

A ZooKeeper, a cluster of three nodes, one task that is claimed, lost, claimed again and completed. Then what
goes wrong: names that are none, ports that are taken, nodes that are missing. Then ``skuld dev``, which does
all of it in one terminal and must leave nothing behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import attrs
import psutil
import pytest

from skuld_py.embedded.ports import held_port

pytestmark = pytest.mark.cluster

TOP = Path(__file__).resolve().parents[2]
SKULD = [sys.executable, "-m", "skuld_py"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("SKULD")}
LEASE_S, SKEW_S = 3.0, 0.3


def skuld(*arguments: str, nodes: str = "", typed: str | None = None) -> subprocess.CompletedProcess[str]:
    """One command, to its end."""
    return subprocess.run([*SKULD, *arguments], cwd=TOP, env={**ENVIRONMENT, "SKULD_NODES": nodes},
                          input=typed, capture_output=True, text=True, timeout=60, check=False)


def free_ports(count: int) -> list[int]:
    return [held_port(free_ports, "127.0.0.1") for _ in range(count)]


def until(look: Callable[[], Any], within_s: float = 20.0) -> Any:
    """Look until there is something; each look is a command or a system call, so there is no pause."""
    deadline = time.monotonic() + within_s
    while not (seen := look()):
        assert time.monotonic() < deadline, "it did not come in time"
    return seen


class Running:
    """A command that runs until it is told to stop; its output is collected line by line."""

    def __init__(self, *arguments: str, nodes: str = "", environment: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [*SKULD, *arguments], cwd=TOP, env={**ENVIRONMENT, "SKULD_NODES": nodes, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
        self.output = ""

    def says(self, words: str, within_s: float = 20.0) -> str:
        """What it has printed once it has printed these words."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + within_s
        while words not in self.output:
            left = deadline - time.monotonic()
            ready = select.select([self.process.stdout], [], [], max(0.0, left))[0]
            fresh = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            assert fresh, f"no {words!r} within {within_s} s, but:\n{self.output}"
            self.output += fresh.decode()
        return self.output

    def ended(self, within_s: float = 20.0) -> int:
        """Its exit status; its output is read to the end."""
        rest, _ = self.process.communicate(timeout=within_s)
        self.output += rest.decode()
        return self.process.returncode

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.communicate(timeout=60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.communicate()


@attrs.frozen
class Place:
    """A cluster that serves."""

    zookeeper: str
    nodes: str
    ports: list[int]

    def run(self, *arguments: str, typed: str | None = None) -> str:
        """Standard output of a command that must succeed."""
        ran = skuld(*arguments, nodes=self.nodes, typed=typed)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.run(*arguments, "--json"))


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    data = tmp_path_factory.mktemp("zookeeper")
    with Running("zookeeper", "--data", str(data), "--port", "0") as server:
        found = re.search(r"zookeeper is ready at (127\.0\.0\.1:\d+)", server.says(", its data in"))
        assert found is not None
        yield found[1]


@contextlib.contextmanager
def nodes_of(cluster: str, zookeeper: str, ports: list[int], directory: Path) -> Iterator[list[Running]]:
    with contextlib.ExitStack() as held:
        nodes = [held.enter_context(Running(
            "node", "--cluster", cluster, "--zookeeper", zookeeper, "--port", str(port),
            "--data", str(directory / str(port)))) for port in ports]
        for node, port in zip(nodes, ports, strict=True):
            node.says(f"node 127.0.0.1:{port} of cluster {cluster} is ready\n")
        yield nodes


@pytest.fixture(scope="module")
def place(zookeeper: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    ports = free_ports(3)
    made = skuld("cluster", "create", "skuld", "--zookeeper", zookeeper, "--partitions", "8",
                 "--replicas", "3", "--skew", f"{SKEW_S}s")
    assert made.returncode == 0, made.stderr
    assert "8 partitions, 3 copies of each task, clocks within 300 ms" in made.stdout
    with nodes_of("skuld", zookeeper, ports, tmp_path_factory.mktemp("nodes")):
        ready = Place(zookeeper, ",".join(f"127.0.0.1:{port}" for port in ports), ports)
        until(lambda: ready.json("status")["attention"] == [])
        yield ready


# -- the walk ------------------------------------------------------------------------------------


def test_the_life_of_a_task(place: Place) -> None:
    assert place.run("count", "general") == "0\n"

    task_id = place.run("enqueue", "general", "sup?").strip()
    assert place.run("count", "general") == "1\n"
    listed = place.run("list", "general").splitlines()
    assert len(listed) == 2 and task_id in listed[1] and "waiting" in listed[1] and listed[1].endswith("sup?")

    claimed_at = time.monotonic()
    first = place.run("claim", "general", "--lease", f"{LEASE_S}s")
    first_id, first_token, payload = first.rstrip("\n").split("\t")
    assert (first_id, payload) == (task_id, "sup?")
    second = skuld("claim", "general", "--lease", "10s", nodes=place.nodes)
    assert (second.returncode, second.stdout) == (0, "") and "nothing to claim in general" in second.stderr
    assert place.run("append", task_id, first_token, "0", "half way").startswith("entry 0 is stored")

    again = until(lambda: place.run("claim", "general", "--lease", "10s", "--wait", "5s"))
    assert time.monotonic() - claimed_at >= LEASE_S + SKEW_S
    again_id, token, _ = again.rstrip("\n").split("\t")
    first_number, number = (int(each.partition("-")[0]) for each in (first_token, token))
    assert again_id == task_id and number > first_number
    bare = skuld("complete", task_id, str(number), nodes=place.nodes)
    assert bare.returncode == 1 and "[unknown_claim]" in bare.stderr
    lost = skuld("renew", task_id, first_token, nodes=place.nodes)
    assert lost.returncode == 1 and "[fenced]" in lost.stderr

    assert place.run("complete", task_id, token) == "completed\n"
    check_the_end_of_it(place, task_id, str(first_number), str(number))


def check_the_end_of_it(place: Place, task_id: str, first: str, second: str) -> None:
    """Both claims are there, one of them completed the task, and people can read it."""
    task = place.json("get", task_id)
    assert [(claim["token"], claim["completed_ms"] is not None) for claim in task["claims"]] \
        == [(first, False), (second, True)]
    assert (task["state"], task["completed_token"], task["payload"]) == ("completed", second, "sup?")
    assert task["claims"][0]["log"][0]["data"] == "half way"

    shown = place.run("get", task_id)
    assert [words for words in (task_id, "sup?", "2 claims", first, second, "half way", "ended",
                                f"by claim {second}") if words not in shown] == []


def test_the_status_can_be_read(place: Place) -> None:
    place.run("enqueue", "status", "x")

    shown = place.run("status")

    assert "cluster skuld: 3 of 3 nodes live, 8 partitions, 3 copies" in shown
    assert "all is well" in shown
    assert all(f"127.0.0.1:{port}   live" in shown for port in place.ports)
    assert re.search(r"status +1 +0 +0", shown)
    assert max(map(len, shown.splitlines())) < 120


@pytest.mark.slow
def test_a_claim_is_renewed_and_released(place: Place) -> None:
    task_id = place.run("enqueue", "renewed", "x", "--priority", "-3").strip()
    held = place.json("claim", "renewed", "--lease", "5s", "--holder", "somebody@here")["claims"][0]
    assert (held["id"], held["priority"]) == (task_id, -3)

    assert place.run("renew", task_id, token_of(held), "--lease", "1h").startswith("renewed: held until ")
    shorter = place.json("renew", task_id, token_of(held), "--lease", "5s")
    assert place.json("get", task_id)["claims"][0]["end_ms"] == shorter["end_ms"] > held["end_ms"] + 3_000_000
    assert place.run("release", task_id, token_of(held)) == "released\n"
    after = place.json("claim", "renewed", "--wait", "5s")["claims"]
    assert [claim["id"] for claim in after] == [task_id]
    assert place.json("get", task_id)["claims"][0]["holder"] == "somebody@here"


@pytest.mark.slow
def test_a_task_is_put_off_fails_dies_is_revived_and_another_is_cancelled_before_its_time(place: Place) -> None:
    later = place.run("enqueue", "fates", "x", "--not-before", "1h", "--header", "trace=7").strip()
    tried = place.run("enqueue", "fates", "y", "--max-attempts", "1").strip()
    assert (state_of(place, later), place.json("get", later)["headers"]) == ("scheduled", {"trace": "7"})
    assert place.run("cancel", later) == "1 task cancelled\n"
    assert state_of(place, later) == "cancelled"

    failing = ("fail", tried, claimed(place, "fates", tried), "--error", "no such day")
    assert place.run(*failing) == place.run(*failing) == "failed\n"
    assert state_of(place, tried) == "dead"
    shown = place.run("get", tried)
    assert "dead: exhausted" in shown and "no such day" in shown and "at most 1" in shown
    until(lambda: depth_of(place, "fates") == {"cancelled": 1, "dead": 1})
    assert re.search(r"queue.* cancelled +dead\b", place.run("status")) and "dead" in place.run("top", "--once")

    assert place.run("retry", tried) == "1 task revived\n"
    other = skuld("retry", later, nodes=place.nodes)
    assert other.returncode == 1 and "[cancelled]" in other.stderr
    assert place.run("snooze", tried, claimed(place, "fates", tried), "1h") == "snoozed for 1 h\n"
    assert "snoozed, rests until " in place.run("get", tried)
    states = [line.split()[1] for line in place.run("list", "fates").splitlines()]
    assert states == ["STATE", "cancelled", "scheduled"]
    assert place.run("count", "fates") == "2\n"


@pytest.mark.slow
def test_a_completion_has_a_result_and_who_asks_for_it_is_told(place: Place) -> None:
    task_id = place.run("enqueue", "worth", "6 * 7").strip()
    assert place.run("results", task_id) == f"{task_id}\n"
    assert place.json("results", task_id)["has_result"] is False

    assert place.run("complete", task_id, claimed(place, "worth", task_id), "--result", "42") == "completed\n"

    assert place.run("results", task_id) == f"{task_id}\t42\n"
    assert (place.json("results", task_id)["result"], place.json("get", task_id)["result"]) == ("42", "42")
    assert depth_of(place, "worth") == {"completed": 1}


def claimed(place: Place, queue: str, task_id: str) -> str:
    """The token of a claim of the task, which is the one to be claimed, with its proof."""
    held, = place.json("claim", queue, "--lease", "1m", "--wait", "5s")["claims"]
    assert held["id"] == task_id
    return token_of(held)


def token_of(held: dict[str, Any]) -> str:
    """As the verbs of a holder take it."""
    return f"{held['token']}-{held['proof']}"


def state_of(place: Place, task_id: str) -> str:
    return str(place.json("get", task_id)["state"])


def depth_of(place: Place, queue: str) -> dict[str, int]:
    """How many of its tasks are in which state; states without any are left out."""
    row, = (row for row in place.json("status")["queues"] if row["queue"] == queue)
    return {state: count for state, count in row.items() if state != "queue" and count}


@pytest.mark.slow
def test_the_same_id_again_is_the_same_task(place: Place) -> None:
    task_id = place.run("enqueue", "twice", "x").strip()

    assert place.run("enqueue", "twice", "x", "--id", task_id).strip() == task_id
    other = skuld("enqueue", "twice", "y", "--id", task_id, nodes=place.nodes)

    assert place.run("count", "twice") == "1\n"
    assert other.returncode == 1 and "[conflict]" in other.stderr


@pytest.mark.slow
def test_a_stream_is_stored_while_it_is_still_open(place: Place) -> None:
    with Running("enqueue", "stream", "-", "--lines", nodes=place.nodes) as stream:
        assert stream.process.stdin is not None
        stream.process.stdin.write(b"one\n\ntwo\n")
        stream.process.stdin.flush()
        until(lambda: place.run("count", "stream") == "2\n")
        stream.process.stdin.write(b"three")
        assert stream.ended() == 0

    assert stream.output == "3 tasks enqueued to stream\n"
    payloads = [json.loads(line)["payload"] for line in place.run("list", "stream", "--json").splitlines()]
    assert sorted(payloads) == ["one", "three", "two"]
    assert len(place.run("list", "stream", "--json", "--limit", "2").splitlines()) == 2


def test_ctrl_c_ends_a_command_that_waits_without_a_traceback(place: Place) -> None:
    with Running("claim", "nothing-here", "--wait", "60s", nodes=place.nodes) as waiting:
        process = psutil.Process(waiting.process.pid)
        until(lambda: {peer.raddr.port for peer in process.net_connections()
                       if peer.raddr and peer.status == psutil.CONN_ESTABLISHED} & set(place.ports))
        waiting.process.send_signal(signal.SIGINT)

        assert waiting.ended(5) == 130
    assert "Traceback" not in waiting.output


@pytest.mark.slow
def test_the_log_of_a_task_is_written_read_and_followed(place: Place) -> None:
    task_id = place.run("enqueue", "logged", "x").strip()
    held, = place.json("claim", "logged", "--lease", "1m", "--wait", "5s")["claims"]
    token, number = token_of(held), held["token"]
    assert place.json("append", task_id, token, "0", "half way")["next_seq"] == 1

    with Running("log", task_id, "--follow", nodes=place.nodes) as following:
        following.says(f"{number}\t0\t\thalf way\n")  # what is no entry of a worker's has no time
        place.run("append", task_id, token, "1", "all of it")
        following.says(f"{number}\t1\t\tall of it\n")
        place.run("complete", task_id, token)
        assert following.ended() == 0
    assert place.run("log", task_id) == following.output


@pytest.mark.slow
def test_top_shows_what_comes_and_what_is_done(place: Place) -> None:
    assert "cluster skuld: 3 of 3 nodes live" in place.run("top", "--once")
    with Running("top", "--every", "200ms", "--json", nodes=place.nodes) as watching:
        watching.says('"enqueued_per_s": null')
        task_id = place.run("enqueue", "watched", "x").strip()
        until(lambda: any(_rate_of(line, "watched", "enqueued_per_s") for line in _looks(watching)))
        held, = place.json("claim", "watched", "--wait", "5s")["claims"]
        place.run("complete", task_id, token_of(held))
        until(lambda: any(_rate_of(line, "watched", "completed_per_s") for line in _looks(watching)))
        watching.process.send_signal(signal.SIGINT)

        assert watching.ended() == 0
    assert "Traceback" not in watching.output


def _looks(watching: Running) -> list[Any]:
    """All documents printed by now; waits for one more."""
    watching.says("\n", within_s=20)
    before = len(watching.output)
    watching.output += os.read(watching.process.stdout.fileno(), 1 << 16).decode()  # type: ignore[union-attr]
    assert len(watching.output) > before
    return [json.loads(line) for line in watching.output.splitlines(keepends=True) if line.endswith("\n")]


def _rate_of(document: Any, queue: str, rate: str) -> float:
    return next((row[rate] or 0.0 for row in document["queues"] if row["queue"] == queue), 0.0)


def test_a_configuration_file_says_where_the_nodes_are(place: Place, tmp_path: Path) -> None:
    (tmp_path / "skuld.toml").write_text(f'[all]\nnodes = "{place.nodes}"\njson = true\n')
    ran = subprocess.run([*SKULD, "count"], cwd=tmp_path, env={**ENVIRONMENT, "PYTHONPATH": str(TOP)},
                         capture_output=True, text=True, timeout=60, check=True)

    assert json.loads(ran.stdout)["count"] >= 0


# -- what goes wrong -----------------------------------------------------------------------------


def test_a_node_of_a_cluster_that_is_not_there(place: Place, tmp_path: Path) -> None:
    answer = skuld("node", "--cluster", "skald", "--zookeeper", place.zookeeper, "--data", str(tmp_path))

    assert answer.returncode == 1
    assert answer.stderr.count("\n") == 1
    assert "knows no cluster skald; it has: " in answer.stderr and "skuld" in answer.stderr


def test_a_node_on_a_port_in_use(place: Place, tmp_path: Path) -> None:
    port = place.ports[0]
    answer = skuld("node", "--cluster", "skuld", "--zookeeper", place.zookeeper, "--port", str(port),
                   "--data", str(tmp_path))

    assert answer.returncode == 1
    assert f"port: {port} on 127.0.0.1 is in use" in answer.stderr and "another port" in answer.stderr


def test_clusters_are_made_once_and_unmade_when_it_is_meant(zookeeper: str) -> None:
    where = ("--zookeeper", zookeeper)
    assert skuld("cluster", "create", "brief", *where).returncode == 0

    twice = skuld("cluster", "create", "brief", *where)
    unmeant = skuld("cluster", "destroy", "brief", *where, typed="y\n")
    silent = skuld("cluster", "destroy", "brief", *where, typed="")
    meant = skuld("cluster", "destroy", "brief", *where, typed="brief\n")
    gone = skuld("cluster", "destroy", "brief", *where, "--yes")

    assert twice.returncode == 1 and "exists already; choose another name" in twice.stderr
    assert unmeant.returncode == silent.returncode == 1 and "--yes" in unmeant.stderr
    assert meant.returncode == 0, meant.stderr
    assert gone.returncode == 1 and "knows no cluster brief" in gone.stderr


def test_a_cluster_that_lives_is_not_unmade_and_a_node_it_needs_not_taken_out(place: Place) -> None:
    where, node = ("--zookeeper", place.zookeeper), f"127.0.0.1:{place.ports[0]}"

    alive = skuld("cluster", "destroy", "skuld", *where, "--yes")
    needed = skuld("cluster", "remove", "skuld", node, *where)
    unknown = skuld("cluster", "remove", "skuld", "127.0.0.1:1", *where)
    back = skuld("cluster", "remove", "skuld", node, *where, "--back")

    assert [answer.returncode for answer in (alive, needed, unknown, back)] == [1, 1, 1, 0]
    assert "has live nodes: " in alive.stderr and node in alive.stderr and "--force" in alive.stderr
    assert "start another one first [too_few_nodes]" in needed.stderr
    assert "has no node 127.0.0.1:1; it has: 127.0.0.1:" in unknown.stderr
    assert back.stdout == f"node {node} is placed in cluster skuld, as it was before\n"


@pytest.mark.slow
def test_a_cluster_with_too_few_nodes_says_what_it_waits_for(zookeeper: str, tmp_path: Path) -> None:
    ports = free_ports(2)
    nodes = f"127.0.0.1:{ports[0]}"
    assert skuld("cluster", "create", "short", "--zookeeper", zookeeper).returncode == 0
    with nodes_of("short", zookeeper, ports, tmp_path) as running:
        until(lambda: len(json.loads(skuld("status", "--json", nodes=nodes).stdout)["nodes"]) == 2)

        status = skuld("status", nodes=nodes)
        enqueue = skuld("enqueue", "general", "x", "--timeout", "500ms", nodes=nodes)
        running[0].process.send_signal(signal.SIGTERM)
        running[1].process.send_signal(signal.SIGINT)

        assert "the cluster waits for 1 more node" in status.stdout and status.returncode == 0
        assert enqueue.returncode == 1 and "waits for 3 nodes" in enqueue.stderr
        assert [node.ended() for node in running] == [0, 0]
        assert not any("Traceback" in node.output for node in running)


# -- skuld dev -----------------------------------------------------------------------------------


def family_of(process_id: int) -> list[psutil.Process]:
    return psutil.Process(process_id).children(recursive=True)


@pytest.mark.parametrize("number", [signal.SIGINT, *(pytest.param(number, marks=pytest.mark.slow)
                                                     for number in (signal.SIGTERM, signal.SIGKILL))])
def test_dev_gets_ready_and_leaves_no_process(number: signal.Signals, tmp_path: Path) -> None:
    port = consecutive_ports(3)
    directory = ("--directory", str(tmp_path)) if number == signal.SIGKILL else ()
    with Running("dev", "--port", str(port), *directory) as dev:
        shown = dev.says("Ctrl-C stops everything", within_s=60)
        nodes = ",".join(f"127.0.0.1:{port + index}" for index in range(3))
        place = Place("", nodes, [])
        until(lambda: place.json("status")["attention"] == [])  # a leader may hand over just now
        task_id = place.run("enqueue", "general", "sup?").strip()
        assert place.run("claim", "general", "--wait", "5s").startswith(task_id)
        url = re.search(r"gateway +(http://127\.0\.0\.1:\d+)", shown)
        assert url is not None and url[1].endswith(f":{port + 80}")
        with urlopen(f"{url[1]}/v1/tasks/{task_id}") as answer:
            assert json.load(answer)["payload"] == "sup?"
        family = family_of(dev.process.pid)
        dev.process.send_signal(number)
        status = dev.ended()

    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert len(family) >= 5
    assert status == (-number if number == signal.SIGKILL else 0), dev.output
    assert all(f"127.0.0.1:{port + index}" in shown for index in range(3))
    assert "skuld enqueue general" in shown and f"export SKULD_NODES={nodes}" in shown
    files = re.search(r"its files in (\S+)", shown)
    assert files is not None and Path(files[1]).exists() == (number == signal.SIGKILL)


@pytest.mark.slow
def test_dev_has_keys_which_its_user_alone_finds(tmp_path: Path) -> None:
    port = consecutive_ports(3)
    nodes, directory, home = f"127.0.0.1:{port}", tmp_path / "kept", {"XDG_STATE_HOME": str(tmp_path / "home")}
    elsewhere = {**home, "SKULD_CLIENT_KEY": str(tmp_path / "of-prod.key")}

    def answer(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*SKULD, *arguments], cwd=TOP, capture_output=True, text=True, timeout=60,
                              check=False, env={**ENVIRONMENT, "SKULD_NODES": nodes, **environment})

    with Running("dev", "--port", str(port), "--directory", str(directory), environment=elsewhere) as dev:
        shown = dev.says("Ctrl-C stops everything", within_s=30)
        assert f"export SKULD_CLIENT_KEY={directory}/client.key" in shown
        told = answer("enqueue", "general", "sup?", environment={"SKULD_CLIENT_KEY": f"{directory}/client.key"})
        found = answer("count", "general", environment=home)
        strange = answer("enqueue", "general", "x", "--timeout", "1s", environment={"XDG_STATE_HOME": "/nowhere"})
        dev.process.send_signal(signal.SIGINT)
        assert dev.ended() == 0, dev.output
    assert told.returncode == 0 and found.stdout == "1\n", told.stderr + found.stderr
    assert strange.returncode == 1 and "[key_needed]" in strange.stderr

    again = answer("dev", "--port", str(port), "--directory", str(directory), "--no-keys", environment=home)
    assert again.returncode == 1 and "was made with keys; leave --no-keys out" in again.stderr


@pytest.mark.slow
def test_dev_without_keys_goes_on_without_them(tmp_path: Path) -> None:
    port = consecutive_ports(3)
    nowhere = {"XDG_STATE_HOME": str(tmp_path / "home")}
    place = Place("", f"127.0.0.1:{port}", [])
    kept = ("--port", str(port), "--directory", str(tmp_path / "kept"))
    with Running("dev", *kept, "--no-keys", environment=nowhere) as dev:
        dev.says("Ctrl-C stops everything", within_s=30)
        task_id = place.run("enqueue", "general", "sup?").strip()
    with Running("dev", *kept, environment=nowhere) as dev:
        shown = dev.says("Ctrl-C stops everything", within_s=30)
        assert place.run("claim", "general", "--wait", "5s").startswith(task_id)
    assert "cluster local, without keys, is ready" in shown and not (tmp_path / "home").exists()


@pytest.mark.slow
def test_dev_speaks_json_and_its_nodes_are_not_told_what_is_meant_for_others(tmp_path: Path) -> None:
    port = consecutive_ports(3)
    (tmp_path / "skuld.toml").write_text("[all]\njson = true\n[node]\npartitions = 4096\n")
    environment = {"SKULD_CONFIG": str(tmp_path / "skuld.toml"), "SKULD_NODE_REPLICAS": "9", "SKULD_JSON": "1"}
    with Running("dev", "--port", str(port), environment=environment) as dev:
        ready = json.loads(dev.says("\n", within_s=30))
        assert ready.get("event") == "ready", dev.output
        assert [node["address"] for node in ready["nodes"]] == [f"127.0.0.1:{port + index}" for index in range(3)]
        os.kill(ready["nodes"][0]["process"], signal.SIGKILL)
        dev.says(f'{{"event": "ended", "who": "node 127.0.0.1:{port}", "log": "{ready["nodes"][0]["log"]}"}}\n')
        dev.process.send_signal(signal.SIGINT)
        assert dev.ended() == 0

    assert [json.loads(line)["event"] for line in dev.output.splitlines()] == ["ready", "ended", "stopping"]


def test_dev_that_is_stopped_while_it_starts_leaves_no_process() -> None:
    with Running("dev", "--port", str(consecutive_ports(3))) as dev:
        family = until(lambda: family_of(dev.process.pid))
        dev.process.send_signal(signal.SIGINT)

        assert dev.ended() == 0, dev.output
    assert psutil.wait_procs(family, timeout=60)[1] == []
    assert "Traceback" not in dev.output


@pytest.mark.slow
def test_dev_goes_on_when_a_node_is_killed_and_says_so() -> None:
    port = consecutive_ports(3)
    with Running("dev", "--port", str(port)) as dev:
        shown = dev.says("Ctrl-C stops everything", within_s=30)
        victim = re.search(rf"node +127\.0\.0\.1:{port} +(\d+)", shown)
        assert victim is not None
        os.kill(int(victim[1]), signal.SIGKILL)
        dev.says(f"node 127.0.0.1:{port} has ended")

        place = Place("", f"127.0.0.1:{port + 1},127.0.0.1:{port + 2}", [])
        until(lambda: any("1 node is down" in line for line in place.json("status")["attention"]))
        assert place.run("enqueue", "general", "sup?")


@pytest.mark.slow
def test_dev_shows_what_its_worker_says() -> None:
    port = str(consecutive_ports(3))
    with Running("dev", "--port", port, "--worker", "general", "--app", "no.such") as dev:
        dev.says("the worker has ended with status 4", within_s=60)

        assert "there is no module no.such" in dev.output
        dev.process.send_signal(signal.SIGTERM)
        assert dev.ended() == 0, dev.output


def consecutive_ports(count: int) -> int:
    """The first of some neighbouring ports that nobody listens at."""
    for first in range(21_000, 32_000, 10):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                held.enter_context(socket.create_server(("127.0.0.1", port)))
            return first
    raise AssertionError("no neighbouring ports are free")
