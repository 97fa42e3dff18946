"""What inputs draw from besides files and functions: parts of a table, a queue, what another step returned."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs
import pytest

import skuld_py
from skuld_py.calls.payloads import call
from skuld_py.errors import Refused
from skuld_py.worker.credentials import VARIABLE, credentials_for
from skuld_py.worker.endings import Ending, Failed, Returned
from skuld_py.worker.registry import lookup
from skuld_py.worker.workflows.children import unpacked
from skuld_py.worker.workflows.feeding import FEED, feed
from skuld_py.worker.workflows.parts import part_credentials, parts_of
from skuld_py.worker.workflows.plans import Standing
from skuld_py.worker.workflows.queued import LEASE_S, RENEW_S, Queued
from skuld_py.worker.workflows.sequences import Sequential
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.definition.resuming import contents, resumed
from skuld_py.workflow.definition.sources import Jdbc, Page
from skuld_py.workflow.definition.writing import digest_of, text_of
from skuld_py.workflow.segments import feeder_id, haul_queue
from worker.flows import Home


class Died(BaseException):
    """The process ended."""


@skuld_py.task(name="sources.double")
def double(value: Any) -> list[Any]:
    return [value, value]


@skuld_py.task(name="sources.same")
def same(value: Any) -> Any:
    return value


def numbers() -> Iterator[int]:
    yield from (1, 2, 3)


def is_odd(value: int) -> bool:
    return value % 2 == 1


class Topic:
    """Two partitions in memory; ``committed``: up to where each was said to be done, by whichever life."""

    rows: ClassVar[dict[str, list[int]]] = {"a": [*range(5)], "b": [*range(10, 17)]}
    committed: ClassVar[dict[str, int]] = {}

    def partitions(self) -> Sequence[str]:
        return [*self.rows]

    def begin(self, partition: str) -> int:
        return 0

    def read(self, partition: str, offset: int, most: int) -> Page:
        values = self.rows[partition][offset : offset + most]
        return Page(values, offset + len(values), is_end=offset + len(values) == len(self.rows[partition]))

    def commit(self, offsets: Mapping[str, int]) -> None:
        for partition, offset in offsets.items():
            assert offset >= self.committed.get(partition, 0)
            self.committed[partition] = offset


def found(name: str) -> Any:
    return {"sources.numbers": numbers, "sources.topic": Topic, "sources:is_odd": is_odd}.get(name) or lookup(name)


class Status:
    is_sealing = False


class Field(Home):
    """A workflow whose steps are run whenever a feeder waits for acks. ``quits``: at which of those looks the
    feeder's process dies; ``stops``: after how many of them the workflow is killed."""

    def __init__(self, workflow: dict[str, Any], quits: int = 0, stops: int = 0) -> None:
        super().__init__(workflow, found)
        self.flow._plans._clock = self.client.cluster.steady_s
        self.exhausted: list[str] = []
        self.quits, self.stops = quits, stops
        self.looks = 0
        self._acts: dict[int, list[Callable[[], Any]]] = {}
        claim = self.client.claim

        def worked(queue: str, **options: Any) -> Any:
            if queue.startswith(f"wf.{self.definition.id}._acks-"):
                self.looks += 1
                if self.looks == self.quits:
                    raise Died
                if self.looks == self.stops:
                    self.end("killed")
                for act in self._acts.pop(self.looks, ()):
                    act()
                self.client.claim = claim
                for step in self.definition.order:
                    self.work(step, 3)
                self.client.claim = worked
            return claim(queue, **options)
        self.client.claim = worked

    def at(self, look: int, act: Callable[[], Any]) -> None:
        """Do something when a feeder has looked for acks so often."""
        self._acts.setdefault(look, []).append(act)

    def end(self, state: str, id: str = "") -> None:
        id = id or self.definition.id
        self.standings[id] = attrs.evolve(self.standings[id], state=state)

    def exhaust_input(self, workflow: str, step: str, *, strand: int = 0, life: int = 0) -> Status:
        self.exhausted.append(step)
        self.standings[workflow] = attrs.evolve(self.standings[workflow], exhausted=(*self.exhausted,))
        return Status()

    def begin(self, step: str) -> None:
        self.client.enqueue_many(self.queue("feed"), [call(FEED, workflow=self.definition.id, step=step)],
                                 ids=[feeder_id(self.definition.id, step, self.life)])

    def feed(self, step: str = "") -> Ending:
        if step:
            self.begin(step)
        ending, = self.work("feed", 1)
        return ending

    def die(self) -> None:
        assert self.died()

    def died(self) -> bool:
        """Whether the feeder's process ends before it is done; then its lease lapses."""
        run, = self.claimed("feed")
        self.flow.begin([run])
        try:
            feed(run.context, self.definition.id, "drawn")
        except Died:
            self.client.advance(120)
            return True
        return False

    def values(self, step: str) -> list[Any]:
        """What went into a step."""
        made = (self.get(task.id) for task in self.client.list(self.queue(step), states=("completed",)))
        return sorted((task.result for task in made), key=repr)

    def known(self, definition: Definition, state: str = "completed", exhausted: tuple[str, ...] = ()) -> None:
        """Another workflow, in the same cluster."""
        plan = self.client.enqueue(definition.queue("plan"), text_of(definition).encode())
        self.standings[definition.id] = Standing(state, str(plan), digest_of(definition), "", exhausted)


def flow(id: str, source: dict[str, Any], **steps: Any) -> dict[str, Any]:
    return {"id": id, "edges": [["drawn", "leaf"]], "catalog": {
        "drawn": {"kind": "input", "max_pending": 4, "root_timeout_s": 2, **source},
        "leaf": {"kind": "function", "function": "sources.same"}, **steps}}


@pytest.mark.parametrize("quits", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(("source", "count"), [
    ({"offsets": "sources.topic"}, 12),
    ({"jdbc": {"url": "jdbc:x", "table": "t", "column": "id", "upper": 90, "partitions": 13}}, 13),
    ({"workflow": {"id": "former", "step": "every"}}, 6),
], ids=["offsets", "parts of a table", "another workflow"])
def test_a_next_life_draws_the_same_again_from_where_the_former_was(
        source: dict[str, Any], count: int, quits: int) -> None:
    Topic.committed.clear()
    field = both(source.get("workflow", "former"), **({} if "workflow" in source else {"drawn": {
        "kind": "input", "max_pending": 4, "root_timeout_s": 2, **source}}))
    field.quits = field.looks + quits
    field.begin("drawn")
    if field.died():
        assert isinstance(field.feed(), Returned)
    assert len(field.values("leaf")) == count, "each of them once"
    if "offsets" in source:
        assert Topic.committed == {"a": 5, "b": 7}


# -- parts of a table ---------------------------------------------------------------------------------


def test_each_row_of_a_table_is_in_one_part() -> None:
    database = sqlite3.connect(":memory:")
    database.execute("create table prices (id integer, price integer)")
    database.executemany("insert into prices values (?, ?)", [(None, 0), *((id, id) for id in range(-50, 200, 3))])
    for lower, upper, partitions in ((0, 100, 4), (0, 100, 1), (0, 3, 8), (-7, 90, 7), (0, 100, 1_000)):
        parts = [*parts_of(Jdbc("jdbc:sqlite:x", "prices", "id", lower, upper, partitions))]
        rows = [row for part in parts for row in
                database.execute(f"select price from prices where {part['where'] or '1 = 1'}").fetchall()]
        assert sorted(rows) == sorted(database.execute("select price from prices").fetchall())
        assert len(parts) <= partitions and [part["part"] for part in parts] == [*range(len(parts))]
    assert len([*parts_of(Jdbc("jdbc:sqlite:x", "prices", "id", 0, 100, 4))]) == 4


def test_a_workflow_has_a_root_for_each_part_and_no_password() -> None:
    field = Field(flow("w", {"jdbc": {"url": "jdbc:sqlite:x", "table": "prices", "column": "id", "upper": 90,
                                      "partitions": 9, "credentials": "shop"}}))
    assert isinstance(field.feed("drawn"), Returned)
    parts = field.values("leaf")
    assert len(parts) == 9 and {part["credentials"] for part in parts} == {"shop"}
    assert sorted(parts[0]) == ["credentials", "options", "part", "parts", "table", "url", "where"]


def test_credentials_are_given_out_for_their_addresses_alone(tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "credentials.toml"
    place.write_text('[shop]\nurl = ["jdbc:a://db/shop", "jdbc:b://db"]\nuser = "me"\npassword = "hidden"\n')
    place.chmod(0o600)
    with pytest.raises(Refused, match=f"start the worker with {VARIABLE}"):
        credentials_for("shop", "jdbc:a://db/shop")
    monkeypatch.setenv(VARIABLE, str(place))
    part = {"credentials": "shop", "url": "jdbc:a://db/shop"}
    assert part_credentials(part) == {"user": "me", "password": "hidden"}
    assert part_credentials({**part, "credentials": ""}) == {}
    for name, url in (("shop", "jdbc:a://evil/shop"), ("shop", "jdbc:a://db/shop?factory=x"), ("other", "x")):
        with pytest.raises(Refused) as refusal:
            credentials_for(name, url)
        assert "hidden" not in str(refusal.value)
    os.chmod(place, 0o644)
    with pytest.raises(Refused, match="may be read by others"):
        credentials_for("shop", "jdbc:a://db/shop")


# -- a queue ------------------------------------------------------------------------------------------


def orders(field: Field, count: int = 10) -> None:
    for number in range(count):
        field.client.enqueue("orders", b"%d" % number)


def states(field: Field) -> dict[str, int]:
    found: dict[str, int] = {}
    for task in field.client.list("orders"):
        found[task.state] = found.get(task.state, 0) + 1
    return found


def payloads(field: Field) -> list[int]:
    return sorted(int(value["payload"]) for value in field.values("leaf"))


def test_tasks_of_a_queue_are_completed_when_their_roots_are_done() -> None:
    field = Field(flow("w", {"queue": "orders"}), stops=30)
    orders(field)
    ending = field.feed("drawn")
    assert isinstance(ending, Failed), "a queue has no end"
    assert payloads(field) == [*range(10)]
    assert states(field) == {"completed": 10}
    done = field.get(next(iter(field.client.list("orders"))).id)
    assert done.result == {"workflow": "w", "input": "drawn"}
    assert {task.state for task in field.client.list(haul_queue("w", "drawn"))} == {"cancelled"}


def test_a_call_in_a_queue_is_a_value_of_its_name_and_arguments() -> None:
    field = Field(flow("w", {"queue": "orders"}), stops=8)
    field.client.enqueue("orders", call("pay", 7, by="card"), headers={"a": "b"})
    field.feed("drawn")
    value, = field.values("leaf")
    assert (value["function"], value["args"], value["kwargs"], value["headers"]) == (
        "pay", [7], {"by": "card"}, {"a": "b"})


@pytest.mark.parametrize("quits", [2, 3, 4, 6, 8])
def test_the_next_life_of_a_feeder_knows_the_tasks_that_the_former_drew(quits: int) -> None:
    field = Field(flow("w", {"queue": "orders"}), quits=quits)
    orders(field)
    field.begin("drawn")
    field.die()
    field.stops = quits + 30
    assert isinstance(field.feed(), Failed)
    assert payloads(field) == [*range(10)], "each of them once"
    assert states(field) == {"completed": 10}


def test_tasks_of_a_workflow_that_is_killed_wait_again_at_once() -> None:
    field = Field(flow("w", {"queue": "orders"}), stops=3)
    field.work = lambda step, count=100: [] if step == "leaf" else Home.work(field, step, count)  # type: ignore
    orders(field)
    field.feed("drawn")
    assert states(field) == {"waiting": 10}


def test_claims_are_renewed_while_their_roots_are_under_way() -> None:
    field = Field(flow("w", {"queue": "orders"}))
    orders(field, 3)
    clock = field.client.cluster.steady_s
    queued = Queued(field.client, "orders", "w", "drawn", field.client.cluster.wall_ms, clock)
    drawn = queued.draw(b"", 10)
    for _ in range(10):
        field.client.advance(RENEW_S)
        queued.tend()
    assert not field.client.claim("orders", n=10)
    field.client.advance(LEASE_S + 5)
    lost = field.client.claim("orders", n=1)
    assert len(lost) == 1
    queued.tend()
    assert queued.draw(drawn.cursor, 10).values == [], "what lapsed is held again, and is no other root"
    field.client.release(*lost)
    queued.settle(drawn.cursor, {})
    assert states(field) == {"completed": 2, "waiting": 1}
    assert queued.draw(drawn.cursor, 10).values == [], "nor is what was done meanwhile"
    assert states(field) == {"completed": 3}


def test_what_is_behind_the_cursor_is_not_settled() -> None:
    field = Field(flow("w", {"queue": "orders"}))
    orders(field, 4)
    queued = Queued(field.client, "orders", "w", "drawn", field.client.cluster.wall_ms)
    first = queued.draw(b"", 2)
    second = queued.draw(first.cursor, 2)
    queued.settle(first.cursor, {})
    assert states(field) == {"completed": 2, "claimed": 2}
    queued.settle(second.cursor, {0: second.offset})
    assert states(field) == {"completed": 2, "claimed": 2}
    again = Queued(field.client, "orders", "w", "drawn", field.client.cluster.wall_ms)
    assert again.again(0, second.offset, 2) == second.values
    queued.close()
    assert states(field) == {"completed": 2, "waiting": 2}


def test_a_task_that_is_too_large_for_an_edge_ends_the_workflow_and_says_so() -> None:
    field = Field(flow("w", {"queue": "orders"}))
    field.client.enqueue("orders", bytes(70_000))
    field.feed("drawn")
    assert "enqueue the path" in field.killed["w"]


# -- what a step returned -----------------------------------------------------------------------------

FORMER: dict[str, Any] = {
    "id": "former", "edges": [["numbers", "twice"], ["twice", "odd"], ["twice", "every"]], "catalog": {
        "numbers": {"kind": "input", "function": "sources.numbers"},
        "twice": {"kind": "function", "function": "sources.double"},
        "odd": {"kind": "function", "function": "sources.same"},
        "every": {"kind": "output", "path": "/every"}},
    "conditions": [{"from": "twice", "to": ["odd"], "when": "sources:is_odd"}, {"from": "twice", "to": ["every"]}]}


def both(source: Any, state: str = "completed", exhausted: Sequence[str] = (), edges: Any = None,
         **steps: Any) -> Field:
    """A cluster in which ``former`` ran, and a workflow that draws from it."""
    plain = flow("w", {"workflow": source})
    plain["catalog"] |= steps
    plain["edges"] = edges or plain["edges"]
    field = Field(plain)
    mine, old = field.definition, read(FORMER)
    field.known(old, "live")
    field.definition = old
    field.draw(1, 2, 3)
    for step in old.order:
        field.work(step)
    field.definition = mine
    field.standings["former"] = attrs.evolve(field.standings["former"], state=state, exhausted=tuple(exhausted))
    field.client.advance(3)
    return field


@pytest.mark.parametrize(("source", "drawn"), [
    ({"id": "former", "step": "odd"}, [1, 1, 3, 3]),
    ({"id": "former", "step": "every"}, [1, 1, 2, 2, 3, 3]),
    ("former", [1, 1, 1, 1, 2, 2, 3, 3, 3, 3]),
    ({"id": "former", "step": "numbers"}, [1, 2, 3]),
    ({"id": "former", "step": "twice"}, [1, 1, 2, 2, 3, 3]),
    ({"id": "former", "step": "odd", "together": True}, [[1, 1, 3, 3]]),
], ids=["a function", "an output", "all leaves", "an input", "what went several ways, once", "as one list"])
def test_what_a_step_returned_is_drawn(source: Any, drawn: list[Any]) -> None:
    field = both(source)
    assert isinstance(field.feed("drawn"), Returned)
    assert [sorted(value) if isinstance(value, list) else value for value in field.values("leaf")] == drawn
    assert field.exhausted == ["drawn"]


def test_nothing_together_is_an_empty_list() -> None:
    field = Field(flow("w", {"workflow": {"id": "former", "together": True}}))
    field.known(read(FORMER))
    field.feed("drawn")
    assert field.values("leaf") == [[]]


def test_a_step_that_is_not_finished_is_waited_for() -> None:
    field = both({"id": "former", "step": "odd"}, state="live")
    field.at(9, lambda: field.standings.update(
        former=attrs.evolve(field.standings["former"], exhausted=("numbers",))))
    seen: list[int] = []
    field.at(8, lambda: seen.append(len([*field.client.list(field.queue("drawn"))])))
    assert isinstance(field.feed("drawn"), Returned)
    assert seen == [0] and field.values("leaf") == [1, 1, 3, 3]


@pytest.mark.parametrize(("source", "state", "words"), [
    ({"id": "former", "step": "odd"}, "killed", "was killed, and nobody knows"),
    ({"id": "former", "step": "even"}, "completed", "former has no step even"),
    ({"id": "former", "step": "odd", "content": "0f" * 32}, "killed", "is not what was taken over"),
])
def test_what_never_will_be_there_ends_the_workflow(source: Any, state: str, words: str) -> None:
    field = both(source, state)
    ending = field.feed("drawn")
    assert isinstance(ending, Failed) and ending.is_final
    assert words in field.killed["w"]


def test_values_of_a_killed_workflow_go_the_ways_that_they_went_there() -> None:
    new = {**FORMER, "id": "w", "catalog": {**FORMER["catalog"], "odd": {
        "kind": "function", "function": "sources.same", "parameters": {}}, "every": {
        "kind": "output", "path": "/elsewhere"}}}
    made = resumed(read(new), read(FORMER), {"numbers", "twice"})
    field = both("former", "killed")
    field.definition = made
    field.known(made, "live")
    field.client.advance(1)
    assert isinstance(field.feed("twice"), Returned)
    assert field.values("odd") == [1, 1, 3, 3]
    assert field.values("every") == [1, 1, 2, 2, 3, 3]


# -- of the same workflow -----------------------------------------------------------------------------


def joined(id: str, **changed: Any) -> dict[str, Any]:
    """numbers -> twice; what that returned, as one list -> every."""
    return {"id": id, "edges": [["numbers", "twice"], ["lists", "every"]], "catalog": {
        "numbers": {"kind": "input", "function": "sources.numbers"},
        "twice": {"kind": "function", "function": "sources.double"},
        "lists": {"kind": "input", "workflow": {"step": "twice", "together": True}},
        "every": {"kind": "function", "function": "sources.same"}, **changed}}


def test_values_of_a_step_of_the_same_workflow_meet_in_one_list() -> None:
    field = Field(joined("w"))
    field.begin("lists")
    lists, = field.claimed("feed")
    field.flow.begin([lists])
    field.at(5, lambda: field.feed("numbers"))
    feed(lists.context, "w", "lists")
    assert field.exhausted == ["numbers", "lists"]
    assert [sorted(each) for each in field.values("every")] == [[1, 1, 2, 2, 3, 3]]


def test_such_a_step_is_taken_over_from_an_old_workflow() -> None:
    old, new = read(joined("old")), read(joined("new"))
    made = resumed(new, old, {"numbers", "twice"})
    assert made.order == ("lists", "every")
    source = made.entries["lists"].source
    assert (source.workflow, source.step, source.together) == ("old", "twice", True)  # type: ignore[union-attr]
    assert contents(made)["lists"] == contents(new)["lists"]
    third = resumed(read(joined("third")), made, {"numbers", "twice"})
    assert third.order == ("lists", "every")
    assert third.entries["lists"].source == source
    other = read(joined("new", numbers={"kind": "input", "files": "/x"}))
    assert {*resumed(other, old, {"numbers", "twice", "lists"}).order} == {*old.order}, "all of it is new"


def test_a_source_whose_cluster_does_not_answer_is_asked_again_from_where_it_was() -> None:
    troubles = [2]

    def begin() -> Iterator[int]:
        for number in range(6):
            if number in troubles:
                troubles.clear()
                raise Refused("x", "no answer")
            yield number
    source = Sequential(begin)
    first = source.draw(b"", 2)
    with pytest.raises(Refused):
        source.draw(first.cursor, 3)
    assert [unpacked(value) for value in source.draw(first.cursor, 9).values] == [2, 3, 4, 5]
