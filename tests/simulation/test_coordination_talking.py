"""The options beside the log under faults: alone, all together, and mixed; and what they would break if broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from simulation.coordination_worlds import Believing
from skuld_py.cluster.log.replica import Replica
from skuld_py.cluster.member.reader import Reader
from skuld_py.cluster.scale.direct_join import Greeter, Knocking
from skuld_py.cluster.scale.epidemic import Epidemic
from skuld_py.cluster.scale.transfer import Fetching, Lending, Snapshot
from skuld_py.model.messages.membership import ReplicaPart
from skuld_py.simulation.coordination import __main__ as command
from skuld_py.simulation.coordination.stage import World
from skuld_py.simulation.coordination.talking import MIXES, run

SEEDS = 20
SEEDS_FOR_BROKEN = 60


@pytest.mark.parametrize("mix", MIXES)
def test_every_schedule_comes_to_rest_with_every_mix(mix: str, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(SEEDS):
        verdict = run(seed, mix)
        if not verdict.passed:
            command.report(verdict, mix)
            pytest.fail(capsys.readouterr().out, pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(30, 90, 30))
def test_a_life_that_is_let_in_late_takes_no_place(first: int, capsys: pytest.CaptureFixture[str]) -> None:
    for seed in range(first, first + 30):
        verdict = run(seed, "all")
        if not verdict.passed:
            command.report(verdict, "all")
            pytest.fail(capsys.readouterr().out, pytrace=False)


def test_who_believes_a_server_that_lags_evicts_the_living(capsys: pytest.CaptureFixture[str]) -> None:
    """Modelled is what ``runtime.zookeeper.coordination_log`` does: no pulse is missed but behind a sync."""
    seeds = range(110, 110 + SEEDS_FOR_BROKEN)
    verdicts = (run(seed, "sharing", world=World(registry=Believing)) for seed in seeds)
    assert any(", which lives" in line for verdict in verdicts for line in verdict.violations)


def test_a_seed_decides_everything() -> None:
    assert run(5, "all").hash == run(5, "all").hash != run(6, "all").hash


def test_what_the_options_are_for_really_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    met: Counter[str] = Counter()
    count(monkeypatch, Reader, "begin_from", met, lambda _: 1)
    count(monkeypatch, Epidemic, "take", met, len)
    count(monkeypatch, Greeter, "propose", met, lambda entry: len(entry.joiners) if entry else 0)
    count(monkeypatch, Reader, "build_anew", met, lambda _: 1)
    for seed in range(SEEDS):
        run(seed, "all")

    assert min(met["begin_from"], met["propose"]) > 10
    assert met["take"] > 100
    assert not met["build_anew"]


@pytest.mark.slow
def test_damaged_replicas_are_met_and_built_anew() -> None:
    met = sum((run(seed, "damaged").stats for seed in range(SEEDS)), Counter[str]())

    assert met["replicas built anew"] > 5


def count(monkeypatch: pytest.MonkeyPatch, of: type, name: str, met: Counter[str],
          worth: Callable[[Any], int]) -> None:
    """Count what a method gives."""
    real = getattr(of, name)

    def counted(*arguments: Any, **options: Any) -> Any:
        result = real(*arguments, **options)
        met[name] += worth(result)
        return result
    monkeypatch.setattr(of, name, counted)


@pytest.mark.slow
def test_entries_go_on_while_placements_are_worked_out() -> None:
    for mix in ("versions", "schedulers"):
        met = sum((run(seed, mix).stats for seed in range(SEEDS)), Counter[str]())

        assert met["entries ahead of the placement"] > 100, mix


# -- a lender that damages its texts ---------------------------------------------------------------


def damage(monkeypatch: pytest.MonkeyPatch) -> None:
    real = Lending._snapshot

    def damaged(*arguments: Any) -> Snapshot | None:
        snapshot = real(*arguments)
        if snapshot is None:
            return None
        return attrs.evolve(snapshot, text=snapshot.text.replace(b'"127.0.0.1"', b'"127.0.0.2"'))
    monkeypatch.setattr(Lending, "_snapshot", damaged)


def test_a_damaged_replica_is_taken_over_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch)

    assert all(run(seed, "transfer").passed for seed in range(SEEDS))


def test_without_looking_at_it_members_would_part(monkeypatch: pytest.MonkeyPatch) -> None:
    damage(monkeypatch)

    def believing(self: Fetching, text: bytes, first: ReplicaPart) -> Replica:
        from skuld_py.cluster.log.canonical import from_text

        return from_text(Replica, text)
    monkeypatch.setattr(Fetching, "_verified", believing)

    assert any("another" in line for seed in range(SEEDS) for line in run(seed, "transfer").violations)


# -- what is broken on purpose ---------------------------------------------------------------------


def never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Epidemic, "read", lambda *_: None)
    monkeypatch.setattr(Epidemic, "read_deadline", lambda *_: None)


def ignore_what_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Epidemic, "advance", lambda *_: None)


def let_go_out_of_order(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(self: Epidemic, now_ms: int) -> list[tuple[int, bytes]]:
        taken = list(self._ahead.items())
        self.version = max([self.version, *self._ahead])
        self._ahead.clear()
        return taken
    monkeypatch.setattr(Epidemic, "take", take)


def never_take_the_three_phases(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Knocking, "_fail", lambda self, now_ms: setattr(self, "_next_ms", None))


BROKEN = {
    "the log is never looked at": (never_read, "sharing"),
    "what was read is shared as new": (ignore_what_was_read, "sharing"),
    "entries are let go out of order": (let_go_out_of_order, "sharing"),
    "who is answered by nobody waits for ever": (never_take_the_three_phases, "direct"),
}


@pytest.mark.parametrize(("break_it", "mix"), BROKEN.values(), ids=BROKEN.keys())
def test_what_is_broken_is_found(break_it: Callable[[pytest.MonkeyPatch], None], mix: str,
                                 monkeypatch: pytest.MonkeyPatch) -> None:
    break_it(monkeypatch)

    assert any(not run(seed, mix).passed for seed in range(SEEDS_FOR_BROKEN))
