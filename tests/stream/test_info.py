"""Values of info as columns."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from ladders import MODES, Ladder, Rover, assert_equal, assert_told, fields, gathered, ladders

import gvf
from gvf.policies import Favour, Uniform
from gvf.stream import Actor, Walk, collect
from gvf.stream.infos import STANDARD, Info, info_columns


@pytest.mark.parametrize("size", [1, 7, 200])
def test_values_of_info_are_columns(size):
    batches = list(
        collect(Rover(), Uniform(2), 100, seed=0, batch=size, info=["rung", "both", "flag"])
    )
    columns = gathered(batches)
    assert list(columns)[-3:] == ["rung", "both", "flag"]
    assert_told(columns)
    assert columns["flag"].tolist() == (columns["rung"] % 2).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_values_of_info_of_a_vector_are_those_of_the_step_and_not_of_a_reset(mode):
    env = SyncVectorEnv([Rover] * 3, autoreset_mode=mode)
    columns = gathered(collect(env, Uniform(2), 200, seed=0, info=("rung", "both", "flag", "rung")))
    assert list(columns)[-4:] == ["stream", "rung", "both", "flag"]
    assert_told(columns)
    assert columns["flag"].tolist() == (columns["rung"] % 2).tolist()
    assert (columns["terminated"] | columns["truncated"]).sum() > 20


def test_a_stream_with_info_is_the_same_stream():
    plain = gathered(collect(Rover(), Uniform(2), 50, seed=0))
    told = gathered(collect(Rover(), Uniform(2), 50, seed=0, info=["rung"]))
    del told["rung"]
    assert_equal(plain, told)


class Tells(gym.Env[Any, Any]):
    """Gives the infos that it was made with, one a step; episodes of 3 steps."""

    observation_space: gym.Space[Any] = Discrete(100)
    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self, *infos: dict[str, Any]) -> None:
        self.infos, self.time = infos, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.time % 100, {"x": -99.0}

    def step(self, action):
        info = self.infos[self.time % len(self.infos)]
        self.time += 1
        return self.time % 100, 0.0, self.time % 3 == 0, False, info


BAD_INFOS = {
    "missing": (
        [{"x": 1.0}, {"x": 2.0}, {"y": 1, "z": 2}],
        r"has no 'x' at step 2 \(from 0\).*; it has: y, z",
    ),
    "empty": ([{"x": 1.0}, {}], r"has no 'x' at step 1 \(from 0\).*; it has: nothing"),
    "text": ([{"x": 1.0}, {"x": "far"}], r"info\['x'\] is .*'far'.* at step 1 .* neither a number"),
    "none": ([{"x": None}], r"info\['x'\] is None at step 0 .* neither a number"),
    "mapping": ([{"x": {"a": 1}}], r"info\['x'\] is .*at step 0 "),
    "ragged": ([{"x": [[1], [1, 2]]}], r"info\['x'\] is \[\[1\], \[1, 2\]\] at step 0 .* neither"),
    "shape": (
        [{"x": np.zeros(2)}, {"x": np.zeros(3)}],
        r"info\['x'\] has shape \(3,\) at step 1 \(from 0\), and had \(2,\) before",
    ),
    "list": (
        [{"x": [0, 1]}, {"x": [0]}],
        r"info\['x'\] has shape \(1,\) at step 1 \(from 0\), and had \(2,\) before",
    ),
}


@pytest.mark.parametrize(("infos", "message"), BAD_INFOS.values(), ids=BAD_INFOS)
def test_a_bad_value_of_info_is_an_error_after_the_transitions_before_it(infos, message):
    seen = []
    with pytest.raises(ValueError, match=message):
        seen.extend(iter(collect(Tells(*infos), Uniform(2), 9, seed=0, info=["x"])))
    seen = []
    stream = collect(Tells(*infos), Uniform(2), 9, seed=0, batch=9, info=["x"])
    good = len(infos) - 1
    if good:
        assert len(next(stream)) == good
    with pytest.raises(ValueError, match=message):
        next(stream)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("infos", "message"),
    [case for name, case in BAD_INFOS.items() if name not in ("text", "shape")],
    ids=[name for name in BAD_INFOS if name not in ("text", "shape")],
)
def test_a_bad_value_of_info_in_a_vector_is_an_error(infos, message, mode):
    good = {"x": infos[0]["x"]}
    makers = [lambda: Tells(good), lambda: Tells(*infos)]
    env = SyncVectorEnv(makers, autoreset_mode=mode)
    with pytest.raises(ValueError, match=message):
        list(collect(env, Uniform(2), 18, seed=0, info=["x"]))


def test_a_value_missing_at_the_end_of_an_episode_is_not_that_of_the_reset():
    makers = [lambda: Tells({"x": 1.0}), lambda: Tells({"x": 1.0}, {"x": 1.0}, {"y": 2})]
    env = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
    message = r"info\['final_info'\] has no 'x' at step 2 \(from 0\) in environment 1; it has: y"
    with pytest.raises(ValueError, match=message):
        list(collect(env, Uniform(2), 18, seed=0, info=["x"]))


def test_a_native_vector_must_tell_a_value_for_each_environment():
    info, rows = Info(["x"]), np.arange(2)
    assert info.many({"x": np.array([1, 2])}, rows)["x"].tolist() == [1.0, 2.0]
    for bad in (3.0, np.zeros(1)):
        with pytest.raises(ValueError, match=r"at step 1 .* should have one value for each"):
            info.many({"x": bad}, rows)


@pytest.mark.parametrize("name", STANDARD)
def test_a_value_of_info_cannot_take_the_place_of_a_standard_column(name):
    for env in (Ladder(), ladders(2, AutoresetMode.NEXT_STEP)):
        with pytest.raises(ValueError, match=f"info={name!r} would take the place of the column"):
            collect(env, Uniform(2), 10, info=[name])


@pytest.mark.parametrize("names", ["rung", [3], [None]])
def test_info_must_be_names(names):
    with pytest.raises(TypeError, match=r"info must name values, as in info=\(\"distance\",\)"):
        collect(Rover(), Uniform(2), 10, info=names)


def test_values_are_copied_out_of_the_buffer_of_an_environment():
    class Careless(Tells):
        buffer = np.zeros(2)

        def step(self, action):
            self.buffer += 1
            self.infos = ({"x": self.buffer},)
            return super().step(action)

    for size in (1, 20):
        Careless.buffer = np.zeros(2)
        columns = gathered(collect(Careless(), Uniform(2), 20, batch=size, info=["x"]))
        assert columns["x"].tolist() == [[n, n] for n in range(1, 21)]
    buffer = np.zeros(2)
    kept = Info(["x"]).one({"x": buffer})
    buffer[:] = 1
    assert kept["x"].tolist() == [0.0, 0.0]


def test_steps_count_from_the_start_of_a_walk():
    walk = Walk(Tells({"x": 1.0}, {"x": 1.0}, {"x": 1.0}, {"x": 1.0}, {}), ["x"])
    actor, rng = Actor(Uniform(2), walk.env.action_space), np.random.default_rng(0)
    walk.start(0)
    for _ in range(3):
        walk.step(actor, rng)
    walk.start(0)
    walk.step(actor, rng)
    with pytest.raises(ValueError, match="at step 1"):
        walk.step(actor, rng)


def test_the_values_that_a_question_names_are_found():
    assert info_columns(gvf.GVF(Uniform(2), "reward")) == ()
    assert info_columns(gvf.GVF(Uniform(2), "rung")) == ("rung",)
    assert info_columns(gvf.GVF(Uniform(2), lambda t: t.rung)) == ()
    assert info_columns(gvf.GVF(Uniform(2), "rung"), ["both", "rung"]) == ("rung", "both")
    for name in STANDARD:
        assert info_columns(gvf.GVF(Uniform(2), name)) == ()


@pytest.mark.parametrize("make", [Rover, lambda: SyncVectorEnv([Rover] * 3)])
def test_a_learner_asks_for_the_values_that_its_question_names(make):
    def learner(cumulant):
        question = gvf.GVF(Favour(1, 0.7, 2), cumulant, 0.9)
        features = gvf.features.Dense(3, fields)
        return gvf.Learner(question, features, gvf.updates.TD(0.05), behaviour=Uniform(2), seed=0)

    named, function, same = (
        learner(c) for c in ("rung", lambda t: t.rung, lambda t: t.next_state["place"][:, 0])
    )
    named.learn(make(), 100, seed=0)
    function.learn(make(), 100, seed=0, info=["rung"])
    same.learn(make(), 100, seed=0)
    assert named.weights.tolist() == function.weights.tolist() == same.weights.tolist()
    with pytest.raises(ValueError, match=r"info has no 'rang' at step 0 .*; it has: rung, both"):
        learner("rang").learn(make(), 100, seed=0)
    with pytest.raises(ValueError, match="info names values of an environment"):
        named.learn([], info=["rung"])
