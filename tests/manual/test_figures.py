"""Figures that the manual names are those of the code: a bound that changes is changed on the page as well."""

from __future__ import annotations

import attrs
import pytest

from manual import written
from manual.commands import verb_of
from skuld_py.archive import archiver, pacing
from skuld_py.cli import failures, situation
from skuld_py.client.flows import FEEDER_TRIES
from skuld_py.client.options import Retry
from skuld_py.cluster.member.settings import LogSettings
from skuld_py.config import DEFAULT_LIMITS, PARTITIONS_MAX, Parameters
from skuld_py.config.timing import DEFAULT_TIMING, Retention
from skuld_py.model import state
from skuld_py.model.history import CLAIMS_FOR_LIFE, CLAIMS_MAX
from skuld_py.model.messages.settings import SETTINGS_MAX
from skuld_py.model.prelude import DEPS_MAX
from skuld_py.model.state import State
from skuld_py.node import client_door
from skuld_py.node.reads import ends, listing
from skuld_py.node.schedules import ticks
from skuld_py.node.writes import tasks
from skuld_py.runtime import connections, files
from skuld_py.wire.codec import FRAMES_MAX

LIMITS, TIMING = DEFAULT_LIMITS, DEFAULT_TIMING
PLAIN = Parameters("c", "id")


def default_of(line: str, option: str) -> object:
    """What an option of a verb is when nobody says anything."""
    verb, _ = verb_of(line.split())
    return next(parameter.default for parameter in verb.params if option in parameter.opts)


def page(name: str) -> str:
    """A page as one line."""
    return " ".join(dict(written.pages())[name].split())


def test_the_page_of_workers_writes_out_how_often_a_task_is_tried() -> None:
    kept = {field.name: getattr(Retry(), field.name) for field in attrs.fields(Retry)
            if field.name not in ("on", "never")}
    written_out = ", ".join(f"{name}={value!r}" for name, value in kept.items())
    assert f"Without a word it is `Retry({written_out})`" in page("workers.md")


GUARANTEES = {
    "the skew bound": f"the skew bound ({PLAIN.skew_ms / 1000:g} s by default, set when the cluster is created)",
    "the outage of ZooKeeper": f"at least {TIMING.horizon_ms // 2 // 60_000} minutes, less a third of its lease",
    "back to lead": "once that node has been back for five seconds",
    "claims that wait": f"{LIMITS.parked_claims:,} claims wait at a node, {LIMITS.parked_claims_each:,} of one",
    "requests": f"Of the {LIMITS.requests:,} requests that a node has open",
    "and of holders": f"the last {LIMITS.holders_requests:,} are for renewals",
    "a node that is behind": f"A node that is {TIMING.behind_ms / 1000:g} s behind with its work",
    "and for holders": f"one that is {client_door.HOLDERS_PATIENCE * TIMING.behind_ms / 1000:g} s behind",
    "claims of a task": f"a task is dead after {CLAIMS_MAX:,} claims",
    "claims for life": f"After {CLAIMS_FOR_LIFE:,} claims over all its lives",
    "late callers": "nodes believe if they are at most a minute behind",
    "a lost word": "up to half a minute, if messages were lost",
    "dependencies": f"waits for at most {DEPS_MAX:,} others",
    "blocked queues": "the oldest blocked task of each of the five queues",
    "blocked tasks": f"among the first {situation.BLOCKED_PAGES * listing.SCAN_ROWS:,} tasks",
    "loans": "nothing is granted for a second and the skew bound",
    "missed ticks": f"the newest of the last {ticks.SIGHT_MS // 86_400_000} days",
    "a lost word of an end": "a lost message costs up to five seconds",
    "a page": f"after {LIMITS.page_rows:,} tasks, {LIMITS.page_bytes >> 20} MiB, or {listing.SCAN_ROWS:,} records",
    "bytes of a page": f"after {listing.READ_BYTES >> 20} MiB of records read",
    "pages at a time": f"has {LIMITS.listings} such pages asked for at a time, {LIMITS.listings_each} over one",
    "many connections": f"Over {files.CONNECTIONS_MAX:,} connections",
    "what is little": f"less than {connections.SLACK_BYTES >> 20} MiB of it waits",
    "frames of nothing": f"As frames of nothing that is {connections.FRAME_FACTOR} MiB",
    "frames": f"a message of more than {FRAMES_MAX:,} frames",
    "files": f"It takes {files.FILES_WANTED:,} files for {files.CONNECTIONS_MAX:,} connections",
    "files of one port": f"({files.OWN_FILES + files.FILES_EACH * files.CONNECTIONS_MAX:,} for one port)",
    "few files": f"{(1_024 - files.OWN_FILES) // (2 * files.FILES_EACH)} at each port of 1,024 files",
    "too few files": f"fewer than {files.FILES_MIN} it does not start",
    "one call": f"a call of more than {LIMITS.batch_tasks:,} tasks",
    "a payload": f"A payload has at most {LIMITS.payload_bytes >> 20} MiB",
    "a result": f"have at most {LIMITS.entry_bytes >> 10} KiB each",
    "what is read of a log": f"the last {LIMITS.log_entries:,} entries ({LIMITS.log_bytes >> 20} MiB) of its log",
    "settings": f"A cluster keeps {SETTINGS_MAX:,} settings",
}
IN_WORDS = {"a minute": tasks.LATE_MS_MAX == 60_000, "half a minute": TIMING.rewatch_ms == 30_000,
            "a second": TIMING.loan_ms == 1_000, "five seconds for ends": ends.LOOK_MS == 5_000,
            "five seconds for leaders": TIMING.steady_ms == 5_000, "five queues": situation.BLOCKED_SHOWN == 5,
            "after a day": LogSettings().forget_ms == 86_400_000}


@pytest.mark.parametrize("figure", GUARANTEES)
def test_the_guarantees_name_the_bounds_of_the_code(figure: str) -> None:
    assert GUARANTEES[figure] in page("guarantees.md")


@pytest.mark.parametrize("figure", IN_WORDS)
def test_what_is_said_in_words_is_so(figure: str) -> None:
    assert IN_WORDS[figure]


def test_the_states_are_named_in_the_order_in_which_they_stand() -> None:
    named = ("completed", "claimed", "cancelled", "dead", "blocked", "scheduled", "waiting")

    assert ", ".join(named) in page("tasks.md")
    assert ", ".join(named) in " ".join((state.__doc__ or "").split())
    assert {each.name.lower() for each in State} == set(named)


def test_exit_statuses_are_those_of_the_command_line() -> None:
    statuses = (failures.REFUSED, "refused"), (failures.MISUSED, "wrong command line"), (
        failures.UNCERTAIN, "uncertain"), (failures.INTERRUPTED, "interrupted")

    assert all(f"| {status} | {words}" in page("operating.md") for status, words in statuses)


def test_the_readme_says_no_more_than_the_manual() -> None:
    readme, speed = page("README.md"), page("speed.md")

    assert "31,700 tasks a second" in readme and "31,700 a second" in speed
    assert "about two milliseconds" in readme and "p50 1.9 ms" in speed


def test_the_page_of_workflows_says_how_often_its_own_tasks_are_tried() -> None:
    assert (f"for more than half a day: a feeder {FEEDER_TRIES.max_attempts:,} times, what seals an output"
            f" {Retry().max_attempts} times") in page("workflows.md")


def test_what_the_other_pages_say() -> None:
    assert f"({Retention().page_tasks:,} tasks, some MiB each)" in page("archive.md")
    assert f"A batch has a page of each partition ({Retention().page_tasks:,} tasks)" in page("datasource.md")
    assert "eight pages" in page("archive.md") and Retention().pages_ahead == 8
    assert f"of {archiver.BATCH_TASKS:,} tasks" in page("archive.md")
    assert f"all of them, or {pacing.SAMPLE} that stand for" in page("archive.md")
    assert "of them every ten seconds" in page("archive.md") and pacing.STALE_S == 10
    assert "it works for a quarter of the time" in page("archive.md") and pacing.SHARE == 0.25
    assert f"stays {round(pacing.KEEP_UP * 100 - 100)} % faster" in page("archive.md")
    assert "a quarter of a second's worth" in page("archive.md") and pacing.BURST_S == 0.25
    assert f"pages of up to about {archiver.BATCH_BYTES >> 20} MiB each" in page("archive.md")
    assert f"with {PARTITIONS_MAX:,} partitions" in page("speed.md")
    assert default_of("cluster rules", "--grace") == "24h" and "After a day (`--grace`)" in page("operating.md")
    assert default_of("node", "--session") == "4s" and "with sessions of 4 s" in page("speed.md")
    assert f"{files.CONNECTIONS_MAX:,}. Connect anew" in (
        written.TOP / "skuld_py" / "wire" / "protocol.txt").read_text(encoding="utf-8")
