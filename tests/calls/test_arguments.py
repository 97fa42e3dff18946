"""Arguments: each type there and back by its annotation, and what does not fit is refused by name."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, NewType, TypedDict
from uuid import UUID

import attrs
import msgpack
import pydantic
import pytest

import skuld_py
from skuld_py.calls.arguments import Arguments
from skuld_py.calls.payloads import AS_IT_IS, BY_ANNOTATION, Call, call, decode_call, function_of
from skuld_py.errors import Refused
from skuld_py.testing import MemoryClient

if TYPE_CHECKING:
    from nowhere import Unheard  # type: ignore[import-not-found]


class Colour(Enum):
    RED = "red"


@dataclasses.dataclass
class Item:
    name: str
    price: Decimal
    parts: list[Item] = dataclasses.field(default_factory=list)
    note: str = dataclasses.field(default="", init=False)


@attrs.frozen
class Order:
    id: UUID
    _at: datetime
    items: tuple[Item, ...] = ()


class Customer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    name: str = pydantic.Field(alias="fullName")
    since: date
    orders: dict[str, Decimal] = {}


class Row(TypedDict):
    day: date
    count: int


CustomerId = NewType("CustomerId", UUID)
WHEN, DAY, WHO = datetime(2026, 11, 20, 8, tzinfo=UTC), date(2026, 11, 20), UUID(int=7)
ITEM = Item("tea", Decimal("2.50"), [Item("leaf", Decimal("0.01"))])

THERE_AND_BACK: list[tuple[Any, Any]] = [
    (datetime, WHEN), (datetime, datetime(2026, 1, 1)), (date, DAY), (time, time(8, 30)),
    (timedelta, timedelta(days=400, microseconds=1)), (UUID, WHO), (Decimal, Decimal("1.50")),
    (Decimal, Decimal("NaN")), (Colour, Colour.RED), (CustomerId, WHO), (Annotated[date, "a day"], DAY),
    (UUID | None, None), (UUID | None, WHO), (str | UUID | None, "plain"),
    (date | UUID, WHO), (list[date], [DAY, DAY]), (Sequence[UUID], [WHO]), (tuple[date, ...], (DAY,)),
    (tuple[int, UUID], (1, WHO)), (tuple, (1, "a")), (set[int], {1, 2}), (frozenset[UUID], frozenset({WHO})),
    (list[set[str]], [{"b", "a"}]), (dict[str, list[date]], {"a": [DAY]}),
    (Mapping[str, Decimal], {"a": Decimal(1)}), (Item, ITEM), (Order, Order(WHO, WHEN, (ITEM,))),
    (list[Order | None], [None, Order(WHO, WHEN)]),
    (Customer, Customer(fullName="Ann", since=DAY, orders={"a": Decimal("0.10")})),
    (Row, {"day": DAY, "count": 3}), (dict[str, Any], {"a": [1, b"b", None]}), (Any, 3), (int, "not checked"),
]


def taking(annotation: Any) -> Arguments:
    def function(spark: Any, context: Any, value: Any, *more: Any, **others: Any) -> None: ...

    function.__annotations__ = {"value": annotation, "more": annotation, "others": annotation}
    return Arguments(function, ["spark", "context"])


@pytest.mark.parametrize(("annotation", "value"), THERE_AND_BACK)
def test_an_argument_arrives_as_it_was_sent_in_every_place(annotation: Any, value: Any) -> None:
    arguments = taking(annotation)

    arrived = arguments.rebuilt(decode_call(arguments.encode("f", (value, value), {"other": value})))

    for found in (*arrived.args, arrived.kwargs["other"]):
        assert type(found) is type(value)
        assert found == value or repr(found) == repr(value)


@pytest.mark.parametrize(("annotation", "sent", "arrives"), [
    (datetime, "2026-11-20T08:00:00+00:00", WHEN), (date, "2026-11-20", DAY), (Decimal, 2, Decimal(2)),
    (Decimal, 2.5, Decimal("2.5")), (timedelta, 90, timedelta(seconds=90)), (Colour, "red", Colour.RED),
    (Item, {"name": "tea", "price": 1}, Item("tea", Decimal(1))),
    (Customer, {"fullName": "Ann", "since": "2026-11-20"}, Customer(fullName="Ann", since=DAY))])
def test_what_another_language_sends_becomes_what_the_annotation_says(
        annotation: Any, sent: Any, arrives: Any) -> None:
    assert taking(annotation).rebuilt(decode_call(call("f", sent))).args == [arrives]


@pytest.mark.parametrize(("annotation", "sent", "words"), [
    (datetime, "yesterday", r"args\[0\]: is no datetime: 'yesterday'"), (datetime, 5, "is no datetime: 5"),
    (UUID, "x" * 10_000, "is no UUID"), (UUID, None, "is no UUID: None"), (Decimal, "1,5", "is no Decimal"),
    (Decimal, True, "is no Decimal: True"), (timedelta, 1e300, "is no timedelta"), (Colour, [], "is no Colour"),
    (list[date], ["2026-11-20", 1], r"args\[0\]\[1\]: is no date: 1"), (list[date], {}, "is no list"),
    (dict[str, date], {"a": 1}, r"args\[0\]\['a'\]: is no date"), (dict[str, date], [], "is no dict"),
    (tuple[int, UUID], [1], "2 values are wanted"), (set[Any], [[]], "is no set: .*unhashable"),
    (UUID | None, "x", "is no UUID or NoneType"), (Item, {"name": "tea"}, "is no Item: .*price"),
    (Item, {"name": "a", "price": 1, "os": "x"}, "has the field 'os', which Item does not have"),
    (Item, {"name": "a", "price": 1, "note": "x"}, "has the field 'note'"), (Item, [], "is no Item"),
    (Item, {"name": "a", "price": "x"}, r"args\[0\].price: is no Decimal"),
    (Order, {"id": "x", "at": "y"}, r"args\[0\].id: is no UUID"),
    (Customer, {"fullName": 1}, "is no Customer: .*since"),
    (Row, {"day": "x"}, r"args\[0\].day: is no date"), (Row, {"other": 1}, "has the field 'other'")])
def test_what_does_not_fit_is_refused_by_its_place(annotation: Any, sent: Any, words: str) -> None:
    with pytest.raises(Refused, match=words) as refused:
        taking(annotation).rebuilt(decode_call(call("f", sent)))
    assert refused.value.code == "bad_arguments"
    assert len(refused.value.message) < 1_000


@pytest.mark.parametrize(("annotation", "value", "words"), [
    (Any, WHEN, r"args\[0\]: holds a datetime, which would not arrive as one; annotate the parameter, as value:"),
    (list, [DAY], "holds a date"), (str, WHO, "holds a UUID"), (date, "soon", r"args\[0\]: is no date"),
    (str | datetime, WHEN, "holds a datetime"), (dict[str, Any], {"a": ITEM}, "holds a Item"),
    (list, [{1}], "holds a set"), (Item, Item("x", 3), "would not arrive as it is: .*'price': 3.*'price': '3'"),
    (Any, object(), "is a object; a call holds")])
def test_what_would_arrive_as_something_else_is_refused_where_it_is_sent(
        annotation: Any, value: Any, words: str) -> None:
    with pytest.raises(Refused, match=words):
        taking(annotation).encode("f", (value,), {})


def test_only_what_annotations_have_a_part_in_is_written_as_version_2() -> None:
    versions = [decode_call(taking(annotation).encode("f", (value,), {})).version for annotation, value in (
        (Any, "2026-11-20"), (int, 1), (list, [1]), (dict[str, int], {}), (date, "2026-11-20"), (date, DAY))]

    assert versions == [AS_IT_IS] * 4 + [BY_ANNOTATION] * 2
    assert decode_call(call("f")).version == AS_IT_IS and decode_call(call("f", 1)).version == BY_ANNOTATION


def test_in_version_1_values_arrive_as_they_are() -> None:
    old = msgpack.packb([1, "f", ["2026-11-20"], {}])

    assert taking(date).rebuilt(decode_call(old)).args == ["2026-11-20"]


def test_an_annotation_that_is_not_there_at_run_time_is_none() -> None:
    def function(spark: Any, context: Any, when: date, what: Unheard) -> None: ...

    arguments = Arguments(function, ["spark", "context"])
    assert arguments.rebuilt(decode_call(arguments.encode("f", (DAY, {"a": 1}), {}))).args == [DAY, {"a": 1}]


def test_models_are_known_without_importing_their_library() -> None:
    before = sys.modules.pop("pydantic")
    try:
        with pytest.raises(Refused, match="is a Customer; a call holds"):
            taking(Any).encode("f", (Customer(fullName="Ann", since=DAY),), {})
        assert "pydantic" not in sys.modules
    finally:
        sys.modules["pydantic"] = before


@pytest.mark.parametrize("payload", [b"", b"hello", b"\x94", b"\x94\x01", b"\x94\x03\xa1f", b"\x94\x01\xa1\n",
                                     b"\x94\xc3\xa1f\x90\x80", b"\x94\x01\xdb\xff\xff\xff\xff", b"\x96\x01\xa1f"])
def test_what_is_no_call_names_no_function(payload: bytes) -> None:
    assert function_of(payload) is None


def test_the_name_is_read_without_what_follows() -> None:
    assert function_of(call("shop:add", "x" * 1_000_000)) == "shop:add"
    assert function_of(call("ü" * 200, 1)) == "ü" * 200


def test_a_segment_says_its_root_behind_the_call() -> None:
    root = bytes(range(20)) + b"files" + bytes(8)
    payload = msgpack.packb([1, "shop:add", [1], {}, root])

    assert decode_call(payload) == Call("shop:add", [1], {}, root=root)
    assert function_of(payload) == "shop:add"
    for other in (b"", root[:28], root + b"x" * 60, "a" * 33, None):
        with pytest.raises(Refused, match="its root is no id with the name of an input"):
            decode_call(msgpack.packb([1, "shop:add", [1], {}, other]))


@skuld_py.task(queue="days")
def follow(spark: Any, context: Any, day: date, *, by: timedelta = timedelta(days=1)) -> date:
    return day + by


def test_a_task_runs_with_what_was_sent_whoever_sent_it() -> None:
    with MemoryClient() as client, skuld_py.using(client):
        payload = skuld_py.call(f"{__name__}:follow", "2026-11-20", by=86_400)
        sent = [follow.send(DAY), client.enqueue("days", payload)]
        wrong = client.enqueue("days", skuld_py.call(f"{__name__}:follow", "soon"))
        client.run_until_empty("days", raises=False)

        assert client.results(sent) == [date(2026, 11, 21)] * 2
        assert client.get(wrong).death == "permanent"
        assert b"args[0]: is no date: 'soon'" in (client.get(wrong).error or b"")
