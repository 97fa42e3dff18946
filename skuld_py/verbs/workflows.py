"""The verbs about workflows and about the coordination log, and their documents.

On the command line they are words of ``skuld workflow``, which reads definitions from files as well; so these rows
are for HTTP alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from typing_extensions import TypedDict

from skuld_py.verbs.options import LOG_WAIT_S, SAFE_MAX, WAIT, Line, Option, Plain, Request, Whole
from skuld_py.verbs.schemas import Says
from skuld_py.verbs.verb import Scope, by_hand, verb

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.flows import LogLine, WorkflowStatus


class WorkflowStepDocument(TypedDict):
    """A step, as slots are given to it."""

    name: str
    kind: Annotated[str, Says("input, function or, of each leaf, output.")]
    least: int
    most: int
    tags: list[str]
    percentage: int
    flux: str


class WorkflowDocument(TypedDict):
    """What the coordination log knows of a workflow."""

    id: str
    state: Annotated[str, Says("live, completed or killed.")]
    digest: Annotated[str, Says("Of its definition.")]
    plan: Annotated[str, Says("The id of the task whose payload is the definition.")]
    submitted: Annotated[int, Says("The position at which it was submitted.")]
    since: Annotated[int, Says("The position at which it came to be so.")]
    spreading: str
    percentage: int
    reason: Annotated[str, Says("Why it was killed.")]
    steps: Annotated[list[WorkflowStepDocument], Says("Of a live one that was asked for by its id.")]
    exhausted: Annotated[list[str], Says("Inputs that bring no more.")]
    sealed: Annotated[list[str], Says("Outputs that are whole.")]
    left: Annotated[int, Says("Of a killed one that was asked for by its id, its tasks that have not ended.")]


class WorkflowsDocument(TypedDict):
    """The workflows that the log knows, in the order of their submission, without their steps."""

    workflows: list[WorkflowDocument]


class LogEntryDocument(TypedDict):
    """An entry of the coordination log, and what became of it."""

    position: int
    time_ms: Annotated[int, Says("When the node that tells of it played it; 0: before it began.")]
    kind: Annotated[str, Says("The command; empty where it cannot be read.")]
    writer: str
    outcome: Annotated[str, Says("applied, unchanged, repeated, late, refused or failed; or collected, which"
                                 " stands for all entries up to here that cannot be read any more.")]
    reason: Annotated[str, Says("Why it was refused, or failed.")]
    changed: Annotated[dict[str, str], Says("By the names of things, what they are now.")]


def document(status: WorkflowStatus) -> WorkflowDocument:
    """A workflow as JSON has it."""
    steps = [WorkflowStepDocument(name=each.name, kind=each.kind, least=each.least, most=each.most,
                                  tags=[*each.tags], percentage=each.percentage, flux=each.flux)
             for each in status.steps]
    return WorkflowDocument(
        id=status.id, state=status.state, digest=status.digest, plan=status.plan, submitted=status.submitted,
        since=status.since, spreading=status.spreading, percentage=status.percentage, reason=status.reason,
        steps=steps, exhausted=[*status.exhausted], sealed=[*status.sealed],
        left=status.left)


def entry(line: LogLine) -> LogEntryDocument:
    """An entry as JSON has it."""
    return LogEntryDocument(position=line.position, time_ms=line.time_ms, kind=line.kind, writer=line.writer,
                            outcome=line.outcome, reason=line.reason, changed=dict(line.changed))


WORKFLOW = Option("workflow", Line(1, 100, "census"), told="Its id.")


@verb("POST /v1/workflows/submit", Scope.ENQUEUE,
      Request("SubmitWorkflow", "A workflow that is to run.", (
          Option("definition", Plain.OBJECT, told="Its definition, as 'skuld workflow check' reads it."),)),
      WorkflowDocument, "Have a workflow run. Submitted again with the same content nothing happens twice.")
async def submit_workflow(client: AsyncClient, definition: Mapping[str, Any]) -> WorkflowDocument:
    """Submit it."""
    return document(await client.submit_workflow(definition))


@verb("POST /v1/workflows/kill", Scope.ENQUEUE,
      Request("KillWorkflow", "A workflow that is to end before it is complete.", (
          WORKFLOW, Option("reason", Line(0, 250), "", told="Why; it is shown with the workflow."))),
      WorkflowDocument, "End a workflow before it is complete. One that has ended stays as it is.")
async def kill_workflow(client: AsyncClient, workflow: str, reason: str) -> WorkflowDocument:
    """End it."""
    return document(await client.kill_workflow(workflow, reason))


@verb("GET /v1/workflows/status", Scope.READ, Request("WorkflowName", "A workflow.", (WORKFLOW,)),
      WorkflowDocument, "A workflow with its steps. 404 when it was never submitted, or ended long ago.")
async def workflow(client: AsyncClient, workflow: str) -> WorkflowDocument:
    """How it is."""
    return document(await client.workflow(workflow))


@verb("GET /v1/workflows", Scope.READ, Request("AllWorkflows", "Nothing can be asked for."), WorkflowsDocument,
      "The workflows that the log knows: those that live, and those that ended not long ago.")
async def workflows(client: AsyncClient) -> WorkflowsDocument:
    """All of them."""
    return WorkflowsDocument(workflows=[*map(document, await client.workflows())])


await_workflow = by_hand(
    "await_workflow", "GET /v1/workflows/await", Scope.READ,
    Request("AwaitWorkflow", "A workflow, and how long to wait for its end.", (
        WORKFLOW, WAIT._replace(told="The gateway waits no longer than its own limit."))),
    WorkflowDocument, "A workflow once it has ended, or how it is when the wait is over.")

follow_log = by_hand(
    "follow_log", "GET /v1/log", Scope.READ,
    Request("FollowCoordination", "From where to follow the coordination log, and for how long.", (
        Option("position", Whole(0, SAFE_MAX), 0, field="from",
               told="The first position; behind that of the header Last-Event-ID, if there is one."),
        WAIT._replace(
            default=LOG_WAIT_S, told="How long to follow; the gateway follows no longer than its own limit."))),
    LogEntryDocument, "The coordination log as server-sent events, one for each entry; its position is its id.",
    is_events=True)

VERBS = (submit_workflow, kill_workflow, workflow, workflows, await_workflow, follow_log)
