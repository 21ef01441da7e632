"""Question files: what is read, and what is refused."""

import re
import tomllib
from pathlib import Path

import pytest
from chain_logs import QUESTION

from gvf.answers import example, load
from gvf.cli import main


def plan(tmp_path: Path, text: str, *, trust: bool = False):
    path = tmp_path / "asked.toml"
    path.write_text(text)
    return load(path, trust=trust)


def test_the_example_has_the_defaults_and_all_keys(tmp_path: Path) -> None:
    given = plan(tmp_path, example())
    bare = plan(tmp_path, '[[question]]\nname = "mostly right"\npolicy = "uniform"')
    for name in ("methods", "step_sizes", "folds", "replicates", "level", "seed", "dimensions"):
        assert getattr(given, name) == getattr(bare, name), name
    assert given.learn == {**bare.learn, "order": "drawn"}
    assert given.features == {
        **{k: v for k, v in bare.features.items() if k != "states"},
        "kind": "tiles",
    }
    assert vars(given.questions[0]).keys() == vars(bare.questions[0]).keys()
    assert given.questions[0].cumulant == bare.questions[0].cumulant


def test_every_kind_of_policy_in_the_example_is_read(tmp_path: Path) -> None:
    kinds = re.findall(r"^#   (\{kind = .*?\})  ", example() + "  ", re.MULTILINE)
    kinds += re.findall(r"^#   (\{kind = .*\})$", example(), re.MULTILINE)
    read = 0
    for kind in kinds:
        if (
            "..." in kind
            or "size =" in kind
            or kind in ('{kind = "tiles"}', '{kind = "one-hot"}', '{kind = "dense"}')
        ):
            continue
        plan(tmp_path, f"[[question]]\npolicy = {kind}", trust=True)
        read += 1
    assert read >= 8


def test_commented_lines_are_keys_that_exist(tmp_path: Path) -> None:
    text = re.sub(r"^# (?=(\[log\]|[a-z_]+ = ))", "", example(), flags=re.MULTILINE)
    text = text.replace('kind = "recorded"', 'kind = "estimated"')
    assert tomllib.loads(text).keys() >= {"log", "learn", "page"}
    given = plan(tmp_path, text)
    assert given.log["state"] == ["x", "speed", "angle", "spin"]
    assert given.dimensions == ("angle", "spin")
    assert given.learn["window"] == 15000
    assert given.behaviour == {"kind": "estimated", "model": "logistic", "folds": 5}


def test_several_questions_and_short_forms(tmp_path: Path) -> None:
    text = """
behaviour = "estimated"
question = [{name = "a", policy = "uniform"},
            {name = "b", policy = {kind = "always", action = 0}, cumulant = 1.0, continuation = 0}]
"""
    given = plan(tmp_path, text)
    assert [one.name for one in given.questions] == ["a", "b"]
    assert given.behaviour["kind"] == "estimated"
    alone = plan(tmp_path, 'question = {policy = "uniform"}')
    assert alone.questions[0].name == "asked"


Q = 'question = {policy = "uniform"}\n'
A = '[[question]]\npolicy = "uniform"\n'
WRONG = {
    'question = {policy = "unifrom"}': "policy: unknown kind: 'unifrom'; did you mean 'uniform'",
    'question = {policy = "uniform", nam = "x"}': "unknown key: 'nam'; did you mean 'name'",
    "seed = 1": "question is missing",
    Q + '[lern]\nepochs = 1': "unknown key: 'lern'; did you mean 'learn'",
    Q + '[learn]\nepoch = 1': "[learn]: unknown key: 'epoch'",
    Q + '[learn]\nepochs = 0': "at least 1, got 0",
    Q + '[learn]\nepochs = true': "got True",
    Q + '[learn]\nstep_sizes = [0]': "positive numbers, got [0]",
    Q + '[learn]\ncorrections = ["WISM"]': "did you mean 'WIS-Minibatch'",
    Q + '[learn]\ncorrections = ["NormIS"]': "needs the largest ratio",
    Q + '[learn]\ncorrections = ["PrioritisedIR"]': "follow one step size",
    Q + '[learn]\ncorrections = ["WIS-TD(0)"]': "has no step size to compare",
    'question = {policy = "uniform", continuation = 1.5}': "must be in [0, 1], got 1.5",
    'question = {policy = "uniform", cumulant = [1]}': "cumulant must be a number, a column",
    'question = {policy = {kind = "favour", action = 1}}': "probability is missing",
    'question = {policy = {kind = "fixed", probabilities = "x"}}': "must be a number or lists",
    Q + 'behaviour = "guessed"': "unknown kind: 'guessed'",
    Q + '[log]\nstate = 3': "state must be a column, a list of columns, or false",
    Q + '[log]\nends = "cut"': "known are 'terminated', 'truncated'",
    Q + '[log]\ngaps = "join"': "known are 'error', 'cut', 'keep'",
    Q + '[intervals]\nreplicates = 5': "at least 19 replicates",
    Q + '[intervals]\nlevel = 1': "level must be a number between",
    Q + '[page]\ndimensions = ["a", "b", "c"]': "one or two",
    A + 'name = "a"\n' + A + 'name = "a"': "two questions have the name 'a'",
    "a = [": "is not TOML",
}  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_refused_in_one_line_with_its_name(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "asked.toml"
    path.write_text(text)
    assert main(["learn", "none.parquet", str(path)]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith(f"gvf: {path}")
    assert WRONG[text] in told[0]


RUNS = (
    A[:-10] + '"os:system"',
    A[:-10] + '{kind = "function", of = "os:system"}',
    A[:-10] + '{kind = "torchscript", file = "x.pt"}',
    A[:-10] + '{kind = "mixture", share = 0.5, first = "uniform", second = "os:system"}',
    A + 'cumulant = "os:system"',
    A + 'continuation = "os:system"',
    A + 'interest = "os:system"',
    A + '[behaviour]\nkind = "function"\nof = "os:system"',
    A + '[features]\nkind = "function"\nof = "os:system"\nsize = 1',
    A + '[learn]\ncorrections = ["os:system"]',
    A + '[learn]\ncorrections = ["os:system(1)"]',
    A + '[learn]\ncorrections = [{correction = "os:system"}]',
    A + '[learn]\ncorrections = [{correction = "IR", update = "os:a"}]',
    A + '[learn]\n'
    'corrections = [{correction = "IR", update = {rule = "os:system"}}]',
)  # fmt: skip


@pytest.mark.parametrize("text", RUNS)
def test_nothing_that_runs_code_is_read_without_trust(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match=r"would run code of .*: allow it with --trust"):
        plan(tmp_path, text)


def test_the_question_of_the_tests_is_read(tmp_path: Path) -> None:
    assert plan(tmp_path, QUESTION).questions[0].name == "goes right"


def test_show_prints_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", "question"]) == 0
    assert capsys.readouterr().out == example()
