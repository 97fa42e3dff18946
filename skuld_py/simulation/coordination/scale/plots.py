"""The results as pictures: one figure of times, one of what the start costs. Both axes are logarithmic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator

from skuld_py.simulation.coordination.scale.costs import SETTINGS
from skuld_py.simulation.coordination.scale.scenarios import Result

STYLES = {"plain": ("black", "o"), "direct": ("tab:blue", "s"), "direct+transfer": ("tab:cyan", "x"),
          "sharing": ("tab:orange", "^"), "deciding": ("tab:purple", "+"), "versions": ("tab:brown", "1"),
          "all": ("tab:green", "D")}
TITLES = {"start": "All start at an empty log", "failure": "A tenth dies at once",
          "restart": "All restart at once", "growth": "A tenth more join"}
Value = Callable[[Result], float]


def draw(results: Sequence[Result], directory: Path) -> list[Path]:
    """Write the figures; returns where they are."""
    scenarios = [name for name in TITLES if any(each.scenario == name for each in results)]
    times = _figure([(name, TITLES[name], "virtual time until all is well [s]", lambda each: each.time_ms / 1_000)
                     for name in scenarios], results, directory / "times.png",
                    "Time until all are members, the ring is closed, and everybody is watched")
    costs: list[tuple[str, str, str, Value]] = [
        ("start", "ZooKeeper writes", "writes per join", lambda each: each.per_change(each.counts.writes)),
        ("start", "ZooKeeper reads", "reads per member", lambda each: each.counts.reads / each.members),
        ("start", "From ZooKeeper", "kB per member",
         lambda each: each.counts.zookeeper_bytes / 1e3 / each.members),
        ("start", "Most notifications of one change", "notifications", lambda each: each.counts.fan_out),
    ]
    return [times, _figure(costs, results, directory / "start.png", "What the start of a cluster costs")]


def _figure(panels: Sequence[tuple[str, str, str, Value]], results: Sequence[Result], path: Path,
            title: str) -> Path:
    figure, grid = pyplot.subplots(2, 2, figsize=(11, 8.5), squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        _panel(axes, results, *panel)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    handles = {label: line for axes in grid.flat for line, label in zip(*axes.get_legend_handles_labels(),
                                                                        strict=True)}
    figure.suptitle(title)
    figure.legend(handles.values(), handles.keys(), loc="lower center", ncols=len(handles), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    return path


def _is_narrow(axes: Any) -> bool:
    low, high = axes.get_ylim()
    return bool(high < 500 * low)


def _panel(axes: Any, results: Sequence[Result], scenario: str, title: str, unit: str, value: Value) -> None:
    for options in SETTINGS:
        runs = [each for each in results if each.scenario == scenario and each.options == options]
        done = [each for each in runs if each.is_finished and value(each) > 0]
        color, marker = STYLES[options.label]
        axes.plot([each.members for each in done], [value(each) for each in done], color=color, marker=marker,
                  label=options.label, linewidth=1.3, markersize=6, alpha=0.85)
    sizes = sorted({each.members for each in results})
    axes.set(title=title, xlabel="members", ylabel=unit, xscale="log", yscale="log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if _is_narrow(axes) else (1,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda at, _: f"{at:,g}"))
    axes.minorticks_off()
    axes.grid(True, which="major", color="0.9")
    unfinished = sorted({(each.members, each.options.label) for each in results
                         if each.scenario == scenario and not each.is_finished})
    if unfinished:
        labels = ", ".join(dict.fromkeys(label for _, label in unfinished))
        axes.annotate(f"not finished at {unfinished[-1][0]:,}:\n{labels}", (0.02, 0.97), xycoords="axes fraction",
                      va="top", fontsize=7, color="0.35")
