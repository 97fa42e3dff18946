"""The gate before a listening socket: while it is shut, the kernel lets nobody new come to it.

libzmq accepts whatever connects, as fast as it comes, and has no way to stop. But the listening socket is a file
of this process, so a filter can be put on it that drops what begins a connection. Connections that stand are let
be; those that the kernel has ready are still accepted: as many as its backlog holds. Who is dropped asks again
after a second, as TCP does.

The filter drops packets with the SYN flag and no others: accepted connections inherit it, and bring none.
Rejected: ``shutdown`` of the listening socket, at which libzmq aborts; ``zmq_unbind``, which ends accepted
connections too.
"""

from __future__ import annotations

import ctypes
import socket
import struct

from skuld_py.runtime import peeking

_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_LOAD_BYTE, _JUMP_IF_ANY, _RETURN = 0x30, 0x45, 0x06
"""Instructions of the kernel's packet filters (BPF)."""
_FLAGS_AT, _SYN = 13, 0x02
_PROGRAM = b"".join(struct.pack("HBBI", *line) for line in (
    (_LOAD_BYTE, 0, 0, _FLAGS_AT), (_JUMP_IF_ANY, 0, 1, _SYN), (_RETURN, 0, 0, 0), (_RETURN, 0, 0, 0xFFFF_FFFF)))
_LINES = 4


class Gate:
    """That of the listening socket whose file is ``number``."""

    def __init__(self, number: int) -> None:
        self.is_shut = False
        self._number = number

    def bar(self) -> None:
        """Let nobody new come."""
        if not self.is_shut:
            program = ctypes.create_string_buffer(_PROGRAM)
            self._set(_SO_ATTACH_FILTER, struct.pack("HP", _LINES, ctypes.addressof(program)))
            self.is_shut = True

    def unbar(self) -> None:
        """Let them come again."""
        if self.is_shut:
            self._set(_SO_DETACH_FILTER, struct.pack("i", 0))
            self.is_shut = False

    def _set(self, option: int, value: bytes) -> None:
        with peeking.borrowed(self._number) as listening:
            listening.setsockopt(socket.SOL_SOCKET, option, value)
