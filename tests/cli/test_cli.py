"""The command line by itself: what it accepts, how it refuses, and that help is fast.

Nothing here needs a cluster. Every refusal must end with a status that is not 0, name the field that is wrong
and say what would be right.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from patience import in_time
from skuld_py import __version__
from skuld_py.cli.failures import LASTING, SERVICES
from skuld_py.cli.main import main
from skuld_py.cli.verbed import inner_of
from skuld_py.config.scaling import PLAIN, Scaling
from skuld_py.config.timing import Retention
from skuld_py.errors import Refused, Uncertain
from skuld_py.verbs import table

TOP = Path(__file__).resolve().parents[2]
ID = "0" * 32
TOKEN = str(1 << 32)
OF_TASKS = [verb.command for verb in table.VERBS if verb.command]
VERBS = ("dev", "demo", "zookeeper", "cluster", "keys", "certificates", "node", "drain", "status", "verify", "top",
         "members", "ring", *dict.fromkeys(command.split()[0] for command in OF_TASKS), "worker",
         "workflow", "scheduler", "backup", "archive", "history", "gateway", "token", "manual", "config",
         "completion")
OF_CLUSTER = ("cluster create", "cluster destroy", "cluster documents", "cluster remove", "cluster force-epoch",
              "cluster forget", "cluster history", "cluster log", "cluster proofs", "cluster replicas",
              "cluster restore", "cluster rotate", "cluster rules", "cluster secure", "cluster share")
OF_KEYS = ("keys make", "keys authorise", "keys rotate", "keys revoke", "keys list")
OF_CONFIG = ("config show",)
OF_WORKFLOW = ("workflow check", "workflow graph", "workflow submit", "workflow status", "workflow list",
               "workflow await", "workflow kill")
OF_BACKUP = ("backup take", "backup verify")
OF_ARCHIVE = ("archive compact", "history files", "history restore")
OF_BULK = ("bulk cancel", "bulk move", "bulk purge", "bulk release", "bulk retry")
OF_SCHEDULE = ("schedule list", "schedule put", "schedule remove")
GROUPS = {"cluster": OF_CLUSTER, "keys": OF_KEYS, "schedule": OF_SCHEDULE, "bulk": OF_BULK,
          "config": OF_CONFIG, "workflow": OF_WORKFLOW, "backup": OF_BACKUP}
IN_TIME_S = 4.5
"""Less than the five seconds without --timeout; on a busy machine what is only CPU takes seconds, too."""
EVERY_VERB = (*(verb for verb in VERBS if verb not in GROUPS), *OF_CLUSTER, *OF_KEYS, *OF_SCHEDULE, *OF_BULK,
              *OF_CONFIG, *OF_WORKFLOW, *OF_BACKUP, *OF_ARCHIVE)


def skuld(*arguments: str, typed: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, input=typed, env=env, prog_name="skuld")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port somebody listens at, who never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


@pytest.fixture
def closed() -> Iterator[int]:
    """A port nobody listens at. It is bound, so that nobody else does meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


# -- help ----------------------------------------------------------------------------------------


def test_help_lists_every_verb_by_what_it_is_about() -> None:
    answer = skuld("--help")

    assert answer.exit_code == 0
    listed = [line.split()[0] for line in answer.output.splitlines() if line.startswith("  ")]
    assert [verb for verb in VERBS if verb not in listed] == []
    assert [title for title in ("Clusters:", "Tasks:", "Workers:") if title not in answer.output] == []


@pytest.mark.parametrize("verb", [*VERBS, *OF_CLUSTER, *OF_SCHEDULE])
def test_the_help_of_every_verb_has_an_example(verb: str) -> None:
    answer = skuld(*verb.split(), "--help")

    assert answer.exit_code == 0, answer.output
    assert verb in GROUPS or f" skuld {verb}" in answer.output or f"$(skuld {verb}" in answer.output


def command_of(verb: str) -> click.Command:
    context = click.Context(main)
    command: click.Command | None = main
    for part in verb.split():
        assert command is not None
        is_group = isinstance(command, click.Group)
        command = command.get_command(context, part) if is_group else inner_of(command)[part]
    assert command is not None
    return command


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_every_option_is_explained_and_has_a_twin_in_the_environment(verb: str) -> None:
    for parameter in command_of(verb).params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name
            named = max(parameter.opts, key=len).lstrip("-")
            assert "_".join(("SKULD", *verb.split(), named)).upper().replace("-", "_") in (parameter.envvar or ())


def test_no_verb_is_missing_above() -> None:
    known = [verb for verb in main.list_commands(click.Context(main)) if verb not in VERBS]
    assert known == []
    for group, verbs in GROUPS.items():
        inner = command_of(group)
        assert isinstance(inner, click.Group)
        assert sorted(f"{group} {name}" for name in inner.commands) == sorted(verbs)


@pytest.mark.parametrize("verb", EVERY_VERB)
def test_every_verb_speaks_json(verb: str) -> None:
    assert any("--json" in parameter.opts for parameter in command_of(verb).params)


def test_help_loads_nothing_heavy() -> None:
    heavy = ("zmq", "kazoo", "pyspark", "lmdb", "rich", "msgpack", "attrs")
    program = ("import sys; from skuld_py.cli.main import main\n"
               "try: main(['--help'])\n"
               "except SystemExit: sys.stderr.write(str([x for x in sys.argv[1:] if x in sys.modules]))")

    ran = subprocess.run([sys.executable, "-c", program, *heavy], cwd=TOP, capture_output=True, text=True,
                         check=True)

    assert ran.stderr.strip() == "[]"


def test_the_version() -> None:
    assert skuld("--version").output == f"skuld {__version__}\n"


# -- wrong command lines -------------------------------------------------------------------------

WRONG = {
    "no such verb": (["enque", "q", "x"], ["'enque'", "'enqueue'"]),
    "no payload": (["enqueue", "q"], ["PAYLOAD", "'-'", "--file"]),
    "two payloads": (["enqueue", "q", "x", "--file", __file__], ["PAYLOAD", "--file"]),
    "lines of nothing": (["enqueue", "q", "x", "--lines"], ["--lines", "'-'", "--file"]),
    "lines with an id": (["enqueue", "q", "-", "--lines", "--id", ID], ["--lines", "--id"]),
    "no such file": (["enqueue", "q", "--file", "/no/such/file"], ["--file", "No such file"]),
    "bad id to enqueue": (["enqueue", "q", "x", "--id", "7"], ["--id", "32 characters", "0-9 and a-v"]),
    "a time that is none": (["enqueue", "q", "x", "--not-before", "soon"], ["--not-before", "'soon'", "10m"]),
    "a time without a zone": (["enqueue", "q", "x", "--expires", "2026-12-01T08:00"], ["--expires", "time zone"]),
    "no header": (["enqueue", "q", "x", "--header", "trace"], ["--header", "'trace'", "KEY=VALUE"]),
    "a header twice": (["enqueue", "q", "x", "--header", "a=1", "--header", "a=2"], ["--header a=", "twice"]),
    "a name for many": (["enqueue", "q", "-", "--lines", "--unique", "n"], ["--unique", "one of them"]),
    "a policy that is none": (["enqueue", "q", "x", "--on-dep-failure", "shrug"], ["--on-dep-failure", "ignore"]),
    "a dependency that is no id": (["enqueue", "q", "x", "--dep", "7"], ["--dep", "32 characters"]),
    "too many attempts": (["enqueue", "q", "x", "--max-attempts", "1001"], ["--max-attempts", "1<=x<=1000"]),
    "bad id": (["get", "xyz"], ["ID", "32 characters", "as enqueue printed it"]),
    "id of other letters": (["get", "w" * 32], ["ID", "0-9 and a-v"]),
    "bad token": (["complete", ID, "first"], ["TOKEN", "'first'"]),
    "no token": (["complete", ID], ["TOKEN"]),
    "bad seq": (["append", ID, "1", "-1", "text"], ["-1"]),
    "bad duration": (["claim", "q", "--lease", "10 days"], ["--lease", "'10 days'", "10s, 500ms, 2m, 1h"]),
    "no duration": (["claim", "q", "--wait", ""], ["--wait", "10s, 500ms, 2m, 1h"]),
    "a negative one": (["claim", "q", "--wait", "-1s"], ["--wait", "10s, 500ms, 2m, 1h"]),
    "a lease of nothing": (["renew", ID, "1", "--lease", "0"], ["--lease", "1 ms to 24 h"]),
    "a lease too long": (["claim", "q", "--lease", "25h"], ["--lease", "1 ms to 24 h"]),
    "bad timeout": (["count", "--timeout", "soon"], ["--timeout", "'soon'"]),
    "first client": (["cluster", "create", "c", "--first-client", "a.key"],
                     ["--first-client", "without --secure", "say both, or neither"]),
    "bad skew": (["cluster", "create", "c", "--skew", "2h"], ["--skew", "1 ms to 1 h"]),
    "a log of no cluster": (["cluster", "log"], ["NAME"]),
    "a log from before its beginning": (["cluster", "log", "c", "--from", "-1"], ["--from", "-1"]),
    "no entries of a log": (["cluster", "log", "c", "-n", "0"], ["-n", "0"]),
    "a log of no task": (["log"], ["ID"]),
    "a log of what is no task": (["log", "skuld"], ["ID", "32 characters"]),
    "a log of a claim that is none": (["log", ID, "--token", "0"], ["--token", "0"]),
    "a look too soon": (["top", "--every", "1ms"], ["--every", "100 ms to 1 h"]),
    "no such shell": (["completion", "tcsh"], ["'tcsh'", "bash", "zsh", "fish"]),
    "members of no cluster": (["members"], ["--cluster"]),
    "a ring of no cluster": (["ring"], ["--cluster"]),
    "a node of no cluster": (["node", "--data", "d"], ["--cluster"]),
    "a node without data": (["node", "--cluster", "c"], ["--data"]),
    "a port too high": (["node", "--cluster", "c", "--data", "d", "--port", "70000"], ["--port", "65535"]),
    "a worker without queue": (["worker", "--app", "m"], ["--queue"]),
    "a worker without app": (["worker", "--queue", "q"], ["--app"]),
    "a dev worker without app": (["dev", "--worker", "q"], ["--worker", "--app"]),
    "a dev app without worker": (["dev", "--app", "m"], ["--worker", "--app"]),
    "an archive nowhere": (["archive"], ["ROOT"]),
    "an archive too often": (["archive", "r", "--every", "0"], ["--every", "1 s to 8784 h"]),
    "an archive at no rate": (["archive", "r", "--rate", "0"], ["--rate", "from 1 up, or full"]),
    "an archive in a format that needs a catalog": (["archive", "r", "--format", "iceberg"],
                                                    ["--format", "catalog", "Say delta", "'skuld history files'"]),
    "a setting that is none": (["archive", "r", "--conf", "spark.x"], ["--conf", "no setting", "KEY=VALUE"]),
    "a history of no task": (["history", "r", "--id", "7"], ["--id", "32 characters"]),
    "a history of what has not ended": (["history", "r", "--state", "waiting"], ["--state", "completed"]),
    "a history of none": (["history", "r", "--limit", "0"], ["--limit", "0"]),
    "a count of an answer": (["history", "r", "--count", "--sql", "SELECT 1"], ["--count", "--sql"]),
}


@pytest.mark.parametrize(("arguments", "words"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_command_line_is_answered_with_the_right_one(arguments: list[str], words: list[str]) -> None:
    answer = skuld(*arguments, typed="")

    assert answer.exit_code == 2
    assert [word for word in words if word not in answer.stderr] == [], answer.stderr
    assert "Traceback" not in answer.output


# -- refusals ------------------------------------------------------------------------------------

REFUSED = {
    "cluster name": (["cluster", "create", "my cluster"],
                     ["cluster", "'my cluster'", "letters, digits", "[bad_name]"]),
    "a node's cluster": (["node", "--cluster", "a/b", "--data", "d"], ["cluster", "'a/b'", "[bad_name]"]),
    "a log's cluster": (["cluster", "log", "a/b"], ["cluster", "'a/b'", "[bad_name]"]),
    "members' cluster": (["members", "--cluster", "a/b"], ["cluster", "'a/b'", "[bad_name]"]),
    "a ring's cluster": (["ring", "--cluster", "a/b"], ["cluster", "'a/b'", "[bad_name]"]),
    "a path to forget": (["cluster", "forget", "c", "../x"], ["NODE", "letters, digits", "[bad_name]"]),
    "a path as node": (["cluster", "remove", "c", "../x"], ["NODE", "letters, digits", "[bad_name]"]),
    "a path as name": (["cluster", "destroy", "../x", "--yes"], ["cluster", "letters, digits", "[bad_name]"]),
    "partitions": (["cluster", "create", "c", "--partitions", "7"],
                   ["partitions: 7", "power of two", "8, 16, 32", "[bad_partitions]"]),
    "replicas": (["cluster", "create", "c", "--replicas", "0"], ["replicas: 0", "use 3", "[bad_replicas]"]),
    "queue to list": (["list", "a/b"], ["queue", "'a/b'", "letters, digits", "[bad_name]"]),
    "queue to count": (["count", "a/b"], ["queue", "'a/b'", "[bad_name]"]),
    "queue to enqueue": (["enqueue", "a b", "x"], ["queue", "'a b'", "[bad_name]"]),
    "queue to claim": (["claim", ""], ["queue", "[bad_name]"]),
    "count": (["claim", "q", "-n", "0"], ["n: 0", "1..1000", "[bad_count]"]),
    "priority": (["enqueue", "q", "x", "--priority", "3000000000"],
                 ["priority", "32 bits", "[bad_priority]"]),
    "address": (["count", "--nodes", "here"], ["node: 'here'", "HOST:PORT", "[bad_address]"]),
    "an address among others": (["status", "--nodes", "127.0.0.1:1,x:"], ["node: 'x:'", "[bad_address]"]),
    "no address": (["status", "--nodes", ","], ["nodes", "HOST:PORT", "[no_nodes]"]),
    "a dev queue": (["dev", "--worker", "a b", "--app", "m"], ["queue", "'a b'", "[bad_name]"]),
    "a history's queue": (["history", ".", "--queue", "a b"], ["queue", "'a b'", "[bad_name]"]),
    "a history nowhere": (["history", "/no/such"], ["root: /no/such is no directory", "[not_an_archive]"]),
    "a history of nothing": (["history", str(TOP)], ["root: ", "'skuld archive", "[not_an_archive]"]),
    "an archive in a file": (["archive", __file__ + "/x", "--timeout", "1ms"], ["root: ", "[bad_root]"]),
    "holder": (["claim", "q", "--holder", "a b"], ["holder", "[bad_name]"]),
    "ZooKeeper's address": (["cluster", "create", "c", "--zookeeper", "zk:port"],
                            ["'zk:port'", "host:port", "[bad_hosts]"]),
}


@pytest.mark.parametrize(("arguments", "words"), REFUSED.values(), ids=REFUSED.keys())
def test_a_refusal_names_the_field_and_the_remedy_in_one_line(arguments: list[str], words: list[str]) -> None:
    answer = skuld(*arguments, typed="")

    assert answer.exit_code == (LASTING if arguments[0] in SERVICES else 1)
    assert answer.stderr.startswith("error: ") and answer.stderr.count("\n") == 1
    assert [word for word in words if word not in answer.stderr] == [], answer.stderr


@pytest.mark.parametrize("verb", [["cluster", "create", "c"], ["cluster", "destroy", "c", "--yes"],
                                  ["cluster", "remove", "c", "h:1"], ["cluster", "forget", "c", "h:1"],
                                  ["cluster", "log", "c"], ["members", "--cluster", "c"],
                                  ["ring", "--cluster", "c"],
                                  ["node", "--cluster", "c", "--data", "unused"]])
def test_a_zookeeper_that_is_not_there_is_said_in_time(verb: list[str], closed: int) -> None:
    timeout = [] if verb[0] == "node" else ["--timeout", "900ms"]

    def asked() -> float:
        began = time.monotonic()
        answer = skuld(*verb, "--zookeeper", f"127.0.0.1:{closed}", *timeout)
        assert answer.exit_code == 1
        assert answer.stderr.count("\n") == 1
        assert f"127.0.0.1:{closed}" in answer.stderr and "check that it runs" in answer.stderr
        return time.monotonic() - began
    in_time(15 if verb[0] == "node" else IN_TIME_S, asked)


@pytest.mark.parametrize("verb", [["count"], ["list"], ["status"], ["claim", "q"], ["get", ID],
                                  ["enqueue", "q", "x"], ["complete", ID, TOKEN], ["renew", ID, TOKEN],
                                  ["release", ID, TOKEN], ["append", ID, TOKEN, "0", "text"],
                                  ["log", ID], ["top"], ["top", "--once"]])
def test_nodes_that_are_not_there_are_said_in_time(verb: list[str], closed: int) -> None:
    def asked() -> float:
        began = time.monotonic()
        answer = skuld(*verb, "--nodes", f"127.0.0.1:{closed}", "--timeout", "300ms")
        assert answer.exit_code == 1
        assert f"nodes: none of 127.0.0.1:{closed} can be reached; are they running?" in answer.stderr
        return time.monotonic() - began
    in_time(IN_TIME_S, asked)


def test_a_port_in_use_is_said_before_anything_starts(taken: int, tmp_path: Path) -> None:
    zookeeper = skuld("zookeeper", "--data", str(tmp_path), "--port", str(taken))
    dev = skuld("dev", "--nodes", "1", "--port", str(taken))

    assert zookeeper.exit_code == dev.exit_code == 1
    assert f"port {taken}" in zookeeper.stderr and "choose another port" in zookeeper.stderr
    assert f"port: {taken}" in dev.stderr and "--port" in dev.stderr


def test_uncertain_is_another_status_than_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def doubt(self: object, queue: str | None = None, **_: object) -> int:
        raise Uncertain("deadline", "no answer from 127.0.0.1:13000 before the deadline")

    monkeypatch.setattr("skuld_py.client.client.Client.count", doubt)
    answer = skuld("count")

    assert answer.exit_code == 3
    assert answer.stderr == "error: no answer from 127.0.0.1:13000 before the deadline [deadline]\n"


def test_a_node_is_told_what_the_command_line_expects_of_its_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr("skuld_py.runtime.server.serve", lambda *_, **named: given.append(named["expected"]))
    plain = ("node", "--cluster", "c", "--data", "d")

    assert skuld(*plain).exit_code == 0
    assert skuld(*plain, "--partitions", "16", "--replicas", "5", "--skew", "3s").exit_code == 0
    assert given == [{"partitions": None, "replicas": None, "skew_ms": None},
                     {"partitions": 16, "replicas": 5, "skew_ms": 3_000}]


def test_a_node_is_told_which_options_for_large_clusters_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Scaling] = []
    monkeypatch.setattr("skuld_py.runtime.server.serve", lambda *_, **named: given.append(named["scaling"]))
    plain = ("node", "--cluster", "c", "--data", "d")
    switches = {"--direct-join": "direct_join", "--transfer": "transfer", "--sharing": "sharing",
                "--versions": "versions"}

    for option in switches:
        assert skuld(*plain, option).exit_code == 0
    assert given == [Scaling(**{name: True}) for name in switches.values()]
    assert skuld(*plain, "--scheduler", "h:1", "--scheduler", "h:2").exit_code == skuld(*plain).exit_code == 0
    assert given[-2:] == [Scaling(schedulers=("h:1", "h:2")), PLAIN]


def test_a_node_keeps_what_has_ended_for_ever_unless_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Retention] = []
    monkeypatch.setattr("skuld_py.runtime.server.serve", lambda *_, **named: given.append(named["retention"]))
    plain = ("node", "--cluster", "c", "--data", "d")

    assert skuld(*plain).exit_code == skuld(*plain, "--retention", "168h").exit_code == 0
    monkeypatch.setenv("SKULD_RETENTION", "90s")
    assert skuld(*plain).exit_code == 0
    assert skuld(*plain, "--archive").exit_code == 0
    assert given == [Retention(keep_ms) for keep_ms in (0, 168 * 3_600_000, 90_000)] + [
        Retention(90_000, archives=True)]
    assert [each.slice_ms for each in given] == [1_000, 600_000, 9_000, 9_000]
    assert skuld(*plain, "--retention", "0s").exit_code == 2
    monkeypatch.delenv("SKULD_RETENTION")
    answer = skuld(*plain, "--archive")
    assert answer.exit_code == 2 and "--archive" in answer.stderr and "--retention" in answer.stderr


@pytest.mark.parametrize("verb", ["count", "status"])
def test_a_name_that_does_not_resolve_is_said_to_be_one(verb: str) -> None:
    answer = skuld(verb, "--nodes", "no-such-host.invalid:13000", "--timeout", "100ms")

    assert answer.exit_code == 1
    assert "no address is known by the name in no-such-host.invalid:13000" in answer.stderr


def test_an_ipv6_address_is_not_said_to_be_an_unknown_name() -> None:
    answer = skuld("status", "--nodes", "[::1]:9", "--timeout", "100ms")

    assert answer.exit_code == 1 and "none of [::1]:9 can be reached; are they running?" in answer.stderr


def test_what_is_no_token_is_answered_with_what_one_is() -> None:
    answer = skuld("renew", ID, "abc")

    assert answer.exit_code == 2
    assert "'abc' is no token; give the number that 'skuld claim' printed" in answer.stderr


def test_an_interrupt_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: object, queue: str | None = None, **_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("skuld_py.client.client.Client.count", interrupt)
    answer, told = skuld("count"), skuld("count", "--json")

    assert (answer.exit_code, told.exit_code) == (130, 130)
    assert answer.output.strip() == told.stdout == ""
    assert json.loads(told.stderr)["code"] == "interrupted" and json.loads(told.stderr)["outcome"] == "uncertain"


def test_the_environment_gives_options(closed: int) -> None:
    addresses = f"127.0.0.1:{closed}"

    everywhere = skuld("count", env={"SKULD_NODES": addresses, "SKULD_TIMEOUT": "200ms"})
    here = skuld("count", env={"SKULD_COUNT_NODES": addresses, "SKULD_NODES": "x", "SKULD_TIMEOUT": "200ms"})
    bad = skuld("claim", "q", env={"SKULD_CLAIM_LEASE": "long"})
    inner = skuld("cluster", "create", "c", env={"SKULD_CLUSTER_CREATE_PARTITIONS": "7"})

    assert addresses in everywhere.stderr and addresses in here.stderr
    assert bad.exit_code == 2 and "--lease" in bad.stderr
    assert "partitions: 7" in inner.stderr


# -- streams of tasks ----------------------------------------------------------------------------


class Sink:
    """A client that keeps what it is given, and refuses one payload."""

    def __init__(self) -> None:
        self.batches: list[list[bytes]] = []

    def enqueue_many(self, queue: str, payloads: list[bytes], **_: object) -> None:
        if b"bad" in payloads:
            raise Refused("payload_too_large", "payload: too large")
        self.batches.append(payloads)

    def __enter__(self) -> Sink:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def sink(monkeypatch: pytest.MonkeyPatch) -> Sink:
    made = Sink()
    monkeypatch.setattr("skuld_py.client.client.Client", lambda *_, **__: made)
    return made


def test_lines_become_tasks_and_empty_ones_do_not(sink: Sink) -> None:
    answer = skuld("enqueue", "q", "-", "--lines", typed=b"one\r\n\ntwo\n\xffthree")

    assert answer.exit_code == 0, answer.output
    assert [line for batch in sink.batches for line in batch] == [b"one", b"two", b"\xffthree"]
    assert answer.stdout == "3 tasks enqueued to q\n"


def test_a_long_file_travels_in_batches(sink: Sink, tmp_path: Path) -> None:
    lines = [f"task {number} {'x' * 40}" for number in range(100_000)]
    (tmp_path / "tasks").write_text("\n".join(lines))

    answer = skuld("enqueue", "q", "--file", str(tmp_path / "tasks"), "--lines", "--json")

    assert json.loads(answer.stdout) == {"queue": "q", "enqueued": 100_000}
    assert [line for batch in sink.batches for line in batch] == [line.encode() for line in lines]
    assert 1 < len(sink.batches) < 100


def test_a_stream_that_fails_says_from_where_to_go_on(sink: Sink, tmp_path: Path) -> None:
    filler = b"x" * 999 + b"\n"
    (tmp_path / "tasks").write_bytes(filler * 2_000 + b"bad\n" + filler)

    answer = skuld("enqueue", "q", "--file", str(tmp_path / "tasks"), "--lines")

    stored = sum(map(len, sink.batches))
    assert answer.exit_code == 1
    assert 0 < stored <= 2_000
    assert f"lines 1 to {stored} are stored ({stored} tasks)" in answer.stderr
    assert "[payload_too_large]" in answer.stderr
