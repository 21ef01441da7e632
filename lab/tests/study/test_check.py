"""Studies that make no sense are refused in a line before anything runs."""

import sys
from dataclasses import dataclass, make_dataclass
from pathlib import Path
from typing import Any

import pytest
from own_code import write

from gvf.cli import main
from gvf_lab import domain as domains
from gvf_lab.study import Study
from gvf_lab.study.settings import check_types, settings
from gvf_lab.study.study_file import as_toml

pytestmark = pytest.mark.usefixtures("apart")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"domain": "maze"}, "unknown .*'maze'.*'markov-chain'"),
        ({"methods": ("IRR",)}, r"unknown method: 'IRR'; did you mean 'IR'\?$"),
        ({"pairs": (("down", "hard"),)}, "unknown question of markov-chain in pairs: 'down'; kn"),
        ({"pairs": (("hard", "x"),)}, "unknown behaviour of markov-chain in pairs: 'x'; known"),
        ({"update": "newton"}, "unknown update: 'newton'.*'sgd'"),
        ({"methods": ("WIS-TD(0)",)}, "needs u0 and mu"),
        ({"step_sizes": ()}, "IR needs step_sizes"),
        ({"methods": ("Sarsa",), "update": "incremental"}, "unknown update for sarsa: 'inc"),
        ({"methods": ("WIS-Optimal",), "domain": "continuous-four-rooms", "pairs": ()}, "table"),
        ({"runs": 0}, "runs must be at least 1"),
        ({"gaps": (0,)}, "gaps must be at least 1"),
        ({"updates": 10, "gaps": (2,)}, "no gaps"),
        ({"updates": 10, "when": "active"}, "a fixed buffer .* when must be 'every step', got 'ac"),
        ({"when": "now"}, "unknown when: 'now'.*'every step'"),
        ({"protocol": "mine"}, "unknown protocol: 'mine'"),
        ({"measure_every": 20_000}, "nothing would be measured"),
        ({"warm_up": 15_000}, "no update would come in 15000 steps"),
        ({"warm_up": -5}, "warm_up must be at least 0, got -5"),
        ({"updates": -5}, "updates must be at least 0"),
        ({"seed": -1}, "seed must be at least 0"),
        ({"evaluation_states": 0}, "evaluation_states must be at least 1"),
        ({"gaps": ()}, "gaps must name at least one"),
        ({"methods": ()}, "methods must name at least one"),
        ({"methods": ("IR", "IR")}, "methods has something twice"),
        ({"methods": "IR"}, "methods must be a list of methods, got 'IR'"),
        ({"name": "a b"}, "a study cannot be called 'a b'"),
        ({"runs": 2.5}, "runs must be a whole number, got 2.5"),
        ({"step_sizes": (-0.1,)}, "step_sizes must be finite and not negative, got -0.1"),
        ({"step_sizes": (float("nan"),)}, "step_sizes must be finite"),
        ({"u0": (0.0,), "mu": (1.0,)}, "u0 must be finite and positive, got 0.0"),
    ],
)
def test_what_makes_no_sense_is_said_before_anything_runs(changes, message):
    good = {"name": "s", "domain": "markov-chain", "methods": ("IR",), "step_sizes": (1.0,)}
    with pytest.raises(ValueError, match=message):
        Study(**{**good, **changes})


SANE = {
    "domain": '"markov-chain"', "methods": '["IR"]', "step_sizes": "[0.5]", "updates": "5",
    "runs": "1",
}  # fmt: skip
BAD_WORLDS = """
import gvf
import gvf_lab
import numpy as np

def boom(): raise RuntimeError("no display")

def no_support(): return gvf_lab.GymnasiumDomain("CartPole-v1",
    behaviours={"left": gvf.policies.Always(0, 2)}, questions={"right":
    gvf.GVF(gvf.policies.Always(1, 2))})

def endless(): return gvf_lab.GymnasiumDomain("Pendulum-v1",
    questions={"ever": gvf.GVF(gvf.policies.Gaussian(0.0, 1.0), "reward", 1.0)})

def no_cumulant(): return gvf_lab.GymnasiumDomain("CartPole-v1",
    questions={"far": gvf.GVF(gvf.policies.Uniform(2), "distance", 0.9)})

def odd_name(): return gvf_lab.GymnasiumDomain("CartPole-v1",
    questions={"a/b": gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9)})

def pendulum(): return gvf_lab.GymnasiumDomain("Pendulum-v1")

class Short(gvf_lab.Domain):
    name = "short"
    behaviours, questions = {"b": gvf.policies.Uniform(2)}, {"q": gvf.GVF(gvf.policies.Uniform(2))}
    pairs, features, initial_weights = (("q", "b"),), gvf.features.OneHot(2), np.zeros(2)
    rows = 3
    def walk(self, policy, questions, steps, seed):
        x, ones = np.zeros((self.rows, 1), np.int32), np.ones(steps)
        signals = {"q": gvf_lab.domain.Signals(ones, ones, 0 * ones)}
        return gvf_lab.domain.Trajectory(x, x, np.zeros(steps, int), np.zeros(steps, int), signals)
    def truth(self, question, behaviour, *, states=1, seed=0):
        return gvf_lab.TrueValues(np.arange(2), np.zeros(2), np.zeros(2))

class Raises(Short):
    def walk(self, policy, questions, steps, seed): raise KeyError("sensor")

class Untrue(Short):
    def walk(self, policy, questions, steps, seed):
        self.rows = steps
        return super().walk(policy, questions, steps, seed)
    def truth(self, question, behaviour, *, states=1, seed=0):
        return gvf_lab.TrueValues(np.arange(2), np.zeros(1), np.zeros(2))

table = gvf_lab.domain.TabularDomain(name="t", behaviours={"left": gvf.policies.Always(0, 2)},
    questions={"right": gvf.GVF(gvf.policies.Always(1, 2))}, features=gvf.features.OneHot(1),
    model=gvf_lab.Model(np.ones((1, 2, 1)), np.zeros((1, 2, 1), int), np.zeros((1, 2, 1)),
                    np.zeros(1, bool)))
"""


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"domain": '"CartPol-v1"'}, "unknown domain: 'CartPol-v1'; did you mean 'CartPole-v1'"),
        ({"domain": '"nowhere:x"'}, "there is no module 'nowhere'"),
        ({"domain": '"bad_worlds:nothing"'}, "the module has no 'nothing'"),
        ({"domain": '"bad_worlds:np"'}, "neither a gvf_lab.Domain nor a function that makes one"),
        ({"domain": '"broken_module:x"'}, "cannot be imported: ZeroDivisionError"),
        ({"domain": '"leaves:x"'}, "cannot be imported: SystemExit: 0"),
        ({"domain": '"needs_more:x"'}, "the module needs 'not_installed_at_all'"),
        ({"domain": '"bad_worlds:boom"'}, "no display"),
        ({"domain": '"bad_worlds:no_support"'}, "behaviour 'left' in CartPole-v1"),
        ({"domain": '"bad_worlds:table"'}, "behaviour 'left' never takes action 1"),
        ({"domain": '"bad_worlds:endless"'}, "use a smaller continuation"),
        ({"domain": '"bad_worlds:no_cumulant"'}, "distance"),
        ({"domain": '"bad_worlds:odd_name"'}, "'a/b' cannot be the name of a question"),
        ({"domain": '"gvf/Torcs-v9"'}, "gvf/Torcs-v9"),
        ({"domain": '"bad_worlds:Short"'}, "x of a trajectory must be int32[50, a]"),
        ({"domain": '"bad_worlds:Raises"'}, "KeyError('sensor')"),
        ({"domain": '"bad_worlds:Untrue"'}, "values of the truth must be float64[2]"),
        ({"domain": '"bad_worlds:pendulum"', "methods": '["Sarsa"]'}, "has a continuum of them"),
        ({"domain": '"Pendulum-v1"', "methods": '["Expected Sarsa"]'}, "a continuum of them"),
        ({"methods": '["bad_weights:Below"]'}, "the mass of Below must be from 0"),
        ({"methods": '[{correction = "IR", update = "json:dumps"}]'}, "json:dumps"),
        ({"methods": "[]"}, "methods must name at least one"),
        ({"step_sizes": "[]"}, "IR needs step_sizes"),
        ({"step_sizes": "[0.5, 0.5]"}, "step_sizes has something twice: 0.5"),
        ({"pairs": '[["hard", "nope"]]'}, "unknown behaviour of markov-chain in pairs: 'nope'"),
        ({"methods": '["IR", {correction = "IS", name = "IR"}]'}, "two are called 'IR'"),
        ({"methods": '["ISS"]'}, "did you mean 'IS'"),
        ({"methods": '["bad_weights:Short"]'}, "must write a number into every out[i]"),
        ({"methods": '"IR"'}, "methods must be a list of methods"),
        ({"name": '"logs"'}, "a study cannot be called 'logs'"),
        ({"stepsizes": "[1]"}, "unknown key: 'stepsizes'; did you mean 'step_sizes'"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(changes, told, capsys):
    write("bad_worlds.py", BAD_WORLDS)
    write("broken_module.py", "1 / 0\n")
    write("leaves.py", "raise SystemExit(0)\n")
    write("needs_more.py", "import not_installed_at_all\n")
    write(
        "bad_weights.py",
        "from dataclasses import dataclass\nimport gvf\n\n\n@dataclass(frozen=True)\n"
        "class Short(gvf.corrections.Correction):\n    @staticmethod\n"
        "    def weigh(inputs, p, means, parameters, out):\n        out[0] = 1.0\n\n\n"
        "@dataclass(frozen=True)\nclass Below(gvf.corrections.Correction):\n    weigh = "
        "gvf.corrections.IS.weigh\n\n"
        "    @staticmethod\n    def mass(inputs, parameters):\n        return -1.0\n",
    )
    given = SANE | changes
    if given["domain"] != SANE["domain"]:
        given |= {"updates": "0", "steps": "100"}
    write("bad.toml", "".join(f"{key} = {value}\n" for key, value in given.items()))
    for name in ("bad_worlds", "bad_weights"):
        sys.modules.pop(name, None)
    domains.get.cache_clear()  # pyright: ignore[reportFunctionMemberAccess]
    assert main(["study", "run", "bad.toml"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gvf: ")
    assert captured.err.count("\n") == 1
    assert told in captured.err
    assert not Path("gvf-results").exists()


TYPES = {
    "text": (str, "a", "a", 1, "a name"),
    "whole": (int, 2, 2, True, "a whole number"),
    "number": (float, 1, 1.0, "1", "a number"),
    "flag": (bool, False, False, 0, "true or false"),
    "pair": (tuple[str, str], ["a", "b"], ("a", "b"), ["a"], "a pair"),
    "numbers": (tuple[float, ...], [1, 2], (1.0, 2.0), 3, "a list of numbers"),
    "flags": (tuple[bool, ...], [True], (True,), [1], "a list of true and false"),
    "pairs": (tuple[tuple[str, str], ...], [["a", "b"]], (("a", "b"),), ["ab"], "a list of pairs"),
}


@pytest.mark.parametrize("as_text", [True, False])
@pytest.mark.parametrize("name", TYPES)
def test_types_are_checked_whether_annotations_are_text_or_types(name, as_text):
    kind, given, expected, wrong, words = TYPES[name]
    text = kind.__name__ if isinstance(kind, type) else str(kind)
    cls = make_dataclass("Own", [(name, text if as_text else kind)], frozen=True)
    good: Any = cls(given)
    check_types(good)
    assert getattr(good, name) == expected
    assert type(getattr(good, name)) is type(expected)
    with pytest.raises(ValueError, match=f"{name} must be {words}"):
        check_types(cls(wrong))


@pytest.mark.parametrize("kind", [dict[str, int], "dict[str, int]"])
def test_a_type_that_no_setting_may_have_is_named(kind):
    with pytest.raises(ValueError, match=r"type of the setting 'x': 'dict\[str, int\]'; .*'bool'"):
        check_types(make_dataclass("Own", [("x", kind)])({}))


@dataclass(frozen=True, repr=False)
class OwnStudy(Study):
    """A study of a user whose module has annotations that are types."""

    kind = "test_check:OwnStudy"
    loud: bool = False
    scales: tuple[float, ...] = ()


def test_a_study_of_ones_own_needs_no_future_annotations():
    assert OwnStudy.__annotations__["loud"] is bool
    good: Any = {"name": "s", "domain": "markov-chain", "methods": ("IR",), "step_sizes": (1,)}
    study = OwnStudy(**good, loud=True, scales=(1,))
    assert settings(study)["scales"] == [1.0]
    assert "loud = true" in as_toml(study)
    with pytest.raises(ValueError, match="loud must be true or false, got 1"):
        OwnStudy(**good, loud=1)  # pyright: ignore[reportArgumentType]
