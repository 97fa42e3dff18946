"""``skuld renew``, ``append``, ``complete``, ``fail``, ``snooze``, ``release``: what the holder does with a claim.

A claim is named by the task's id and the token with its proof, as ``skuld claim`` printed them, so any process
that was told them can act for the holder. All of them may be repeated safely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.acting import Done, claim_arguments, client_verb
from skuld_py.cli.options import copies_option
from skuld_py.cli.values import DURATION, LEASE, SEQ, said

if TYPE_CHECKING:
    from skuld_py.client.client import ClaimName, Client


@client_verb
@claim_arguments
@click.option("--lease", "lease_s", type=LEASE, metavar="DURATION", default="60s",
              help="How long from now on.")
def renew(client: Client, claim: ClaimName, lease_s: float) -> Done:
    """Keep the claim ID TOKEN for longer, from now on; never for less long than before. Fails when it is lost.

    Says so when the task is cancelled: then stop, and release the claim.

    \b
    Example:
      skuld renew 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 --lease 5m
    """
    from skuld_py.cli.showing import moment
    from skuld_py.client.checking import as_id, as_proof
    from skuld_py.client.claims import HeldClaim

    held = HeldClaim(as_id(claim.id), claim.token, as_proof(claim.proof))
    client.renew(held, lease_s=lease_s)
    but = ", but the task is cancelled: stop" if held.is_cancelled else ""
    return f"renewed: held until {moment(held.end_ms)}{but}", {
        "lease_s": lease_s, "end_ms": held.end_ms, "is_cancelled": held.is_cancelled}


@client_verb
@claim_arguments
@click.argument("seq", type=SEQ)
@click.argument("text")
@copies_option
def append(client: Client, claim: ClaimName, seq: int, text: str, copies: int | None) -> Done:
    """Add TEXT to the log of the claim ID TOKEN as its entry number SEQ, counted from 0.

    The same number and text again is harmless. Readers see entries up to the first number that is missing.

    \b
    Example:
      skuld append 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 0 'half way'
    """
    next_seq = client.update(claim, text.encode("utf-8", "surrogateescape"), seq=seq, w=copies)
    return f"entry {seq} is stored; the next is {next_seq}", {"next_seq": next_seq}


@client_verb
@claim_arguments
@click.option("--result", metavar="TEXT", default="", show_default="none", help="What came of it.")
@copies_option
def complete(client: Client, claim: ClaimName, result: str, copies: int | None) -> Done:
    """Record that the task ID is done, by the claim TOKEN. Counts even when the lease has ended.

    \b
    Example:
      skuld complete 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65
    """
    client.complete(claim, result.encode("utf-8", "surrogateescape"), w=copies)
    return "completed", {"is_completed": True}


@client_verb
@claim_arguments
def release(client: Client, claim: ClaimName) -> Done:
    """Give the claim ID TOKEN back: the task waits again at once. A claim already lost is no error.

    \b
    Example:
      skuld release 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65
    """
    client.release(claim)
    return "released", {"is_released": True}


@client_verb
@claim_arguments
@click.option("--error", metavar="TEXT", default="", show_default="none", help="What went wrong.")
@click.option("--retry-in", "retry_in_s", type=DURATION, metavar="DURATION", default=None,
              show_default="as the task's retries say", help="When it may be claimed again.")
def fail(client: Client, claim: ClaimName, error: str, retry_in_s: float | None) -> Done:
    """Say that the attempt by the claim ID TOKEN failed: the task waits for the next, or is dead after the last.

    \b
    Example:
      skuld fail 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 --error 'no such day' --retry-in 5m
    """
    client.fail(claim, error.encode("utf-8", "surrogateescape"), retry_in_s=retry_in_s)
    return "failed", {"is_failed": True}


@client_verb
@claim_arguments
@click.argument("delay_s", metavar="DELAY", type=DURATION)
def snooze(client: Client, claim: ClaimName, delay_s: float) -> Done:
    """Give the claim ID TOKEN back for DELAY: until then nobody claims the task. It is no failed attempt.

    \b
    Example:
      skuld snooze 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297-9f86d081884c7d65 10m
    """
    client.snooze(claim, delay_s)
    return f"snoozed for {said(delay_s)}", {"delay_s": delay_s}
