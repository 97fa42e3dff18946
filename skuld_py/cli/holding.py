"""``skuld renew``, ``update``, ``complete``, ``release``: what the holder of a claim does with it.

A claim is named by the task's id and the token, both as ``skuld claim`` printed them, so any process that
was told them can act for the holder. All four may be repeated safely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from skuld_py.cli.options import client_options, connected, copies_option
from skuld_py.cli.values import LEASE, TASK_ID, TOKEN, said


def _claim_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """``ID TOKEN``, in front of whatever else the verb takes."""
    return click.argument("task_id", metavar="ID", type=TASK_ID)(
        click.argument("token", metavar="TOKEN", type=TOKEN)(function))


def _say(as_json: bool, task_id: bytes, token: int, done: str, **facts: object) -> None:
    from skuld_py.cli.showing import print_json
    from skuld_py.model.ids import to_text

    if as_json:
        print_json({"id": to_text(task_id), "token": token, **facts})
    else:
        click.echo(done)


@click.command()
@_claim_arguments
@click.option("--lease", "lease_s", type=LEASE, metavar="DURATION", default="60s",
              help="How long from now on.")
@client_options
def renew(task_id: bytes, token: int, lease_s: float, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Keep the claim ID TOKEN for longer, from now on. Fails when the claim is lost.

    \b
    Example:
      skuld renew 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297 --lease 5m
    """
    from skuld_py.client.client import ClaimName

    with connected(nodes, timeout_s) as client:
        client.renew(ClaimName(task_id, token), lease_s=lease_s)
    _say(as_json, task_id, token, f"renewed for {said(lease_s)}", lease_s=lease_s)


@click.command()
@_claim_arguments
@click.argument("seq", type=click.IntRange(0))
@click.argument("text")
@copies_option
@client_options
def update(task_id: bytes, token: int, seq: int, text: str, copies: int | None, nodes: str, timeout_s: float,
           as_json: bool) -> None:
    """Add TEXT to the log of the claim ID TOKEN as its entry number SEQ, counted from 0.

    The same number and text again is harmless. Readers see entries up to the first number that is missing.

    \b
    Example:
      skuld update 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297 0 'half way'
    """
    from skuld_py.client.client import ClaimName

    data = text.encode("utf-8", "surrogateescape")
    with connected(nodes, timeout_s) as client:
        next_seq = client.update(ClaimName(task_id, token), data, seq=seq, w=copies)
    _say(as_json, task_id, token, f"entry {seq} is stored; the next is {next_seq}", next_seq=next_seq)


@click.command()
@_claim_arguments
@copies_option
@client_options
def complete(task_id: bytes, token: int, copies: int | None, nodes: str, timeout_s: float,
             as_json: bool) -> None:
    """Record that the task ID is done, by the claim TOKEN. Counts even when the lease has ended.

    \b
    Example:
      skuld complete 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297
    """
    from skuld_py.client.client import ClaimName

    with connected(nodes, timeout_s) as client:
        client.complete(ClaimName(task_id, token), w=copies)
    _say(as_json, task_id, token, "completed", is_completed=True)


@click.command()
@_claim_arguments
@client_options
def release(task_id: bytes, token: int, nodes: str, timeout_s: float, as_json: bool) -> None:
    """Give the claim ID TOKEN back: the task waits again at once. A claim already lost is no error.

    \b
    Example:
      skuld release 000006cvl5s5o0000000e1k0g5u3k7qh 4294967297
    """
    from skuld_py.client.client import ClaimName

    with connected(nodes, timeout_s) as client:
        client.release(ClaimName(task_id, token))
    _say(as_json, task_id, token, "released", is_released=True)
