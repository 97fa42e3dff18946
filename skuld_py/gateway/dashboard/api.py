"""The OpenAPI document as a page: what a caller of the verbs needs to know, without a program that shows it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_REF = "#/components/schemas/"


def operations(document: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The operations, by the first word of their paths."""
    schemas = document["components"]["schemas"]
    found: dict[str, list[dict[str, Any]]] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            found.setdefault(path.split("/")[2], []).append(_operation(path, method, operation, schemas))
    return found


def _operation(path: str, method: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> dict[str, Any]:
    asked = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    body = schemas.get(asked.get("$ref", "").removeprefix(_REF), {})
    fields = [_field(name, field, name in body.get("required", ()))
              for name, field in body.get("properties", {}).items()]
    fields += [_field(each["name"], {**each["schema"], "description": each.get("description", "")},
                      each["required"]) for each in operation.get("parameters", ())]
    good = operation["responses"]["200"]
    return {"id": operation["operationId"], "method": method.upper(), "path": path,
            "summary": operation["summary"], "rights": operation.get("description", "Open to all."),
            "fields": fields, "answer": good["description"], "kind": next(iter(good["content"])),
            "example": _example(method, path, fields)}


def _field(name: str, field: Mapping[str, Any], is_needed: bool) -> dict[str, Any]:
    return {"name": name, "type": type_of(field), "is_needed": is_needed, "words": field.get("description", ""),
            "default": json.dumps(field["default"]) if "default" in field else "", "is_example": field}


def type_of(field: Mapping[str, Any]) -> str:
    """The type of a field in a few words."""
    if "$ref" in field:
        return str(field["$ref"].removeprefix(_REF))
    if "enum" in field:
        return " | ".join(map(json.dumps, field["enum"]))
    for several in ("anyOf", "oneOf"):
        if several in field:
            return " or ".join(dict.fromkeys(map(type_of, field[several])))
    if field.get("type") == "array":
        return f"list of {type_of(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _example(method: str, path: str, fields: list[dict[str, Any]]) -> str:
    """A request as it is typed, with what must be given."""
    needed = {each["name"]: _value(each["is_example"]) for each in fields
              if each["is_needed"] and f"{{{each['name']}}}" not in path}
    if method == "get":
        query = "&".join(f"{name}={value}" for name, value in needed.items())
        return f"curl '$URL{path}{'?' if query else ''}{query}'"
    return f"curl -H 'content-type: application/json' -d '{json.dumps(needed)}' $URL{path}"


def _value(field: Mapping[str, Any]) -> Any:
    if field.get("examples"):
        return field["examples"][0]
    if "anyOf" in field:
        return _value(field["anyOf"][0])
    kinds: Mapping[str, Any] = {"array": [_value(field.get("items", {}))] if field.get("type") == "array" else [],
                                "integer": 1, "number": 1.0, "boolean": True, "object": {}}
    return kinds.get(field.get("type", ""), "...")
