"""A path behind the servers, below which several clusters are, each with a key of its own."""

from __future__ import annotations

import secrets

import pytest
from kazoo.security import make_digest_acl

from runtime.attending import client_of
from skuld_py.config import Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper.clusters import ROOT_ACL, create_cluster, destroy_cluster, read_parameters
from skuld_py.runtime.zookeeper.servers import Servers

pytestmark = pytest.mark.cluster
SOMEBODY = [make_digest_acl("somebody", "else", all=True)]


def owned(server: ZooKeeperServer, path: str, name: str) -> Servers:
    """The servers with a path, asked by the owner of a cluster."""
    return Servers(server.hosts + path, lambda: (f"skuld-{name}:password",))


def create(server: ZooKeeperServer, path: str, name: str) -> Servers:
    hosts = owned(server, path, name)
    create_cluster(hosts, Parameters(name, f"id-of-{name}"), roster=Roster())
    assert read_parameters(hosts, name).cluster == name
    return hosts


@pytest.fixture
def path() -> str:
    return f"/p{secrets.token_hex(4)}"


def test_clusters_with_keys_of_their_own_are_below_one_path(server: ZooKeeperServer, path: str) -> None:
    """The first one made the path its own: there was no other beside it, and with its next key but one its nodes
    did not start. A path of two parts could not be made at all."""
    place = f"{path}/deep"
    one = create(server, place, "one")
    two = create(server, place, "two")
    create_cluster(server.hosts + place, Parameters("open", "id-of-open"))

    with client_of(server) as client:
        for each in (path, place, f"{place}/skuld"):
            assert client.get_acls(each)[0] == ROOT_ACL, each
    for hosts, name in ((two, "one"), (Servers(server.hosts + place), "one"), (one, "two")):
        with pytest.raises(Refused) as caught:
            read_parameters(hosts, name)
        assert caught.value.code == "zookeeper_denied"
    destroy_cluster(one, "one")


def test_a_path_that_is_somebody_s_hinders_no_cluster_below_it(server: ZooKeeperServer, path: str) -> None:
    """As a release before this one left it, once the cluster has its next key."""
    with client_of(server, auth_data=[("digest", "somebody:else")]) as somebody:
        somebody.create(path, acl=SOMEBODY)
        somebody.create(f"{path}/skuld", acl=ROOT_ACL)
    create(server, path, "two")
    with pytest.raises(Refused, match="shows this cluster to its owner only"):
        read_parameters(server.hosts + path, "two")


def test_what_cannot_be_made_is_named(server: ZooKeeperServer, path: str) -> None:
    with client_of(server) as client:
        client.create(path, acl=SOMEBODY)
    with pytest.raises(Refused, match=f"zookeeper: {path}/below cannot be made") as caught:
        create(server, f"{path}/below", "one")
    assert caught.value.code == "zookeeper_denied"


@pytest.mark.parametrize(("text", "path"), [("h:1,g:2", ""), ("h:1,g:2/", "/"), ("h:1/a/b", "/a/b")])
def test_a_path_stands_behind_the_servers(text: str, path: str) -> None:
    servers = Servers(text, lambda: ("me:x",))
    assert (servers.path, str(servers.without_path)) == (path, text.partition("/")[0])
    assert servers.without_path.logins() == ("me:x",)
