"""The verbs of the coordination log on a real ZooKeeper: read, followed until Ctrl-C, and a node forgotten."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result
from kazoo.client import KazooClient

from cli.written import A, raws
from skuld_py.cli.cluster_replicas import MOST
from skuld_py.cli.journal import at_end
from skuld_py.cli.main import main
from skuld_py.config import REPLICAS_MAX, RULES, Parameters
from skuld_py.embedded.zookeeper import ZooKeeperServer
from skuld_py.model.document import Document, seats_of
from skuld_py.model.registration import Registration
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster
from skuld_py.runtime.zookeeper import clusters
from skuld_py.runtime.zookeeper.clusters import connection, create_cluster, read_parameters
from skuld_py.runtime.zookeeper.rosters import read_roster

pytestmark = pytest.mark.cluster

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ZooKeeperServer(tmp_path_factory.mktemp("zookeeper"), tick_ms=250) as running:
        create_cluster(running.hosts, Parameters("c", "id-of-c", replicas=1))
        client = KazooClient(hosts=running.hosts, timeout=10.0)
        client.start(timeout=60)
        for raw in raws():
            client.create("/skuld/c/log/entry-", raw, sequence=True)
        client.create(f"/skuld/c/members/{A}", b"", ephemeral=True)
        yield running.hosts
        client.stop()
        client.close()


def skuld(hosts: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--zookeeper", hosts], prog_name="skuld",
                              env={"SKULD_CLUSTER": "c"})


def test_documents_are_shown_as_they_stand_whatever_they_say(hosts: str) -> None:
    raw = Document(3, "h:1", seats=seats_of(["h:1"]), write_id="w", cause="freeze by ann\x1b[2J").encode()
    texts = {0: raw, 1: raw.replace(b'"epoch": 3', b'"epoch": "\xff", "later": 7'),
             2: "[no document\u202e".encode()}
    with connection(hosts, 10.0, is_write=True) as client:
        for partition, text in texts.items():
            client.create(f"/skuld/c/partitions/{partition}", text, makepath=True)
        try:
            told = skuld(hosts, "cluster", "documents", "c").output
            rows = [json.loads(line) for line in skuld(
                hosts, "cluster", "documents", "c", "--json").output.splitlines()]
            one = skuld(hosts, "cluster", "documents", "c", "1").output
        finally:
            for partition in texts:
                client.delete(f"/skuld/c/partitions/{partition}")

    assert "partition 0: revision 0\n" in told and "partition 7: it has had no leader" in told
    assert "  leader: \"h:1\"\n" in told and "\u202e" not in told and "  [no document" in told
    assert [row["version"] for row in rows[:4]] == [0, 0, 0, -1]
    assert rows[0]["document"]["epoch"] == 3 and (rows[1]["document"]["later"], rows[1]["text"]) == (7, None)
    assert (rows[2]["document"], rows[2]["text"], rows[3]["document"]) == (None, "[no document\u202e", None)
    assert one.startswith("partition 1: revision 0\n") and "later: 7" in one and one.count("partition ") == 1
    refused = skuld(hosts, "cluster", "documents", "c", "8")
    assert refused.exit_code == 1 and "8 partitions, 0 to 7" in refused.stderr


def test_the_log_the_members_and_the_ring_are_shown(hosts: str) -> None:
    assert [line.split()[0] for line in skuld(hosts, "cluster", "log", "c", "-n", "2").output.splitlines()] == [
        "POSITION", "10", "11"]
    assert skuld(hosts, "cluster", "log", "c", "--from", "5", "-n", "1").output.splitlines()[1].endswith(
        "! refused   node h:2 lives; stop it first")
    assert [row["has_pulse"] for row in json.loads(skuld(hosts, "members", "--json").output)["members"]] == [
        True, False, False]
    assert skuld(hosts, "ring").output.splitlines()[2:] == ["  h:1~a", "    + prepared: h:3~c  ! no pulse"]


def test_a_node_is_not_forgotten_while_a_partition_needs_its_vote(hosts: str) -> None:
    document = Document(1, "h:1", "boot", seats_of(("h:1", "h:2")), era=1)
    with clusters.connection(hosts, 10.0, is_write=True) as client:
        for partition in (2, 5):
            client.create(f"/skuld/c/partitions/{partition}", document.encode(), makepath=True)
        refused = skuld(hosts, "cluster", "forget", "c", "h:2")
        assert refused.exit_code == 1
        assert "2 partitions (2, 5) cannot elect a leader without h:2; start h:2 again" in refused.stderr
        assert "[votes_needed]" in refused.stderr
        for partition in (2, 5):
            client.set(f"/skuld/c/partitions/{partition}", attrs.evolve(
                document, seats=seats_of(("h:1",))).encode())


def test_a_node_is_forgotten_once_and_not_while_it_lives(hosts: str) -> None:
    assert "node h:1 lives; stop it first [not_forgotten]" in skuld(hosts, "cluster", "forget", "c", "h:1").stderr
    rows = [KeyRow(key * 40, name, roles) for key, name, roles in (
        ("a", "h:2", (NODE_ROLE,)), ("b", "h:1", (NODE_ROLE,)), ("c", "h:2", ("reader",)))]
    with clusters.connection(hosts, 10.0, is_write=True) as client:
        client.create("/skuld/c/roster", Roster(tuple(rows), cluster=("d" * 40,)).encode())
    assert "is forgotten (entry 13 of its log)" in skuld(hosts, "cluster", "forget", "c", "h:2").output
    assert read_roster(hosts, "c") == Roster(tuple(rows[1:]), cluster=("d" * 40,))
    again = skuld(hosts, "cluster", "forget", "c", "h:2")
    assert (again.exit_code, again.stderr) == (
        1, "error: NODE: cluster c has no node h:2; it has: h:1 [unknown_node]\n")


def test_a_cluster_made_by_an_earlier_release_is_upgraded_once(hosts: str) -> None:
    create_cluster(hosts, Parameters("old", "id-of-old", replicas=1, rules=1))

    said, keys = [], []
    for _ in range(2):
        said.append(skuld(hosts, "cluster", "rules", "old", "--raise").output)
        keys.append(read_parameters(hosts, "old").claim_key)
    proving = ", proves claims, and takes those without a proof for 24 h more"
    assert said == [f"cluster old goes by rules {RULES}{more}\n" for more in (proving, ", as it did before")]
    assert keys[0] and keys[0] == keys[1] and keys[0] not in "".join(said)


def test_rules_are_raised_once_all_placed_nodes_know_them(hosts: str) -> None:
    create_cluster(hosts, Parameters("mixed", "id-of-mixed", replicas=1, rules=2))
    newer = Registration("h", 1, boot="b", rules=RULES, rules_boot="b")
    entries = {"h:1": newer, "h:2": attrs.evolve(newer, rules_boot="before"), "stranger:1": Registration("s", 1)}
    with connection(hosts, 10.0, is_write=True) as client:
        for raw in raws():
            client.create("/skuld/mixed/log/entry-", raw, sequence=True)
        for name, entry in entries.items():
            client.create(f"/skuld/mixed/nodes/{name}", entry.encode())

        shown = json.loads(skuld(hosts, "cluster", "rules", "mixed", "--json").output)
        refused = skuld(hosts, "cluster", "rules", "mixed", "--raise")
        client.set("/skuld/mixed/nodes/h:2", newer.encode())
        raised = json.loads(skuld(hosts, "cluster", "rules", "mixed", "--raise", "--json").output)

    assert shown == {"cluster": "mixed", "rules": 2, "newest": RULES, "nodes": {"h:1": RULES, "h:2": 2}}
    assert refused.exit_code == 1 and f"node h:2 of cluster mixed does not know rules {RULES}" in refused.stderr
    assert raised["rules"] == RULES and raised["has_changed"]
    assert f"goes by rules {RULES}" in skuld(hosts, "cluster", "rules", "mixed").output


def test_how_workflows_share_slots_is_shown_and_set_where_the_rules_have_workflows(hosts: str) -> None:
    create_cluster(hosts, Parameters("shared", "id-of-shared", replicas=1))
    create_cluster(hosts, Parameters("older", "id-of-older", replicas=1, rules=2))

    assert "share slots: balanced" in skuld(hosts, "cluster", "share", "shared").output
    changed, same = (json.loads(skuld(hosts, "cluster", "share", "shared", "greedy", "--json").output)
                     for _ in range(2))
    assert changed == {"cluster": "shared", "sharing": "greedy", "has_changed": True} and not same["has_changed"]
    assert "share slots: greedy" in skuld(hosts, "cluster", "share", "shared").output
    refused = skuld(hosts, "cluster", "share", "older", "greedy")
    assert refused.exit_code == 1 and "cluster goes by rules 2" in refused.stderr
    assert skuld(hosts, "cluster", "share", "shared", "unfair").exit_code == 2


def test_how_many_copies_are_kept_is_shown_and_set_where_there_are_nodes_and_rules_for_it(hosts: str) -> None:
    create_cluster(hosts, Parameters("grown", "id-of-grown", replicas=1))
    create_cluster(hosts, Parameters("small", "id-of-small", replicas=1, rules=3))
    with connection(hosts, 10.0, is_write=True) as client:
        for raw in raws():
            client.create("/skuld/grown/log/entry-", raw, sequence=True)

    assert MOST == REPLICAS_MAX
    assert "keeps 1 copy of each task" in skuld(hosts, "cluster", "replicas", "grown").output
    placed = len(at_end(hosts, "grown", 10.0)[0].nodes)
    many = skuld(hosts, "cluster", "replicas", "grown", "7")
    older = skuld(hosts, "cluster", "replicas", "small", "2")
    assert many.exit_code == 1 and f"there are {placed} nodes for 7 copies" in many.stderr
    assert older.exit_code == 1 and "goes by rules 3" in older.stderr
    changed, same = (json.loads(skuld(hosts, "cluster", "replicas", "grown", str(placed), "--json").output)
                     for _ in range(2))
    assert changed == {"cluster": "grown", "replicas": placed, "has_changed": True} and not same["has_changed"]
    assert f"keeps {placed} copies of each task" in skuld(hosts, "cluster", "replicas", "grown").output
    assert skuld(hosts, "cluster", "replicas", "grown", "0").exit_code == 2


def test_a_cluster_whose_rules_are_the_newest_lacks_a_key_and_gets_one(hosts: str) -> None:
    create_cluster(hosts, Parameters("keyless", "id-of-keyless", replicas=1))
    before_ms = round(time.time() * 1000)

    answer = json.loads(skuld(hosts, "cluster", "rules", "keyless", "--raise", "--grace", "1h", "--json").output)

    made = read_parameters(hosts, "keyless")
    assert answer["has_changed"] and len(made.claim_key) == 64 and made.claim_key not in str((answer, made))
    assert 3_600_000 <= made.proofs_from_ms - before_ms < 3_660_000


def test_a_new_cluster_has_a_key_of_its_own_that_nobody_is_told(hosts: str) -> None:
    said = [skuld(hosts, "cluster", "create", name, *more).output
            for name, *more in (("one",), ("two", "--json"))]

    one, two = (read_parameters(hosts, name) for name in ("one", "two"))
    assert one.claim_key and two.claim_key and one.claim_key != two.claim_key
    assert (one.proofs_from_ms, two.proofs_from_ms) == (0, 0)
    assert not any(made.claim_key in "".join(said) for made in (one, two)) and "key" not in "".join(said)


def test_the_key_of_claims_is_shown_by_its_times_and_replaced_once_all_nodes_know_how(hosts: str) -> None:
    create_cluster(hosts, Parameters("proving", "id-of-p", replicas=1, claim_key="ab" * 32))
    older = Registration("h", 1, boot="b", rules=RULES - 1, rules_boot="b")
    with connection(hosts, 10.0, is_write=True) as client:
        for raw in raws():
            client.create("/skuld/proving/log/entry-", raw, sequence=True)
        client.create("/skuld/proving/nodes/h:1", older.encode())
        client.create("/skuld/proving/nodes/h:2", attrs.evolve(older, rules=RULES).encode())
        assert "that it was made with" in skuld(hosts, "cluster", "proofs", "proving").output
        refused = skuld(hosts, "cluster", "proofs", "proving", "--rotate")
        assert refused.exit_code == 1 and "node h:1 of cluster proving does not know rules" in refused.stderr
        client.set("/skuld/proving/nodes/h:1", attrs.evolve(older, rules=RULES).encode())
    now_ms = round(time.time() * 1000)
    answer = json.loads(skuld(hosts, "cluster", "proofs", "proving", "--rotate", "--grace", "2h", "--json").output)
    made = read_parameters(hosts, "proving")
    assert made.former_keys[0].key == "ab" * 32 != made.claim_key
    assert made.claim_key not in str(answer) and "ab" * 32 not in str(answer)
    assert 120_000 <= answer["from_ms"] - now_ms < 180_000
    assert answer["former"][0]["renewed_until_ms"] == answer["from_ms"] + 2 * 3_600_000
    shown = skuld(hosts, "cluster", "proofs", "proving").output
    assert "by a new key from" in shown and "claims of a key before are renewed until" in shown
    again = skuld(hosts, "cluster", "proofs", "proving", "--rotate")
    assert again.exit_code == 1 and "[key_not_in_use]" in again.stderr
    assert skuld(hosts, "cluster", "proofs", "proving", "--leaked").exit_code == 2


def test_following_shows_what_comes_and_ends_at_once_by_an_interrupt(hosts: str) -> None:
    program = [sys.executable, "-u", "-c", "from skuld_py.cli.main import main; main()"]
    with subprocess.Popen([*program, "cluster", "log", "c", "--zookeeper", hosts, "--follow", "--from", "11"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=TOP) as following:
        assert following.stdout is not None
        assert following.stdout.readline().split()[0] == "POSITION"
        position, _, _, writer, kind, *_ = following.stdout.readline().split()  # a date and a time
        assert (position, writer, kind) == ("11", "h:4~d", "prepare-join")
        skuld(hosts, "cluster", "forget", "c", "h:77")
        while "h:77" not in (line := following.stdout.readline()):
            assert line
        following.send_signal(signal.SIGINT)
        rest, complaints = following.communicate(timeout=60)

    assert (following.returncode, rest, complaints.strip()) == (130, "", "")


def test_a_cluster_that_is_not_there_is_named(hosts: str) -> None:
    named = ("--cluster", "nowhere")
    for verb in (("cluster", "log", "nowhere"), ("members", *named), ("ring", *named)):
        answer = skuld(hosts, *verb)
        assert (answer.exit_code, "[unknown_cluster]" in answer.stderr) == (1, True)
