"""ZooKeeper is put together from the jars of each PySpark that a worker takes, whose netty differs."""

from __future__ import annotations

import importlib.machinery
from pathlib import Path

import pytest

from skuld_py.embedded import zookeeper
from skuld_py.errors import Refused

ALWAYS = ("zookeeper-{}", "zookeeper-jute-{}", "slf4j-api-2.0.16", "snappy-java-1.1.10.7", "metrics-core-4.2.30",
          "netty-common-{}", "netty-buffer-{}", "netty-transport-{}", "netty-handler-{}", "netty-resolver-{}",
          "netty-transport-native-unix-common-{}", "netty-transport-classes-epoll-{}")
NETTY_4_1, NETTY_4_2 = ("netty-codec-{}",), ("netty-codec-{}", "netty-codec-base-{}", "netty-codec-http-{}")


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The jars of a PySpark that is not there otherwise."""
    spec = importlib.machinery.ModuleSpec("pyspark", None, origin=str(tmp_path / "pyspark" / "__init__.py"))
    monkeypatch.setattr(zookeeper, "find_spec", lambda name: spec)
    directory = tmp_path / "pyspark" / "jars"
    directory.mkdir(parents=True)
    for name in ALWAYS:
        (directory / f"{name.format('4.1.118.Final')}.jar").touch()
    return directory


@pytest.mark.parametrize(("netty", "codec"), [(NETTY_4_1, "netty-codec-4.1.118.Final.jar"),
                                              (NETTY_4_2, "netty-codec-base-4.1.118.Final.jar")])
def test_the_codec_of_either_netty_does(jars: Path, netty: tuple[str, ...], codec: str) -> None:
    for name in netty:
        (jars / f"{name.format('4.1.118.Final')}.jar").touch()

    found = [path.name for path in zookeeper.server_jars()]

    assert codec in found
    assert len(found) == len(ALWAYS) + 1


@pytest.mark.usefixtures("jars")
def test_a_pyspark_that_lacks_one_is_refused_by_name() -> None:
    with pytest.raises(Refused, match="netty-codec") as refusal:
        zookeeper.server_jars()

    assert refusal.value.code == "no_jar"
    assert "pip install 'skuld-py[spark]'" in refusal.value.message
