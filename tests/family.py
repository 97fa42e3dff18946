"""Processes below another one, some of which may end while they are looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import psutil


def family(process_id: int, is_one: Callable[[psutil.Process], bool]) -> list[psutil.Process]:
    """Those below a process of which this holds."""
    found: list[psutil.Process] = []
    with contextlib.suppress(psutil.Error):
        for each in psutil.Process(process_id).children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if is_one(each):
                    found.append(each)
    return found


def is_java(process: psutil.Process) -> bool:
    """Whether it is a JVM."""
    return "java" in process.name()
