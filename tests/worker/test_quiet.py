"""What Spark's Python side keeps to itself: broken connections are raised, and not logged besides."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from skuld_py.worker.spark_session import keep_terminal_quiet


@pytest.fixture
def unset() -> Iterator[None]:
    logger = logging.getLogger("py4j")
    before = logger.level
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(before)


@pytest.mark.usefixtures("unset")
def test_a_jvm_that_is_gone_makes_an_error_and_no_line(caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        parameters = GatewayParameters(port=taken.getsockname()[1])
        keep_terminal_quiet()
        with pytest.raises(Py4JError):
            JavaGateway(gateway_parameters=parameters).jvm.System.currentTimeMillis()
    assert caplog.records == []
