# SPDX-License-Identifier: GPL-2.0-or-later

"""The example in the README runs if TORCS is installed."""

import re
from pathlib import Path

import pytest
from test_torcs import needs_torcs

README = Path(__file__).parents[1] / "README.md"


@needs_torcs
def test_the_example_in_the_readme_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
    exec(compile(block, README, "exec"), {})
    assert re.fullmatch(r"\d+ m along the road at 1[45]\.\d m/s\n", capsys.readouterr().out)
