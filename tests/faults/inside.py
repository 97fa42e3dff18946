"""One run, on the machine of its clients: ``python -m faults.inside SCENARIO DIRECTORY SITE SEED SECONDS``.

Progress goes to standard output, the verdict to ``DIRECTORY/verdict.json``, and when something is broken or
untested all that was recorded goes beside it, as text. It ends with its parent, and everything here with it.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import traceback
from pathlib import Path

import attrs

from faults.catalogue import BY_NAME
from faults.judgement import Judgement
from faults.world import World
from machines.machine import machines_of

HARNESS = "the run itself works"
INTERRUPTED = 130
_PARENT_DEATH = 1


def main(name: str, directory: Path, site: str, seed: int, seconds: float) -> int:
    """Play a scenario and write its verdict; 0 when that could be done, whatever it says."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGTERM, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)
    if os.getppid() == 1:
        return 1
    scenario = BY_NAME[name]
    world = World(scenario, directory, machines_of(site, scenario.shape.machines), seed, _say, seconds)
    try:
        judgement = world.play()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:
        judgement = failed(traceback.format_exc(), world)
    write_verdict(directory, judgement)
    if judgement.violated or judgement.vacuous:
        write_record(directory, world)
    return 0


def failed(words: str, world: World) -> Judgement:
    """The verdict on a run that did not get to its end."""
    ends = tuple(world.town.unasked_ends())
    return Judgement({HARNESS: (words, *ends)}, (), (), 0, 0, 0, 0, 0, -1, -1)


def write_verdict(directory: Path, judgement: Judgement) -> None:
    """As JSON, for whoever started this."""
    (directory / "verdict.json").write_text(json.dumps(attrs.asdict(judgement), indent=1))


def write_record(directory: Path, world: World) -> None:
    """What was asked, answered and done, one line each."""
    recorder = world.recorder
    with (directory / "record.txt").open("w") as record:
        for fault in recorder.faults:
            record.write(f"FAULT {fault}\n")
        for operation in recorder.history.operations:
            record.write(f"{operation}\n")
        for hold in recorder.history.holds:
            record.write(f"HOLD {hold}\n")


def _interrupt(*_: object) -> None:
    """Once: what takes things down must not be interrupted as well."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), float(sys.argv[5])))
