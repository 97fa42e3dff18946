"""The runs as a picture: tasks a second against nodes, and what a task costs all nodes together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from skuld_py.simulation.capacity.runs import VERBS, Result

MARKERS = dict(zip(VERBS, "os^", strict=True))


def draw(results: Sequence[Result], path: Path) -> Path:
    """Write the picture; returns where it is."""
    figure, (rates, costs) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    sizes = [result.nodes for result in results]
    for at, verb in enumerate(VERBS):
        phases = [result.phases[at] for result in results]
        line = rates.plot(sizes, [phase.rate for phase in phases], marker=MARKERS[verb], label=verb)[0]
        rates.plot(sizes, [phases[0].rate * size / sizes[0] for size in sizes], color=line.get_color(),
                   linestyle=":", linewidth=1)
        costs.plot(sizes, [phase.messages for phase in phases], marker=MARKERS[verb], label=verb)
    rates.set(title="Tasks a second (dotted: as the smallest, times nodes)", xlabel="nodes", ylabel="tasks/s",
              xscale="log", yscale="log")
    costs.set(title="Messages taken and sent for a task, over all nodes", xlabel="nodes", ylabel="messages",
              xscale="log", ylim=(0, None))
    for axes in (rates, costs):
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.minorticks_off()
        axes.grid(True, color="0.9")
        axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
    return path
