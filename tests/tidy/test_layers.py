"""The layers and the purity of the machines, on the whole package; and proof that each rule can fail.

A simulated history is worth something only if the machines are functions of (now, event). What would break
that, an import in the wrong direction, a clock, a draw from global randomness, a walk through a set, is found
here by reading.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidy import rules
from tidy.set_order import set_attributes, set_iteration

Rule = Callable[[str, str], list[str]]


def test_the_package_has_modules_to_look_at() -> None:
    assert {"skuld_py.errors", "skuld_py.config.timing"} <= {module for module, _ in rules.modules()}


@pytest.mark.parametrize("rule", [rules.layers, rules.wings, rules.spark, rules.purity, rules.clocks],
                         ids=lambda rule: str(rule.__name__))
def test_the_package_keeps(rule: Rule) -> None:
    complaints = [each for module, source in rules.modules() for each in rule(module, source)]

    assert not complaints, "\n" + "\n".join(complaints)


def test_the_package_walks_no_set() -> None:
    attributes = set_attributes(rules.modules())

    complaints = [each for m, source in rules.modules() for each in set_iteration(m, source, attributes)]

    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize("room", sorted(rules.ROOMS_OF_WINGS))
def test_each_room_of_wings_is_built_to_its_plan(room: str) -> None:
    built = rules.floors(rules.arrows(room, rules.modules()))

    assert len(built) > 1, "no part imports another one"
    assert rules.plan(room, rules.modules()) == []


@pytest.mark.parametrize(("sources", "complaint"), [
    ([("skuld_py.node.a.x", "from skuld_py.node.b import y"),
      ("skuld_py.node.b.y", "from skuld_py.node.a import x")],
     "node: these import each other: a, b"),
    ([(f"skuld_py.node.m{number}", "") for number in range(21)], "node: has 21 parts at its top, more than 20"),
    ([(f"skuld_py.node.m{number}", f"from skuld_py.node.m{number + 1} import X") for number in range(11)],
     "node: has 11 floors, more than 10"),
], ids=["a circle", "too wide", "too high"])
def test_a_room_that_is_not_is_reported(sources: list[tuple[str, str]], complaint: str) -> None:
    assert rules.plan("node", sources) == [complaint]
    assert rules.plan("node", sources[:1]) == []


def test_no_two_rooms_may_import_each_other() -> None:
    table = {room: may for room, may in rules.ROOMS.items() if isinstance(may, frozenset)}

    assert all(room not in table[other] for room, may in table.items() for other in may)
    assert all(may <= table.keys() for may in table.values())


LAYERS_BROKEN = {
    "upwards": ("skuld_py.model.task", "from skuld_py.node import node"),
    "sideways": ("skuld_py.partition.vnode", "import skuld_py.cluster.log.replica"),
    "sideways back": ("skuld_py.cluster.log.replica", "from skuld_py.partition import quorum"),
    "errors know nobody": ("skuld_py.errors", "from skuld_py import config"),
    "relative": ("skuld_py.crdt.lattice", "from ..model import ids"),
    "relative in a package": ("skuld_py.crdt.__init__", "from ..model.ids import TaskId"),
    "inside a function": ("skuld_py.node.node", "def f():\n    from skuld_py.runtime import loop"),
    "for the type checker": (
        "skuld_py.wire.codec",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from skuld_py.node import node",
    ),
    "client to shell": ("skuld_py.client.client", "from skuld_py.runtime.zeromq import Transport"),
    "embedded to client": ("skuld_py.embedded.zookeeper", "from skuld_py.client import Client"),
    "simulation to runtime": ("skuld_py.simulation.world", "from skuld_py.runtime import clock"),
    "the whole package": ("skuld_py.node.node", "from skuld_py import Client"),
    "the package by name": ("skuld_py.node.node", "import skuld_py"),
    "the package, starred": ("skuld_py.node.node", "from skuld_py import *"),
    "a new room": ("skuld_py.attic.box", "x = 1"),
    "from a new room": ("skuld_py.node.node", "from skuld_py.attic import box"),
}

LAYERS_KEPT = {
    "downwards": (
        "skuld_py.node.node",
        "from skuld_py.partition import vnode\nfrom ..cluster.replica import Replica",
    ),
    "within": (
        "skuld_py.model.task",
        "from . import ids\nfrom .ids import TaskId\nfrom skuld_py.model import claim",
    ),
    "version": ("skuld_py.wire.codec", "from skuld_py import __version__"),
    "worker": (
        "skuld_py.worker.worker",
        "from skuld_py.client import Client\nfrom skuld_py.embedded import java",
    ),
    "cli": ("skuld_py.cli.serve", "from skuld_py.runtime import server\nfrom skuld_py.demo import show"),
    "public names": ("skuld_py.__init__", "from skuld_py.client import Client\nfrom .worker import Worker"),
    "others": ("skuld_py.node.node", "import skuld_python, zlib"),
}

WINGS_BROKEN = {
    "features of a node": ("skuld_py.node.limits.lender", "from skuld_py.node.claims.grant import GrantOperation"),
    "wing to room": ("skuld_py.runtime.zookeeper.clusters", "from skuld_py.runtime.loop import Loop"),
    "wing to room, by module": ("skuld_py.runtime.zookeeper.clusters", "from skuld_py.runtime import loop"),
    "relative": ("skuld_py.runtime.zookeeper.registry", "from ..transport import Transport"),
    "the wing itself": ("skuld_py.runtime.zookeeper.__init__", "from skuld_py.runtime import loop"),
    "a new wing": ("skuld_py.runtime.attic.box", "x = 1"),
}

WINGS_KEPT = {
    "within": (
        "skuld_py.runtime.zookeeper.registry",
        "from skuld_py.runtime.zookeeper import clusters\nfrom .presence import Presence",
    ),
    "room to wing": ("skuld_py.runtime.server", "from skuld_py.runtime.zookeeper import registry"),
    "another room": ("skuld_py.runtime.zookeeper.registry", "from skuld_py.model.document import Member"),
}

SPARK_BROKEN = {
    "worker": ("skuld_py.worker.worker", "import pyspark"),
    "client": ("skuld_py.client.client", "def f():\n    from pyspark.sql import SparkSession"),
    "gateway": ("skuld_py.worker.java", "from py4j.java_gateway import JavaGateway"),
    "archive": ("skuld_py.archive.rows", "from pyspark.sql.types import StructType"),
}

SPARK_KEPT = {
    "worker": ("skuld_py.worker.spark", "import pyspark"),
    "worker, longer": ("skuld_py.worker.spark_listener", "from pyspark.sql import SparkSession"),
    "archive": ("skuld_py.archive.spark_store", "from pyspark.sql import SparkSession"),
    "workflow": ("skuld_py.workflow.step", "from pyspark.sql import SparkSession"),
    "demo": ("skuld_py.demo.tasks", "from pyspark.sql import SparkSession"),
}

PURITY_BROKEN = {
    "clock": ("skuld_py.partition.claims", "import time"),
    "date": ("skuld_py.model.task", "from datetime import datetime"),
    "randomness": ("skuld_py.crdt.lattice", "from random import Random"),
    "socket": ("skuld_py.node.node", "import socket as s"),
    "thread": ("skuld_py.cluster.log.replica", "import concurrent.futures"),
    "process": ("skuld_py.cluster.join", "import subprocess"),
    "system": ("skuld_py.wire.codec", "import os.path"),
    "log": ("skuld_py.partition.vnode", "def f():\n    import logging"),
    "zeromq": ("skuld_py.wire.frames", "import zmq"),
    "store": ("skuld_py.partition.ready", "import lmdb"),
    "registry": ("skuld_py.cluster.log", "from kazoo.client import KazooClient"),
    "msgpack outside wire": ("skuld_py.model.task", "import msgpack"),
    "hash": ("skuld_py.partition.data.merkle", "bucket = hash('task') % 16"),
    "id": ("skuld_py.node.node", "def f(x):\n    return id(x)"),
    "open": ("skuld_py.wire.codec", "text = open('x').read()"),
    "hidden import": ("skuld_py.wire.codec", "t = __import__('time')"),
    "hash in the simulation": ("skuld_py.simulation.world", "seed = hash('x')"),
    "simulation, clock": ("skuld_py.simulation.world", "import time"),
    "simulation, threads": ("skuld_py.simulation.campaign", "import threading"),
    "global draw": ("skuld_py.simulation.world.network", "import random\ndelay = random.randint(1, 9)"),
    "global draw, renamed": ("skuld_py.simulation.world.network", "import random as r\ndelay = r.choice"),
    "global draw, by name": ("skuld_py.simulation.world.network", "from random import choice"),
    "system randomness": ("skuld_py.simulation.world.network", "import random\nr = random.SystemRandom()"),
    "no seed": ("skuld_py.simulation.world.network", "import random\nr = random.Random()"),
    "no seed, by name": ("skuld_py.simulation.world.network", "from random import Random\nr = Random()"),
}

PURITY_KEPT = {
    "values": (
        "skuld_py.model.task",
        "from __future__ import annotations\nimport attrs, zlib, struct, hashlib\n"
        "from collections.abc import Mapping\n"
        "from sortedcontainers import SortedDict\nfrom skuld_py.crdt import lattice\nfrom . import ids",
    ),
    "msgpack in wire": ("skuld_py.wire.codec", "import msgpack"),
    "a parameter called id": ("skuld_py.model.task", "def f(id: int) -> int:\n    return id"),
    "seeded": ("skuld_py.simulation.world.network", "import random\nr = random.Random(7)\nd = r.randint(1, 9)"),
    "seeded, by name": (
        "skuld_py.simulation.world",
        "from random import Random\nr = Random(seed)\nrandom = r.random()",
    ),
    "handed in as random": (
        "skuld_py.simulation.world.clock",
        "from random import Random\ndef f(random: Random):\n    return random.uniform(0, 1)",
    ),
    "the person's side": ("skuld_py.simulation.__main__", "import argparse, sys, time"),
    "the campaign": ("skuld_py.simulation.campaign", "import time"),
    "the runtime": ("skuld_py.runtime.clock", "import time, random\nx = random.random() + hash('x')"),
}

CLOCKS_BROKEN = {
    "the module": ("skuld_py.worker.run", "import time"),
    "a name of it": ("skuld_py.client.client", "def f():\n    from time import monotonic"),
}

CLOCKS_KEPT = {
    "the clocks themselves": ("skuld_py.client.steady", "import time"),
    "where no task runs": ("skuld_py.cli.top", "import time"),
    "a namesake": ("skuld_py.output.store", "from datetime import time"),
}

BROKEN = [(rules.layers, LAYERS_BROKEN), (rules.wings, WINGS_BROKEN), (rules.spark, SPARK_BROKEN),
          (rules.purity, PURITY_BROKEN), (rules.clocks, CLOCKS_BROKEN)]
KEPT = [(rules.layers, LAYERS_KEPT), (rules.wings, WINGS_KEPT), (rules.spark, SPARK_KEPT),
        (rules.purity, PURITY_KEPT), (rules.clocks, CLOCKS_KEPT)]


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [
        pytest.param(rule, *planted, id=f"{rule.__name__}: {name}")
        for rule, cases in BROKEN
        for name, planted in cases.items()
    ],
)
def test_a_planted_offence_is_reported_once(rule: Rule, module: str, source: str) -> None:
    assert len(rule(module, source)) == 1


@pytest.mark.parametrize(
    ("rule", "module", "source"),
    [
        pytest.param(rule, *clean, id=f"{rule.__name__}: {name}")
        for rule, cases in KEPT
        for name, clean in cases.items()
    ],
)
def test_a_clean_module_is_left_alone(rule: Rule, module: str, source: str) -> None:
    assert rule(module, source) == []


def test_a_complaint_names_the_place_and_both_rooms() -> None:
    complaint = rules.layers("skuld_py.model.task", "\nfrom skuld_py.node import node")

    assert complaint == ["skuld_py.model.task:2: model may not import node"]
