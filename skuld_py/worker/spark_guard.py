"""What a task's code finds when it asks PySpark for a session or stops one: its own, and nobody else's.

Scripts for Spark begin with ``SparkSession.builder.getOrCreate()`` and end with ``spark.stop()``. In a worker many
tasks share one SparkContext, and PySpark keeps one session for the whole process: the first would give every task
the same temporary views, the second would end the tasks of all. So while a worker's Spark runs:

* ``getOrCreate``, ``getActiveSession`` and ``active`` give the session of the task whose thread asks. A thread
  that no task is known to own gets a session of its own, not that of the process.
* ``stop`` of a session ends its streaming queries, and the thread's next ``getOrCreate`` makes a new session. The
  JVM, the SparkContext and the sessions of others go on; ``stop`` of the SparkContext does nothing.
* A SparkContext that is not the worker's is left as it is.

Rejected: a subclass of SparkSession with another ``stop``. ``getActiveSession`` reads what the process has, and
``SparkContext.getOrCreate().stop()`` would go past it.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

from py4j.protocol import Py4JError
from pyspark import SparkContext, inheritable_thread_target
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

_log = logging.getLogger(__name__)


class Home:
    """The sessions of one task: one at a time, and another one after each stop. Any thread of the task may ask."""

    def __init__(self, root: SparkSession) -> None:
        self._root = root
        self._every: list[SparkSession] = []
        self._current: SparkSession | None = None
        self._lock = threading.Lock()

    def is_of(self, root: SparkSession) -> bool:
        """Whether its sessions are of the same JVM as this one."""
        return self._root is root

    def session(self) -> SparkSession:
        """The task's session, made at need, and active in this thread."""
        with self._lock:
            if self._current is None:
                self._current = self._root.newSession()
                self._every.append(self._current)
        _class_of(self._current).setActiveSession(self._current._jsparkSession)
        return self._current

    def active(self) -> SparkSession | None:
        """The task's session, None after it was stopped."""
        return self._current

    def stop(self, session: SparkSession) -> None:
        """The session is done with."""
        end_queries(session)
        if session is self._current:
            self._current = None

    def end_queries(self) -> None:
        """End the streaming queries of all its sessions."""
        for session in list(self._every):
            end_queries(session)

    def queries(self) -> list[str]:
        """The job groups of its streaming queries that run."""
        return [str(query.runId) for session in list(self._every) for query in session.streams.active]


def end_queries(session: SparkSession) -> None:
    """End the streaming queries of a session; a JVM that is gone has none."""
    with contextlib.suppress(Py4JError, OSError, AttributeError):
        for query in session.streams.active:
            query.stop()


@contextlib.contextmanager
def at_home(home: Home) -> Iterator[None]:
    """Within the block this thread is the task's."""
    before = getattr(_here, "home", None)
    _here.home = home
    try:
        yield
    finally:
        _here.home = before


def inherited(home: Home, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, to be called in another thread as this thread's task: in its job group and pool."""
    session = home.session()
    within = inheritable_thread_target(session)(function)

    def call(*args: Any, **kwargs: Any) -> Any:
        with at_home(home):
            home.session()
            return within(*args, **kwargs)

    return call


def guard(context: SparkContext) -> None:
    """Let this SparkContext be the worker's from now on."""
    _guarded[:] = [context]
    vars_of: Any = SparkSession
    vars_of.Builder.getOrCreate = _get_or_create
    vars_of.getActiveSession = classmethod(_get_active_session)
    vars_of.stop = _stop_session
    context_class: Any = SparkContext
    context_class.stop = _stop_context


_here = threading.local()
_guarded: list[SparkContext] = []
_their_get_or_create: Any = SparkSession.Builder.getOrCreate
_their_get_active_session: Any = SparkSession.getActiveSession
_their_stop_session: Any = SparkSession.stop
_their_stop_context: Any = SparkContext.stop


def _is_ours(context: SparkContext | None) -> bool:
    return context is not None and context in _guarded


def _home() -> Home:
    """The home of this thread: its task's, or where no task is known one of the thread's own. A task that outlived
    its JVM keeps the home that ended with it, and gets no job into the next one."""
    home: Home | None = getattr(_here, "home", None)
    if home is not None:
        return home
    root, stray = SparkSession._instantiatedSession, getattr(_here, "stray", None)
    assert root is not None
    if stray is None or not stray.is_of(root):
        stray = _here.stray = Home(root)
    return cast(Home, stray)


def _get_or_create(builder: Any) -> Any:
    if not _is_ours(SparkContext._active_spark_context) or "spark.remote" in builder._options:
        return _their_get_or_create(builder)
    session = _home().session()
    for name, value in builder._options.items():
        with contextlib.suppress(PySparkException):  # what is fixed when Spark starts stays, as in any getOrCreate
            session.conf.set(name, value)
    return session


def _get_active_session(_class: Any) -> Any:
    if not _is_ours(SparkContext._active_spark_context):
        return _their_get_active_session()
    home: Home | None = getattr(_here, "home", None)
    return None if home is None else home.active()


def _stop_session(session: Any) -> None:
    if not _is_ours(session._sc):
        _their_stop_session(session)
        return
    _home().stop(session)


def _stop_context(context: Any) -> None:
    if not _is_ours(context):
        _their_stop_context(context)
        return
    _log.info("a task stopped the SparkContext; it goes on, for it is the worker's")


def _class_of(session: SparkSession) -> Any:
    return SparkSession._get_j_spark_session_class(session._jvm)
