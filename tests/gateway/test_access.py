"""The file of tokens: read strictly, compared whole; and the bucket that wrong tokens are counted in."""

from __future__ import annotations

import hmac
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from skuld_py.cli.gateway import ROLES, SCOPES
from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.gateway.access import Bearer, Failures, Tokens, hash_of, new_token
from skuld_py.gateway.application import _queue_of
from skuld_py.model.roles import CLIENTS, Role
from skuld_py.model.roles import VERBS as ROLE_VERBS
from skuld_py.verbs.options import REQUIRED
from skuld_py.verbs.table import VERBS
from skuld_py.verbs.verb import Scope, Verb

READ = frozenset({Scope.READ})
GOOD = '[[token]]\nname = "ci"\nsha256 = "' + "0" * 64 + '"\nscopes = ["read"]\n'


def written(path: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


@pytest.mark.parametrize(("text", "words"), [
    ("", ["no token", "[[token]]"]),
    ("token = 1", ["[[token]]"]),
    ("token = []", ["no token"]),
    ("token = [1]", ["token 1", "name, sha256, and roles or scopes"]),
    ("tokens = 1\n" + GOOD, ["tokens", "[[token]]"]),
    (GOOD + 'roles = ["node"]\n', ["token ci", "roles", "worker, producer, reader, archiver, admin"]),
    (GOOD + "roles = []\n", ["token ci", "roles"]),
    (GOOD.replace('scopes = ["read"]', ""), ["token 1", "roles or scopes"]),
    (GOOD.replace("scopes", "scope"), ["token 1", "name, sha256, and roles or scopes"]),
    (GOOD + 'expiry = "never"\n', ["token 1", "name, sha256, and roles or scopes", "expires and queues"]),
    (GOOD + 'expires = "2027-01-31T00:00:00Z"\n', ["token ci", "expires", "without quotes"]),
    (GOOD + "expires = 2027-01-31T00:00:00\n", ["token ci", "expires", "offset", "2027-01-31T00:00:00Z"]),
    (GOOD + "expires = 2027-01-31\n", ["token ci", "expires"]),
    (GOOD + "expires = 0\n", ["token ci", "expires"]),
    (GOOD + 'queues = "reports"\n', ["token ci", "queues", "leave them out"]),
    (GOOD + "queues = []\n", ["token ci", "queues", "leave them out"]),
    (GOOD + 'queues = [""]\n', ["token ci", "queues"]),
    (GOOD + 'queues = ["a b"]\n', ["token ci", "queues"]),
    (GOOD + f"queues = {['a'] * 33}\n", ["token ci", "queues", "32"]),
    (GOOD + "expires = " + "[" * 20_000, ["TOML"]),
    (GOOD.replace('"ci"', '"c i"'), ["token 1", "name", "'c i'"]),
    (GOOD.replace('"ci"', "7"), ["token 1", "name"]),
    (GOOD.replace("0" * 64, "secret"), ["token ci", "sha256"]),
    (GOOD.replace("0" * 64, "A" * 64), ["token ci", "lower case"]),
    (GOOD.replace('"read"', '"reed"'), ["token ci", "scopes", "read"]),
    (GOOD.replace('["read"]', "[]"), ["token ci", "scopes"]),
    (GOOD.replace('["read"]', '"read"'), ["token ci", "scopes"]),
    (GOOD.replace('"read"', "[1]"), ["token ci", "scopes"]),
    (GOOD + GOOD, ["token ci", "twice"]),
    (GOOD + GOOD.replace('"ci"', '"cd"'), ["token cd", "twice"]),
    (GOOD + GOOD.replace("0" * 64, "1" * 64), ["token ci", "twice"]),
    ("[[token", ["TOML"]),
    (b"\xff\xfe", ["TOML"]),
    ("\ufeff" + GOOD, ["TOML"]),
    (b"#" * (1 << 21), ["larger"]),
])
def test_a_wrong_file_is_refused_and_says_where(tmp_path: Path, text: str | bytes, words: list[str]) -> None:
    path = written(tmp_path / "tokens.toml", text)

    with pytest.raises(Refused) as refused:
        Tokens.read(path)

    assert refused.value.code == "bad_tokens"
    assert [word for word in [str(path), *words] if word not in refused.value.message] == [], refused.value.message


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_may_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    with pytest.raises(Refused, match="chmod 600"):
        Tokens.read(written(tmp_path / "tokens.toml", GOOD, mode))


def test_a_file_that_is_not_there_or_a_loop_is_refused(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name in ("none", "loop", "."):
        with pytest.raises(Refused, match="tokens: "):
            Tokens.read(tmp_path / name)


def test_what_the_command_line_makes_is_what_the_gateway_reads(tmp_path: Path) -> None:
    answers = [CliRunner().invoke(main, ["token", name, "--scope", "read", "--scope", name])
               for name in ("enqueue", "work")]
    tokens = Tokens.read(written(tmp_path / "tokens.toml", "".join(answer.stdout for answer in answers)))

    for answer, name in zip(answers, ("enqueue", "work"), strict=True):
        token = answer.stderr.strip()
        bearer = tokens.find(f"Bearer {token}")
        assert bearer is not None and bearer.name == name and bearer.scopes == {Scope.READ, Scope(name)}
        assert token not in answer.stdout
    assert tuple(scope.value for scope in Scope) == SCOPES and tuple(CLIENTS) == ROLES


def test_roles_are_made_and_read_alike_and_may_do_what_the_table_says(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["token", "ci", "--role", "producer", "--role", "worker"])
    bearer = Tokens.read(written(tmp_path / "tokens.toml", answer.stdout)).find(f"Bearer {answer.stderr.strip()}")

    assert bearer is not None and (bearer.scopes, bearer.roles) == (frozenset(), {Role.PRODUCER, Role.WORKER})
    assert {verb.name for verb in VERBS if bearer.may(verb)} == {
        verb.name for verb in VERBS if verb.name in ROLE_VERBS[Role.PRODUCER] | ROLE_VERBS[Role.WORKER]}


@pytest.mark.parametrize("words", [[], ["--role", "node"], ["--role", "reed"]])
def test_a_token_without_a_right_or_with_one_of_nodes_is_not_made(words: list[str]) -> None:
    answer = CliRunner().invoke(main, ["token", "ci", *words])

    assert answer.exit_code == 2 and "--role" in answer.output and "sha256" not in answer.output


def test_what_limits_a_token_is_made_and_read_alike(tmp_path: Path) -> None:
    before = time.time()
    answer = CliRunner().invoke(main, ["token", "ci", "--scope", "read", "--queue", "reports", "--queue", "mail.",
                                       "--lasting", "90d"])
    bearer = Tokens.read(written(tmp_path / "tokens.toml", answer.stdout)).find(f"Bearer {answer.stderr.strip()}")

    assert bearer is not None and bearer.queues == ("reports", "mail.") and bearer.until_ms is not None
    assert -1 <= bearer.until_ms / 1000 - 90 * 86_400 - before <= 60
    refused = CliRunner().invoke(main, ["token", "ci", "--scope", "read", "--queue", "a b"])
    assert refused.exit_code == 1 and "queues" in refused.stderr and not refused.stdout


def test_a_token_counts_until_it_expires(tmp_path: Path) -> None:
    text = GOOD + "expires = 1970-01-01T01:00:01+01:00"
    [(_, bearer)] = Tokens.read(written(tmp_path / "tokens.toml", text))._bearers

    assert bearer.is_valid(999) and not bearer.is_valid(1_000)


BY_CLAIM = {"renew", "renew_many", "append", "complete", "complete_many", "fail", "fail_many", "snooze", "release"}
BY_ID = {"get", "get_many", "results", "log"}
OF_A_WORKFLOW = {"submit_workflow", "kill_workflow"}
IN_A_QUEUE = {"enqueue", "enqueue_many", "claim", "list_tasks", "count", "limits"}


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb.name)
def test_a_token_of_some_queues_reaches_those_and_no_others(verb: Verb) -> None:
    bearer = Bearer("ci", frozenset(Scope), ("reports", "mail."))
    is_free = verb.name in BY_CLAIM | BY_ID | OF_A_WORKFLOW | {"mint", "health", "ready"}
    named = [option for option in verb.asks.options if option.name == "queue"]

    if not any(option.default is REQUIRED for option in named):
        assert bearer.reaches(verb, None) == is_free and Bearer("ci", frozenset(Scope)).reaches(verb, None)
    for queue in ("reports", "reports-2", "mail.x") if named else ():
        assert bearer.reaches(verb, queue) == (is_free or verb.name in IN_A_QUEUE)
        assert Bearer("ci", frozenset(Scope)).reaches(verb, queue)
    for queue in ("report", "mail", "x-reports") if named else ():
        assert not bearer.reaches(verb, queue)


@pytest.mark.parametrize("name", sorted(OF_A_WORKFLOW))
def test_a_token_of_some_queues_reaches_the_workflows_whose_queues_are_among_these(name: str) -> None:
    verb = next(verb for verb in VERBS if verb.name == name)
    bearer = Bearer("ci", frozenset(Scope), ("wf.census.",))

    def reaches(**asked: object) -> bool:
        return bearer.reaches(verb, _queue_of(SimpleNamespace(**asked)))  # type: ignore[arg-type]
    for workflow, is_reached in (("census", True), ("census.2", True), ("census2", False), ("", False)):
        asked = {"definition": {"id": workflow}} if name == "submit_workflow" else {"workflow": workflow}
        assert reaches(**asked) == is_reached, workflow
    assert name != "submit_workflow" or (not reaches(definition={}) and not reaches(definition={"id": 7}))


def test_only_the_whole_token_is_known() -> None:
    token, other = new_token(), new_token()
    tokens = Tokens({hash_of(token): Bearer("ci", READ), hash_of(other): Bearer("cd", READ)})

    assert tokens.find(f"Bearer {token}") is not None and tokens.find(f"bearer {other}") is not None
    for wrong in (None, "", token, "Bearer", "Bearer ", f"Basic {token}", f"Bearer {token[:-1]}",
                  f"Bearer {token}x", f"Bearer  {token}", f"Bearer {token}\n", f"Bearer {new_token()}",
                  f"Bearer {hash_of(token)}",
                  f"Bearer {token},{other}", f"Bearer {token.upper()}"):
        assert tokens.find(wrong) is None, wrong


def test_every_hash_is_compared_and_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def watch(one: bytes, other: bytes) -> bool:
        compared.append(one)
        return one == other
    monkeypatch.setattr(hmac, "compare_digest", watch)
    listed = [new_token() for _ in range(5)]
    tokens = Tokens({hash_of(token): Bearer("ci", READ) for token in listed})

    for token in (*listed, new_token()):
        compared.clear()
        tokens.find(f"Bearer {token}")
        assert len(compared) == 5


def test_wrong_tokens_are_counted_by_address_and_forgiven_with_time() -> None:
    now = [0.0]
    failures = Failures(5.0, lambda: now[0])

    assert [failures.are_too_many("a") for _ in range(7)] == [False] * 5 + [True] * 2
    assert not failures.are_too_many("b")
    now[0] += 0.2
    assert [failures.are_too_many("a") for _ in range(2)] == [False, True]
    now[0] += 60
    assert [failures.are_too_many("a") for _ in range(6)] == [False] * 5 + [True]


def test_addresses_without_number_are_forgotten() -> None:
    failures = Failures(1.0, lambda: 0.0)
    failures.are_too_many("first")
    for index in range(5_000):
        failures.are_too_many(str(index))

    assert len(failures) <= 4_096 and not failures.are_too_many("first")
