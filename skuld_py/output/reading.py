"""What a completed task wrote, for readers: exactly the files that its completion names.

A reader that finds a completed task not published yet publishes it, if it may write there: so what it has read
stays where it read it (``protocol``). Where it may not, or the store cannot rename, it reads in the claim's own
place.

Paths and names come from a completion. Who reads them trusts the workers that may complete tasks.
"""

from __future__ import annotations

import hashlib
from typing import Any

import attrs

from skuld_py.calls.outputs import OutputFile, Reference, Written
from skuld_py.calls.results import decode_result
from skuld_py.errors import Refused
from skuld_py.model.ids import from_text, none_said, to_text
from skuld_py.model.task import Task
from skuld_py.output import manifest as manifests
from skuld_py.output.manifest import Manifest
from skuld_py.output.performing import Cluster, Performer, knowing, store_of
from skuld_py.output.places import MANIFEST, claim_place, published_place
from skuld_py.output.protocol import settle
from skuld_py.output.store import Store

VALUE_BYTES_MAX = 256 << 20
_LOOKS = 3


@attrs.frozen
class Found:
    """An output where it stands."""

    place: str
    manifest: Manifest


def output_files(task: Task | bytes | str, name: str | None = None, *,
                 client: Cluster | None = None) -> list[OutputFile]:
    """The files that a completed task wrote, with their whole paths. Refuses as ``read_output`` does."""
    found = found_output(task, name, client)
    return [attrs.evolve(file, path=f"{found.place}/{file.path}") for file in found.manifest.files]


def read_reference(reference: Reference) -> Any:
    """The value that ``Output.reference`` stored. Raises ``Refused``: ``damaged_output`` when it is not there, or
    not what was stored."""
    if reference.bytes > VALUE_BYTES_MAX:
        raise Refused("bad_output", f"reference: {reference.bytes} bytes; the most is {VALUE_BYTES_MAX}")
    store = store_of(reference.path)
    places = (published_place(reference.path, reference.task),
              claim_place(reference.path, reference.task, reference.token))
    for place in (*places, places[0]):  # it may move meanwhile
        content = store.read(f"{place}/{reference.file}", reference.bytes)
        if content is not None and hashlib.sha256(content).hexdigest() == reference.sha256:
            return decode_result(content)
    raise Refused("damaged_output", f"reference: {reference.file} of task {reference.task} is not below"
                  f" {reference.path}, or is not what was stored")


def found_output(task: Task | bytes | str, name: str | None, client: Cluster | None) -> Found:
    """Where an output stands, and its manifest."""
    known = _task_of(task, client)
    written = chosen(known, name)
    store = store_of(written.path)
    performer = Performer(store, written.path, knowing(known))
    for _ in range(_LOOKS):  # it may be published between two looks
        is_published = performer.perform(settle(to_text(known.id)))
        found = _looked_up(store, known, written, is_published=is_published)
        if found is not None:
            return found
    raise Refused("damaged_output", f"output: {written.name} of task {to_text(known.id)} is not below"
                  f" {written.path}, or its manifest is not the one that was completed")


def chosen(task: Task, name: str | None) -> Written:
    """The output of this name; the only one, without a name."""
    if task.completed_token is None:
        raise Refused("not_ended", f"task: {to_text(task.id)} is not completed, and nothing of it is visible")
    fitting = [written for written in task.outputs if name is None or written.name == name]
    if len(fitting) == 1:
        found: Written = fitting[0]
        return found
    names = ", ".join(written.name for written in task.outputs) or "none"
    raise Refused("no_output", f"name: {name!r}; the outputs of task {to_text(task.id)} are: {names}")


def _task_of(task: Task | bytes | str, client: Cluster | None) -> Task:
    if isinstance(task, Task):
        return task
    if client is not None:
        return _only(client, task)
    from skuld_py.client.client import Client

    with Client() as made:
        return _only(made, task)


def _only(client: Cluster, task: bytes | str) -> Task:
    found = client.get_many([task])
    if not found:
        raise Refused("no_such_task", none_said([from_text(task) if isinstance(task, str) else task], "task"))
    return found[0]


def _looked_up(store: Store, task: Task, written: Written, *, is_published: bool) -> Found | None:
    """What stands there; None when it is not what it ought to be. A published one of another claim's was completed
    by that one, see ``protocol``, and stands."""
    text, token = to_text(task.id), task.completed_token or 0
    place = published_place(written.path, text) if is_published else claim_place(written.path, text, token)
    content = store.read(f"{place}/{MANIFEST}", manifests.BYTES_MAX)
    if content is None:
        return None
    manifest = Manifest.decode(content, place)
    is_whole = hashlib.sha256(content).hexdigest() == written.sha256
    is_others = is_published and manifest.token != token
    return Found(place, manifest) if manifest.task == text and (is_whole or is_others) else None
