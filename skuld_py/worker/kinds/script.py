"""Tasks that run an application file as a driver process of its own, whoever claims them, and never two of it.

    1  what earlier claims left is adopted, killed or waited for      ``drivers``
    2  a guardian starts, with a driver that waits                    ``guardian``
    3  the intent is written into the claim's log, and is there
    4  the driver runs: if the claim's lease has not ended meanwhile

Invariants:

* A driver runs only below an intent that the cluster has acknowledged: so the next claim, which was granted after
  this one's deadline, reads it.
* The file is one below the worker's directory for scripts, whatever links lie there.
* A claim that is stopped ends its driver before the worker gives the claim back. One whose worker dies leaves it
  to the next claim, or to the guardian's patience.
* Of what a driver says the log gets less and less the longer it runs, so that the intent is not pushed out.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from skuld_py.calls.kinds import SCRIPT
from skuld_py.calls.kinds.fields import Option
from skuld_py.calls.kinds.script import ScriptTask, checked
from skuld_py.client.steady import sleep, steady_s
from skuld_py.embedded import python
from skuld_py.embedded.process import standing
from skuld_py.errors import Refused
from skuld_py.extras import require
from skuld_py.worker.context import ClaimLost, TaskContext
from skuld_py.worker.directives import Dead, Snooze
from skuld_py.worker.journal import decode_entry
from skuld_py.worker.kinds import driver as drivers_door
from skuld_py.worker.kinds.allowed import Allowed, allowed, final
from skuld_py.worker.kinds.driver import Dismissed, Driver, Gone, attached, guarded, place
from skuld_py.worker.kinds.drivers import ENDED, Intent, Past, plan
from skuld_py.worker.kinds.machine import Machine, here, kill_all
from skuld_py.worker.registry import task

LOG_S = 60.0
END_S = 4.5
"""Less than a worker waits for a task that it has stopped."""
STEP_S = 0.25
ELSEWHERE_S = 30.0
"""After how long a task is claimed again that was given back, since no driver can be started here."""
RESULT_CHARS, ERROR_CHARS = 16_384, 500


class ScriptFailed(Exception):
    """The driver ended with another status than 0."""


@task(name=SCRIPT)
def run_script(context: TaskContext, file: str, arguments: list[str] | None = None, *,
               main_class: str | None = None, py_files: list[str] | None = None,
               conf: dict[str, Option] | None = None, plain: bool = False) -> str:
    """Run the file, or go on with the driver of an earlier claim. The end of what it wrote to standard output."""
    now = allowed(SCRIPT)
    with final():
        job = checked(file, arguments or (), main_class=main_class, py_files=py_files or (), conf=conf,
                      plain=plain)
    machine = here()
    if machine is None:
        raise Dead(f"{SCRIPT}: needs Linux, whose kernel tells which processes there are")
    paths = [below(now.scripts, each) for each in (job.file, *job.py_files)]
    adopted = _adopted(context, machine, now)
    intent, driver = adopted or _readied(context, machine, now, job, paths)
    return _watched(context, intent, driver, is_new=adopted is None)


def below(directory: Path | None, path: str) -> Path:
    """The file, as it is without links; ``Dead`` when there is none below the directory."""
    assert directory is not None
    try:
        found = (directory / path).resolve(strict=True)
    except (OSError, RuntimeError):
        found = None
    if found is None or not found.is_file() or not found.is_relative_to(directory):
        raise Dead(f"file: there is no {path} below the worker's directory for scripts; a link must not lead out")
    return found


# -- before it runs ------------------------------------------------------------------------------


def _adopted(context: TaskContext, machine: Machine, now: Allowed) -> tuple[Intent, Driver] | None:
    """The driver of an earlier claim, if it can be had; else none runs any more when this returns."""
    granted_s = steady_s()
    earlier = [Past([decode_entry(entry) for entry in claim.log], claim.is_cut, not claim.outcome)
               for claim in context.earlier]
    found = plan(str(context.id), earlier, machine, lambda process: process.is_alive, now.lease_s, now.adopt_s)
    if found.adopt is not None:
        _write_down(context, attrs.evolve(found.adopt, lease_s=now.lease_s))
        try:
            driver = attached(found.adopt, context.token, context.deadline)
        except Gone as gone:
            context.log(f"the driver of an earlier claim is not to be had ({gone}); it is ended")
        else:
            context.log(f"goes on with the driver of an earlier claim, process {found.adopt.driver.id}")
            return found.adopt, driver
    for intent in (*found.kill, *([found.adopt] if found.adopt is not None else [])):
        _end(context, intent)
    if found.wait_s:
        context.log(f"waits until a driver of an earlier claim on {found.where} has ended: {found.wait_s:g} s")
        while steady_s() < granted_s + found.wait_s:
            context.check()
            sleep(STEP_S)
    return None


def _end(context: TaskContext, intent: Intent) -> None:
    """End a driver of this machine, and its guardian, whatever they do. Not for a claim that is lost: the next one
    may have adopted them."""
    context.check()
    while kill_all(intent.claim):
        context.check()
        sleep(0.02)
    drivers_door.clear(intent)
    context.log({ENDED: intent.claim})


def _readied(context: TaskContext, machine: Machine, now: Allowed, job: ScriptTask,
             paths: list[Path]) -> tuple[Intent, Driver]:
    """A driver that waits for its start, of which the cluster knows."""
    started_in = _stands(context, now.started_in)
    directory = place()
    command, environment = _command(now, job, paths, directory, started_in)
    environment = {**environment, "SKULD_TASK": str(context.id), "SKULD_TOKEN": str(context.token)}
    intent = guarded(context.name, directory, command, environment, machine, now.lease_s, now.adopt_s,
                     started_in)
    driver = attached(intent, context.token, context.deadline)
    try:
        _write_down(context, intent)
    except BaseException:
        driver.close()  # what was not started leaves with its master
        raise
    return intent, driver


def _write_down(context: TaskContext, intent: Intent) -> None:
    """Have the cluster know of a driver."""
    is_written, until = context.log_surely(intent.entry()), steady_s() + LOG_S
    while not is_written.wait(STEP_S):
        context.check()
        if steady_s() > until:
            raise ScriptFailed("the driver was not started: the task's log cannot be written")


def _stands(context: TaskContext, directory: Path | None) -> Path:
    """Where drivers start. Where that is gone it is this worker's trouble and not the task's, which is given back:
    another worker may have it meanwhile."""
    try:
        return standing(directory, "a script")
    except Refused as refusal:
        context.log(refusal.message)
        raise Snooze(ELSEWHERE_S) from None


def _command(now: Allowed, job: ScriptTask, paths: list[Path], directory: Path,
             started_in: Path) -> tuple[list[str], dict[str, str]]:
    file, *py_files = paths
    if job.plain:
        places = [str(path.parent if path.suffix == ".py" else path) for path in py_files]
        return [sys.executable, str(file), *job.arguments], {"PYTHONPATH": python.search_path(*places)}
    try:
        require("spark", who=SCRIPT)
    except Refused as refusal:
        raise Dead(refusal.message) from None
    from skuld_py.worker.spark_submit import command

    return command(directory, {**now.conf, **job.conf}, file, job.arguments, job.main_class, py_files,
                   started_in)


# -- while it runs -------------------------------------------------------------------------------


def _watched(context: TaskContext, intent: Intent, driver: Driver, *, is_new: bool) -> str:
    try:
        if is_new:
            context.check()
            driver.extend(context.deadline)
            driver.order("go")
        while True:
            context.check()
            driver.extend(context.deadline)
            words = driver.hear(STEP_S)
            if words is not None and "status" in words:
                driver.order("bye")
                context.log({ENDED: intent.claim, "status": words["status"]})
                return _result(words)
            _note(context, words)
    except Gone:
        _end(context, intent)
        raise ScriptFailed("the guardian of the driver was killed, and the driver with it") from None
    except Dismissed:
        context.check()
        raise ScriptFailed("another claim of the task has taken the driver") from None
    except ScriptFailed:
        raise
    except BaseException:
        _stop(context, intent, driver)
        raise
    finally:
        driver.close()
        drivers_door.reap()


def _note(context: TaskContext, words: Mapping[str, Any] | None) -> None:
    """What the driver said since the last time, for the log."""
    if words is not None:
        context.log({name: words[name] for name in ("out", "err", "left_out") if words.get(name)})


def _stop(context: TaskContext, intent: Intent, driver: Driver) -> None:
    """End the driver, in time, unless a newer claim has it; a guardian that does not answer is ended with it. The
    order to stop may arrive in here, once, if the claim was found lost before."""
    until = steady_s() + END_S
    for _ in range(2):
        with contextlib.suppress(ClaimLost):
            try:
                has_obeyed = _has_obeyed(context, driver, until)
            except Dismissed:
                return
            if has_obeyed:
                context.log({ENDED: intent.claim})
            else:
                kill_all(intent.claim)
                drivers_door.clear(intent)
            return


def _has_obeyed(context: TaskContext, driver: Driver, until: float) -> bool:
    try:
        driver.order("end")
        while steady_s() < until:
            words = driver.hear(STEP_S)
            if words is not None and "status" in words:
                driver.order("bye")
                return True
            _note(context, words)
    except Gone:
        pass
    return False


def _result(words: Mapping[str, Any]) -> str:
    status = words["status"]
    if status == 0:
        return str(words["out"])[-RESULT_CHARS:]
    how = f"by signal {-status}" + (" (out of memory?)" if status == -9 else "") if status < 0 else (
        f"with status {status}")
    last = str(words["err"]).strip()[-ERROR_CHARS:] or str(words["out"]).strip()[-ERROR_CHARS:]
    raise ScriptFailed(f"the driver ended {how}; the last it said: {last}")
