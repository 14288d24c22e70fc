"""A headless Chromium driven over its debugging pipe: nothing to install, and every message of the page is heard."""

import json
import os
import shutil
import subprocess
import tempfile
import time
from base64 import b64decode
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PATIENCE = 60  # seconds for a page to be drawn on a busy machine


def find_browser() -> str | None:
    """The browser that RANKWISE_BROWSER names, or one on the path; None where there is none."""
    named = os.environ.get("RANKWISE_BROWSER")
    return named or next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One page of a browser of its own.

    Attributes
    ----------
    errors : what went to the console as an error, exceptions that nobody caught, and refusals of the page's policy
    requests : every address that was asked for
    """

    def __init__(self, browser: str, width: int = 1280, height: int = 900) -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self._folder = tempfile.mkdtemp(prefix="browser")
        (to_child, self._to), (self._from, from_child) = os.pipe(), os.pipe()
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        flags += ["--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe"]
        command = f'exec "$0" "$@" 3<&{to_child} 4>&{from_child}'  # a browser reads from 3 and writes to 4
        self._process = subprocess.Popen(
            ["/bin/bash", "-c", command, browser, *flags, f"--user-data-dir={self._folder}", "about:blank"],
            pass_fds=(to_child, from_child),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child)
        os.close(from_child)
        self._buffer, self._number, self._session = b"", 0, None
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(one["targetId"] for one in targets if one["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", **self._size)

    def open(self, path: Path | str, scheme: str = "light") -> None:
        """Open a file, or an address, and wait until all of its figures are drawn."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url=path if isinstance(path, str) else path.resolve().as_uri())
        until = time.monotonic() + PATIENCE
        while not self.run("document.documentElement?.dataset.ready === 'yes'"):
            if time.monotonic() > until:
                raise AssertionError(f"the page was not ready after {PATIENCE} s; it said {self.errors}")
            time.sleep(0.05)

    def run(self, code: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"]["exception"].get("description", found))
        return found["result"].get("value")

    def picture(self, path: Path, whole: bool = False) -> None:
        """A PNG of what is seen, or of the whole page."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(b64decode(found["data"]))

    def print(self) -> bytes:
        """The page as PDF."""
        return b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def call(self, method: str, **parameters: Any) -> Any:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self._hear(answer)

    def _next(self) -> Any:
        while b"\0" not in self._buffer:
            read = os.read(self._from, 1 << 16)
            if not read:
                raise AssertionError("the browser has gone")
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def _hear(self, event: Any) -> None:
        method, told = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.errors.append(json.dumps(told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.errors.append(told["entry"]["text"])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        for end in (self._to, self._from):
            os.close(end)
        shutil.rmtree(self._folder, ignore_errors=True)
