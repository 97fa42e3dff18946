"""Watching a node leave: what passes is asked again, what does not is raised before anything is changed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

from skuld_py.cli import drain, journal
from skuld_py.cli.main import main
from skuld_py.client import client
from skuld_py.client.dial import check_addresses, key_of
from skuld_py.errors import KEY_CODES, Refused, SkuldError, Uncertain
from skuld_py.keys.files import ClientKey
from skuld_py.keys.pair import fresh
from skuld_py.model.messages import Described
from skuld_py.model.messages.descriptions import PartitionRow
from skuld_py.runtime.zookeeper import log_following

NODE, OTHER = "10.0.0.7:13000", "127.0.0.1:13001"
OTHERS = (OTHER, "fd00::2:13001")


def seen(*owners: str) -> Described:
    return Described(1, OTHER, "", (), (PartitionRow(0, 1, OTHER, owners, owners),))


HAS, HAS_NOT = seen(NODE, OTHER), seen(OTHER)


def looks(*answers: Described | SkuldError) -> Callable[[], Described]:
    """A look gives the next of these; the last for ever."""
    left = list(answers)

    def look() -> Described:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, SkuldError):
            raise answer
        return answer
    return look


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain, "LOOK_S", 0)


@pytest.mark.parametrize("code", sorted({*KEY_CODES, "bad_answer"}))
def test_what_does_not_pass_is_raised_at_once(code: str) -> None:
    with pytest.raises(Refused) as refused:
        drain.watch(looks(HAS, Refused(code, "key: no")), NODE, 60, lambda left: None)
    assert refused.value.code == code


def test_what_passes_is_told_once_and_asked_again() -> None:
    told: list[Any] = []
    busy, late = Refused("busy", "too much"), Uncertain("deadline", "no answer")
    drain.watch(looks(busy, busy, HAS, late, HAS, HAS_NOT, busy, HAS_NOT), NODE, 60, told.append)
    assert [getattr(each, "code", "left") for each in told] == ["busy", "left", "deadline", "left", "busy"]


def test_the_limit_says_why_nothing_is_known() -> None:
    with pytest.raises(Refused, match=r"no other node says how far it is: nobody there \[unreachable\]"):
        drain.watch(looks(Refused("unreachable", "nobody there")), NODE, 0, lambda left: None)
    with pytest.raises(Refused, match="not drained yet: it owns 1, votes in 1"):
        drain.watch(looks(HAS), NODE, 0, lambda left: None)


class Town:
    """ZooKeeper and the nodes, as the verb sees them."""

    def __init__(self, look: Callable[[], Described]) -> None:
        self.look = look
        self.asked: list[str] = []
        self.keys: list[str] = []
        self.marked: list[str] = []

    def client(self, nodes: list[str], *, timeout_s: float) -> Any:
        self.asked = check_addresses(nodes)
        shown = key_of(None, nodes)
        self.keys += [shown.name] if shown is not None else []
        return self

    def status(self) -> Described:
        return self.look()

    def __enter__(self) -> Town:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def town(monkeypatch: pytest.MonkeyPatch) -> Town:
    made = Town(looks(HAS, HAS_NOT))
    members = {name: SimpleNamespace(name=name, host=name.rpartition(":")[0], port=13_001)
               for name in (NODE, *OTHERS)}
    monkeypatch.setattr(journal, "at_end", lambda *_: (SimpleNamespace(members=members), ()))
    monkeypatch.setattr(log_following, "set_leaving", lambda hosts, cluster, node, *_: made.marked.append(node))
    monkeypatch.setattr(client, "Client", made.client)
    return made


def drained(*options: str) -> Any:
    return CliRunner().invoke(main, ["drain", NODE, "--out", "--cluster", "shop", *options], prog_name="skuld")


def test_it_shows_the_client_s_key(town: Town, tmp_path: Any) -> None:
    path = tmp_path / "ops.key"
    path.touch(mode=0o600)
    path.write_text(ClientKey("ops", fresh(), fresh().public).text)
    done = drained("--client-key", str(path))
    assert (done.exit_code, town.keys, town.marked) == (0, ["ops"], [NODE]), done.output
    first, *_, last = done.output.splitlines()
    assert first == f"node {NODE} is leaving cluster shop; asking {OTHER}, [fd00::2]:13001 how far it is"
    assert "may be stopped" in last


def test_nodes_are_asked_at_addresses_that_a_client_takes(town: Town) -> None:
    """Members write an IPv6 address bare, and no node of a cluster of such could be drained."""
    done = drained()
    assert done.exit_code == 0, done.output
    assert town.asked == [OTHER, "[fd00::2]:13001"]


@pytest.mark.parametrize("code", sorted(KEY_CODES))
def test_who_may_not_know_how_far_it_is_takes_nothing_out(town: Town, code: str) -> None:
    town.look = looks(Refused(code, "key: no"))
    done = drained()
    assert (done.exit_code, town.marked) == (1, []) and f"[{code}]" in done.stderr
