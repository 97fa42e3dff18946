"""Which masters a worker takes, and the address it gives executors to call back."""

from __future__ import annotations

import os

import pytest

from skuld_py.errors import Refused
from skuld_py.worker.masters import check_master, driver_address, is_local, places_of, threads_of

LOCAL = {"local": 1, "local[3]": 3, "local[*]": os.cpu_count(), "local[4,2]": 4, "local[ 2 , 3 ]": 2}
ELSEWHERE = {
    "spark://h:7077": [("h", 7077)],
    "spark://h1:7077,h-2.example:7078": [("h1", 7077), ("h-2.example", 7078)],
    "k8s://https://10.0.0.1:6443": [("10.0.0.1", 6443)],
    "k8s://kubernetes.default.svc": [("kubernetes.default.svc", 443)],
    "k8s://http://h:80/": [("h", 80)],
    "yarn": [],
}


@pytest.mark.parametrize("master", LOCAL)
def test_a_local_master_has_its_threads_and_no_place(master: str) -> None:
    assert check_master(master) == master and is_local(master)
    assert threads_of(master) == LOCAL[master] and places_of(master) == []


@pytest.mark.parametrize("master", ELSEWHERE)
def test_a_master_elsewhere_has_the_places_that_it_names(master: str) -> None:
    assert check_master(master) == master and not is_local(master)
    assert places_of(master) == ELSEWHERE[master]


@pytest.mark.parametrize("master", [
    "", "mesos://h:5050", "spark://h", "spark://", "spark://h:7077,", "spark://[::1]:7077", "YARN", "yarn-client",
    "local-cluster[2,1,512]", "local[]", "local[a]", "local[2]x", "k8s://", "h:7077", "http://h:7077"])
def test_any_other_one_is_refused_by_name_with_those_there_are(master: str) -> None:
    with pytest.raises(Refused) as refusal:
        check_master(master)

    assert refusal.value.code == "bad_master"
    for words in (repr(master), "local[*]", "spark://HOST:PORT", "yarn", "k8s://https://HOST:PORT"):
        assert words in refusal.value.message


def test_spark_connect_is_refused_with_the_reason_and_the_remedy() -> None:
    with pytest.raises(Refused, match=r"sc://h:15002 is a server of Spark Connect.*spark://HOST:7077") as refusal:
        check_master("sc://h:15002")

    assert refusal.value.code == "bad_master"


def test_the_driver_s_address_is_where_the_way_to_the_master_begins() -> None:
    assert driver_address("spark://127.0.0.1:7077") == "127.0.0.1"
    assert driver_address("spark://127.9.9.9:7077") == "127.0.0.1"
    assert driver_address("spark://no.such.host.invalid:7077,127.0.0.1:7077") == "127.0.0.1"
    assert driver_address("yarn") is None


def test_a_master_to_which_there_is_no_way_fails_the_start_that_may_be_tried_again() -> None:
    with pytest.raises(Refused) as refusal:
        driver_address("spark://no.such.host.invalid:7077")

    assert refusal.value.code == "spark_failed"
    assert "no.such.host.invalid" in refusal.value.message and "spark.driver.host=" in refusal.value.message
