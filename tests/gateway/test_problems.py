"""From an error to its answer: the status, whether it happened, and whether to ask again."""

from __future__ import annotations

import pytest

from skuld_py.errors import KEY_CODES, Corrupt, Fenced, Malformed, Refused, SkuldError, Uncertain
from skuld_py.gateway.problems import Problem, internal, problem_of


@pytest.mark.parametrize(("error", "status", "field", "retry", "outcome"), [
    (Refused("bad_name", "queue: no", field="queue"), 422, "queue", False, "refused"),
    (Refused("bad_w", "w: 3 is too many"), 422, "w", False, "refused"),
    (Refused("some_code_of_tomorrow", "Not so"), 422, None, False, "refused"),
    (Refused("no_such_task", "id: no task"), 404, "id", False, "refused"),
    (Fenced("claim 7 is lost"), 409, None, False, "refused"),
    (Refused("conflict", "id: 1 exist with other content"), 409, "id", False, "refused"),
    (Refused("payload_too_large", "payload: 9 bytes"), 413, "payload", False, "refused"),
    (Refused("unreachable", "nodes: none"), 503, "nodes", True, "refused"),
    (Refused("busy", "too many"), 503, None, True, "refused"),
    (Refused("no_leader", "none"), 503, None, True, "refused"),
    (Malformed("ids", "cut short"), 422, "ids", False, "refused"),
    (Refused("malformed", "Append.token: is no claim's token"), 422, "token", False, "refused"),
    (Uncertain("deadline", "no answer"), 504, None, True, "uncertain"),
    (Uncertain("no_leader", "not now"), 504, None, True, "uncertain"),
    (Uncertain("conflict", "id: other content, here or there"), 409, "id", False, "uncertain"),
    (Uncertain("too_old", "id: 1 older than ended tasks are kept here"), 409, "id", False, "uncertain"),
    (Corrupt("tasks", b"key"), 500, None, False, "uncertain"),
])
def test_an_error_becomes_an_answer(error: SkuldError, status: int, field: str | None, retry: bool,
                                    outcome: str) -> None:
    problem = problem_of(error, is_repeatable=True)

    assert (problem.status, problem.field, problem.retry, problem.outcome) == (status, field, retry, outcome)
    assert problem.document("r") == {"code": error.code, "message": problem.message, "field": field,
                                     "retry": retry, "outcome": outcome, "request_id": "r"}
    assert ("Retry-After" in problem.headers) == (status == 503)


@pytest.mark.parametrize("code", sorted(KEY_CODES))
def test_a_caller_is_not_blamed_for_the_gateway_s_key(code: str) -> None:
    problem = problem_of(Refused(code, "key: the nodes do not know the key of gateway-7"), is_repeatable=True)

    assert (problem.status, problem.code, problem.field, problem.retry) == (502, code, None, False)
    assert problem.message.startswith("the cluster does not do this for the key of this gateway")
    assert "gateway-7" not in problem.message


def test_what_may_not_be_repeated_is_not_said_to_be() -> None:
    assert not problem_of(Uncertain("deadline", "no answer"), is_repeatable=False).retry
    assert problem_of(Refused("busy", "too many"), is_repeatable=False).retry  # it did not happen


def test_what_nobody_foresaw_tells_nothing_and_promises_nothing() -> None:
    problem = internal()

    assert (problem.status, problem.outcome, problem.retry) == (500, "uncertain", False)
    assert isinstance(problem, Problem)
