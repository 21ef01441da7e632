"""Studies from files and back."""

import pytest
from own_code import EXAMPLES, told_by, write
from own_corrections import SquareRoot

from gvf_lab.study import Study, VarianceStudy, load
from gvf_lab.study.study_file import as_toml

pytestmark = pytest.mark.usefixtures("apart")

ROOM = 'domain = "four-rooms"\nmethods = ["IR"]\n'
VARIANCE = 'kind = "variance"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("domain = ", "is not TOML"),
        (
            'domian = "four-rooms"',
            r"unknown key: 'domian'; did you mean 'domain'\? \(`gvf study show STUDY` shows all\)",
        ),
        ('domain = "four-rooms"', "methods is missing; needed are domain and methods"),
        (ROOM + "runs = 'many'", "runs must be a whole number, got 'many'"),
        (ROOM + "runs = 1e4", "runs must be a whole number, got 10000.0"),
        (ROOM + "runs = true", "runs must be a whole number, got true"),
        (ROOM + "error = 1", "error must be a name, got 1"),
        ('domain = "four-rooms"\nmethods = "IR"', "methods must be a list of methods, got 'IR'"),
        (ROOM + "step_sizes = 'x'", "step_sizes must be a list of numbers, got 'x'"),
        (ROOM + "step_sizes = [1, 'a']", "step_sizes must be a list of numbers, but item 2 is 'a'"),
        (ROOM + "gaps = [true]", "gaps must be a list of whole numbers, but item 1 is true"),
        (
            ROOM + 'pairs = [["down"]]',
            r"pairs must be a list of pairs \[question, behaviour\], but item 1 is \['down'\]",
        ),
        (ROOM + "step_sizes = [-1]", "step_sizes must be finite and not negative, got -1"),
        (ROOM + 'pairs = [["up", "x"]]', "unknown question of four-rooms in pairs: 'up'"),
        (
            ROOM + 'kind = "x"',
            "unknown kind of study: 'x'; known are 'errors', 'online', 'variance'",
        ),
        (ROOM + "kind = [1]", r"kind must be a name, got \[1\]$"),
        (
            VARIANCE + "steps = 5",
            r"unknown key: 'steps'; did you mean 'step_size'\? ",
        ),
        (VARIANCE + "buffer = 1.5", "buffer must be a whole number, got 1.5"),
        (VARIANCE + "step_size = 'a'", "step_size must be a number, got 'a'"),
        (VARIANCE + "step_size = inf", "step_size must be finite and not negative, got inf"),
        (VARIANCE + "iterations = [5, 0]", r"iterations must increase, got \[5, 0\]"),
        (VARIANCE + "iterations = [-1, 0]", "iterations must be at least 0, got -1"),
        (VARIANCE + "iterations = []", "iterations must name at least one"),
        (VARIANCE + "iterations = [0, 0]", "iterations has something twice: 0"),
        (VARIANCE + "methods = []", "methods must name at least one"),
        (VARIANCE + 'methods = ["IS", "IS"]', "methods has something twice: 'IS'"),
        (VARIANCE + 'methods = ["IRR"]', r"unknown method: 'IRR'; did you mean 'IR'\?$"),
        (VARIANCE + 'pairs = [["hard", "x"]]', "unknown behaviour of markov-chain in pairs: 'x'"),
    ],
)
def test_a_malformed_file_is_named_and_so_is_the_key(text, message, tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=f"mine.toml:? {message}"):
        load(file)


def test_a_study_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text(
        'domain = "four-rooms"\nmethods = ["IR", "IS"]\nstep_sizes = [1, 0.5]\n'
        'pairs = [["down", "uniform"]]\ngaps = [1, 16]\nruns = 2\n'
    )
    study = load(file)
    assert study == Study("mine", "four-rooms", ("IR", "IS"), (1, 0.5),
                          pairs=(("down", "uniform"),), gaps=(1, 16), runs=2)  # fmt: skip
    assert len(list(study.tasks())) == 4


def test_a_study_of_update_variance_from_a_file(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('kind = "variance"\nname = "v"\niterations = [0, 5]\nstep_size = 2\n')
    assert load(file) == VarianceStudy("v", iterations=(0, 5), step_size=2.0)


def test_a_study_survives_being_written_to_a_file():
    study = Study(
        "mine", "markov-chain",
        ("IR", {"correction": "VTrace", "clip": "0.3 max"}, SquareRoot(),
         {"correction": "IR", "update": {"rule": "tdc", "secondary": 0.5}, "colour": "#123456"}),
        (0.5, 1.0), updates=20, runs=2,
    )  # fmt: skip
    assert load(write("mine.toml", as_toml(study))) == study


def test_two_modules_of_one_name_are_not_mixed_up():
    text = 'domain = "markov-chain"\nmethods = ["twice_there:SquareRoot"]\nstep_sizes = [1]\n'
    for folder in ("one", "same", "other"):
        write(f"{folder}/twice_there.py", (EXAMPLES / "worlds.py").read_text())
        write(f"{folder}/s.toml", text)
    write("other/twice_there.py", (EXAMPLES / "worlds.py").read_text() + "\nODD = 3\n")
    assert load("one/s.toml").methods == load("same/s.toml").methods == ("square root",)
    told = told_by(load, "other/s.toml")
    assert "another one of that name is in use, from" in told
