"""One small cluster and a few gateways for all tests of HTTP; each test has a queue of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from gateway.asking import Asker
from skuld_py.demo.readiness import what_is_missing
from skuld_py.embedded.local import LocalCluster
from skuld_py.gateway.access import hash_of, new_token
from skuld_py.verbs.verb import Scope

THROWAWAY = Path(__file__).with_name("throwaway.pem")
"""A certificate for loopback that signs itself, with its key: it protects nothing. Git keeps no modes, and a key
counts only in a file that nobody else may read."""
THROWAWAY.chmod(0o600)
LIMITS = ("--body", "1", "--requests", "8", "--waiting", "1", "--wait", "2s", "--timeout", "2s")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """One node: what is tested here is in front of it."""
    with LocalCluster(tmp_path_factory.mktemp("gateway"), nodes=1, partitions=2, replicas=1, skew_ms=200,
                      what_is_missing=what_is_missing) as running:
        yield running


@pytest.fixture(scope="session")
def anybody(cluster: LocalCluster) -> Asker:
    """A gateway on loopback without tokens."""
    return Asker(cluster.start_gateway()[0])


@attrs.frozen
class Guarded:
    """A gateway with tokens: one for each scope, one for all, and one nobody knows."""

    url: str
    tokens: dict[str, str]

    def with_scope(self, scope: str) -> Asker:
        return Asker(self.url, self.tokens[scope])


@pytest.fixture(scope="session")
def guarded(cluster: LocalCluster, tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    return start_guarded(cluster, tmp_path_factory.mktemp("tokens") / "tokens.toml")


@pytest.fixture
def crowded(cluster: LocalCluster, tmp_path: Path) -> Guarded:
    """One with tokens and few places."""
    return start_guarded(cluster, tmp_path / "tokens.toml", "--requests", "8", "--waiting", "16", "--wait", "60s")


def start_guarded(cluster: LocalCluster, path: Path, *options: str) -> Guarded:
    tokens = {name: new_token() for name in (*Scope, "all")}
    write_tokens(path, {name: (tokens[name], [*Scope] if name == "all" else [name]) for name in tokens})
    url, _ = cluster.start_gateway("--tokens", str(path), *options)
    return Guarded(url, {**tokens, "unknown": new_token()})


def write_tokens(path: Path, tokens: dict[str, tuple[str, list[str]]]) -> None:
    path.touch(mode=0o600)
    path.write_text("".join(
        f'[[token]]\nname = "{name}"\nsha256 = "{hash_of(token)}"\nscopes = {[str(scope) for scope in scopes]}\n'
        for name, (token, scopes) in tokens.items()))


@pytest.fixture(scope="session")
def narrow(cluster: LocalCluster) -> Asker:
    """A gateway with small limits."""
    return Asker(cluster.start_gateway(*LIMITS)[0])


@pytest.fixture
def queue(request: pytest.FixtureRequest) -> str:
    return "".join(char if char.isalnum() else "-" for char in str(request.node.name))[:200].rstrip("-")
