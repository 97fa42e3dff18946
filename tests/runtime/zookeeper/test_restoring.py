"""What is written into ZooKeeper of a cluster that is made anew."""

from __future__ import annotations

from typing import Any

from node.test_rebuilding import KEY, of_all
from skuld_py.model.document import Document
from skuld_py.model.revision import Revision
from skuld_py.node.life.rebuilding import rebuilt
from skuld_py.runtime.zookeeper import restoring
from skuld_py.runtime.zookeeper.histories import _NAME, superfluous


class Tree:
    """Takes what is created, and answers at once."""

    def __init__(self) -> None:
        self.nodes: dict[str, bytes] = {}

    def create_async(self, path: str, raw: bytes = b"") -> Tree:
        assert path not in self.nodes
        self.nodes[path] = raw
        return self

    def set_async(self, path: str, raw: bytes) -> Tree:
        return self

    def get(self, timeout: float) -> Any:
        return None


def test_a_document_that_is_restored_has_a_revision_that_says_so() -> None:
    """Else its history begins with who led next, and nobody learns from it that the one before was lost."""
    tree, made = Tree(), rebuilt("c", of_all(), KEY)
    restoring._fill(tree, "/skuld/c", made, 1.0)

    document = Document.decode(tree.nodes["/skuld/c/partitions/0"])
    (name,) = [path.rpartition("/")[2] for path in tree.nodes if path.startswith("/skuld/c/history/0/r-")]
    revision = Revision.decode(tree.nodes[f"/skuld/c/history/0/{name}"], 7)
    assert _NAME.fullmatch(name) and not superfluous([name])
    assert (revision.version, revision.epoch, revision.voters) == (0, document.epoch, document.cohort)
    assert (revision.cause, revision.writer) == ("restored from data directories", "skuld cluster restore")
