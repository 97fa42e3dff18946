"""``skuld workflow``: definitions of workflows, and the workflows of a cluster.

Each command stands in a file of its own and is added here. What a definition is, ``definitions`` reads.
"""

from __future__ import annotations

import click

from skuld_py.cli.groups import Words
from skuld_py.cli.workflow_await import await_workflow
from skuld_py.cli.workflow_check import check
from skuld_py.cli.workflow_graph import graph
from skuld_py.cli.workflow_kill import kill
from skuld_py.cli.workflow_list import list_workflows
from skuld_py.cli.workflow_status import status
from skuld_py.cli.workflow_submit import submit

_MEANT = {"run": "submit", "start": "submit", "stop": "kill", "cancel": "kill", "end": "kill", "wait": "await",
          "show": "status", "watch": "await", "draw": "graph", "validate": "check", "ls": "list"}
"""What else is asked for, and the word that does it."""


@click.group(cls=Words, meant=_MEANT)
def workflow() -> None:
    """Check and draw the definition of a workflow; submit it, watch it, wait for it, end it.

    A definition is a file of JSON or TOML, or a name in a Python module, as acme.flows:census.
    """


for command in (check, graph, submit, status, list_workflows, await_workflow, kill):
    workflow.add_command(command)
