"""Objects as data: made again unchanged, compared part by part, without running untrusted code."""

import functools
import inspect
import json
import math
import os
import subprocess
import sys
import threading
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numba
import numpy as np
import pytest

import gvf
from gvf.common.spec import build, describe, differences, fingerprint
from gvf.correction import BCInterpolated, Interpolated
from gvf.domain.continuous_four_rooms import CellTable, cells_of
from gvf.learner.td import Optimiser


def equal_shares(states: Any) -> Any:
    return np.full((len(states), 2), 0.5)


def constant_and_state(states: Any) -> Any:
    return np.column_stack([np.ones(len(states)), states])


def doubled_reward(transitions: Any) -> Any:
    return 2 * transitions.reward


class Outer:
    @dataclass(frozen=True)
    class Inner:
        values: Any
        scale: float = field(default=1.0, kw_only=True)
        total: float = field(init=False, default=0.0)

    @staticmethod
    def static(transitions: Any) -> Any:
        return transitions.reward


class Another:
    @dataclass(frozen=True)
    class Inner:
        values: Any
        scale: float = 1.0


class Plain(gvf.DiscretePolicy):
    """Neither a dataclass nor one with a method, but it keeps what it is given."""

    def __init__(self, actions: int, *, options: Any = None) -> None:
        self.actions, self.options = actions, options

    def probabilities(self, states: Any) -> Any:
        return np.full((len(states), self.actions), 1 / self.actions)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.actions}, options={self.options})"


class Secretive(Plain):
    """Keeps more than it is given."""

    def __init__(self, actions: int) -> None:
        super().__init__(actions)
        self._cache: list[int] = []


@dataclass
class Changing:
    """A dataclass that is not frozen, so more may be kept than its fields."""

    x: int

    def changed(self) -> "Changing":
        vars(self)["total"] = 1
        return self


class Biased(gvf.Fixed):
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


class Named(list[int]):
    """Holds more than its attributes."""

    def __init__(self, name: str) -> None:
        self.name = name


class Slotted(Plain):
    """Holds more than its attributes."""

    __slots__ = ("hidden",)


GVF_PARTS = [
    gvf.Uniform(3),
    gvf.Fixed([0.1, 0.2, 0.7]),
    gvf.Fixed(np.array([0.1, 0.9], np.float32)),
    gvf.Always(1, actions=3),
    gvf.Favour(2, 0.7, actions=3),
    gvf.Table([[0.1, 0.9], [1.0, 0.0]]),
    gvf.Gaussian(0.5, 0.1),
    gvf.Gaussian([0.5, -1.0], [0.1, 2.0]),
    gvf.Mixture(gvf.Uniform(2), gvf.Fixed([0.1, 0.9]), beta=0.3),
    gvf.Mixture(gvf.Gaussian(0.0, 1.0), gvf.Gaussian(1.0, 1.0), beta=0.3),
    CellTable(gvf.Table(np.full((121, 4), 0.25))),
    gvf.FunctionPolicy(cells_of),
    gvf.OneHot(7),
    gvf.Dense(3),
    gvf.TileCoder([0.0, -1.0], [1.0, 1.0], tiles=[2, 3], tilings=4),
    gvf.TileCoder([0.0], [1.0], tilings=2, offsets=[[0.3], [0.9]]),
    gvf.GVF(gvf.Uniform(2), "x", 0.9, name="x"),
    gvf.GVF(gvf.Uniform(2), "x", cast(Any, np.float32(0.9))),
    gvf.SGD(),
    gvf.RMSProp(0.8, epsilon=1e-7),
    gvf.Adam(beta1=0.8),
    gvf.TD(0.1),
    gvf.TD([0.1, 0.2], gvf.RMSProp()),
    gvf.IncrementalTD(0.1),
    gvf.WISTD([1.0, 2.0], 0.01),
    gvf.Sarsa(0.1),
    gvf.ExpectedSarsa(0.1, gvf.Adam()),
    gvf.TDC(0.1, secondary=2.0),
    gvf.TDRC(0.1),
    gvf.IS(),
    gvf.NormIS(max_ratio=8.0),
    gvf.VTrace(clip=2.0),
    gvf.WISMinibatch(),
    gvf.WISBuffer(),
    gvf.WISOptimal(),
    gvf.IR(),
    gvf.BCIR(),
    Interpolated(beta=0.5),
    BCInterpolated(beta=0.5),
    gvf.OnPolicy(),
]
OUR_PARTS = [
    gvf.FunctionPolicy(equal_shares, actions=2),
    gvf.FunctionPolicy(equal_shares),
    gvf.Gaussian(equal_shares, 0.1),
    gvf.Dense(2, constant_and_state),
    gvf.GVF(gvf.Uniform(2), doubled_reward, Outer.static),
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


@pytest.mark.parametrize("part", [*GVF_PARTS, *OUR_PARTS], ids=repr)
def test_a_part_is_made_again_as_it_was(part: Any) -> None:
    description, arrays = through_json(part)
    again = build(description, arrays, trust=["tests", "test_spec", "gvf.domain"])
    assert same(again, part)
    assert repr(again) == repr(part)
    assert differences(description, describe(again, {})) == []


def test_the_parts_of_gvf_need_no_trust_and_the_list_of_them_is_complete() -> None:
    for part in GVF_PARTS:
        if isinstance(part, gvf.FunctionPolicy):  # functions always do
            with pytest.raises(ValueError, match="if you trust it"):
                build(*through_json(part))
        else:
            build(*through_json(part))
    made = {type(part) for part in (*GVF_PARTS, *OUR_PARTS)}
    for name in gvf.__all__:
        public = getattr(gvf, name)
        bases = gvf.Policy, gvf.Update, gvf.Correction, Optimiser
        if inspect.isclass(public) and issubclass(public, bases):
            concrete = public not in (gvf.Policy, gvf.DiscretePolicy, gvf.Update, gvf.Correction)
            assert public in made or not concrete, f"add a {name} to the list in this test"


def test_what_gvf_exports_is_named_as_users_name_it() -> None:
    # So that files outlive the modules.
    assert describe(gvf.Uniform(2), {})["class"] == "gvf:Uniform"
    assert describe(CellTable(gvf.Table([[1.0]])), {})["class"].startswith("gvf.domain.")


def test_arrays_keep_their_own_names_among_others() -> None:
    arrays: dict[str, Any] = {"part/0": np.zeros(1), "x": np.zeros(1)}
    description = describe([np.arange(2), np.arange(3)], arrays)
    assert len(arrays) == 4
    assert [array.tolist() for array in build(description, arrays)] == [[0, 1], [0, 1, 2]]


# What cannot be made again, and how it is told.

OPAQUE = threading.Lock()


@pytest.mark.parametrize(
    ("part", "where", "what"),
    [
        (gvf.GVF(gvf.Uniform(2), lambda t: t.reward), "cumulant", "<lambda>"),
        ({"q": [gvf.Dense(2, functools.partial(equal_shares))]}, "q[0].function", "partial"),
        (gvf.FunctionPolicy(Plain(2).probabilities), "function", "Plain.probabilities"),
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
        build(*through_json(part), trust=["tests", "test_spec"])
    told = str(refused.value)
    assert told.startswith(f"{where} is {what}, which cannot be found again; define it with a name")
    assert told.endswith("build the learner yourself and call learner.load(path)")


def test_a_class_inside_a_function_can_be_compared_but_not_made() -> None:
    @dataclass(frozen=True)
    class Local:
        x: int

    description, arrays = through_json(Local(1))
    assert differences(description, describe(Local(1), {})) == []
    assert differences(description, describe(Local(2), {})) == ["x: there 1, here 2"]
    with pytest.raises(
        ValueError, match=r"^the description is Local\(x=1\), which cannot be found"
    ):
        build(description, arrays, trust=["tests", "test_spec"])


def test_what_is_defined_in_the_main_program_has_no_name() -> None:
    program = (
        "from gvf.common.spec import describe\n"
        "def f(t): return t.reward\n"
        "class C: pass\n"
        "print(describe(f, {}).get('unnamed'), describe(C(), {}).get('unnamed'))"
    )
    assert run_python(program) == "True True\n"


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
    return [{"function": name, "fingerprint": None}, {"class": name, "arguments": {}}]


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
        "gvf.policy.discrete:dataclass",
        "gvf.__main__:main",
        "gvf.learner.learner:IR.__class__",
        "gvf:",
        "gvf",
        "gvf.",
        "gvf..window:Window",
        "gvf.nowhere:Window",
        "gvf.racing.car_racing:CarRacing",
        "gvf.racing.driving:Drive",
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
    told = refusal({"tuple": [{"class": "gvf:Uniform", "arguments": {"size": 2}}]})
    assert told.startswith("[0], gvf:Uniform, cannot be made: ")


@pytest.mark.parametrize("node", [{}, {"x": 1}, {"array": "part/9"}, {"class": 1, "arguments": {}}])
def test_what_is_no_description_is_told(node: Any) -> None:
    assert refusal({"dict": [["x", node]]}).startswith("x cannot be understood: ")


def test_a_function_that_has_changed_is_not_used(lab: Path) -> None:
    import my_labs  # pyright: ignore[reportMissingImports]

    description, arrays = through_json({"cumulant": my_labs.cumulant})
    assert build(description, arrays, ["my_labs"])["cumulant"] is my_labs.cumulant
    my_labs.FACTOR = 3
    assert refusal(description, ["my_labs"]) == (
        "cumulant, my_labs:cumulant, has changed since it was saved: its code, or a value that it "
        "uses"
    )
    my_labs.FACTOR = OPAQUE
    assert "has changed" in refusal(description, ["my_labs"])
    # Another Python has other bytecode; there only the name remains.
    node = description["dict"][0][1]
    node["fingerprint"] = node["fingerprint"].replace(sys.implementation.cache_tag, "cpython-39")
    assert build(description, arrays, ["my_labs"])["cumulant"] is my_labs.cumulant


# Differences.


def question(**changed: Any) -> gvf.GVF:
    given: dict[str, Any] = {"policy": gvf.Always(1, actions=2), "cumulant": doubled_reward}
    return gvf.GVF(**{**given, **changed})


@pytest.mark.parametrize(
    ("saved", "own", "told"),
    [
        (question(), question(cumulant="x"), ["cumulant: there doubled_reward, here 'x'"]),
        (question(), question(cumulant=equal_shares), ["there doubled_reward, here equal_shares"]),
        (question(), question(policy=gvf.Always(0, actions=2)), ["policy.action: there 1, here 0"]),
        (
            question(),
            question(policy=gvf.Uniform(2), continuation=0.5),
            [
                "policy: there Always(action=1, actions=2), here Uniform(actions=2)",
                "continuation: there 0.9, here 0.5",
            ],
        ),
        (
            question(cumulant=lambda t: t.x),
            question(cumulant=lambda t: t.y),
            ["cumulant: there <lambda>, here another <lambda>"],
        ),
        (question(cumulant=lambda t: t.x), question(cumulant=lambda t: t.x), []),
        (
            question(cumulant=lambda t: OPAQUE),
            question(cumulant=lambda t: OPAQUE),
            ["cumulant: <lambda> cannot be compared"],
        ),
        (
            question(),
            question(cumulant=lambda t: OPAQUE),
            ["cumulant: <lambda> cannot be compared"],
        ),
        (
            gvf.Table([[0.5, 0.5]]),
            gvf.Table([[0.1, 0.9]]),
            ["probabilities: there float64[1, 2], here another float64[1, 2]"],
        ),
        (
            gvf.Table([[0.5, 0.5]]),
            gvf.Table([[0.5, 0.5]] * 2),
            ["probabilities: there float64[1, 2], here float64[2, 2]"],
        ),
        (np.zeros(2), np.zeros(2, np.int64), ["the whole: there float64[2], here int64[2]"]),
        (gvf.TD(0.1), gvf.TD([0.1, 0.2]), ["step_size: there 0.1, here (0.1, 0.2)"]),
        (gvf.TD([0.1, 0.2]), gvf.TD([0.1, 0.3]), ["step_size[1]: there 0.2, here 0.3"]),
        (gvf.TD([0.1, 0.2]), gvf.TD([0.1]), ["step_size[1]: there 0.2, here nothing"]),
        ({"a": 1}, {"b": 1}, ["a: there 1, here nothing", "b: there nothing, here 1"]),
        ({}, {"b": doubled_reward}, ["b: there nothing, here doubled_reward"]),
        ({(1, 2): 0.5}, {(1, 2): 0.5}, []),
        ([math.nan, np.float64(0.9), 1, None], [math.nan, 0.9, 1.0, None], []),
        ([math.nan], [0.0], ["[0]: there nan, here 0.0"]),
        ([np.float64(0.9)], [0.8], ["[0]: there 0.9, here 0.8"]),
        ([None], [False], ["[0]: there None, here False"]),
        (Secretive(2), Secretive(2), ["the whole: Secretive cannot be compared"]),
    ],
)
def test_differences_are_named(saved: Any, own: Any, told: list[str]) -> None:
    found = differences(through_json(saved)[0], describe(own, {}))
    assert len(found) == len(told)
    for line, expected in zip(found, told, strict=True):
        assert line.endswith(expected)


def test_a_function_from_another_python_cannot_be_compared() -> None:
    saved, own = describe(question(), {}), describe(question(), {})
    node = saved["arguments"]["cumulant"]
    node["fingerprint"] = node["fingerprint"].replace(sys.implementation.cache_tag, "cpython-39")
    assert differences(saved, own) == [
        "cumulant: doubled_reward cannot be compared, since another Python saved it"
    ]
    # Arrays, however, are the same in every Python.
    assert "python" not in json.dumps(describe(np.zeros(3), {}))


# Fingerprints.

WEIGHT = 1.5


def closure(value: Any) -> Callable[..., Any]:
    return lambda t: (value, t)


def with_globals(**values: Any) -> Callable[..., Any]:
    """A function of its own globals a and b, of which it uses a, and b as an attribute only."""
    function = eval("lambda t: [a for _ in t.b]", dict(values))
    assert isinstance(function, types.FunctionType)
    return function


def compiled(source: str, **values: Any) -> Any:
    space = dict(values)
    exec(source, space)
    return space["f"]


def kernel(factor: float, **options: Any) -> Any:
    return numba.njit(**options)(compiled(f"def f(x): return {factor} * x"))


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (lambda t: t + 1, lambda t: t + 2),
        (lambda t: t + 1, lambda t: t + 1.0),
        (lambda t: t + 1, lambda t: t + True),
        (lambda t: t * 0.0, lambda t: t * -0.0),
        (lambda t: t + 1, lambda t: t - 1),
        (lambda t: -t, lambda t: ~t),
        (lambda t: t, lambda u: u),
        (lambda t: t.a, lambda t: t.b),
        (lambda t: t in (1, 2), lambda t: t in (1, "2")),
        (lambda t: t in {1, 2}, lambda t: t in {1, 3}),
        (lambda t: t[:, 0], lambda t: t[:, 1]),
        (lambda t: lambda: t + 1, lambda t: lambda: t + 2),
        (lambda t: t, lambda t, u=1: t),
        (lambda t, u=1: u, lambda t, u=2: u),
        (lambda t, *, u=1: u, lambda t, *, u=2: u),
        (lambda t, *, u=1: u, lambda t, *, v=1: v),
        (lambda *t: t, lambda **t: t),
        (lambda t: len(t), lambda t: sum(t)),
        (lambda t: math.sin(t), lambda t: np.sin(t)),
        (closure(1), closure(2)),
        (closure("1"), closure(1)),
        (closure(b"1"), closure("1")),
        (closure("None"), closure(None)),
        (closure((1, 2)), closure([1, 2])),
        (closure(([1], 2)), closure([[1, 2]])),
        (closure({1, 2}), closure(frozenset({1, 2}))),
        (closure({"a": 1}), closure({"a": 2})),
        (closure({"a": 1, "b": 2}), closure({"b": 2, "a": 1})),
        (closure(np.zeros(2)), closure(np.zeros(3))),
        (closure(np.zeros(2)), closure(np.zeros(2, np.int64))),
        (closure(np.zeros((1, 2))), closure(np.zeros((2, 1)))),
        (closure(np.zeros(2)), closure(np.array([0.0, 1e-300]))),
        (closure(np.float64(1)), closure(np.float32(1))),
        (closure(np.float64(1)), closure(1.0)),
        (closure(np.exp), closure(np.log)),
        (closure(np.where), closure(np.sum)),
        (closure(np.linalg.norm), closure(np.linalg.det)),
        (closure(math.sqrt), closure(math.exp)),
        (closure({"a": 1}.get), closure({"a": 2}.get)),
        (closure(math), closure(np)),
        (closure(gvf.IS), closure(gvf.IR)),
        (closure(gvf.Uniform(2)), closure(gvf.Uniform(3))),
        (closure(gvf.IS()), closure(gvf.IR())),
        (closure(Outer.Inner(1)), closure(Another.Inner(1))),
        (closure(Plain(2)), closure(Plain(3))),
        (closure(lambda: 1), closure(lambda: 2)),
        (closure(closure(1)), closure(closure(2))),
        (closure(kernel(1.0)), closure(kernel(2.0))),
        (closure(kernel(1.0)), closure(kernel(1.0, fastmath=True))),
        (functools.partial(closure, 1), functools.partial(closure, 2)),
        (functools.partial(closure, value=1), functools.partial(closure, value=2)),
        (Plain(2).probabilities, Plain(3).probabilities),
        (Plain(2).probabilities, Plain(2).sample),
        (with_globals(a=1), with_globals(a=2)),
        (with_globals(a=1), with_globals()),
        (with_globals(a=lambda: 1), with_globals(a=lambda: 2)),
        (
            compiled("def f(t):\n try: return g(t)\n except KeyError: return h(t)"),
            compiled("def f(t):\n try: return g(t)\n except ValueError: return h(t)"),
        ),
        (compiled("def f(t): yield t"), compiled("def f(t): return t")),
        (
            compiled("def f(t):\n class C: x = a\n return C", a=1),
            compiled("def f(t):\n class C: x = a\n return C", a=2),
        ),
        (
            compiled("def f(n): return n and f(n - 1)"),
            compiled("def f(n): return n and f(n - 2)"),
        ),
        (compiled("def f(): return f.x\nf.x = 1"), compiled("def f(): return f.x\nf.x = 2")),
    ],
)
def test_functions_that_differ_have_different_fingerprints(f: Any, g: Any) -> None:
    assert fingerprint(f) is not None
    assert fingerprint(g) is not None
    assert fingerprint(f) != fingerprint(g)
    assert fingerprint(f) == fingerprint(f)


PAIR = (1, 2)
MUTUAL = "def g(n): return n and f(n - 1)\ndef f(n): return n and g(n - 1)"
INSIDE = "def g():\n def f(n): return n and f(n - 1)\n return f\nf = g()"
TOO_EARLY = "def g():\n def f(): return later\n return f\n later = 1\nf = g()"
CONTAINS_ITSELF: list[Any] = [1]
CONTAINS_ITSELF.append(CONTAINS_ITSELF)
CONTAINS_ITSELF_TOO: list[Any] = [1]
CONTAINS_ITSELF_TOO.append(CONTAINS_ITSELF_TOO)


@pytest.mark.parametrize(
    ("f", "g"),
    [
        (lambda t: t.a + WEIGHT, lambda t: t.a + WEIGHT),
        (closure(1), closure(1)),
        (closure(np.arange(6).reshape(2, 3).T), closure(np.array([[0, 3], [1, 4], [2, 5]]))),
        (closure({"a": {1, 2}}), closure({"a": {2, 1}})),
        (closure(gvf.Table([[0.5, 0.5]])), closure(gvf.Table([[0.5, 0.5]]))),
        (closure(math.nan), closure(float("nan"))),
        (closure(2**20_000), closure(2**20_000)),
        (closure([PAIR, PAIR]), closure([PAIR, (PAIR[0], 2)])),
        (with_globals(a=1, b=1), with_globals(a=1, b=OPAQUE)),
        (compiled("def f(t): return t.a"), compiled("\n\n\ndef f(t):\n\n    return t.a")),
        (compiled("def f(t): return t.a"), compiled("def f(t):\n    'Doc.'\n    return t.a")),
        (compiled("def f(t):\n x = 1\n return x"), compiled("def f(t):\n y = 1\n return y")),
        (compiled("def f(t): return t"), compiled("def f(t: int) -> int: return t")),
        (compiled("def f(n): return n and f(n - 1)"), compiled("def f(n): return n and f(n - 1)")),
        (compiled(MUTUAL), compiled(MUTUAL)),
        (closure(CONTAINS_ITSELF), closure(CONTAINS_ITSELF_TOO)),
        (compiled(INSIDE), compiled(INSIDE)),
        (compiled(TOO_EARLY), compiled(TOO_EARLY)),
    ],
)
def test_functions_that_do_the_same_have_one_fingerprint(f: Any, g: Any) -> None:
    assert fingerprint(f) is not None
    assert fingerprint(f) == fingerprint(g)


def test_a_fingerprint_does_not_change_with_use() -> None:
    # Python rewrites code that runs often, and policies remember what they computed.
    policy = gvf.Table([[0.5, 0.5]])

    def probability(n: int) -> Any:
        return policy.sample([0], rng=np.random.default_rng(n)) + WEIGHT

    before = fingerprint(probability)
    for n in range(1000):
        probability(n)
    assert fingerprint(probability) == before


def deep(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [
        OPAQUE,
        object(),
        np.random.default_rng(0),
        np.array([None]),
        np.ma.masked_array([1.0], [True]),
        np.frompyfunc(lambda x: x, 1, 1),
        Secretive(2),
        Named("x"),
        Slotted(2),
        iter([1]),
        functools.lru_cache(closure),
        deep(100_000),
        [1, {2: (OPAQUE,)}],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_compared_has_no_fingerprint(value: Any) -> None:
    assert fingerprint(closure(value)) is None
    assert fingerprint(with_globals(a=value)) is None


def test_a_trained_network_cannot_be_compared() -> None:
    torch = pytest.importorskip("torch")

    class Network(torch.nn.Module):
        def __init__(self, width: int) -> None:
            super().__init__()
            self.width = width
            self.layer = torch.nn.Linear(width, 2)

    network = Network(3)
    assert fingerprint(closure(network)) is None
    assert fingerprint(closure(torch.zeros(2))) is None
    described = describe(gvf.FunctionPolicy(network, actions=2), {})
    assert differences(described, described) == ["function: Network cannot be compared"]


def test_many_functions_that_share_others_take_no_time() -> None:
    # Without remembering functions already seen, there would be 2^200 to look at.
    source = "def f0(): pass\n" + "".join(
        f"def f{i}(): return f{i - 1}(), g{i - 1}()\ndef g{i}(): return f{i - 1}()\n"
        for i in range(1, 100)
    )
    assert fingerprint(compiled(source + "def g0(): pass\nf = f99")) is not None


SIGNALS = """
import math
import numpy as np
import gvf

NAMES = {"alpha", "beta", "gamma", "delta"}
TABLE = {"x": np.arange(3.0), "y": (1, 2.5, None)}
POLICY = gvf.Mixture(gvf.Uniform(2), gvf.Fixed([0.1, 0.9]), 0.5)

def helper(name, *, scale=2.0):
    if name in {"one", "two", "three"}:
        return math.exp(scale)
    return helper("one") if name in NAMES else TABLE["x"]

def outer(values):
    def signal(t, names=frozenset({"p", "q", "r"})):
        return [helper(name) * POLICY.probability(t.state, t.action) for name in values | names]
    return signal

signal = outer({"s", "t", "u"})
"""


def run_python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "my_signals.py").write_text(SIGNALS)
    (tmp_path / "two" / "my_signals.py").write_text("# Moved.\n" * 9 + SIGNALS)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else {folder!r})\n"
        "import my_signals; from gvf.common.spec import fingerprint\n"
        "print(fingerprint(my_signals.signal))"
    )
    told = {
        run_python(program.format(folder=str(tmp_path / folder)), PYTHONHASHSEED=seed)
        for folder, seed in (("one", "1"), ("one", "2"), ("two", "3"))
    }
    (only,) = told
    assert only.startswith(f"{sys.implementation.cache_tag}:")


def test_a_function_that_imports_a_module_of_ones_own_cannot_be_told():
    def installed(x):
        import numpy as np

        return np.sqrt(x)

    def own(x):
        from own_corrections import SquareRoot

        return SquareRoot

    def absent(x):
        import nowhere_at_all  # pyright: ignore[reportMissingImports]

        return nowhere_at_all

    assert fingerprint(installed) is not None
    assert fingerprint(own) is None
    assert fingerprint(absent) is None
