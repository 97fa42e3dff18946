"""How verbs get at a ZooKeeper that is sealed or asks for names: by flags, the environment and the file alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from skuld_py.cli.main import main
from skuld_py.model.roster import Roster
from skuld_py.runtime.zookeeper import clusters, securing
from skuld_py.runtime.zookeeper.servers import Servers
from skuld_py.runtime.zookeeper.tls import Tls

GIVEN = {"zookeeper-ca": "ca.pem", "zookeeper-cert": "own.pem", "zookeeper-cert-key": "own.key",
         "zookeeper-user": "prod", "zookeeper-password-file": "password"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """The servers that verbs asked."""
    seen: list[Any] = []

    def destroy(hosts: Any, *_: Any, **__: Any) -> None:
        seen.append(hosts)
    monkeypatch.setattr(clusters, "read_parameters", lambda *_: None)
    monkeypatch.setattr(clusters, "destroy_cluster", destroy)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "password").touch(0o600)
    (tmp_path / "password").write_text("s3cret\n")
    return seen


def destroy(*arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["cluster", "destroy", "c", "--yes", *arguments], env=environment)


@pytest.mark.parametrize("way", ["flags", "environment", "file", "own table"])
def test_what_is_shown_to_zookeeper_can_be_said_in_each_way(asked: list[Any], way: str) -> None:
    arguments, environment = [], {}
    if way == "flags":
        arguments = [word for key, value in GIVEN.items() for word in (f"--{key}", value)]
    elif way == "environment":
        environment = {f"SKULD_{key.upper().replace('-', '_')}": value for key, value in GIVEN.items()}
    else:
        table = "[all]" if way == "file" else "[cluster.destroy]"
        Path("skuld.toml").write_text(table + "\n" + "".join(f'{key} = "{each}"\n' for key, each in GIVEN.items()))
    done = destroy(*arguments, **environment)

    assert done.exit_code == 0, done.output
    servers = asked[0]
    assert isinstance(servers, Servers) and servers == "127.0.0.1:2181"
    assert servers.tls == Tls(Path("ca.pem"), Path("own.pem"), Path("own.key"))
    assert servers.sasl is not None and servers.sasl() == ("prod", "s3cret")
    assert servers.logins() == ()


@pytest.mark.parametrize("verb", ["create", "secure"])
def test_a_command_that_is_proposed_has_them_as_well(asked: list[Any], monkeypatch: pytest.MonkeyPatch,
                                                     verb: str) -> None:
    monkeypatch.setattr(clusters, "create_cluster", lambda *_, **__: None)
    for name in ("check_stopped", "secure_cluster"):
        monkeypatch.setattr(securing, name, lambda *_, **__: securing.Secured(True, None, Roster()))
    words = [word for key, value in GIVEN.items() for word in (f"--{key}", value)]
    done = CliRunner().invoke(main, ["cluster", verb, "c", "--zookeeper", "zk1:2181", *words])

    proposed = [line for line in done.output.splitlines() if line.startswith("  skuld ")]
    assert proposed and all(f"--zookeeper zk1:2181 {' '.join(words)}" in line for line in proposed), done.output


def test_without_them_nothing_is_shown(asked: list[Any]) -> None:
    assert destroy().exit_code == 0

    assert asked[0].tls is None and asked[0].sasl is None and asked[0].logins() == ()


def test_servers_asked_under_a_name_are_the_same_servers() -> None:
    tls = Tls(Path("ca.pem"))
    servers = Servers("zk1:2181", tls=tls, sasl=lambda: ("a", "b"))
    owned = servers.owned(lambda: ("name:password",))

    assert (owned, owned.logins(), owned.tls, owned.sasl) == ("zk1:2181", ("name:password",), tls, servers.sasl)
    assert "password" not in repr(owned)


@pytest.mark.parametrize(("alone", "needed"), [
    ("zookeeper-cert", "zookeeper-ca"), ("zookeeper-user", "zookeeper-password-file"),
    ("zookeeper-password-file", "zookeeper-user")])
def test_one_that_is_nothing_without_another_is_refused(asked: list[Any], alone: str, needed: str) -> None:
    done = destroy(f"--{alone}", "x")

    assert done.exit_code == 2 and f"--{alone}: give --{needed} as well" in done.stderr
    assert not asked


def test_a_key_without_its_certificate_is_refused(asked: list[Any]) -> None:
    done = destroy("--zookeeper-ca", "ca.pem", "--zookeeper-cert-key", "own.key")

    assert done.exit_code == 2 and "--zookeeper-cert-key: give --zookeeper-cert as well" in done.stderr


def test_a_user_needs_an_extra(asked: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from skuld_py import extras

    for missing, named in (("puresasl", "sasl"), ("kazoo puresasl", "node,sasl")):
        monkeypatch.setattr(extras, "find_spec", lambda name, gone=missing: None if name in gone.split() else name)
        done = destroy("--zookeeper-user", "prod", "--zookeeper-password-file", "password")

        assert done.exit_code == 1 and f"pip install 'skuld-py[{named}]'" in done.stderr


def test_certificates_are_made_where_it_is_said(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["certificates", "--to", str(tmp_path / "tls"), "--host", "zk1, zk2"])

    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "tls").iterdir()} == {"authority", "client", "zk1", "zk2"}
    assert "keep" in done.output
    assert CliRunner().invoke(main, ["certificates", "--to", "x", "--host", ","]).exit_code == 2


@pytest.mark.parametrize(("option", "words"), [
    ("--tls", "tls: .*ca.pem is no use"), ("--users", "users: .*nothing cannot be read")])
def test_a_server_that_cannot_serve_as_it_should_does_not_start(tmp_path: Path, option: str, words: str) -> None:
    import re

    nothing = str(tmp_path / "nothing")
    done = CliRunner().invoke(main, ["zookeeper", "--data", str(tmp_path / "data"), option, nothing])

    assert done.exit_code == 1 and re.search(words, done.stderr), done.output
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("option", ["--tls", "--users"])
def test_a_server_refuses_secrets_that_others_may_read(tmp_path: Path, option: str) -> None:
    from skuld_py.embedded import certificates

    certificates.make(tmp_path / "tls", ["127.0.0.1"], 30)
    (tmp_path / "users").write_text("prod:s3cret\n")
    given = {"--tls": tmp_path / "tls" / "127.0.0.1", "--users": tmp_path / "users"}[option]
    for path in given.glob("*.pem") if given.is_dir() else (given,):
        path.chmod(0o644)

    done = CliRunner().invoke(main, ["zookeeper", "--data", str(tmp_path / "data"), option, str(given)])
    assert done.exit_code == 1 and "may be read by others" in done.stderr
    assert f"replace {'the passwords' if option == '--users' else 'the key'} if" in done.stderr
