"""The bar that shows progress."""

import re

import pytest

from gvf.common.progress import progress_bar


def test_a_bar_of_any_loop_labels_its_times(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar() as shown:
        list(shown.track(range(3), description="counting"))
    told = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", capsys.readouterr().err)
    assert re.search(r"counting \S+ 3/3 0:00:00 elapsed, 0:00:00 left", told)
