"""What cannot be saved is refused before anything is computed; cells belong to what they use."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from chain_logs import QUESTION, walks, write

from gvf.answers import Material, load, prepare
from gvf.answers.cell_jobs import CellJobs
from gvf.answers.cells import Cell
from gvf.cli import main
from gvf.jobs import Store, Threads

pytestmark = pytest.mark.usefixtures("own_modules")
POLICY = 'policy = {kind = "favour", action = 1, probability = 0.7}'
OWN = """
import numpy as np
import gvf

SHARE = 0.7

def rows(states):
    return np.tile([1 - SHARE, SHARE], (len(states), 1))

def half(states):
    return np.tile([0.5, 0.5], (len(states), 1))

def gain(t):
    return doubled(t.reward)

def doubled(reward):
    return 2 * reward

class Mine(gvf.policies.Policy):
    def __init__(self, share):
        self.kept = share
    def log_probability(self, states, actions):
        return np.log(np.where(actions == 1, self.kept, 1 - self.kept))
    def sample(self, states, *, rng):
        return (rng.random(len(states)) < self.kept).astype(int)

unnamed = gvf.policies.Function(lambda states: rows(states), 2)
mixed = gvf.policies.Mixture(gvf.policies.Uniform(2), unnamed, 0.5)
mine = Mine(0.7)
def of_one_state(state):
    return [0.3, 0.7]

def of_one_row(t):
    return 1.0 if t.reward > 0 else 0.0

def coded(state):
    return [1.0, float(state)]

negative = lambda t: -t.reward
rate = lambda t: 0.5 * t.reward
"""


def asked(text: str, own: str = OWN) -> None:
    Path("mine.py").write_text(own)
    sys.modules.pop("mine", None)
    write(Path("log.parquet"), walks(40))
    Path("asked.toml").write_text(QUESTION.replace("39", "19") + text)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('policy = "mine:unnamed"', "the policy uses <lambda>"),
        ('policy = "mine:mixed"', "the policy uses <lambda>"),
        ('policy = "mine:mine"', "the policy uses Mine"),
        (f'{POLICY}\ncumulant = "mine:negative"', "the cumulant uses <lambda>"),
        (f'{POLICY}\ncontinuation = "mine:rate"', "the continuation uses <lambda>"),
    ],
)
def test_what_cannot_be_saved_is_refused_before_anything_is_computed(
    line: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked("")
    text = Path("asked.toml").read_text().replace(POLICY, line)
    text = text if 'continuation = "' not in line else text.replace("continuation = 0.9\n", "")
    Path("asked.toml").write_text(text)
    monkeypatch.setattr("gvf.answers.cell_jobs.compute", None)  # computing anything would fail
    assert main(["learn", "log.parquet", "asked.toml", "--trust", "--out", "out"]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == (
        f"gvf: question 'goes right': {told}, which cannot be saved: define it at the top of a "
        "module, a function by def (a lambda has no name, even if it is assigned to one)"
    )
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('policy = "mine:of_one_state"', "shape (2,), expected a row for each state (they come"),
        (f'{POLICY}\ncumulant = "mine:of_one_row"', "(mine.py, line 34: functions get all rows at"),
        (
            f'{POLICY}\n[features]\nkind = "function"\nof = "mine:coded"\nsize = 2',
            "row 0: features (by mine:coded, for all states at once): ",
        ),
    ],
)
def test_a_function_of_one_row_is_told_that_all_come_at_once(
    line: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked("")
    text = Path("asked.toml").read_text()
    question, features = line.partition("[features]")[::2]
    added = f"[features]{features}" if features else ""
    Path("asked.toml").write_text(text.replace(POLICY, question) + added)
    assert main(["learn", "log.parquet", "asked.toml", "--trust", "--out", "out"]) == 2
    assert told in capsys.readouterr().err.splitlines()[-1]


def digests_of_cells(own: str = OWN) -> list[str]:
    """The cells of three questions and a feature function, with this text of their module."""
    asked("", own)
    plan = load("asked.toml", trust=True)
    (one,) = plan.questions
    questions = (
        replace(one, policy={"kind": "function", "of": "mine:rows", "actions": None}),
        replace(one, policy={"kind": "function", "of": "mine:half", "actions": None}),
        replace(one, cumulant="mine:gain"),
    )
    material = prepare(replace(plan, questions=questions), "log.parquet", quiet=True)
    return digests_of(material, 3)


def digests_of(material: Material, questions: int) -> list[str]:
    jobs = CellJobs(material, Store(Path("out")), Threads())
    return [jobs.job(Cell("judge", number, "IR")).digest for number in range(questions)]


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("SHARE = 0.7", "SHARE = 0.6", [True, False, False]),
        ("[0.5, 0.5]", "[0.4, 0.6]", [False, True, False]),
        ("2 * reward", "3 * reward", [False, False, True]),
        ("def half", "def unused():\n    return 1\n\ndef half", [False, False, False]),
    ],
)
def test_a_cell_belongs_to_the_functions_that_its_question_uses(
    old: str, new: str, changed: list[bool]
) -> None:
    before, after = digests_of_cells(), digests_of_cells(OWN.replace(old, new))
    assert [a != b for a, b in zip(before, after, strict=True)] == changed


def test_code_that_cannot_be_compared_counts_with_the_text_of_its_module() -> None:
    own = OWN.replace("import gvf\n", "import gvf\nimport other\n", 1)
    own = own.replace("SHARE, SHARE]", "other.SHARE, other.SHARE]")
    Path("other.py").write_text("SHARE = 0.7\n")
    before = digests_of_cells(own)
    Path("other.py").write_text("SHARE = 0.6\n")
    sys.modules.pop("other")
    changed = [a != b for a, b in zip(before, digests_of_cells(own), strict=True)]
    assert changed == [True, False, False]


def test_a_cell_belongs_to_the_files_of_its_own_question() -> None:
    asked("")
    np.savetxt("one.csv", np.tile([0.3, 0.7], (5, 1)), delimiter=",")
    np.savetxt("two.csv", np.tile([0.3, 0.7], (5, 1)), delimiter=",")
    plan = load("asked.toml")
    tables = [{"kind": "table", "file": f"{name}.csv"} for name in ("one", "two")]
    questions = tuple(replace(plan.questions[0], policy=table) for table in tables)

    def digests() -> list[str]:
        material = prepare(replace(plan, questions=questions), "log.parquet", quiet=True)
        return digests_of(material, 2)

    before = digests()
    np.savetxt("two.csv", np.tile([0.2, 0.8], (5, 1)), delimiter=",")
    assert [a != b for a, b in zip(before, digests(), strict=True)] == [False, True]
