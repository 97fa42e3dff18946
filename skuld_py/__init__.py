"""Skuld: a replicated, leased task queue for Spark users.

How to read the code, inside out: ``errors`` and ``config``; ``crdt`` (lattices); ``model`` (nouns, messages,
events); ``partition`` (one partition: data, copies, elections); ``cluster`` (the coordination log, and placement);
``node`` (one process as one machine, ``Node.step(now_ms, event)``); ``wire`` (bytes and messages); ``runtime``
(the loop and its adapters: ZeroMQ, LMDB, ZooKeeper); ``calls`` (what tasks and results hold). Users import
``client`` and ``worker`` through this module.
``workflow`` is what workflows are, as values, and which slots run their steps.
``output`` is what tasks write and when it is visible. ``datasource`` is the queue as Spark's tables and streams.
``verbs`` are what a client can do, told once for ``gateway`` (HTTP) and ``cli``; ``archive`` keeps ended tasks.
``embedded`` runs Java and ZooKeeper on one machine, for ``demo`` and others. ``simulation`` runs whole clusters in
virtual time, and is no part of a wheel; ``testing`` is a cluster of one node in memory, for users' own tests.
``extras`` says what a plain install lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_PUBLIC = {
    "Client": "skuld_py.client.client",
    "AsyncClient": "skuld_py.client.async_client",
    "Claim": "skuld_py.client.claims",
    "Retry": "skuld_py.client.options",
    "Snooze": "skuld_py.worker.directives",
    "Dead": "skuld_py.worker.directives",
    "Schedule": "skuld_py.client.scheduling",
    "Task": "skuld_py.model.task",
    "TaskId": "skuld_py.model.ids",
    "call": "skuld_py.calls.payloads",
    "sql": "skuld_py.calls.kinds.sql",
    "script": "skuld_py.calls.kinds.script",
    "stream": "skuld_py.calls.kinds.stream",
    "register": "skuld_py.datasource.spark_source",
    "task": "skuld_py.worker.registry",
    "using": "skuld_py.worker.sending",
    "Middleware": "skuld_py.worker.middleware",
    "add_middleware": "skuld_py.worker.middleware",
    "TaskContext": "skuld_py.worker.context",
    "WorkerStatus": "skuld_py.client.attending",
    "Output": "skuld_py.output.output",
    "OutputFile": "skuld_py.calls.outputs",
    "Reference": "skuld_py.calls.outputs",
    "output_files": "skuld_py.output.reading",
    "read_output": "skuld_py.output.spark_frames",
    "read_reference": "skuld_py.output.reading",
    "sweep_output": "skuld_py.output.sweeping",
    "write_jdbc": "skuld_py.output.spark_jdbc",
    "Workflow": "skuld_py.workflow.definition.builder",
    "OffsetsAdapter": "skuld_py.workflow.definition.sources",
    "Page": "skuld_py.workflow.definition.sources",
    "read_part": "skuld_py.worker.spark_parts",
    "part_credentials": "skuld_py.worker.workflows.parts",
    "SkuldError": "skuld_py.errors",
    "Refused": "skuld_py.errors",
    "Fenced": "skuld_py.errors",
    "Uncertain": "skuld_py.errors",
}

__all__ = ["AsyncClient", "Claim", "Client", "Dead", "Fenced", "Middleware", "OffsetsAdapter", "Output",
           "OutputFile", "Page", "Reference", "Refused", "Retry", "Schedule", "SkuldError", "Snooze", "Task",
           "TaskContext", "TaskId", "Uncertain", "WorkerStatus", "Workflow", "__version__", "add_middleware",
           "call", "output_files", "part_credentials", "read_output", "read_part", "read_reference", "register",
           "script", "sql", "stream", "sweep_output", "task", "using", "write_jdbc"]

if TYPE_CHECKING:
    from skuld_py.calls.kinds.script import script
    from skuld_py.calls.kinds.sql import sql
    from skuld_py.calls.kinds.stream import stream
    from skuld_py.calls.outputs import OutputFile, Reference
    from skuld_py.calls.payloads import call
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.attending import WorkerStatus
    from skuld_py.client.claims import Claim
    from skuld_py.client.client import Client
    from skuld_py.client.options import Retry
    from skuld_py.client.scheduling import Schedule
    from skuld_py.datasource.spark_source import register
    from skuld_py.errors import Fenced, Refused, SkuldError, Uncertain
    from skuld_py.model.ids import TaskId
    from skuld_py.model.task import Task
    from skuld_py.output.output import Output
    from skuld_py.output.reading import output_files, read_reference
    from skuld_py.output.spark_frames import read_output
    from skuld_py.output.spark_jdbc import write_jdbc
    from skuld_py.output.sweeping import sweep_output
    from skuld_py.worker.context import TaskContext
    from skuld_py.worker.directives import Dead, Snooze
    from skuld_py.worker.middleware import Middleware, add_middleware
    from skuld_py.worker.registry import task
    from skuld_py.worker.sending import using
    from skuld_py.worker.spark_parts import read_part
    from skuld_py.worker.workflows.parts import part_credentials
    from skuld_py.workflow.definition.builder import Workflow
    from skuld_py.workflow.definition.sources import OffsetsAdapter, Page


def __getattr__(name: str) -> Any:
    """Import public names when first used, so that a client does not load a worker's Spark."""
    if name not in _PUBLIC:
        raise AttributeError(f"module 'skuld_py' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PUBLIC[name]), name)
