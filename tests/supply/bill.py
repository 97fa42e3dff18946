"""The bill of materials, in CycloneDX: Python packages as ``cyclonedx-py`` finds them, and PySpark's jars.

A jar says what it is in ``META-INF/maven/.../pom.properties``, or else by its name. Those that ``skuld zookeeper``
runs carry the property ``skuld:used-by``. PySpark depends on all of them: to have another version of one is to
have another PySpark.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import attrs
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from packageurl import PackageURL

from skuld_py.embedded.zookeeper import server_jars
from skuld_py.worker.spark_jvm import spark_home
from supply.lock import TOP, Failed

USED_BY = "skuld:used-by"
_NAME = re.compile(r"(?P<name>.+?)-(?P<version>\d[\w.+-]*)\.jar")


@attrs.frozen
class Jar:
    """A jar as Maven knows it; the group is empty where the jar does not tell."""

    path: Path
    group: str
    name: str
    version: str
    licence: str

    @property
    def purl(self) -> PackageURL:
        return PackageURL("maven", self.group or None, self.name, self.version or None)


def jars() -> Iterator[Jar]:
    """PySpark's."""
    for path in sorted((spark_home() / "jars").glob("*.jar")):
        yield jar(path)


def jar(path: Path) -> Jar:
    """What a jar says of itself."""
    named = _NAME.fullmatch(path.name)
    name, version = (named["name"], named["version"]) if named else (path.stem, "")
    group = ""
    with zipfile.ZipFile(path) as archive:
        entries = archive.namelist()
        for entry in entries:
            if re.fullmatch(r"META-INF/maven/[^/]+/[^/]+/pom.properties", entry):
                text = archive.read(entry).decode("utf-8", "replace")
                told = dict(re.findall(r"^(\w+)=(\S+)", text, re.MULTILINE))
                if told.get("artifactId") == name:
                    group, version = told.get("groupId", ""), told.get("version", version)
        manifest = archive.read("META-INF/MANIFEST.MF").decode("utf-8", "replace") \
            if "META-INF/MANIFEST.MF" in entries else ""
    unfolded = re.sub(r"\r?\n ", "", manifest)
    told_licence = re.search(r"^Bundle-License: *(.+?)\r?$", unfolded, re.MULTILINE)
    return Jar(path, group, name, version, told_licence[1] if told_licence else "")


def write(path: Path) -> str:
    """Write the bill and check it against the schema of CycloneDX."""
    bom = python_packages()
    pyspark = next((each for each in bom.components if each.name == "pyspark"), None)
    if pyspark is None:
        raise Failed("this environment has no pyspark, so the bill would be without its jars")
    of_zookeeper = server_jars()
    added = [component_of(each, of_zookeeper) for each in jars()]
    bom.components.update(added)
    bom.register_dependency(pyspark, added)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    from cyclonedx.validation.json import JsonStrictValidator  # builds grammars for seconds, in all who import

    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise Failed(f"the bill is no CycloneDX 1.6: {problem}")
    path.write_text(text + "\n", encoding="utf-8")
    used = sum(1 for each in added if each.properties)
    return (f"{path}: {len(bom.components) - len(added)} Python packages, {len(added)} jars of PySpark"
            f" {pyspark.version}, {used} of them run ZooKeeper")


def python_packages() -> Bom:
    """Those of this environment."""
    ran = subprocess.run([sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible",
                          "--spec-version", "1.6", "--output-format", "JSON", sys.executable],
                         cwd=TOP, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Failed(f"cyclonedx-py: {ran.stderr[-2000:]}")
    bom: Bom = Bom.from_json(json.loads(ran.stdout))  # type: ignore[attr-defined]
    return bom


def component_of(found: Jar, of_zookeeper: Sequence[Path]) -> Component:
    """A jar in the bill."""
    digest = hashlib.sha256(found.path.read_bytes()).hexdigest()
    return Component(type=ComponentType.LIBRARY, group=found.group or None, name=found.name,
                     version=found.version or None, purl=found.purl, bom_ref=f"{found.purl}#{found.path.name}",
                     hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
                     properties=[Property(name=USED_BY, value="zookeeper")] if found.path in of_zookeeper else [])
