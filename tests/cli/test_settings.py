"""The configuration file and the twins: who goes first, and that whatever is wrong is named with its place."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result
from hypothesis import given, settings
from hypothesis import strategies as st

from skuld_py.cli import twins, variables
from skuld_py.cli.main import Verbs, main
from skuld_py.cli.settings import BYTES_MAX, BadConfig, lines_of, read
from skuld_py.client.claims import Claims
from skuld_py.client.client import Claim, Client
from skuld_py.client.options import Retry
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId
from skuld_py.runtime.server import Place
from skuld_py.variables import OWN, SHARED, TOLD, VERBS


class Asked:
    """A client that notes what it is asked for."""

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.timeout_s = 0.0
        self.claims: list[dict[str, object]] = []

    def __call__(self, nodes: list[str], *, holder: str | None, timeout_s: float) -> Asked:
        self.nodes, self.timeout_s = nodes, timeout_s
        return self

    def claim(self, queue: str, **asked: object) -> list[Claim]:
        self.claims.append(asked)
        return Claims()

    def enqueue(self, queue: str, payload: bytes, **asked: object) -> TaskId:
        self.claims.append(asked)
        return TaskId(bytes(20))

    def count(self, queue: str | None) -> int:
        raise Refused("bad_name", f"queue: {queue!r} is not a name")

    def __enter__(self) -> Asked:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    made = Asked()
    monkeypatch.setattr("skuld_py.client.client.Client", made)
    return made


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory, to be in."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def skuld(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, env=env, prog_name="skuld")


def write(text: str, name: str = "skuld.toml") -> None:
    Path(name).write_text(text)


# -- who goes first ------------------------------------------------------------------------------


def lease_of(asked: Asked, *arguments: str, env: dict[str, str] | None = None) -> object:
    answer = skuld(*arguments, env=env)
    assert answer.exit_code == 0, answer.output
    return asked.claims[-1]["lease_s"]


def test_the_command_line_then_the_environment_then_the_file_then_the_default(asked: Asked) -> None:
    env = {"SKULD_CLAIM_LEASE": "30s"}
    assert lease_of(asked, "claim", "q") == 60
    write('[claim]\nlease = "2m"\n')

    assert lease_of(asked, "claim", "q") == 120
    assert lease_of(asked, "claim", "q", env=env) == 30
    assert lease_of(asked, "claim", "q", "--lease", "10s", env=env) == 10
    assert lease_of(asked, "claim", "q", env={"SKULD_CLAIM_LEASE": ""}) == 120


def test_a_verb_s_own_twin_goes_before_the_shared_one(asked: Asked) -> None:
    write('[all]\nnodes = "h:1"\ntimeout = 3\n[claim]\nnodes = "h:2, h:3"\nn = 7\n')

    assert skuld("claim", "q").exit_code == 0
    assert (asked.nodes, asked.timeout_s, asked.claims[-1]["n"]) == (["h:2", "h:3"], 3.0, 7)
    assert skuld("count", "q").exit_code == 1
    assert asked.nodes == ["h:1"]
    skuld("claim", "q", env={"SKULD_NODES": "h:4"})
    assert asked.nodes == ["h:4"]
    skuld("claim", "q", env={"SKULD_NODES": "h:4", "SKULD_CLAIM_NODES": "h:5"})
    assert asked.nodes == ["h:5"]


def test_a_file_is_named_by_option_or_environment_and_else_found_here(asked: Asked) -> None:
    write("[claim]\nlease = 1\n")
    write("[claim]\nlease = 2\n", "two.toml")
    write("[claim]\nlease = 3\n", "three.toml")

    assert lease_of(asked, "claim", "q") == 1
    assert lease_of(asked, "claim", "q", env={"SKULD_CONFIG": "two.toml"}) == 2
    assert lease_of(asked, "--config", "three.toml", "claim", "q", env={"SKULD_CONFIG": "two.toml"}) == 3
    assert lease_of(asked, "--config", "/dev/null", "claim", "q") == 60


def test_flags_lists_and_the_verbs_of_a_group(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[object, ...]] = []
    monkeypatch.setattr("skuld_py.runtime.server.serve", lambda *args, **named: given.append((args, named)))
    write('[all]\ncluster = "c"\n[node]\ndata = "d"\nport = 13007\nsharing = true\nscheduler = ["h:1", "h:2"]\n'
          "[cluster.create]\npartitions = 7\n")

    assert skuld("node").exit_code == 0
    (_, cluster, place, _), named = given[0]
    assert (cluster, place) == ("c", Place("127.0.0.1", 13_007))
    assert (named["scaling"].sharing, named["scaling"].transfer, named["scaling"].schedulers) == (
        True, False, ("h:1", "h:2"))
    assert "partitions: 7" in skuld("cluster", "create", "x").stderr


def test_what_a_task_is_enqueued_with_has_twins_and_the_rest_is_as_the_client_has_it(asked: Asked) -> None:
    assert skuld("enqueue", "q", "x").exit_code == 0
    options = inspect.signature(Client.enqueue).parameters
    assert asked.claims[-1] == {name: options[name].default for name in asked.claims[-1]}
    write('[enqueue]\nmax-attempts = 3\nheader = ["a=1", "b=x=y"]\nexpires = "2027-01-01T00:00Z"\n')

    assert skuld("enqueue", "q", "x", "--not-before", "10m", env={"SKULD_ENQUEUE_BACKOFF": "2m"}).exit_code == 0
    made = asked.claims[-1]
    assert made["retry"] == Retry(max_attempts=3, backoff_s=120)
    assert (made["headers"], made["expires"]) == ({"a": "1", "b": "x=y"}, datetime(2027, 1, 1, tzinfo=UTC))
    assert isinstance(made["not_before"], datetime)
    assert 500 < (made["not_before"] - datetime.now(UTC)).total_seconds() <= 600


def test_a_task_is_enqueued_with_a_key_a_name_and_dependencies(asked: Asked) -> None:
    first, second = TaskId(bytes(20)), TaskId(b"\1" * 20)
    assert skuld("enqueue", "q", "x", "--key", "k", "--unique", "n", "--unique-window", "90s", "--dep", str(first),
                 "--dep", str(second), "--on-dep-failure", "fail", "--dep-wait", "2h").exit_code == 0

    wanted = {"key": "k", "unique": "n", "unique_window_s": 90.0, "deps": [first, second],
              "on_dep_failure": "fail", "dep_wait_s": 7_200.0}
    assert wanted.items() <= asked.claims[-1].items()


def test_the_number_of_nodes_of_dev_is_not_their_addresses() -> None:
    write('[all]\nnodes = "h:1"\n')
    answer = skuld("dev", "--worker", "q", env={"SKULD_NODES": "h:1"})

    assert "--worker QUEUE and --app MODULE go together" in answer.stderr


# -- what is wrong -------------------------------------------------------------------------------

WRONG = {
    "an unknown key": ("[claim]\n# lease\nleese = 1\n", ["line 3", "claim.leese", "did you mean 'lease'?"]),
    "a key that no other is near": ("[count]\nxyz = 1\n", ["line 2", "count.xyz", "there are: state, nodes"]),
    "an unknown verb": ("[claim]\n\n[clam]\nlease = 1\n", ["line 3", "'clam'", "did you mean 'claim'?"]),
    "a key of no table": ('nodes = "h:1"\n', ["line 1", "nodes", "[all]"]),
    "a key that not all verbs have": ('[all]\nlease = "1s"\n', ["line 2", "all.lease", "no option 'lease'"]),
    "an unknown verb of a group": ("[cluster]\n[cluster.creat]\nx = 1\n", ["line 2", "did you mean 'create'?"]),
    "an option of a group": ("[cluster]\ncreate = 1\n", ["line 2", "is a verb", "[cluster.create]"]),
    "in a verb that does not run": ("[worker]\nslot = 1\n", ["line 2", "worker.slot", "did you mean 'slots'?"]),
    "a wrong value": ('[all]\njson = true\n[claim]\nlease = "10 days"\n',
                      ["line 4: claim.lease", "'--lease'", "10s, 500ms, 2m, 1h"]),
    "a value out of range": ("[claim]\n\nlease = 100000\n", ["line 3", "'--lease'", "1 ms to 24 h"]),
    "a shared value that is wrong": ('[all]\ntimeout = "soon"\n',
                                     ["line 2: all.timeout", "'--timeout'", "'soon'"]),
    "a flag that is none": ('[all]\njson = "yes"\n', ["line 2", "all.json", "true nor false"]),
    "an int for a flag": ("[all]\njson = 1\n", ["line 2", "true nor false"]),
    "a bool for a number": ("[claim]\nn = true\n", ["line 2", "claim.n", "true is no single value"]),
    "a list for a number": ("[claim]\nn = [\n 1,\n 2]\n", ["line 2", "claim.n", "no single value"]),
    "a date": ("[claim]\nlease = 2026-11-22\n", ["line 2", "claim.lease", "no single value"]),
    "a table for an option": ("[claim.lease]\nx = 1\n", ["line 1", "claim.lease", "no single value"]),
    "a key twice": ("[claim]\nlease = 1\nn = 2\nlease = 3\n", ["line 4", "lease = 3", "given twice"]),
    "a table twice": ("[claim]\nn = 2\n[count]\n[claim]\n", ["line 4", "begun twice"]),
    "no value": ("[claim]\nlease =\n", ["line 2", "lease =", "toml.io"]),
    "no TOML": ("claim: lease\n", ["line 1", "toml.io"]),
    "a string that does not end": ('[claim]\nlease = "5s\n', ["line 2", "toml.io"]),
    "a text that does not end": ('[claim]\nlease = """5s\n\n', ["toml.io"]),
    "nested too deeply": ("[claim]\nn = " + "[" * 20_000, ["nested too deeply"]),
    "a number of many digits": ("[claim]\nn = " + "9" * 5_000, ["skuld.toml"]),
    "a byte order mark": ("\ufeff[claim]\n", ["line 1", "byte order mark"]),
    "a control character": ("[claim]\nlease = \"\x1b[2J\"\n", ["line 2"]),
}


@pytest.mark.parametrize(("text", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named_with_its_place_and_the_remedy(asked: Asked, text: str, words: list[str]) -> None:
    write(text)
    answer = skuld("claim", "q")

    assert answer.exit_code == 2
    assert [word for word in ("skuld.toml", *words) if word not in answer.stderr] == [], answer.stderr
    assert "Traceback" not in answer.output and "\x1b" not in answer.output and len(answer.stderr) < 700
    assert asked.claims == []


@pytest.mark.parametrize(("make", "words"), [
    (lambda file: None, ["No such file", "--config"]),
    (lambda file: file.mkdir(), ["directory", "--config"]),
    (lambda file: file.symlink_to(file), ["symbolic links"]),
    (lambda file: file.write_bytes(b"[claim]\n\nlease = '\xff'\n"), ["line 3", "UTF-8"]),
    (lambda file: file.write_bytes(b"#" * (BYTES_MAX + 1)), ["more than"]),
])
def test_a_file_that_cannot_be_read_is_named(asked: Asked, tmp_path: Path, make: object, words: list[str]) -> None:
    file = tmp_path / "my.toml"
    make(file)  # type: ignore[operator]
    answer = skuld("--config", str(file), "claim", "q")

    assert answer.exit_code == 2
    assert answer.stderr.count("\n") == 1 and answer.stderr.endswith("[bad_config]\n")
    assert [word for word in (str(file), *words) if word not in answer.stderr] == [], answer.stderr


def test_a_wrong_value_of_the_environment_is_named_with_its_variable(asked: Asked) -> None:
    lease = skuld("claim", "q", env={"SKULD_CLAIM_LEASE": "long"})
    shared = skuld("claim", "q", env={"SKULD_TIMEOUT": "soon"})
    typed = skuld("claim", "q", "--lease", "long", env={"SKULD_CLAIM_LEASE": "5s"})

    assert lease.exit_code == shared.exit_code == typed.exit_code == 2
    assert "'--lease' (from $SKULD_CLAIM_LEASE)" in lease.stderr
    assert "'--timeout' (from $SKULD_TIMEOUT)" in shared.stderr
    assert "from" not in typed.stderr.partition("Error")[2]


def test_a_refusal_by_a_verb_says_where_the_value_came_from() -> None:
    write('[all]\ncluster = "a/b"\n')
    of_file, of_environment = skuld("members"), skuld("members", env={"SKULD_CLUSTER": "c/d"})
    typed = skuld("members", "--cluster", "e/f")

    assert of_file.exit_code == of_environment.exit_code == typed.exit_code == 1
    assert "(from skuld.toml, line 2: all.cluster) [bad_name]" in of_file.stderr
    assert "(from $SKULD_CLUSTER) [bad_name]" in of_environment.stderr
    assert "from" not in typed.stderr


def test_help_is_given_whatever_the_file_says() -> None:
    write("nonsense\n")

    assert skuld("claim", "--help").exit_code == skuld("--help").exit_code == 0
    assert skuld("claim", "q").exit_code == 2


@pytest.mark.parametrize(("name", "remedy"), [
    ("SKULD_NODEZ", "did you mean SKULD_NODES?"), ("SKULD_CLAIM_LEESE", "did you mean SKULD_CLAIM_LEASE?"),
    ("SKULD_NODE_PEERS_PORT", "did you mean SKULD_NODE_PEER_PORT?"),
    ("SKULD_CLUSTER_CREATE_PARTITION", "did you mean SKULD_CLUSTER_CREATE_PARTITIONS?"),
    ("SKULD_xyzzy", "unset it"), ("SKULD_", "did you mean")])
def test_a_variable_that_no_verb_has_is_refused_by_name(asked: Asked, name: str, remedy: str) -> None:
    plain, document = (skuld("claim", "q", *more, env={name: "secret"}) for more in ((), ("--json",)))

    assert plain.exit_code == document.exit_code == 2 and not asked.claims
    for answer in (plain, document):
        assert f"${name}: " in answer.stderr and remedy in answer.stderr and "bad_variable" in answer.stderr
        assert "secret" not in answer.output
    assert skuld("claim", "--help", env={name: "x"}).exit_code == 0


@pytest.mark.parametrize("name", [
    "SKULD_NODE_RETENTION", "SKULD_RETENTION", "SKULD_CLUSTER_CREATE_PARTITIONS", "SKULD_ZOOKEEPER",
    "SKULD_CLUSTER_KEY", "SKULD_GATEWAY_BEHIND_PROXY", "SKULD_WRONG_TIME_FILE", "SKULD_TEST_X", "SKULDUGGERY",
    "_SKULD_NODEZ", "SKULD_CONFIG", "SKULD_VERBOSE", *TOLD, "SKULD_SERVICE_HOST", "SKULD_GATEWAY_PORT_80_TCP"])
def test_a_variable_of_any_verb_may_be_there(asked: Asked, name: str) -> None:
    assert skuld("claim", "q", env={name: ""}).exit_code == 0 and asked.claims


def test_what_clients_know_of_variables_is_what_verbs_have() -> None:
    ctx = click.Context(main)
    verbs = {name: main.get_command(ctx, name) for name in main.list_commands(ctx)}
    every = {*variables._names_of(main), *(each for verb in verbs.values() for each in variables._names_of(verb))}
    fronts = tuple(f"SKULD_{name.upper()}_" for name in verbs)

    assert sorted(VERBS) == sorted(verbs)
    assert {twins.variable(key) for key in twins.SHARED} == {*SHARED}
    assert {each for each in every if not each.startswith(fronts)} - {*SHARED} <= {*OWN} <= every


def test_no_verb_is_loaded_but_the_one_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, asked: Asked) -> None:
    loaded: list[str] = []
    get_command = Verbs.get_command

    def watched(verbs: Verbs, ctx: click.Context, name: str) -> click.Command | None:
        loaded.append(name)
        return get_command(verbs, ctx, name)
    monkeypatch.setattr(Verbs, "get_command", watched)

    skuld("claim", "q", env={"SKULD_NODES": "127.0.0.1:1", "SKULD_CLAIM_LEASE": "5s", "SKULD_CONFIG": ""})

    assert {*loaded} == {"claim"} and asked.claims


# -- the lines of keys ---------------------------------------------------------------------------


def test_lines_are_found_behind_comments_strings_and_lists() -> None:
    text = ('# [claim] lease = 1\n[all]\nnodes = """\n[claim]\nlease = 3\n"""\n\n[ "node" ]  # x\n'
            'scheduler = [\n  "a", # lease = 1\n  "b"]\nport=1\n[cluster.create]\nskew = "1s"\n'
            "[count]\r\nnodes = 'x'\r\n[get]\ntimeout.x = {y = 1}\n")

    assert lines_of(text) == {
        ("all",): 2, ("all", "nodes"): 3, ("node",): 8, ("node", "scheduler"): 9, ("node", "port"): 12,
        ("cluster",): 13, ("cluster", "create"): 13, ("cluster", "create", "skew"): 14, ("count",): 15,
        ("count", "nodes"): 16, ("get",): 17, ("get", "timeout"): 18, ("get", "timeout", "x"): 18,
        ("get", "timeout", "x", "y"): 18}


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet='[]"\'= \n#.ab1,{}\\\r\t', max_size=60))
def test_any_text_is_settings_or_a_config_error(text: str) -> None:
    file = Path("any.toml")
    file.write_text(text, newline="")
    try:
        made = read(str(file))
        made.check(["a"], lambda name: None)
    except BadConfig as problem:
        assert str(file) in problem.message


def test_what_all_verbs_share_is_shown_once(asked: Asked) -> None:
    write('[all]\nnodes = "h:1"\nclient-key = "mine.key"\n[claim]\nlease = 1\n')

    def shown(*verb: str) -> list[str]:
        lines = skuld("config", "show", *verb, "--changed").output.splitlines()
        return sorted(line.split()[0] for line in lines if "skuld.toml" in line)
    assert shown() == ["all.client-key", "all.nodes", "claim.lease"]
    assert shown("claim") == ["claim.client-key", "claim.lease", "claim.nodes"]
    every = json.loads(skuld("config", "show", "--changed", "--json").output)
    assert sum(row["key"] == "nodes" for row in every) > 10, "programs have a row for each verb"


def test_help_shows_what_the_file_says_also_where_the_default_is_none(asked: Asked) -> None:
    assert "default: (none)" in skuld("claim", "--help").output
    write('[all]\nclient-key = "mine.key"\n')
    assert "default: mine.key" in skuld("claim", "--help").output
