"""The file systems that Hadoop reaches, through the JVM of a Spark session.

``FileContext`` renames without overwriting as one step where the file system can: in HDFS. (``FileSystem.rename``
would move a directory into one that is there.) Object stores copy file by file, so nothing is renamed there.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, BinaryIO, cast

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext

from skuld_py.calls.outputs import OutputFile
from skuld_py.client.steady import wall_s
from skuld_py.errors import Refused
from skuld_py.output.places import is_hidden, scheme_of, uri_of
from skuld_py.output.store import check_number, check_size

RENAMING = ("hdfs", "viewfs", "file")
CHUNK_BYTES = 1 << 20
_MISSING = "java.io.FileNotFoundException"
_REFUSALS = (_MISSING, "org.apache.hadoop.fs.FileAlreadyExistsException",
             "org.apache.hadoop.security.AccessControlException")


def hadoop_store(path: str) -> HadoopStore:
    """The store of a path, by the Spark that runs in this process; ``Refused`` when none does."""
    context = SparkContext._active_spark_context
    if context is None or context._jsc is None:
        raise Refused("bad_output", f"path: {path} is reached through Spark, and none runs here: name 'spark'"
                      " among the function's parameters, or make a session")
    return HadoopStore(path, context)


class HadoopStore:
    """The file system of a URI."""

    def __init__(self, path: str, context: SparkContext) -> None:
        jvm: Any = context._jvm
        self._fs_package = jvm.org.apache.hadoop.fs
        self._gateway: Any = context._gateway
        configuration = cast(Any, context._jsc).hadoopConfiguration()
        self._fs = self._path(path).getFileSystem(configuration)
        self._names = self._fs_package.FileContext.getFileContext(self._path(path).toUri(), configuration)
        self.can_rename = scheme_of(uri_of(path)) in RENAMING

    def files(self, place: str) -> list[OutputFile]:
        """All files below."""
        top = self._path(place)
        if not self._fs.exists(top):
            return []
        found: list[OutputFile] = []
        root = str(self._fs.makeQualified(top).toUri().getPath()).rstrip("/")
        for status in self._below(top):
            inner = str(status.getPath().toUri().getPath())[len(root) + 1 :]
            if not any(map(is_hidden, inner.split("/"))):
                found.append(OutputFile(inner, int(status.getLen())))
                check_number(len(found))
        return sorted(found, key=lambda file: file.path)

    def children(self, place: str) -> list[str]:
        """Names of the directories in a place."""
        top = self._path(place)
        if not self._fs.exists(top):
            return []
        return sorted(str(status.getPath().getName()) for status in self._fs.listStatus(top)
                      if status.isDirectory())

    def exists(self, path: str) -> bool:
        """Whether it is there."""
        return bool(self._fs.exists(self._path(path)))

    def create(self, path: str) -> BinaryIO:
        """Open a new file."""
        return cast(BinaryIO, io.BufferedWriter(_Sink(self._fs.create(self._path(path), False)), CHUNK_BYTES))

    def read(self, path: str, most: int) -> bytes | None:
        """What a file holds."""
        try:
            stream = self._fs.open(self._path(path))
        except Py4JJavaError as error:
            if _class_of(error) == _MISSING:
                return None
            raise OSError(f"{path} cannot be read: {_class_of(error)}") from None
        try:
            return check_size(path, bytes(stream.readNBytes(most + 1)), most)
        finally:
            stream.close()

    def seal(self, place: str, name: str, content: bytes) -> None:
        """Write a file under another name, then rename it; the file system sees to it that it lasts."""
        written, final = f"{place}/.{name}", f"{place}/{name}"
        stream = self._fs.create(self._path(written), True)
        stream.write(bytearray(content))
        stream.hsync()
        stream.close()
        if not self._fs.rename(self._path(written), self._path(final)):
            raise OSError(f"{written} could not be renamed")

    def move(self, source: str, target: str) -> bool:
        """Rename, where that is one step."""
        if not self.can_rename:
            return False
        rename = getattr(self._fs_package, "Options$Rename")
        options = self._gateway.new_array(rename, 1)
        options[0] = rename.NONE
        try:
            self._names.rename(self._path(source), self._path(target), options)
        except Py4JJavaError as error:
            if _class_of(error) in _REFUSALS:
                return False
            raise OSError(f"{source} could not be renamed: {_class_of(error)}") from None
        self._remove_if_empty(source.rpartition("/")[0])
        return True

    def remove(self, place: str) -> bool:
        """Delete a directory."""
        was_there = bool(self._fs.delete(self._path(place), True))
        self._remove_if_empty(place.rpartition("/")[0])
        return was_there

    def idle_s(self, place: str) -> float:
        """By the times of the files."""
        top = self._path(place)
        times = [int(self._fs.getFileStatus(top).getModificationTime())]
        times += [int(status.getModificationTime()) for status in self._below(top)]
        return wall_s() - max(times) / 1000

    def _remove_if_empty(self, place: str) -> None:
        with suppress(Py4JJavaError):  # it is not empty, or gone
            self._fs.delete(self._path(place), False)

    def _below(self, top: Any) -> Iterator[Any]:
        every = self._fs.listFiles(top, True)
        while every.hasNext():
            yield every.next()

    def _path(self, path: str) -> Any:
        return self._fs_package.Path(uri_of(path))


class _Sink(io.RawIOBase):
    """A stream of Java's that is written."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, data: Any) -> int:
        """Send it over."""
        content = bytearray(data)
        self._stream.write(content)
        return len(content)

    def close(self) -> None:
        """The file is whole."""
        if not self.closed:
            super().close()
            self._stream.close()


def _class_of(error: Py4JJavaError) -> str:
    return str(error.java_exception.getClass().getName())
