"""The page of a report in a browser."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

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

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        os.close(self.to)
        os.close(self.back)


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    if BROWSER is None:
        pytest.skip("no browser: install chromium to see the page in one")
    browser = Browser(BROWSER, tmp_path_factory.mktemp("profile"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def report(text: str, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_opens_the_page_offline_without_complaints(browser, report, width) -> None:
    browser.show(report, width)
    assert browser.ask("document.title") == "A <report>"
    assert (
        browser.heard("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown") == []
    )
    asked = browser.heard("Network.requestWillBeSent")
    addresses = {event["params"]["request"]["url"].partition(":")[0] for event in asked}
    assert addresses <= {"file", "data"}


@pytest.mark.parametrize("width", [360, 1280])
def test_a_browser_loads_all_pictures(browser, report, width) -> None:
    browser.show(report, width)
    sizes = browser.ask(
        "[...document.images].map(i => [i.complete, i.naturalWidth, i.naturalHeight])"
    )
    assert len(sizes) == 2
    for complete, wide, high in sizes:
        assert complete
        assert wide > 0
        assert (high > wide) == (width == 360)  # panels one below the other


@pytest.mark.parametrize("width", [320, 360, 577, 737, 1280])
def test_the_page_fits_the_screen(browser, report, width) -> None:
    browser.show(report, width)
    assert browser.ask("innerWidth") == width
    assert browser.ask("document.documentElement.scrollWidth") <= width
    wide = "[...document.querySelectorAll('body *')].filter(e => e.scrollWidth > innerWidth)"
    assert browser.ask(f"{wide}.map(e => e.tagName)") == []


@pytest.mark.parametrize("width", [360, 1280])
def test_the_table_of_claims_is_filled_and_can_be_read(browser, report, width) -> None:
    browser.show(report, width)
    lines = browser.ask(
        "[...document.querySelectorAll('table.claims tbody tr')].map(e => e.innerText)"
    )
    assert len(lines) == 2 + 7
    assert sum("holds" in line for line in lines) == 3
    cells = "[...document.querySelectorAll('table.claims td')]"
    widths = browser.ask(f"{cells}.map(cell => cell.getBoundingClientRect().width)")
    assert len(widths) == 7 * 3
    assert min(widths) > 0


def test_the_page_fits_a_sheet_of_paper(browser, report) -> None:
    browser.call("Emulation.setEmulatedMedia", media="print")
    browser.show(report, 688)  # A4 less its margins
    assert browser.ask("document.documentElement.scrollWidth") <= 688
    paper = "getComputedStyle(document.querySelector('thead')).display"
    assert browser.ask(paper) == "table-header-group"
    browser.call("Emulation.setEmulatedMedia", media="")
