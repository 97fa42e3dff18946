"""Options of reads and writes: what is wrong is refused by its option, before the queue is asked anything."""

from __future__ import annotations

import pytest

from skuld_py.datasource.asked import Asked
from skuld_py.datasource.choices import read_choices, stream_choices, write_choices
from skuld_py.errors import Refused
from skuld_py.model.ids import TaskId

COLUMNS = ["payload", "k", "p", "t"]


def test_a_write_takes_the_column_called_payload_or_the_only_one() -> None:
    assert write_choices({"queue": "q"}, COLUMNS).payload == "payload"
    assert write_choices({"queue": "q"}, ["letter"]).payload == "letter"
    assert write_choices({"queue": "q", "Payload": "k"}, COLUMNS).payload == "k"  # case does not count
    assert write_choices({"queue": "q"}, COLUMNS).is_atomic


def test_a_call_takes_all_columns_that_say_nothing_else_by_name() -> None:
    made = write_choices({"queue": "q", "call": "shop:add", "key": "k", "priority": "p"}, COLUMNS)

    assert made.kwargs == (("payload", "payload"), ("t", "t"))
    assert made.args == () and made.priority == "p" and made.key == "k"


def test_a_call_takes_the_columns_named_in_order_and_by_parameter() -> None:
    made = write_choices({"queue": "q", "call": "shop:add", "args": "p, k", "kwargs": "when=t,payload"}, COLUMNS)

    assert made.args == ("p", "k")
    assert made.kwargs == (("when", "t"), ("payload", "payload"))


@pytest.mark.parametrize(("options", "words"), [
    ({}, "queue:"), ({"queue": "a b"}, "queue:"), ({"queue": "q", "palyoad": "k"}, "palyoad: is no option"),
    ({"queue": "q", "payload": "none"}, "there is no column 'none'"), ({"queue": "q", "key": "none"}, "key:"),
    ({"queue": "q", "call": "f", "payload": "k"}, "call: and payload"), ({"queue": "q", "args": "k"}, "args:"),
    ({"queue": "q", "priority": "4294967296"}, "priority:"), ({"queue": "q", "priority": "none"}, "priority:"),
    ({"queue": "q", "atomic": "maybe"}, "atomic:"), ({"queue": "q", "ttl": "soon"}, "ttl:"),
    ({"queue": "q", "ttl": "1s"}, "ttl:"), ({"queue": "q", "batch": "0"}, "batch:"),
    ({"queue": "q", "max_attempts": "0"}, "max_attempts:"),
    ({"queue": "q", "call": "f", "kwargs": "a=none"}, "none"),
])
def test_what_is_wrong_is_refused_by_its_option(options: dict[str, str], words: str) -> None:
    with pytest.raises(Refused, match=words):
        write_choices(options, COLUMNS)


def test_several_columns_and_no_payload_is_a_question() -> None:
    with pytest.raises(Refused, match="which of the columns a, b is the payload"):
        write_choices({"queue": "q"}, ["a", "b"])


def test_options_of_spark_itself_are_passed_over() -> None:
    assert write_choices({"queue": "q", "checkpointLocation": "/tmp/c"}, COLUMNS).queue == "q"


def test_times_have_units() -> None:
    assert write_choices({"queue": "q", "ttl": "90m", "timeout": "1500ms"}, COLUMNS).ttl_s == 5_400
    assert stream_choices({"wait": "2m"}).wait_s == 120


@pytest.mark.parametrize(("options", "words"), [
    ({"state": "gone"}, "state:"), ({"queue": "a b"}, "queue:"), ({"page": "9999"}, "page:"),
    ({"que": "q"}, "que:")])
def test_a_read_refuses_what_it_does_not_know(options: dict[str, str], words: str) -> None:
    with pytest.raises(Refused, match=words):
        read_choices(options)


def test_conditions_narrow_what_is_read() -> None:
    asked = Asked(read_choices({"queue": "a,b", "state": "dead,waiting"}))

    narrow = asked.narrowed("queue", ["b", "c"])
    assert narrow is not None and narrow.choices.queues == ("b",) and not narrow.is_nothing
    none = narrow.narrowed("state", ["completed"])
    assert none is not None and none.is_nothing
    assert asked.narrowed("priority", [3]) is None
    called = asked.narrowed("function", ["shop:add"])
    assert called is not None and called.choices.function == "shop:add"
    other = called.narrowed("function", ["shop:drop"])
    assert other is not None and other.is_nothing


def test_conditions_on_ids_read_these_alone() -> None:
    asked = Asked(read_choices({}))
    one, other = TaskId(b"1" * 20), TaskId(b"2" * 20)

    both = asked.narrowed("id", [str(one), str(other), "no id", str(one).upper()])
    assert both is not None and both.ids == (one, other)
    left = both.narrowed("id", [str(other)])
    assert left is not None and left.ids == (other,)
    none = left.narrowed("id", [str(one)])
    assert none is not None and none.is_nothing
