"""Finds code whose result depends on the order of a set, which differs from one interpreter to the next.

Strings, bytes and enum members hash by a seed drawn at start; so a machine that walks a set of them gives
another history in each process, and no seed of the simulation can be replayed. What is a set is read from
displays, calls and annotations: those of the module, and the attributes that every class of the pure rooms
annotates as sets. That is less than a type checker knows, and enough to catch what people write. `sorted`
makes any of it right.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tidy.rules import Function, is_deterministic, parse

SET_TYPES = frozenset({"set", "frozenset", "Set", "FrozenSet", "AbstractSet", "MutableSet"})
MAPPING_TYPES = frozenset(
    {"dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "SortedDict", "OrderedDict"}
)
SEQUENCE_TYPES = frozenset(
    {"list", "List", "Sequence", "Iterable", "Iterator", "Collection", "deque", "SortedList"}
)
WRAPPERS = frozenset({"Final", "ClassVar", "Annotated", "Optional"})
SET_METHODS = frozenset({"union", "intersection", "difference", "symmetric_difference", "copy"})

# Calls that keep the order they are given ...
ORDERED = frozenset(
    {"list", "tuple", "map", "filter", "iter", "enumerate", "zip", "chain", "deque", "islice", "reversed"}
)
ORDERED_TEXT = frozenset({"str", "repr", "ascii", "format"})
ORDERED_METHODS = frozenset({"join", "extend", "fromkeys", "from_iterable", "writelines"})
# ... and those whose result does not depend on it.
ORDER_FREE = frozenset({"sorted", "set", "frozenset", "any", "all", "sum", "len", "min", "max"})
ORDER_FREE_METHODS = SET_METHODS | {"update", "difference_update", "isdisjoint", "issubset", "issuperset"}

A_SET = ast.Name("set")


def set_iteration(module: str, source: str, set_attributes: Iterable[str] = ()) -> list[str]:
    """Complaints about sets whose order leaks into the result, in the rooms that must be deterministic.

    set_attributes: names of attributes and methods known from elsewhere to give sets.
    """
    if not is_deterministic(module):
        return []
    tree = parse(module, source)
    known = _Known(tree, frozenset(set_attributes))
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    complaints = {
        f"{module}:{used.lineno}: the set {ast.unparse(used)!r} has another order in each run; sort it"
        for used in _order_taken(tree, known)
        if not _is_forgiven(used, known, parents)
    }
    return sorted(complaints)


def set_attributes(sources: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Attributes and methods that give sets wherever the deterministic rooms annotate them."""
    sets: set[str] = set()
    others: set[str] = set()
    for module, source in sources:
        if not is_deterministic(module):
            continue
        known = _Known(parse(module, source), frozenset())
        for fields in known.classes.values():
            for name, annotation in fields.items():
                (sets if known.is_set_type(annotation) else others).add(name)
    return frozenset(sets - others)


def _order_taken(tree: ast.Module, known: _Known) -> Iterator[ast.expr]:
    """Every expression that gives a set to something that walks it."""
    for node in ast.walk(tree):
        for used in _walked(node):
            if known.is_set(used):
                yield used
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "pop":
            if not node.args and known.is_set(node.func.value):
                yield node.func.value


def _walked(node: ast.AST) -> Iterator[ast.expr]:
    """What this node would walk in order, were it a set."""
    match node:
        case (
            ast.For(iter=used)
            | ast.AsyncFor(iter=used)
            | ast.YieldFrom(value=used)
            | ast.FormattedValue(value=used)
        ):
            yield used
        case ast.ListComp() | ast.GeneratorExp() | ast.DictComp():
            yield from (generator.iter for generator in node.generators)
        case ast.Starred(value=used, ctx=ast.Load()):
            yield used
        case ast.Assign(targets=[ast.Tuple() | ast.List()], value=used):
            yield used
        case ast.Call(func=ast.Name(name)) if name in ORDERED | ORDERED_TEXT:
            yield from node.args
        case ast.Call(func=ast.Name("min" | "max")) if any(keyword.arg == "key" for keyword in node.keywords):
            yield from node.args  # of two with the same key the first one met wins
        case ast.Call(func=ast.Attribute(attr=name)) if name in ORDERED_METHODS:
            yield from node.args


def _is_forgiven(used: ast.expr, known: _Known, parents: dict[ast.AST, ast.AST]) -> bool:
    """Does the order die in what it is handed to, as in `sorted(list(s))` or `any(f(x) for x in s)`?"""
    node: ast.AST = used
    while (parent := parents.get(node)) is not None:
        match parent:
            case ast.Call(func=ast.Name("min" | "max"), args=args, keywords=keywords) if node in args:
                return not any(keyword.arg == "key" for keyword in keywords)
            case ast.Call(func=ast.Name(name), args=args) if node in args and name in ORDER_FREE:
                return True
            case ast.Call(func=ast.Attribute(value=receiver, attr=name), args=args) if node in args:
                return name in ORDER_FREE_METHODS and known.is_set(receiver)
            case ast.Call(func=ast.Name(name), args=args) if node in args and name in ORDERED:
                node = parent
            case ast.comprehension(iter=iterated) if iterated is node:
                node = parent
            case ast.SetComp():
                return True
            case ast.Set():
                return True  # {*peers}
            case ast.GeneratorExp() | ast.ListComp() if isinstance(node, ast.comprehension):
                node = parent
            case ast.Starred():
                node = parent
            case ast.List() | ast.Tuple() if isinstance(node, ast.Starred):
                node = parent
            case _:
                return False
    return False


class _Known:
    """What a module's annotations and assignments say about its names; it answers in annotations' trees."""

    def __init__(self, tree: ast.Module, elsewhere: frozenset[str]) -> None:
        self.elsewhere = elsewhere
        self.classes: dict[str, dict[str, ast.expr]] = {}  # class -> attribute or method -> annotation
        self.scopes: dict[ast.AST, ast.AST] = {}  # node -> the function, class or module it stands in
        self.annotated: dict[tuple[ast.AST, str], ast.expr] = {}
        self.assigned: dict[tuple[ast.AST, str], list[ast.expr | tuple[ast.expr, int | None]]] = {}
        self.owners: dict[ast.AST, str] = {}  # function -> the class it is a method of
        self.resolving: set[ast.AST] = set()
        self._enter(tree, tree, None)

    def is_set(self, expression: ast.expr) -> bool:
        annotation = self._type(expression)
        return annotation is not None and self.is_set_type(annotation)

    def is_set_type(self, annotation: ast.expr) -> bool:
        return any(_head(part) in SET_TYPES for part in self._alternatives(annotation))

    def _enter(self, node: ast.AST, scope: ast.AST, owner: str | None) -> None:
        """Note what one node says, and what all below it say."""
        self.scopes[node] = scope
        inner, inner_owner = scope, owner
        if isinstance(node, Function):
            inner, inner_owner = node, None
            self._enter_function(node, owner, scope)
        elif isinstance(node, ast.Lambda):
            inner = node
        elif isinstance(node, ast.ClassDef):
            inner, inner_owner = node, node.name
            self.classes.setdefault(node.name, {})
        elif isinstance(node, ast.AnnAssign):
            self._enter_annotation(node, scope, owner)
        elif isinstance(node, ast.Assign | ast.NamedExpr):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if isinstance(target, ast.Name):
                    self.assigned.setdefault((scope, target.id), []).append(node.value)
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            targets = node.target.elts if isinstance(node.target, ast.Tuple) else [node.target]
            for index, target in enumerate(targets):
                if isinstance(target, ast.Name):
                    place = index if isinstance(node.target, ast.Tuple) else None
                    self.assigned.setdefault((scope, target.id), []).append((node.iter, place))
        for child in ast.iter_child_nodes(node):
            self._enter(child, inner, inner_owner)

    def _enter_function(self, node: Function, owner: str | None, scope: ast.AST) -> None:
        for argument in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]:
            if argument.annotation is not None:
                self.annotated[node, argument.arg] = argument.annotation
        if node.returns is not None and owner is None:
            self.annotated[scope, node.name + "()"] = node.returns
        if owner is not None:
            self.owners[node] = owner
            if node.returns is not None:
                self.classes[owner][node.name] = node.returns

    def _enter_annotation(self, node: ast.AnnAssign, scope: ast.AST, owner: str | None) -> None:
        if isinstance(node.target, ast.Name) and owner is not None:
            self.classes[owner][node.target.id] = node.annotation
        elif isinstance(node.target, ast.Name):
            self.annotated[scope, node.target.id] = node.annotation
        elif isinstance(node.target, ast.Attribute) and scope in self.owners:  # self.peers: set[str] = set()
            self.classes[self.owners[scope]][node.target.attr] = node.annotation

    def _type(self, node: ast.expr) -> ast.expr | None:
        """The annotation an expression would have, or None when this module does not tell."""
        if node in self.resolving:
            return None
        self.resolving.add(node)
        try:
            return self._derive(node)
        finally:
            self.resolving.discard(node)

    def _derive(self, node: ast.expr) -> ast.expr | None:
        match node:
            case ast.Set() | ast.SetComp():
                return A_SET
            case ast.Name(name):
                return self._lookup(node, name)
            case ast.Attribute(value=base, attr=name):
                return self._attribute(base, name)
            case ast.Call():
                return self._call(node)
            case ast.Subscript(value=base):
                return self._element(self._type(base), of_mapping=True)
            case ast.BinOp(left=left, right=right, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
                return A_SET if any(self.is_set(side) or _is_keys(side) for side in (left, right)) else None
            case ast.IfExp(body=one, orelse=other):
                return self._first([one, other])
            case ast.BoolOp(values=values):
                return self._first(values)
            case ast.NamedExpr(value=value) | ast.Await(value=value):
                return self._type(value)
        return None

    def _first(self, nodes: list[ast.expr]) -> ast.expr | None:
        """The type of several alternatives: a set as soon as one is."""
        types = [found for node in nodes if (found := self._type(node)) is not None]
        return next((found for found in types if self.is_set_type(found)), types[0] if types else None)

    def _lookup(self, node: ast.AST, name: str) -> ast.expr | None:
        scope = self.scopes.get(node)
        while scope is not None:
            if (scope, name) in self.annotated:
                return self.annotated[scope, name]
            if (scope, name) in self.assigned:
                return self._assigned(self.assigned[scope, name])
            outer = self.scopes[scope]
            scope = outer if outer is not scope else None
        return None

    def _assigned(self, values: list[ast.expr | tuple[ast.expr, int | None]]) -> ast.expr | None:
        found = []
        for value in values:
            if isinstance(value, tuple):
                iterated, index = value
                annotation = self._element(self._type(iterated))
                if index is not None and annotation is not None:
                    annotation = _argument(annotation, index) if _head(annotation) == "tuple" else None
            else:
                annotation = self._type(value)
            if annotation is not None:
                found.append(annotation)
        return next((each for each in found if self.is_set_type(each)), found[0] if found else None)

    def _attribute(self, base: ast.expr, name: str) -> ast.expr | None:
        """By the base's class when that is known; else a set when any class of the module says so."""
        if isinstance(base, ast.Name) and base.id in {"self", "cls"}:
            scope: ast.AST | None = self.scopes.get(base)
            while scope is not None and scope not in self.owners:
                scope = self.scopes[scope] if self.scopes[scope] is not scope else None
            owner = self.owners.get(scope) if scope is not None else None
        else:
            annotation = self._type(base)
            owner = next(
                (head for part in self._alternatives(annotation) if (head := _head(part)) in self.classes),
                None,
            )
        if owner is not None and name in self.classes[owner]:
            return self.classes[owner][name]
        candidates = [fields[name] for fields in self.classes.values() if name in fields]
        for candidate in candidates:
            if self.is_set_type(candidate):
                return candidate
        return candidates[0] if candidates else A_SET if name in self.elsewhere else None

    def _call(self, node: ast.Call) -> ast.expr | None:
        match node.func:
            case ast.Name("set" | "frozenset"):
                return A_SET
            case ast.Name("sorted" | "list" | "tuple" | "reversed") if node.args:
                element = self._element(self._type(node.args[0]))
                return None if element is None else _made("list", element)
            case ast.Name(name) if name in self.classes:
                return ast.Name(name)
            case ast.Name(name):
                return self._lookup(node, name + "()")
            case ast.Attribute(value=base, attr=name):
                receiver = self._type(base)
                if receiver is not None and self.is_set_type(receiver) and name in SET_METHODS:
                    return A_SET
                value = self._element(receiver, of_mapping=True)
                if value is not None and self._is_mapping(receiver):
                    if name in {"get", "pop", "setdefault"}:
                        return value
                    if name == "values":
                        return _made("list", value)
                    if name == "items":
                        return _made("list", _made("tuple", ast.Name("object"), value))
                return self._attribute(base, name)
        return None

    def _is_mapping(self, annotation: ast.expr | None) -> bool:
        return any(_head(part) in MAPPING_TYPES for part in self._alternatives(annotation))

    def _element(self, annotation: ast.expr | None, *, of_mapping: bool = False) -> ast.expr | None:
        """What one gets from a container: by index or key with of_mapping, else by walking it."""
        for part in self._alternatives(annotation):
            head = _head(part)
            if head in MAPPING_TYPES:
                return _argument(part, 1) if of_mapping else _argument(part, 0)
            if head in SEQUENCE_TYPES or head == "tuple":
                return _argument(part, 0)
        return None

    def _alternatives(self, annotation: ast.expr | None) -> Iterator[ast.expr]:
        """A union's members, without wrappers, quotes and the module's own aliases."""
        match annotation:
            case None:
                return
            case ast.BinOp(left=left, right=right, op=ast.BitOr()):
                yield from self._alternatives(left)
                yield from self._alternatives(right)
            case ast.Constant(value=str(text)):
                yield from self._alternatives(ast.parse(text, mode="eval").body)
            case ast.Subscript() if _head(annotation) in WRAPPERS:
                yield from self._alternatives(_argument(annotation, 0))
            case ast.Name() if annotation in self.scopes and annotation not in self.resolving:
                alias = self._alias(annotation)
                yield from [annotation] if alias is None else self._alternatives(alias)
            case _:
                yield annotation

    def _alias(self, name: ast.Name) -> ast.expr | None:
        """What the module assigns to a type's name: `Peers = frozenset[str]`."""
        values = [
            value
            for (_, assigned), found in self.assigned.items()
            if assigned == name.id
            for value in found
            if isinstance(value, ast.Subscript)
        ]
        return values[0] if values else None


def _head(annotation: ast.expr) -> str:
    """`typing.AbstractSet[str]` -> `AbstractSet`"""
    base = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return base.attr if isinstance(base, ast.Attribute) else base.id if isinstance(base, ast.Name) else ""


def _argument(annotation: ast.expr, index: int) -> ast.expr | None:
    if not isinstance(annotation, ast.Subscript):
        return None
    arguments = annotation.slice.elts if isinstance(annotation.slice, ast.Tuple) else [annotation.slice]
    return arguments[index] if index < len(arguments) else None


def _made(head: str, *arguments: ast.expr) -> ast.expr:
    inner = ast.Tuple(list(arguments), ast.Load()) if len(arguments) > 1 else arguments[0]
    return ast.Subscript(ast.Name(head), inner, ast.Load())


def _is_keys(node: ast.expr) -> bool:
    """`d.keys()` and `d.items()` give sets when combined with | & - ^"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in {"keys", "items"}
    )
