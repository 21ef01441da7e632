"""Fingerprints: equal for functions that do the same, none for what cannot be compared."""

import functools
import math
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from own_parts import OPAQUE, Named, Outer, Plain, Secretive, run_python

import gvf
from gvf.common.describe import describe, differences, fingerprint


class Another:
    @dataclass(frozen=True)
    class Inner:
        values: Any
        scale: float = 1.0


class Slotted(Plain):
    """Holds more than its attributes."""

    __slots__ = ("hidden",)


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
        (closure(gvf.corrections.IS), closure(gvf.corrections.IR)),
        (closure(gvf.policies.Uniform(2)), closure(gvf.policies.Uniform(3))),
        (closure(gvf.corrections.IS()), closure(gvf.corrections.IR())),
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
        (closure(gvf.policies.Table([[0.5, 0.5]])), closure(gvf.policies.Table([[0.5, 0.5]]))),
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
    policy = gvf.policies.Table([[0.5, 0.5]])

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
    described = describe(gvf.policies.Function(network, actions=2), {})
    assert differences(described, described) == [("function: Network cannot be compared", False)]


def test_many_functions_that_share_others_take_no_time() -> None:
    # Looked at anew from everyone who calls them, these would be 2^200 functions.
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
POLICY = gvf.policies.Mixture(gvf.policies.Uniform(2), gvf.policies.Fixed([0.1, 0.9]), 0.5)

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


def test_a_fingerprint_is_the_same_in_every_process(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "one" / "my_signals.py").write_text(SIGNALS)
    (tmp_path / "two" / "my_signals.py").write_text("# Moved.\n" * 9 + SIGNALS)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1] if len(sys.argv) > 1 else {folder!r})\n"
        "import my_signals; from gvf.common.describe import fingerprint\n"
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
