"""``scripts/constraints.txt``: every package of the environment, by version and by the hashes of its files; and of
these what each image needs.

pip-tools works it out from setup.cfg and from the index that pip is configured with; the hashes are those of all
files of a version, so the pins hold on each platform and Python that it has files for. No index is named, for a
machine may have one of its own; a file that another one serves under the same name is refused by its hash.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FILE = TOP / "scripts" / "constraints.txt"
HEAD = """\
# What scripts/environment installs, to the version and the file: the set the tests were last run with.
# Written by scripts/supply --lock; with --upgrade it takes the newest versions that setup.cfg allows.
"""
IMAGE_HEAD = """\
# What the image of {} installs: of scripts/constraints.txt what it needs, written with it.
"""
DEPLOY = TOP / "scripts" / "deploy"
FILES: dict[Path, tuple[str, tuple[str, ...]]] = {
    FILE: (HEAD, ("--extra", "test", "--build-deps-for", "editable")),
    DEPLOY / "image.txt": (IMAGE_HEAD.format("nodes and gateways"), ("--extra", "node", "--extra", "gateway")),
    DEPLOY / "worker.txt": (IMAGE_HEAD.format("workers"), ("--extra", "spark", "--extra", "java")),
}
"""What is written, with the extras of each."""
_PIN = re.compile(r"^([A-Za-z0-9][\w.-]*)==(\S+) \\\n((?:    --hash=\S+(?: \\)?\n)+)", re.MULTILINE)
_COMMAND = ("pip-compile", "--generate-hashes", "--allow-unsafe", "--strip-extras", "--no-emit-index-url",
            "--no-emit-find-links", "--no-emit-trusted-host", "--no-emit-options", "--no-annotate", "--no-header",
            "--quiet")


class Failed(Exception):
    """A program did not do its part."""


def write(is_upgrade: bool) -> str:
    """Pin anew; versions stay unless setup.cfg forbids them, or an upgrade is wanted."""
    kept = "" if is_upgrade else FILE.read_text(encoding="utf-8")
    said = []
    for path, (head, options) in FILES.items():
        found = compiled(kept, options)
        kept = kept if path != FILE else "".join(found.values())  # the images' are those that the tests run with
        path.write_text(head + "".join(found.values()), encoding="utf-8")
        said.append(f"{len(found)} packages are pinned in {path.relative_to(TOP)}")
    return "\n".join(said)


def compiled(kept: str, options: Sequence[str]) -> dict[str, str]:
    """What pip-compile makes of setup.cfg, and of the pins that it may keep."""
    with tempfile.TemporaryDirectory(prefix="skuld-lock-") as name:
        made = Path(name) / "pins.txt"
        made.write_text(kept, encoding="utf-8")
        program = str(Path(sys.executable).with_name(_COMMAND[0]))
        ran = subprocess.run([program, *_COMMAND[1:], *options, "--output-file", str(made), "setup.cfg"], cwd=TOP,
                             capture_output=True, text=True, check=False)
        if ran.returncode:
            raise Failed(f"pip-compile: {ran.stderr[-3000:]}")
        return pins(made.read_text(encoding="utf-8"))


def pins(text: str) -> dict[str, str]:
    """The entries of a file of pins by package, without what has no hash: Skuld itself, which its extras name."""
    return {match[1]: match[0].rstrip().rstrip("\\").rstrip() + "\n" for match in _PIN.finditer(text)}


def versions() -> dict[str, str]:
    """What is pinned."""
    return {match[1]: match[2] for match in _PIN.finditer(FILE.read_text(encoding="utf-8"))}
