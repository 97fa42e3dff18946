"""What the import of a client loads and makes: it is paid wherever one task is enqueued."""

from __future__ import annotations

import json
import subprocess
import sys

from skuld_py.embedded import python

LOADED = """
import json, sys
from skuld_py import Client
print(json.dumps(sorted(sys.modules)))
"""
COMPILED = """
import json
from skuld_py.wire import schema
made = []
def noted(compiled):
    return lambda of, number: made.append(of.__name__) or compiled(of, number)
schema.record_of, schema.dump_of = noted(schema.record_of), noted(schema.dump_of)
from skuld_py import Client
from skuld_py.model.messages import Greet
from skuld_py.wire.codec import Envelope, decode, encode
at_import = len(made)
decode(encode(Envelope("", "c", (Greet(1),))))
print(json.dumps([at_import, made]))
"""
NEVER = {"asyncio", "click", "cronsim", "h11", "kazoo", "lmdb", "pydantic", "pyspark", "rich", "sortedcontainers",
         "starlette", "uhashring", "uvicorn"}
ROOMS = {"skuld_py.archive", "skuld_py.cluster", "skuld_py.gateway", "skuld_py.node", "skuld_py.partition",
         "skuld_py.runtime", "skuld_py.simulation", "skuld_py.verbs", "skuld_py.worker"}


def run(program: str) -> list[object]:
    ran = subprocess.run([sys.executable, "-c", program], env=python.environment(), stdout=subprocess.PIPE,
                         check=True)
    found: list[object] = json.loads(ran.stdout)
    return found


def test_a_client_loads_nothing_of_a_node_and_no_message_between_nodes() -> None:
    loaded = {str(name) for name in run(LOADED)}

    assert loaded & (NEVER | ROOMS) == set()
    assert {name.rpartition(".")[2] for name in loaded if name.startswith("skuld_py.model.messages.")} == {
        "client", "message", "operating", "outcomes", "reads", "retention", "settings", "workers", "workflows"}


def test_how_a_message_travels_is_compiled_when_the_first_one_does() -> None:
    at_import, made = run(COMPILED)

    assert at_import == 0
    assert set(made) == {"Greet"}  # type: ignore[call-overload]
