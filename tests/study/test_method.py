"""Methods: how they are given, those of one's own in every loop, and what is no method."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from own_code import CHAIN, told_by
from own_corrections import SquareRoot
from small_studies import FIXED, ONLINE, ROOMS, TILES

import gvf
from gvf.correction import RATIO, WINDOW, by_ratio, kernel
from gvf.study import NAMED, Method, Study, load, run_task
from gvf.study.encoding import settings
from gvf.study.toml import as_toml


@kernel
def _twice_the_ratio(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = 2.0 * inputs[RATIO, i] / out.size


@kernel
def _twice_the_same(inputs, p, means, parameters, out):
    for i in range(out.size):
        out[i] = 2.0 / out.size


@kernel
def _twice_the_share(inputs, p, means, parameters, out):
    total = 0.0
    for i in range(out.size):
        total += inputs[RATIO, i]
    for i in range(out.size):
        out[i] = 2.0 * inputs[RATIO, i] / total


@dataclass(frozen=True)
class TwiceIS(gvf.Correction):
    weigh = _twice_the_ratio


@dataclass(frozen=True)
class Limited(gvf.Correction):
    limit: float | None = None
    weigh = _twice_the_ratio


@dataclass(frozen=True)
class TwiceIR(gvf.Correction):
    mass = by_ratio
    weigh = _twice_the_same


@dataclass(frozen=True)
class TwiceOnPolicy(gvf.Correction):
    weigh = _twice_the_same


@dataclass(frozen=True)
class TwiceWISOptimal(gvf.Correction):
    mass = WINDOW
    weigh = _twice_the_share


LOOPS = {
    "fixed buffer": (FIXED, "IS", TwiceIS),
    "fixed buffer, by ratio": (FIXED, "IR", TwiceIR),
    "fixed buffer, action values": (FIXED, "Expected Sarsa", TwiceOnPolicy),
    "fixed buffer, whole": (FIXED, "WIS-Optimal", TwiceWISOptimal),
    "online, table": ({**ROOMS, **ONLINE}, "IS", TwiceIS),
    "online, table, by ratio": ({**ROOMS, **ONLINE}, "IR", TwiceIR),
    "online, table, action values": ({**ROOMS, **ONLINE}, "Sarsa", TwiceOnPolicy),
    "online, table, whole window": ({**ROOMS, **ONLINE}, "WIS-Optimal", TwiceWISOptimal),
    "online, tiles": ({**TILES, **ONLINE}, "IS", TwiceIS),
    "online, tiles, by ratio": ({**TILES, **ONLINE}, "IR", TwiceIR),
    "online, tiles, action values": ({**TILES, **ONLINE}, "Expected Sarsa", TwiceOnPolicy),
    "online, dense features": ({"domain": "star", **ONLINE}, "IR", TwiceIR),
    "online, dense features, whole window": (
        {"domain": "star", **ONLINE}, "WIS-Optimal", TwiceWISOptimal,
    ),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "known", "twice"), LOOPS.values(), ids=LOOPS)
def test_a_new_correction_runs_in_every_loop(settings, known, twice):
    """Twice a known one's weights are, to the last bit, twice its step size."""
    new = {"correction": f"test_method:{twice.__name__}", "update": NAMED[known].update}
    if not NAMED[known].update:
        assert Method.of(twice()) == Method.of(twice) == Method.of(new)  # a table, or the class
    study = Study(
        "s", methods=(known, new | {"name": "New"}), step_sizes=(0.02, 0.04), runs=1, **settings
    )
    plain, doubled = run_task(next(study.tasks()))
    assert doubled.error[0] == plain.error[1] != plain.error[0]
    np.testing.assert_array_equal(doubled.curve[0], plain.curve[1])


@pytest.mark.parametrize(
    ("changes", "update", "message"),
    [
        ({**TILES, **ONLINE}, "", "New needs the whole window .* not with continuous states"),
        ({**FIXED, "update": "incremental"}, "", "New has no draws .* no incremental update"),
        (FIXED, "sarsa", "New needs a next action for each draw, and has no draws"),
    ],
)
def test_where_a_new_correction_makes_no_sense_is_said(changes, update, message):
    new = {"correction": "test_method:TwiceWISOptimal", "update": update, "name": "New"}
    with pytest.raises(ValueError, match=message):
        Study("s", methods=(new,), step_sizes=(1.0,), **changes)


def test_methods_of_every_form_are_written_to_a_file_and_read_back(tmp_path):
    methods = (
        "IR", "V-trace(0.5 max)", "VTrace(0.3)", TwiceIS, Limited(), Limited(2.0), "Emphatic IR",
        {"correction": "VTrace", "clip": "0.7 max", "name": 'called "so"', "colour": "#117733"},
        {"correction": "IS", "update": "tdrc"},
        {"correction": "IR", "update": {"rule": "rmsprop", "decay": 0.8}},
        {"correction": "OnPolicy", "on_policy": True, "update": "expected sarsa"},
    )  # fmt: skip
    study = Study("mine", "four-rooms", methods, (0.5, 1.0), runs=2)
    assert len(study.own) == 8
    file = tmp_path / "mine.toml"
    file.write_text(as_toml(study))
    again = load(file)
    assert again == study
    assert [again.method(name) for name in again.methods] == [Method.of(one) for one in methods]
    assert again.method('called "so"').colour == "#117733"
    assert again.method('called "so"').make(10.0) == gvf.VTrace(7.0)


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
    assert settings(Study("s", methods=(coloured,), **CHAIN)) == settings(
        Study("s", methods=("IR",), **CHAIN)
    )


@pytest.mark.parametrize("colour", ["#12", "#12345g", "red!", "1", "tab:blue", "dark red"])
def test_what_is_no_colour_is_told(colour):
    assert "colour of a method" in told_by(Method.of, {"correction": "IR", "colour": colour})


@pytest.mark.parametrize("update", ["json:dumps", "gvf:IR", "gvf:__version__"])
def test_what_is_no_update_is_told(update):
    told = told_by(Method.of, {"correction": "IR", "update": update})
    assert told.startswith(f"update {update!r} is ")
    assert told.endswith("not a subclass of gvf.Update")
    assert "not a subclass of gvf.Update" in told_by(
        lambda: Study("s", methods=("IR",), update=update, **CHAIN)
    )


@pytest.mark.parametrize(
    ("given", "name", "made"),
    [
        ("IR", "IR", gvf.IR()),
        ("V-trace(0.5 max)", "V-trace(0.5 max)", gvf.VTrace(4.0)),
        ("V-trace(0.25)", "V-trace(0.25)", gvf.VTrace(0.25)),
        ("VTrace(clip=0.25 max)", "V-trace(0.25 max)", gvf.VTrace(2.0)),
        ("VTrace", "V-trace(1.0)", gvf.VTrace(1.0)),
        ({"correction": "VTrace", "clip": 3}, "V-trace(3.0)", gvf.VTrace(3.0)),
        ({"correction": "VTrace", "clip": "max"}, "V-trace(max)", gvf.VTrace(8.0)),
        ({"correction": "IR", "update": "tdrc"}, "IR+tdrc", gvf.IR()),
        (
            {"correction": "IR", "update": {"rule": "tdc", "secondary": 0.5}},
            "IR+tdc(0.5)",
            gvf.IR(),
        ),
        ({"correction": "IS", "name": "plain", "colour": "#123456"}, "plain", gvf.IS()),
        ("own_corrections:SquareRoot", "SquareRoot", SquareRoot()),
        (SquareRoot(), "SquareRoot", SquareRoot()),
        (SquareRoot, "SquareRoot", SquareRoot()),
        (gvf.Interpolated(0.3), "Interpolated(0.3)", gvf.Interpolated(0.3)),
        ("Emphatic IR", "Emphatic IR", gvf.EmphaticIR()),
        ("EmphaticBCIR", "Emphatic BC-IR", gvf.EmphaticBCIR()),
        ("EmphaticIR(0.6)", "Emphatic IR(0.6)", gvf.EmphaticIR(0.6)),
        ("Emphatic IR(beta=0.6)", "Emphatic IR(0.6)", gvf.EmphaticIR(0.6)),
        ({"correction": "EmphaticIS", "beta": 1}, "Emphatic IS(1.0)", gvf.EmphaticIS(1.0)),
        (gvf.EmphaticWISMinibatch(), "Emphatic WIS-Minibatch", gvf.EmphaticWISMinibatch()),
    ],
)
def test_a_method_is_meant_in_many_ways(given, name, made):
    method = Method.of(given)
    assert method.name == name
    assert method.make(8.0) == made
    assert Method.of(method.plain()) == method
    assert Method.of(json.loads(json.dumps(method.plain()))) == method


@dataclass(frozen=True)
class Local(gvf.Correction):
    weigh = gvf.IS.weigh


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
        ("own_corrections:np", "not a subclass of gvf.Correction"),
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
    class Inside(gvf.Correction):
        weigh = gvf.IS.weigh

    assert Method.of(Local()).make(1.0) == Local()
    with pytest.raises(ValueError, match="define it at the top of a module"):
        Method.of(Inside())


def test_names_of_methods_must_not_clash():
    given = {"domain": "markov-chain", "step_sizes": (1.0,), "updates": 5}
    with pytest.raises(ValueError, match="two are called 'IR'; give one of them a name"):
        Study("s", methods=("IR", {"correction": "IS", "name": "IR"}), **given)
    with pytest.raises(ValueError, match="methods has something twice: 'IR'"):
        Study("s", methods=("IR", {"correction": "IR"}), **given)
    with pytest.raises(ValueError, match="methods must name at least one"):
        Study("s", methods=(), **given)
    with pytest.raises(ValueError, match="masses that change as it learns"):
        Study("s", methods=("own_corrections:Prioritised(0.5)",), **given)


def test_a_method_of_ones_own_gives_the_same_as_what_it_equals():
    study = Study(
        "s", "four-rooms", (SquareRoot(), "Interpolated(0.5)", {"correction": "IR", "name": "x"}),
        (0.5,), pairs=(("down", "random-state"),), steps=500, window=200, gaps=(4,), runs=1,
    )  # fmt: skip
    root, half, other = run_task(next(study.tasks()))
    np.testing.assert_allclose(root.error, half.error, rtol=1e-9)
    assert other.method == "x"
    assert abs(other.error[0] - half.error[0]) > 1e-4
