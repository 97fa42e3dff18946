"""Hostile bytes for the decoder, from a seed: valid envelopes that were spoilt in some way, and plain noise.

Whatever comes, ``decode`` gives an envelope or raises ``Malformed`` with a field and a short sentence; and what it
gives must be said again in the same words, else two nodes could understand the same bytes differently.

Inputs come in rounds, each with a seed of its own, which is printed: a failure is a round to replay, alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable
from random import Random, SystemRandom
from typing import Any

import attrs
import msgpack

import strategies
from skuld_py.config import PROTOCOL_VERSION
from skuld_py.errors import Malformed
from skuld_py.model.messages import MESSAGES
from skuld_py.wire.codec import Envelope, decode, encode

ROUND = 10_000
"""Inputs of one round, of one sort."""

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 255, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
    -(1 << 63), 1.0, float("nan"), float("inf"),
    "", "a", "a/b", "..", "\0", "\u202e", "x" * 300, b"", b"\0", b"\0" * 4,
    b"\xff" * 8, b"\0" * 20, b"x" * 5_000, [], [[]], [0] * 300, {}, {"a": 1}, [b"", 0], [b"\0\0\0\1", 1],
    [b"\xff" * 8, 1], msgpack.ExtType(1, b"x"), msgpack.Timestamp(1, 2),
)  # fmt: skip


def corpus(random: Random) -> list[list[bytes]]:
    """Valid frames: every message alone, four times, and some mixed envelopes."""
    singles = [[strategies.random_message(random, of)] for of in MESSAGES for _ in range(4)]
    mixed = [[strategies.random_message(random, random.choice(MESSAGES)) for _ in range(3)]
             for _ in range(40)]
    return [encode(Envelope(random.choice(["", "n:1"]), "main", tuple(made))) for made in singles + mixed]


def noise(random: Random, frames: list[bytes]) -> list[bytes]:
    """Random bytes, up to 64 KiB."""
    size = random.choice((8, 64, 1_024)) if random.random() < 0.99 else 65_536
    return [random.randbytes(random.randint(0, size)) for _ in range(random.randint(0, 3))]


def noise_behind_a_message(random: Random, frames: list[bytes]) -> list[bytes]:
    """A valid beginning, then bytes that are likely msgpack."""
    likely = b"\x00\x01\x80\x90\x91\x93\xa1a\xc0\xc4\xc6\xca\xd4\xdc\xdd\xff"
    tail = bytes(random.choices(likely, k=12))
    return [frames[0][: random.randint(1, len(frames[0]))] + tail, *frames[1:]]


def truncation(random: Random, frames: list[bytes]) -> list[bytes]:
    """One frame cut short, or the last frames gone."""
    if random.random() < 0.2:
        return frames[: random.randint(0, len(frames))]
    at = random.randrange(len(frames))
    return [*frames[:at], frames[at][: random.randint(0, len(frames[at]))], *frames[at + 1 :]]


def bit_flips(random: Random, frames: list[bytes]) -> list[bytes]:
    """One to four bits turned over, mostly in the header."""
    at = 0 if random.random() < 0.9 else random.randrange(len(frames))
    spoilt = bytearray(frames[at])
    for _ in range(random.randint(1, 4)):
        if spoilt:
            spoilt[random.randrange(len(spoilt))] ^= 1 << random.randrange(8)
    return [*frames[:at], bytes(spoilt), *frames[at + 1 :]]


def hostile_value(random: Random, frames: list[bytes]) -> list[bytes]:
    """Valid msgpack in which one value became another, or a list changed."""
    tree = msgpack.unpackb(frames[0])
    place = random.choice(_lists(tree))
    at = random.randrange(len(place))
    change = random.randrange(6)
    if change == 0:
        del place[at]
    elif change == 1:
        place.insert(at, place[at])
    elif change == 2:
        place[at] = [place[at]]
    else:
        place[at] = random.choice(HOSTILE)
    return [msgpack.packb(tree), *frames[1:]]


def _lists(tree: list[Any]) -> list[list[Any]]:
    """Every list in a tree that has items, the outermost first."""
    inner = [found for value in tree if isinstance(value, list) and value for found in _lists(value)]
    return [tree, *inner]


def moved_frames(random: Random, frames: list[bytes]) -> list[bytes]:
    """Whole frames lost, repeated, swapped or made up."""
    moved = list(frames)
    change, at = random.randrange(4), random.randrange(len(frames))
    if change == 0:
        del moved[at]
    elif change == 1:
        moved.insert(at, moved[at])
    elif change == 2:
        other = random.randrange(len(frames))
        moved[at], moved[other] = moved[other], moved[at]
    else:
        moved.append(random.choice((b"", b"\0", b"x" * 100)))
    return moved


Sort = Callable[[Random, list[bytes]], list[bytes]]
SORTS: tuple[Sort, ...] = (
    noise, noise_behind_a_message, truncation, bit_flips, hostile_value, moved_frames,
)  # fmt: skip


# -- runs ----------------------------------------------------------------------------------------


def try_out(sort: Sort, seed: str, inputs: int) -> Counter[str]:
    """Decode so many inputs of a sort; raises what must not be, with what it takes to replay it."""
    random = Random(seed)
    valid = corpus(random)
    outcomes: Counter[str] = Counter()
    for number in range(inputs):
        frames = sort(random, random.choice(valid))
        try:
            outcomes[outcome_of(frames)] += 1
        except BaseException as problem:
            frames_said = [frame.hex() for frame in frames]
            problem.add_note(f"{sort.__name__}, seed {seed!r}, input {number}: {frames_said}")
            raise
    return outcomes


def outcome_of(frames: list[bytes]) -> str:
    """``accepted`` or ``malformed``; anything else raises."""
    try:
        envelope = decode(frames)
    except Malformed as malformed:
        assert malformed.field and len(malformed.message) < 300, malformed.message
        return "malformed"
    known = attrs.evolve(envelope, version=PROTOCOL_VERSION)  # an older one has no place for late fields
    assert decode(encode(known)) == known
    return "accepted"


def main() -> int:
    """The long run."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=1_000_000, help="how many in all (default: %(default)s)")
    parser.add_argument("--seed", default=str(SystemRandom().getrandbits(48)), help="replays a run")
    options = parser.parse_args()
    began, done, outcomes = time.monotonic(), 0, Counter[str]()
    while done < options.inputs:
        sort = SORTS[done // ROUND % len(SORTS)]
        seed, count = f"{options.seed} {done}", min(ROUND, options.inputs - done)
        found = try_out(sort, seed, count)
        for outcome, times in found.items():
            outcomes[f"{sort.__name__} {outcome}"] += times
        done += count
        sys.stdout.write(f"{done:>10,} inputs  seed {seed!r}  {sort.__name__}: {dict(found)}\n")
        sys.stdout.flush()
    for name, times in sorted(outcomes.items()):
        sys.stdout.write(f"{times:>10,} {name}\n")
    sys.stdout.write(f"{done:,} inputs in {time.monotonic() - began:.0f} s, none but accepted and malformed; seed"
                     f" {options.seed}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
