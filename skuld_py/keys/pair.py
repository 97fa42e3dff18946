"""A pair of keys of CURVE, ZeroMQ's encryption: the secret half proves who its owner is, the public half names
it."""

from __future__ import annotations

import attrs
import zmq

from skuld_py.errors import Refused

LIBZMQ_LEAST = (4, 3, 5)
"""Older ones overflow in CURVE's handshake (CVE-2019-13132), or lack what is relied on."""


@attrs.frozen
class Pair:
    """Both halves, in Z85."""

    public: str
    secret: str = attrs.field(repr=False)

    @property
    def fits(self) -> bool:
        """Whether the public half is that of the secret one: nobody is let in, or lets in, by one that is not."""
        try:
            return bool(zmq.curve_public(self.secret.encode()) == self.public.encode())
        except (ValueError, zmq.ZMQError):
            return False


def fresh() -> Pair:
    """A new pair, by libzmq's own source of randomness. ``Refused`` when its CURVE is missing or not safe.

    Its public half does not begin with ``-``, as one of 85 would: a command line takes that for an option."""
    check_library()
    while True:
        public, secret = zmq.curve_keypair()
        if not public.startswith(b"-"):
            return Pair(public.decode(), secret.decode())


def check_library() -> None:
    """``Refused`` unless libzmq can speak CURVE and is new enough."""
    found = zmq.zmq_version_info()
    if not zmq.has("curve") or found < LIBZMQ_LEAST:
        needed = ".".join(map(str, LIBZMQ_LEAST))
        raise Refused("old_libzmq", f"keys need libzmq {needed} or later with CURVE, and this is"
                      f" {zmq.zmq_version()}; install pyzmq from its wheel ('pip install --only-binary pyzmq"
                      " pyzmq')")
