"""``skuld workflow``: definitions of workflows, and the workflows of a cluster.

Each command stands in a file of its own and is added here. What a definition is, ``definitions`` reads.
"""

from __future__ import annotations

import click

from skuld_py.cli.workflow_check import check
from skuld_py.cli.workflow_graph import graph


@click.group()
def workflow() -> None:
    """Check and draw the definition of a workflow.

    A definition is a file of JSON or TOML, or a name in a Python module, as acme.flows:census.
    """


for command in (check, graph):
    workflow.add_command(command)
