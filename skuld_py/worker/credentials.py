"""What a worker knows to reach databases: names, users, passwords, in a file of its own machine.

    [shop]                                   # the name that definitions of workflows have as ``credentials``
    url = "jdbc:postgresql://db/shop"        # or a list of them: for these addresses, and no others
    user = "reader"
    password = "..."
    # and what else the driver is to be told

The file is named by ``SKULD_CREDENTIALS``, and nobody but its owner may read it. It is read when it is needed, so
a new password counts from the next use on, and nothing of it is ever in a task, a log or an error.

Invariant: credentials are given out for the addresses that they name. Whoever may submit a workflow chooses an
address; without that rule he would have any password sent to a server of his own.

Rejected: environment variables for each name (child processes have them, and lists of processes show them). To
compare beginnings of addresses: drivers take the names of classes and other hosts behind a question mark.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

from skuld_py.errors import Refused
from skuld_py.keys.files import check_private

VARIABLE = "SKULD_CREDENTIALS"


def credentials_for(name: str, url: str) -> dict[str, str]:
    """User, password and what else there is under a name, for an address; nothing for no name. ``Refused`` as
    ``bad_credentials``, which never quotes a value."""
    if not name:
        return {}
    place = os.environ.get(VARIABLE, "")
    if not place:
        raise _bad(f"{name} is not known here: start the worker with {VARIABLE}, the path of a TOML file")
    try:
        check_private(Path(place), "the passwords")
        known = tomllib.loads(Path(place).read_text(encoding="utf-8"))
    except OSError as problem:
        raise _bad(f"{place} cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise _bad(f"{place} is no TOML: {type(problem).__name__}") from None
    section = known.get(name)
    if not isinstance(section, dict):
        raise _bad(f"{place} has no section [{name}]")
    urls = section.get("url")
    if url not in (urls if isinstance(urls, list) else [urls]):
        raise _bad(f"[{name}] in {place} is not for {url[:200]}: its url names the addresses that it is for")
    return {key: str(value) for key, value in section.items() if key != "url"}


def _bad(problem: str) -> Refused:
    return Refused("bad_credentials", f"credentials: {problem}", field="credentials")
