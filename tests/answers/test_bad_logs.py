"""Logs and questions that cannot be answered: one line, and nothing is left behind."""

from pathlib import Path

import numpy as np
import pytest
from chain_logs import QUESTION, walks, write

from gvf.answers.question_file import load
from gvf.answers.read_inputs import prepare
from gvf.cli import main

pytestmark = pytest.mark.usefixtures("own_folder")

REAL = """
[[question]]
name = "right"
policy = {kind = "favour", action = 1, probability = 0.7}
[log]
state = ["u", "v"]
"""


def refused(
    capsys: pytest.CaptureFixture[str], columns: dict[str, np.ndarray], text: str = QUESTION
) -> str:
    """Learn from a log; check that it is refused in one line; return that line."""
    write(Path("log.parquet"), columns)
    Path("asked.toml").write_text(text)
    for command in (["learn"], ["diagnose", "--out", "page.html"]):
        assert main([*command, "log.parquet", "asked.toml"]) == 2
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("gvf: ")]
    assert len(told) == 2
    assert told[0] == told[1]
    assert sorted(path.name for path in Path.cwd().iterdir()) == ["asked.toml", "log.parquet"]
    return told[0]


def real(**changed: object) -> dict[str, np.ndarray]:
    """A log of real states, with some columns changed: (row, value), or None to leave it out."""
    rng = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {
        "episode": np.repeat(np.arange(10), 6),
        "step": np.tile(np.arange(6), 10),
        "u": rng.normal(size=60),
        "v": rng.normal(size=60),
        "action": rng.integers(2, size=60),
        "reward": rng.normal(size=60),
        "pscore": np.full(60, 0.5),
        "terminated": np.tile([False] * 5 + [True], 10),
    }
    for name, change in changed.items():
        if change is None:
            del columns[name]
        else:
            row, value = change  # pyright: ignore[reportGeneralTypeIssues]
            columns[name][row] = value
    return columns


LOGS = {
    "a NaN": (real(v=(17, np.nan)), "row 17: column 'v' is NaN or missing: repair the log"),
    "an infinite state": (real(v=(17, np.inf)), "row 17: column 'v' is inf; it must be finite"),
    "a reward of NaN": (real(reward=(3, np.nan)), "row 3: column 'reward' is NaN"),
    "a probability of 0": (real(pscore=(9, 0)), "row 9: column 'pscore' is 0.0; the action was"),
    "a probability of 2": (real(pscore=(9, 2)), "row 9: column 'pscore' is 2.0; a probability"),
    "a negative action": (real(action=(20, -1)), "row 20: question 'right': action -1 is not"),
    "no probabilities": (real(pscore=None), 'say kind = "estimated" in [behaviour]'),
    "actions as real numbers": (
        {**real(), "action": real()["action"].astype(float)},
        "the log's are float64: store them as whole numbers (integers)",
    ),
    "a text among numbers": (
        {**real(), "v": np.array([*map(str, range(17)), "many", *map(str, range(42))])},
        "row 17: column 'v' is 'many', and must be a number",
    ),
    "logarithms": (
        {**real(), "pscore": np.full(60, -0.7)},
        'if these are logarithms, read with behaviour_log_probability = "pscore" in [log]',
    ),
    "two rows in the wrong order": (
        {k: c[np.r_[0, 2, 1, 3:60]] for k, c in real().items()},
        "row 2: column 'step' is 1 after 2 in the same episode: sort the table by episode and "
        "time first",
    ),
    "mixed rows of several episodes, with dates": (
        {k: real()[k][np.r_[0, 3, 1, 4, 2, 5]] for k in real() if k not in ("episode", "step")}
        | {"timestamp": np.arange("2024-01-01", "2024-01-04", dtype="M8[D]").repeat(2)},
        "row 1: column 'timestamp' is 2024-01-01 after 2024-01-01, and no column tells episodes "
        "apart: if rows of several patients, machines or environments are mixed, name the column "
        "that tells them apart, episode = ... in [log], and sort the table by it and by time; only "
        "if rows are in order, read with time = false in [log]",
    ),
    "a gap": (
        {k: np.delete(c, 8) for k, c in real().items()},
        'jumps from 1 to 3, so rows are missing: read with gaps = "cut" in [log] to cut episodes '
        "there",
    ),
    "a next state that does not follow": (
        {**real(), "next_obs_0": np.zeros(60), "next_obs_1": np.zeros(60)},
        'rows are missing: read with gaps = "cut" in [log] to cut episodes there, or with gaps = '
        '"keep" in [log] if none is missing',
    ),
    "unordered rows": (
        {k: c[np.r_[3:9, 0:3, 9:60]] for k, c in real().items()},
        "row 9: episode 1 goes on after another one",
    ),
}


@pytest.mark.parametrize("what", LOGS)
def test_a_bad_log_is_refused_by_row_and_column(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    columns, expected = LOGS[what]
    assert expected in refused(capsys, columns, REAL)


POLICY = 'policy = {kind = "favour", action = 1, probability = 0.7}'
QUESTIONS = {
    "actions outside the policy's": (
        QUESTION.replace(POLICY, 'policy = {kind = "fixed", probabilities = [1]}'),
        "the policy has the actions 0 to 0, and row 1 has action 1",
    ),
    "states outside the policy's": (
        QUESTION.replace(
            POLICY, 'policy = {kind = "table", probabilities = [[1, 0], [0, 1], [0, 1]]}'
        ),
        "the policy has rows for 3 states, and row 0 has state 4",
    ),
    "states that the features cannot code": (
        QUESTION + '[features]\nkind = "one-hot"\nstates = 3',
        "[features]: states = 3, and row 0 has state 4",
    ),
    "probabilities that do not sum to 1": (
        QUESTION.replace(POLICY, 'policy = {kind = "fixed", probabilities = [0.5, 0.6]}'),
        "question 'goes right': Fixed: the probabilities in row 0",
    ),
    "a column that is not there": (
        QUESTION.replace("continuation = 0.9", 'cumulant = "rewrad"'),
        "cumulant: the log has no column 'rewrad'; did you mean 'reward'",
    ),
    "tiles for numbered states": (
        QUESTION + '[features]\nkind = "tiles"',
        "kind 'tiles' is for states that are rows of numbers",
    ),
    "a policy for real actions": (
        QUESTION.replace(POLICY, 'policy = {kind = "gaussian", sd = 1}'),
        "policy 'gaussian' is for real-valued actions",
    ),
    "a continuation that is true": (
        QUESTION.replace("continuation = 0.9", "continuation = true"),
        'continuation must be a number, a column or "module:name", got True',
    ),
    "a dimension that is not there": (
        QUESTION + '[page]\ndimensions = ["angle"]',
        "[page]: unknown dimension: 'angle'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", QUESTIONS)
def test_a_question_that_does_not_fit_the_log_is_refused(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = QUESTIONS[what]
    columns = walks()
    columns["obs"][0] = 4
    columns["action"][0] = 0
    columns["action"][1] = 1
    assert expected in refused(capsys, columns, text)


QUESTIONS_OF_REAL_STATES = {
    "a part of the state as a cumulant": (
        REAL.replace("[log]", 'cumulant = "v"\n[log]'),
        """cumulant: 'v' is a part of the state: say {column = "next_state", index = 1}""",
    ),
    "rows of weights of different lengths": (
        REAL.replace(POLICY, 'policy = {kind = "softmax", weights = [[0, 0], [1]]}'),
        "weights must be a row for each action, of 2 numbers each (the state is u, v)",
    ),
    "another behaviour than the recorded one": (
        REAL + '[behaviour]\nkind = "favour"\naction = 1\nprobability = 0.6',
        "leave out [behaviour]: then what was recorded is used",
    ),
}


@pytest.mark.parametrize("what", QUESTIONS_OF_REAL_STATES)
def test_advice_is_in_words_of_the_question_file(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text, expected = QUESTIONS_OF_REAL_STATES[what]
    told = refused(capsys, real(), text)
    assert expected in told
    assert "on_conflict" not in told


def test_a_log_without_support_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    columns = walks()
    columns["action"][:] = 0
    text = QUESTION.replace(POLICY, 'policy = {kind = "always", action = 1, actions = 2}')
    told = refused(capsys, columns, text)
    assert "no action in the log is one that its policy would take (Always(1, 2))" in told


@pytest.mark.parametrize("batch", [10, 65_536])
def test_the_place_is_that_in_the_file_even_if_rows_are_left_out(
    batch: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gvf.log.tables.BATCH", batch)
    columns = real()
    columns["terminated"][:] = False  # so the last row of each episode is left out
    columns["action"][21] = -1
    told = refused(capsys, columns, REAL + 'ends = "truncated"')
    assert "row 21: question 'right': action -1" in told


def test_a_question_file_says_what_gaps_are(own_folder: None) -> None:
    columns = {k: np.delete(c, 8) for k, c in real().items()}
    write(Path("log.parquet"), columns)
    Path("asked.toml").write_text(REAL + 'gaps = "cut"')
    log = prepare(load("asked.toml"), "log.parquet", quiet=True).log
    assert log.lengths.tolist() == [6, 1, 3, *[6] * 8]


def test_a_damaged_or_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("log.parquet"), walks())
    content = Path("log.parquet").read_bytes()
    Path("log.parquet").write_bytes(content[: len(content) // 2])
    Path("asked.toml").write_text(QUESTION)
    assert main(["learn", "log.parquet", "asked.toml"]) == 2
    assert "log.parquet cannot be read; it is damaged, cut off" in capsys.readouterr().err
    assert main(["learn", "none.parquet", "asked.toml"]) == 2
    assert main(["learn", "log.parquet", "none.toml"]) == 2
    assert "none.toml: No such file" in capsys.readouterr().err
    assert not Path("gvf-answers").exists()
    Path("taken").write_text("")
    assert main(["learn", "log.parquet", "asked.toml", "--out", "taken"]) == 2
    assert main(["diagnose", "log.parquet", "asked.toml", "--out", "taken"]) == 2


def test_an_answer_that_diverges_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    write(Path("log.parquet"), walks())
    Path("asked.toml").write_text(QUESTION.replace("[0.02, 0.2]", "[1e8]"))
    assert main(["learn", "log.parquet", "asked.toml"]) == 2
    assert "all corrections have diverged with all step sizes" in capsys.readouterr().err


def test_parts_and_intervals_need_episodes(capsys: pytest.CaptureFixture[str]) -> None:
    for episodes, folds, told in (
        (1, 2, "one episode cannot be held out; cut it into pieces"),
        (6, 7, "6 episodes cannot be held out in 7 parts"),
        (4, 2, "4 episodes are too few for intervals: say replicates = 0"),
    ):
        write(Path("log.parquet"), walks(episodes))
        Path("asked.toml").write_text(QUESTION.replace("folds = 2", f"folds = {folds}"))
        assert main(["learn", "log.parquet", "asked.toml"]) == 2
        assert told in capsys.readouterr().err
    assert not Path("gvf-answers").exists()
