"""Timings of a node: by option, variable and file, checked against each other; and what is told of settings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.failures import LASTING
from skuld_py.cli.main import main
from skuld_py.cli.timings import word_of
from skuld_py.config import Parameters
from skuld_py.config.timing import DEFAULT_TIMING, TIMINGS, Timing, check_timing
from skuld_py.errors import Refused
from skuld_py.simulation.options import draw_options

NODE = ("node", "--cluster", "mill", "--data", "data")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty directory, to be in."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Timing]:
    """What nodes are started with."""
    found: list[Timing] = []
    monkeypatch.setattr("skuld_py.runtime.server.serve",
                        lambda *_, timing, **__: found.append(timing))
    return found


def skuld(*arguments: str, env: dict[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, arguments, env=env, prog_name="skuld")


# -- who goes first ------------------------------------------------------------------------------


def test_each_duration_has_an_option_and_its_default_is_the_node_s(started: list[Timing]) -> None:
    answer = skuld(*NODE)

    assert answer.exit_code == 0, answer.output
    assert started == [DEFAULT_TIMING]
    listed = skuld("node", "--help").output
    assert re.findall(r"--timing-(\S+) DURATION", listed) == [word_of(field) for field in TIMINGS]
    assert listed.index("Timings, alike on all nodes") > listed.index("--scheduler")


def test_a_home_lends_as_long_as_all_others_do() -> None:
    """A new home waits as long as the one before may have lent, by its own clock: nobody may say otherwise."""
    assert "loan_ms" not in TIMINGS and {*TIMINGS} | {"loan_ms"} == {
        field.name for field in attrs.fields(Timing) if field.name.endswith("_ms")}


def test_the_command_line_then_the_environment_then_the_file(started: list[Timing]) -> None:
    Path("skuld.toml").write_text('[node]\ntiming-vote = "900ms"\n[node.timing]\ngossip = "700ms"\ndraft = "2d"\n')
    for arguments, env in (((), {}), ((), {"SKULD_NODE_TIMING_GOSSIP": "800ms"}),
                           (("--timing-gossip", "900ms"), {"SKULD_NODE_TIMING_GOSSIP": "800ms"})):
        assert skuld(*NODE, *arguments, env=env).exit_code == 0

    assert [timing.gossip_ms for timing in started] == [700, 800, 900]
    assert {(timing.vote_ms, timing.draft_ms) for timing in started} == {(900, 2 * 24 * 3_600_000)}


@pytest.mark.parametrize(("text", "words"), [
    ('[node.timing]\ngosip = "1s"\n', ["line 2", "node.timing.gosip", "did you mean 'timing-gossip'?"]),
    ('[node.timing]\nloan = "1s"\n', ["line 2", "node.timing.loan"]),
    ('[node]\ntiming-vote = "1s"\n[node.timing]\nvote = "2s"\n',
     ["line 4", "is given as node.timing-vote, too; keep one of them"]),
    ('[node.timing]\ngossip = "1x"\n', ["--timing-gossip", "line 2: node.timing.gossip", "90d"]),
    ('[node.timing]\ngossip = "2m"\n', ["--timing-gossip", "1 ms to 1 min"]),
    ('[node.timing]\nseat = "900ms"\n', ["--timing-seat", "1 s to 24 h"]),
    ('[node.timing]\nending = "21s"\n', ["--timing-ending", "1 ms to 20 s"]),
    ('[node.timing]\nhandover = "31s"\n', ["--timing-handover", "1 ms to 30 s"]),
    ('[claim.timing]\ngossip = "1s"\n', ["claim.timing.gossip", "has no option"]),
    ('[node]\ntiming = 3\n', ["line 2", "node.timing"]),
    ('[node.timing]\nsilence = "900ms"\n', ["timing-silence: 900 ms is less than 2 times gossip: 500 ms",
                                            "raise silence to 1000 ms or more, or lower gossip",
                                            "line 2: node.timing.silence", "[bad_timing]"]),
])
def test_what_is_wrong_in_the_file_is_named(started: list[Timing], text: str, words: list[str]) -> None:
    Path("skuld.toml").write_text(text)

    answer = skuld(*NODE)

    assert answer.exit_code in (2, LASTING) and not started
    told = " ".join(answer.output.split())
    assert [word for word in words if word not in told] == [], told


# -- what fits together --------------------------------------------------------------------------


@pytest.mark.parametrize(("bent", "words"), [
    ({"silence_ms": 999}, ["silence", "gossip"]), ({"gossip_ms": 1_501}, ["silence: 3000 ms", "gossip: 1501 ms"]),
    ({"vote_ms": 3_001}, ["silence", "vote"]), ({"heir_delay_ms": 1_001}, ["first-heir-delay", "heir-delay"]),
    ({"heir_delay_ms": 4_000, "first_heir_delay_ms": 4_000}, ["silence", "heir-delay"]),
    ({"grant_ms": 4_001}, ["request", "grant"]), ({"resend_ms": 1_501}, ["grant", "resend"]),
    ({"sync_ms": 2_999}, ["sync: 2999 ms", "exchange-page: 3000 ms"]),
    ({"request_ms": 399, "grant_ms": 399, "behind_ms": 1}, ["request", "resend"]),
    ({"behind_ms": 4_001}, ["request", "behind"]), ({"clock_ms": 399}, ["clock", "resend"]),
    ({"confirm_ms": 3_001}, ["exchange-page", "confirm"]), ({"watch_ms": 30_001}, ["rewatch", "watch"]),
    ({"draft_pause_ms": 7 * 3_600_000}, ["draft", "draft-pause"]), ({"horizon_ms": 7_999}, ["horizon", "skew"]),
])
def test_what_does_not_fit_together_is_refused_by_both_names_and_the_remedy(bent: dict[str, int],
                                                                            words: list[str]) -> None:
    with pytest.raises(Refused) as refused:
        check_timing(attrs.evolve(DEFAULT_TIMING, **bent), skew_ms=2_000)

    assert [word for word in words if word not in refused.value.message] == [], refused.value.message
    assert "raise " in refused.value.message and refused.value.code == "bad_timing"


def test_the_defaults_fit_every_skew_that_a_cluster_may_have_by_default_and_at_the_edge() -> None:
    check_timing(DEFAULT_TIMING, 2_000)
    check_timing(attrs.evolve(DEFAULT_TIMING, silence_ms=1_000, horizon_ms=8_000), 2_000)


def test_a_node_asks_its_cluster_for_the_skew_before_it_touches_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skuld_py.runtime.server.read_parameters",
                        lambda hosts, cluster: Parameters(cluster, "id", skew_ms=600_000))
    answer = skuld(*NODE)

    assert answer.exit_code == LASTING and "timing-horizon: 1800000 ms" in answer.output, answer.output
    assert "raise horizon to 2400000 ms" in answer.output and not Path("data").exists()


@pytest.mark.parametrize("seed", range(0, 300, 7))
def test_what_the_simulator_draws_fits_together(seed: int) -> None:
    check_timing(draw_options(seed).timing, skew_ms=1)


def test_a_variable_of_no_timing_is_refused() -> None:
    answer = skuld("token", "ci", "--scope", "read", env={"SKULD_NODE_TIMING_GOSIP": "1s"})

    assert answer.exit_code == 2 and "did you mean SKULD_NODE_TIMING_GOSSIP?" in answer.output


# -- what is, and why ----------------------------------------------------------------------------


def shown(*words: str, **env: str) -> dict[str, Any]:
    answer = skuld("config", "show", *words, "--json", env=env)
    assert answer.exit_code == 0, answer.output
    return {f"{row['verb']}.{row['key']}": row for row in json.loads(answer.stdout)}


def test_every_setting_is_shown_with_its_value_and_where_it_comes_from() -> None:
    Path("skuld.toml").write_text('[all]\nnodes = "a:1"\n[claim]\nlease = "5m"\n[node.timing]\ngossip = "700ms"\n')

    claim, node = shown("claim", SKULD_CLAIM_N="3"), shown("node")

    assert [(claim[f"claim.{key}"]["value"], claim[f"claim.{key}"]["from"]) for key in (
        "nodes", "lease", "n", "wait")] == [
        ("a:1", "skuld.toml, line 2: all.nodes"), ("5m", "skuld.toml, line 4: claim.lease"),
        ("3", "$SKULD_CLAIM_N"), ("0s", "default")]
    assert (node["node.timing-gossip"]["value"], node["node.timing-gossip"]["from"]) == (
        "700ms", "skuld.toml, line 6: node.timing.gossip")
    assert node["node.timing-gossip"]["variable"] == "SKULD_NODE_TIMING_GOSSIP"
    assert node["node.retention"]["value"] == "for ever" and node["node.cluster"]["value"] is None
    created = shown("cluster", "create", SKULD_CLUSTER_CREATE_PARTITIONS="16")
    assert created["cluster create.partitions"]["value"] == "16"


def test_what_is_no_default_is_shown_of_all_verbs() -> None:
    Path("skuld.toml").write_text('[claim]\nlease = "5m"\n')

    found = shown("--changed", SKULD_NODE_PORT="14000")

    assert {name: row["value"] for name, row in found.items()} == {"claim.lease": "5m", "node.port": "14000"}
    assert {"node.port", "enqueue.nodes", "schedule put.cron", "gateway.tokens"} <= shown().keys()
    assert "skuld.toml, line 2" in skuld("config", "show", "--changed").output


def test_a_verb_that_is_none_is_told() -> None:
    for words in (("clame",), ("cluster", "crate"), ("claim", "it")):
        answer = skuld("config", "show", *words)
        assert answer.exit_code == 2 and "there is no verb" in answer.output
