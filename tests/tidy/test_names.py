"""Names say what is in them, public things say what they are for, and nothing fails unseen."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidy import rules

Rule = Callable[[str, str], list[str]]

WHY = '"""What this is for.\n\nAnd why it is made like this and in no other way.\n"""\n'


@pytest.mark.parametrize("rule", [rules.names, rules.docstrings], ids=lambda rule: str(rule.__name__))
def test_the_package_keeps(rule: Rule) -> None:
    complaints = [each for module, source in rules.modules() for each in rule(module, source)]

    assert not complaints, "\n" + "\n".join(complaints)


def test_every_folder_with_modules_is_a_package_so_that_it_is_installed() -> None:
    folders = {path.parent for path in (rules.TOP / rules.PACKAGE).rglob("*.py")}

    assert [str(folder) for folder in sorted(folders) if not (folder / "__init__.py").exists()] == []


BROKEN = {
    "odds and ends": (rules.names, "skuld_py.node.utils", ""),
    "what is common": (rules.names, "skuld_py.common", ""),
    "a folder of helpers": (rules.names, "skuld_py.node.helpers.time", ""),
    "bare except": (rules.names, "skuld_py.node.node", "try: f()\nexcept: pass"),
    "print": (rules.names, "skuld_py.runtime.loop", "def f():\n    print('here')"),
    "print in the simulation": (rules.names, "skuld_py.simulation.world", "print(1)"),
    "no docstring": (rules.docstrings, "skuld_py.runtime.loop", "x = 1"),
    "an empty package": (rules.docstrings, "skuld_py.runtime.__init__", ""),
    "a short docstring": (rules.docstrings, "skuld_py.runtime.loop", '"""The loop."""'),
    "a class": (rules.docstrings, "skuld_py.model.task", WHY + "class Task: ..."),
    "a function": (rules.docstrings, "skuld_py.config", WHY + "def load(): ..."),
    "a coroutine": (rules.docstrings, "skuld_py.client.client", WHY + "async def enqueue(): ..."),
    "a method": (
        rules.docstrings,
        "skuld_py.errors",
        WHY + "class E:\n    'An E.'\n    def facts(self): ...",
    ),
    "behind a condition": (rules.docstrings, "skuld_py.model.task", WHY + "if x:\n    def f(): ..."),
}

KEPT = {
    "a telling name": (rules.names, "skuld_py.node.commons", "try: f()\nexcept Exception: pass"),
    "print in a verb": (rules.names, "skuld_py.cli.status", "print(1)"),
    "print in the demo": (rules.names, "skuld_py.demo.show", "print(1)"),
    "print in the simulation's shell": (rules.names, "skuld_py.simulation.__main__", "print(1)"),
    "a method called print": (rules.names, "skuld_py.runtime.loop", "console.print(1)"),
    "a documented module": (rules.docstrings, "skuld_py.runtime.loop", WHY + "def f(): ..."),
    "a private module": (rules.docstrings, "skuld_py.runtime._loop", ""),
    "private names": (
        rules.docstrings,
        "skuld_py.model.task",
        WHY + "def _f(): ...\nclass _T:\n    def g(self): ...",
    ),
    "dunder methods": (
        rules.docstrings,
        "skuld_py.model.task",
        WHY + "class T:\n    'A T.'\n    def __len__(self): ...",
    ),
    "inner functions": (
        rules.docstrings,
        "skuld_py.model.task",
        WHY + "def f():\n    'F.'\n    def g(): ...",
    ),
    "overloads and overrides": (
        rules.docstrings,
        "skuld_py.client.client",
        WHY + "@overload\ndef f(): ...\nclass C:\n    'A C.'\n    @typing.override\n    def g(self): ...",
    ),
    "setters": (
        rules.docstrings,
        "skuld_py.config",
        WHY + "class C:\n    'A C.'\n    @x.setter\n    def x(self, x): ...",
    ),
}


@pytest.mark.parametrize(("rule", "module", "source"), BROKEN.values(), ids=BROKEN.keys())
def test_a_planted_offence_is_reported_once(rule: Rule, module: str, source: str) -> None:
    assert len(rule(module, source)) == 1


@pytest.mark.parametrize(("rule", "module", "source"), KEPT.values(), ids=KEPT.keys())
def test_a_clean_module_is_left_alone(rule: Rule, module: str, source: str) -> None:
    assert rule(module, source) == []
