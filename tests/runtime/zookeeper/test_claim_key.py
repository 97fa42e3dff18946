"""The key that proves claims, on a real ZooKeeper: drawn once, replaced, and told to whoever runs."""

from __future__ import annotations

import pytest

from runtime.attending import joined
from skuld_py.config import LEASE_MS_MAX, FormerKey
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.errors import Refused
from skuld_py.model.coordination import PulseStands, SetPulse
from skuld_py.model.document import Member
from skuld_py.model.events import KeyTold, Session, SessionChanged
from skuld_py.model.proofs import NOTICE_MS, with_new_key
from skuld_py.runtime.zookeeper.clusters import change_parameters, connection, draw_key, read_parameters

pytestmark = pytest.mark.cluster

ANNA = Member("127.0.0.1:7001", "127.0.0.1", 7001, "boot-a")
BERT = Member("127.0.0.1:7002", "127.0.0.1", 7002, "boot-b")
SKEW_MS = 2_000
CONNECTED = SessionChanged(Session.CONNECTED)


def test_a_key_is_drawn_once_and_told_to_who_runs_and_to_who_comes(server: ZooKeeperServer, cluster: str) -> None:
    told = KeyTold("ab" * 32, 77)
    with joined(server.hosts, cluster, ANNA) as (_, events):
        events.wait(CONNECTED)
        assert draw_key(server.hosts, cluster, told.claim_key, told.proofs_from_ms)
        events.wait(told)
        assert not draw_key(server.hosts, cluster, "cd" * 32, 0)
        with joined(server.hosts, cluster, BERT) as (registry, others):
            others.wait(told)
            registry.rejoin(BERT, 2)
            others.wait(told)
    made = read_parameters(server.hosts, cluster)
    assert (made.claim_key, made.proofs_from_ms, made.cluster_id) == (
        told.claim_key, told.proofs_from_ms, f"id-of-{cluster}")
    with pytest.raises(Refused, match="unknown_cluster"):
        draw_key(server.hosts, "nowhere", told.claim_key, 0)


def test_a_key_is_replaced_and_told_to_who_runs(server: ZooKeeperServer, cluster: str) -> None:
    draw_key(server.hosts, cluster, "ab" * 32, 77)
    with joined(server.hosts, cluster, ANNA) as (_, events):
        events.wait(KeyTold("ab" * 32, 77))
        raw = parameters_in(server, cluster)
        assert b"former" not in raw and b"claim_from" not in raw, "the release before reads what it knows"
        made = change_parameters(server.hosts, cluster, lambda known: with_new_key(known, "cd" * 32, 1_000, 50))
        former = FormerKey("ab" * 32, made.claim_from_ms + 50, made.claim_from_ms + 50 + LEASE_MS_MAX + SKEW_MS)
        events.wait(KeyTold("cd" * 32, 77, made.claim_from_ms, (former,)))
    assert read_parameters(server.hosts, cluster) == made
    assert made.claim_from_ms == 1_000 + NOTICE_MS + 2 * SKEW_MS
    for secret in ("ab" * 32, "cd" * 32):
        assert secret not in repr(made) + repr(former) + repr(events.all)
    with pytest.raises(Refused, match="unknown_cluster"):
        change_parameters(server.hosts, "nowhere", lambda known: known)


def parameters_in(server: ZooKeeperServer, cluster: str) -> bytes:
    with connection(server.hosts, 10.0, is_write=False) as client:
        raw: bytes = client.get(f"/skuld/{cluster}/parameters")[0]
        return raw


def test_parameters_of_a_later_release_do_not_stop_a_node_that_runs(
    server: ZooKeeperServer, cluster: str, caplog: pytest.LogCaptureFixture
) -> None:
    with joined(server.hosts, cluster, ANNA) as (registry, events):
        events.wait(CONNECTED)
        with connection(server.hosts, 10.0, is_write=True) as client:
            raw, _ = client.get(f"/skuld/{cluster}/parameters")
            client.set(f"/skuld/{cluster}/parameters", b'{"of_later": 1}')
        registry.perform(SetPulse("a~1", ANNA))
        events.wait(PulseStands("a~1"))
        with pytest.raises(Refused, match="bad_parameters"):
            read_parameters(server.hosts, cluster)
        with connection(server.hosts, 10.0, is_write=True) as client:
            client.set(f"/skuld/{cluster}/parameters", raw)
    assert caplog.text.count("upgrade this program") == 1
