"""Who is compared with whom, when, and in which order; and when hash trees are drafted."""

from __future__ import annotations

from collections import deque
from itertools import count
from types import SimpleNamespace
from typing import Any

import attrs
import pytest

from node.machines import Machines
from skuld_py.config import DEFAULT_LIMITS, Parameters
from skuld_py.config.timing import DEFAULT_TIMING, Timing
from skuld_py.model import messages as m
from skuld_py.model.body import Header
from skuld_py.model.events import Send
from skuld_py.model.ids import IdMint
from skuld_py.model.memory_store import MemoryStore
from skuld_py.node.copies.exchanges import Exchanges
from skuld_py.node.knowledge.debts import Debts
from skuld_py.partition.copies.exchange import Pass, answer_compare, answer_fetch, answer_probe
from skuld_py.partition.data.bulletin import Bulletin
from skuld_py.partition.data.replica import Replica
from skuld_py.partition.data.rows import merge_rows

HEADER = Header("q").encode()
PARTITIONS = 4
TIMING = attrs.evolve(DEFAULT_TIMING, exchanges=1, exchange_units=2, exchange_ms=1_000_000)


def replicas(store: MemoryStore) -> list[Replica]:
    return [Replica(partition, store, 10) for partition in range(PARTITIONS)]


class Home:
    """As much of a node as its exchanges use: one of three owners, with its peers' replicas; ``led`` are
    partitions led here."""

    def __init__(self, timing: Timing = TIMING, store: MemoryStore | None = None) -> None:
        self.view = self.outbox = self
        self.me = SimpleNamespace(name="a")
        self.debts = Debts()
        self.live = {"a": None, "b": None, "c": None}
        self.timing, self.limits = timing, DEFAULT_LIMITS
        self.parameters = Parameters("c", "id", PARTITIONS)
        self.vnodes = [SimpleNamespace(partition=made.partition, replica=made, takes_writes=True,
                                       keepers=["a", "b", "c"])
                       for made in replicas(store or MemoryStore())]
        self.bulletin = Bulletin()
        self.peers = {name: replicas(MemoryStore()) for name in ("b", "c")}
        self.led: tuple[int, ...] = ()
        self.sent: deque[tuple[str, Any]] = deque()
        self.asked: list[tuple[int, str, str]] = []
        self.passes: dict[tuple[int, str], Pass] = {}
        self.now_ms = 1_000
        self.numbers = count(1)
        self.exchanges = Exchanges(self)  # type: ignore[arg-type]
        self.exchanges.on_pass.append(self.note)
        self.exchanges.look(self.now_ms)
        self._drop_round()

    def _drop_round(self) -> None:
        """The round with which a node begins is not what most tests look at."""
        while self.sent or self.exchanges.due_ms <= self.now_ms:
            self.deliver(True)
        self.asked.clear()
        self.passes.clear()

    def leader_of(self, partition: int) -> str:
        return "a" if partition in self.led else ""

    def note(self, now_ms: int, ended: Pass) -> None:
        self.passes[ended.partition, ended.peer] = ended

    def send(self, peer: str, message: Any) -> None:
        self.sent.append((peer, message))
        self.asked.append((message.partition, peer, type(message).__name__))

    def carry_out(self, effects: list[Any]) -> None:
        for effect in effects:
            assert isinstance(effect, Send)
            self.send(effect.peer, effect.message)

    def deliver(self, is_answered: bool) -> None:
        """All that was sent arrives, and the answers to it; then what is due."""
        while self.sent:
            peer, message = self.sent.popleft()
            made = self.peers[peer][message.partition]
            match message:
                case m.Probe():
                    answer: Any = answer_probe(made, message)
                case m.Compare():
                    answer = answer_compare(made, self.limits, message)
                case m.Fetch():
                    answer = answer_fetch(made, self.limits, message)
                case m.Repair():
                    merge_rows(made, self.now_ms, PARTITIONS, message.tasks)
                    continue
                case _:
                    continue
            if is_answered:
                self.exchanges.on_answer(self.now_ms, peer, answer)
        self.exchanges.look(self.now_ms)

    def pass_time(self, milliseconds: int, is_answered: bool = True) -> None:
        """From deadline to deadline."""
        end_ms = self.now_ms + milliseconds
        while True:
            self.deliver(is_answered)
            if self.sent:
                continue
            due_ms = self.exchanges.due_ms
            if due_ms > end_ms:
                break
            self.now_ms = max(self.now_ms + 1, due_ms)
        self.now_ms = end_ms

    def begun(self) -> list[tuple[int, str]]:
        """Roots asked for, in order."""
        return [(partition, peer) for partition, peer, name in self.asked if name == "Probe"]


def fill(made: Replica, count: int, nonce: int = 1) -> None:
    made.store_tasks(1, HEADER, IdMint(nonce).mint(1, count, made.partition), [b"x"] * count)


def test_those_that_a_leader_takes_part_in_go_first() -> None:
    home = Home()
    home.led = (2,)
    for partition in range(PARTITIONS):
        home.exchanges.want(partition, "b")
    home.pass_time(100)

    assert home.begun() == [(2, "b"), (0, "b"), (1, "b"), (3, "b")]
    assert all(home.passes[partition, "b"].is_clean for partition in range(PARTITIONS))


def test_after_a_lap_others_get_their_turn_and_the_rest_is_not_forgotten() -> None:
    """Each pair has three laps of two units in it, and the node runs one exchange at a time."""
    home = Home(attrs.evolve(TIMING, exchange_units=2))
    home.limits = attrs.evolve(DEFAULT_LIMITS, page_rows=2)
    for partition in (0, 1):
        fill(home.peers["b"][partition], 6)
        home.exchanges.want(partition, "b")
    home.pass_time(10_000)

    fetched = [partition for partition, _, name in home.asked if name == "Fetch"]
    assert fetched == [0, 1, 0, 1, 0, 1]
    for partition in (0, 1):
        assert home.vnodes[partition].replica.tree.root == home.peers["b"][partition].tree.root != 0
        assert not home.passes[partition, "b"].is_clean
        assert home.passes[partition, "b"].progress.fetched_rows == 6


def test_progress_shows_while_it_runs() -> None:
    home = Home()
    fill(home.peers["b"][0], 6)
    home.limits = attrs.evolve(DEFAULT_LIMITS, page_rows=2)
    home.exchanges.want(0, "b")
    home.pass_time(TIMING.confirm_ms)

    progress = home.exchanges.progress(0, "b")
    assert progress is not None and progress.pages > 0
    home.pass_time(10_000)
    assert home.exchanges.progress(0, "b") is None


def test_what_is_wanted_while_it_runs_is_done_again_from_the_beginning() -> None:
    home = Home()
    fill(home.peers["b"][0], 1)
    home.exchanges.want(0, "b")
    home.pass_time(TIMING.confirm_ms // 2)
    begun = home.exchanges.begun
    home.exchanges.want(0, "b")
    home.exchanges.want(0, "b")
    home.pass_time(5_000)

    ended = home.passes[0, "b"]
    assert ended.is_clean
    assert ended.serial == begun + 1
    assert len([key for key in home.begun() if key == (0, "b")]) == 3 + 1


def test_a_pass_is_wanted_of_owners_and_demanded_of_anybody() -> None:
    home = Home()
    home.exchanges.want(0, "a")
    home.exchanges.want(0, "stranger")
    home.pass_time(100)
    assert home.begun() == []

    home.peers["zombie"], home.live["zombie"] = replicas(MemoryStore()), None
    home.exchanges.demand(0, "zombie")
    home.pass_time(100)
    assert home.passes[0, "zombie"].is_clean


def test_a_peer_that_is_away_is_waited_for() -> None:
    home = Home()
    del home.live["b"]
    home.exchanges.want(0, "b")
    home.pass_time(1_000)
    assert home.begun() == []

    home.live["b"] = None
    home.exchanges.on_members([])
    home.pass_time(100)
    assert home.begun() == [(0, "b")]


def test_a_peer_that_does_not_answer_is_owed_a_pass_until_it_is_heard_of() -> None:
    home = Home()
    home.exchanges.want(0, "b")
    home.exchanges.want(1, "c")
    home.pass_time(TIMING.exchange_page_ms + 100, is_answered=False)
    home.pass_time(10_000)
    assert (0, "b") not in home.passes
    assert (1, "c") in home.passes, "the next in line runs meanwhile"

    home.exchanges.pay("b")
    home.pass_time(100)
    assert home.passes[0, "b"].is_clean


def test_each_partition_is_compared_with_each_other_owner_in_turn() -> None:
    home = Home(attrs.evolve(TIMING, exchange_ms=20_000))
    home.pass_time(39_000)
    first = home.begun()
    assert sorted(partition for partition, _ in first) == list(range(PARTITIONS))
    home.pass_time(2_000)

    assert sorted(home.begun()) == [(partition, peer) for partition in range(PARTITIONS) for peer in ("b", "c")]


def test_exchanges_wait_for_the_draft_after_a_start_and_drafts_go_in_small_steps() -> None:
    store = MemoryStore()
    before = replicas(store)
    for made in before:
        fill(made, 30)
    home = Home(attrs.evolve(TIMING, draft_rows=7, draft_pause_ms=10), store)
    home.exchanges.want(3, "b")
    steps = 0
    while not home.vnodes[3].replica.tree.is_built:
        assert (3, "b") not in home.begun()
        assert home.exchanges.due_ms <= home.now_ms + 10
        home.pass_time(1)
        steps += 1
    assert PARTITIONS * (30 // 7) * 10 - 50 <= steps <= PARTITIONS * 10 * (30 // 7 + 2)
    home.pass_time(5_000)

    assert (3, "b") in home.passes
    assert [vnode.replica.tree.root for vnode in home.vnodes] == [made.tree.root for made in before]


@pytest.mark.parametrize("wrong", range(PARTITIONS))
def test_each_tree_is_drafted_anew_within_its_time(wrong: int) -> None:
    home = Home(attrs.evolve(TIMING, draft_ms=40_000))
    tree = home.vnodes[wrong].replica.tree
    fill(home.vnodes[wrong].replica, 3)
    tree.nodes.change(1, 1)
    home.pass_time(41_000)

    assert tree.corrections == 1
    assert [vnode.replica.tree.corrections for vnode in home.vnodes].count(0) == PARTITIONS - 1


def test_nodes_repair_in_a_round_what_no_one_noticed() -> None:
    """A copy that only one of three nodes has, and that nobody sent."""
    machines = Machines(partitions=2)
    machines.pass_time(2_000)
    fill(machines.nodes[machines.names[1]].view.vnodes[0].replica, 20)
    machines.pass_time(2 * DEFAULT_TIMING.exchange_ms + 1_000)

    roots = [[vnode.replica.tree.root for vnode in node.view.vnodes] for node in machines.nodes.values()]
    assert roots[0] == roots[1] == roots[2]
    assert roots[0][0] != 0 == roots[0][1]


def test_a_node_compares_each_partition_with_another_owner_in_each_round() -> None:
    machines = Machines()
    machines.pass_time(DEFAULT_TIMING.exchange_ms)
    before = {name: node._exchanges.begun for name, node in machines.nodes.items()}

    machines.pass_time(2 * DEFAULT_TIMING.exchange_ms)

    for name, node in machines.nodes.items():
        assert node._exchanges.begun - before[name] >= len(node.view.vnodes)
