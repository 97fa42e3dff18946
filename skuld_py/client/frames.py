"""Requests to frames and frames to answers, in a protocol that the client and the cluster have in common.

A client is told what all nodes understand when it greets them, and greets again now and then: so it speaks a newer
protocol soon after the cluster does. What it hears is read in any protocol that it knows.
"""

from __future__ import annotations

from collections.abc import Sequence

from skuld_py.client.pursuit import NOT_READY, Nodes
from skuld_py.config import GREETING_PROTOCOL, Limits
from skuld_py.errors import Malformed
from skuld_py.model.messages import Failed, Greet, Message
from skuld_py.wire.codec import Envelope, UnknownProtocol, decode, encode


def encoded(nodes: Nodes, cluster: str, message: Message) -> list[bytes]:
    """A request as frames. A greeting is never older than the first protocol whose answer says what the nodes
    speak."""
    protocol = max(nodes.protocol, GREETING_PROTOCOL) if type(message) is Greet else nodes.protocol
    return encode(Envelope("", cluster, (message,), protocol))


def decoded(nodes: Nodes, frames: Sequence[bytes], limits: Limits) -> tuple[Message, ...]:
    """The answers in an envelope; none if it is no envelope, or of a protocol that this program does not know."""
    try:
        answers = decode(frames, limits).messages
    except UnknownProtocol as problem:
        nodes.foreign = problem.message
        return ()
    except Malformed:
        return ()
    for answer in answers:
        if type(answer) is Failed and not answer.request and not is_farewell(answer):
            nodes.foreign = answer.text  # which request it refuses could not be read
    return answers


def is_farewell(answer: Message) -> bool:
    """Whether a node says that it stops, and is to be sent nothing more over this connection."""
    return type(answer) is Failed and not answer.request and answer.code == NOT_READY
