"""``skuld renew``, ``append``, ``complete``, ``release``: what the holder of a claim does with it.

A claim is named by the task's id and the token, both as ``skuld claim`` printed them, so any process that
was told them can act for the holder. All of them may be repeated safely.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from skuld_py.cli.acting import Done, claim_arguments, client_verb
from skuld_py.cli.options import copies_option
from skuld_py.cli.values import LEASE, SEQ, said

if TYPE_CHECKING:
    from skuld_py.client.client import ClaimName, Client


@client_verb
@claim_arguments
@click.option("--lease", "lease_s", type=LEASE, metavar="DURATION", default="60s",
              help="How long from now on.")
def renew(client: Client, claim: ClaimName, lease_s: float) -> Done:
    """Keep the claim ID TOKEN for longer, from now on. Fails when the claim is lost.

    \b
    Example:
      skuld renew 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297 --lease 5m
    """
    client.renew(claim, lease_s=lease_s)
    return f"renewed for {said(lease_s)}", {"lease_s": lease_s}


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
      skuld append 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297 0 'half way'
    """
    next_seq = client.update(claim, text.encode("utf-8", "surrogateescape"), seq=seq, w=copies)
    return f"entry {seq} is stored; the next is {next_seq}", {"next_seq": next_seq}


@client_verb
@claim_arguments
@copies_option
def complete(client: Client, claim: ClaimName, copies: int | None) -> Done:
    """Record that the task ID is done, by the claim TOKEN. Counts even when the lease has ended.

    \b
    Example:
      skuld complete 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297
    """
    client.complete(claim, w=copies)
    return "completed", {"is_completed": True}


@client_verb
@claim_arguments
def release(client: Client, claim: ClaimName) -> Done:
    """Give the claim ID TOKEN back: the task waits again at once. A claim already lost is no error.

    \b
    Example:
      skuld release 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297
    """
    client.release(claim)
    return "released", {"is_released": True}
