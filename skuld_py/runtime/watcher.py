"""The thread that watches the connections of all doors: it hears libzmq's news of them, and has them looked at.

One for all, for it wakes several times a second, also where nothing happens, and asks how large the process is.

libzmq stops, and the node with it, when nobody hears its news. So what fails here ends the node (``threads``), and
the rest of the news is heard until the sockets are closed.
"""

from __future__ import annotations

from collections.abc import Sequence

import zmq

from skuld_py.runtime import peeking
from skuld_py.runtime.connections import Connections
from skuld_py.runtime.threads import Helpers

_POLLIN = int(zmq.POLLIN)


class Watcher:
    """Watches these until it is closed; the first one's port names the thread."""

    def __init__(self, watched: Sequence[Connections], helpers: Helpers) -> None:
        self._all = tuple(watched)
        self._watched = [*watched]
        """Those of which there is still to be heard."""
        self._thread = helpers.start(f"skuld-connections-{watched[0].port}", self._watch, self._hear_out)

    def close(self) -> None:
        """End the thread; the sockets are the transport's."""
        for connections in self._all:
            connections.end_news()
        self._thread.join()

    def _watch(self) -> None:
        while self._watched:
            told = self._await(_least([connections.pause_ms() for connections in self._watched]))
            self._watched = [connections for connections in self._watched
                             if connections.heed(is_told=connections.news in told)]
            size = peeking.own_bytes()
            for connections in self._watched:
                connections.regard(size)

    def _hear_out(self) -> None:
        """Hear the news to their end, and heed none."""
        while self._watched:
            told = self._await(-1)
            self._watched = [connections for connections in self._watched
                             if connections.news not in told or connections.hear()]

    def _await(self, pause_ms: int) -> list[object]:
        """Where there are news, which are waited for."""
        sources = [(connections.news, _POLLIN) for connections in self._watched]
        return [source for source, _ in zmq.zmq_poll(sources, pause_ms)]


def _least(pauses_ms: Sequence[int]) -> int:
    """The shortest pause; -1 is without end."""
    return min((pause_ms for pause_ms in pauses_ms if pause_ms >= 0), default=-1)
