"""Corrections by their names, as figures, studies and question files have them."""

import own_corrections
import pytest

import gvf
from gvf.corrections.correction_names import CORRECTIONS
from gvf.learners.method import NAMED


@pytest.mark.parametrize(
    ("name", "correction"),
    [
        ("IR", gvf.corrections.IR()),
        (" BC-IR ", gvf.corrections.BCIR()),
        ("V-trace(1.0)", gvf.corrections.VTrace(1.0)),
        ("VTrace(clip=0.3)", gvf.corrections.VTrace(0.3)),
        ("NormIS(max)", gvf.corrections.NormIS(20.0)),
        ("VTrace(0.5 max)", gvf.corrections.VTrace(10.0)),
        ("own_corrections:SquareRoot", own_corrections.SquareRoot()),
    ],
)
def test_a_name_gives_the_correction(name, correction):
    assert gvf.corrections.by_name(name, largest_ratio=20.0) == correction


def test_every_name_is_the_correction_of_the_method_of_that_name():
    names = [name for name in NAMED if name not in ("Sarsa", "Expected Sarsa", "WIS-TD(0)")]
    for name in [name for name in names if "+" not in name and name != "NormIS"]:
        by_name = gvf.corrections.by_name(name, largest_ratio=8.0)
        assert by_name == NAMED[name].make(8.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("WIS", "unknown correction: 'WIS'; did you mean 'WISBuffer'"),
        ("VTrace(0.5 max)", "VTrace needs the largest ratio of the pair"),
        ("VTrace(-1)", "VTrace: clip must be a positive number"),
        ("VTrace(x)", "correction 'VTrace.x.': 'x' is not a number"),
        ("VTrace(1, 2)", "VTrace has the parameters"),
        ("VTrace(cut=1)", "unknown parameter of VTrace: 'cut'"),
        ("VTrace(1", "the bracket is not closed"),
        ("own_corrections:no", "own_corrections"),
    ],
)
def test_what_is_no_correction_is_refused_in_a_line(name, message):
    with pytest.raises((ValueError, AttributeError), match=message) as refused:
        gvf.corrections.by_name(name)
    assert "\n" not in str(refused.value)


def test_all_corrections_of_the_namespace_have_a_name():
    public = {name for name in gvf.corrections.__all__ if name in CORRECTIONS}
    assert public == set(CORRECTIONS)
