"""Methods of studies: a user's in every loop, in files, and what is refused."""

from dataclasses import dataclass

import numpy as np
import pytest
from own_code import CHAIN, told_by
from own_corrections import SquareRoot
from small_studies import FIXED, ONLINE, ROOMS, TILES

import gvf
from gvf.corrections import RATIO, WINDOW, kernel
from gvf.corrections.correction import by_ratio
from gvf.learners import Method
from gvf_lab.study import NAMED, Study, load, run_task
from gvf_lab.study.settings import settings
from gvf_lab.study.study_file import as_toml


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
class TwiceIS(gvf.corrections.Correction):
    weigh = _twice_the_ratio


@dataclass(frozen=True)
class Limited(gvf.corrections.Correction):
    limit: float | None = None
    weigh = _twice_the_ratio


@dataclass(frozen=True)
class TwiceIR(gvf.corrections.Correction):
    mass = by_ratio
    weigh = _twice_the_same


@dataclass(frozen=True)
class TwiceOnPolicy(gvf.corrections.Correction):
    weigh = _twice_the_same


@dataclass(frozen=True)
class TwiceWISOptimal(gvf.corrections.Correction):
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
    new = {"correction": f"test_methods_of_studies:{twice.__name__}", "update": NAMED[known].update}
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
    new = {"correction": "test_methods_of_studies:TwiceWISOptimal", "update": update, "name": "New"}
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
    assert again.method('called "so"').make(10.0) == gvf.corrections.VTrace(7.0)


@pytest.mark.parametrize("colour", ["#112233", "#abc", "#ABCDEF", "teal"])
def test_a_colour_makes_no_other_study(colour):
    coloured = Method.of({"correction": "IR", "colour": colour})
    assert settings(Study("s", methods=(coloured,), **CHAIN)) == settings(
        Study("s", methods=("IR",), **CHAIN)
    )


@pytest.mark.parametrize("update", ["json:dumps", "gvf.corrections:IR", "gvf:__version__"])
def test_what_is_no_update_is_refused(update):
    assert "not a subclass of gvf.updates.Update" in told_by(
        lambda: Study("s", methods=("IR",), update=update, **CHAIN)
    )


def test_priorities_are_refused_where_draws_are_shared():
    with pytest.raises(ValueError, match=r"Prioritised IR.* masses that change .* use a learner"):
        Study("s", domain="markov-chain", methods=("PrioritisedIR",), step_sizes=(0.1,), steps=100)


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
