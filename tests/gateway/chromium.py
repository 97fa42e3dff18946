"""Chromium without a window, driven over a pipe by its own protocol: no driver, no library, nothing that listens.

``--remote-debugging-pipe`` has the browser read commands from one file descriptor and write answers and events to
the next: JSON documents, each ended by a zero byte. Rejected: selenium, which brings nine packages and a second
program for the dozen commands that are needed here.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe")
"""Of which the first is what it is for; a sandbox needs rights that containers do not have; the others keep it
from asking anything of the network. ``--user-data-dir`` is a new directory each time."""
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT_S = 60.0


class Failed(Exception):
    """The browser did not do what it was told."""


def found() -> str | None:
    """The browser of this machine, if it has one."""
    return next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def browser(program: str) -> Iterator[Page]:
    """A browser with one empty page, until the block ends."""
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as directory:
        reads, tells = os.pipe()
        hears, says = os.pipe()
        # Bash, for the descriptors must be 3 and 4, and these have several digits.
        running = subprocess.Popen(
            ["bash", "-c", f'exec "$0" "$@" 3<&{reads} 4>&{says}', program, *FLAGS,
             f"--user-data-dir={directory}", "about:blank"],
            pass_fds=(reads, says), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(reads)
        os.close(says)
        pipe = _Pipe(tells, hears)
        try:
            yield Page(pipe)
            pipe.send("Browser.close")
            running.wait(WAIT_S)
        finally:
            if running.poll() is None:
                running.kill()
                running.wait()
            os.close(tells)
            os.close(hears)


class _Pipe:
    def __init__(self, tells: int, hears: int) -> None:
        self._tells = tells
        self._hears = hears
        self._number = 0
        self._left = b""
        self.events: list[dict[str, Any]] = []

    def send(self, method: str, session: str = "", **arguments: Any) -> int:
        self._number += 1
        document = {"id": self._number, "method": method, "params": arguments}
        text = json.dumps({**document, "sessionId": session} if session else document).encode() + b"\0"
        while text:
            text = text[os.write(self._tells, text):]
        return self._number

    def ask(self, method: str, session: str = "", **arguments: Any) -> dict[str, Any]:
        number, end = self.send(method, session, **arguments), time.monotonic() + WAIT_S
        while True:
            document = self.hear(end)
            if document.get("id") == number:
                if "error" in document:
                    raise Failed(f"{method}: {document['error']}")
                result: dict[str, Any] = document["result"]
                return result

    def hear(self, end: float) -> dict[str, Any]:
        """The next document; an event is noted besides."""
        while b"\0" not in self._left:
            if not select.select([self._hears], [], [], max(0.0, end - time.monotonic()))[0]:
                raise Failed("the browser said nothing in time")
            part = os.read(self._hears, 1 << 20)
            if not part:
                raise Failed("the browser has ended")
            self._left += part
        text, self._left = self._left.split(b"\0", 1)
        document: dict[str, Any] = json.loads(text)
        if "method" in document:
            self.events.append(document)
        return document


class Page:
    """A tab."""

    def __init__(self, pipe: _Pipe) -> None:
        self._pipe = pipe
        target = next(each for each in pipe.ask("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = pipe.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **arguments: Any) -> dict[str, Any]:
        return self._pipe.ask(method, self._session, **arguments)

    def size(self, width: int, height: int, scheme: str = "light") -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=width < 600)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def open(self, url: str) -> None:
        self._loading(lambda: self.ask("Page.navigate", url=url))

    def click(self, selector: str) -> None:
        """Click something that leads to another page."""
        self._loading(lambda: self.run(f"document.querySelector({json.dumps(selector)}).click()"))

    def _loading(self, act: Callable[[], object]) -> None:
        mark = len(self._pipe.events)
        act()
        end = time.monotonic() + WAIT_S
        while not any(each["method"] == "Page.loadEventFired" for each in self._pipe.events[mark:]):
            self._pipe.hear(end)

    def run(self, script: str) -> Any:
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise Failed(f"{script[:200]}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)

    def picture(self, path: Path) -> None:
        """The whole page, whatever its length, as PNG."""
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def complaints(self) -> list[str]:
        """What stands in the console as an error or a warning, so far; forgotten then."""
        self.run("0")
        found = []
        for event in self._pipe.events:
            said = event.get("params", {})
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(said["exceptionDetails"]))
            elif event["method"] == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
                found.append(f"{said['entry']['text']} ({said['entry'].get('url', '')})")
            elif event["method"] == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
                found.append(str(said["args"]))
        self._pipe.events.clear()
        return found
