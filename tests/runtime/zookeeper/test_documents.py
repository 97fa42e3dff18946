"""What is asked of ZooKeeper for a document, in which order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import attrs
import pytest
from kazoo.protocol.states import EventType, WatchedEvent

from skuld_py.model.document import Document, seats_of
from skuld_py.model.events import (
    DocumentChanged,
    DocumentRead,
    DocumentSwapped,
    Event,
    Outcome,
    ReadDocument,
    SwapDocument,
)
from skuld_py.runtime.zookeeper.connection import Connection
from skuld_py.runtime.zookeeper.documents import Documents

DOCUMENT = Document(1, "n1", "boot", seats_of(("n1",)), "w1")


MADE = "create /s/history", "create /s/history/3"
ANEW = "create /s/partitions", "begin"
"""Somebody may have deleted the folder with all documents; a leader puts its own back."""
BEGUN = "/s/history/3/begun"
REVISION = "create /s/history/3/r- sequential"


@attrs.frozen
class Stat:
    version: int


class Client:
    """Notes what it is asked, and answers at once: itself the connection as well."""

    connected = True

    def __init__(self) -> None:
        self.client = self
        self.asked: list[str] = []
        self.watches: dict[str, set[Callable[[WatchedEvent], None]]] = {}

    def sync_async(self, path: str) -> None:
        self.asked.append(f"sync {path}")

    def get_async(self, path: str, watch: Callable[[WatchedEvent], None]) -> tuple[bytes, Stat]:
        self.asked.append(f"get {path}")
        self.watches[path] = {*self.watches.get(path, ()), watch}
        return DOCUMENT.encode(), Stat(4)

    def create_async(self, path: str, raw: bytes) -> str:
        self.asked.append(f"create {path}")
        return path

    def set_async(self, path: str, raw: bytes, version: int) -> None:
        self.asked.append(f"set {path} {version}")

    def transaction(self) -> Client:
        self.asked.append("begin")
        self.done: list[object] = []
        return self

    def create(self, path: str, raw: bytes, *, sequence: bool = False) -> None:
        self.asked.append(f"create {path}" + " sequential" * sequence)
        self.done.append(f"{path}0000000007" if sequence else path)

    def set_data(self, path: str, raw: bytes, version: int) -> None:
        self.asked.append(f"set {path} {version}")
        self.done.append(Stat(version + 1))

    def check(self, path: str, version: int) -> None:
        self.asked.append(f"check {path} {version}")
        self.done.append(True)

    def commit_async(self) -> list[object]:
        self.asked.append("commit")
        return self.done

    def wait(self, answer: Any) -> Any:
        return answer


@pytest.mark.parametrize(("effect", "asked", "event"), [
    (ReadDocument(3), ["sync /s/partitions/3", "get /s/partitions/3"], DocumentRead(3, 4, DOCUMENT)),
    (SwapDocument(3, -1, DOCUMENT, is_founding=True),
     [*MADE, *ANEW, "create /s/partitions/3", REVISION, f"create {BEGUN}", "commit"],
     DocumentSwapped(3, "w1", Outcome.WON, 0)),
    (SwapDocument(3, 4, DOCUMENT),
     [*MADE, f"create {BEGUN}", "begin", "set /s/partitions/3 4", REVISION, f"check {BEGUN} 0", "commit"],
     DocumentSwapped(3, "w1", Outcome.WON, 5)),
    (SwapDocument(3, -1, attrs.evolve(DOCUMENT, put_back=1)),
     [*MADE, f"create {BEGUN}", *ANEW, "create /s/partitions/3", REVISION, f"set {BEGUN} 0", "commit"],
     DocumentSwapped(3, "w1", Outcome.WON, 0)),
    (SwapDocument(3, -1, attrs.evolve(DOCUMENT, put_back=2)),
     [*MADE, f"create {BEGUN}", f"set {BEGUN} 0", *ANEW, "create /s/partitions/3", REVISION, f"set {BEGUN} 1",
      "commit"], DocumentSwapped(3, "w1", Outcome.WON, 0)),
    (SwapDocument(3, 4, attrs.evolve(DOCUMENT, put_back=2)),
     [*MADE, f"create {BEGUN}", f"set {BEGUN} 0", f"set {BEGUN} 1", "begin", "set /s/partitions/3 4", REVISION,
      f"check {BEGUN} 2", "commit"], DocumentSwapped(3, "w1", Outcome.WON, 5))])
def test_a_read_syncs_first_and_a_swap_names_its_version(effect: ReadDocument | SwapDocument, asked: list[str],
                                                         event: Event) -> None:
    client, told = Client(), list[Event]()
    documents = Documents(cast(Connection, client), "/s", told.append)

    documents.carry_out([effect])

    assert client.asked == asked
    assert told == [event]


def test_a_document_too_large_is_not_written() -> None:
    client, told = Client(), list[Event]()
    large = attrs.evolve(DOCUMENT, cause="x" * (65 << 10))

    Documents(cast(Connection, client), "/s", told.append).carry_out([SwapDocument(3, 4, large)])

    assert client.asked == []
    assert told == [DocumentSwapped(3, "w1", Outcome.LOST, -1)]


def test_a_read_leaves_one_watch_behind_which_tells_of_a_change_and_not_of_the_connection() -> None:
    client, told = Client(), list[Event]()
    documents = Documents(cast(Connection, client), "/s", told.append)

    documents.carry_out([ReadDocument(3), ReadDocument(3), ReadDocument(4)])
    [watch] = client.watches["/s/partitions/3"]
    told.clear()
    watch(WatchedEvent(EventType.NONE, "CONNECTING", ""))
    watch(WatchedEvent(EventType.CHANGED, "CONNECTED", "/s/partitions/3"))

    assert told == [DocumentChanged(3)]
