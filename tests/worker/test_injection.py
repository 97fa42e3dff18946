"""Which parameters a worker fills in: by name or by annotation, wherever they stand; and what is the caller's."""

from __future__ import annotations

from typing import Any

import pytest

from skuld_py.errors import Refused
from skuld_py.worker.context import TaskContext
from skuld_py.worker.injection import CONTEXT, SPARK, check_arguments, injection_of
from skuld_py.worker.registry import task


class SparkSession:
    """Called as PySpark's is."""


def both(spark: Any, context: Any, a: int, b: int = 2) -> list[Any]:
    return [spark, context, a, b]


def neither(a: int, b: int = 2) -> list[Any]:
    return [a, b]


def unused(_spark: Any, _context: Any, a: int, b: int = 2) -> list[Any]:
    return [a, b]


def behind(a: int, b: int = 2, context: Any = None) -> list[Any]:
    return [a, b, context]


def between(a: int, told: TaskContext, b: int = 2) -> list[Any]:
    return [a, told, b]


def by_class(a: int, b: int = 2, *, session: SparkSession, here: TaskContext) -> list[Any]:
    return [a, b, session, here]


def by_text(session: "pyspark.sql.SparkSession", a: int, b: int = 2) -> list[Any]:  # type: ignore  # noqa
    return [session, a, b]


def rest(context: Any, *numbers: int, **named: int) -> list[Any]:
    return [context, *numbers, named]


@pytest.mark.parametrize(("function", "args", "kwargs", "seen"), [
    (both, (1,), {}, ["S", "C", 1, 2]), (both, (1, 3), {}, ["S", "C", 1, 3]),
    (both, (), {"a": 1}, ["S", "C", 1, 2]),
    (neither, (1,), {"b": 3}, [1, 3]), (unused, (1, 3), {}, [1, 3]),
    (behind, (1,), {}, [1, 2, "C"]), (behind, (1, 3), {}, [1, 3, "C"]),
    (between, (1,), {}, [1, "C", 2]), (between, (1, 3), {}, [1, "C", 3]), (between, (), {"a": 1}, [1, "C", 2]),
    (by_class, (1, 3), {}, [1, 3, "S", "C"]), (by_text, (1,), {"b": 3}, ["S", 1, 3]),
    (rest, (1, 2), {"x": 3}, ["C", 1, 2, {"x": 3}])])
def test_a_function_gets_what_it_names_and_its_callers_give_the_rest(
    function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], seen: list[Any]
) -> None:
    injection = injection_of(function)

    check_arguments(injection, args, kwargs)
    assert injection.applied(function)("S", "C", *args, **kwargs) == seen


@pytest.mark.parametrize(("function", "whose"), [
    (both, {SPARK, CONTEXT}), (neither, set()), (unused, {SPARK, CONTEXT}), (behind, {CONTEXT}),
    (between, {CONTEXT}), (by_class, {SPARK, CONTEXT}), (by_text, {SPARK})])
def test_what_a_function_names_is_what_it_needs(function: Any, whose: set[str]) -> None:
    assert {what for what in (SPARK, CONTEXT) if injection_of(function).has(what)} == whose


@pytest.mark.parametrize(("args", "kwargs"), [((), {}), ((1, 2, 3), {}), ((1,), {"context": 2}), ((1,), {"c": 2})])
def test_what_the_worker_fills_in_is_nobody_elses_to_give(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        check_arguments(injection_of(both), args, kwargs)


async def in_a_loop(spark: Any, a: int) -> int:
    return a


def in_parts(a: int) -> Any:
    yield a


@pytest.mark.parametrize(("function", "words"), [(in_a_loop, "event loop"), (in_parts, "generator")])
def test_what_no_worker_could_run_is_refused_where_it_is_written(function: Any, words: str) -> None:
    with pytest.raises(Refused, match=words) as refusal:
        task(function)
    assert refusal.value.code == "bad_task"
