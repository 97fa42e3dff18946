"""Kinds of tasks besides functions: what their calls may say, by whatever face they are made."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skuld_py
from calls.sql_texts import OF_THIS_ALONE, TEXTS
from skuld_py.calls.kinds import script, sql, stream
from skuld_py.calls.kinds.splitting import statements_of
from skuld_py.calls.payloads import decode_call
from skuld_py.calls.sight import call_line
from skuld_py.errors import Refused

SOURCE = {"format": "json", "path": "/in", "schema": "id long"}
SINK = {"format": "parquet", "path": "/out"}


@pytest.mark.parametrize("text", [*TEXTS, *OF_THIS_ALONE])
def test_a_text_is_split_at_semicolons_outside_of_quotes_and_comments(text: str) -> None:
    assert statements_of(text) == {**TEXTS, **OF_THIS_ALONE}[text]


@pytest.mark.parametrize(("text", "words"), [
    ("select 1;\nselect 'a; select 2", "what begins with ' in line 2 has no end"),
    ('select "a', 'what begins with " in line 1'), ("select `a", "what begins with ` in line 1"),
    ("/* /* */ select 1", r"what begins with /\* in line 1"), ("select r'a", "what begins with r in line 1"),
    ("$x$ a $y$", r"what begins with \$x\$ in line 1"), (r"select '\'", "what begins with ' in line 1"),
])
def test_a_quote_or_comment_without_an_end_is_refused_with_its_line(text: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        statements_of(text)
    assert refused.value.facts["field"] == "text"


@given(st.text(alphabet="abr;'\"`-/*\\$\n \t", max_size=40))
def test_any_text_is_split_or_refused_and_nothing_of_it_is_lost(text: str) -> None:
    try:
        statements = statements_of(text)
    except Refused:
        return
    at = 0
    for statement in statements:
        at = text.index(statement, at) + len(statement)
    assert all(statement.strip() == statement and statement for statement in statements)
    assert statements_of(";".join(statements)) == statements or "--" in text or "\\" in text


def test_a_payload_is_a_call_of_a_reserved_name_with_what_differs_from_the_default() -> None:
    assert call_line(skuld_py.sql("select 1")) == 'skuld:sql("select 1")'
    assert call_line(skuld_py.sql("select :d", {"d": date(2026, 11, 20)}, rows=5)) == (
        'skuld:sql("select :d", {"d": {"$date": "2026-11-20"}}, rows=5)')
    assert call_line(skuld_py.script("a/b.py", "--x", plain=True)) == 'skuld:script("a/b.py", ["--x"], plain=True)'
    assert decode_call(skuld_py.stream(SOURCE, SINK, "/c")).args == [SOURCE, SINK, "/c"]


def test_parameters_are_what_they_were_behind_the_wire() -> None:
    values: dict[str, Any] = {
        "a": None, "b": True, "c": -1, "d": 1.5, "e": "'; --", "f": b"\x00", "g": Decimal("1.0"),
        "h": date(2026, 1, 1), "i": datetime(2026, 1, 1, tzinfo=UTC), "j": timedelta(seconds=1),
        "k": [1, None], "l": float("inf")}
    call = decode_call(skuld_py.sql("select 1", values))
    assert sql.checked(*call.args, **call.kwargs).parameters == values


@pytest.mark.parametrize("value", [object(), [1, object()]], ids=["alone", "in a list"])
def test_a_parameter_that_cannot_travel_is_refused_by_its_name_and_with_what_can(value: object) -> None:
    with pytest.raises(Refused, match=r"^parameters\['day'\]: is a object; a parameter is None, bool, int, float"):
        skuld_py.sql("select :day", {"day": value})


@pytest.mark.parametrize(("field", "kwargs"), [
    *(("text", {"text": text}) for text in ("", 1, "-- nothing", "x" * (1 << 20 | 1), "select 1;" * 101)),
    ("parameters", {"parameters": [1]}), ("parameters['a b']", {"parameters": {"a b": 1}}),
    ("parameters", {"parameters": {f"p{n}": 1 for n in range(101)}}),
    *(("parameters['a']", {"parameters": {"a": value}})
      for value in ({"$date": "x"}, {"b": 1}, 1 << 63, [[1]], [1] * 10_001)),
    ("output", {"output": ""}), ("output", {"output": "a\0"}), ("format", {"format": "a b"}),
    *(("rows", {"rows": rows}) for rows in (0, True, 10_001)),
    ("conf['spark.executor.memory']", {"conf": {"spark.executor.memory": "1g"}}),
    ("options['a b']", {"options": {"a b": 1}}), ("options['a']", {"options": {"a": [1]}}),
])
def test_sql_that_is_none_is_refused_by_its_field_whoever_writes_it(field: str, kwargs: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        skuld_py.call("skuld:sql", **{"text": "select 1", **kwargs})
    assert refused.value.facts.get("field", refused.value.message) == field


@pytest.mark.parametrize(("field", "args", "kwargs"), [
    *(("file", (path,), {}) for path in ("/etc/a.py", "../a.py", "a/../../b.py", "", "a.sh", "a", ".", "a,b.py",
                                         "a#b.py", 1)),
    ("arguments[0]", ("a.py", [1]), {}), ("arguments", ("a.py", "x"), {}),
    ("arguments", ("a.py", ["x"] * 1001), {}),
    ("arguments", ("a.py", ["x" * 40_000] * 2), {}), ("arguments[0]", ("a.py", ["\0"]), {}),
    ("main_class", ("a.jar",), {}), ("main_class", ("a.py",), {"main_class": "a.B"}),
    ("main_class", ("a.jar",), {"main_class": "--conf"}), ("py_files[0]", ("a.py",), {"py_files": ["../b.py"]}),
    ("py_files", ("a.py",), {"py_files": "b.py"}), ("plain", ("a.jar",), {"main_class": "B", "plain": True}),
    ("plain", ("a.py",), {"plain": 1}),
    *((f"conf['{name}']", ("a.py",), {"conf": {name: "x"}}) for name in (
        "spark.plugins", "spark.driver.extraJavaOptions", "spark.jars.packages", "spark.pyspark.python",
        "spark.master", "spark.submit.deployMode", "spark.sql.extensions", "spark.executor.extraJavaOptions",
        "spark.sql.execution.pyspark.python", "spark.sql.sources.commitProtocolClass", "spark.sql.sources.default",
        "spark.sql.parquet.output.committer.class", "spark.sql.streaming.checkpointLocation",
        "spark.sql.adaptive.customCostEvaluatorClass", "spark.sql.extendedExplainProviders",
        "spark.sql.defaultCatalog", "spark.sql.avro.schemaUrlAllowedSchemes",
        "spark.executorEnv.LD_PRELOAD", "spark.sql.hive.metastore.jars", "spark.files", "spark.local.dir",
        "spark.driver.extraClassPath")),
])
def test_a_script_that_could_run_anything_else_is_refused_by_its_field(
    field: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as refused:
        skuld_py.call("skuld:script", *args, **kwargs)
    assert refused.value.facts["field"] == field


def test_a_script_may_say_how_much_it_takes() -> None:
    conf = {"spark.executor.memory": "2g", "spark.sql.ansi.enabled": True}
    made = script.checked("a/./b.py", ["", "x"], conf=conf)
    assert made.file == "a/b.py" and made.conf == {**conf, "spark.sql.ansi.enabled": "true"}
    assert script.checked("a.jar", main_class="acme.Main").main_class == "acme.Main"


@pytest.mark.parametrize(("field", "args", "kwargs"), [
    ("source", ([], SINK, "/c"), {}), ("source.format", ({"path": "/in"}, SINK, "/c"), {}),
    ("source.fromat", ({"fromat": "json"}, SINK, "/c"), {}),
    ("source.schema", ({"format": "json"}, SINK, "/c"), {}),
    ("source.schema", ({"format": "text", "schema": 1}, SINK, "/c"), {}),
    ("source.path", ({**SOURCE, "path": 1}, SINK, "/c"), {}),
    ("sink.format", (SOURCE, {}, "/c"), {}), ("sink.mode", (SOURCE, {**SINK, "mode": "all"}, "/c"), {}),
    ("sink.options", (SOURCE, {**SINK, "options": {"CheckpointLocation": "/x"}}, "/c"), {}),
    ("checkpoints", (SOURCE, SINK, ""), {}), ("transform", (SOURCE, SINK, "/c"), {"transform": "clean"}),
    ("transform", (SOURCE, SINK, "/c"), {"transform": "a:b.c"}),
    ("conf['spark.master']", (SOURCE, SINK, "/c"), {"conf": {"spark.master": "x"}}),
])
def test_a_stream_that_is_none_is_refused_by_its_field(
    field: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    with pytest.raises(Refused) as refused:
        skuld_py.call("skuld:stream", *args, **kwargs)
    assert refused.value.facts["field"] == field


def test_files_need_a_schema_unless_spark_is_told_to_find_one() -> None:
    conf = {"spark.sql.streaming.schemaInference": True}
    assert stream.checked({"format": "json", "path": "/in"}, SINK, "/c", conf=conf).source.schema is None


@pytest.mark.parametrize("name", ["skuld:sql", "skuld:script", "skuld:stream"])
def test_arguments_that_a_kind_does_not_take_are_refused(name: str) -> None:
    with pytest.raises(Refused, match=f"{name}: .*argument"):
        skuld_py.call(name, "a.py", colour="red")


def test_names_of_skulds_own_are_not_for_functions_of_others() -> None:
    with pytest.raises(Refused, match="names that begin with skuld: are Skuld's own") as refused:
        skuld_py.task(name="skuld:mine")(test_files_need_a_schema_unless_spark_is_told_to_find_one)
    assert refused.value.code == "reserved_name"
