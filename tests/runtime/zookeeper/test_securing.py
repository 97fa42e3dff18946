"""A cluster that was made without keys, given them, on a real ZooKeeper: all of it, once nobody runs, and also
when that was interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from kazoo.exceptions import NoAuthError
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl

from runtime.attending import client_of
from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.model.roles import CLIENTS
from skuld_py.model.roster import Roster, make_row
from skuld_py.runtime.zookeeper import clusters, securing
from skuld_py.runtime.zookeeper.clusters import create_cluster, read_parameters
from skuld_py.runtime.zookeeper.rosters import change_roster, read_roster
from skuld_py.runtime.zookeeper.securing import check_stopped, secure_cluster
from skuld_py.runtime.zookeeper.servers import Servers

pytestmark = pytest.mark.cluster

LOGIN, PUBLIC = "skuld-c:secret", "p" * 40
OWNERS = [make_digest_acl("skuld-c", "secret", all=True)]
STEPS = 16
"""Those of a cluster as ``filled`` leaves it."""


def asked_as_owner(server: ZooKeeperServer, login: str = LOGIN) -> Servers:
    return Servers(server.hosts, lambda: (login,))


def filled(server: ZooKeeperServer, cluster: str) -> None:
    """As a cluster is that has run."""
    with client_of(server) as client:
        for path in ("nodes/h:1", "partitions/0", "log/entry-0000000000", "origin/p1/0"):
            client.create(f"/skuld/{cluster}/{path}", b"x", makepath=True)


def owners_of_all(server: ZooKeeperServer, cluster: str) -> dict[str, Any]:
    with client_of(server, auth_data=[("digest", LOGIN)]) as client:
        found = [f"/skuld/{cluster}"]
        for path in found:
            found += [f"{path}/{child}" for child in client.get_children(path)]
        return {path: client.get_acls(path)[0] for path in found}


def test_keys_of_a_cluster_that_is_not_there_are_not_the_absence_of_keys(server: ZooKeeperServer,
                                                                         cluster: str) -> None:
    assert read_roster(server.hosts, cluster) is None, "it has none"
    with pytest.raises(Refused, match=r"knows no cluster nobody-s; it has: .*unknown_cluster"):
        read_roster(server.hosts, "nobody-s")


def test_all_that_a_cluster_keeps_becomes_its_owners(server: ZooKeeperServer, cluster: str) -> None:
    filled(server, cluster)
    before = read_parameters(server.hosts, cluster)
    hosts = asked_as_owner(server)

    assert secure_cluster(hosts, cluster, PUBLIC).has_changed

    found = owners_of_all(server, cluster)
    assert len(found) == 13 and all(owners == OWNERS for owners in found.values()), found
    assert read_roster(hosts, cluster) == Roster(cluster=(PUBLIC,))
    assert read_parameters(hosts, cluster).cluster_id == before.cluster_id
    with client_of(server) as stranger:
        for path in found:
            with pytest.raises(NoAuthError):
                stranger.get(path)
    assert not secure_cluster(hosts, cluster, PUBLIC).has_changed, "it was so already"


def test_the_key_of_claims_which_all_could_read_is_replaced(server: ZooKeeperServer, cluster: str) -> None:
    clusters.draw_key(server.hosts, cluster, "ab" * 32, 0)
    before_ms = time.time_ns() // 1_000_000
    hosts = asked_as_owner(server)
    assert [secure_cluster(hosts, cluster, PUBLIC).has_changed for _ in range(2)] == [True, False]
    made = read_parameters(hosts, cluster)
    assert made.claim_key != "ab" * 32 and [each.key for each in made.former_keys] == ["ab" * 32]
    assert 0 <= made.claim_from_ms - before_ms < 60_000
    assert made.former_keys[0].renewed_until_ms - made.claim_from_ms == 24 * 3_600_000


MALLORY = Roster().authorised(make_row("m" * 40, "mallory", tuple(CLIENTS)))
STRANGERS = [make_digest_acl("mallory", "his", all=True)]


@pytest.mark.parametrize(("planted", "owners", "shown"), [
    (MALLORY.encode(), OPEN_ACL_UNSAFE, MALLORY), (b"[", OPEN_ACL_UNSAFE, Roster()),
    (MALLORY.encode(), STRANGERS, Roster())], ids=["whole", "broken", "closed"])
@pytest.mark.parametrize("after", [0, 1, 8])
def test_a_roster_that_a_stranger_has_put_there_counts_for_nothing(
        server: ZooKeeperServer, cluster: str, monkeypatch: pytest.MonkeyPatch, planted: bytes, owners: list[Any],
        shown: Roster, after: int) -> None:
    """Nor does it once the verb was interrupted, whenever that was, and run again."""
    clusters.draw_key(server.hosts, cluster, "ab" * 32, 0)
    with client_of(server) as client:
        client.create(f"/skuld/{cluster}/roster", planted, acl=owners)
        if owners is OPEN_ACL_UNSAFE:
            client.create(f"/skuld/{cluster}/roster/below")
    hosts = asked_as_owner(server)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupted(patch, after, stop)
        secure_cluster(hosts, cluster, PUBLIC)
    made = secure_cluster(hosts, cluster, PUBLIC)

    assert made.planted == (None if after else shown)
    assert read_roster(hosts, cluster) == made.roster == Roster(cluster=(PUBLIC,))
    assert read_parameters(hosts, cluster).claim_key != "ab" * 32
    change_roster(hosts, cluster, lambda known: known.authorised(MALLORY.rows[0]))
    again = secure_cluster(hosts, cluster, PUBLIC)
    assert not again.has_changed and again.planted is None and again.roster.rows == MALLORY.rows


def test_the_folder_of_all_clusters_is_closed_where_it_was_left_open(server: ZooKeeperServer) -> None:
    with client_of(server) as client:
        client.create("/old/skuld", makepath=True)
        create_cluster(f"{server.hosts}/old", Parameters("c", "id-of-c"))
        assert secure_cluster(Servers(f"{server.hosts}/old", lambda: (LOGIN,)), "c", PUBLIC).has_changed
        assert client.get_acls("/old/skuld")[0] == clusters.ROOT_ACL


def test_who_has_no_key_or_another_one_is_told_so(server: ZooKeeperServer, cluster: str) -> None:
    assert secure_cluster(asked_as_owner(server), cluster, PUBLIC).has_changed
    other = asked_as_owner(server, "skuld-c:other")
    for hosts, words in ((server.hosts, "give the cluster's key"), (other, "is not, or no longer, the cluster's")):
        for ask in (read_parameters, check_stopped):
            with pytest.raises(Refused, match=words) as refused:
                ask(hosts, cluster)
            assert refused.value.code == "zookeeper_denied"
    with pytest.raises(Refused, match="zookeeper_denied"):
        secure_cluster(asked_as_owner(server, "skuld-c:other"), cluster, PUBLIC)


def test_nothing_is_changed_while_nodes_live_and_they_are_named(server: ZooKeeperServer, cluster: str) -> None:
    with client_of(server) as client:
        for pulse in ("h:2~b", "h:1~a", "h:2~c"):
            client.create(f"/skuld/{cluster}/members/{pulse}", ephemeral=True)
        for refuse in (lambda: check_stopped(server.hosts, cluster),
                       lambda: secure_cluster(asked_as_owner(server), cluster, PUBLIC)):
            with pytest.raises(Refused, match="live nodes: h:1, h:2; stop them first") as refused:
                refuse()
            assert refused.value.code == "cluster_alive"
        assert all(owners == OPEN_ACL_UNSAFE for owners in owners_of_all(server, cluster).values())
    with pytest.raises(Refused, match="unknown_cluster"):
        secure_cluster(asked_as_owner(server), "nowhere", PUBLIC)


def interrupted(monkeypatch: pytest.MonkeyPatch, after: int, then: Callable[[], None]) -> None:
    """Do something after so many znodes were given away."""
    own, done = securing._own, [0]

    def counted(*arguments: Any) -> bool:
        if done[0] == after:
            then()
        done[0] += 1
        return own(*arguments)
    monkeypatch.setattr(securing, "_own", counted)


def stop() -> None:
    """As an operator does who waits no longer."""
    raise KeyboardInterrupt


@pytest.mark.parametrize("after", range(STEPS))
def test_what_was_interrupted_goes_on(server: ZooKeeperServer, cluster: str, monkeypatch: pytest.MonkeyPatch,
                                      after: int) -> None:
    filled(server, cluster)
    hosts = asked_as_owner(server)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupted(patch, after, stop)
        secure_cluster(hosts, cluster, PUBLIC)

    assert read_roster(hosts, cluster) is None, "no node starts with a key before all is owned"
    if after >= 2:
        with pytest.raises(Refused, match="zookeeper_denied"):
            read_parameters(server.hosts, cluster)
    assert secure_cluster(hosts, cluster, PUBLIC).has_changed
    assert all(owners == OWNERS for owners in owners_of_all(server, cluster).values())


def test_a_node_that_came_up_meanwhile_is_named(server: ZooKeeperServer, cluster: str,
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    hosts = asked_as_owner(server)
    with client_of(server) as client:
        pulse = f"/skuld/{cluster}/members/h:9~x"
        with monkeypatch.context() as patch, pytest.raises(Refused, match="live nodes: h:9; stop them first"):
            interrupted(patch, 2, lambda: client.create(pulse, ephemeral=True) and None)
            secure_cluster(hosts, cluster, PUBLIC)
        assert read_roster(hosts, cluster) is None
        with pytest.raises(NoAuthError):
            client.create(f"/skuld/{cluster}/members/h:8~x", ephemeral=True)
    with client_of(server, auth_data=[("digest", LOGIN)]) as client:
        if client.exists(pulse):
            client.delete(pulse)
    assert secure_cluster(hosts, cluster, PUBLIC).has_changed
