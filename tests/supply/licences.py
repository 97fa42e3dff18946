"""The licences of all that is installed, as the packages and jars tell them: a list to read, not a judgement."""

from __future__ import annotations

from importlib.metadata import Distribution, distributions
from pathlib import Path

from supply.bill import jars

UNTOLD = "not told; see its files"
OWN = "skuld-py"
SENTENCE_CHARS = 60
"""A longer licence field is the licence itself; then the classifiers are asked."""


def write(path: Path) -> str:
    """One line for each package and jar, tab-separated: kind, name, version, licence."""
    found = {(each.name, each.version, licence_of(each)) for each in distributions() if each.name != OWN}
    packages = sorted(found, key=lambda row: row[0].lower())
    rows = [("python", *row) for row in packages]
    rows += [("jar", each.name, each.version, each.licence or UNTOLD) for each in jars()]
    path.write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
    untold = sum(1 for row in rows if row[-1] == UNTOLD)
    copyleft = sorted({name for _, name, _, licence in rows if "GPL" in licence})
    return (f"{path}: {len(rows)} licences, {untold} that do not tell theirs; with GPL or LGPL in it:"
            f" {', '.join(copyleft) or 'none'}")


def licence_of(package: Distribution) -> str:
    """Its licence in short."""
    told = package.metadata
    if expression := told.get("License-Expression"):
        return str(expression)
    classified = [each.split(" :: ")[-1] for each in told.get_all("Classifier") or ()
                  if each.startswith("License :: ") and each != "License :: OSI Approved"]
    text = " ".join((told.get("License") or "").split())
    return text if text and len(text) <= SENTENCE_CHARS else " and ".join(classified) or UNTOLD
