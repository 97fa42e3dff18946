"""The verbs of keys, without a ZooKeeper: what is asked before a key is taken away, and where a new one goes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.errors import Refused
from skuld_py.keys.files import ClusterKey, read_client_key, read_cluster_key, write_new
from skuld_py.keys.pair import fresh
from skuld_py.model.roster import NODE_ROLE, KeyRow, Roster, make_row
from skuld_py.runtime.zookeeper import clusters, rosters
from skuld_py.verbs.words import moment

KEY = ClusterKey("prod", fresh(), "skuld-prod:x")


class Kept:
    """A roster, as ZooKeeper has it."""

    def __init__(self) -> None:
        self.roster = Roster((KeyRow(fresh().public, "h:1", (NODE_ROLE,)),
                              make_row(fresh().public, "shop", ("producer",))), cluster=(KEY.pair.public,))

    def read(self, *_: object) -> Roster:
        return self.roster

    def change(self, hosts: str, cluster: str, change: Callable[[Roster], Roster], *_: object) -> Roster:
        self.roster = change(self.roster)
        return self.roster


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Kept:
    made = Kept()
    monkeypatch.setattr(rosters, "read_roster", made.read)
    monkeypatch.setattr(rosters, "change_roster", made.change)
    monkeypatch.chdir(tmp_path)
    write_new(tmp_path / "prod.key", KEY.text)
    return made


def keys(*words: str) -> Result:
    return CliRunner().invoke(main, ["keys", *words, "--cluster", "prod", "--cluster-key", "prod.key"])


@pytest.mark.parametrize("by", ["name", "key"])
def test_a_node_s_key_is_revoked_only_if_a_node_is_meant(kept: Kept, by: str) -> None:
    node = kept.roster.rows[0]
    refused = keys("revoke", getattr(node, by))

    assert refused.exit_code == 1 and "h:1 is a node of cluster prod, and would end; with --node" in refused.stderr
    assert not kept.roster.revoked
    assert keys("revoke", getattr(node, by), "--node").exit_code == 0 and kept.roster.revoked == (node.key,)


@pytest.mark.parametrize(("path", "told"), [
    ("keys/", "'keys/' is a directory; name the file in it, as keys/NAME.key"),
    ("kyes/shop.key", "there is no directory kyes; make it first"), (".", "is a directory")])
def test_a_key_goes_to_a_directory_that_is_there(kept: Kept, path: str, told: str) -> None:
    refused = keys("make", "new", "--role", "reader", "--to", path)

    assert refused.exit_code in (1, 2) and told in refused.stderr
    assert len(kept.roster.rows) == 2 and not Path("kyes").exists() and not Path("keys").exists()


def test_a_cluster_is_created_with_the_keys_that_a_run_before_has_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rosters_made: list[Roster] = []

    def create(*words: str, error: BaseException | None = None) -> Result:
        def creating(*_: object, roster: Roster) -> None:
            rosters_made.append(roster)
            if error is not None:
                raise error
        monkeypatch.setattr(clusters, "create_cluster", creating)
        asked = ["cluster", "create", "prod", "--secure", "--first-client", "me.key", *words]
        return CliRunner().invoke(main, asked)

    assert create(error=Refused("unreachable", "zookeeper: nobody")).exit_code == 1
    assert not Path("prod.key").exists() and not Path("me.key").exists(), "what was refused leaves nothing"
    create(error=SystemExit(137))
    Path("me.key").rename("kept.key")
    assert create("--first-client", "kept.key").exit_code == 0
    died, made = rosters_made[1:]
    assert died == made and made.cluster == (read_cluster_key(Path("prod.key")).pair.public,)

    Path("prod.key").unlink()
    assert "kept.key exists, and is not the first client's" in create("--first-client", "kept.key").stderr
    assert not Path("prod.key").exists() and Path("kept.key").exists()


def test_the_next_key_lasts_no_longer_than_the_one_before_unless_that_is_said(kept: Kept) -> None:
    made = keys("make", "night", "--role", "worker", "--lasting", "90d")
    until_ms = kept.roster.rows[-1].until_ms
    assert f"may now act as worker until {moment(until_ms)}; its key" in made.output

    assert keys("rotate", "night").exit_code == 0 and kept.roster.rows[-1].until_ms == until_ms > 0
    assert keys("rotate", "night", "--lasting", "1h").exit_code == 0
    assert 0 < kept.roster.rows[-1].until_ms < until_ms
    assert keys("rotate", "shop").exit_code == 0 and kept.roster.rows[-1].until_ms == 0


def test_of_a_key_that_is_over_another_one_wants_its_time(kept: Kept) -> None:
    kept.roster = kept.roster.authorised(make_row(fresh().public, "old", ("reader",), (), 1))
    refused = keys("rotate", "old")

    assert refused.exit_code == 1 and "lasting: the newest key of old has ended" in refused.stderr
    assert len(kept.roster.rows) == 3 and not Path("old-2.key").exists()
    assert "over since 1970" in keys("list").output
    assert keys("rotate", "old", "--lasting", "1h").exit_code == 0


def test_no_client_is_called_like_a_node(kept: Kept) -> None:
    refused = keys("make", "h:1", "--role", "reader")

    assert refused.exit_code == 1 and "name: h:1 is a node of this cluster" in refused.stderr
    assert len(kept.roster.rows) == 2 and not Path("h:1.key").exists()


def test_a_client_s_key_is_revoked_without_more_words(kept: Kept) -> None:
    assert keys("revoke", "shop").exit_code == 0 and len(kept.roster.revoked) == 1


def test_a_new_key_goes_beside_those_that_lie_here(kept: Kept) -> None:
    Path("shop.key").touch()
    for number in (2, 3):
        done = keys("rotate", "shop")
        assert done.exit_code == 0 and f"its key is in shop-{number}.key" in done.output, done.output
        assert read_client_key(Path(f"shop-{number}.key")).pair.public == kept.roster.rows[-1].key


def test_rotating_a_client_s_key_ends_no_key_of_a_node_of_its_name(kept: Kept) -> None:
    """A release before this one let a client have the name of a node. Its rotation ended the node's key, too: a
    day later no other node heard that one."""
    node, client = kept.roster.rows
    kept.roster = attrs.evolve(kept.roster, rows=(node, attrs.evolve(client, name="h:1")))

    assert keys("rotate", "h:1", "--to", "new.key").exit_code == 0
    assert [row.until_ms for row in kept.roster.node("h:1")] == [0]
    assert [bool(row.until_ms) for row in kept.roster.rows] == [False, True, False]


def test_the_next_key_ends_when_the_one_before_would_have_ended(kept: Kept) -> None:
    """A key for some months came back for ever."""
    assert keys("make", "guest", "--role", "reader", "--lasting", "90d").exit_code == 0
    end_ms = kept.roster.rows[-1].until_ms
    assert keys("rotate", "guest", "--grace", "1h").exit_code == 0
    before, after = kept.roster.rows[-2:]
    assert end_ms > 0 and after.until_ms == end_ms > before.until_ms

    assert keys("rotate", "guest", "--lasting", "180d").exit_code == 0
    assert kept.roster.rows[-1].until_ms > end_ms
