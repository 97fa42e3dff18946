"""Telling a few members of an operator's entry: members that share entries read the log itself only after a
silence.

An operator is no member, so its entry would not be passed on, and members with ``sharing`` would see it some ten
seconds later. So it tells a few of them, as a member does that has appended, and they pass it on; a member that
does not share ignores it and has read the log by then.

Nothing is answered and nothing rests on it: what is lost here is read after the silence. Rejected: a shorter
silence (every member would read the more often, all day, for what an operator does once a week).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from random import SystemRandom

import zmq

from skuld_py.config import Parameters, protocol_of
from skuld_py.model.columns import pack, pack_u64
from skuld_py.model.document import Member
from skuld_py.model.messages.membership import Share
from skuld_py.wire.codec import Envelope, encode

TOLD = 4
"""Members that are told; some of them may be down."""
_LINGER_MS = 500
"""How long a member that does not take it is waited for."""
_SENDER = "operator"


def pass_on(parameters: Parameters, rules: int, members: Sequence[Member], position: int, raw: bytes) -> None:
    """Tell some members of an entry that stands at ``position``."""
    share = Share(parameters.cluster_id, -1, b"", pack_u64([position]), bytes([1]), pack([raw]))
    frames = encode(Envelope(_SENDER, parameters.cluster, (share,), protocol_of(rules)))
    with zmq.Context() as context:  # closing it waits for what is on its way
        for member in SystemRandom().sample(members, min(TOLD, len(members))):
            with context.socket(zmq.DEALER) as dealer, suppress(zmq.ZMQError):  # no address, or no member takes it
                dealer.setsockopt(zmq.LINGER, _LINGER_MS)
                dealer.connect(f"tcp://{member.host}:{member.port}")
                dealer.send_multipart(frames, zmq.DONTWAIT)
