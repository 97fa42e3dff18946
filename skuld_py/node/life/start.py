"""What happens to a node's store before its machine is made, and after a record in it could not be read.

One bad record must neither be served nor end the node. The shell catches ``Corrupt`` around a turn, drops the
staged batch, lets ``note_damage`` mark the partition, commits, and starts over with a new machine and a new boot
id: what the old one had in memory was half changed. ``prepare`` then settles who the node is and scrubs what is
marked, before anything else reads it. The real shell and the simulator share both.

Rejected: answering the request that met the record with an error and going on (the turn may have changed
memory already); ending the process (a supervisor that starts it again meets the same record).
"""

from __future__ import annotations

from collections.abc import Callable

from skuld_py.config import Parameters
from skuld_py.errors import Corrupt, Refused
from skuld_py.model.registration import Registration
from skuld_py.model.store import Store
from skuld_py.node.life.backup import load_copied
from skuld_py.node.life.identity import Start, Verdict, begin_start
from skuld_py.partition.copies.scrub import Scrub
from skuld_py.partition.data.needs import make_needs
from skuld_py.partition.data.tables import partition_of_meta
from skuld_py.partition.data.windows import make_windows
from skuld_py.partition.leadership.suspicion import damaged, mark_damaged

_ONLY_COPY = ("this node was forgotten: ZooKeeper has no entry of it any more, and as the cluster keeps one copy"
              " of each task, no other node can fill this one; move the data directory away and start again, or,"
              " if somebody has removed the entry by hand, put it back")
_BACKUP = ("this data directory is a backup, and as the cluster keeps one copy of each task, no other node can"
           " fill it with what came since. To go back to it, and lose that: 'skuld cluster destroy {0}', then"
           " 'skuld cluster restore {0} --accept-loss --from DATA' with the directories of all nodes")


def prepare(store: Store, registered: Registration | None, fresh: str, parameters: Parameters,
            copies: Callable[[], int] | None = None) -> tuple[Start, dict[int, dict[str, int]]]:
    """Settle the node's identity and scrub its damaged partitions, all committed at the return.

    ``registered`` is what the registry holds under the node's name now, ``fresh`` a new random incarnation.
    Also gives how many records each scrubbed partition lost, by table. ``Refused``, and nothing is changed, when
    the node was forgotten, or starts on a backup, and no other one can fill it. ``copies`` tells how many the
    cluster keeps now, if it may keep others than when it was created; only then is it asked.
    """
    is_copy = load_copied(store) is not None
    start = begin_start(store, registered, fresh, parameters.partitions)
    count = copies or (lambda: parameters.replicas)
    if start.verdict is Verdict.FORGOTTEN and count() == 1:
        raise Refused("forgotten", _ONLY_COPY)
    if is_copy and start.verdict is not Verdict.SAME and count() == 1:
        raise Refused("only_copy", _BACKUP.format(parameters.cluster))
    store.commit()
    scrubbed = {partition: _scrub(store, partition, parameters)
                for partition in damaged(store, parameters.partitions)}
    make_needs(store, parameters.partitions)
    make_windows(store, parameters.partitions)
    return start, scrubbed


def _scrub(store: Store, partition: int, parameters: Parameters) -> dict[str, int]:
    scrub = Scrub(store, partition, parameters.skew_ms)
    while scrub.step():
        store.commit()
    store.commit()
    return scrub.dropped


def note_damage(store: Store, problem: Corrupt, partitions: int) -> list[int]:
    """Stage the marks that a bad record calls for, in a store without staged changes; gives the partitions.

    None for a record of the node itself, which ``prepare`` finds; all when the partition cannot be told.
    """
    if problem.table == "meta":
        return _note_damaged_meta(store, problem)
    partition = int.from_bytes(problem.key[:2], "big") if len(problem.key) >= 2 else partitions
    hurt = [partition] if partition < partitions else list(range(partitions))
    mark_damaged(store, hurt, problem.message)
    return hurt


def _note_damaged_meta(store: Store, problem: Corrupt) -> list[int]:
    """Drop what a partition remembers here and now: a record may have a right checksum and still make no sense."""
    partition = partition_of_meta(problem.key)
    if partition is None:
        return []
    if not store.purge("meta", problem.key, problem.key + b"\0", 1)[0]:
        store.pop_many("meta", [problem.key])
    mark_damaged(store, [partition], problem.message)
    return [partition]
