"""A workflow written in Python.

    flow = skuld_py.Workflow("census")
    archives = flow.input("archives", files="/data/*.gz")
    words = flow.step("words", jobs.words, most=4)
    long = flow.output("long", path="/data/long", format="parquet")
    archives >> words >> long
    flow.condition(words, to=long, when=[jobs.is_longer, "than"], parameters={"than": 10})
    flow.lifecycle(words, before_start=jobs.connect, after_stop=jobs.disconnect)
    flow.definition()

Functions may be given by name or by themselves. A task function has the name by which workers know it, another one
at the top of a module is called ``MODULE:FUNCTION``.

Invariant: nothing is checked before ``definition``, which then says everything that is wrong, as for plain data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

from skuld_py.errors import Refused
from skuld_py.workflow.definition.definition import Definition
from skuld_py.workflow.definition.entries import Kind
from skuld_py.workflow.definition.names import ALL
from skuld_py.workflow.definition.reading import read
from skuld_py.workflow.definition.resuming import resumed

Function = str | Callable[..., Any]
When = Function | Sequence[Any]


class _Common(TypedDict, total=False):
    parameters: Mapping[str, Any]
    tags: Iterable[str]
    doc: str


class InputOptions(_Common, total=False):
    """What an input draws from, one of the first six, and how."""

    files: str | Sequence[str]
    jdbc: Mapping[str, Any]
    offsets: Function
    workflow: str | Mapping[str, Any]
    queue: str
    function: Function
    max_pending: int
    root_timeout_s: float
    least: int
    most: int


class StepOptions(_Common, total=False):
    """How a step is run."""

    least: int
    most: int
    percentage: int
    flux: str
    batch: int
    timeout_s: float
    attempts: int


class ConditionOptions(TypedDict, total=False):
    """What a condition says besides from and to."""

    when: When
    parameters: Mapping[str, Any]
    short_circuit: bool
    exclude: str | Sequence[str]
    exception: bool
    transform: Function
    action: str


class LifecycleOptions(TypedDict, total=False):
    """Functions around a step's work."""

    before_start: Function
    after_start: Function
    before_batch: Function
    before_task: Function
    after_task: Function
    after_batch: Function
    after_stop: Function
    on_exception: Function
    parameters: Mapping[str, Any]


class StepHandle:
    """A step of a workflow that is being written. ``a >> b`` is an edge; ``a >> [b, c]`` are two."""

    def __init__(self, flow: Workflow, name: str) -> None:
        self._flow = flow
        self.name = name

    def __rshift__(self, other: StepHandle | Sequence[StepHandle]) -> Any:
        """An edge to another step, or to each of several; gives those, so that chains can be written."""
        for each in [other] if isinstance(other, StepHandle) else other:
            self._flow.edge(self, each)
        return other

    def __rrshift__(self, others: Sequence[StepHandle]) -> StepHandle:
        """``[a, b] >> c``: an edge from each of several."""
        for each in others:
            self._flow.edge(each, self)
        return self


Step = str | StepHandle


class Workflow:
    """Writes a definition step by step. ``id`` names the workflow for ever: another run is another workflow."""

    def __init__(self, id: str, *, spreading: str = "balanced", percentage: int = 0,
                 metadata: Mapping[str, Any] | None = None) -> None:
        self._plain: dict[str, Any] = {"id": id, "edges": [], "catalog": {}, "conditions": [], "lifecycles": [],
                                       "spreading": spreading, "percentage": percentage,
                                       "metadata": dict(metadata or {})}
        self._former: tuple[Definition, frozenset[str]] | None = None

    def input(self, name: str, **options: Unpack[InputOptions]) -> StepHandle:
        """A step that makes roots of what it draws from files, a database, offsets, another workflow, a queue or
        a function."""
        return self._add(name, Kind.INPUT, dict(options))

    def step(self, name: str, function: Function, **options: Unpack[StepOptions]) -> StepHandle:
        """A step whose function gets segments and returns values."""
        return self._add(name, Kind.FUNCTION, {"function": function, **options})

    def output(self, name: str, path: str, format: str = "json", function: Function | None = None,
               **options: Unpack[StepOptions]) -> StepHandle:
        """A step that writes its segments, or what its function returns of them, to a dataset."""
        named = {} if function is None else {"function": function}
        return self._add(name, Kind.OUTPUT, {"path": path, "format": format, **named, **options})

    def edge(self, source: Step, to: Step) -> None:
        """What one step returns the other one gets."""
        self._plain["edges"].append([_name(source), _name(to)])

    def condition(self, source: Step, to: Step | Sequence[Step] = (), **options: Unpack[ConditionOptions]) -> None:
        """Say which values of a step, or of all (``"all"``), go where: to steps, ``"all"`` or ``"none"``."""
        row: dict[str, Any] = {"from": _name(source), **_named(options)}
        if to:
            row["to"] = [_name(each) for each in ([to] if isinstance(to, Step) else to)]
        self._plain["conditions"].append(row)

    def lifecycle(self, step: Step = ALL, **options: Unpack[LifecycleOptions]) -> None:
        """Functions to be called around the work of a step, or of all."""
        self._plain["lifecycles"].append({"step": _name(step), **_named(options)})

    def resume_from(self, former: Definition | Workflow, finished: Collection[str]) -> None:
        """Take over what another workflow finished, where it is the same; see ``resuming``."""
        self._former = (former.definition() if isinstance(former, Workflow) else former, frozenset(finished))

    def definition(self) -> Definition:
        """The whole, checked; raises ``BadWorkflow`` with everything that is wrong."""
        made = read(self._plain)
        return made if self._former is None else resumed(made, *self._former)

    def __str__(self) -> str:
        """The graph, drawn."""
        from skuld_py.workflow.graph.rails import drawing

        return drawing(self.definition())

    def _repr_svg_(self) -> str:
        """The graph as a notebook shows it."""
        from skuld_py.workflow.graph.svg import svg

        return svg(self.definition())

    def _add(self, name: str, kind: Kind, options: Mapping[str, Any]) -> StepHandle:
        if name in self._plain["catalog"]:
            raise Refused("bad_workflow", f"{name}: there is such a step already; give this one another name",
                          entry=name)
        self._plain["catalog"][name] = {"kind": kind.value, **_named(options)}
        return StepHandle(self, name)


def _name(step: Step) -> str:
    return step.name if isinstance(step, StepHandle) else step


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as plain data: functions by their names, sets as lists."""
    return {key: sorted(value) if isinstance(value, set | frozenset) else _function_names(value)
            for key, value in options.items()}


def _function_names(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_function_names(part) for part in value]
    return name_of(value) if callable(value) else value


def name_of(function: Callable[..., Any]) -> str:
    """The name of a function: a task's own, or where it stands in its module."""
    named = getattr(function, "task_name", None)
    if isinstance(named, str):
        return named
    module, place = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if not module or not place or "." in place or "<" in place:
        raise Refused("bad_workflow", f"{place or type(function).__name__}: is no function at the top of a module;"
                      " a worker could not find it again")
    if module == "__main__":
        raise Refused("bad_workflow", f"{place}: is in __main__, which is another module in a worker; move it to a"
                      " module, or make it a task with a name: @skuld_py.task(name=...)")
    return f"{module}:{place}"
