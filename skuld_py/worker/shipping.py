"""One archive with what executors elsewhere must be able to import: the application's modules, and this package.

A function of a module travels by the module's name. So executors get the modules that a worker was told of, and
those beside them that they have imported by then, as they are on disk when the worker starts. One that goes on
with a new JVM ships what it has itself loaded, not what was saved meanwhile.

Task functions are registered as their module is imported, so the module imports this package, and that attrs and
msgpack. All of it is pure Python, or can be, and goes along; the two libraries come last in the path, so that
executors that have their own use it.

Left out, and named in the log: large files that are no code, and what is compiled, which nothing can import out of
an archive. What the modules need from elsewhere is installed at the executors, or goes by the user's own archives.

Rejected: pickling such functions by value. A class would be another one on each side, a module-wide value would be
copied silently, and what cannot be pickled would be found by the task that fails.
"""

from __future__ import annotations

import logging
import sys
import sysconfig
import zipfile
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

NAME = "skuld_shipped.zip"
OWN = "skuld_py"
NEEDED = ("attr", "attrs", "msgpack")
"""What importing a task function's decorator imports besides."""
DATA_BYTES_MAX = 1 << 20
_NEEDS = "needs"
_FINDS_NEEDS = f'''
import sys as _sys

_sys.path.append(__file__.rpartition("/{OWN}/")[0] + "/{_NEEDS}")
'''
_COMPILED = (".so", ".pyd", ".dylib")

_log = logging.getLogger(__name__)


def pack(apps: Sequence[str], directory: Path) -> Path:
    """Write the archive for modules that are imported already; gives its path."""
    path = directory / NAME
    left_out: list[str] = []
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in tops(apps):
            left_out += _add(archive, name, "")
        for name in NEEDED:
            _add(archive, name, f"{_NEEDS}/")
        _add(archive, OWN, "")
    if left_out:
        _log.warning("not sent to executors; install it there if they need it: %s", ", ".join(left_out))
    return path


def tops(apps: Sequence[str]) -> list[str]:
    """The modules and packages to send besides this one, by their first names: those of ``apps``, and what they
    import from the same directories. Of a directory for installed packages, only themselves."""
    own = [name for name in dict.fromkeys(app.partition(".")[0] for app in apps) if name != OWN]
    kinds = ("purelib", "platlib", "stdlib", "platstdlib")
    installed = {Path(sysconfig.get_path(kind)).resolve() for kind in kinds}
    homes = {home for name in own for home in _homes(sys.modules[name])} - installed
    beside = [name for name, module in list(sys.modules.items())
              if "." not in name and name not in (*own, OWN, "__main__") and homes & set(_homes(module))]
    return [*own, *sorted(beside)]


def _homes(module: ModuleType) -> list[Path]:
    """The directories out of which a module or a package was imported."""
    spec = getattr(module, "__spec__", None)
    if spec is None:
        return []
    if spec.submodule_search_locations is not None:
        return [Path(place).resolve().parent for place in spec.submodule_search_locations]
    return [Path(spec.origin).resolve().parent] if spec.has_location and spec.origin else []


def _add(archive: zipfile.ZipFile, name: str, below: str) -> list[str]:
    """A module, or a package with all that lies in it; gives what was left out. Directories are entries, too: by
    them the archive's importer knows packages without a file of their own. What is in an archive already came by
    ``--py-files``, and so it goes."""
    spec = find_spec(name)
    assert spec is not None
    if spec.submodule_search_locations is None:
        path = Path(spec.origin or "")
        return _add_file(archive, path, below) if path.is_file() else []
    left_out: list[str] = []
    for place in filter(Path.is_dir, map(Path, spec.submodule_search_locations)):
        for path in sorted([place, *place.rglob("*")]):
            inner = (Path(f"{below}{name}") / path.relative_to(place)).as_posix()
            if "__pycache__" in inner:
                continue
            if path.is_file():
                left_out += _add_file(archive, path, inner.removesuffix(path.name))
            elif f"{inner}/" not in archive.NameToInfo:
                archive.mkdir(inner)
    return left_out


def _add_file(archive: zipfile.ZipFile, path: Path, below: str) -> list[str]:
    is_code = path.suffix == ".py"
    if path.suffix in _COMPILED or (not is_code and path.stat().st_size > DATA_BYTES_MAX):
        return [str(path)]
    content = path.read_bytes()
    if f"{below}{path.name}" == f"{OWN}/__init__.py":
        content += _FINDS_NEEDS.encode()
    archive.writestr(f"{below}{path.name}", content)
    return []
