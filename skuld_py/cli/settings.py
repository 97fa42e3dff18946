"""The configuration file: defaults for options, in TOML, a table for each verb.

    [all]
    nodes = "10.0.0.1:13000,10.0.0.2:13000"     # for every verb that has --nodes
    [claim]
    lease = "5m"
    [cluster.create]
    partitions = 16
    [node.timing]
    gossip = "1s"                               # --timing-gossip
    [worker.conf]
    "spark.executor.memory" = "4g"              # --conf spark.executor.memory=4g

A value is what would be typed; a flag is true or false; an option that may be given several times has a list.
The command line goes first, then the environment, then this file, then the option's own default.

Whatever is wrong is an error that names file, line and key and says what would be right, also in tables of other
verbs: a typing error that is silently skipped is a default that was not meant. The library that reads TOML does
not tell where a key stands (nor does tomlkit, python-poetry/tomlkit#55), so ``lines_of`` finds it by having the
statements read one by one. Rejected: searching the text for the key, which is also in comments and strings.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path as File
from typing import Any

import click

from skuld_py.cli.twins import ALL, SHARED, TIMING, Path, SettingsOption, SharedOption, options_of
from skuld_py.cli.verbed import inner_of
from skuld_py.errors import Refused

DEFAULT_FILE = "skuld.toml"
"""Read when it stands in the current directory and no other one is named."""
BYTES_MAX = 64 << 10
SHOWN_CHARS = 60

_AT_LINE = re.compile(r" \(at line (\d+), column \d+\)$")
_AT_END = " (at end of document)"

CommandOf = Callable[[str], click.Command | None]


class BadConfig(Refused):
    """What is wrong with the file, where, and what would be right."""

    def __init__(self, file: str, line: int, problem: str, key: str = "") -> None:
        where = f"{file}, line {line}" if line else file
        super().__init__("bad_config", f"{where}: {key + ': ' if key else ''}{problem}", file=file, line=line,
                         key=key)


class Settings:
    """A file that was read: nothing is known yet of whether its keys exist."""

    def __init__(self, file: str = "", text: str = "") -> None:
        self.file = file
        self._text = text
        self._tables = _parsed(file, text) if text else {}
        self._lines: dict[Path, int] | None = None

    @property
    def is_verbose(self) -> bool:
        """Whether every verb shall log what is going on; an option of the program, not of a verb."""
        return self._table((ALL,)).get("verbose") is True

    def where(self, path: Path) -> str:
        """``skuld.toml, line 3``: where a key stands, in the words of an error."""
        return f"{self.file}, line {self._line(path)}"

    def check(self, verbs: Iterable[str], command_of: CommandOf) -> None:
        """Refuse what no verb has; only verbs that the file names are loaded."""
        for name, table in self._tables.items():
            if not isinstance(table, dict):
                raise self._bad((name,), f"stands in no table; put it under [{ALL}], or under the table of a verb")
            if name == ALL:
                self._check_keys((ALL,), table, (*SHARED, "verbose"))
                continue
            command = command_of(name)
            if command is None:
                raise self._bad((name,), f"there is no verb {name!r}; {_nearest(name, (ALL, *verbs))}")
            self._check_command((name,), table, command)

    def defaults(self, path: Path, command: click.Command) -> dict[str, Any]:
        """What the file says of a verb's options, by their names in the code, as click's ``default_map``."""
        below = {name: self.defaults((*path, name), inner) for name, inner in inner_of(command).items()}
        if isinstance(command, click.Group):
            return below
        own, shared = dict(_entries(path, self._table(path))), self._table((ALL,))
        made: dict[str, Any] = below
        for key, option in options_of(command).items():
            if key in own:
                made[option.name or key] = self._typed(own[key][0], option, own[key][1])
            elif key in shared and isinstance(option, SharedOption):
                made[option.name or key] = self._typed((ALL, key), option, shared[key])
        return made

    def path_of(self, path: Path, key: str) -> Path:
        """Which key gives a verb's option its value: its own, or the shared one."""
        own = dict(_entries(path, self._table(path)))
        return own[key][0] if key in own else (ALL, key)

    # -- checks --------------------------------------------------------------------------------

    def _check_command(self, path: Path, table: dict[str, Any], command: click.Command) -> None:
        if not isinstance(command, click.Group):
            below = inner_of(command)
            self._check_keys(path, {key: value for key, value in table.items() if key not in below},
                             options_of(command))
            for name in below:
                if isinstance(table.get(name), dict):
                    self._check_command((*path, name), table[name], below[name])
            return
        for name, inner in table.items():
            found = command.commands.get(name)
            if found is None:
                verbs = tuple(command.commands)
                raise self._bad((*path, name), f"there is no verb '{path[-1]} {name}'; {_nearest(name, verbs)}")
            if not isinstance(inner, dict):
                header = ".".join((*path, name))
                raise self._bad((*path, name), f"is a verb, not an option; make it a table: [{header}]")
            self._check_command((*path, name), inner, found)

    def _check_keys(self, path: Path, table: dict[str, Any], known: Iterable[str]) -> None:
        every = tuple(known)
        seen: dict[str, Path] = {}
        for key, (place, _) in _entries(path, table):
            if key not in every:
                of = f"'{' '.join(path)}' has no option" if path != (ALL,) else "verbs share no option"
                raise self._bad(place, f"{of} {key!r}; {_nearest(key, every)}")
            if key in seen:
                raise self._bad(place, f"is given as {'.'.join(seen[key])}, too; keep one of them")
            seen[key] = place

    def _typed(self, path: Path, option: click.Option, value: object) -> object:
        """The value as it would be typed: text, for all but flags."""
        if option.is_flag:
            if type(value) is not bool:
                raise self._bad(path, f"{_shown(value)} is neither true nor false, and it is a flag")
            return value
        if isinstance(option, SettingsOption) and isinstance(value, dict):
            return [f"{name}={self._setting(place, inner)}" for name, place, inner in _leaves(path, value)]
        if option.multiple:
            each = value if isinstance(value, list) else [value]
            return [self._text_of(path, item) for item in each]
        return self._text_of(path, value)

    def _setting(self, path: Path, value: object) -> str:
        """The value of another program's setting, in which true and false are words."""
        return str(value).lower() if type(value) is bool else self._text_of(path, value)

    def _text_of(self, path: Path, value: object) -> str:
        if type(value) is str:
            return value
        if type(value) in (int, float):
            return str(value)
        raise self._bad(path, f"{_shown(value)} is no single value; write a text or a number")

    # -- places --------------------------------------------------------------------------------

    def _table(self, path: Path) -> dict[str, Any]:
        found: Any = self._tables
        for name in path:
            found = found.get(name, {}) if isinstance(found, dict) else {}
        return found if isinstance(found, dict) else {}

    def _line(self, path: Path) -> int:
        if self._lines is None:
            self._lines = lines_of(self._text)
        return self._lines.get(path, 1)

    def _bad(self, path: Path, problem: str) -> BadConfig:
        return BadConfig(self.file, self._line(path), problem, ".".join(path))


def _entries(path: Path, table: dict[str, Any]) -> Iterator[tuple[str, tuple[Path, Any]]]:
    """The keys of a verb's table, with those of the table of timings in it: where each stands, and its value."""
    for key, value in table.items():
        if key == TIMING and isinstance(value, dict):
            yield from ((f"{TIMING}-{inner}", ((*path, key, inner), each)) for inner, each in value.items())
        else:
            yield key, ((*path, key), value)


def _leaves(path: Path, table: dict[str, Any], above: str = "") -> Iterator[tuple[str, Path, object]]:
    """Names, places and values of a table of settings. A name with points makes tables, unless it is quoted."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _leaves((*path, key), value, f"{above}{key}.")
        else:
            yield above + key, (*path, key), value


def read(named: str | None) -> Settings:
    """The file named, or ``skuld.toml`` of this directory if there is one; raises ``BadConfig``."""
    file = File(named or DEFAULT_FILE)
    if named is None and not file.exists():
        return Settings()
    try:
        with file.open("rb") as stream:
            raw = stream.read(BYTES_MAX + 1)
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise BadConfig(str(file), 0, f"cannot be read: {reason}; name another one with --config or"
                        " $SKULD_CONFIG") from None
    if len(raw) > BYTES_MAX:
        raise BadConfig(str(file), 0, f"has more than {BYTES_MAX} bytes; is it a configuration file?")
    try:
        text = raw.decode()
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise BadConfig(str(file), line, "is not UTF-8; save it as UTF-8") from None
    if text.startswith("\ufeff"):
        raise BadConfig(str(file), 1, "begins with a byte order mark; save it as UTF-8 without one")
    return Settings(str(file), text)


def lines_of(text: str) -> dict[Path, int]:
    """The line of each key and table of a text that is TOML as a whole, counted from 1.

    A statement ends at the first line end at which it can be read by itself; a text that is cut within a string
    or a list cannot.
    """
    import tomllib

    found: dict[Path, int] = {}
    table: Path = ()
    statement, first = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        first = first if statement else number
        statement += line + "\n"
        try:
            read = tomllib.loads(statement)
        except ValueError:
            continue
        if statement.lstrip().startswith("["):
            table = _deepest(read)
            read = {}
            found.setdefault(table, first)
        for path in _paths(read):
            for end in range(1, len(path) + 1):
                found.setdefault(table + path[:end], first)
        statement = ""
    for path, line_number in list(found.items()):
        for end in range(1, len(path)):
            found.setdefault(path[:end], line_number)
    return found


def _deepest(read: dict[str, Any]) -> Path:
    """The path of the table that a lone header opens."""
    path: Path = ()
    at: Any = read
    while at and isinstance(at, dict):
        (name, inner), = at.items()
        path = (*path, name)
        at = inner[0] if isinstance(inner, list) else inner
    return path


def _paths(read: dict[str, Any]) -> Iterable[Path]:
    for name, value in read.items():
        if isinstance(value, dict) and value:
            yield from ((name, *rest) for rest in _paths(value))
        else:
            yield (name,)


def _parsed(file: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except RecursionError:
        raise BadConfig(file, 0, "is nested too deeply; a table for each verb is enough") from None
    except ValueError as problem:
        said = str(problem)
        at = _AT_LINE.search(said)
        line = int(at[1]) if at else text.count("\n") + 1
        words = _AT_LINE.sub("", said).removesuffix(_AT_END)
        if words.startswith("Cannot overwrite"):
            words = "is given twice; keep one of them"
        elif words.startswith("Cannot declare"):
            words = "the table is begun twice; keep one of them"
        else:
            words = f"{words[:1].lower()}{words[1:]}; see https://toml.io for how TOML is written"
        there = text.split("\n")[line - 1].strip() if at else ""
        raise BadConfig(file, line, words, _shown(there) if there else "") from None


def _shown(value: object) -> str:
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return shown if len(shown) <= SHOWN_CHARS else shown[:SHOWN_CHARS] + "…"


def _nearest(name: str, known: tuple[str, ...]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
