"""The key of a cluster itself is replaced on a real ZooKeeper: nobody who may be in is locked out on the way, and
nobody else is let in at its end."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from kazoo.exceptions import NoAuthError

from runtime.attending import client_of, joined
from skuld_py.cluster.log.commands import ForgetNode
from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.keys.files import Before, ClusterKey
from skuld_py.keys.pair import fresh
from skuld_py.model.coordination import Append, Appended, PulseStands, SetPulse
from skuld_py.model.document import Member
from skuld_py.model.events import Session, SessionChanged
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster
from skuld_py.runtime.node_keys import open_keyring
from skuld_py.runtime.zookeeper import rotation
from skuld_py.runtime.zookeeper.clusters import create_cluster, owners_of, read_parameters
from skuld_py.runtime.zookeeper.log_following import command
from skuld_py.runtime.zookeeper.rosters import change_roster, read_roster
from skuld_py.runtime.zookeeper.rotation import begin_rotation, end_rotation
from skuld_py.runtime.zookeeper.servers import Servers

pytestmark = pytest.mark.cluster

ANNA = Member("127.0.0.1:7001", "127.0.0.1", 7001, "boot-a")
BERT = Member("127.0.0.1:7002", "127.0.0.1", 7002, "boot-b")
CONNECTED = SessionChanged(Session.CONNECTED)


class Town:
    """A cluster with a key, and the next one."""

    def __init__(self, server: ZooKeeperServer, name: str) -> None:
        self.server, self.name = server, name
        self.old = ClusterKey(name, fresh(), f"skuld-{name}:old")
        self.new = ClusterKey(name, fresh(), f"skuld-{name}:new", Before(self.old.pair.public, self.old.zookeeper))
        create_cluster(self.asked_by(self.old), Parameters(name, f"id-of-{name}"),
                       roster=Roster(cluster=(self.old.pair.public,)))

    def asked_by(self, key: ClusterKey) -> Servers:
        return Servers(self.server.hosts, lambda: key.logins)

    def begin(self) -> None:
        begin_rotation(self.asked_by(self.new), self.new)

    def end(self) -> int:
        return end_rotation(self.asked_by(self.new), self.new)

    def say(self, node: Member, key: ClusterKey) -> None:
        """A node says which key it shows."""
        letter = chr(97 + node.port % 26)
        row = KeyRow(letter * 40, node.name, (NODE_ROLE,), shows=key.pair.public)
        change_roster(self.asked_by(key), self.name, lambda roster: roster.authorised(row))

    def owners(self) -> dict[str, Any]:
        with client_of(self.server, auth_data=[("digest", login) for login in self.new.logins]) as client:
            found = [f"/skuld/{self.name}"]
            for path in found:
                found += [f"{path}/{child}" for child in client.get_children(path)]
            return {path: client.get_acls(path)[0] for path in found}


@pytest.fixture
def town(server: ZooKeeperServer, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
         ) -> Iterator[Town]:
    monkeypatch.setattr(rotation, "SETTLE_S", 0.2)
    yield Town(server, f"c{zlib.crc32(request.node.name.encode())}")


def acts(town: Town, key: ClusterKey, member: Member, number: int) -> None:
    """All that a node does in ZooKeeper, it can do: what is there is read, and more is written."""
    with joined(town.asked_by(key), town.name, member, starts=number) as (registry, events):
        events.wait(CONNECTED)
        life = f"{member.name}~{number}"
        registry.perform(SetPulse(life, member))
        events.wait(PulseStands(life))
        registry.perform(Append(number, b"x"))
        events.wait(lambda event: isinstance(event, Appended))
        assert read_parameters(town.asked_by(key), town.name).cluster_id == f"id-of-{town.name}"


def test_while_two_keys_count_either_opens_what_the_other_has_made(town: Town) -> None:
    acts(town, town.old, ANNA, 1)
    town.begin()
    town.begin()
    for number, key in ((2, town.new), (3, town.old), (4, town.new), (5, town.old)):
        acts(town, key, ANNA, number)
        acts(town, key, BERT, number - 1)
    roster = read_roster(town.asked_by(town.old), town.name)
    assert roster is not None and roster.cluster == (town.new.pair.public, town.old.pair.public)


def test_a_node_that_runs_makes_for_both_once_it_is_told_and_for_the_new_one_alone_at_the_end(town: Town) -> None:
    both, alone = owners_of(town.new.logins), owners_of([town.new.zookeeper])
    with joined(town.asked_by(town.old), town.name, ANNA, put_roster=heard) as (registry, events), \
            joined(town.asked_by(town.new), town.name, BERT, put_roster=heard) as (newer, told):
        for each in (events, told):
            each.wait(CONNECTED)
        town.begin()
        assert made_by(town, registry, events, until=both)
        assert made_by(town, newer, told, until=both)
        registry.stop()
        town.say(BERT, town.new)
        assert town.end() > 0
        assert made_by(town, newer, told, until=alone)
        town.end()
    assert {tuple(owners) for owners in town.owners().values()} == {tuple(alone)}


def heard(roster: Roster) -> None:
    """As a node that has keys, which watches the roster."""


def made_by(town: Town, registry: Any, events: Any, until: Any) -> bool:
    """Let a node append until its entry belongs to these."""
    for number in range(200):
        after = len(events.all)
        registry.perform(Append(number, b"x"))
        events.wait(lambda event: isinstance(event, Appended), after)
        position = next(event.position for event in events.all[after:] if isinstance(event, Appended))
        if town.owners()[f"/skuld/{town.name}/log/entry-{position:010d}"] == until:
            return True
    return False


def test_at_the_end_the_key_before_opens_nothing(town: Town) -> None:
    acts(town, town.old, ANNA, 1)
    town.begin()
    town.say(ANNA, town.old)
    acts(town, town.new, ANNA, 2)
    assert town.end() >= 8, "nobody lives"
    alone = owners_of([town.new.zookeeper])
    assert {tuple(owners) for owners in town.owners().values()} == {tuple(alone)}
    with client_of(town.server, auth_data=[("digest", town.old.zookeeper)]) as old:
        for path in town.owners():
            with pytest.raises(NoAuthError):
                old.get(path)
    with pytest.raises(Refused, match="not, or no longer, the cluster's"):
        read_parameters(town.asked_by(town.old), town.name)
    roster = read_roster(town.asked_by(town.new), town.name)
    assert roster is not None and roster.cluster == (town.new.pair.public,)
    acts(town, town.new, ANNA, 3)
    command(town.asked_by(town.new), Parameters(town.name, f"id-of-{town.name}"), ForgetNode("h:9"))
    assert {tuple(owners) for owners in town.owners().values()} == {tuple(alone)}, "what operators make, too"
    assert town.end() == 0, "it may be done again"


def test_the_key_before_is_not_ended_while_a_live_node_shows_it(town: Town) -> None:
    town.begin()
    with joined(town.asked_by(town.old), town.name, ANNA) as (registry, events):
        events.wait(CONNECTED)
        registry.perform(SetPulse(f"{ANNA.name}~1", ANNA))
        events.wait(PulseStands(f"{ANNA.name}~1"))
        for key in (None, town.old):
            if key is not None:
                town.say(ANNA, key)
            with pytest.raises(Refused, match=f"{ANNA.name} still shows the key before; start it again"):
                town.end()
        assert read_parameters(town.asked_by(town.old), town.name).cluster == town.name
        town.say(ANNA, town.new)
        assert town.end() >= 0


@pytest.mark.parametrize(("step", "at"), [
    ("begin", "change_roster"), ("end", "change_roster"), ("end", "own_all")])
def test_what_was_interrupted_goes_on(town: Town, monkeypatch: pytest.MonkeyPatch, step: str, at: str) -> None:
    def stop(*arguments: Any) -> None:
        raise KeyboardInterrupt

    steps: dict[str, Callable[[], Any]] = {"begin": town.begin, "end": town.end}
    if step == "end":
        town.begin()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(rotation, at, stop)
        steps[step]()
    acts(town, town.new, ANNA, 1)
    steps[step]()
    acts(town, town.new, ANNA, 2)
    if step == "begin":
        acts(town, town.old, ANNA, 3)


def test_a_node_does_not_start_with_a_key_that_the_cluster_does_not_go_by_yet(town: Town, tmp_path: Path) -> None:
    with pytest.raises(Refused, match="skuld cluster rotate") as refused:
        open_keyring(town.asked_by(town.new), town.new, ANNA.name, tmp_path)
    assert refused.value.code == "old_cluster_key" and not [*tmp_path.iterdir()]
    town.begin()
    for key in (town.old, town.new):
        assert open_keyring(town.asked_by(key), key, ANNA.name, tmp_path).cluster == key.pair


def test_one_rotation_is_ended_before_the_next(town: Town) -> None:
    town.begin()
    third = attrs.evolve(town.new, pair=fresh(), zookeeper="skuld:third",
                         before=Before(town.new.pair.public, town.new.zookeeper))
    with pytest.raises(Refused, match="skuld cluster rotate NAME --finish"):
        begin_rotation(Servers(town.server.hosts, lambda: (*third.logins, town.old.zookeeper)), third)
    with pytest.raises(Refused, match="give the newer file"):
        end_rotation(town.asked_by(town.old), town.old)
