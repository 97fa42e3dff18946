"""Which claim's output of a task is visible, decided once: the steps, each an operation that somebody performs.

A task's completion says which claim's output counts. That alone is no decision for good: a completion that was
under way for long may become known late and be earlier than the one that stood (``model.outcomes``). So the
decision is the rename of a claim's directory to the task's, which the file system does once: the first of those
that the cluster named when it was asked stands. Everybody who meets a task that is completed and not published
publishes it: its worker, a reader, another task's worker that sweeps the same path. So a crash between two steps
leaves nothing that the next one who looks does not mend.

Invariants, of any number of claims, readers and sweepers of one task, each of which may end at any step:

* What is visible is the whole output of one claim, which had completed the task; and it stays that one's.
* Nothing is deleted that may become visible: of a task that has not been published only what the cluster holds as
  completed for long may lose the directories of earlier claims.
* A directory that nobody knows is deleted only when that was asked for, it is old, and its function had not ended:
  an age alone proves nothing, and what was sealed may be named by a completion that is archived.

Where a store cannot rename (object stores), nothing is published, and readers go by the completion alone.

Rejected: a manifest in a common directory, as the decision; plain readers of the dataset would need to know it.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class Standing:
    """What the cluster says of a task. ``token``: the claim that completed it. ``is_written``: its completion
    names an output at this path. ``is_old``: it has been completed for long. ``is_known``: there is such a
    task."""

    token: int | None = None
    is_written: bool = False
    is_old: bool = False
    is_known: bool = True


@attrs.frozen
class Ask:
    """Ask the cluster; gives a ``Standing``."""

    task: str


@attrs.frozen
class IsPublished:
    """Whether the task's output stands where plain readers look."""

    task: str


@attrs.frozen
class Publish:
    """Rename a claim's directory to the task's, unless that is there already."""

    task: str
    token: int


@attrs.frozen
class ListClaims:
    """All directories of claims, as ``Claims``."""


@attrs.frozen
class IsAbandoned:
    """Whether a claim's directory was not sealed, and nothing in it has changed for long."""

    task: str
    token: int


@attrs.frozen
class Delete:
    """Delete a claim's directory; gives whether it was there."""

    task: str
    token: int


Operation = Ask | IsPublished | Publish | ListClaims | IsAbandoned | Delete
Steps = Generator[Operation, Any, T]
Claims = Sequence[tuple[str, Sequence[int]]]


@attrs.frozen
class Swept:
    """What a sweep did: tasks whose output is published now and was not before, and how many directories of claims
    were deleted; ``left``: those that no rule lets go, as ``TASK/TOKEN``."""

    published: tuple[str, ...] = ()
    deleted: int = 0
    left: tuple[str, ...] = ()


def settle(task: str) -> Steps[bool]:
    """Publish what the task's completion names; whether the task's output is published now."""
    if (yield IsPublished(task)):
        return True
    standing = yield Ask(task)
    if standing.token is None or not standing.is_written:
        return False
    yield Publish(task, standing.token)
    return bool((yield IsPublished(task)))


def sweep(*, takes_unknown: bool = False) -> Steps[Swept]:
    """Publish what is completed, and delete what lost. ``takes_unknown``: also what was abandoned by tasks that
    the cluster does not know."""
    published: list[str] = []
    left: list[str] = []
    deleted = 0
    for task, tokens in (yield ListClaims()):
        was_published = yield IsPublished(task)
        is_published = was_published or (yield from settle(task))
        if is_published and not was_published:
            published.append(task)
        for token in tokens:
            if (yield from _has_lost(task, token, is_published, takes_unknown)):
                deleted += bool((yield Delete(task, token)))
            else:
                left.append(f"{task}/{token}")
    return Swept(tuple(published), deleted, tuple(left))


def _has_lost(task: str, token: int, is_published: bool, takes_unknown: bool) -> Steps[bool]:
    """Whether a claim's directory will never be visible."""
    if is_published:
        return True
    standing = yield Ask(task)
    if not standing.is_known:
        return takes_unknown and bool((yield IsAbandoned(task, token)))
    return standing.token is not None and standing.is_old and token < standing.token
