"""Who is let into ZooKeeper by name and password: what is read, and what Java is told."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from skuld_py.embedded import zookeeper_users
from skuld_py.errors import Refused


def test_users_are_read_from_lines_and_written_for_java_alone(tmp_path: Path) -> None:
    users = zookeeper_users.read("# ours\nann:s3cret:with:colons\n\nbob.b-b_:~!#%&'()*\n", "users")
    zookeeper_users.write(tmp_path, {"old": "one"})
    zookeeper_users.write(tmp_path, users)
    written = tmp_path / "users.jaas"

    assert users == {"ann": "s3cret:with:colons", "bob.b-b_": "~!#%&'()*"}
    assert written.read_text() == (
        "Server {\n    org.apache.zookeeper.server.auth.DigestLoginModule required\n"
        '    user_ann="s3cret:with:colons"\n    user_bob.b-b_="~!#%&\'()*";\n};\n')
    assert stat.S_IMODE(written.stat().st_mode) == 0o600


@pytest.mark.parametrize("line", ["ann", "ann:", ":x", "a b:x", "ann:a b", 'ann:a"b', "ann:a\\b", "ann:${home}",
                                  "ann:ü", "bob:twice"])
def test_a_line_that_java_would_read_otherwise_is_refused_by_its_number(line: str) -> None:
    with pytest.raises(Refused, match="users: line 2 of here is not NAME:PASSWORD") as refused:
        zookeeper_users.read(f"bob:x\n{line}\n", "here")

    assert line.partition(":")[2] not in refused.value.message or not line.partition(":")[2]


def test_nobody_at_all_is_refused() -> None:
    with pytest.raises(Refused, match="users: here names nobody"):
        zookeeper_users.read("# nobody\n", "here")
