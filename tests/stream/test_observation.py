"""Dict observations as structured arrays."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Graph, MultiBinary, Sequence, Text, Tuple
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
from ladders import MODES, Rover, Shelf, assert_told, climbs, fields, gathered

import gvf
from gvf.policies import Favour, Function, Uniform
from gvf.stream import collect
from gvf.stream.observations import Observations


def assert_rover(columns):
    state, after, action = columns["state"], columns["next_state"], columns["action"]
    for states in (state, after):
        rung, time = states["place"].T
        assert states["place"].dtype == np.int64
        assert (states["flag"] == np.stack([rung % 2, 1 + 0 * rung, 0 * rung], 1)).all()
        assert (states["inner"]["picture"] == (rung % 256)[:, None, None]).all()
        assert states["inner"]["picture"].dtype == np.uint8
        assert (states["level"] == rung / 4).all()
        assert (states["pair"] == np.stack([time, 1 + 0 * time], 1)).all()
    assert (after["place"] == state["place"] + np.stack([1 + action, 1 + 0 * action], 1)).all()
    assert (after["inner"]["episode"] == state["inner"]["episode"]).all()
    assert (columns["terminated"] == (after["place"][:, 0] >= 6)).all()
    assert (columns["truncated"] == (after["place"][:, 1] == 4)).all()
    assert columns["terminated"].any()
    expected = Function(climbs, 2).probability(state, action)
    assert (columns["behaviour_probability"] == expected).all()


@pytest.mark.parametrize("size", [1, 7, 200])
def test_a_dict_observation_is_a_structured_array(size):
    batches = list(collect(Rover(), Function(climbs, 2), 100, seed=0, batch=size))
    assert batches[0].state.shape == (min(size, 100),)
    assert batches[0].state["place"].shape == (min(size, 100), 2)
    assert batches[0].state["level"].shape == (min(size, 100),)
    assert_rover(gathered(batches))


@pytest.mark.parametrize("copy", [False, True])
@pytest.mark.parametrize("mode", MODES)
def test_dict_observations_of_a_vector_are_structured_arrays(mode, copy):
    env = SyncVectorEnv([Rover] * 3, copy=copy, autoreset_mode=mode)
    columns = gathered(collect(env, Function(climbs, 2), 150, seed=0))
    assert_rover(columns)
    assert columns["state"].dtype == Observations(Rover.observation_space).dtype


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_dict_observations_and_info_of_other_processes(mode):
    env = AsyncVectorEnv([Rover] * 2, autoreset_mode=mode)
    try:
        columns = gathered(collect(env, Function(climbs, 2), 60, seed=0, info=["rung", "both"]))
    finally:
        env.close()
    assert_rover(columns)
    assert_told(columns)


class Natively(gym.vector.VectorEnv[Any, Any, Any]):
    """Two counters that are a vector by themselves, and give their last observations as arrays."""

    num_envs = 2
    single_observation_space: gym.Space[Any] = Dict(count=Discrete(9))
    single_action_space: gym.Space[Any] = Discrete(2)

    def __init__(self) -> None:
        self.metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}
        self.count = np.zeros(2, np.int64)

    def reset(self, *, seed=None, options=None):
        self.count[:] = 0, 2
        return {"count": self.count}, {}

    def step(self, actions):
        self.count += 1
        over, last = self.count == 4, self.count.copy()
        self.count[over] = 0
        info: dict[str, Any] = {"double": np.where(over, -1, 2 * last)}
        if over.any():
            info |= {"final_obs": {"count": last}, "final_info": {"double": 2 * last}}
        return {"count": self.count}, np.zeros(2), over, np.zeros(2, bool), info


def test_a_native_vector_may_give_its_last_observations_and_info_as_arrays():
    columns = gathered(collect(Natively(), Uniform(2), 40, seed=0, info=["double"]))
    assert (columns["next_state"]["count"] == columns["state"]["count"] + 1).all()
    assert (columns["terminated"] == (columns["next_state"]["count"] == 4)).all()
    assert columns["double"].tolist() == (2.0 * columns["next_state"]["count"]).tolist()


@pytest.mark.parametrize(
    "space", [Text(3), Sequence(Discrete(2)), Graph(Discrete(2), None), Tuple([Discrete(2)])]
)
def test_other_spaces_in_a_dict_are_an_error_that_names_the_key(space):
    nested = Dict(good=Discrete(2), inner=Dict(strange=space))
    with pytest.raises(ValueError, match=r"'inner'\['strange'\] is .*no array; wrap") as told:
        collect(Shelf(Discrete(2), nested), Uniform(2), 1)
    assert "TransformObservation" in str(told.value)
    assert "FilterObservation" in str(told.value)
    with pytest.raises(ValueError, match=r"'strange' is .*no array; wrap"):
        collect(Shelf(Discrete(2), Dict(strange=space)), Uniform(2), 1)


def test_a_dict_without_keys_or_with_keys_that_are_no_text_is_refused():
    with pytest.raises(ValueError, match="Dict without keys"):
        Observations(Dict())
    with pytest.raises(ValueError, match="'s 'a' is a Dict without keys"):
        Observations(Dict(a=Dict()))
    for key in (7, ""):
        strange: Any = {key: Discrete(2)}
        with pytest.raises(ValueError, match=f"has the key {key!r}, and the name of a field must"):
            Observations(Dict(strange))


@pytest.mark.parametrize(
    ("observation", "message"),
    [
        ({"a": np.zeros(2)}, "lacks 'b', a key of its space; it has: a"),
        ({"a": np.zeros(3), "b": {"c": 0}}, r"'a' has shape \(3,\); by its space .* \(2,\)"),
        ({"a": 0.0, "b": {"c": 0}}, r"'a' has shape \(\); by its space it should be \(2,\)"),
        ({"a": np.zeros(2), "b": {"c": [1, 2]}}, r"'b'\['c'\] has shape \(2,\)"),
        ({"a": np.zeros(2), "b": 3}, "'s 'b' is a int, and its space is a Dict with the keys c"),
        (np.zeros(2), "observation is a ndarray, and its space is a Dict with the keys a, b"),
    ],
)
def test_observations_that_do_not_fit_their_space_are_an_error(observation, message):
    observations = Observations(Dict(a=Box(-1, 1, (2,)), b=Dict(c=Discrete(2))))
    with pytest.raises(ValueError, match=message):
        observations.one(observation)


def test_fields_are_aligned_as_compiled_code_and_torch_want_them():
    dtype = Observations(Dict(a=MultiBinary(3), b=Dict(c=Box(0, 1, (2,), np.float64)))).dtype
    states = np.zeros(3, dtype)
    assert states["b"]["c"].flags.aligned
    assert states.strides[0] % 8 == 0


@pytest.mark.parametrize("make", [Rover, lambda: SyncVectorEnv([Rover] * 3)])
def test_a_learner_learns_from_the_fields_of_a_dict(make, tmp_path):
    question = gvf.GVF(Favour(1, 0.7, 2), "reward", 0.9)

    def learner():
        return gvf.Learner(question, features, gvf.updates.TD(0.05), behaviour=Uniform(2), seed=0)

    features = gvf.features.Dense(3, fields)
    first, second = learner(), learner()
    first.learn(make(), 200, seed=0)
    batches = list(collect(make(), Uniform(2), 200, seed=0))
    for batch in batches:
        second.observe(batch)
    assert first.weights.tolist() == second.weights.tolist()
    assert np.abs(first.weights).min() > 0

    first.save(tmp_path / "learner")
    again = gvf.load(tmp_path / "learner", trust=["ladders"])
    for one in (first, again):
        one.learn(make(), 100, seed=1)
    assert first.weights.tolist() == again.weights.tolist()
    states = batches[-1].state
    assert again.predict(states).tolist() == first.predict(states).tolist()
    assert first.predict(states).shape == (len(states),)


def test_a_learner_observes_dicts_in_a_loop_of_ones_own():
    question = gvf.GVF(Favour(1, 0.7, 2), "reward", 0.9)
    learners = [
        gvf.Learner(
            question,
            gvf.features.Dense(3, fields),
            gvf.updates.TD(0.05),
            behaviour=Uniform(2),
            seed=0,
        )
        for _ in range(3)
    ]
    env, rows = Rover(), []
    state, _ = env.reset(seed=0)
    for action in [0, 1, 0]:
        after, reward, terminated, truncated, _ = env.step(action)
        rows.append(
            {
                "state": state,
                "action": action,
                "reward": reward,
                "next_state": after,
                "terminated": terminated,
                "truncated": truncated,
            }
        )
        learners[0].observe(**rows[-1])
        state = after
    learners[1].learn(rows)
    space = Observations(env.observation_space)
    for row in rows:
        row["state"], row["next_state"] = (
            space.one(row[name])[0] for name in ("state", "next_state")
        )
    learners[2].learn(rows)
    for learner in learners[1:]:
        assert learner.weights.tolist() == learners[0].weights.tolist()
    batch = {"place": [[3, 1]], "flag": [[1, 1, 0]]}
    assert learners[0].predict(batch).shape == (1,)


def test_what_takes_no_fields_says_so():
    states = Observations(Rover.observation_space).one(Rover().observation())
    maps = (gvf.features.OneHot(3), gvf.features.Dense(3), gvf.features.TileCoder([0.0], [1.0]))
    for features, what in zip(maps, ("OneHot", "Dense without", "TileCoder"), strict=True):
        with pytest.raises(
            ValueError, match=rf"{what}.* the fields place, flag, .*gvf\.features\.Dense"
        ):
            features(states)
    torch, neural = pytest.importorskip("torch"), pytest.importorskip("gvf.neural")
    learner = neural.NeuralLearner(
        gvf.GVF(Uniform(2)), torch.nn.Linear(3, 1), torch.optim.SGD, behaviour=Uniform(2)
    )
    with pytest.raises(ValueError, match=r"a network takes arrays, .*FlattenObservation"):
        learner.learn(Rover(), 10)
    with pytest.raises(ValueError, match=r"a network takes arrays, .*FlattenObservation"):
        learner.predict(states)
