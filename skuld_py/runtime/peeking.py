"""What the kernel says of a socket that libzmq owns, and of this process; and the end of such a socket.

A socket is named by its file's number and its cookie: a number is used again, a cookie never. Nothing here keeps a
socket open. Only ``end`` changes a socket: it shuts it down, and drops what was not read.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import functools
import os
import resource
import socket
import struct
import sys
import termios
from collections.abc import Iterator

import attrs

_PAGE_BYTES = resource.getpagesize()
_SO_COOKIE = 57
_COUNTS = struct.Struct("QQ")
_COUNTS_AT = 120
"""``tcpi_bytes_acked`` and ``tcpi_bytes_received`` in the kernel's ``struct tcp_info``, since Linux 4.1."""


@attrs.frozen
class Flow:
    """Bytes of a connection: ``brought`` ones were read of it, ``acknowledged`` ones the other side has."""

    brought: int
    acknowledged: int


def cookie_of(number: int, port: int) -> bytes | None:
    """What tells this socket from all others; None when it is not one of this port any more."""
    with contextlib.suppress(OSError, IndexError), borrowed(number) as found:
        if found.getsockname()[1] == port:
            return _cookie(found)
    return None


def flow_of(number: int, cookie: bytes) -> Flow | None:
    """What has gone through a socket; None when it is gone."""
    with contextlib.suppress(OSError), borrowed(number) as found:
        if _cookie(found) == cookie:
            told = found.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            unread = int.from_bytes(fcntl.ioctl(number, termios.FIONREAD, bytes(4)), sys.byteorder)
            acknowledged, arrived = _COUNTS.unpack_from(told, _COUNTS_AT)
            return Flow(arrived - unread, acknowledged)
    return None


def end(number: int, cookie: bytes) -> bool:
    """Cut a socket; whether it was there. libzmq closes it when it can read no more, and its sender hears of
    that."""
    with contextlib.suppress(OSError):
        mine = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, os.dup(number))
        with mine:
            if _cookie(mine) != cookie:
                return False
            mine.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            mine.shutdown(socket.SHUT_RDWR)
            _drop_unread(mine)
            return True
    return False


def _drop_unread(ended: socket.socket) -> None:
    """Drop it in one read: the kernel refuses what arrives after the end. libzmq would read it all before it hears
    of the end."""
    unread = int.from_bytes(fcntl.ioctl(ended, termios.FIONREAD, bytes(4)), sys.byteorder)
    if unread:
        with contextlib.suppress(OSError):
            ended.recv_into(bytearray(unread), unread, socket.MSG_TRUNC | socket.MSG_DONTWAIT)


def own_bytes() -> int:
    """What this process has for itself: not what it reads of mapped files."""
    _, resident, shared, _ = os.pread(_sizes_of(os.getpid()), 256, 0).split(b" ", 3)
    return (int(resident) - int(shared)) * _PAGE_BYTES


@functools.cache
def _sizes_of(process: int) -> int:
    """The file in which the kernel says how large this process is; it stays open, for one asks when files are few
    just as well."""
    return os.open(f"/proc/{process}/statm", os.O_RDONLY)


def give_back() -> None:
    """Have the C library return what was freed; it would keep it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def _cookie(found: socket.socket) -> bytes:
    return found.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8)


@contextlib.contextmanager
def borrowed(number: int) -> Iterator[socket.socket]:
    """A socket that libzmq owns, and closes."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 0, number)
    try:
        yield found
    finally:
        found.detach()
