"""A browser for tests of pages."""

import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


class Browser:
    """A browser without a window, over the pipe of the Chrome DevTools protocol."""

    def __init__(self, command: str, profile: Path) -> None:
        import fcntl  # not on every system, and nothing else here needs it

        (child_in, self.to), (self.back, child_out) = os.pipe(), os.pipe()
        # The browser listens on 3 and answers on 4: move ours out of the way.
        moved = [fcntl.fcntl(file, fcntl.F_DUPFD, 10) for file in (child_in, child_out)]
        start = (
            "import os, sys; os.dup2({}, 3); os.dup2({}, 4); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-c", start.format(*moved), command, "--headless"),
                *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
                *("--remote-debugging-pipe", f"--user-data-dir={profile}"),
            ],
            pass_fds=moved,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for file in (child_in, child_out, *moved):
            os.close(file)
        self.left = b""
        self.count = 0
        self.events: list[dict[str, Any]] = []
        self.session: dict[str, str] = {}
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        nothing = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.call("Network.emulateNetworkConditions", offline=True, **nothing)

    def hear(self) -> dict[str, Any]:
        while b"\0" not in self.left:
            assert select.select([self.back], [], [], 60)[0], "the browser does not answer"
            got = os.read(self.back, 1 << 20)
            assert got, "the browser is gone"
            self.left += got
        message, _, self.left = self.left.partition(b"\0")
        return json.loads(message)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self.count += 1
        asked = {"id": self.count, "method": method, "params": parameters, **self.session}
        os.write(self.to, json.dumps(asked).encode() + b"\0")
        while (message := self.hear()).get("id") != self.count:
            self.events.append(message)
        assert "error" not in message, message
        return message["result"]

    def show(self, path: Path, width: int, height: int = 800) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1}
        self.call("Emulation.setDeviceMetricsOverride", mobile=width < 500, **size)
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.events.append(self.hear())

    def ask(self, expression: str) -> Any:
        told = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return told["result"]["value"]

    def heard(self, *methods: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["method"] in methods]

    def opens_cleanly(self, path: Path, width: int, pictures: int) -> None:
        """Check that a page opens offline without complaints, shows its pictures, and fits."""
        self.show(path, width)
        complaints = ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown")
        assert self.heard(*complaints) == []
        asked = self.heard("Network.requestWillBeSent")
        addresses = {event["params"]["request"]["url"].partition(":")[0] for event in asked}
        assert addresses <= {"file", "data"}
        sizes = self.ask("[...document.images].map(i => [i.complete, i.naturalWidth])")
        assert len(sizes) == pictures
        assert all(complete and wide > 0 for complete, wide in sizes)
        assert self.ask("document.documentElement.scrollWidth") <= width
        wide = "[...document.querySelectorAll('body *')].filter(e => e.scrollWidth > innerWidth)"
        assert self.ask(f"{wide}.map(e => e.tagName)") == []
        cells = "[...document.querySelectorAll('td')].map(c => c.getBoundingClientRect().width)"
        assert min(self.ask(cells)) > 0

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        os.close(self.to)
        os.close(self.back)
