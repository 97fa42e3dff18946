"""The Helm chart rendered without Helm: the few forms of its templates, and a complaint about any other.

Forms: ``{{ .Values.a.b }}``, ``.Release.Name``, ``.Release.Namespace``, the same with ``| quote``; ``toYaml`` with
``nindent``; ``if`` ... ``end`` at the beginning of lines, not nested; and, indented, ``range`` over a map, which
shows ``$name`` and ``$value | quote``. ``test_chart.py`` compares the outcome with
Helm's own where a Helm is at hand, so that this page need not be believed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).resolve().parents[2]
CHART = TOP / "scripts" / "deploy" / "helm" / "skuld"
RELEASE = {"Name": "demo", "Namespace": "prod"}

_IF = re.compile(r"^\{\{- if (\S+) \}\}\n(.*?)^\{\{- end \}\}\n", re.DOTALL | re.MULTILINE)
_RANGE = re.compile(r"^ +\{\{- range \$name, \$value := (\S+) \}\}\n(.*?)^ +\{\{- end \}\}\n",
                    re.DOTALL | re.MULTILINE)
_TO_YAML = re.compile(r"^ *\{\{- toYaml (\S+) \| nindent (\d+) \}\}$", re.MULTILINE)
_VALUE = re.compile(r"\{\{ (\.[\w.]+)( \| quote)? \}\}")


def values() -> dict[str, Any]:
    """Those of the chart."""
    found: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    return found


def documents(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All that a release would bring."""
    found: list[dict[str, Any]] = []
    for path in sorted((CHART / "templates").glob("*.yaml")):
        found += filter(None, yaml.safe_load_all(rendered(path.read_text(encoding="utf-8"), given)))
    return found


def rendered(template: str, given: Mapping[str, Any]) -> str:
    """A template with values in it; raises ``ValueError`` for a form that is not known here."""
    known = {"Values": given, "Release": RELEASE}

    def value(path: str) -> Any:
        found: Any = known
        for name in path.removeprefix(".").split("."):
            found = found[name]
        return found

    def shown(match: re.Match[str]) -> str:
        found = str(value(match[1]))
        return _quoted(found) if match[2] else found

    def block(match: re.Match[str]) -> str:
        lines = yaml.safe_dump(value(match[1]), sort_keys=True).splitlines()
        return "\n".join(" " * int(match[2]) + line for line in lines)

    def repeated(match: re.Match[str]) -> str:
        return "".join(match[2].replace("{{ $name }}", name).replace("{{ $value | quote }}", _quoted(str(each)))
                       for name, each in sorted(value(match[1]).items()))

    text = _IF.sub(lambda match: match[2] if value(match[1]) else "", template)
    text = _RANGE.sub(repeated, text)
    text = _VALUE.sub(shown, _TO_YAML.sub(block, text))
    if "{{" in text:
        raise ValueError(f"unknown form: {text[text.index('{{'):][:80]}")
    return text


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
