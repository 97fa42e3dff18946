"""The rules of the house, as functions from one module's name and source text to the complaints about it.

They read the syntax tree and import nothing, so a rule can be tried on a text that exists only in a test.
A module's name is its dotted path with `__init__` spelled out (`skuld_py.node.__init__`): relative imports
need to know. Set iteration, which needs more than a glance, has a file of its own: `set_order.py`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

PACKAGE = "skuld_py"
TOP = Path(__file__).resolve().parents[2]

ANYTHING = "anything"

_MODEL = frozenset({"errors", "config", "crdt", "model"})
_NODE = _MODEL | {"partition", "cluster", "node", "workflow"}
_CLIENT = frozenset({"errors", "config", "model", "wire", "calls", "client", "workflow"})

# The rank of each room: which others it may import. Imports point one way, so no two rooms name each other.
ROOMS: dict[str, frozenset[str] | str] = {
    "errors": frozenset(),
    "config": frozenset({"errors"}),
    "almanac": frozenset({"errors"}),
    "extras": frozenset({"errors"}),
    "exposition": frozenset({"errors"}),
    "files": frozenset({"errors"}),
    "variables": frozenset({"errors"}),
    "crdt": frozenset({"errors", "config"}),
    "model": frozenset({"errors", "config", "crdt"}),
    "wire": _MODEL,
    "keys": _MODEL,
    "partition": _MODEL,
    "cluster": _MODEL | {"workflow"},
    "node": _MODEL | {"partition", "cluster", "workflow"},
    "runtime": _NODE | {"wire", "almanac", "files", "keys"},
    "simulation": _NODE | _CLIENT,
    "embedded": frozenset({"errors", "config", "extras"}),
    "calls": frozenset({"errors", "config"}),
    "client": _MODEL | {"wire", "keys", "calls", "variables", "workflow"},
    "verbs": _CLIENT | {"almanac"},
    "gateway": _CLIENT | {"verbs", "exposition", "files", "keys"},
    "output": _CLIENT,
    "worker": _CLIENT | {"embedded", "exposition", "extras", "keys", "output", "variables", "workflow"},
    "archive": _CLIENT | {"embedded", "output", "worker"},
    "datasource": _CLIENT | {"archive", "extras"},
    "workflow": _MODEL,
    "testing": _NODE | _CLIENT | {"worker", "almanac", "output", "workflow"},
    "cli": ANYTHING,
    "demo": ANYTHING,
    "__init__": ANYTHING,
    "__main__": ANYTHING,
}

# The rank of each wing, a package in a room: what else of its room it may import, by module or wing.
WINGS: dict[str, frozenset[str]] = {
    "model.messages": frozenset({"model.bounds", "model.columns", "model.document", "model.fields",
                                 "model.history", "model.limiting"}),
    "cluster.log": frozenset(),
    "cluster.scale": frozenset({"cluster.log", "cluster.placement"}),
    "cluster.member": frozenset({"cluster.log", "cluster.placement", "cluster.scale"}),
    "node.knowledge": frozenset(),
    "node.life": frozenset(),
    "node.operations": frozenset({"node.knowledge"}),
    "node.reads": frozenset({"node.knowledge", "node.operations"}),
    "node.writes": frozenset({"node.knowledge", "node.operations", "node.reads"}),
    "node.limits": frozenset({"node.knowledge", "node.operations"}),
    "node.dependencies": frozenset({"node.operations", "node.reads", "node.writes"}),
    "node.schedules": frozenset({"node.operations", "node.writes"}),
    "node.workers": frozenset({"node.knowledge", "node.operations"}),
    "node.workflows": frozenset({"node.operations"}),
    "node.copies": frozenset({"node.knowledge", "node.operations"}),
    "node.retention": frozenset({"node.copies", "node.knowledge", "node.operations"}),
    "node.leadership": frozenset({"node.copies", "node.knowledge", "node.operations", "node.retention"}),
    "node.claims": frozenset({"node.knowledge", "node.leadership", "node.limits", "node.operations"}),
    "partition.data": frozenset(),
    "partition.leadership": frozenset({"partition.data"}),
    "partition.copies": frozenset({"partition.data", "partition.leadership"}),
    "runtime.zookeeper": frozenset(),
    "simulation.world": frozenset(),
    "simulation.clients": frozenset({"simulation.world", "simulation.history", "simulation.options",
                                     "simulation.faults"}),
    "simulation.checkers": frozenset({"simulation.history", "simulation.notes"}),
    "simulation.coordination": frozenset({"simulation.world", "simulation.trace", "simulation.hearing",
                                          "simulation.log_options", "simulation.membership"}),
    "simulation.capacity": frozenset({"simulation.world", "simulation.coordination"}),
    "simulation.small": frozenset({"simulation.world", "simulation.clients", "simulation.coordination",
                                   "simulation.campaign", "simulation.cluster", "simulation.faults",
                                   "simulation.log_options", "simulation.options", "simulation.shrink",
                                   "simulation.trace"}),
    "simulation.operators": frozenset({"simulation.world", "simulation.clients", "simulation.checkers",
                                       "simulation.campaign", "simulation.cluster", "simulation.faults",
                                       "simulation.history", "simulation.log_options", "simulation.options",
                                       "simulation.reduction", "simulation.trace"}),
}
ROOMS_OF_WINGS = frozenset({"cluster", "model", "node", "partition", "runtime", "simulation"})
# The most parts a room may have at its top, wings and modules; and the most floors, each of which imports those
# below it only.
PLANS = {"node": (20, 10), "cluster": (5, 5)}

PURE_ROOMS = frozenset({"crdt", "model", "partition", "workflow", "cluster", "node", "wire"})

# What a pure room may import from outside: values and arithmetic, nothing that knows the time or the world.
_LANGUAGE = frozenset(
    {"__future__", "collections", "contextlib", "dataclasses", "enum", "functools", "types", "typing"}
)
_ALGORITHMS = frozenset({"bisect", "difflib", "heapq", "itertools", "math", "operator", "re"})
_BYTES = frozenset({"array", "base64", "binascii", "hashlib", "hmac", "json", "struct", "zlib"})
_LIBRARIES = frozenset({"attr", "attrs", "sortedcontainers", "typing_extensions", "uhashring", "xxhash"})
PURE_MODULES = _LANGUAGE | _ALGORITHMS | _BYTES | _LIBRARIES
PURE_EXTRAS = {
    "wire": frozenset({"msgpack"}),
    "simulation": frozenset({"random"}),
}
# The places where the simulation meets the person who runs it.
SIMULATION_COMMANDS = ("skuld_py.simulation.__main__", "skuld_py.simulation.coordination.__main__",
                       "skuld_py.simulation.small.command", "skuld_py.simulation.operators.__main__")
_SCALE = "skuld_py.simulation.coordination.scale"
SIMULATION_SHELL = (*SIMULATION_COMMANDS, "skuld_py.simulation.campaign", f"{_SCALE}.__main__", f"{_SCALE}.plots",
                    "skuld_py.simulation.small.log", "skuld_py.simulation.small.run",
                    "skuld_py.simulation.operators.campaign", "skuld_py.simulation.capacity.plots")
SIMULATION_SHELL_MODULES = frozenset({"argparse", "csv", "gc", "matplotlib", "multiprocessing", "pathlib", "rich",
                                      "sys", "time", "traceback"})

PAGED = "skuld_py.model.messages.__init__"
PAGED_MODULES = frozenset({"importlib"})
"""It loads modules of its own, so that a client makes no class that it does not use."""
FORKING = "skuld_py.simulation.small.branches"
FORKING_MODULES = frozenset({"gc", "os", "pickle"})
"""It copies the process that plays; in each copy the run is as pure as ever."""

UNSTABLE_BUILTINS = {
    "hash": "differs from one interpreter to the next; use zlib.crc32 or hashlib",
    "id": "is an address, another one in every run",
}
IMPURE_BUILTINS = UNSTABLE_BUILTINS | {
    "open": "reaches the disk",
    "input": "reaches the terminal",
    "__import__": "hides an import from the layers",
}

NOT_SEEDED = "is not seeded by the run; take a random.Random"
BANNED_MODULE_NAMES = frozenset({"utils", "util", "common", "helpers", "helper"})
DOCUMENTED_ROOMS = frozenset({"client", "model", "errors", "config", "testing"})
DOCSTRING_CHARACTERS_MIN = 60
FUNCTION_LINES_MAX = 45
FILE_LINES_MAX = 500

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef


def modules() -> Iterator[tuple[str, str]]:
    """Name and source of every module of the package, in a fixed order."""
    for path in sorted((TOP / PACKAGE).rglob("*.py")):
        yield ".".join(path.relative_to(TOP).with_suffix("").parts), path.read_text(encoding="utf-8")


@cache
def parse(module: str, source: str) -> ast.Module:
    """The module's tree; a syntax error names the module."""
    return ast.parse(source, filename=module.replace(".", "/") + ".py")


def room_of(module: str) -> str:
    """The room a module lives in: `skuld_py.node.vnode` -> `node`, `skuld_py.errors` -> `errors`."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def is_pure(module: str) -> bool:
    """Must this module be a function of its arguments?"""
    return room_of(module) in PURE_ROOMS


def is_deterministic(module: str) -> bool:
    """Must this module do the same in every run with the same seed?"""
    return room_of(module) in PURE_ROOMS | {"simulation"}


def imports(module: str, source: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of everything imported, wherever in the module the import stands.

    `from a import b` gives `a.b`, whether b is a module or a name in one.
    """
    for node in ast.walk(parse(module, source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = module.split(".")[: -node.level] if node.level else []
            base += node.module.split(".") if node.module else []
            for alias in node.names:
                yield node.lineno, ".".join([*base, alias.name])


def layers(module: str, source: str) -> list[str]:
    """Imports point one way, and every room has a rank."""
    room = room_of(module)
    if room not in ROOMS:
        return [f"{module}: give the new room a rank: {room!r} is not in ROOMS of tests/tidy/rules.py"]
    may = ROOMS[room]
    complaints = []
    for line, name in imports(module, source):
        parts = name.split(".")
        if parts[0] != PACKAGE or may == ANYTHING:
            continue
        wanted = parts[1] if len(parts) > 1 else ""
        if wanted == room or wanted in may or (wanted.startswith("__") and wanted not in ROOMS):
            continue  # the last: from skuld_py import __version__
        if wanted in ROOMS:
            complaints.append(f"{module}:{line}: {room} may not import {wanted}")
        elif len(parts) > 2:
            complaints.append(f"{module}:{line}: give the new room a rank: {wanted!r} is not in ROOMS")
        else:
            complaints.append(f"{module}:{line}: {room} may not import the whole package (wanted {name})")
    return complaints


def wing_of(module: str) -> str:
    """The wing a module lives in, `runtime.zookeeper`; nothing for one that stands in its room."""
    parts = module.removesuffix(".__init__").split(".")[1:]
    inner = parts if module.endswith(".__init__") else parts[:-1]
    return ".".join(inner[:2]) if len(inner) > 1 else ""


def wings(module: str, source: str) -> list[str]:
    """A wing imports of its room what its rank names, and itself; every wing has a rank."""
    room, wing = room_of(module), wing_of(module)
    if room not in ROOMS_OF_WINGS or not wing:
        return []
    if wing not in WINGS:
        return [f"{module}: give the new wing a rank: {wing!r} is not in WINGS of tests/tidy/rules.py"]
    allowed = tuple(f"{PACKAGE}.{each}" for each in (wing, *sorted(WINGS[wing])))
    return [f"{module}:{line}: {wing} may not import {name}" for line, name in imports(module, source)
            if name.startswith(f"{PACKAGE}.{room}.")
            and not any(name == each or name.startswith(f"{each}.") for each in allowed)]


def arrows(room: str, sources: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """Each part at the top of a room, a wing or a module, with the parts of the room that it imports."""
    found: dict[str, set[str]] = {}
    for module, source in sources:
        parts = module.split(".")
        if parts[1] == room and len(parts) > 2 and parts[2] != "__init__":
            mine = found.setdefault(parts[2], set())
            for _, name in imports(module, source):
                wanted = name.split(".")
                if wanted[:2] == [PACKAGE, room] and len(wanted) > 2 and wanted[2] != parts[2]:
                    mine.add(wanted[2])
    return {part: {other for other in others if other in found} for part, others in found.items()}


def floors(found: Mapping[str, set[str]]) -> list[list[str]]:
    """The parts of a room in floors, lowest first; the last one is a circle if its parts import each other."""
    left, built = dict(found), list[list[str]]()
    while left:
        floor = sorted(part for part, others in left.items() if not others & left.keys())
        built.append(floor or sorted(left))
        for part in built[-1]:
            del left[part]
    return built


def plan(room: str, sources: Iterable[tuple[str, str]]) -> list[str]:
    """A room is as wide and as high at most as its plan says, and nothing in it goes round in a circle."""
    found = arrows(room, sources)
    built, (parts_max, floors_max) = floors(found), PLANS.get(room, (len(found), len(found)))
    complaints = []
    if any(found[part] & {*built[-1]} for part in built[-1] if built):
        complaints.append(f"{room}: these import each other: {', '.join(built[-1])}")
    if len(found) > parts_max:
        complaints.append(f"{room}: has {len(found)} parts at its top, more than {parts_max}")
    if len(built) > floors_max:
        complaints.append(f"{room}: has {len(built)} floors, more than {floors_max}")
    return complaints


def spark(module: str, source: str) -> list[str]:
    """Spark appears in worker/spark*, archive/spark*, datasource/spark*, output/spark*, workflow and demo only."""
    rooms = ("worker", "archive", "datasource", "output")
    has_place = module.startswith(tuple(f"{PACKAGE}.{room}.spark" for room in rooms))
    if has_place or room_of(module) in {"workflow", "demo"}:
        return []
    return [
        f"{module}:{line}: {name.split('.')[0]} belongs in worker/spark*, archive/spark*, datasource/spark*,"
        " output/spark*, workflow and demo"
        for line, name in imports(module, source)
        if name.split(".")[0] in {"pyspark", "py4j"}
    ]


def purity(module: str, source: str) -> list[str]:
    """No clock, randomness, socket, thread or file in a pure room; the simulation may draw from a seed."""
    if not is_deterministic(module):
        return []
    room = room_of(module)
    may = PURE_MODULES | PURE_EXTRAS.get(room, frozenset())
    if module in SIMULATION_SHELL:
        may |= SIMULATION_SHELL_MODULES
    if module == PAGED:
        may |= PAGED_MODULES
    if module == FORKING:
        may |= FORKING_MODULES
    complaints = [
        f"{module}:{line}: {room} is pure and may not import {name}"
        for line, name in imports(module, source)
        if name.split(".")[0] not in may | {PACKAGE}
    ]
    return complaints + _impure_calls(module, source) + _unseeded(module, source)


def clocks(module: str, source: str) -> list[str]:
    """Where tasks run, nothing tells the time by the module ``time``, which one of them may freeze."""
    if room_of(module) not in {"client", "datasource", "output", "worker"} or module == f"{PACKAGE}.client.steady":
        return []
    return [f"{module}:{line}: take clocks from client.steady" for line, name in imports(module, source)
            if name.split(".")[0] == "time"]


def _impure_calls(module: str, source: str) -> list[str]:
    banned = IMPURE_BUILTINS if is_pure(module) else UNSTABLE_BUILTINS
    return [
        f"{module}:{node.lineno}: {node.func.id}() {banned[node.func.id]}"
        for node in ast.walk(parse(module, source))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in banned
    ]


def _unseeded(module: str, source: str) -> list[str]:
    """Of the module `random` only `Random` is used, and never without a seed."""
    tree = parse(module, source)
    names: set[str] = set()  # what the module random is called here
    classes: set[str] = set()  # and its Random
    complaints = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "random"}
        elif isinstance(node, ast.ImportFrom) and node.module == "random":
            classes |= {alias.asname or alias.name for alias in node.names if alias.name == "Random"}
            complaints += [
                f"{module}:{node.lineno}: random.{alias.name} {NOT_SEEDED}"
                for alias in node.names
                if alias.name != "Random"
            ]
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names:
            if node.attr != "Random":
                complaints.append(f"{module}:{node.lineno}: random.{node.attr} {NOT_SEEDED}")
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            if ast.unparse(node.func) in classes | {f"{name}.Random" for name in names}:
                complaints.append(f"{module}:{node.lineno}: random.Random() without a seed")
    return complaints


def lengths(module: str, source: str) -> dict[str, int]:
    """What is longer than the house likes, in lines: `path.py` or `path.py:Class.method` -> its length.

    A function counts from its signature to its end, without its docstring.
    """
    path = module.replace(".", "/") + ".py"
    longer = {}
    lines = len(source.splitlines())
    if lines >= FILE_LINES_MAX:
        longer[path] = lines
    return longer | {name: length for name, length in functions(module, source).items()
                     if length > FUNCTION_LINES_MAX}


def functions(module: str, source: str) -> dict[str, int]:
    """The length of each function, in the same way."""
    path = module.replace(".", "/") + ".py"
    return {f"{path}:{qualified}": _lines(node) for qualified, node in _definitions(parse(module, source))
            if isinstance(node, Function)}


def ratchet(longer: dict[str, int], tolerated: dict[str, int]) -> list[str]:
    """What is too long and not tolerated, has grown, or is tolerated without need; tolerances only shrink."""
    complaints = []
    for name, length in sorted(longer.items()):
        limit = tolerated.get(name)
        if limit is None:
            most = FUNCTION_LINES_MAX if ":" in name else FILE_LINES_MAX - 1
            complaints.append(f"{name} has {length} lines, more than {most}: does it hold two ideas?")
        elif length > limit:
            complaints.append(f"{name} has grown to {length} lines from the {limit} tolerated: split it")
        elif length < limit:
            complaints.append(f"{name} has shrunk to {length} lines: lower its entry in LONGER from {limit}")
    for name in sorted(tolerated.keys() - longer.keys()):
        complaints.append(f"{name} is no longer too long, or gone: take it out of LONGER")
    return complaints


def _definitions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Every class and function under a node with its qualified name, outermost first."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, Definition):
            yield prefix + child.name, child
            yield from _definitions(child, prefix + child.name + ".")
        else:
            yield from _definitions(child, prefix)


def _lines(function: Function) -> int:
    assert function.end_lineno is not None
    length = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        length -= docstring.end_lineno - docstring.lineno + 1
    return length


def names(module: str, source: str) -> list[str]:
    """No room for odds and ends, no bare except, no print where nobody reads it."""
    complaints = [
        f"{module}: {part!r} says nothing about what is in it"
        for part in module.split(".")
        if part in BANNED_MODULE_NAMES
    ]
    may_print = room_of(module) in {"cli", "demo"} or module in SIMULATION_COMMANDS
    for node in ast.walk(parse(module, source)):
        if isinstance(node, ast.ExceptHandler) and node.type is None:
            complaints.append(f"{module}:{node.lineno}: a bare except also catches the order to stop")
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
            if not may_print:
                complaints.append(f"{module}:{node.lineno}: print belongs in cli, demo, simulation/__main__")
    return complaints


def docstrings(module: str, source: str) -> list[str]:
    """Every public module says why it is there; in the rooms users import, so does every public name."""
    if any(_is_private(part) for part in module.split(".")):
        return []
    tree = parse(module, source)
    complaints = []
    if len(ast.get_docstring(tree) or "") < DOCSTRING_CHARACTERS_MIN:
        complaints.append(f"{module}: a module's docstring says why it is there, in two lines or more")
    if room_of(module) in DOCUMENTED_ROOMS:
        complaints += [
            f"{module}:{node.lineno}: {qualified} is public and has no docstring"
            for qualified, node in _public(tree)
            if ast.get_docstring(node) is None
        ]
    return complaints


def _public(scope: ast.Module | ast.ClassDef, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Public classes and functions of a module and of its public classes, not what functions hold."""
    for node in scope.body:
        if isinstance(node, ast.If | ast.Try):  # if TYPE_CHECKING:, try: ... except ImportError:
            inner = ast.Module(body=node.body + node.orelse, type_ignores=[])
            yield from _public(inner, prefix)
        if not isinstance(node, Definition) or node.name.startswith("_"):
            continue
        if {"overload", "override", "setter", "deleter"} & _decorators(node):
            continue  # documented where it is first said
        yield prefix + node.name, node
        if isinstance(node, ast.ClassDef):
            yield from _public(node, prefix + node.name + ".")


def _decorators(node: Definition) -> set[str]:
    return {ast.unparse(decorator).split("(")[0].split(".")[-1] for decorator in node.decorator_list}


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")
