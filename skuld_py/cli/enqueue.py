"""``skuld enqueue``: one task from the command line, or a stream of them, one per line.

A stream is sent as it comes: a batch is whatever lines have arrived since the last one was stored. So a
fast file travels in large batches and a slow pipe is never held back, and memory holds one batch.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from io import BufferedIOBase
from typing import IO, TYPE_CHECKING, Any, cast

import click

from skuld_py.cli.acting import bytes_of, called, taking
from skuld_py.cli.options import client_options, connected
from skuld_py.verbs.enqueueing import TASK_OPTIONS, retry_of
from skuld_py.verbs.options import CALLED, CONTENT_PAYLOAD

if TYPE_CHECKING:
    from skuld_py.client.client import Client
    from skuld_py.errors import Uncertain

CHUNK_BYTES = 1 << 20
_OPTIONS = tuple(option for option in TASK_OPTIONS if option not in (CONTENT_PAYLOAD, CALLED))


@click.command()
@click.argument("queue")
@click.argument("words", metavar="[PAYLOAD | ARGUMENT...]", nargs=-1)
@click.option("--call", "function", metavar="FUNCTION",
              help="Call this task function, with each ARGUMENT: a value, or name=value; values are JSON where"
                   " they are, else text.")
@click.option("--file", "source", type=click.File("rb"), help="Take the payload from a file.")
@click.option("--lines", is_flag=True, show_default=False,
              help="One task per line of '-' or --file; empty lines are left out.")
@taking(*_OPTIONS)
@client_options
def enqueue(queue: str, words: tuple[str, ...], function: str | None, source: IO[bytes] | None, lines: bool,
            id: bytes | None, nodes: str, timeout_s: float, as_json: bool, **options: Any) -> None:
    """Put a task with PAYLOAD into QUEUE and print its id. PAYLOAD '-' reads standard input.

    With --call the task is a call of a function that workers know; it need not be here. Behind '--' an ARGUMENT
    may begin with a '-'.

    \b
    Examples:
      skuld enqueue reports 2026-11-20
      skuld enqueue reports '{"day": "2026-11-20"}' --priority 5
      skuld enqueue images --file photo.jpg
      skuld enqueue shop --call shop:add 2 b=3
      skuld enqueue mail 'good morning' --not-before 2026-12-01T08:00+01:00 --max-attempts 3 --backoff 1m
      cat days.txt | skuld enqueue reports - --lines
    """
    from skuld_py.cli.showing import print_json
    from skuld_py.errors import Uncertain

    call = None if function is None else _call(function, words, source, lines)
    stream = None if call is not None else _stream(words, source)
    options["retry"] = retry_of(options["retry"])
    if lines and (stream is None or id is not None):
        raise click.UsageError("--lines reads '-' or --file, and makes the ids itself: leave out "
                               + ("--id." if stream is not None else "PAYLOAD."))
    if lines and options["unique"] is not None:
        raise click.UsageError("--lines makes many tasks, and --unique names one: leave out one of them.")
    if stream is not None and lines:
        with connected(nodes, timeout_s) as client:
            count = _enqueue_lines(client, queue, stream, options, as_json)
        done = f"{count} tasks enqueued to {queue}"
        print_json({"queue": queue, "enqueued": count}) if as_json else click.echo(done)
        return
    data = call or (stream.read() if stream is not None else bytes_of(words[0]))
    with connected(nodes, timeout_s) as client:
        try:
            made = client.enqueue(queue, data, id=id, **options)
        except Uncertain as doubt:
            raise _again(doubt, options["unique"] is not None) from doubt
    if as_json:
        print_json({"queue": queue, "id": str(made), "is_duplicate": made.is_duplicate, "copies": made.copies})
        return
    click.echo(str(made))
    if made.is_duplicate:
        click.echo("it was there already: there is one task of this name in a window", err=True)


def _again(doubt: Uncertain, is_unique: bool) -> Uncertain:
    """How it is asked again: with the id that it has, or as it was, where a name gives the id."""
    ids = str(doubt.facts.get("ids", ""))
    how = "run it again as it is" if is_unique else f"run it again with --id {ids}"
    return type(doubt)(doubt.code, f"{doubt.message}; {how}", **doubt.facts) if is_unique or ids else doubt


def _call(function: str, words: tuple[str, ...], source: IO[bytes] | None, lines: bool) -> bytes:
    if source is not None or lines:
        raise click.UsageError("--call makes one task of its ARGUMENTs: leave out --file and --lines.")
    made = called(function, words, "ARGUMENT")
    assert made is not None
    return made


def _stream(words: tuple[str, ...], source: IO[bytes] | None) -> IO[bytes] | None:
    """Where the payload is read from; None when it stands on the command line."""
    if len(words) > 1:
        raise click.UsageError(f"one PAYLOAD is wanted, {len(words)} words are given; quote it, or call a"
                               " function: --call FUNCTION ARGUMENT...")
    if bool(words) == (source is not None):
        raise click.UsageError("give one payload: as PAYLOAD, as '-' for standard input, or as --file F; or a"
                               " call: --call FUNCTION.")
    if source is not None:
        return source
    return sys.stdin.buffer if words[0] == "-" else None


def _enqueue_lines(client: Client, queue: str, stream: IO[bytes], options: dict[str, Any], as_json: bool) -> int:
    """Enqueue every line; a failure says from which line on to go on."""
    from skuld_py.cli.showing import show_progress

    tasks = lines_stored = 0
    try:
        for batch in _batches(stream):
            payloads = [line for line in batch if line]
            if payloads:
                client.enqueue_many(queue, payloads, **options)
            tasks += len(payloads)
            lines_stored += len(batch)
            show_progress(tasks)
    except BaseException:
        words = (f"stopped: lines 1 to {lines_stored} are stored ({tasks} tasks); of the lines after that some may"
                 " be")
        click.echo(json.dumps({"event": "stopped", "lines_stored": lines_stored, "tasks": tasks}) if as_json
                   else words, err=True)
        raise
    return tasks


def _batches(stream: IO[bytes]) -> Iterator[list[bytes]]:
    """The complete lines that are there, again and again, without their line ends."""
    rest = b""
    read = cast(BufferedIOBase, stream).read1
    while chunk := read(CHUNK_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]
