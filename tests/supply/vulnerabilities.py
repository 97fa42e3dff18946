"""Known vulnerabilities of the pinned packages, as ``pip-audit`` is told them by a service in the network.

What was not asked is not known: when the service cannot be reached, or answers for fewer packages than are pinned,
that is said, with a status of its own, and no file of an earlier run is left to be taken for the answer.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from supply.lock import FILE, versions

FINE, FOUND, UNKNOWN = 0, 1, 4


def write(path: Path, service: str) -> tuple[int, str]:
    """Ask, and write the answer; gives the status, and what to say."""
    path.unlink(missing_ok=True)
    ran = subprocess.run([sys.executable, "-m", "pip_audit", "--requirement", str(FILE), "--require-hashes",
                          "--disable-pip", "--vulnerability-service", service, "--format", "json",
                          "--progress-spinner", "off"], capture_output=True, text=True, check=False)
    status, said = judge(ran.stdout, ran.stderr, versions())
    if status != UNKNOWN:
        path.write_text(json.dumps(json.loads(ran.stdout), indent=2) + "\n", encoding="utf-8")
    return status, said


def judge(answer: str, errors: str, pinned: Mapping[str, str]) -> tuple[int, str]:
    """What an answer means."""
    try:
        packages: list[dict[str, Any]] = json.loads(answer)["dependencies"]
    except (ValueError, KeyError, TypeError):
        reason = " ".join(errors.split())[-300:] or "it said nothing"
        return UNKNOWN, f"NOT CHECKED for vulnerabilities, so nothing is known of any: {reason}"
    asked = {each["name"] for each in packages if "vulns" in each}
    missing = set(map(canonical, pinned)) - set(map(canonical, asked))
    why = next((each["skip_reason"] for each in packages if "skip_reason" in each), "the answer is without them")
    unknown = f"NOT CHECKED for vulnerabilities: {len(missing)} of {len(pinned)} packages; {why}"
    found = [f"{each['name']} {each['version']}: {row['id']}, mended in {', '.join(row['fix_versions']) or 'none'}"
             for each in packages for row in each.get("vulns", ())]
    if found:
        return FOUND, "\n".join([f"{len(found)} known vulnerabilities:", *found, *([unknown] if missing else [])])
    if missing:
        return UNKNOWN, unknown
    return FINE, f"no known vulnerability in {len(packages)} pinned packages; jars were not asked about"


def canonical(name: str) -> str:
    """Names are equal but for case and separators."""
    return name.lower().replace("_", "-").replace(".", "-")
