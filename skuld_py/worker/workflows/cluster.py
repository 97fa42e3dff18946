"""The cluster as workflows' parts of a worker ask it: a client."""

from __future__ import annotations

from skuld_py.client.client import Client
from skuld_py.worker.kinds.allowed import apps_allowed
from skuld_py.worker.workflows.finding import found
from skuld_py.worker.workflows.flow import Flow
from skuld_py.worker.workflows.plans import Standing


class ClientCluster:
    """By a client, whose owner closes it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.get = client.get
        self.get_many = client.get_many
        self.enqueue_many = client.enqueue_many
        self.kill_workflow = client.kill_workflow
        self.exhaust_input = client.exhaust_input
        self.seal_output = client.seal_output

    def standing(self, workflow: str) -> Standing:
        """By the log."""
        known = self.client.workflow(workflow)
        return Standing(known.state, known.plan, known.digest, known.reason, known.exhausted,
                        known.sealed)


def flow_of(client: Client) -> Flow:
    """What a worker does around segments, by this client and with the functions of its modules."""
    return Flow(ClientCluster(client), lambda name: found(name, apps_allowed()))
