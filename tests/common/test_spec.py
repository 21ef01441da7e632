"""Objects as data: made again unchanged, compared part by part, without running untrusted code."""

import functools
import inspect
import json
import math
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from own_parts import OPAQUE, Named, Outer, Plain, Secretive, run_python

import gvf
from gvf.common.describe import build, describe, differences
from gvf.corrections import BCInterpolated, Interpolated
from gvf.updates.td import Optimiser


def equal_shares(states: Any) -> Any:
    return np.full((len(states), 2), 0.5)


def constant_and_state(states: Any) -> Any:
    return np.column_stack([np.ones(len(states)), states])


def doubled_reward(transitions: Any) -> Any:
    return 2 * transitions.reward


@dataclass
class Changing:
    """A dataclass that is not frozen, so more may be kept than its fields."""

    x: int

    def changed(self) -> "Changing":
        vars(self)["total"] = 1
        return self


class Biased(gvf.policies.Fixed):
    """Inherits the method that tells the arguments, but has others."""

    def __init__(self, bias: float) -> None:
        super().__init__([bias, 1 - bias])


class Loose:
    """Takes any arguments, and keeps them under the name of them all."""

    def __init__(self, **kwargs: Any) -> None:
        self.kwargs = kwargs


class Forgetful:
    """Keeps only one of its arguments."""

    def __init__(self, x: int, y: int = 0) -> None:
        self.x = x


GVF_PARTS = [
    gvf.policies.Uniform(3),
    gvf.policies.Fixed([0.1, 0.2, 0.7]),
    gvf.policies.Fixed(np.array([0.1, 0.9], np.float32)),
    gvf.policies.Always(1, actions=3),
    gvf.policies.Favour(2, 0.7, actions=3),
    gvf.policies.Table([[0.1, 0.9], [1.0, 0.0]]),
    gvf.policies.Gaussian(0.5, 0.1),
    gvf.policies.Gaussian([0.5, -1.0], [0.1, 2.0]),
    gvf.policies.Mixture(gvf.policies.Uniform(2), gvf.policies.Fixed([0.1, 0.9]), beta=0.3),
    gvf.policies.Mixture(
        gvf.policies.Gaussian(0.0, 1.0), gvf.policies.Gaussian(1.0, 1.0), beta=0.3
    ),
    gvf.policies.Function(gvf.truth.visit_ratios),  # pyright: ignore[reportArgumentType]
    gvf.features.OneHot(7),
    gvf.features.Dense(3),
    gvf.features.TileCoder([0.0, -1.0], [1.0, 1.0], tiles=[2, 3], tilings=4),
    gvf.features.TileCoder([0.0], [1.0], tilings=2, offsets=[[0.3], [0.9]]),
    gvf.GVF(gvf.policies.Uniform(2), "x", 0.9, name="x"),
    gvf.GVF(gvf.policies.Uniform(2), "x", cast(Any, np.float32(0.9))),
    gvf.updates.SGD(),
    gvf.updates.RMSProp(0.8, epsilon=1e-7),
    gvf.updates.Adam(beta1=0.8),
    gvf.updates.TD(0.1),
    gvf.updates.TD([0.1, 0.2], gvf.updates.RMSProp()),
    gvf.updates.IncrementalTD(0.1),
    gvf.updates.WISTD([1.0, 2.0], 0.01),
    gvf.updates.Sarsa(0.1),
    gvf.updates.ExpectedSarsa(0.1, gvf.updates.Adam()),
    gvf.updates.TDC(0.1, secondary=2.0),
    gvf.updates.TDRC(0.1),
    gvf.corrections.IS(),
    gvf.corrections.NormIS(max_ratio=8.0),
    gvf.corrections.VTrace(clip=2.0),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.WISBuffer(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.IR(),
    gvf.corrections.BCIR(),
    Interpolated(beta=0.5),
    BCInterpolated(beta=0.5),
    gvf.corrections.OnPolicy(),
    gvf.corrections.EmphaticIR(),
    gvf.corrections.EmphaticBCIR(beta=0.5),
    gvf.corrections.EmphaticWISMinibatch(),
    gvf.corrections.EmphaticIS(),
    gvf.corrections.StateRatioIR(),
    gvf.corrections.PrioritisedIR(exponent=0.5, floor=0.2),
]
OUR_PARTS = [
    gvf.policies.Function(equal_shares, actions=2),
    gvf.policies.Function(equal_shares),
    gvf.policies.Gaussian(equal_shares, 0.1),
    gvf.features.Dense(2, constant_and_state),
    gvf.GVF(gvf.policies.Uniform(2), doubled_reward, Outer.static),
    Outer.Inner(np.arange(4.0).reshape(2, 2), scale=2.0),
    Outer.Inner(np.array(["a", "bc"])),
    Outer.Inner(np.zeros((0, 3))),
    Changing(1),
    Plain(2),
    Plain(3, options={"a": (1, [2.5, None]), 3: "x", (1, 2): np.int16(4), "nan": math.nan}),
]


def through_json(value: Any) -> tuple[Any, dict[str, Any]]:
    arrays: dict[str, Any] = {}
    return json.loads(json.dumps(describe(value, arrays))), arrays


def same(a: Any, b: Any) -> bool:
    """Equality in every attribute, which does not rely on what is tested here."""
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if hasattr(a, "__dict__") and not inspect.isfunction(a):
        return same(vars(a), vars(b))
    return a is b or a == b or (a != a and b != b)


# Without addresses, which differ between the processes that run the tests.
@pytest.mark.parametrize(
    "part", [*GVF_PARTS, *OUR_PARTS], ids=lambda part: re.sub(r" at 0x\w+", "", repr(part))
)
def test_a_part_is_made_again_as_it_was(part: Any) -> None:
    description, arrays = through_json(part)
    again = build(description, arrays, trust=["tests", "test_spec", "own_parts", "gvf.truth"])
    assert same(again, part)
    assert repr(again) == repr(part)
    assert differences(description, describe(again, {})) == []


def test_the_parts_of_gvf_need_no_trust_and_the_list_of_them_is_complete() -> None:
    for part in GVF_PARTS:
        if isinstance(part, gvf.policies.Function):  # functions always do
            with pytest.raises(ValueError, match="if you trust it"):
                build(*through_json(part))
        else:
            build(*through_json(part))
    made = {type(part) for part in (*GVF_PARTS, *OUR_PARTS)}
    for name in gvf.__all__:
        public = getattr(gvf, name, None)  # gvf.neural needs PyTorch
        bases = gvf.policies.Policy, gvf.updates.Update, gvf.corrections.Correction, Optimiser
        if inspect.isclass(public) and issubclass(public, bases):
            concrete = public not in (
                gvf.policies.Policy,
                gvf.policies.DiscretePolicy,
                gvf.updates.Update,
                gvf.corrections.Correction,
            )
            assert public in made or not concrete, f"add a {name} to the list in this test"


def test_what_gvf_exports_is_named_as_users_name_it() -> None:
    # So that files outlive the modules.
    assert describe(gvf.policies.Uniform(2), {})["class"] == "gvf.policies:Uniform"


def test_arrays_keep_their_own_names_among_others() -> None:
    arrays: dict[str, Any] = {"part/0": np.zeros(1), "x": np.zeros(1)}
    description = describe([np.arange(2), np.arange(3)], arrays)
    assert len(arrays) == 4
    assert [array.tolist() for array in build(description, arrays)] == [[0, 1], [0, 1, 2]]


# What cannot be made again, and how it is told.


@pytest.mark.parametrize(
    ("part", "where", "what"),
    [
        (gvf.GVF(gvf.policies.Uniform(2), lambda t: t.reward), "cumulant", "<lambda>"),
        (
            {"q": [gvf.features.Dense(2, functools.partial(equal_shares))]},
            "q[0].function",
            "partial",
        ),
        (gvf.policies.Function(Plain(2).probabilities), "function", "Plain.probabilities"),
        (gvf.GVF(Secretive(2)), "policy", "Secretive"),
        ((1, OPAQUE), "[1]", "lock"),
        ({"x": Named("x")}, "x", "Named"),
        ({"x": Changing(1).changed()}, "x", "Changing"),
        ({"x": Biased(0.5)}, "x", "Biased"),
        ({"x": Loose(a=1)}, "x", "Loose"),
        ({"x": Forgetful(1)}, "x", "Forgetful"),
        ({"x": np.array([None])}, "x", "ndarray"),
    ],
)
def test_what_has_no_name_is_named_by_its_place(part: Any, where: str, what: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        build(*through_json(part), trust=["tests", "test_spec", "own_parts", "gvf.truth"])
    told = str(refused.value)
    assert told.startswith(f"{where} is {what}, which cannot be found by a name: define it at")
    assert told.endswith(
        "or make the learner as before and call learner.load(path, same_functions=True)"
    )


def test_a_class_inside_a_function_can_be_compared_but_not_made() -> None:
    @dataclass(frozen=True)
    class Local:
        x: int

    description, arrays = through_json(Local(1))
    assert differences(description, describe(Local(1), {})) == []
    assert differences(description, describe(Local(2), {})) == [("x: there 1, here 2", True)]
    with pytest.raises(
        ValueError, match=r"^the description is Local\(x=1\), which cannot be found"
    ):
        build(description, arrays, trust=["tests", "test_spec", "own_parts", "gvf.truth"])


def test_what_is_defined_in_the_main_program_has_no_name() -> None:
    program = (
        "from gvf.common.describe import describe\n"
        "def f(t): return t.reward\n"
        "class C: pass\n"
        "print(describe(f, {}).get('unnamed'), describe(C(), {}).get('unnamed'))"
    )
    assert run_python(program) == "of the running program True\n"


# Trust.


MODULE = """
from pathlib import Path
from dataclasses import dataclass
import os
import os.path as system
from os import system as run
from pathlib import Path as Class
from os.path import join as function

Path(__file__).with_suffix(".imported").touch()
FACTOR = 2

def cumulant(t):
    return FACTOR * t.reward

@dataclass(frozen=True)
class Signal:
    gain: float

    def __call__(self, t):
        return self.gain * t.reward

same = [cumulant]
"""


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with the modules my_lab.signals and my_labs, which leave a trace when imported."""
    (tmp_path / "my_lab").mkdir()
    (tmp_path / "my_lab" / "__init__.py").touch()
    (tmp_path / "my_lab" / "signals.py").write_text(MODULE)
    (tmp_path / "my_labs.py").write_text(MODULE)
    (tmp_path / "broken.py").write_text("import does_not_exist")
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("my_lab")]:
        del sys.modules[name]


def refusal(description: Any, trust: Any = ()) -> str:
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        build(description, {}, trust)
    return str(refused.value)


def named(name: str) -> list[dict[str, Any]]:
    """Descriptions of a function and of an object of this name."""
    return [{"function": name}, {"class": name, "arguments": {}}]


@pytest.mark.parametrize("trust", [(), ["my_labs"], ["my_lab.signal"], ["my_lab.signals.x"], [""]])
def test_an_untrusted_module_is_named_and_not_imported(lab: Path, trust: list[str]) -> None:
    for node in named("my_lab.signals:cumulant"):
        question = {"dict": [["cumulant", node]]}
        assert refusal(question, trust) == (
            "cumulant names my_lab.signals:cumulant; if you trust it: "
            'gvf.load(path, trust=["my_lab.signals"])'
        )
    assert not list(lab.rglob("*.imported"))
    assert "my_lab" not in sys.modules


@pytest.mark.parametrize("trust", [["my_lab"], ["other", "my_lab.signals"], "my_lab"])
def test_a_trusted_package_covers_what_is_in_it(lab: Path, trust: Any) -> None:
    cumulant, _ = named("my_lab.signals:cumulant")
    assert build(cumulant, {}, trust).__name__ == "cumulant"
    made = build({"class": "my_lab.signals:Signal", "arguments": {"gain": 2.0}}, {}, trust)
    assert made.gain == 2.0
    assert refusal(named("my_labs:cumulant")[0], trust).startswith("the description names my_labs:")


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "builtins:eval",
        "builtins:object",
        "subprocess:Popen",
        "gvfx:f",
        "",
        ":",
        "__main__:f",
    ],
)
def test_other_modules_are_not_trusted(name: str) -> None:
    for node in named(name):
        assert "if you trust it" in refusal(node)


@pytest.mark.parametrize(
    "name",
    [
        "gvf:__builtins__",
        "gvf:__getattr__",
        "gvf:import_module",
        "gvf.window.window:os.system",
        "gvf.window.window:Path",
        "gvf.window.window:np.load",
        "gvf.window.window:njit",
        "gvf:features.OneHot",
        "gvf.window.window:Window.load",
        "gvf.window.window:Window.__init__",
        "gvf.window.window:Window.__init__.__globals__",
        "gvf.policies.discrete:dataclass",
        "gvf.__main__:main",
        "gvf.learners.learner:IR.__class__",
        "gvf:",
        "gvf",
        "gvf.",
        "gvf..window:Window",
        "gvf.nowhere:Window",
    ],
)
def test_gvf_gives_nothing_but_its_own_functions_and_classes_that_hold_data(name: str) -> None:
    for node in named(name):
        assert refusal(node).startswith("the description names gvf")


@pytest.mark.parametrize("what", ["os.system", "system.join", "run", "Class", "function", "same"])
def test_what_a_trusted_module_imports_is_not_its_own(lab: Path, what: str) -> None:
    for node in named(f"my_lab.signals:{what}"):
        assert "there is no such" in refusal(node, ["my_lab"])


def test_a_function_is_no_class_and_a_class_no_function(lab: Path) -> None:
    assert "no such function" in refusal(named("my_lab.signals:Signal")[0], ["my_lab"])
    assert "no such class" in refusal(named("my_lab.signals:cumulant")[1], ["my_lab"])


def test_a_module_that_cannot_be_imported_is_named(lab: Path) -> None:
    assert refusal(named("broken:f")[0], ["broken"]) == (
        "the description names broken:f, which cannot be imported: No module named 'does_not_exist'"
    )


def test_arguments_that_do_not_fit_are_told() -> None:
    told = refusal({"tuple": [{"class": "gvf.policies:Uniform", "arguments": {"size": 2}}]})
    assert told.startswith("[0], gvf.policies:Uniform, cannot be made: ")


@pytest.mark.parametrize("node", [{}, {"x": 1}, {"array": "part/9"}, {"class": 1, "arguments": {}}])
def test_what_is_no_description_is_told(node: Any) -> None:
    assert refusal({"dict": [["x", node]]}).startswith("x cannot be understood: ")


def test_a_function_is_the_one_that_has_its_name_now(lab: Path) -> None:
    # As with pickle: what a function does is not in the file.
    import my_labs  # pyright: ignore[reportMissingImports]

    description, arrays = through_json({"cumulant": my_labs.cumulant})
    my_labs.FACTOR = 3
    assert build(description, arrays, ["my_labs"])["cumulant"] is my_labs.cumulant
    del my_labs.cumulant
    assert "there is no such function in that module" in refusal(description, ["my_labs"])


# Differences.


def question(**changed: Any) -> gvf.GVF:
    given: dict[str, Any] = {
        "policy": gvf.policies.Always(1, actions=2),
        "cumulant": doubled_reward,
    }
    return gvf.GVF(**{**given, **changed})


@pytest.mark.parametrize(
    ("saved", "own", "told"),
    [
        (question(), question(cumulant="x"), ["cumulant: there doubled_reward, here 'x'"]),
        (question(), question(cumulant=equal_shares), ["there doubled_reward, here equal_shares"]),
        (
            question(),
            question(policy=gvf.policies.Always(0, actions=2)),
            ["policy.action: there 1, here 0"],
        ),
        (
            question(),
            question(policy=gvf.policies.Uniform(2), continuation=0.5),
            [
                "policy: there Always(action=1, actions=2), here Uniform(actions=2)",
                "continuation: there 0.9, here 0.5",
            ],
        ),
        (
            question(cumulant=lambda t: t.x),
            question(cumulant=lambda t: t.x),
            ["cumulant: <lambda> cannot be compared, since it has no name in a module"],
        ),
        (
            question(),
            question(cumulant=lambda t: t.x),
            ["cumulant: <lambda> cannot be compared, since it has no name in a module"],
        ),
        (
            gvf.policies.Table([[0.5, 0.5]]),
            gvf.policies.Table([[0.1, 0.9]]),
            ["probabilities: there float64[1, 2], here another float64[1, 2]"],
        ),
        (
            gvf.policies.Table([[0.5, 0.5]]),
            gvf.policies.Table([[0.5, 0.5]] * 2),
            ["probabilities: there float64[1, 2], here float64[2, 2]"],
        ),
        (np.zeros(2), np.zeros(2, np.int64), ["the whole: there float64[2], here int64[2]"]),
        (
            gvf.updates.TD(0.1),
            gvf.updates.TD([0.1, 0.2]),
            ["step_size: there 0.1, here (0.1, 0.2)"],
        ),
        (
            gvf.updates.TD([0.1, 0.2]),
            gvf.updates.TD([0.1, 0.3]),
            ["step_size[1]: there 0.2, here 0.3"],
        ),
        (
            gvf.updates.TD([0.1, 0.2]),
            gvf.updates.TD([0.1]),
            ["step_size[1]: there 0.2, here nothing"],
        ),
        ({"a": 1}, {"b": 1}, ["a: there 1, here nothing", "b: there nothing, here 1"]),
        ({}, {"b": doubled_reward}, ["b: there nothing, here doubled_reward"]),
        ({(1, 2): 0.5}, {(1, 2): 0.5}, []),
        ([math.nan, np.float64(0.9), 1, None], [math.nan, 0.9, 1.0, None], []),
        ([math.nan], [0.0], ["[0]: there nan, here 0.0"]),
        ([np.float64(0.9)], [0.8], ["[0]: there 0.9, here 0.8"]),
        ([None], [False], ["[0]: there None, here False"]),
        (
            Secretive(2),
            Secretive(2),
            ["the whole: Secretive cannot be compared, since it has no name in a module"],
        ),
    ],
)
def test_differences_are_named(saved: Any, own: Any, told: list[str]) -> None:
    found = differences(through_json(saved)[0], describe(own, {}))
    assert len(found) == len(told)
    for difference, expected in zip(found, told, strict=True):
        assert difference.text.endswith(expected)
        assert difference.is_known == (
            "cannot be compared" not in expected and "equal_shares" not in expected
        )
