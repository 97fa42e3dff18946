"""Clients refuse misspelt variables of the environment by name, as verbs do; what is not theirs may be there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import click
import pytest

from skuld_py import AsyncClient, Client, Refused
from skuld_py.cli.main import main
from skuld_py.variables import TOLD, VERBS, check_client, check_process, handed_on


@pytest.fixture(autouse=True)
def as_a_new_process() -> Iterator[None]:
    """In which no client was made."""
    check_process.cache_clear()
    yield
    check_process.cache_clear()


@pytest.mark.parametrize(("name", "remedy"), [
    ("SKULD_NODEZ", "did you mean SKULD_NODES?"), ("SKULD_NODE", "did you mean SKULD_NODES?"),
    ("SKULD_CLIENTKEY", "did you mean SKULD_CLIENT_KEY?"), ("SKULD_TASKS", "did you mean SKULD_TASK?"),
    ("SKULD_xyzzy", "unset it"), ("SKULD_", "did you mean"), ("SKULD_SERVICE_HOSTS", ""),
    ("SKULD_MAIL_PORT", "")])
def test_a_variable_of_nobody_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, remedy: str) -> None:
    async def awaited() -> None:
        AsyncClient("127.0.0.1:1")
    monkeypatch.setenv(name, "secret")

    with pytest.raises(Refused) as sync:
        Client("127.0.0.1:1")
    with pytest.raises(Refused) as awaiting:
        asyncio.run(awaited())
    assert str(sync.value) == str(awaiting.value)
    assert sync.value.code == "bad_variable" and sync.value.facts["variable"] == name
    assert f"${name}: " in sync.value.message and remedy in sync.value.message
    assert "secret" not in str(sync.value)


def test_what_is_set_after_the_first_client_was_made_keeps_nobody_from_making_another(
        monkeypatch: pytest.MonkeyPatch) -> None:
    Client("127.0.0.1:1").close()
    monkeypatch.setenv("SKULD_XYZZY", "1")
    Client("127.0.0.1:1").close()


def test_a_program_that_a_worker_starts_is_told_no_name_of_nobody() -> None:
    kept = {"PATH": "/bin", "SKULD_NODES": "127.0.0.1:1", "SKULD_TASK": "x", "SKULD_WORKER_SLOTS": "2"}
    assert handed_on({**kept, "SKULD_XYZZY": "1", "SKULD_NODEZ": "2"}) == kept


def test_what_begins_with_any_verb_s_name_is_that_verb_s_to_judge() -> None:
    assert set(VERBS) == {*main.list_commands(click.Context(main))}


@pytest.mark.parametrize("name", [
    *TOLD, "SKULD_NODES", "SKULD_TIMEOUT", "SKULD_CONFIG", "SKULD_RETENTION", "SKULD_CLAIM_LEASE",
    "SKULD_NODE_PORT", "SKULD_WRONG_TIME_FILE", "SKULD_TEST_X", "SKULDUGGERY", "_SKULD_NODEZ"])
def test_what_others_read_may_be_there(name: str) -> None:
    check_client({name: ""})


def test_where_kubernetes_says_a_service_is_no_variable_is_misspelt() -> None:
    check_client({f"{front}{rest}": "" for front in ("SKULD", "SKULD_MAIL")
                  for rest in ("_SERVICE_HOST", "_SERVICE_PORT", "_SERVICE_PORT_HTTP", "_PORT", "_PORT_80_TCP",
                               "_PORT_80_TCP_PROTO", "_PORT_80_TCP_PORT", "_PORT_80_TCP_ADDR")})
