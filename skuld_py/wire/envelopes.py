"""Messages to one receiver, in as few envelopes as hold them, none larger than a receiver takes.

All messages of a turn travel in one envelope; where they are too much for one, in halves of halves. A message that
is too large alone never travels. If it is an answer, its receiver is told so (``Failed``). A question would be
lost in silence, asked again and lost again; so no node may ever make one that large: what grows is cut into pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from skuld_py.config import DEFAULT_LIMITS, PROTOCOL_VERSION, Limits
from skuld_py.errors import Refused
from skuld_py.model.messages import Failed, Message
from skuld_py.wire.codec import Envelope, encode

TEXT_MAX = 1_000

OnTooLarge = Callable[[Message, Refused, bool], None]
"""Gets the message, what is wrong with it, and whether its receiver is told."""


def envelopes(sender: str, cluster: str, messages: Sequence[Message], on_too_large: OnTooLarge,
              limits: Limits = DEFAULT_LIMITS, protocol: int = PROTOCOL_VERSION
              ) -> Iterator[tuple[Envelope, list[bytes]]]:
    """Each envelope with its frames, in a protocol that the receiver understands."""
    envelope = Envelope(sender, cluster, tuple(messages), protocol)
    try:
        yield envelope, encode(envelope, limits)
        return
    except Refused as refusal:
        if len(messages) == 1:
            failure = _in_place_of(messages[0], refusal)
            on_too_large(messages[0], refusal, failure is not None)
            if failure is not None:
                told = Envelope(sender, cluster, (failure,), protocol)
                yield told, encode(told, limits)
            return
    middle = len(messages) // 2
    yield from envelopes(sender, cluster, messages[:middle], on_too_large, limits, protocol)
    yield from envelopes(sender, cluster, messages[middle:], on_too_large, limits, protocol)


def _in_place_of(message: Message, refusal: Refused) -> Failed | None:
    """What the receiver is told instead of an answer; None for a question, for which it does not wait."""
    request = getattr(message, "request", None)
    if request is None or not message.is_promise or isinstance(message, Failed):
        return None
    text = f"{type(message).__name__}: the answer cannot be sent, {refusal.message}"
    return Failed(request, refusal.code, text[:TEXT_MAX], True)
