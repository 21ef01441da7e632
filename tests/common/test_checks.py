"""Messages about arguments: they name the argument and never write out a long value."""

import numpy as np
import pytest

import gvf
from gvf.common.checks import as_array, brief, whole

QUESTION = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
LOG = gvf.Transitions(state=[0], action=[1], reward=[0.0], next_state=[1], terminated=[False])
LONG = {
    "list": [[1.0] * 50] * 300,
    "ragged": [[1.0] * length for length in range(1, 300)],
    "array": np.ones((500, 50)),
    "dict": {number: number for number in range(3000)},
}


def learner(**options):
    options = {"behaviour": gvf.policies.Uniform(2), "seed": 0, **options}
    return gvf.Learner(QUESTION, gvf.features.OneHot(5), gvf.updates.TD(0.1), **options)


WRONG_PLACES = {
    "column": lambda v: gvf.Transitions(state=v, action=[0]),
    "policy": lambda v: gvf.GVF(v),
    "cumulant": lambda v: gvf.GVF(gvf.policies.Uniform(2), v),
    "continuation": lambda v: gvf.GVF(gvf.policies.Uniform(2), "reward", v),
    "question": lambda v: gvf.Learner(v, gvf.features.OneHot(5), gvf.updates.TD(0.1)),
    "features": lambda v: gvf.Learner(QUESTION, v, gvf.updates.TD(0.1)),
    "update": lambda v: gvf.Learner(QUESTION, gvf.features.OneHot(5), v),
    "correction": lambda v: gvf.Learner(QUESTION, gvf.features.OneHot(5), gvf.updates.TD(0.1), v),
    "behaviour": lambda v: learner(behaviour=v),
    "window": lambda v: learner(window=v),
    "on_conflict": lambda v: learner(on_conflict=v),
    "on_nan": lambda v: learner(on_nan=v),
    "states": lambda v: learner().predict(v),
    "steps": lambda v: learner().learn([LOG], steps=v),
    "source": lambda v: learner().learn(v),
    "size": lambda v: gvf.features.OneHot(v),
    "function": lambda v: gvf.features.Dense(3, v),
    "tiles": lambda v: gvf.features.TileCoder([0.0], [1.0], tiles=v),
    "step_size": lambda v: gvf.updates.TD(v),
    "optimiser": lambda v: gvf.updates.TD(0.1, v),
    "secondary": lambda v: gvf.updates.TDC(0.1, v),
    "actions": lambda v: gvf.policies.Uniform(v),
    "action": lambda v: gvf.policies.Always(v, 2),
    "probability": lambda v: gvf.policies.Favour(0, v, 2),
    "rng": lambda v: gvf.policies.Uniform(2).sample([0], rng=v),
    "given policy": lambda v: gvf.policies.ratio(gvf.policies.Uniform(2), [0], [0], behaviour=v),
    "corrections": lambda v: gvf.diagnose([1.0], [1.0], corrections=v),
    "stream": lambda v: gvf.collect(v, gvf.policies.Uniform(2), 3),
    "returns": lambda v: gvf.held_out_returns(v, QUESTION),
}


@pytest.mark.parametrize("kind", LONG)
@pytest.mark.parametrize("place", WRONG_PLACES)
def test_a_long_value_in_the_wrong_place_is_abbreviated(place, kind):
    with pytest.raises((TypeError, ValueError)) as refused:
        WRONG_PLACES[place](LONG[kind])
    message = str(refused.value)
    assert len(message) < 300
    assert "truth value" not in message
    assert "not supported between" not in message
    assert "inhomogeneous" not in message


def test_short_values_are_written_out_and_long_ones_are_not():
    assert brief("IR") == "'IR'"
    assert brief(np.array([1.0, 2.0])) == "array([1., 2.])"
    assert brief(np.zeros((7, 3), np.float32)) == "an array float32[7, 3]"
    assert brief(list(range(1000))).startswith("a list of 1000: [0, 1, 2")
    assert max(len(brief(value)) for value in LONG.values()) == 80


@pytest.mark.parametrize(
    "take",
    [
        lambda n: learner(window=n),
        lambda n: learner(batch_size=n),
        lambda n: learner(update_every=n),
        lambda n: learner(warm_up=n),
        lambda n: learner().learn([LOG], steps=n),
        lambda n: learner().learn([LOG], act_steps=n),
        lambda n: gvf.collect(None, gvf.policies.Uniform(2), n),  # pyright: ignore
        lambda n: gvf.held_out_returns(None, QUESTION, states=n),  # pyright: ignore
        lambda n: gvf.Window(n),
        lambda n: gvf.RatioRing(n),
        lambda n: gvf.RatioRing(3).sample(n),
        lambda n: gvf.SumTree(n),
        lambda n: gvf.features.OneHot(n),
        lambda n: gvf.features.TileCoder([0.0], [1.0], tilings=n),
        lambda n: gvf.diagnose([1.0], [1.0], batch_size=n),
    ],
)
def test_a_count_that_is_a_float_is_refused_in_a_sentence(take):
    with pytest.raises(TypeError, match=r"must be an integer, and 1000\.0 is a float: write 1000"):
        take(1e3)


def test_a_count_is_an_integer_of_any_kind():
    assert whole("steps", np.int32(5), 0) == 5
    with pytest.raises(TypeError, match=r"^steps must be an integer, got 2\.5$"):
        whole("steps", 2.5, 0)
    with pytest.raises(ValueError, match=r"^steps must be at least 0, got -1$"):
        whole("steps", -1, 0)


def test_rows_of_different_shapes_are_named():
    with pytest.raises(
        ValueError, match=r"the rows of it differ in shape: row 0 has \(2,\), row 2"
    ):
        as_array([[0, 1], [2, 3], [4]], "it")
