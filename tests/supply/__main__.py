"""What Skuld is made of: a bill of materials, the licences, the known vulnerabilities, and the pinned versions.

Without an option it looks at the environment of the checkout, which is what the tests run with, and writes below
``--output``: ``sbom.json`` (CycloneDX 1.6, Python packages and the jars that PySpark brings, those of ZooKeeper
marked), ``licences.txt``, and ``vulnerabilities.json``, for which it asks a service in the network about each
pinned package. That service knows no jars: give ``sbom.json`` to a scanner that does.

Examples:
  scripts/supply                      everything, into ./supply
  scripts/supply --only sbom
  scripts/supply --service osv        ask another service about vulnerabilities
  scripts/supply --lock               pin again in scripts/constraints.txt what setup.cfg asks for, with hashes
  scripts/supply --lock --upgrade     the same, with the newest versions that setup.cfg allows

Exit code: 0 done and nothing found, 1 there are known vulnerabilities, 2 bad usage, 3 a part failed, 4 the service
could not be asked, so that nothing is known about vulnerabilities.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from supply import bill, licences, lock, vulnerabilities

FINE, FAILED = 0, 3
PARTS = ("sbom", "licences", "vulnerabilities")


def main(argv: list[str] | None = None) -> int:
    """Write what was asked for; the status is the worst there was."""
    parser = argparse.ArgumentParser(prog="scripts/supply", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=Path("supply"), help="where to write (default: supply)")
    parser.add_argument("--only", action="append", choices=PARTS, help="this part; may be given again")
    parser.add_argument("--service", choices=("pypi", "osv"), default="pypi",
                        help="who is asked about vulnerabilities (default: pypi)")
    parser.add_argument("--lock", action="store_true", help="write scripts/constraints.txt instead")
    parser.add_argument("--upgrade", action="store_true", help="with --lock: take the newest versions")
    asked = parser.parse_args(argv)
    if asked.upgrade and not asked.lock:
        parser.error("--upgrade goes with --lock")
    try:
        if asked.lock:
            print(lock.write(asked.upgrade))
            return FINE
        asked.output.mkdir(parents=True, exist_ok=True)
        return max(run(part, asked.output, asked.service) for part in asked.only or PARTS)
    except lock.Failed as problem:
        print(f"failed: {problem}", file=sys.stderr)
        return FAILED


def run(part: str, output: Path, service: str) -> int:
    """One part, and what it says."""
    if part == "sbom":
        print(bill.write(output / "sbom.json"))
    elif part == "licences":
        print(licences.write(output / "licences.txt"))
    else:
        status, said = vulnerabilities.write(output / "vulnerabilities.json", service)
        print(said, file=sys.stderr if status else sys.stdout)
        return status
    return FINE


if __name__ == "__main__":
    sys.exit(main())
