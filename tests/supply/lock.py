"""``scripts/constraints.txt``: every package of the environment, by version and by the hashes of its files.

pip-tools works it out from setup.cfg and from the index that pip is configured with; the hashes are those of all
files of a version, so the pins hold on each platform and Python that it has files for. No index is named, for a
machine may have one of its own; a file that another one serves under the same name is refused by its hash.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FILE = TOP / "scripts" / "constraints.txt"
HEAD = """\
# What scripts/environment installs, to the version and the file: the set the tests were last run with.
# Written by scripts/supply --lock; with --upgrade it takes the newest versions that setup.cfg allows.
"""
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE)
_COMMAND = ("pip-compile", "--generate-hashes", "--allow-unsafe", "--strip-extras", "--no-emit-index-url",
            "--no-emit-find-links", "--no-emit-trusted-host", "--no-emit-options", "--no-annotate", "--no-header",
            "--quiet", "--extra", "test", "--build-deps-for", "editable")


class Failed(Exception):
    """A program did not do its part."""


def write(is_upgrade: bool) -> str:
    """Pin anew; versions stay unless setup.cfg forbids them, or an upgrade is wanted."""
    with tempfile.TemporaryDirectory(prefix="skuld-lock-") as name:
        made = Path(name) / "constraints.txt"
        if not is_upgrade:
            made.write_text(FILE.read_text(encoding="utf-8"), encoding="utf-8")
        program = str(Path(sys.executable).with_name(_COMMAND[0]))
        ran = subprocess.run([program, *_COMMAND[1:], "--output-file", str(made), "setup.cfg"], cwd=TOP,
                             capture_output=True, text=True, check=False)
        if ran.returncode:
            raise Failed(f"pip-compile: {ran.stderr[-3000:]}")
        found = pins(made.read_text(encoding="utf-8"))
    FILE.write_text(HEAD + "".join(found.values()), encoding="utf-8")
    return f"{len(found)} packages are pinned in {FILE.relative_to(TOP)}"


def pins(text: str) -> dict[str, str]:
    """The entries of a file of pins by package, without what has no hash: Skuld itself, which its extras name."""
    return {match[1]: match[0].rstrip().rstrip("\\").rstrip() + "\n" for match in _PIN.finditer(text)}


def versions() -> dict[str, str]:
    """What is pinned."""
    return {match[1]: match[2] for match in _PIN.finditer(FILE.read_text(encoding="utf-8"))}
