"""Links that delay, lose, repeat and reorder, and partitions of them as data with a start and an end.

Each directed link draws from a stream of its own. Messages overtake each other because latencies
differ; a few take very long. A cut link loses what is sent and what is under way; a clogged one
holds everything back until it opens; a reset loses what is under way between two endpoints and
nothing else. Every link between nodes remembers the newest of what it carried, so that a frame can
come once more long after its time, and what elections send may be held up (``lateness``).

A partition is a list of directed links to cut. Source of their shapes: Jepsen's nemeses.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from random import Random

import attrs

from skuld_py.simulation.world.lateness import Envelope, Lateness, Link
from skuld_py.simulation.world.scheduler import Scheduler, stream

Deliver = Callable[[str, Envelope], None]

TAIL_FACTOR = 50
RECORDED = 64
"""Frames that a link remembers for a replay."""
JUST_MS = 1
"""What was held up arrives this much before what it waited for: mostly a turn earlier."""
OLD_MS = 5_000
"""A replayed frame older than this comes after everything that waited for it has given up."""


@attrs.frozen
class Weather:
    """How links behave: milliseconds, and probabilities per envelope."""

    latency_min_ms: int = 1
    latency_mean_ms: float = 1.0
    tail: float = 0.001
    """Probability of a message that takes fifty times as long."""
    loss: float = 0.0
    repeat: float = 0.0
    capacity: int = 0
    """Frames that a link holds before it drops the newest; 0: any number."""


CALM = Weather()


class Network:
    """Carries messages between endpoints, nodes and clients alike."""

    def __init__(self, scheduler: Scheduler, seed: int, weather: Weather) -> None:
        self.weather = weather
        self.counts: Counter[str] = Counter()
        self.translate: Callable[[str, Envelope], Envelope] | None = None
        """Stands for the wire: gets the sender and the messages, gives what arrives."""
        self.on_cut: Callable[[], None] = lambda: None
        self._scheduler = scheduler
        self._seed = seed
        self._endpoints: dict[str, Deliver] = {}
        self._clients: dict[str, None] = {}
        self._randoms: dict[Link, Random] = {}
        self._cuts: Counter[Link] = Counter()
        self._open_ms: dict[Link, int] = {}
        self._slow_ms: dict[str, int] = {}
        self._resets: dict[Link, int] = {}
        self._under_way: Counter[Link] = Counter()
        self._recorded: dict[Link, deque[tuple[int, Envelope]]] = {}
        self.lateness = Lateness(stream(seed, "lateness"), self.counts)

    def attach(self, name: str, deliver: Deliver, *, is_client: bool = False) -> None:
        """Give an endpoint its name. What passes between a client and a node arrives once or never."""
        self._endpoints[name] = deliver
        if is_client:
            self._clients[name] = None

    # -- faults --------------------------------------------------------------------------------

    def cut(self, links: Iterable[Link]) -> None:
        """Break directed links; cuts of the same link add up."""
        self._cuts.update(links)
        self.on_cut()

    def mend(self, links: Iterable[Link]) -> None:
        """Take one cut of each link back."""
        for link in links:
            self._cuts[link] -= 1

    def mend_all(self) -> None:
        """Take all cuts, clogs and delays back."""
        self.lateness.clear()
        self._cuts.clear()
        self._open_ms.clear()
        self._slow_ms.clear()

    def is_cut(self, link: Link) -> bool:
        """Whether nothing passes this way."""
        return self._cuts[link] > 0

    def clog(self, link: Link, until_ms: int) -> None:
        """Hold back what is sent on a link until then."""
        self._open_ms[link] = until_ms

    def slow(self, name: str, extra_ms: int) -> None:
        """Have everything to and from an endpoint take longer; 0 ends it."""
        self._slow_ms[name] = extra_ms

    def reset(self, one: str, other: str) -> None:
        """Lose what is under way between two endpoints, as when their connection breaks."""
        for link in ((one, other), (other, one)):
            self._resets[link] = self._resets.get(link, 0) + 1

    def replay(self, random: Random, name: str, count: int) -> None:
        """Let frames that a node once sent or was sent, however old, arrive once more."""
        frames = [(link, *frame) for link, recorded in self._recorded.items() if name in link
                  for frame in recorded]
        for link, sent_ms, messages in random.sample(frames, min(count, len(frames))):
            self.counts["replayed"] += 1
            if self._scheduler.now_ms - sent_ms > OLD_MS:
                self.counts["replayed old"] += 1
            self._plan(link, random, messages)

    # -- messages ------------------------------------------------------------------------------

    def send(self, sender: str, receiver: str, messages: Envelope) -> None:
        """Hand messages over in one envelope; whether and when it arrives is drawn."""
        link = (sender, receiver)
        random = self._randoms.get(link)
        if random is None:
            random = self._randoms[link] = stream(self._seed, f"link {sender} {receiver}")
        weather = self.weather
        self.counts["sent"] += 1
        if self._cuts[link] > 0 or (weather.loss and random.random() < weather.loss):
            self.counts["lost"] += 1
            return
        if weather.capacity and self._under_way[link] >= weather.capacity:
            self.counts["dropped at capacity"] += 1
            return
        messages, held_up = self.lateness.sift(link, messages)
        at_ms = self._plan(link, random, messages)
        for earlier, late in held_up:
            self._plan_at(max(self._scheduler.now_ms, at_ms - JUST_MS), earlier, late)
        if self._is_of_client(link):
            return
        self._record(link, messages)
        if weather.repeat and random.random() < weather.repeat:
            self.counts["repeated"] += 1
            self._plan(link, random, messages)

    def _record(self, link: Link, messages: Envelope) -> None:
        recorded = self._recorded.get(link)
        if recorded is None:
            recorded = self._recorded[link] = deque(maxlen=RECORDED)
        recorded.append((self._scheduler.now_ms, messages))

    def _is_of_client(self, link: Link) -> bool:
        return link[0] in self._clients or link[1] in self._clients

    def _plan(self, link: Link, random: Random, messages: Envelope) -> int:
        weather = self.weather
        delay_ms = weather.latency_min_ms + int(random.expovariate(1.0) * weather.latency_mean_ms)
        if random.random() < weather.tail:
            delay_ms = 1 + delay_ms * TAIL_FACTOR
        if self._slow_ms:
            delay_ms += self._slow_ms.get(link[0], 0) + self._slow_ms.get(link[1], 0)
        at_ms = max(self._scheduler.now_ms, self._open_ms.get(link, 0)) + delay_ms
        self._plan_at(at_ms, link, messages)
        return at_ms

    def _plan_at(self, at_ms: int, link: Link, messages: Envelope) -> None:
        self._under_way[link] += 1
        self._scheduler.at(at_ms, self._arrive, link, messages, self._resets.get(link, 0))

    def _arrive(self, link: Link, messages: Envelope, resets: int) -> None:
        self._under_way[link] -= 1
        if self._cuts[link] > 0:
            self.counts["lost"] += 1
            return
        if self._resets.get(link, 0) != resets:
            self.counts["lost by a reset"] += 1
            return
        deliver = self._endpoints.get(link[1])
        if deliver is not None and messages:
            deliver(link[0], messages if self.translate is None else self.translate(link[0], messages))


# -- partitions as data ------------------------------------------------------------------------------


def between(some: Sequence[str], others: Sequence[str]) -> list[Link]:
    """All links between two groups, both ways."""
    return one_way(some, others) + one_way(others, some)


def one_way(some: Sequence[str], others: Sequence[str]) -> list[Link]:
    """All links from one group to another: replies still pass."""
    return [(a, b) for a in some for b in others if a != b]


def halves(random: Random, names: Sequence[str]) -> list[Link]:
    """Two groups that do not hear each other."""
    shuffled = random.sample(list(names), len(names))
    at = random.randint(1, max(1, len(names) - 1))
    return between(shuffled[:at], shuffled[at:])


def bridge(random: Random, names: Sequence[str]) -> list[Link]:
    """Two halves that only one node in the middle hears both of."""
    _middle, *rest = random.sample(list(names), len(names))
    at = len(rest) // 2
    return between(rest[:at], rest[at:])


def ring(random: Random, names: Sequence[str]) -> list[Link]:
    """Every node hears a majority, and no two hear the same one."""
    circle = random.sample(list(names), len(names))
    size = len(circle)
    deaf = [[circle[(at + step) % size] for step in range(size // 2 + 1, size)] for at in range(size)]
    return [(other, name) for name, others in zip(circle, deaf, strict=True) for other in others]
