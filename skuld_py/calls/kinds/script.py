"""A task that runs an application file, and what an enqueuer may say of it.

Who enqueues names a file, below a directory that the worker allows, and what the file is given. Nothing else that
is said here can make the worker run another program or load other code: so settings are those of a list, which has
none that names programs, classes, archives or places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

import attrs

from skuld_py.calls import payloads
from skuld_py.calls.kinds import SCRIPT, fields

ARGUMENTS_MAX = 1_000
ARGUMENTS_CHARS_MAX = 65_536
PY_FILES_MAX = 100
APPLICATIONS, MODULES = (".py", ".jar"), (".py", ".zip", ".egg")
_CLASS = re.compile(r"[A-Za-z_$][\w$]*(\.[A-Za-z_$][\w$]*)*")
_CONF = ("spark.sql.", "spark.executor.memory", "spark.executor.cores", "spark.executor.instances",
         "spark.driver.memory", "spark.driver.cores", "spark.driver.maxResultSize", "spark.cores.max",
         "spark.task.", "spark.default.parallelism", "spark.dynamicAllocation.", "spark.app.name",
         "spark.speculation", "spark.memory.", "spark.scheduler.mode", "spark.network.timeout")
_NO_CONF = ("spark.sql.hive.", "spark.sql.extensions", "spark.sql.catalog", "spark.sql.queryExecutionListeners",
            "spark.sql.streaming.streamingQueryListeners", "spark.sql.cache.serializer",
            "spark.sql.warehouse.dir", "spark.task.resource.", "spark.sql.artifact.", "spark.sql.defaultCatalog",
            "spark.sql.sources.default", "spark.sql.avro.schemaUrl")
_NAMES_CODE = re.compile(r"(?i).*(class|providers?|listeners?|serializer|location|dir|path|jars?|python)")
"""How settings end that name code or a place, in this release of Spark's and the next."""
_WHY = ("memory, cores, parallelism, dynamic allocation and most of spark.sql... are a task's; what could name a"
        " program, code or a place is the worker's: --conf")


@attrs.frozen
class ScriptTask:
    """A file, relative to the worker's directory for scripts, and what it is given. ``plain``: by Python alone,
    without spark-submit."""

    file: str
    arguments: tuple[str, ...]
    main_class: str | None
    py_files: tuple[str, ...]
    conf: Mapping[str, str]
    plain: bool


def script(file: str, *arguments: str, main_class: str | None = None, py_files: Sequence[str] = (),
           conf: Mapping[str, fields.Option] | None = None, plain: bool = False) -> bytes:
    """The payload of a task that runs an application file by spark-submit, as a driver process of its own:
    ``.py``, or ``.jar`` with its ``main_class``. Paths, also of ``py_files``, are relative to the directory that
    the worker allows (``skuld worker --scripts``). ``plain``: a Python file that needs no spark-submit. Raises
    ``Refused``, which names the field."""
    kwargs: dict[str, Any] = {"main_class": main_class, "plain": plain, "py_files": [*py_files],
                              "conf": dict(conf or {})}
    return payloads.pack(SCRIPT, [file, *([[*arguments]] if arguments else [])],
                         {name: value for name, value in kwargs.items() if value}, payloads.AS_IT_IS)


def checked(file: Any, arguments: Any = (), *, main_class: Any = None, py_files: Any = (), conf: Any = None,
            plain: Any = False) -> ScriptTask:
    """The task of a call's arguments; ``Refused`` names the field that is wrong."""
    made = ScriptTask(_relative("file", file, APPLICATIONS), _arguments(arguments),
                      None if main_class is None else fields.text("main_class", main_class, 500),
                      tuple(_relative(f"py_files[{index}]", each, MODULES)
                            for index, each in enumerate(_listed("py_files", py_files, PY_FILES_MAX))),
                      _settings(conf), fields.flag("plain", plain))
    is_jar = made.file.endswith(".jar")
    if is_jar != (made.main_class is not None):
        raise fields.wrong("main_class", "name the class of the jar that has main" if is_jar
                           else "is for a jar; leave it out")
    if made.main_class is not None and _CLASS.fullmatch(made.main_class) is None:
        raise fields.wrong("main_class", f"{made.main_class[:60]!r} is no class's name; write for example a.Main")
    if made.plain and (is_jar or made.conf):
        raise fields.wrong("plain", "a jar, or settings of Spark, need spark-submit; leave plain out")
    return made


def _settings(value: Any) -> dict[str, str]:
    made = fields.conf("conf", value, _CONF, _NO_CONF, _WHY)
    naming = next(filter(_NAMES_CODE.fullmatch, made), None)
    if naming is not None:
        raise fields.wrong(f"conf[{naming!r:.60}]", f"cannot be set by a task; {_WHY}")
    return made


def _listed(field: str, value: Any, most: int) -> Sequence[Any]:
    if type(value) not in (list, tuple):
        raise fields.wrong(field, f"a list is wanted, not {value!r:.40}")
    if len(value) > most:
        raise fields.wrong(field, f"has {len(value)} values, more than {most}")
    return list(value)


def _arguments(value: Any) -> tuple[str, ...]:
    made = tuple(fields.text(f"arguments[{index}]", each, ARGUMENTS_CHARS_MAX) if each != "" else ""
                 for index, each in enumerate(_listed("arguments", value, ARGUMENTS_MAX)))
    if sum(map(len, made)) > ARGUMENTS_CHARS_MAX:
        raise fields.wrong("arguments", f"have more than {ARGUMENTS_CHARS_MAX} characters; write them to a file")
    return made


def _relative(field: str, value: Any, suffixes: tuple[str, ...]) -> str:
    """A path that begins and stays below a directory, by its words alone."""
    path = fields.path(field, value)
    parts = PurePosixPath(path)
    if parts.is_absolute() or ".." in parts.parts or not parts.name or "," in path or "#" in path:
        raise fields.wrong(field, f"{path[:60]!r} is no path below the worker's directory for scripts; write for"
                           f" example jobs/app{suffixes[0]}")
    if parts.suffix not in suffixes:
        raise fields.wrong(field, f"{path[:60]!r} is none of {', '.join(suffixes)}")
    return str(parts)
