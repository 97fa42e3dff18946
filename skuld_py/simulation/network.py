"""Links that delay, lose, repeat and reorder, and partitions of them as data with a start and an end.

Each directed link draws from a stream of its own. Messages overtake each other because latencies
differ; a few take very long. A cut link loses what is sent and what is under way; a clogged one
holds everything back until it opens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from random import Random

import attrs

from skuld_py.model.messages import Message
from skuld_py.simulation.scheduler import Scheduler, stream

Envelope = tuple[Message, ...]
Deliver = Callable[[str, Envelope], None]
Link = tuple[str, str]

TAIL_FACTOR = 50


@attrs.frozen
class Weather:
    """How links behave: milliseconds, and probabilities per envelope."""

    latency_min_ms: int = 1
    latency_mean_ms: float = 1.0
    tail: float = 0.001
    """Probability of a message that takes fifty times as long."""
    loss: float = 0.0
    repeat: float = 0.0


CALM = Weather()


class Network:
    """Carries messages between endpoints, nodes and clients alike."""

    def __init__(self, scheduler: Scheduler, seed: int, weather: Weather) -> None:
        self.weather = weather
        self.counts: Counter[str] = Counter()
        self.translate: Callable[[str, Envelope], Envelope] | None = None
        """Stands for the wire: gets the sender and the messages, gives what arrives."""
        self._scheduler = scheduler
        self._seed = seed
        self._endpoints: dict[str, Deliver] = {}
        self._clients: dict[str, None] = {}
        self._randoms: dict[Link, Random] = {}
        self._cuts: Counter[Link] = Counter()
        self._open_ms: dict[Link, int] = {}

    def attach(self, name: str, deliver: Deliver, *, is_client: bool = False) -> None:
        """Give an endpoint its name. What passes between a client and a node arrives once or never."""
        self._endpoints[name] = deliver
        if is_client:
            self._clients[name] = None

    # -- faults --------------------------------------------------------------------------------

    def cut(self, links: Iterable[Link]) -> None:
        """Break directed links; cuts of the same link add up."""
        self._cuts.update(links)

    def mend(self, links: Iterable[Link]) -> None:
        """Take one cut of each link back."""
        for link in links:
            self._cuts[link] -= 1

    def mend_all(self) -> None:
        """Take all cuts and clogs back."""
        self._cuts.clear()
        self._open_ms.clear()

    def is_cut(self, link: Link) -> bool:
        """Whether nothing passes this way."""
        return self._cuts[link] > 0

    def clog(self, link: Link, until_ms: int) -> None:
        """Hold back what is sent on a link until then."""
        self._open_ms[link] = until_ms

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
        self._plan(link, random, messages)
        if weather.repeat and random.random() < weather.repeat and not self._is_of_client(link):
            self.counts["repeated"] += 1
            self._plan(link, random, messages)

    def _is_of_client(self, link: Link) -> bool:
        return link[0] in self._clients or link[1] in self._clients

    def _plan(self, link: Link, random: Random, messages: Envelope) -> None:
        weather = self.weather
        delay_ms = weather.latency_min_ms + int(random.expovariate(1.0) * weather.latency_mean_ms)
        if random.random() < weather.tail:
            delay_ms = 1 + delay_ms * TAIL_FACTOR
        at_ms = max(self._scheduler.now_ms, self._open_ms.get(link, 0)) + delay_ms
        self._scheduler.at(at_ms, self._arrive, link, messages)

    def _arrive(self, link: Link, messages: Envelope) -> None:
        if self._cuts[link] > 0:
            self.counts["lost"] += 1
            return
        deliver = self._endpoints.get(link[1])
        if deliver is not None:
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
