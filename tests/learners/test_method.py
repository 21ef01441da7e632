"""Methods: how they are given, and what is no method."""

import json
from dataclasses import dataclass

import pytest
from own_code import told_by
from own_corrections import SquareRoot

import gvf
from gvf.learners.method import Method


@pytest.mark.parametrize("given", ["VTrace(0.3", "V-trace(", "VTrace(0.3)x", "VTrace(0.3)("])
def test_a_bracket_must_be_closed(given):
    assert "the bracket is not closed" in told_by(Method.of, given)
    assert "the bracket is not closed" in told_by(Method.of, {"correction": given})


@pytest.mark.parametrize("colour", ["#112233", "#abc", "#ABCDEF", "teal"])
def test_a_colour_makes_no_other_method(colour):
    plain, coloured = Method.of("IR"), Method.of({"correction": "IR", "colour": colour})
    assert coloured.same(plain)
    assert plain.same(coloured)
    assert not coloured.same(Method.of("IS"))


@pytest.mark.parametrize("colour", ["#12", "#12345g", "red!", "1", "tab:blue", "dark red"])
def test_what_is_no_colour_is_told(colour):
    assert "colour of a method" in told_by(Method.of, {"correction": "IR", "colour": colour})


@pytest.mark.parametrize("update", ["json:dumps", "gvf.corrections:IR", "gvf:__version__"])
def test_what_is_no_update_is_told(update):
    told = told_by(Method.of, {"correction": "IR", "update": update})
    assert told.startswith(f"update {update!r} is ")
    assert told.endswith("not a subclass of gvf.updates.Update")


@pytest.mark.parametrize(
    ("given", "name", "made"),
    [
        ("IR", "IR", gvf.corrections.IR()),
        ("V-trace(0.5 max)", "V-trace(0.5 max)", gvf.corrections.VTrace(4.0)),
        ("V-trace(0.25)", "V-trace(0.25)", gvf.corrections.VTrace(0.25)),
        ("VTrace(clip=0.25 max)", "V-trace(0.25 max)", gvf.corrections.VTrace(2.0)),
        ("VTrace", "V-trace(1.0)", gvf.corrections.VTrace(1.0)),
        ({"correction": "VTrace", "clip": 3}, "V-trace(3.0)", gvf.corrections.VTrace(3.0)),
        ({"correction": "VTrace", "clip": "max"}, "V-trace(max)", gvf.corrections.VTrace(8.0)),
        ({"correction": "IR", "update": "tdrc"}, "IR+tdrc", gvf.corrections.IR()),
        (
            {"correction": "IR", "update": {"rule": "tdc", "secondary": 0.5}},
            "IR+tdc(0.5)",
            gvf.corrections.IR(),
        ),
        ({"correction": "IS", "name": "plain", "colour": "#123456"}, "plain", gvf.corrections.IS()),
        ("own_corrections:SquareRoot", "SquareRoot", SquareRoot()),
        (SquareRoot(), "SquareRoot", SquareRoot()),
        (SquareRoot, "SquareRoot", SquareRoot()),
        (gvf.corrections.Interpolated(0.3), "Interpolated(0.3)", gvf.corrections.Interpolated(0.3)),
        ("Emphatic IR", "Emphatic IR", gvf.corrections.EmphaticIR()),
        ("EmphaticBCIR", "Emphatic BC-IR", gvf.corrections.EmphaticBCIR()),
        ("EmphaticIR(0.6)", "Emphatic IR(0.6)", gvf.corrections.EmphaticIR(0.6)),
        ("Emphatic IR(beta=0.6)", "Emphatic IR(0.6)", gvf.corrections.EmphaticIR(0.6)),
        (
            {"correction": "EmphaticIS", "beta": 1},
            "Emphatic IS(1.0)",
            gvf.corrections.EmphaticIS(1.0),
        ),
        (
            gvf.corrections.EmphaticWISMinibatch(),
            "Emphatic WIS-Minibatch",
            gvf.corrections.EmphaticWISMinibatch(),
        ),
    ],
)
def test_a_method_is_meant_in_many_ways(given, name, made):
    method = Method.of(given)
    assert method.name == name
    assert method.make(8.0) == made
    assert Method.of(method.plain()) == method
    assert Method.of(json.loads(json.dumps(method.plain()))) == method


@dataclass(frozen=True)
class Local(gvf.corrections.Correction):
    weigh = gvf.corrections.IS.weigh


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("WISS-Minibatch", "unknown method: 'WISS-Minibatch'; did you mean 'WIS-Minibatch'"),
        ("V-trace(x)", "'x' is not a number"),
        ("V-trace(1, 2)", "has the parameters"),
        ({"clip": 1.0}, "a method needs a correction"),
        ({"correction": "VTrace", "klip": 1.0}, "parameter of VTrace: 'klip'; did you mean 'clip'"),
        ({"correction": "VTrace", "clip": "half"}, "share of the largest ratio"),
        ({"correction": "VTrace", "clip": True}, "clip must be a number"),
        ({"correction": "VTrace", "clip": -1.0}, "VTrace: clip must be"),
        ({"correction": "NormIS"}, "needs its parameter 'max_ratio'"),
        ({"correction": "IR", "update": "tdr"}, "unknown update: 'tdr'; did you mean 'tdrc'"),
        ({"correction": "IR", "name": 3}, "name of a method must be text"),
        ("nowhere:SquareRoot", "there is no module 'nowhere'"),
        ("own_corrections:SquareRoots", "no 'SquareRoots'; did you mean 'SquareRoot'?"),
        ("own_corrections:np", "not a subclass of gvf.corrections.Correction"),
        (3, "a method is a name"),
    ],
)
def test_what_is_no_method_is_told(given, told):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (looked at below)
        Method.of(given)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_class_that_workers_could_not_find_is_refused():
    @dataclass(frozen=True)
    class Inside(gvf.corrections.Correction):
        weigh = gvf.corrections.IS.weigh

    assert Method.of(Local()).make(1.0) == Local()
    with pytest.raises(ValueError, match="define it at the top of a module"):
        Method.of(Inside())
