"""What somebody types who is new, and what he is told."""

from __future__ import annotations

import pytest
from click.testing import CliRunner, Result

import skuld_py
from skuld_py.cli import failures
from skuld_py.cli.get import _outcomes_said
from skuld_py.cli.main import main
from skuld_py.client.options import Retry
from skuld_py.client.waiting import End
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId, to_text
from skuld_py.testing import MemoryClient
from skuld_py.worker.apps import load_apps

ID = to_text(bytes(20))


@skuld_py.task(name="newcomers.add", queue="sums")
def add(a: int, b: int) -> int:
    return a + b


def skuld(*words: str) -> Result:
    return CliRunner().invoke(main, words)


@pytest.mark.parametrize(("words", "told"), [
    ("help", "did you mean '--help' or 'manual'?"), ("version", "did you mean '--version'?"),
    ("tasks", "did you mean 'list'?"),
    ("workflow stop", "there is no command 'stop'; did you mean 'kill'?"),
    ("keys lst", "did you mean 'list'?"), ("workflow zzz", "there are check, graph, submit, status, list, await"),
    ("result", "did you mean 'results'?"), ("zzz", "see 'skuld --help'"),
    ("--nodes x status", "--nodes; options of a verb stand behind the verb"),
    ("enqueue q", "or a call: --call FUNCTION"), ("dev --slots 3", "--slots is for the worker")])
def test_a_wrong_word_is_answered_with_what_was_meant(words: str, told: str) -> None:
    answer = skuld(*words.split())
    assert answer.exit_code == failures.MISUSED and told in answer.stderr


def test_a_service_does_not_start_again_by_itself_with_a_wrong_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SKULD_NODES", "127.0.0.1:13000")  # a worker sets it for what its tasks send
    for option in ("--kinds=nosuch", "--scripts=/no/such/directory", "--app=no_such_module"):
        answer = skuld("worker", "--queue", "q", "--app", "skuld_py", option)
        assert answer.exit_code == failures.LASTING, answer.output


def test_a_file_is_no_module_and_the_module_is_named() -> None:
    with pytest.raises(Refused, match=r"is a file; name its module, jobs\.no_such_report"):
        load_apps(["jobs/no_such_report.py"])


def test_of_a_task_without_a_result_it_is_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    task_id = TaskId(bytes(20))
    ended = [End(task_id, "dead", None, b"KeyError: \x1b[2J\n  File x"), End(task_id, "cancelled", None, None),
             End(task_id, "", None, None)]
    monkeypatch.setattr("skuld_py.client.client.Client.ends", lambda *_, **__: ended)

    answer = skuld("results", ID, ID, ID)
    assert answer.stdout == f"{ID}\n" * 3
    *told, failed = answer.stderr.splitlines()
    assert told == [f"{ID} is dead: KeyError: \\x1b[2J", f"{ID} is cancelled"]
    assert "2 of 3 are dead or cancelled" in failed and answer.exit_code == 1
    assert "is dead" not in skuld("results", ID, "--json").stderr


def test_a_call_is_no_step_and_what_is_one_is_said() -> None:
    with MemoryClient() as client:
        for wrong in (add, add.call(1, 2)):
            with pytest.raises(Refused, match=r"write function\.step\(\.\.\.\)"):
                client.chain([wrong])  # type: ignore[list-item]
        client.chain([add.step(1, 2)])


@pytest.mark.parametrize(("option", "told"), [
    ("max_attempts", r"give retry=skuld_py.Retry\(max_attempts=\.\.\.\)"), ("delay", r"did you mean delay_s\?"),
    ("zzz", "there are queue, priority")])
def test_an_option_that_there_is_not_is_answered_with_what_was_meant(option: str, told: str) -> None:
    with pytest.raises(Refused, match=told):
        add.send_with(**{option: 3})  # type: ignore[arg-type]


def test_an_error_that_another_attempt_may_cure_or_has_cured_is_the_last_one() -> None:
    with MemoryClient() as client:
        tasks = [client.enqueue("sums", b"1 + 1", retry=Retry(most, backoff_s=0)) for most in (1, 2)]
        for claim in client.claim("sums", n=2):
            client.fail(claim, b"no paper")
        dead, waiting = (dict(_outcomes_said(client.get(task))) for task in tasks)
        again, = client.claim("sums")
        client.complete(again, "2")
        completed = dict(_outcomes_said(client.get(tasks[1])))

    assert dead == {"error": "no paper"} and waiting == {"last error": "no paper"}
    assert completed == {"result": "2", "last error": "no paper"}


def test_a_task_that_has_not_ended_is_named() -> None:
    told = f"{ID} has not ended by now, or is not enqueued yet"
    with MemoryClient() as client, pytest.raises(Refused, match=told):
        client.result(ID)
