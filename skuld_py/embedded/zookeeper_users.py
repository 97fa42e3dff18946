"""Whom a ZooKeeper server lets in by name and password: SASL, by DIGEST-MD5, for every session.

Java reads names and passwords from a file of its own kind (JAAS), when it starts. In its texts quotes, backslashes
and dollars mean something, so they are none of a password; ``check`` says so before a file is written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from skuld_py.errors import Refused

_FILE = "users.jaas"
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_PASSWORD = re.compile(r"[!#%-\[\]-~]{1,200}")
"""Visible ASCII but for quote, dollar and backslash."""

CONFIGURATION = """\
authProvider.sasl=org.apache.zookeeper.server.auth.SASLAuthenticationProvider
enforce.auth.enabled=true
enforce.auth.schemes=sasl
"""
ARGUMENTS = (f"-Djava.security.auth.login.config={_FILE}",)


def read(text: str, origin: str) -> dict[str, str]:
    """Users and their passwords, from lines NAME:PASSWORD; ``Refused`` naming the line that is none."""
    users: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            name, _, password = line.partition(":")
            if not _NAME.fullmatch(name) or not _PASSWORD.fullmatch(password) or name in users:
                raise Refused("bad_users", f"users: line {number} of {origin} is not NAME:PASSWORD of a user"
                              " more, the name of letters, digits, dots and dashes, the password of visible"
                              " ASCII without quotes, dollars and backslashes", line=number)
            users[name] = password
    if not users:
        raise Refused("bad_users", f"users: {origin} names nobody; write NAME:PASSWORD into a line for each user")
    return users


def write(directory: Path, users: Mapping[str, str]) -> None:
    """The file for Java, for nobody else to read."""
    rows = "".join(f'\n    user_{name}="{password}"' for name, password in users.items())
    path = directory / _FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"Server {{\n    org.apache.zookeeper.server.auth.DigestLoginModule required{rows};\n}};\n")
