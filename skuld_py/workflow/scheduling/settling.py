"""Who takes which seat of one kind, when it is known how many each step has: without a history.

    settled([("w1 a", 3), ("w1 b", 1)], [("n1", 2), ("n2", 2)])    # of each place: how many of each seat

Members must agree who sits where, though one has seen each change and another has jumped over most of them. So
what they agree on may depend on what there is, never on what there was. It should yet move little when little
changes.

Seats and places throw dice that depend on their names alone. In each round every open seat picks a place by its
dice of that round, and has it if there is room, the lowest dice first; what is open after ``ROUNDS``, and the
places that have room then, are paired by the dice of each pair. So a change sets off a chain: what loses its place
picks another one, where it takes the room of one that came much later, and so on, for about the logarithm of their
number.

What that costs, where all slots are taken and a node of four comes or goes, or a workflow of three steps does: of
12 slots 4 take another seat on average where 2 must; 18 of 120, 31 of 1,000, 50 of 10,000, where 6 must. The bound
of Onyx's tests, which counts both sides of a move, is 7, and then 14. So it is kept for tens of slots, and missed
by two to four times for thousands. No function of what there is keeps it: of one workflow of three steps on five
nodes none does (``tests/workflow/test_no_seating_keeps_the_bound`` tries them all). A move costs little here: what
a slot runs it goes on to run, and only what it claims next is another step's.

Invariant: a function of its arguments alone, whatever their order.

Rejected: seats in the log or under a version of their own, as the placement is, for which each allocation is made
from the former one (``seating.Seating.keep``): it keeps the bound, but a decision that is overtaken is dropped, so
members on fast and slow machines would have made them from other ones; and who jumps over an origin has none. An
entry that says who sits where: one more write for each change, by a member chosen for it, and 10,000 rows in every
origin. Ranks (the first seat to the first place): all behind a change move up, half of the slots.
Source: Gale and Shapley, "College Admissions and the Stability of Marriage", 1962, where both sides go by the
same numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from struct import pack

from xxhash import xxh3_64_intdigest

ROUNDS = 256

Counted = Sequence[tuple[str, int]]
"""Different names, each with how many."""


def settled(seats: Counted, places: Counted) -> list[dict[int, int]]:
    """Of each place: of which seats, by number, it takes how many. There is a place for each seat."""
    made: list[dict[int, int]] = [{} for _ in places]
    room = [count for _, count in places]
    ring = sorted((_dice(name, number), at) for at, (name, count) in enumerate(places) for number in range(count))
    points = [point for point, _ in ring]
    left = [(pack(">Q", _dice(name, number)), index) for index, (name, count) in enumerate(seats)
            for number in range(count)]
    for turn in range(ROUNDS):
        thrown = sorted((xxh3_64_intdigest(seat, turn), seat, index) for seat, index in left)
        left = []
        for dice, seat, index in thrown:
            at = ring[bisect_left(points, dice) % len(ring)][1]
            if room[at]:
                _sit(made, room, at, index)
            else:
                left.append((seat, index))
        if not left:
            break
    _pair(made, room, left, places)
    return made


def _pair(made: list[dict[int, int]], room: list[int], left: list[tuple[bytes, int]], places: Counted) -> None:
    """Seat the rest: the pair with the lowest dice first."""
    free = [(at, _dice(places[at][0], number)) for at, count in enumerate(room) for number in range(count)]
    seated: set[bytes] = set()
    taken: set[int] = set()
    pairs = ((xxh3_64_intdigest(seat, place), seat, place, at, index)
             for seat, index in left for at, place in free)
    for _, seat, place, at, index in sorted(pairs):
        if seat not in seated and place not in taken:
            seated.add(seat)
            taken.add(place)
            _sit(made, room, at, index)


def _sit(made: list[dict[int, int]], room: list[int], at: int, index: int) -> None:
    room[at] -= 1
    made[at][index] = made[at].get(index, 0) + 1


def _dice(name: str, number: int) -> int:
    return xxh3_64_intdigest(f"{name} {number}".encode())
