"""A call as the payload of a task: a name and plain values, never code.

    call("shop:add", 2, b=3)                      # the payload, for those who have not the function at hand

A payload is msgpack of ``[version, name, args, kwargs]``; its values are those of ``plain``, extension types
excluded. In version 2 the worker makes of them what the function's annotations ask for; in version 1, which
releases before 0.2 write, values arrive as they are. A segment of a workflow has a fifth part: the id of
its root, behind it the name of the input that made the root, and in 8 bytes when its workflow was submitted.

Invariants:

* ``decode_call`` is total: any bytes give a ``Call`` or ``Refused``, in memory bounded by their length.
* A call in which annotations have nothing to make again is written as version 1: the same bytes as ever, so
  workers of an older release run it, and an id given twice stands for the same content.

Rejected: version 2 for all. A cluster would run no call before its last worker is replaced. A segment's root in a
header of its task: what differs from task to task makes as many batches, and of a hundred segments of a hundred
roots each cost twice to three times as much to store and to claim.
"""

from __future__ import annotations

from typing import Any

import attrs
import msgpack

from skuld_py.calls.kinds import check_call
from skuld_py.calls.plain import Writer
from skuld_py.config import DEFAULT_LIMITS
from skuld_py.errors import Refused

AS_IT_IS, BY_ANNOTATION = 1, 2
"""Versions of a payload."""
NAME_CHARS_MAX = 200
ROOT_BYTES_MIN, ROOT_BYTES_MAX = 28, 92
_NAME_BYTES_MAX = 4 * NAME_CHARS_MAX + 16


@attrs.frozen
class Call:
    """What a payload says: call the function of this name with these arguments. ``version``: whether annotations
    say what they stand for. ``root``: of a segment of a workflow, the id of its root, the name of its input,
    and its workflow's submission."""

    name: str
    args: list[Any]
    kwargs: dict[str, Any]
    version: int = attrs.field(default=AS_IT_IS, eq=False)
    root: bytes = b""


def call(name: str, /, *args: Any, **kwargs: Any) -> bytes:
    """The payload of a task that calls the function of this name, which workers know, with these arguments. What
    they stand for, a date or a text, the function's annotations say. Raises ``Refused``."""
    return encode_call(name, args, kwargs, BY_ANNOTATION if args or kwargs else AS_IT_IS)


def encode_call(name: str, args: Any, kwargs: Any, version: int) -> bytes:
    """The payload, of arguments that are written here; ``Refused`` names what cannot travel."""
    writer = Writer()
    return pack(name, writer.plain(tuple(args), "args"), writer.plain(dict(kwargs), "kwargs"), version)


def pack(name: str, args: list[Any], kwargs: dict[str, Any], version: int) -> bytes:
    """The payload, of plain values."""
    check_name(name)
    check_call(name, args, kwargs)
    payload: bytes = msgpack.packb([version, name, args, kwargs])
    if len(payload) > DEFAULT_LIMITS.payload_bytes:
        raise Refused("payload_too_large", f"the call of {name} has {len(payload)} bytes, the limit is"
                      f" {DEFAULT_LIMITS.payload_bytes}; store the data elsewhere and send its path")
    return payload


def decode_call(payload: bytes) -> Call:
    """The call a payload describes, or ``Refused`` naming what is wrong with it."""
    if len(payload) > DEFAULT_LIMITS.payload_bytes:
        raise _no_call(f"it has {len(payload)} bytes, more than {DEFAULT_LIMITS.payload_bytes}")
    try:
        parts = msgpack.unpackb(payload, strict_map_key=True)
    except (ValueError, TypeError, msgpack.UnpackException) as problem:
        raise _no_call(f"it is no msgpack: {problem or type(problem).__name__}") from None
    if not isinstance(parts, list) or len(parts) not in (4, 5) or type(parts[0]) is not int:
        raise _no_call("it is not [version, name, args, kwargs]")
    version, name, args, kwargs = parts[:4]
    root = b"" if len(parts) == 4 else parts[4]
    if version not in (AS_IT_IS, BY_ANNOTATION):
        raise _no_call(f"its version is {version}, this worker knows {AS_IT_IS} and {BY_ANNOTATION}")
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        raise _no_call("args is no list or kwargs no map")
    if len(parts) == 5 and not (type(root) is bytes and ROOT_BYTES_MIN < len(root) <= ROOT_BYTES_MAX):
        raise _no_call("its root is no id with the name of an input")
    check_name(name)
    writer = Writer()
    made = Call(name, writer.plain(args, "args"), writer.plain(kwargs, "kwargs"), version, root)
    if writer.kinds:  # msgpack's own kind of time
        raise _no_call("it holds an extension type")
    return made


def function_of(payload: bytes) -> str | None:
    """The name of the function that a payload calls, None when it looks like no call. It reads the beginning only:
    what follows may be anything."""
    if payload[:1] not in (b"\x94", b"\x95"):
        return None
    unpacker = msgpack.Unpacker(max_buffer_size=_NAME_BYTES_MAX)
    unpacker.feed(payload[:_NAME_BYTES_MAX])
    try:
        unpacker.read_array_header()
        version, name = unpacker.unpack(), unpacker.unpack()
        check_name(name)
    except (ValueError, TypeError, msgpack.UnpackException, Refused):
        return None
    return str(name) if type(version) is int and version in (AS_IT_IS, BY_ANNOTATION) else None


def check_name(name: object) -> None:
    """A task function's name is short, and can be printed."""
    if not isinstance(name, str) or not 0 < len(name) <= NAME_CHARS_MAX or not name.isprintable():
        raise Refused("bad_name", f"a task function's name has 1 to {NAME_CHARS_MAX} printable characters,"
                      f" like acme.jobs:census, not {str(name)[:64]!r}")


def _no_call(problem: str) -> Refused:
    return Refused("bad_call", f"the payload is no call of a task function: {problem}")
