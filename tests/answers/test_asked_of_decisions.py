"""Questions about logs of single decisions, in question files."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from chain_logs import write
from test_bad_logs import refused

from gvf.answers import load, prepare
from gvf.cli import main
from gvf.common.progress import Progress

pytestmark = pytest.mark.usefixtures("own_folder")

ASKED = """
[[question]]
policy = {kind = "always", action = 1, actions = 2}
CUMULANT
continuation = 0.9

[log]
steps = "single"
state = "place"
action = "item"
reward = "click"

[learn]
corrections = ["IR"]
step_sizes = [0.03, 0.1]
epochs = 4

[intervals]
replicates = 39
"""
ROWS = 600


def decisions(**changed: Any) -> dict[str, Any]:
    """Item 1 is clicked in half of the cases in place 1, and never in place 0; item 0 always."""
    rng = np.random.default_rng(3)
    place, item = rng.integers(2, size=(2, ROWS))
    click = np.where(item == 0, 1, place * rng.integers(2, size=ROWS))
    columns = {"timestamp": rng.integers(9, size=ROWS), "place": place, "item": item}
    columns |= {"click": click, "pscore": np.full(ROWS, 0.5), "other": click * 2.0}
    return {name: column for name, column in (columns | changed).items() if column is not None}


def asked(cumulant: str = "", more: str = "") -> str:
    return ASKED.replace("CUMULANT", cumulant) + more


def test_decisions_are_answered(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("log.parquet"), decisions())
    Path("asked.toml").write_text(asked())
    main(["learn", "log.parquet", "asked.toml", "--out", "out"])
    assert "log.parquet: 600 single decisions, in memory" in capsys.readouterr().err
    predictions = pq.read_table("out/predictions.parquet")
    predicted = predictions["prediction"].to_numpy()
    places = predictions["place"].to_numpy()
    np.testing.assert_array_equal(places, decisions()["place"])
    np.testing.assert_allclose(predicted[places == 0], 0.0, atol=0.02)
    np.testing.assert_allclose(predicted[places == 1], 0.5, atol=0.12)
    page = Path("out/report.html").read_text()
    assert "600 single decisions" in page
    assert "episodes of 1 steps" not in page


@pytest.mark.parametrize("cumulant", ["", 'cumulant = "reward"', 'cumulant = "click"'])
def test_a_renamed_column_has_both_names(cumulant: str) -> None:
    log = write(Path("log.parquet"), decisions())
    Path("asked.toml").write_text(asked(cumulant))
    material = prepare(load("asked.toml"), str(log), quiet=True)
    evaluated = material.questions[0].evaluate(material.log.transitions())
    np.testing.assert_array_equal(evaluated.cumulant, decisions()["click"])
    np.testing.assert_array_equal(evaluated.continuation, 0.0)
    Path("asked.toml").write_text(asked('cumulant = "other"'))
    material = prepare(load("asked.toml"), str(log), quiet=True)
    evaluated = material.questions[0].evaluate(material.log.transitions())
    np.testing.assert_array_equal(evaluated.cumulant, decisions()["other"])


def test_estimated_probabilities_and_a_named_id() -> None:
    """The behaviour is fitted to the states, and rows are parted at random."""
    log = write(Path("log.parquet"), decisions(pscore=None, visit=np.arange(ROWS) * 7))
    text = asked(more='[behaviour]\nkind = "estimated"\n')
    text = text.replace('reward = "click"', 'reward = "click"\nepisode = "visit"')
    Path("asked.toml").write_text(text)
    material = prepare(load("asked.toml"), str(log), quiet=True)
    assert material.source == "estimated"
    probability = material.log.transitions().behaviour_probability
    np.testing.assert_allclose(probability, 0.5, atol=0.08)


BAD = {
    "a next state that is named": (
        decisions(after=np.zeros(ROWS)),
        ('state = "place"', 'state = "place"\nnext_state = "after"'),
        'next_state = "after" in [log]: nothing follows a single decision, so leave this out; or '
        'leave out steps = "single" in [log] if rows follow each other',
    ),
    "ends": (
        decisions(),
        ('state = "place"', 'state = "place"\nends = "truncated"'),
        'every single decision ends its episode: leave out ends = "truncated" in [log]',
    ),
    "several rows an episode": (
        decisions(trajectory_id=np.arange(ROWS) // 2),
        None,
        'row 1: episode 0 has a row before this one, and with steps = "single" in [log] every row '
        "is an episode of its own: leave that out if the rows of an episode follow each other, or "
        "read with episode = false in [log] if column 'trajectory_id' is no episode",
    ),
    "no probabilities": (decisions(pscore=None), None, 'say kind = "estimated" in [behaviour]'),
    "no steps": (
        decisions(),
        ('steps = "single"\n', ""),
        'read with ends = "terminated" in [log]; if they were cut',
    ),
    "another word": (
        decisions(),
        ('"single"', '"one"'),
        "[log]: unknown steps: 'one'; known are 'sequence', 'single'",
    ),
    "an empty name": (
        decisions(),
        ('reward = "click"', 'episode = ""'),
        "[log]: episode must be a column, a list of columns, or false if there is none",
    ),
    "true for a column": (
        decisions(),
        ('reward = "click"', "reward = true"),
        "[log]: reward must be a column, a list of columns, or false if there is none",
    ),
    "a column that is not there": (
        decisions(),
        ('reward = "click"', 'reward = "clicks"'),
        "reward = \"clicks\" in [log]: there is no column 'clicks'; did you mean 'click'?",
    ),
    "no reward": (
        decisions(),
        ('reward = "click"', ""),
        "cumulant: the log has no column 'reward'; known are",
    ),
    "no reward, what to do": (
        decisions(),
        ('reward = "click"', ""),
        'or name it in [log]: reward = "..."',
    ),
    "a part of the state": (
        decisions(),
        ("continuation = 0.9", 'cumulant = "place"'),
        """cumulant: 'place' is a part of the state: say {column = "next_state", index = 0}""",
    ),
    "no state": (
        decisions(),
        ('state = "place"', ""),
        'no column looks like the state; name it, as in state = "x" in [log] or state = ["x", "v"] '
        "in [log]",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_what_contradicts_single_decisions_is_refused_in_words_of_the_file(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, change, message = BAD[what]
    text = asked() if change is None else asked().replace(*change)
    assert message in refused(capsys, columns, text)


def test_false_says_that_no_column_has_a_meaning() -> None:
    log = write(Path("log.parquet"), decisions(trajectory_id=np.zeros(ROWS, int)))
    Path("asked.toml").write_text(
        asked().replace('reward = "click"', 'reward = "click"\nepisode = false\ntime = false')
    )
    assert len(prepare(load("asked.toml"), str(log), quiet=True).log.episodes) == ROWS


def test_every_part_of_the_work_writes_lines_into_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[Progress] = []

    @contextmanager
    def lines(progress: Progress) -> Iterator[None]:
        counts.append(progress)
        yield

    monkeypatch.setattr("gvf.common.progress._lines", lines)
    write(Path("log.parquet"), decisions(pscore=None))
    Path("asked.toml").write_text(asked(more='[behaviour]\nkind = "estimated"\n'))
    main(["learn", "log.parquet", "asked.toml", "--out", "out"])
    titles = ["fitting the behaviour", "looking through the log", "judging"]
    assert [count.title for count in counts[:3]] == titles
    assert len(counts) > 3  # what comes then depends on what was learned
    assert [count.done for count in counts] == [count.total for count in counts]
    assert counts[1].total == ROWS
