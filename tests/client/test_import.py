"""What the import of a client loads and makes: it is paid wherever one task is enqueued."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from skuld_py.embedded import python
from skuld_py.model import messages as m
from skuld_py.model.messages import _PAGES as PAGES

LOADED = """
import json, sys
from skuld_py import Client
print(json.dumps(sorted(sys.modules)))
"""
CONNECTED = LOADED.replace("skuld_py import Client", "skuld_py.client import connection")
SENT = """
import json, sys
from skuld_py.model import messages as m
m.Enqueue(0, 0, ())
print(json.dumps(sorted(name for name in sys.modules if name.startswith("skuld_py.model.messages."))))
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
LATER = {"zmq", "skuld_py.wire", "skuld_py.keys", "skuld_py.config.timing", "skuld_py.config.scaling"}
"""What an open connection needs, or a node."""
ROOMS = {"skuld_py.archive", "skuld_py.cluster", "skuld_py.gateway", "skuld_py.node", "skuld_py.partition",
         "skuld_py.runtime", "skuld_py.simulation", "skuld_py.verbs", "skuld_py.worker"}


def run(program: str) -> list[object]:
    ran = subprocess.run([sys.executable, "-c", program], env=python.environment(), stdout=subprocess.PIPE,
                         check=True)
    found: list[object] = json.loads(ran.stdout)
    return found


def test_a_client_loads_nothing_of_a_node_and_no_message_before_it_sends_one() -> None:
    loaded = {str(name) for name in run(LOADED)}

    assert loaded & (NEVER | ROOMS | LATER) == set()
    assert not {name for name in loaded if name.startswith("skuld_py.model.messages.")}


def test_an_open_connection_loads_nothing_of_a_node_either() -> None:
    loaded = {str(name) for name in run(CONNECTED)}
    pages = {name.rpartition(".")[2] for name in loaded if name.startswith("skuld_py.model.messages.")}

    assert loaded & (NEVER | ROOMS) == set()
    assert pages == {"greetings", "message"}


def test_a_message_brings_its_page_and_no_other() -> None:
    loaded = {str(name).rpartition(".")[2] for name in run(SENT)}

    assert loaded == {"enqueues", "message"}


def test_every_name_is_on_the_page_that_the_tables_say() -> None:
    told = {name: page for page, names in PAGES.items() for name in names}

    assert {name: f"{m.__name__}.{told[name]}" for name in m.__all__ if name in told} == {
        name: of.__module__ if isinstance(of, type) else f"{m.__name__}.{told[name]}"
        for name in m.__all__ if name in told for of in [getattr(m, name)]}
    assert set(m.__all__) - set(told) == {"MESSAGES", "OPERATIONS", "message_of"}
    assert set(m.OPERATIONS) <= set(told)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        m.Nothing  # noqa: B018


def test_how_a_message_travels_is_compiled_when_the_first_one_does() -> None:
    at_import, made = run(COMPILED)

    assert at_import == 0
    assert set(made) == {"Greet"}  # type: ignore[call-overload]
