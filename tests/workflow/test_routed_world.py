"""Whatever dies or is lost: values are fed once, segments go where conditions say, each end is said once."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from workflow.acking_queue import Violation
from workflow.routed_world import Workflows
from workflow.test_acking_world import check

SEEDS = 20
BULK = 2_000
OFTEN = (
    "conditions say emit", "conditions say retry", "conditions say failed", "conditions send some to nobody",
    "an exception goes on as data", "values are drawn again", "a source does not answer",
    "a next life draws on from where the last one was", "what is processed is committed, and gone",
    "a feeder dies", "a feeder dies between two effects", "a feeder goes on behind another's back",
    "a former feeder's checkpoint is fenced", "a feeder dies before its outputs are to be sealed",
    "an input is exhausted while another one is open", "a strand is exhausted while another one is open",
    "a part comes while others are drawn",
    "a feeder waits for a slot", "a feeder gives way to another one", "the log is told of an earlier life",
    "the log is told of an end again",
    "a seal is claimed again", "a worker dies while it seals", "a worker dies while it runs",
    "acks are lost", "acks are repeated", "children are emitted by the feeder", "a workflow is completed",
)
RARE = (
    "a former life asks for what its successor has done with, and finds its claim lost",
    "a worker kills the workflow", "a workflow is killed", "a seal is enqueued again",
    "the log is told of a seal again", "a root fails: kill",
)


def play(seed: int) -> tuple[str, Counter[str]]:
    """What was broken, and what was met."""
    whole = Workflows(seed)
    try:
        whole.run()
    except Violation as violation:
        return f"seed {seed}: {violation}", whole.met
    return "", whole.met


def test_values_are_fed_once_and_go_where_conditions_say_whatever_dies_or_is_lost() -> None:
    check(map(play, range(SEEDS)), OFTEN)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_workflows_keep_every_promise(share: range) -> None:
    seeds = range(SEEDS, SEEDS + BULK)[share.start::share.step]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        check(pool.map(play, seeds, chunksize=20), OFTEN + RARE if share.step == 1 else OFTEN)
