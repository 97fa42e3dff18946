"""A table of inputs that are no envelope, each with the field that the error names; and who can be told."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import attrs
import msgpack
import pytest
from msgpack import fallback

from skuld_py.config import LEASE_MS_MAX, PROTOCOL_VERSION, Limits
from skuld_py.errors import Malformed
from skuld_py.model import messages as m
from skuld_py.model.body import Header, encode_body
from skuld_py.model.columns import Column
from skuld_py.wire import codec
from skuld_py.wire.codec import MalformedRequest, decode

JOBS = Header("jobs").encode()
BODY = encode_body(JOBS, b"x")
ID, NO_COLUMN = bytes(range(20)), (b"", 0)
WIDE_TOKEN = (1 << 63).to_bytes(8, "big")
U63 = (1 << 63) - 1
PAYLOADS, HEADER = "Enqueue.batches[0].payloads", "Enqueue.batches[0].header"
FIVE = struct.pack(">I", 5)

Frames = list[bytes]


def raw(of: type[m.Message], *values: Any, frames: Sequence[bytes] = ()) -> Frames:
    """Frames with one message of any values, right or wrong; fields with defaults may be left out."""
    rest = [NO_COLUMN if field.default == Column() else field.default for field in attrs.fields(of)[len(values):]
            if field.default is not attrs.NOTHING]
    return header([[m.MESSAGES.index(of), *values, *rest]], frames)


def header(messages: Any, frames: Sequence[bytes] = (), *, cluster: Any = "main", sender: Any = "",
           version: Any = PROTOCOL_VERSION) -> Frames:
    return [msgpack.packb([version, cluster, sender, messages]), *frames]


def spliced(bomb: bytes) -> Frames:
    """Frames in which ``bomb`` stands where the request number of a ``Greet`` should."""
    good = raw(m.Greet, 7)[0]
    return [good[:-1] + bomb]


def enqueue(*rows: Any, frames: Sequence[bytes] = (b"12345",)) -> Frames:
    return raw(m.Enqueue, 7, 0, rows, frames=frames)


def row(task_header: Any = JOBS, ids: Any = ID, lengths: Any = FIVE, frame: Any = 1) -> list[Any]:
    return [task_header, ids, [lengths, frame]]


def claim(**wrong: Any) -> Frames:
    good = {"request": 7, "queue": "q", "count": 1, "lease_ms": 1_000, "wait_ms": 0, "holder": "w"}
    return raw(m.Claim, *{**good, **wrong}.values())


def task_row(**wrong: Any) -> Frames:
    good = {"id": ID, "body": NO_COLUMN, "history": b"", "tokens": b"", "seqs": b"", "entries": NO_COLUMN}
    return raw(m.Repair, 3, [list({**good, **wrong}.values())])


def column_of(count: int, size: int) -> tuple[bytes, bytes]:
    return struct.pack(">I", size) * count, b"x" * (count * size)



CASES: dict[str, tuple[Frames, str, str]] = {
    # W2: truncated, trailing, random bytes
    "nothing in the header": ([b""], "header", "is cut off"),
    "cut in the version": ([b"\x94\xcf\0\0\0\0"], "version", "is cut off"),
    "cut in a name": ([raw(m.Greet, 7)[0][:4]], "cluster", "is cut off"),
    "cut before a field": ([claim()[0][:-3]], "Claim.holder", "is cut off"),
    "cut in a code": ([raw(m.Greet, 7)[0][:-2]], "messages[0]", "is cut off"),
    "trailing bytes": ([raw(m.Greet, 7)[0] + b"\0\0"], "header", "2 bytes trail"),
    "no msgpack at all": ([b"\xc1"], "header", "is no array"),
    "an invalid byte inside": (spliced(b"\xc1"), "Greet.request", "neither int"),
    "text": ([b"GET / HTTP/1.1\r\n"], "header", "is no array"),
    # W3: frames
    "no frames": ([], "frames", "are 0, not 1 to"),
    "frames beyond count": (raw(m.Greet, 7, frames=[b"x"] * codec.FRAMES_MAX), "frames", "are 4097, not"),
    "a frame that is unused": (raw(m.Greet, 7, frames=[b"x"]), "frames", "1 belong to no column"),
    "a frame used twice": (enqueue(row(), row()), "Enqueue.batches[1].payloads", "the next one is 2 of 1"),
    "a frame out of turn": (enqueue(row(frame=2), frames=[b"12345"] * 2), PAYLOADS,
                            "takes frame 2; the next one is 1 of 2"),
    "a frame that does not exist": (enqueue(row(), frames=[]), PAYLOADS, "takes frame 1"),
    "a frame before the first": (enqueue(row(frame=-1)), PAYLOADS, "takes frame -1"),
    "a frame that is empty": (enqueue(row(lengths=b"", ids=b""), frames=[b""]), PAYLOADS,
                              "is empty"),
    "a frame named by a bool": (enqueue(row(frame=True)), PAYLOADS, "its frame is no int"),
    "a frame of another type": (["text"], "frames", "not all byte strings"),  # type: ignore[list-item]
    # W4: bombs
    "deep nesting": (spliced(b"\x91" * 10_000), "Greet.request", "neither int"),
    "deep nesting outside": ([b"\x91" * 10_000], "version", "neither int"),
    "an array of 2^32": ([raw(m.Greet, 7)[0][:-4] + b"\xdd\xff\xff\xff\xff"], "messages", ""),
    "an array of 2^32 as a field": (spliced(b"\xdd\xff\xff\xff\xff"), "Greet.request", "neither int"),
    "bytes of 4 GiB": (spliced(b"\xc6\xff\xff\xff\xff"), "Greet.request", ""),
    "a string of 4 GiB": (spliced(b"\xdb\xff\xff\xff\xff"), "Greet.request", ""),
    "many empty maps": (spliced(b"\xdc\xff\xff" + b"\x80" * 65_535), "Greet.request", "neither int"),
    "a header beyond its share": ([b"\x94" * ((8 << 20) + 1)], "header", "more than 8388608"),
    "an envelope beyond its size": ([b"\x94", b"x" * (32 << 20)], "frames", "more than 33554432"),
    "messages beyond count": (header([[0, 1]] * (codec.MESSAGES_MAX + 1)), "messages", "more than 4096"),
    "items beyond count, together": (
        header([[m.MESSAGES.index(m.Counted), 1, b"", b"", [[0, "q", 0, 0, 0, 0, 0, 0, 0]] * 70_000]] * 2),
        "Counted.rows", "more than 131072 items"),
    "rows beyond count": (raw(m.Repair, 1, [[]] * 1_001), "Repair.tasks", "1001 items, more than 1000"),
    "names beyond count": (raw(m.Gossip, [], ["q"] * 1_001), "Gossip.queues", "1001 items, more than 1000"),
    # W5: versions, operations, fields
    "a later version": (header([[0, 7]], version=7), "version",
                        "the sender speaks protocol 7, this side 1 and 3 and 5 and 6; upgrade the older of"),
    "an earlier version": (header([[0, 7]], version=0), "version", "protocol 0, this side 1 and 3"),
    "a version that never was": (header([[0, 7]], version=2), "version", "protocol 2, this side 1 and 3"),
    "a later version of another shape": ([msgpack.packb([9, {"new": 1.5}])], "version", "speaks protocol 9"),
    "a version in words": (header([], version="one"), "version", "is no int"),
    "too few parts": ([msgpack.packb([1, "main", ""])], "header", "has 3 parts"),
    "too many parts": ([msgpack.packb([1, "main", "", [], []])], "header", "has 5 parts"),
    "an unknown operation": (header([[199, 1]]), "messages[0]", "199 is no message code"),
    "the first unknown operation": (header([[len(m.MESSAGES), 1]]), "messages[0]", "is no message code"),
    "an operation below 0": (header([[0, 7], [-1, 1]]), "messages[1]", "-1 is no message code"),
    "an operation by name": (header([["Enqueue", 1]]), "messages[0]", "'Enqueue' is no message code"),
    "a bool for an operation": (header([[True, 1]]), "messages[0]", "True is no message code"),
    "no operation": (header([[]]), "messages[0]", "is cut off"),
    "a message that is no list": (header([7]), "messages[0]", "is no array"),
    "a missing field": (raw(m.Renewed, 7), "Renewed", "has 3 fields, not 4"),
    "an extra field": (raw(m.Greet, 7, 8), "Greet", "has 2 fields, not 1"),
    "a missing field of a row": (enqueue([JOBS, ID]), "Enqueue.batches[0]", "has 2 fields, not 3"),
    "a column that is none": (enqueue([JOBS, ID, [b""]]), PAYLOADS, "is not [lengths, frame]"),
    "a map for a message": (header([{"op": 1}]), "messages[0]", "is no array"),
    # W6: types
    "a bool for an int": (raw(m.Greet, True), "Greet.request", "True is no int"),
    "a float for an int": (raw(m.Greet, 1.0), "Greet.request", "neither int"),
    "a string for an int": (raw(m.Greet, "7"), "Greet.request", "'7' is no int"),
    "a nil for an int": (raw(m.Greet, None), "Greet.request", "neither int"),
    "a map for an int": (raw(m.Greet, {}), "Greet.request", "neither int"),
    "an empty list for an int": (raw(m.Greet, []), "Greet.request", "neither int"),
    "an extension": (raw(m.Greet, msgpack.ExtType(1, b"")), "Greet.request", "neither int"),
    "a timestamp": (raw(m.Greet, msgpack.Timestamp(1, 1)), "Greet.request", "neither int"),
    "an int for a bool": (raw(m.Failed, 7, "c", "t", 1), "Failed.is_definite", "1 is no bool"),
    "a string for bytes": (raw(m.Get, 7, "x" * 20), "Get.ids", "is no byte string"),
    "bytes for a name": (claim(queue=b"secret"), "Claim.queue", "a byte string is no name"),
    "bytes for a text": (raw(m.Failed, 7, b"c", "t", True), "Failed.code", "a byte string is no string"),
    "an int for rows": (raw(m.Enqueue, 7, 0, 1), "Enqueue.batches", "is no array"),
    "a string for names": (raw(m.Gossip, [], "q"), "Gossip.queues", "is no array"),
    "bytes for a column": (enqueue([JOBS, ID, b"x"]), PAYLOADS, "is no array"),
    # W7: ranges
    "a request below 0": (raw(m.Greet, -1), "Greet.request", "-1 is no int in 0.."),
    "a request of 2^63": (raw(m.Greet, U63 + 1), "Greet.request", f"{U63 + 1} is no int"),
    "a request of 2^64-1": (raw(m.Greet, 2 * U63 + 1), "Greet.request", "is no int in"),
    "a lease of 0": (claim(lease_ms=0), "Claim.lease_ms", "0 is no int in 1..86400000"),
    "a lease of ten years": (claim(lease_ms=3_650 * LEASE_MS_MAX), "Claim.lease_ms", "is no int in 1..864"),
    "no tasks wanted": (claim(count=0), "Claim.count", "0 is no int in 1..1000"),
    "a billion tasks wanted": (claim(count=10**9), "Claim.count", "is no int in 1..1000"),
    "more copies than can be": (raw(m.Enqueue, 7, 10, []), "Enqueue.w", "10 is no int in 0..9"),
    "an epoch of 0": (raw(m.RequestVote, 1, 0, [], False), "RequestVote.epoch", "0 is no int in 1.."),
    "entries numbered too high": (raw(m.Append, 7, 0, ID, 1 << 32, (1 << 32) - 256, [b"\0" * 4, 0]), "Append.seq",
                                  "numbers entries beyond"),
    "entries of no claim": (raw(m.Append, 7, 0, ID, (1 << 32) - 1, 0, [b"\0" * 4, 0]), "Append.token",
                            "is no claim's token"),
    "an ending that is none": (raw(m.Conclude, 7, 0, -1, b"", b""), "Conclude.kind", "0 is no int in 1..3"),
    "an ending unheard of": (raw(m.Conclude, 7, 4, -1, b"", b""), "Conclude.kind", "4 is no int in 1..3"),
    "a pause before now": (raw(m.Conclude, 7, 3, -2, b"", b""), "Conclude.delay_ms", "-2 is no int"),
    "stored entries numbered too high": (
        task_row(tokens=b"\0" * 8, seqs=struct.pack(">Q", 1 << 32), entries=(b"\0" * 4, 0)),
        "Repair.tasks[0].seqs", "numbers entries beyond"),
    # W8: numbers and strings that are none
    "not a number": (raw(m.Greet, float("nan")), "Greet.request", "neither int"),
    "infinity": (raw(m.Greet, float("inf")), "Greet.request", "neither int"),
    "no UTF-8": (spliced(b"\xa2\xff\xfe"), "Greet.request", "is not UTF-8"),
    "a surrogate": (spliced(b"\xa3\xed\xa0\x80"), "Greet.request", "is not UTF-8"),
    "an empty name": (claim(queue=""), "Claim.queue", "'' is no name"),
    "a name with NUL": (claim(queue="a\0"), "Claim.queue", "is no name"),
    "a name from right to left": (claim(queue="a\u202eb"), "Claim.queue", "is no name"),
    "a name with zero width": (claim(queue="a\u200bb"), "Claim.queue", "is no name"),
    "a name in NFD": (claim(queue="a\u0301"), "Claim.queue", "is no name"),
    "a name with a line end": (claim(queue="a\n"), "Claim.queue", "is no name"),
    "the name of a folder": (claim(queue=".."), "Claim.queue", "'..' is no name"),
    "a name too long": (claim(queue="q" * 201), "Claim.queue", "is no name"),
    "a wide name where a narrow one belongs": (claim(queue="q@host"), "Claim.queue", "'q@host' is no name"),
    "a bad name among others": (raw(m.Gossip, [], ["a", "b/c"]), "Gossip.queues[1]", "'b/c' is no name"),
    "a text too long": (raw(m.Failed, 7, "c", "t" * 1_001, True), "Failed.text", "1001 characters"),
    "a sender with a slash": (header([], sender="a/b"), "sender", "'a/b' is no name"),
    "a cluster with a colon": (header([], cluster="a:b"), "cluster", "'a:b' is no name"),
    "a sender of bytes": (header([], sender=b"a"), "sender", "is no name"),
    # W9: ids
    "an id cut short": (raw(m.Get, 7, ID[:-1]), "Get.ids", "19 bytes, no multiple of 20"),
    "no id": (raw(m.Append, 7, 0, b"", 1, 0, NO_COLUMN), "Append.id", "has 0 bytes, not 20"),
    "two ids for one": (raw(m.Append, 7, 0, ID * 2, 1, 0, NO_COLUMN), "Append.id", "has 40 bytes, not 20"),
    "a row of no task": (task_row(id=b""), "Repair.tasks[0].id", "has 0 bytes, not 20"),
    "ids beyond count": (raw(m.Get, 7, ID * 1_001), "Get.ids", "20020 bytes, more than 20000"),
    "two cursors": (raw(m.List, 7, "", ID * 2, 1), "List.after", "40 bytes, more than 20"),
    # W10: payloads
    "two bodies for one task": (task_row(body=(b"\0" * 8, 0)), "Repair.tasks[0].body", "8 bytes, more than"),
    # columns that do not fit each other, and headers that are none
    "a partition beyond all": (raw(m.Invite, 4_096), "Invite.partition", "4096 is no int in 0..4095"),
    "a partition beyond all in a column": (raw(m.Kept, 7, b"", (4_096).to_bytes(8, "big"), [], b""), "Kept.unkept",
                                           "has 4096, which is more than 4095"),
    "an odd number of eras": (raw(m.Get, 7, b"", bytes(8), b"", False), "Get.eras", "8 bytes, no multiple of 16"),
    "eras of no partition": (raw(m.Get, 7, b"", (4_096).to_bytes(8, "big") + bytes(8), b"", False), "Get.eras",
                             "has partition 4096"),
    "an era beyond all": (raw(m.Get, 7, b"", bytes(8) + (1 << 32).to_bytes(8, "big"), b"", False), "Get.eras",
                          "has era 4294967296"),
    "a time beyond all": (raw(m.Cancel, 7, 0, 253_402_300_800_000, ID, b""), "Cancel.at_ms", "is no int in 0.."),
    "a token of no epoch": (raw(m.Grant, 7, 1, 1, 0, 1, 1, "w", "q", ID, b"prio"), "Grant.first_token",
                            "0 is no int in 4294967296.."),
    "a token of another epoch": (raw(m.Grant, 7, 1, 1, (2 << 32) + 1, 1, 1, "w", "q", ID, b"prio"),
                                 "Grant.first_token", "is no token of epoch 1"),
    "tokens that run into the next epoch": (
        raw(m.Grant, 7, 1, 1, (2 << 32) - 1, 1, 1, "w", "q", ID * 2, b"prio" * 2), "Grant.first_token",
        "is no token of epoch 1, or the last one is none"),
    "a lease that ends before it begins": (raw(m.Grant, 7, 1, 1, (1 << 32) + 1, 2, 1, "w", "q", ID, b"prio"),
                                           "Grant.end_ms", "is no end of a lease that begins at 2"),
    "a lease beyond the longest": (
        raw(m.Grant, 7, 1, 1, (1 << 32) + 1, 2, LEASE_MS_MAX + 3, "w", "q", ID, b"prio"), "Grant.end_ms",
        "is no end of a lease that begins at 2"),
    "a candidacy below its document": (raw(m.RequestVote, 1, 3, ["n"], False, 3), "RequestVote.base",
                                       "is not below the epoch 3"),
    "a candidacy for nobody": (raw(m.RequestVote, 1, 3, [], False, 2), "RequestVote.cohort", "names nobody"),
    "a cohort with somebody twice": (raw(m.Sync, 1, 3, ["n", "n"], [], 2), "Sync.cohort", "somebody twice"),
    "an era after its epoch": (raw(m.Gossip, [[1, 2, 3, ["n"]]], [], [], b"", 0, []), "Gossip.leads[0].era",
                               "is above the epoch 2"),
    "voters that are nobody": (raw(m.Kept, 7, b"", b"", [[1, 2, []]], b""), "Kept.cohorts[0].cohort",
                               "names nobody"),
    "a claim without a body": (raw(m.Claimed, 7, 0, [[ID, 1, 1, [b"\0\0\0\1", 1]]], frames=[b"x"]),
                               "Claimed.batches[0].bodies", "is no task header"),
    "a claim without a body behind one with a body": (
        raw(m.Claimed, 7, 0, [[ID + ID, 1, 1, [struct.pack(">II", len(BODY), 1), 1]]], frames=[BODY + b"x"]),
        "Claimed.batches[0].bodies", "is no task header"),
    "a place of no queue": (
        raw(m.PushClaims, 1, 1, b"", b"", ID, [b"\0\0\0\1", 1], [b"\0\0\0\6", 2],
            frames=[b"h", b"\xc0\0\0\0\0\0"]),
        "PushClaims.places", "are not all places"),
    "a place without a priority": (
        raw(m.ClaimPage, 1, 1, b"", b"", ID, [b"\0\0\0\1", 1], [b"\0\0\0\5", 2], frames=[b"h", b"q\0\0\0\0"]),
        "ClaimPage.places", "are not all places"),
    "a completion under a note's token": (
        raw(m.Complete, 7, 0, 0, ID, (3).to_bytes(8, "big"), b"", NO_COLUMN), "Complete.tokens",
        "are not all claims' tokens"),
    "an error under a note's token": (
        raw(m.Amend, 7, 1, 1, ID, [bytes(4), 0], [bytes(4), 0], (3).to_bytes(8, "big"), [bytes(4), 0]),
        "Amend.tokens", "are not all claims' tokens"),
    **{f"a token of 64 bits in {of.__name__}": (
        raw(of, *fields), f"{of.__name__}.tokens", "which is more than 9223372036854775807")
       for of, fields in {
           m.Complete: (7, 0, 0, ID, WIDE_TOKEN, b"", NO_COLUMN), m.Renew: (7, 0, ID, WIDE_TOKEN),
           m.Conclude: (7, 3, -1, ID, WIDE_TOKEN, NO_COLUMN), m.Note: (7, ID, WIDE_TOKEN, bytes(8), b""),
           m.Amend: (7, 1, 1, ID, [bytes(4), 0], [bytes(4), 0], WIDE_TOKEN, [bytes(4), 0])}.items()},
    "a token of 64 bits in TaskRow": (
        task_row(tokens=WIDE_TOKEN, seqs=bytes(8), entries=(bytes(4), 0)), "Repair.tasks[0].tokens",
        "which is more than 9223372036854775807"),
    "a note that is none": (
        raw(m.Repair, 3, [[ID, NO_COLUMN, b"", (3).to_bytes(8, "big"), (4).to_bytes(8, "big"), (bytes(4), 0)]]),
        "Repair.tasks[0].seqs", "note 4 under token 3 is none"),
    "a history that is none": (task_row(history=b"\1" * 25), "Repair.tasks[0].history", "cut short"),
    "a body that is none": (
        raw(m.Repair, 3, [[ID, (b"\0\0\0\1", 1), b"", b"", b"", NO_COLUMN]], frames=[b"x"]),
        "Repair.tasks[0].body", "is no task header"),
    "listed histories that are none": (
        raw(m.Listed, 7, b"", b"", ID, [b"\0\0\0\0", 0], [b"\0\0\0\1", 1], frames=[b"x"]), "Listed.bodies",
        "is no task header"),
    "asides of fewer tasks": (raw(m.Got, 7, [], b"", [], [b"\0\0\0\1", 1], frames=[b"x"]), "Got.asides",
                               "lists 1, but there are 0 tasks"),
    "lengths cut short": (enqueue(row(lengths=FIVE[:3])), PAYLOADS, "3 bytes, no multiple of 4"),
    "lengths too small": (enqueue(row(lengths=b"\0\0\0\4")), PAYLOADS,
                          "lengths add up to 4 bytes, not to 5"),
    "lengths that wrap around": (
        enqueue(row(ids=ID * 2, lengths=b"\xff\xff\xff\xff\0\0\0\6")), PAYLOADS,
        "lengths add up to 4294967301 bytes, not to 5"),
    "lengths without data": (enqueue(row(frame=0), frames=[]), PAYLOADS, "add up to 5 bytes"),
    "lengths beyond count": (enqueue(row(lengths=b"\0" * 4_004, frame=0), frames=[]),
                             PAYLOADS, "4004 bytes, more than 4000"),
    "more ids than payloads": (enqueue(row(ids=ID * 2)), PAYLOADS,
                               "lists 1, but ids lists 2"),
    "more ids than tokens": (raw(m.Renew, 7, 0, ID, b""), "Renew.tokens", "lists 0, but ids lists 1"),
    "more priorities than ids": (raw(m.Grant, 7, 1, 1, (1 << 32) + 1, 1, 1, "w", "q", ID, b"prio" * 2),
                                 "Grant.priorities", "lists 2, but ids lists 1"),
    "fewer places than ids": (raw(m.Amend, 7, 1, 1, ID, [b"\0" * 4, 0], NO_COLUMN), "Amend.places",
                              "lists 0, but ids lists 1"),
    "fewer entries than tokens": (task_row(tokens=b"\0" * 8, seqs=b"\0" * 8), "Repair.tasks[0].entries",
                                  "lists 0, but tokens lists 1"),
    "fewer results than claims": (
        raw(m.Complete, 7, 0, 0, ID * 2, bytes(16), b"", [b"\0" * 4, 0]), "Complete.results",
        "lists 1, but ids lists 2"),
    "more errors than claims": (raw(m.Conclude, 7, 3, -1, ID, bytes(8), [b"\0" * 8, 0]), "Conclude.errors",
                                "lists 2, but ids lists 1"),
    "fewer errors than tasks": (
        raw(m.Amend, 7, 1, 1, ID * 2, [b"\0" * 8, 0], [b"\0" * 8, 0], bytes(8), [b"\0" * 4, 0]), "Amend.errors",
        "lists 1, but ids lists 2"),
    "errors of nobody": (
        raw(m.Amend, 7, 1, 1, ID, [b"\0" * 4, 0], [b"\0" * 4, 0], b"", [b"\0" * 4, 0]), "Amend.tokens",
        "lists 0, but errors lists 1"),
    "a header cut short": (enqueue(row(JOBS[:-1])), HEADER, "is no task header"),
    "a header without a queue": (enqueue(row(Header("").encode())), HEADER, "no valid name"),
    "a header with a bad queue": (enqueue(row(Header("a\0b").encode())), HEADER, "no valid name"),
    "a header that is no ASCII": (enqueue(row(b"\0\0\0\0\1\xff")), HEADER, "is no task header"),
    "a header with a flag of a later version": (enqueue(row(JOBS + b"\2\0")), HEADER, "flags: 0x200"),
    "a policy without dependencies": (enqueue(row(JOBS + b"\0\x02\x01" + bytes(8))), HEADER, "policy: its flag"),
    "unique names without a window": (enqueue(row(JOBS + b"\0\x40")), HEADER, "window: its flag"),
    "no key before the payload": (enqueue(row(JOBS + b"\0\x80")), PAYLOADS + "[0]", "key: is empty, or cut short"),
    "a retry without attempts": (enqueue(row(JOBS + b"\0\x01" + bytes(13))), HEADER, "max_attempts: 0"),
    "headers cut short": (enqueue(row(JOBS + b"\0\x08\x01\x01a\0\x02b")), HEADER, "headers: are cut short"),
    "a header beyond its size": (enqueue(row(JOBS + bytes(8_192))), HEADER, "8201 bytes, more than 8192"),
    "no time before the payload": (enqueue(row(JOBS + b"\0\x10")), PAYLOADS + "[0]", "not_before: is cut short"),
    "a time of 0": (enqueue(row(JOBS + b"\0\x20", lengths=b"\0\0\0\x08"), frames=[bytes(8)]), PAYLOADS + "[0]",
                    "expires: is cut short, or not in 1.."),
    "the second payload without its time": (
        enqueue(row(JOBS + b"\0\x20", ids=ID * 2, lengths=b"\0\0\0\x08\0\0\0\1"), frames=[bytes(7) + b"\1\1"]),
        PAYLOADS + "[1]", "expires: is cut short"),
    "the fourth of several": (enqueue(*[row(ids=b"", lengths=b"", frame=0)] * 3, row(ids=b"x")),
                              "Enqueue.batches[3].ids", "1 bytes, no multiple of 20"),
}


@pytest.fixture(params=["compiled", "fallback"], autouse=True)
def _implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both implementations of msgpack must refuse alike: which one is installed is not ours to say."""
    if request.param == "fallback":
        monkeypatch.setattr(msgpack, "Unpacker", fallback.Unpacker)


@pytest.mark.parametrize(("frames", "field", "problem"), CASES.values(), ids=CASES.keys())
def test_what_is_malformed_is_refused_by_field(frames: Frames, field: str, problem: str) -> None:
    with pytest.raises(Malformed) as malformed:
        decode(frames)

    assert malformed.value.field == field
    assert problem in malformed.value.message
    assert len(malformed.value.message) < 300


@pytest.mark.parametrize("frames", [claim(), enqueue(row()), task_row(), header([]), spliced(b"\x07")])
def test_what_the_table_spoils_is_well_formed_before(frames: Frames) -> None:
    decode(frames)


def test_the_limit_of_a_message_is_the_cluster_s() -> None:
    with pytest.raises(Malformed, match=r"frames: have \d+ bytes, more than 40"):
        decode(enqueue(row()), Limits(message_bytes=40))


# -- who can be told -----------------------------------------------------------------------------

ANSWERABLE = {
    "a field behind the number": (claim(count=0), 7, m.Claim),
    "a row": (enqueue(row(ids=b"")), 7, m.Enqueue),
    "a rule": (raw(m.Append, 8, 0, b"", 1, 0, NO_COLUMN), 8, m.Append),
    "an extra field": (raw(m.Greet, 9, 8), 9, m.Greet),
    "a missing field": (raw(m.Get, 9), 9, m.Get),
    "an answer, which says so by its type": (raw(m.Acked, 7, -1), 7, m.Acked),
    "the second of two": (header([[0, 7], [0, 8, 8]]), 8, m.Greet),
}


@pytest.mark.parametrize(("frames", "request_number", "of"), ANSWERABLE.values(), ids=ANSWERABLE.keys())
def test_a_number_that_could_be_read_is_told(
    frames: Frames, request_number: int, of: type[m.Message]
) -> None:
    with pytest.raises(MalformedRequest) as malformed:
        decode(frames)

    assert malformed.value.request == request_number
    assert malformed.value.message_type is of
    assert malformed.value.code == "malformed"


UNANSWERABLE = {
    "the number itself": raw(m.Greet, -1),
    "a bool, beside an extra field": raw(m.Greet, True, 1),
    "a number below 0, beside an extra field": raw(m.Greet, -1, 1),
    "a number of 2^63, beside an extra field": raw(m.Greet, U63 + 1, 1),
    "no fields": raw(m.Greet),
    "a message without a number": raw(m.RequestVote, 1, 0, [], False),
    "an unknown operation": header([[199, 7]]),
    "the envelope": header([[0, 7]], sender="/"),
    "a frame left over": raw(m.Greet, 7, frames=[b"x"]),
}


@pytest.mark.parametrize("frames", UNANSWERABLE.values(), ids=UNANSWERABLE.keys())
def test_without_a_number_nobody_is_told(frames: Frames) -> None:
    with pytest.raises(Malformed) as malformed:
        decode(frames)

    assert type(malformed.value) is Malformed


def test_a_partition_is_one_of_the_cluster_s() -> None:
    eight = Limits(partitions=8)
    for frames in (raw(m.Invite, 7), raw(m.Kept, 7, b"", (7).to_bytes(8, "big"), [[7, 0, ["n"]]], b""),
                   raw(m.Get, 7, b"", (7).to_bytes(8, "big") + bytes(8), b"", False)):
        assert decode(frames, eight).messages
    for frames in (raw(m.Invite, 8), raw(m.Kept, 7, b"", (8).to_bytes(8, "big"), [], b""),
                   raw(m.Kept, 7, b"", b"", [[8, 0, ["n"]]], b""),
                   raw(m.Get, 7, b"", (8).to_bytes(8, "big") + bytes(8), b"", False)):
        assert decode(frames).messages
        with pytest.raises(Malformed):
            decode(frames, eight)
