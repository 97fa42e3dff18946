"""The OpenAPI document is true: a fuzzer that knows nothing else of the gateway finds no answer that it lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gateway.asking import Asker
from gateway.conftest import write_tokens
from skuld_py.client.client import Client
from skuld_py.embedded.local import LocalCluster
from skuld_py.gateway import openapi
from skuld_py.gateway.access import new_token
from skuld_py.gateway.limits import Limits
from skuld_py.verbs.table import VERBS
from skuld_py.verbs.verb import Scope


def documented() -> dict[str, Any]:
    return openapi.document(Limits())


def test_every_verb_is_documented() -> None:
    document = documented()

    for verb in VERBS:
        operation = document["paths"][verb.path][verb.method.lower()]
        assert operation["operationId"] == verb.name and operation["summary"] == verb.summary
        assert bool(operation["security"]) == (verb.scope is not None)
        assert ("requestBody" in operation) == (verb.method == "POST")
    assert len({verb.name for verb in VERBS}) == len(VERBS) == sum(map(len, document["paths"].values()))


def test_every_reference_leads_somewhere_and_nothing_says_null_by_default() -> None:
    document = documented()

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if "$ref" in value:
                _, *steps = value["$ref"].split("/")
                found: Any = document
                for step in steps:
                    found = found[step]
            assert value.get("default", 0) is not None
            for inner in value.values():
                walk(inner)
        elif isinstance(value, list):
            for inner in value:
                walk(inner)
    walk(document)
    assert json.loads(json.dumps(document)) == document


def test_what_a_request_may_hold_is_said() -> None:
    schemas = documented()["components"]["schemas"]

    for verb in VERBS:
        assert schemas[verb.asks.name]["additionalProperties"] is False
    assert schemas["Enqueue"]["oneOf"] == [{"required": [name]} for name in ("payload", "payload_base64", "call")]
    assert schemas["Claim"]["properties"]["lease_s"]["minimum"] == 0.001
    assert schemas["Enqueue"]["properties"]["priority"]["maximum"] == (1 << 31) - 1


FUZZED = """
[checks]
# Only the cluster knows whether an id exists, is of the future, has other content: 404, 409, 422 are right.
positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "422"]
# Of too many wrong tokens some are answered 429; test_gates has each verb with each scope.
ignored_auth.enabled = false

[[operations]]
# Where nobody knows as many facts as min_seq asks for, a read is 503: try again.
include-path = "/v1/tasks/{id}"
include-method = "GET"
checks.not_a_server_error.enabled = false
checks.positive_data_acceptance.expected-statuses = ["2xx", "404", "409", "422", "503"]
"""


EXAMPLES = os.environ.get("SKULD_TEST_FUZZ_EXAMPLES")
"""Drawn at random for each operation. ``scripts/fuzz_http`` sets it; then every bound of every field is tried."""


@pytest.mark.cluster
@pytest.mark.slow
def test_the_document_and_the_gateway_agree(cluster: LocalCluster, tmp_path: Path) -> None:
    """Schemathesis: valid and invalid requests of all kinds, each answer held against the document."""
    token = new_token()
    write_tokens(tmp_path / "tokens.toml", {"fuzz": (token, [*Scope])})
    url, process = cluster.start_gateway("--tokens", str(tmp_path / "tokens.toml"), "--wait", "300ms")
    (tmp_path / "schemathesis.toml").write_text(FUZZED)
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json", "--header",
               f"Authorization: Bearer {token}", "--max-examples", EXAMPLES or "5", "--seed", "7", "--no-color",
               "--phases", "examples,coverage,fuzzing" if EXAMPLES else "examples,fuzzing"]

    try:
        ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        with Client(cluster.addresses) as client:  # or the cluster enqueues for the tests behind this one
            for made in client.schedules():
                client.remove_schedule(made.name)

    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2_000:]
    assert process.poll() is None and Asker(url).get("/v1/health").status == 200
