"""The page of a report in a browser."""

from pathlib import Path

import pytest


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
        "[...document.querySelectorAll('#claims table.claims tbody tr')].map(e => e.innerText)"
    )
    assert len(lines) == 2 + 7
    assert sum("holds" in line for line in lines) == 3
    cells = "[...document.querySelectorAll('#claims table.claims td')]"
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
