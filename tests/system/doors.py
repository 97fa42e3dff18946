"""The four ways to a cluster behind one face: the blocking client, the awaited one, HTTP, and the command line.

Each speaks as its users do: HTTP by plain requests, the command line by its JSON. A refusal is ``Told``, with the
code that all of them have in common.
"""

from __future__ import annotations

import asyncio
import base64
import inspect
import json
import time
from collections.abc import Sequence
from typing import Any, Protocol

import attrs
from click.testing import CliRunner, Result

from gateway.asking import Answer, Asker
from skuld_py import AsyncClient, Client, Retry, SkuldError
from skuld_py.cli.main import main
from skuld_py.client.claims import ClaimName
from skuld_py.model.ids import from_text
from skuld_py.model.limiting import QueueLimits
from skuld_py.model.state import State
from skuld_py.model.task import Task


class Told(Exception):
    """It was refused, with this code."""


@attrs.frozen
class Held:
    """A claim."""

    id: str
    token: int
    payload: bytes
    proof: str


@attrs.frozen
class View:
    """A task as all doors show it."""

    id: str
    queue: str
    priority: int
    payload: bytes
    state: str
    death: str | None
    result: bytes | None
    error: bytes | None
    outcomes: tuple[str, ...]
    logs: tuple[tuple[bytes, ...], ...]
    headers: dict[str, str]


Options = dict[str, Any]
"""``priority``, ``id``, ``after_s`` and ``within_s`` (from now), ``max_attempts``, ``backoff_s``, ``headers``,
``deps``, ``on_dep_failure``, ``dep_wait_s``, ``w``."""


class Door(Protocol):
    """What each of them can do."""

    def enqueue(self, queue: str, payload: bytes, **options: Any) -> str: ...
    def claim(self, queue: str, n: int = 1, lease_s: float = 30, wait_s: float = 0) -> list[Held]: ...
    def renew(self, held: Held, lease_s: float) -> None: ...
    def append(self, held: Held, seq: int, entry: bytes) -> int: ...
    def complete(self, held: Held, result: bytes = b"") -> None: ...
    def fail(self, held: Held, error: str, retry_in_s: float | None = None) -> None: ...
    def snooze(self, held: Held, delay_s: float) -> None: ...
    def release(self, held: Held) -> None: ...
    def cancel(self, task_id: str) -> None: ...
    def retry(self, task_id: str) -> None: ...
    def get(self, task_id: str) -> View: ...
    def ends(self, task_id: str, wait_s: float) -> tuple[str, bytes | None]: ...
    def list(self, queue: str) -> Sequence[tuple[str, bytes]]: ...
    def count(self, queue: str) -> int: ...
    def depths(self, queue: str) -> dict[str, int]: ...
    def pause(self, queue: str) -> Sequence[str]: ...
    def resume(self, queue: str) -> Sequence[str]: ...
    def paused(self) -> Sequence[str]: ...
    def limit(self, queue: str, **limits: Any) -> Sequence[str]: ...
    def unlimit(self, queue: str) -> Sequence[str]: ...
    def limits(self, queue: str) -> dict[str, int]: ...
    def put_schedule(self, name: str, queue: str, payload: bytes, every_s: float) -> Sequence[str]: ...
    def schedules(self) -> Sequence[str]: ...
    def remove_schedule(self, name: str) -> Sequence[str]: ...


def in_time(options: Options) -> Options:
    """With the times that are meant, in seconds since 1970."""
    made = dict(options)
    for name, distance in (("not_before", "after_s"), ("expires", "within_s")):
        if distance in made:
            made[name] = time.time() + made.pop(distance)
    return made


# -- Python ---------------------------------------------------------------------------------------------


class Python:
    """A client of the package; one that is awaited is run to the end of each call."""

    def __init__(self, client: Client | AsyncClient, runner: asyncio.Runner) -> None:
        self._client: Any = client
        self._runner = runner

    def _call(self, verb: str, *args: Any, **kwargs: Any) -> Any:
        try:
            answer = getattr(self._client, verb)(*args, **kwargs)
            if inspect.isasyncgen(answer):
                return self._runner.run(_listed(answer))
            return self._runner.run(answer) if inspect.iscoroutine(answer) else answer
        except SkuldError as error:
            raise Told(error.code) from error

    def enqueue(self, queue: str, payload: bytes, **options: Any) -> str:
        given = in_time(options)
        policy = {name: given.pop(name) for name in ("max_attempts", "backoff_s") if name in given}
        if policy:
            given["retry"] = Retry(**policy)
        return str(self._call("enqueue", queue, payload, **given))

    def claim(self, queue: str, n: int = 1, lease_s: float = 30, wait_s: float = 0) -> list[Held]:
        return [Held(str(held.id), held.token, held.payload, held.proof.hex())
                for held in self._call("claim", queue, n=n, lease_s=lease_s, wait_s=wait_s)]

    def renew(self, held: Held, lease_s: float) -> None:
        self._call("renew", _name(held), lease_s=lease_s)

    def append(self, held: Held, seq: int, entry: bytes) -> int:
        return int(self._call("update", _name(held), entry, seq=seq))

    def complete(self, held: Held, result: bytes = b"") -> None:
        self._call("complete", _name(held), result)

    def fail(self, held: Held, error: str, retry_in_s: float | None = None) -> None:
        self._call("fail", _name(held), error, retry_in_s=retry_in_s)

    def snooze(self, held: Held, delay_s: float) -> None:
        self._call("snooze", _name(held), delay_s)

    def release(self, held: Held) -> None:
        self._call("release", _name(held))

    def cancel(self, task_id: str) -> None:
        self._call("cancel", task_id)

    def retry(self, task_id: str) -> None:
        self._call("retry", task_id)

    def get(self, task_id: str) -> View:
        task: Task = self._call("get", task_id)
        return View(task_id, task.queue, task.priority, task.payload, task.state, task.death or None, task.result,
                    task.error, tuple(claim.outcome for claim in task.claims),
                    tuple(claim.log for claim in task.claims), dict(task.headers))

    def ends(self, task_id: str, wait_s: float) -> tuple[str, bytes | None]:
        end, = self._call("ends", [task_id], wait_s=wait_s)
        return end.state, end.result

    def list(self, queue: str) -> Sequence[tuple[str, bytes]]:
        return [(str(task.id), task.payload) for task in self._call("list", queue)]

    def count(self, queue: str) -> int:
        return int(self._call("count", queue))

    def depths(self, queue: str) -> dict[str, int]:
        return dict(attrs.asdict(self._call("depths")[queue]))

    def pause(self, queue: str) -> Sequence[str]:
        return [*self._call("pause", queue)]

    def resume(self, queue: str) -> Sequence[str]:
        return [*self._call("resume", queue)]

    def paused(self) -> Sequence[str]:
        return [*self._call("paused")]

    def limit(self, queue: str, **limits: Any) -> Sequence[str]:
        return [*self._call("set_limits", queue, **limits)]

    def unlimit(self, queue: str) -> Sequence[str]:
        return [*self._call("remove_limits", queue)]

    def limits(self, queue: str) -> dict[str, int]:
        found: dict[str, QueueLimits] = self._call("limits", queue)
        return found[queue].given if found else {}

    def put_schedule(self, name: str, queue: str, payload: bytes, every_s: float) -> Sequence[str]:
        return [*self._call("put_schedule", name, queue, payload, every_s=every_s)]

    def schedules(self) -> Sequence[str]:
        return [each.name for each in self._call("schedules")]

    def remove_schedule(self, name: str) -> Sequence[str]:
        return [*self._call("remove_schedule", name)]


async def _listed(items: Any) -> list[Any]:
    return [item async for item in items]


def _name(held: Held) -> ClaimName:
    return ClaimName(from_text(held.id), held.token, held.proof)


# -- JSON: HTTP and the command line --------------------------------------------------------------------


def _bytes_of(document: dict[str, Any], name: str) -> bytes | None:
    encoded = document.get(f"{name}_base64")
    return None if encoded is None else base64.b64decode(encoded)


def _view_of(document: dict[str, Any]) -> View:
    claims = document["claims"]
    return View(document["id"], document["queue"], document["priority"], _bytes_of(document, "payload") or b"",
                document["state"], document["death"], _bytes_of(document, "result"), _bytes_of(document, "error"),
                tuple(claim["outcome"] for claim in claims),
                tuple(tuple(base64.b64decode(line["data_base64"]) for line in claim["log"]) for claim in claims),
                document["headers"])


def _held_of(document: dict[str, Any]) -> Held:
    return Held(document["id"], int(document["token"]), _bytes_of(document, "payload") or b"", document["proof"])


def _named(held: Held) -> dict[str, str]:
    return {"id": held.id, "token": str(held.token), "proof": held.proof}


class Http:
    """The gateway."""

    def __init__(self, asker: Asker) -> None:
        self._asker = asker

    def _post(self, path: str, document: Options) -> Any:
        body = json.dumps(document).encode()
        return _good(self._asker.ask("POST", f"/v1/{path}", body, content_type="application/json")).json

    def _get(self, path: str) -> Answer:
        return _good(self._asker.get(f"/v1/{path}"))

    def enqueue(self, queue: str, payload: bytes, **options: Any) -> str:
        given = in_time(options)
        for name in ("not_before", "expires"):
            if name in given:
                given[f"{name}_ms"] = round(given.pop(name) * 1000)
        policy = {name: given.pop(name) for name in ("max_attempts", "backoff_s") if name in given}
        document = {"queue": queue, "payload_base64": base64.b64encode(payload).decode(), **given}
        return str(self._post("tasks/enqueue", {**document, **({"retry": policy} if policy else {})})["id"])

    def claim(self, queue: str, n: int = 1, lease_s: float = 30, wait_s: float = 0) -> list[Held]:
        asked = {"queue": queue, "n": n, "lease_s": lease_s, "wait_s": wait_s}
        return [_held_of(each) for each in self._post("tasks/claim", asked)["claims"]]

    def _of(self, verb: str, held: Held, **more: Any) -> Any:
        return self._post(f"tasks/{verb}", {**_named(held), **more})

    def renew(self, held: Held, lease_s: float) -> None:
        self._of("renew", held, lease_s=lease_s)

    def append(self, held: Held, seq: int, entry: bytes) -> int:
        entries = [{"data_base64": base64.b64encode(entry).decode()}]
        return int(self._of("append", held, seq=seq, entries=entries)["next_seq"])

    def complete(self, held: Held, result: bytes = b"") -> None:
        self._of("complete", held, result_base64=base64.b64encode(result).decode())

    def fail(self, held: Held, error: str, retry_in_s: float | None = None) -> None:
        self._of("fail", held, error=error, **({} if retry_in_s is None else {"retry_in_s": retry_in_s}))

    def snooze(self, held: Held, delay_s: float) -> None:
        self._of("snooze", held, delay_s=delay_s)

    def release(self, held: Held) -> None:
        self._post("tasks/release", {"claims": [_named(held)]})

    def cancel(self, task_id: str) -> None:
        self._post("tasks/cancel", {"ids": [task_id]})

    def retry(self, task_id: str) -> None:
        self._post("tasks/retry", {"ids": [task_id]})

    def get(self, task_id: str) -> View:
        return _view_of(self._get(f"tasks/{task_id}").json)

    def ends(self, task_id: str, wait_s: float) -> tuple[str, bytes | None]:
        end, = self._post("tasks/results", {"ids": [task_id], "wait_s": wait_s})["ends"]
        return end["state"] or "", _bytes_of(end, "result")

    def list(self, queue: str) -> Sequence[tuple[str, bytes]]:
        lines = self._get(f"tasks/list?queue={queue}").lines
        return [(line["id"], _bytes_of(line, "payload") or b"") for line in lines]

    def count(self, queue: str) -> int:
        return int(self._get(f"tasks/count?queue={queue}").json["count"])

    def depths(self, queue: str) -> dict[str, int]:
        row = next(row for row in self._get("queues").json["queues"] if row["queue"] == queue)
        return {name: number for name, number in row.items() if name != "queue"}

    def pause(self, queue: str) -> Sequence[str]:
        return [*self._post("queues/pause", {"queue": queue})["missing"]]

    def resume(self, queue: str) -> Sequence[str]:
        return [*self._post("queues/resume", {"queue": queue})["missing"]]

    def paused(self) -> Sequence[str]:
        return [*self._get("queues/paused").json["queues"]]

    def limit(self, queue: str, **limits: Any) -> Sequence[str]:
        return [*self._post("queues/limit", {"queue": queue, **limits})["missing"]]

    def unlimit(self, queue: str) -> Sequence[str]:
        return [*self._post("queues/unlimit", {"queue": queue})["missing"]]

    def limits(self, queue: str) -> dict[str, int]:
        rows = self._get(f"queues/limits?queue={queue}").json["queues"]
        return {name: number for row in rows for name, number in row.items() if name != "queue"}

    def put_schedule(self, name: str, queue: str, payload: bytes, every_s: float) -> Sequence[str]:
        document = {"name": name, "queue": queue, "payload": payload.decode(), "every_s": every_s}
        return [*self._post("schedules/put", document)["missing"]]

    def schedules(self) -> Sequence[str]:
        return [each["name"] for each in self._get("schedules").json["schedules"]]

    def remove_schedule(self, name: str) -> Sequence[str]:
        return [*self._post("schedules/remove", {"name": name})["missing"]]


def _good(answer: Answer) -> Answer:
    if answer.status != 200:
        raise Told(answer.json["code"])
    return answer


def _token(held: Held) -> str:
    return f"{held.token}-{held.proof}"


class Shell:
    """The command line."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self._nodes = ",".join(nodes)

    def _run(self, *words: object) -> list[Any]:
        """The documents that a verb prints, one a line."""
        verb, *others = map(str, words)
        given = [*verb.split(), "--nodes", self._nodes, "--json", *others]
        ran = CliRunner().invoke(main, given, prog_name="skuld")
        if ran.exit_code and not self._is_of_an_end(ran):
            raise Told(json.loads(ran.stderr.splitlines()[-1])["code"])
        return [json.loads(line) for line in ran.stdout.splitlines()]

    @staticmethod
    def _is_of_an_end(ran: Result) -> bool:
        """Whether it tells how all tasks ended, and fails as some did."""
        return bool(ran.stdout) and json.loads(ran.stderr.splitlines()[-1])["code"] == "not_completed"

    def enqueue(self, queue: str, payload: bytes, **options: Any) -> str:
        words: list[object] = []
        for name, value in options.items():
            option, shown = _NAMES.get(name, (name.replace("_", "-"), "{}"))
            many = value if isinstance(value, list) else [value]
            for each in map("=".join, value.items()) if isinstance(value, dict) else many:
                words += [f"--{option}", shown.format(each)]
        return str(self._run("enqueue", *words, "--", queue, payload.decode())[0]["id"])

    def claim(self, queue: str, n: int = 1, lease_s: float = 30, wait_s: float = 0) -> list[Held]:
        found, = self._run("claim", queue, "-n", n, "--lease", f"{lease_s}s", "--wait", f"{wait_s}s")
        return [_held_of(each) for each in found["claims"]]

    def renew(self, held: Held, lease_s: float) -> None:
        self._run("renew", held.id, _token(held), "--lease", f"{lease_s}s")

    def append(self, held: Held, seq: int, entry: bytes) -> int:
        return int(self._run("append", held.id, _token(held), seq, entry.decode())[0]["next_seq"])

    def complete(self, held: Held, result: bytes = b"") -> None:
        self._run("complete", held.id, _token(held), "--result", result.decode())

    def fail(self, held: Held, error: str, retry_in_s: float | None = None) -> None:
        self._run("fail", held.id, _token(held), "--error", error,
                  *(() if retry_in_s is None else ("--retry-in", f"{retry_in_s}s")))

    def snooze(self, held: Held, delay_s: float) -> None:
        self._run("snooze", held.id, _token(held), f"{delay_s}s")

    def release(self, held: Held) -> None:
        self._run("release", held.id, _token(held))

    def cancel(self, task_id: str) -> None:
        self._run("cancel", task_id)

    def retry(self, task_id: str) -> None:
        self._run("retry", task_id)

    def get(self, task_id: str) -> View:
        return _view_of(self._run("get", task_id)[0])

    def ends(self, task_id: str, wait_s: float) -> tuple[str, bytes | None]:
        end, = self._run("results", task_id, "--wait", f"{wait_s}s")
        return end["state"] or "", _bytes_of(end, "result") if end["has_result"] else None

    def list(self, queue: str) -> Sequence[tuple[str, bytes]]:
        return [(line["id"], _bytes_of(line, "payload") or b"") for line in self._run("list", queue)]

    def count(self, queue: str) -> int:
        return int(self._run("count", queue)[0]["count"])

    def depths(self, queue: str) -> dict[str, int]:
        return {state.name.lower(): int(self._run("count", queue, "--state", state.name.lower())[0]["count"])
                for state in State}

    def pause(self, queue: str) -> Sequence[str]:
        return [*self._run("pause", queue)[0]["missing"]]

    def resume(self, queue: str) -> Sequence[str]:
        return [*self._run("resume", queue)[0]["missing"]]

    def paused(self) -> Sequence[str]:
        return [*self._run("paused")[0]["queues"]]

    def limit(self, queue: str, **limits: Any) -> Sequence[str]:
        words: list[object] = []
        for name, value in limits.items():
            option, shown = _NAMES.get(name, (name.replace("_", "-"), "{}"))
            words += [f"--{option}", shown.format(value)]
        return [*self._run("limit", queue, *words)[0]["missing"]]

    def unlimit(self, queue: str) -> Sequence[str]:
        return [*self._run("unlimit", queue)[0]["missing"]]

    def limits(self, queue: str) -> dict[str, int]:
        return dict(self._run("limits", queue)[0]["queues"].get(queue, {}))

    def put_schedule(self, name: str, queue: str, payload: bytes, every_s: float) -> Sequence[str]:
        made, = self._run("schedule put", name, queue, payload.decode(), "--every", f"{every_s}s")
        return [*made["missing"]]

    def schedules(self) -> Sequence[str]:
        return [each["name"] for each in self._run("schedule list")[0]["schedules"]]

    def remove_schedule(self, name: str) -> Sequence[str]:
        return [*self._run("schedule remove", name)[0]["missing"]]


_NAMES = {"after_s": ("not-before", "{}s"), "within_s": ("expires", "{}s"), "backoff_s": ("backoff", "{}s"),
          "dep_wait_s": ("dep-wait", "{}s"), "per_s": ("per", "{}s"), "deps": ("dep", "{}"),
          "headers": ("header", "{}")}
