"""The verbs of a holder: renew a claim, add to its log, end it.

A claim is named by the task's id and the token with its proof, as ``claim`` gave them, so any process that was
told them can act for the holder. All of these may be repeated safely; ``claim`` itself may not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skuld_py.errors import Refused
from skuld_py.verbs import documents as d
from skuld_py.verbs.options import (
    CLAIM,
    COPIES,
    DELAY,
    LEASE,
    QUEUE,
    RESULT,
    RETRY_IN,
    VALUE,
    WAIT,
    Many,
    Option,
    Plain,
    Request,
    Whole,
)
from skuld_py.verbs.verb import Given, Said, Scope, by_hand, verb
from skuld_py.verbs.words import moment, said

if TYPE_CHECKING:
    from skuld_py.client.async_client import AsyncClient
    from skuld_py.client.claims import HeldClaim

RENEWED_FOR = LEASE._replace(help="How long from now on.")
ERROR = Option(
    "error", Plain.TEXT, "", word="TEXT", shown="none",
    help="What went wrong.",
    told="Why, for readers.")
FINAL = Option(
    "final", Plain.FLAG, False, flag="--final",
    help="No other attempt could succeed: the task is dead at once.",
    told="Whether no other attempt could succeed: then the task is dead at once.")
CLAIM_NAME = Request("ClaimName", "A claim, by its task and its fencing token, with its proof.", (CLAIM,))
COMPLETION = Request("Completion", "The end of a task, with what came of it.", (CLAIM, RESULT, VALUE))
FAILED = Request("Failed", "An attempt that came to nothing, and why.", (CLAIM, ERROR))
ENTRY = Request("Entry", "One entry of a log.",
                (Option("data", Plain.BYTES, is_word=True, word="TEXT", told="The entry"),))
CLAIMS = Option("claims", Many(CLAIM_NAME))
CHECKPOINT = Option(
    "checkpoint", Plain.BYTES, b"", word="TEXT", shown="none",
    help="From where the next claim of the task is to go on, besides; at most 64 KiB.",
    told="From where the next claim of the task is to go on, at most 64 KiB")
NUMBER = Option(
    "number", Whole(0, (1 << 32) - 1), None, shown="SEQ", typed=Whole(0, (1 << 32) - 1),
    help="Of the claim's checkpoints the one with the highest number stands.",
    told="Of the claim's checkpoints the one with the highest number stands; as ``seq`` if left out.")


class Completed(d.Done):
    """All of it is done, and stored."""

    copies: d.Copies


def valid_s(lease_s: float) -> float:
    """How long a renewal holds, from when the caller sent it: it arrived here before the lease was counted.

    The caller's clock is one more whose rate may be wrong, beside the three that the deadline allows for.
    """
    from skuld_py.model.leases import RATE, holder_deadline

    return floor_ms(holder_deadline(0.0, lease_s) * (1 - 2 * RATE))


def floor_ms(seconds: float) -> float:
    """Seconds, rounded down to whole milliseconds; 0 at least."""
    return max(0.0, math.floor(seconds * 1000) / 1000)


claim = by_hand(
    "claim", "POST /v1/tasks/claim", Scope.WORK,
    Request("Claim", "Up to ``n`` tasks of a queue, under a lease.", (
        QUEUE,
        Option(
            "n", Whole(1, 1_000), 1, flag="-n", typed=Whole(),
            help="How many tasks at most.",
            told="At most so many."),
        LEASE,
        WAIT._replace(
            help="How long to wait when nothing can be claimed yet.",
            told="How long to wait when nothing can be claimed yet; the gateway waits no longer than its own"
                 " limit."),
        Option(
            "holder", Plain.HOLDER, None, word="NAME", shown="HOSTNAME:PID",
            help="Who holds them, for readers of the task.",
            told="Who holds the tasks, for readers; gateway:TOKEN-NAME if left out."))),
    d.Claimed, "Hold tasks under a lease, best first; wait for one. Not to be sent again when its outcome is"
    " uncertain: a lease may be out that nobody holds, and lapses.", command="claim", is_repeatable=False)


def _came_of(result: bytes, value: object) -> object:
    """What came of a task; None for nothing."""
    if result and value is not None:
        raise Refused("bad_result", "value: give value or result, not both")
    return result or None if value is None else value


def _say_renewed(_: d.Renewed, given: Given) -> Said:
    held: HeldClaim = given["claim"]
    but = ", but the task is cancelled: stop" if held.is_cancelled else ""
    return f"renewed: held until {moment(held.end_ms)}{but}", {
        "lease_s": given["lease_s"], "end_ms": held.end_ms, "is_cancelled": held.is_cancelled}


@verb("POST /v1/tasks/renew", Scope.WORK, Request("Renew", "More time for one claim.", (CLAIM, RENEWED_FOR)),
      d.Renewed, "Hold on to a claim; 409 when it is lost.", command="renew", says=_say_renewed)
async def renew(client: AsyncClient, claim: HeldClaim, lease_s: float) -> d.Renewed:
    """Keep the claim ID TOKEN for longer, from now on; never for less long than before. Fails when it is lost.

    Says so when the task is cancelled: then stop, and release the claim.

    \b
    Example:
      skuld renew 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 --lease 5m
    """
    await client.renew(claim, lease_s=lease_s)
    return d.Renewed(id=d.id_text(claim.id), token=str(claim.token), is_cancelled=claim.is_cancelled,
                     valid_s=valid_s(lease_s))


@verb("POST /v1/tasks/renew_many", Scope.WORK,
      Request("RenewMany", "More time for many claims.", (CLAIMS, RENEWED_FOR)), d.RenewedMany,
      "Hold on to many claims; says of each whether it is held.")
async def renew_many(client: AsyncClient, claims: Sequence[Given], lease_s: float) -> d.RenewedMany:
    """Hold on to many."""
    named: list[HeldClaim] = [each["claim"] for each in claims]
    held = await client.renew_many(named, lease_s=lease_s)
    rows = [d.Renewal(id=d.id_text(claim.id), token=str(claim.token), is_held=is_held,
                      is_cancelled=claim.is_cancelled) for claim, is_held in zip(named, held, strict=True)]
    return d.RenewedMany(claims=rows, valid_s=valid_s(lease_s))


@verb("POST /v1/tasks/append", Scope.WORK,
      Request("Append", "Entries of a claim's log, from number ``seq`` on, its task's checkpoint, or both. The"
              " same numbers with the same content again are harmless.", (
                  CLAIM, Option(
                      "seq", Whole(0, (1 << 32) - 1), is_word=True,
                      told="The number of the first entry; a claim's log begins at 0."),
                  Option("entries", Many(ENTRY, 0), ()), CHECKPOINT, NUMBER, COPIES)), d.Appended,
      "Add numbered entries to a claim's log, and set its task's checkpoint. 409 when there is a checkpoint and"
      " the claim is lost.", command="append",
      says=lambda done, given: (f"entry {given['seq']} is stored; the next is {done['next_seq']}", done))
async def append(client: AsyncClient, claim: HeldClaim, seq: int, entries: Sequence[Mapping[str, bytes]],
                 checkpoint: bytes | str, number: int | None, w: int | None) -> d.Appended:
    """Add TEXT to the log of the claim ID TOKEN as its entry number SEQ, counted from 0.

    The same number and text again is harmless. Readers see entries up to the first number that is missing. With
    --checkpoint the next claim of the task is told how far this one was; a task has one, which a new one replaces.

    \b
    Examples:
      skuld append 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 0 'half way'
      skuld append 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 1 'row 900' --checkpoint 900
    """
    marked: dict[str, Any] = {} if number is None else {"number": number}
    if checkpoint:
        marked = {"checkpoint": checkpoint, "number": seq if number is None else number}
    done = await client.update(claim, [entry["data"] for entry in entries], seq=seq, w=w, **marked)
    return d.Appended(next_seq=done)


@verb("POST /v1/tasks/complete", Scope.WORK,
      Request("Complete", "The end of one task, with what came of it.", (CLAIM, RESULT, VALUE, COPIES)),
      Completed,
      "Record that a task is done: from any of its claims, however late, and for good.", command="complete",
      says=lambda done, _: ("completed", {"is_completed": True, "copies": done["copies"]}))
async def complete(client: AsyncClient, claim: HeldClaim, result: bytes, value: object,
                   w: int | None) -> Completed:
    """Record that the task ID is done, by the claim TOKEN. Counts even when the lease has ended.

    \b
    Examples:
      skuld complete 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65
      skuld complete 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 --value '{"pages": 12}'
    """
    return Completed(count=1, copies=await client.complete(claim, _came_of(result, value), w=w))


@verb("POST /v1/tasks/complete_many", Scope.WORK,
      Request("CompleteMany", "The end of many tasks.", (Option("claims", Many(COMPLETION)), COPIES)), Completed,
      "Record that many tasks are done.")
async def complete_many(client: AsyncClient, claims: Sequence[Given], w: int | None) -> Completed:
    """End many."""
    results = [_came_of(each["result"], each["value"]) for each in claims]
    copies = await client.complete_many([each["claim"] for each in claims], results, w=w)
    return Completed(count=len(claims), copies=copies)


@verb("POST /v1/tasks/fail", Scope.WORK,
      Request("Fail", "An attempt that came to nothing.", (CLAIM, ERROR, RETRY_IN, FINAL)), d.Done,
      "Record that an attempt has failed; the task is tried again, or is dead. 409 when the claim is lost.",
      command="fail", says=lambda _, __: ("failed", {"is_failed": True}))
async def fail(client: AsyncClient, claim: HeldClaim, error: bytes | str, retry_in_s: float | None,
               final: bool) -> d.Done:
    """Say that the attempt by the claim ID TOKEN failed: the task waits for the next, or is dead after the last.

    \b
    Example:
      skuld fail 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 --error 'no such day' --retry-in 5m
    """
    await client.fail(claim, error, retry_in_s=retry_in_s, final=final)
    return d.Done(count=1)


@verb("POST /v1/tasks/fail_many", Scope.WORK,
      Request("FailMany", "Attempts that came to nothing.", (
          Option("claims", Many(FAILED)),
          RETRY_IN._replace(told="When to try again; by each task's own policy if left out."), FINAL)),
      d.FailedMany,
      "Record that many attempts have failed; says of each whether it was held.")
async def fail_many(client: AsyncClient, claims: Sequence[Given], retry_in_s: float | None,
                    final: bool) -> d.FailedMany:
    """End many attempts."""
    named: list[HeldClaim] = [each["claim"] for each in claims]
    failed = await client.fail_many(named, [each["error"] for each in claims], retry_in_s=retry_in_s,
                                    final=final)
    return d.FailedMany(claims=[d.Failure(id=d.id_text(claim.id), token=str(claim.token), is_failed=is_failed)
                                for claim, is_failed in zip(named, failed, strict=True)])


@verb("POST /v1/tasks/snooze", Scope.WORK,
      Request("Snooze", "A task that is to be done later.",
              (CLAIM, Option("delay_s", DELAY, is_word=True, word="DELAY", told="Seconds."))), d.Done,
      "Give a task back for later; no attempt is counted. 409 when the claim is lost.", command="snooze",
      says=lambda _, given: (f"snoozed for {said(given['delay_s'])}", {"delay_s": given["delay_s"]}))
async def snooze(client: AsyncClient, claim: HeldClaim, delay_s: float) -> d.Done:
    """Give the claim ID TOKEN back for DELAY: until then nobody claims the task. It is no failed attempt.

    \b
    Example:
      skuld snooze 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 10m
    """
    await client.snooze(claim, delay_s)
    return d.Done(count=1)


@verb("POST /v1/tasks/release", Scope.WORK, Request("Claims", "Many claims.", (CLAIMS,)), d.Done,
      "Give claims back: their tasks wait again. A claim already lost is no error.", command="release",
      says=lambda _, __: ("released", {"is_released": True}))
async def release(client: AsyncClient, claims: Sequence[Given]) -> d.Done:
    """Give the claim ID TOKEN back: the task waits again at once. A claim already lost is no error.

    \b
    Example:
      skuld release 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65
    """
    named: list[Any] = [each["claim"] for each in claims]
    await client.release(*named)
    return d.Done(count=len(claims))


VERBS = (claim, renew, renew_many, append, complete, complete_many, fail, fail_many, snooze, release)
