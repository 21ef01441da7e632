"""The diagnosis of a horde: that of its learners and their ratios."""

import numpy as np
import pytest
from many_learners import BEHAVIOUR, asked, learner_like, record, stream

import gvf
from gvf.ratios import RatioStatistics

TILES = gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4)
STATISTICS = [
    name
    for name in RatioStatistics.__dataclass_fields__
    if name not in ("window", "batch_size", "emphatic_sample_size")
]


def made(questions, features=TILES, **options):
    options = {"window": 90, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return gvf.Horde(questions, features, gvf.updates.TD(0.05), **options)


@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
def test_the_statistics_are_those_of_a_diagnosis(spread):
    rng = np.random.default_rng(0)
    for count in (3, 500):
        ratios = rng.lognormal(-(spread**2) / 2, spread, count) * (rng.random(count) < 0.8)
        whole = gvf.diagnose(ratios, rng.normal(size=count), batch_size=4)
        found = RatioStatistics.of(ratios, 4)
        for name in STATISTICS:
            assert getattr(found, name) == pytest.approx(
                getattr(whole, name), rel=1e-12, nan_ok=True
            )
        assert found.warnings == whole.warnings


@pytest.mark.parametrize("features", [TILES, gvf.features.Dense(2)], ids=["tiles", "dense"])
@pytest.mark.parametrize(
    "correction", [gvf.corrections.IR(), gvf.corrections.EmphaticIR(0.5)], ids=["IR", "emphatic"]
)
def test_one_question_is_diagnosed_as_by_a_learner(features, correction):
    horde, data = made(asked(), features, correction=correction), stream(200, states=0)
    batches = record(horde, data.state[:1])
    horde.observe(data)
    for i in (0, 7):
        learner = learner_like(horde, i, batches)
        learner.observe(data)
        corrections = [gvf.corrections.IS(), correction]
        expected = learner.diagnose(corrections=corrections)
        found = horde.diagnose(horde.names[i], corrections=corrections)
        assert isinstance(expected, gvf.Diagnosis)
        assert isinstance(found, gvf.Diagnosis)
        assert found.batch_size == 4
        for name in STATISTICS:
            assert getattr(found, name) == pytest.approx(getattr(expected, name), nan_ok=True)
        for name, moments in expected.moments.items():
            assert found.moments[name].variance.value == pytest.approx(
                moments.variance.value, rel=1e-9
            )
            assert found.moments[name].length == pytest.approx(moments.length, rel=1e-9)


def test_every_policy_is_diagnosed():
    horde, data = made(asked()), stream(400, states=0)
    horde.observe(data)
    found = horde.diagnose()
    assert isinstance(found, gvf.HordeDiagnosis)
    assert [one.policy for one in found.policies] == list(found.report.policies)
    assert sum(one.questions for one in found.policies) == len(horde.names)
    for one in found.policies:
        question = next(q for q in horde.questions if repr(q.policy) == one.policy)
        ratios = question.ratios(data[-90:], behaviour=BEHAVIOUR)
        assert one.ratios == RatioStatistics.of(ratios, 4)
    assert (
        next(iter(found.warnings))
        == min(found.policies, key=lambda one: one.ratios.effective_sample_size).policy
    )
    assert "largest UDE" in repr(found)


def test_a_policy_that_is_not_covered_is_named():
    data = stream(100, states=0)
    seldom = gvf.Transitions(**{**data.columns, "action": np.zeros(100, int)})
    horde = made(
        gvf.question_grid(
            {"u": gvf.policies.Uniform(3), "2": gvf.policies.Always(2, 3)}, {"r": "reward"}, [0]
        )
    )
    with pytest.raises(ValueError, match="the window is empty"):
        horde.diagnose()
    horde.observe(seldom)
    found = horde.diagnose()
    assert isinstance(found, gvf.HordeDiagnosis)
    assert "took no action of the target" in found.warnings["Always(2, 3)"][0]
    assert found.policies[1].skipped == 100
    assert "took no action" in repr(found)


def test_a_question_that_came_later_is_diagnosed_by_what_it_knows():
    data = stream(120, states=0)
    horde = made([gvf.GVF(gvf.policies.Uniform(3), "reward", 0.5, name="old")])
    horde.observe(data[:80])
    horde.add([gvf.GVF(gvf.policies.Always(1, 3), "reward", 0.5, name="new")])
    horde.observe(data[80:])
    found = horde.diagnose()
    assert isinstance(found, gvf.HordeDiagnosis)
    assert [one.ratios.window for one in found.policies] == [90, 40]
    one = horde.diagnose("new")
    assert isinstance(one, gvf.Diagnosis)
    assert one.window == 40


def test_a_paused_question_is_not_diagnosed():
    data = stream(100, states=0)
    data["reward"][60] = np.nan
    horde = made([gvf.GVF(gvf.policies.Uniform(3), "reward", 0.5, name="q")])
    horde.observe(data)
    with pytest.raises(ValueError, match="question 'q' pauses: a signal was not finite"):
        horde.diagnose("q")
    assert "paused: q" in repr(horde.diagnose())
    with pytest.raises(KeyError, match="no question is named 'x'"):
        horde.diagnose("x")
