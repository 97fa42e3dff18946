"""Spark's settings: options and names mean the same, and what a master elsewhere changes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from skuld_py.errors import Refused
from skuld_py.worker.spark_conf import folded, has_varying_executors, py_files_here, python_of, whole
from skuld_py.worker.spark_jvm import Files

SOCKETS = "spark.python.unix.domain.socket.enabled"
HOST, BIND = "spark.driver.host", "spark.driver.bindAddress"
OF_THE_CLUSTER = ("spark.sql.shuffle.partitions", "spark.sql.warehouse.dir", "spark.python.unix.domain.socket.dir")
STANDALONE = {"spark.master": "spark://127.0.0.1:7077"}


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_with_a_local_master_all_is_on_loopback_and_fit_for_its_threads(files: Files) -> None:
    conf = whole(files, 3, {})

    assert (conf["spark.master"], conf[HOST], conf[BIND]) == ("local[3]", "127.0.0.1", "127.0.0.1")
    assert (conf[SOCKETS], conf["spark.sql.shuffle.partitions"]) == ("true", "3")
    assert whole(files, 3, {"spark.master": "local[7]"})["spark.sql.shuffle.partitions"] == "7"


def test_with_a_master_elsewhere_nothing_is_taken_for_this_machine_s(files: Files) -> None:
    conf = whole(files, 3, STANDALONE)

    assert conf[SOCKETS] == "false" and not set(OF_THE_CLUSTER) & conf.keys()
    assert (conf[HOST], conf[BIND]) == ("127.0.0.1", "127.0.0.1")
    assert not {HOST, BIND} & whole(files, 3, {"spark.master": "yarn"}).keys()


def test_what_the_user_says_goes_on_top(files: Files) -> None:
    conf = whole(files, 3, {**STANDALONE, HOST: "10.0.0.7", SOCKETS: "true", OF_THE_CLUSTER[0]: "9"})

    assert (conf[HOST], conf[SOCKETS], conf[OF_THE_CLUSTER[0]]) == ("10.0.0.7", "true", "9")
    assert BIND not in conf  # Spark binds to the host that it is told
    unreachable = {"spark.master": "spark://no.such.host.invalid:1", HOST: "10.0.0.7"}
    assert whole(files, 3, unreachable)[HOST] == "10.0.0.7"
    assert whole(files, 3, {**STANDALONE, BIND: "0.0.0.0"})[BIND] == "0.0.0.0"


def test_executors_elsewhere_are_given_no_python_of_this_machine(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    assert python_of(whole(files, 2, {})) == sys.executable
    assert python_of(whole(files, 2, STANDALONE)) == "python3"

    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/python")
    assert python_of(whole(files, 2, STANDALONE)) == "/opt/python"
    named = whole(files, 2, {**STANDALONE, "spark.pyspark.python": "./env/bin/python"})
    assert python_of(named) == "./env/bin/python"


def test_only_a_cluster_without_dynamic_allocation_owes_executors(files: Files) -> None:
    dynamic = {"spark.dynamicAllocation.enabled": "True"}

    assert not has_varying_executors(whole(files, 2, STANDALONE))
    assert has_varying_executors(whole(files, 2, {}))
    assert has_varying_executors(whole(files, 2, {**STANDALONE, **dynamic}))


def test_an_option_is_another_word_for_a_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.py", "env.tar.gz"):
        (tmp_path / name).touch()

    made = folded([("spark.x", "1"), ("spark.x", "2")], {
        "master": "yarn", "driver-memory": "2g", "packages": "g:a:1,g:b:2", "py-files": "a.py, hdfs://h/b.zip",
        "archives": "env.tar.gz#env"})

    assert made == {
        "spark.x": "2", "spark.master": "yarn", "spark.driver.memory": "2g", "spark.jars.packages": "g:a:1,g:b:2",
        "spark.submit.pyFiles": f"{tmp_path}/a.py,hdfs://h/b.zip", "spark.archives": f"{tmp_path}/env.tar.gz#env"}
    assert py_files_here(made) == [tmp_path / "a.py"]
    assert folded([], {"master": None, "archives": None}) == {}


@pytest.mark.parametrize(("conf", "options", "words"), [
    ({"spark.master": "yarn"}, {"master": "local[2]"}, "master: is given as spark.master=yarn, too; keep one"),
    ({"spark.driver.memory": "1g"}, {"driver-memory": "2g"}, "driver-memory: is given as spark.driver.memory=1g"),
    ({"spark.master": "mesos://h:1"}, {}, "master: Spark has no master 'mesos://h:1'"),
    ({"spark.remote": "sc://h:1"}, {}, "master: sc://h:1 is a server of Spark Connect"),
    ({}, {"py-files": "no.py"}, "py-files: there is no file no.py here"),
    ({"spark.archives": "no.zip#x"}, {}, "archives: there is no file no.zip here"),
])
def test_what_cannot_be_meant_is_refused_by_name(
    conf: dict[str, str], options: dict[str, str | None], words: str
) -> None:
    with pytest.raises(Refused) as refusal:
        folded(conf.items(), options)

    assert words in refusal.value.message


def test_the_same_by_option_and_by_name_is_no_contradiction() -> None:
    assert folded([("spark.master", "yarn")], {"master": "yarn"}) == {"spark.master": "yarn"}


def test_a_path_is_whole_wherever_the_worker_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.py").touch()
    monkeypatch.chdir(tmp_path)
    made = folded([], {"py-files": os.path.relpath(tmp_path / "a.py", tmp_path)})

    assert made["spark.submit.pyFiles"] == str(tmp_path / "a.py")
