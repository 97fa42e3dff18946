"""Where a worker's programs run, and with which environment: not where and with what a task has left it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from family import family, is_java
from skuld_py.client.client import Client
from skuld_py.embedded import python
from skuld_py.embedded.local import LocalCluster
from skuld_py.worker.registry import encode_call

Eventually = Callable[[Callable[[], bool]], None]

APP = '''
import os
import tempfile
import skuld_py


def connect(_):
    skuld_py.Client("127.0.0.1:1").close()
    return "made"


@skuld_py.task
def lose_place():
    os.environ["SKULD_XYZZY"] = "a setting of a library"
    os.chdir(tempfile.mkdtemp())
    os.rmdir(os.getcwd())


@skuld_py.task
def place_of_spark(spark):
    clients = spark.sparkContext.parallelize([0], 1).map(connect).collect()
    return [spark._jvm.java.lang.System.getProperty("user.dir"), *clients]
'''


@pytest.mark.cluster
@pytest.mark.spark
@pytest.mark.slow
def test_spark_starts_where_the_worker_was_started_or_it_is_said_that_this_is_gone(
        cluster: LocalCluster, client: Client, tmp_path: Path, queue: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    (place / "place_app.py").write_text(APP)
    worker = cluster.start_worker(queue, "place_app", working_directory=place)
    try:
        client.result(client.enqueue(queue, encode_call("place_app:lose_place")), wait_s=120)
        spark = encode_call("place_app:place_of_spark")
        assert client.result(client.enqueue(queue, spark), wait_s=300) == [str(place), "made"]

        shutil.rmtree(place)
        jvm, = family(worker.pid, is_java)
        os.kill(jvm.pid, signal.SIGKILL)
        assert worker.wait(120) == 1
    finally:
        worker.kill()
        worker.wait()
    said = cluster.worker_log(worker).read_text()
    assert f"the directory in which this program was started, {place}, was deleted" in said
    assert "no Java" not in said


def test_a_worker_that_is_started_in_a_directory_that_was_deleted_says_so(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); os.execv(sys.executable, [sys.executable, *sys.argv[1:]])"
    worker = ("-m", "skuld_py", "worker", "--nodes", "127.0.0.1:1", "--queue", "q", "--app", "x")

    done = subprocess.run([sys.executable, "-c", code, *worker], cwd=place, env=python.environment(),
                          capture_output=True, text=True, check=False)

    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert "the directory in which this program was started was deleted, so a worker cannot start" in done.stderr
