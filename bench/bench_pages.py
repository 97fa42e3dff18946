"""How long the dashboard's pages take in a real browser, on a live cluster that holds 100,000 tasks.

As ``bench dashboard``, and besides the browser: a Chromium without a window opens each page a few times, and says
itself when the answer began, when it was there, and when the page was loaded and drawn, with its style and its
live part. Searched is for a function and a key that tasks have, and for those that none has. No page may take
longer than a second, in the middle of its times; the exit code says so.

    scripts/bench pages [--tasks N] [--times N] [--pictures DIRECTORY]
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench_dashboard import PAGE_S_MAX, PAGES, fill
from bench_throughput import wait_until_led
from rich.console import Console
from rich.table import Table

from skuld_py import Client
from skuld_py.embedded.local import LocalCluster

KEY = "customer-7"
SEARCHES = ("/tasks?function=shop:add", f"/tasks?key={KEY}", f"/tasks?queue=queue-3&key={KEY}",
            "/tasks?queue=queue-3&function=shop:never", "/tasks?queue=queue-1&state=dead&function=shop:add")
FIGURES = """(() => { const [it] = performance.getEntriesByType('navigation');
    return [it.responseStart, it.responseEnd, it.loadEventEnd]; })()"""
BROWSER = Path(__file__).resolve().parents[1] / "tests" / "gateway" / "chromium.py"
console = Console(width=None if sys.stdout.isatty() else 120)


def chromium() -> Any:
    """What drives the browser in tests."""
    spec = importlib.util.spec_from_file_location("chromium", BROWSER)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def paths_of(client: Client, tasks: int) -> list[str]:
    """Fill the cluster; all pages there are."""
    ids = fill(client, tasks)
    client.enqueue_many("queue-3", [b"keyed"] * 500, key=KEY)
    return [*PAGES, *SEARCHES, *(f"/tasks/{each}{more}" for each in ids for more in ("", "/log"))]


def measured(page: Any, url: str, times: int) -> list[list[float]]:
    """Milliseconds until the answer began, was there, and was drawn; once for each time."""
    found = []
    for _ in range(times):
        page.open(url)
        found.append([float(each) for each in page.run(FIGURES)])
        if complaints := page.complaints():
            raise SystemExit(f"{url}: {complaints}")
    return found


def main() -> int:
    """Fill a cluster, and open every page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--pictures", type=Path, default=None, help="where to put a picture of each page")
    asked = parser.parse_args()
    driver = chromium()
    program = driver.found()
    if program is None:
        raise SystemExit("no browser: apt-get install chromium")
    table, slow = Table("page", "answer ms", "there ms", "drawn ms", "slowest", title=f"{asked.tasks:,} tasks"), []
    with (tempfile.TemporaryDirectory(prefix="skuld-bench-") as place,
          LocalCluster(Path(place), nodes=3, replicas=3) as cluster, driver.browser(program) as page):
        wait_until_led(cluster.addresses)
        with Client(cluster.addresses, timeout_s=30) as client:
            paths = paths_of(client, asked.tasks)
        url = f"{cluster.start_gateway()[0]}/dashboard"
        page.size(1280, 800)
        page.open(url)
        for path in paths:
            found = measured(page, url + path, asked.times)
            slowest = max(times[-1] for times in found)
            middle = [statistics.median(times) for times in zip(*found, strict=True)]
            table.add_row(path or "/", *(f"{each:.0f}" for each in middle), f"{slowest:.0f}")
            if middle[-1] > 1_000 * PAGE_S_MAX:
                slow.append(f"{path}: {middle[-1]:.0f} ms")
            if asked.pictures is not None:
                asked.pictures.mkdir(parents=True, exist_ok=True)
                name = re.sub("[^a-z0-9]+", "-", path[:80].lower()).strip("-") or "top"
                page.picture(asked.pictures / f"{name}.png")
    console.print(table)
    console.print(f"slower than {PAGE_S_MAX:g} s: {', '.join(slow) or 'no page'}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
