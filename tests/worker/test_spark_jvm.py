"""Which PySpark a worker launches, and what it takes for the place where the JVM listens."""

from __future__ import annotations

import pytest

from skuld_py.errors import Refused
from skuld_py.worker.spark_jvm import check_release, read_handshake

SECRET = b"a secret"


@pytest.mark.parametrize("release", ["4.0.0", "4.1.4", "4.2.0", "4.3.0", "4.3.0.dev1"])
def test_a_release_that_is_known_is_launched(release: str) -> None:
    check_release(release)


@pytest.mark.parametrize("release", ["3.5.9", "4.4.0", "5.0.0", "unknown", ""])
def test_another_one_is_refused_by_name_with_what_would_do(release: str) -> None:
    with pytest.raises(Refused) as refusal:
        check_release(release)

    assert refusal.value.code == "unknown_spark"
    for word in (f"PySpark {release} cannot", "4.0 to 4.3", "pip install 'skuld-py[spark]'"):
        assert word in refusal.value.message


def test_a_handshake_is_a_port_and_a_secret() -> None:
    assert read_handshake(handshake(40_000, SECRET)) == (40_000, "a secret")


def handshake(port: int, secret: bytes, length: int | None = None) -> bytes:
    return port.to_bytes(4) + (len(secret) if length is None else length).to_bytes(4) + secret


@pytest.mark.parametrize("data", [
    b"", b"\0\0\x9c", handshake(40_000, b""), handshake(0, SECRET), handshake(1 << 16, SECRET),
    handshake(40_000, SECRET, 7), handshake(40_000, SECRET, 9), handshake(40_000, SECRET) + b"\n"])
def test_what_is_no_handshake_is_refused_and_not_guessed_at(data: bytes) -> None:
    with pytest.raises(Refused) as refusal:
        read_handshake(data)

    assert refusal.value.code == "unknown_spark"
    assert f"{len(data)} bytes" in refusal.value.message
