"""The modules with a worker's task functions: imported by name, and found by Spark's Python processes too.

Functions travel to those processes by the name of their module, so the module must be importable there too:
the current directory, from which people start workers, goes into PYTHONPATH before Spark starts.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from skuld_py.embedded import python
from skuld_py.errors import Refused
from skuld_py.worker.registry import lookup, registered

NAMED = 5

_log = logging.getLogger(__name__)


def load_apps(modules: Sequence[str], py_files: Sequence[Path] = (), *, may_lack: bool = False) -> None:
    """Import the modules; ``Refused`` names the one that cannot be, why, and what to do; also if none of them
    brings a task function, unless functions ``may_lack``. They may import what
    Spark's processes are given besides: ``py_files`` are modules and archives of modules."""
    here = str(Path.cwd())
    if "" not in sys.path and here not in sys.path:
        sys.path.insert(0, here)
    sys.path[1:1] = [str(path.parent if path.suffix == ".py" else path) for path in py_files]
    os.environ["PYTHONPATH"] = python.search_path(here)
    if not modules and not may_lack:
        raise Refused("no_app", "app: name at least one module that defines task functions")
    for module in modules:
        _load(module)
    if not registered() and not may_lack:
        raise Refused("no_tasks", f"app: {', '.join(modules)} has no task functions; mark each with"
                      " @skuld_py.task, or name the module that has them", module=modules[0])


def warn_of_spark(missing: str | None) -> None:
    """Say before the first attempt is lost which functions need Spark, where it is not installed (``missing``)."""
    names = sorted(name for name in registered() if lookup(name).task_traits.needs_spark)  # type: ignore[attr-defined]
    if missing is not None and names:
        shown = ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
        _log.warning("each attempt at %s fails here: %s", shown, missing)


def _load(module: str) -> None:
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
            raise Refused("bad_app", f"app: {module} needs {error.name}, which is not installed here",
                          module=module) from error
        if module.endswith(".py"):
            name = module.removesuffix(".py").replace("/", ".")
            raise Refused("unknown_app", f"app: {module} is a file; name its module, {name}",
                          module=module) from error
        raise Refused("unknown_app", f"app: there is no module {module}. Start the worker in the directory"
                      f" that holds it ({Path.cwd()} does not), install it, or put its place in PYTHONPATH",
                      module=module) from error
    except (ValueError, TypeError) as error:
        raise Refused("unknown_app", f"app: {module!r} is no module name; write for example acme.jobs",
                      module=module) from error
    except (ImportError, SyntaxError) as error:
        raise Refused("bad_app", f"app: {module} cannot be imported: {error}", module=module) from error
