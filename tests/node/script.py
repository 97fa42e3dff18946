"""Scripts: what is done to a cluster, line by line, and below each line what came of it.

    == a task waits until what it needs is completed
    cluster partitions=4
    enqueue first route=1
        n2 > n0 n1: Replicate first -> Kept
        acked by 2

A line at the margin is a directive (``node.stage``) or, after ``#``, a comment. What is indented is expected:
first what nodes told each other (``node.trace``), then answers, or what a look shows (``node.looks``). With
``--rewrite`` it is replaced by what is found, and the change is read as a difference of the text.

What stands above the first title is the beginning of all scripts of a file but those that have a cluster of their
own. Titles are unique over all files: they are the names of the tests.
Source: etcd-io/raft, ``testdata/*.txt`` and cockroachdb/datadriven.
"""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path

import attrs

from node.stage import BadScript, Stage

FOLDER = Path(__file__).parent / "scripts"
TITLE, INDENT = "== ", "    "


@attrs.frozen
class Script:
    """A part of a text: ``lines`` begin at the number ``first``, below the title."""

    path: Path
    title: str
    first: int
    lines: tuple[str, ...]
    beginning: tuple[str, ...] = ()

    def played(self) -> list[str]:
        """The lines as they would stand there if they were written now. Raises ``BadScript``, naming the line."""
        stage = Stage()
        if not next(filter(is_directive, self.lines), "").startswith("cluster"):
            self._performed(stage, 1, self.beginning)
        return self._performed(stage, self.first, self.lines)

    def _performed(self, stage: Stage, first: int, lines: tuple[str, ...]) -> list[str]:
        made: list[str] = []
        for number, line in enumerate(lines, first):
            try:
                if is_directive(line):
                    made += [line, *(INDENT + each for each in stage.perform(line))]
                elif not line.startswith(" "):
                    made.append(line)
                elif not any(map(is_directive, made)):
                    raise BadScript("nothing is done that this could come of")
            except BadScript as problem:
                raise BadScript(f"{self.path.name}:{number}: {problem}") from None
        return made

    def difference(self) -> str:
        """What is otherwise than expected, as lines of a text; empty when all is as expected."""
        name = f"{self.path.name}, from line {self.first}"
        return "\n".join(unified_diff(self.lines, self.played(), name, "as it is", lineterm="", n=6))

    def rewrite(self) -> None:
        """Write the text anew, with what is found."""
        now = next(each for each in read(self.path) if each.title == self.title)
        lines = self.path.read_text().splitlines()
        lines[now.first - 1 : now.first - 1 + len(now.lines)] = now.played()
        self.path.write_text("\n".join(lines) + "\n")


def is_directive(line: str) -> bool:
    """Whether something is to be done."""
    return bool(line.strip()) and not line.startswith((" ", "#", TITLE))


def read(path: Path) -> list[Script]:
    """All scripts of a text. Raises ``BadScript``, naming the line."""
    lines = path.read_text().splitlines()
    if not any(line.startswith(TITLE) for line in lines):
        raise BadScript(f"{path.name}: has no script; one begins with a line '{TITLE}TITLE'")
    titles = [at for at, line in enumerate(lines) if line.startswith(TITLE)]
    made: list[Script] = []
    for at, end in zip(titles, [*titles[1:], len(lines)], strict=True):
        title = lines[at].removeprefix(TITLE)
        if title in (each.title for each in made):
            raise BadScript(f"{path.name}:{at + 1}: a second script is called {title!r}")
        made.append(Script(path, title, at + 2, tuple(lines[at + 1 : end]), tuple(lines[: titles[0]])))
    return made


def all_scripts() -> list[Script]:
    """Those of all texts."""
    return [script for path in sorted(FOLDER.glob("*.txt")) for script in read(path)]
