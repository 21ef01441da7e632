"""One Dict observation, a list of them, or a batch: wherever states go in."""

import warnings
from functools import partial
from itertools import pairwise
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete
from gymnasium.vector import SyncVectorEnv

import gvf
from gvf import online
from gvf.common.fields import as_states
from gvf.stream.observations import Observations
from gvf.transition import as_transitions

QUESTION = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9)
LIKELY = gvf.policies.Uniform(2)
SPACES = {
    "number": Dict(position=Box(-1, 1, (2,)), door=Discrete(2)),
    "maze": Dict(agent=Box(-1, 1, (2,)), target=Box(-1, 1, (2,))),
    "one": Dict(agent=Box(-1, 1, (1,)), target=Box(-1, 1, (1,))),
    "nested": Dict(
        at=Dict(p=Box(-1, 1, (2,)), q=Discrete(3)), image=Box(0, 255, (2, 2, 3), np.uint8)
    ),
    "images": Dict(left=Box(0, 255, (2, 2), np.uint8), right=Box(0, 255, (2, 2), np.uint8)),
}  # fmt: skip


class Drawn(gym.Env[Any, Any]):
    """Observations drawn from a space; an episode ends after seven steps."""

    action_space: gym.Space[Any] = Discrete(2)

    def __init__(self, space: Any) -> None:
        self.observation_space = space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.steps = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), 1.0, self.steps == 7, False, {}


def flat(states: Any) -> Any:
    """All numbers of a state; a function of structured arrays only."""
    parts = [states[name] for name in states.dtype.names]
    columns = [flat(p) if p.dtype.names else p.reshape(len(states), -1) / 255 for p in parts]
    return np.concatenate(columns, axis=1)


def rows(space: Any, count: int) -> list[dict[str, Any]]:
    space.seed(0)
    seen = [space.sample() for _ in range(count + 1)]
    return [
        {"state": one, "action": at % 2, "reward": 1.0, "next_state": after, "terminated": at == 5}
        for at, (one, after) in enumerate(pairwise(seen))
    ]


def together(space: Any, seen: list[Any]) -> Any:
    """Observations as a vector environment gives them."""
    arrays = gym.vector.utils.create_empty_array(space, len(seen))
    return gym.vector.utils.concatenate(space, seen, arrays)


def learners(space: Any) -> dict[str, Any]:
    width = flat(Observations(space).one(space.sample())).shape[1]
    dense = gvf.features.Dense(width, flat)
    asked = gvf.question_grid(
        {"a": gvf.policies.Always(0, 2), "b": LIKELY}, {"reward": "reward"}, [0.5, 0.9]
    )
    return {
        "learner": gvf.Learner(QUESTION, dense, gvf.updates.TD(0.1), behaviour=LIKELY, seed=0),
        "lanes": gvf.Learner(QUESTION, dense, gvf.updates.TD([0.1, 0.2]), behaviour=LIKELY, seed=0),
        "online": gvf.OnlineLearner(QUESTION, dense, online.TDLambda(0.1), behaviour=LIKELY),
        "least squares": gvf.LSTDLearner(QUESTION, dense, behaviour=LIKELY),
        "horde": gvf.Horde(asked, dense, gvf.updates.TD(0.1), behaviour=LIKELY, seed=0),
    }


KINDS = list(learners(SPACES["number"]))


@pytest.mark.parametrize("space", SPACES.values(), ids=SPACES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_observation_is_one_state_and_a_list_as_many(kind, space, tmp_path):
    one, other = rows(space, 2)[0]["state"], rows(space, 2)[1]["state"]
    learner = learners(space)[kind]
    for row in rows(space, 6):
        learner.observe(**row)
    batch = Observations(space).many(together(space, [one, other]), 2)
    expected = learner.predict(batch)
    assert expected.shape[0] == 2
    learner.export(tmp_path / "exported")
    learner.save(tmp_path / "saved")
    again = learners(space)[kind].load(tmp_path / "saved")
    for predictor in (learner, again, gvf.load(tmp_path / "exported", trust=[__name__])):
        for states, right in (
            (one, expected[:1]),
            ([one], expected[:1]),
            ([other, one], expected[::-1]),
            (batch, expected),
            (batch[1], expected[1:]),
            (batch[0, ...], expected[:1]),
            (dict(reversed(one.items())), expected[:1]),
            ({**one, "another": np.zeros(7)}, expected[:1]),
        ):
            np.testing.assert_allclose(predictor.predict(states), right, rtol=1e-12)
        arrays = together(space, [one, other, one])
        np.testing.assert_allclose(predictor.predict(arrays), expected[[0, 1, 0]], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_vector_environments_and_single_ones_teach_the_same_fields(kind):
    space = SPACES["maze"]
    learner = learners(space)[kind]
    learner.learn(SyncVectorEnv([partial(Drawn, space)] * 3), steps=12, seed=0)
    arrays = {name: np.zeros((2, 2)) for name in ("agent", "target")}
    assert len(learner.predict(arrays)) == 2
    assert len(learner.predict(space.sample())) == 1


def test_a_lane_knows_the_fields_that_its_learner_knows():
    space = SPACES["maze"]
    learner = learners(space)["lanes"]
    learner.learn(Drawn(space), steps=10, seed=0)
    one = space.sample()
    assert learner.lane(1).predict(one).tolist() == learner.predict(one)[:, 1].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_fit_the_fields_is_named(kind):
    learner = learners(SPACES["number"])[kind]
    for row in rows(SPACES["number"], 6):
        learner.observe(**row)
    for states, message in (
        ({"position": np.zeros(3), "door": 1}, r"'position' has the shape \(3,\); one state has"),
        ({"position": np.zeros((3, 2)), "door": 1}, r"'position' has the shape \(3, 2\); one"),
        ({"position": np.zeros((3, 2)), "door": [1, 0]}, r"'position' has the shape \(3, 2\)"),
        ({"colour": 3}, "a state has the fields position, door, and got"),
        ([{"position": np.zeros((3, 2)), "door": [1] * 3}], "this has a batch in it"),
    ):
        with pytest.raises(ValueError, match=message):
            learner.predict(states)


def test_without_a_type_what_may_be_both_is_refused():
    assert len(as_states({"position": np.zeros(2), "door": 1})) == 1
    assert len(as_states({"position": np.zeros(2), "goal": np.zeros(3)})) == 1
    for states in ({"agent": [0, 1], "target": [2, 3]}, {"a": {"b": [1], "c": [2]}}):
        with pytest.raises(ValueError, match=r"may be one state or a batch of [12]: .* \[state\]"):
            as_states(states)
        assert len(as_states([states])) == 1


def doors(states: Any) -> Any:
    return np.where(states["door"][:, None] == 1, [0.0, 1.0], [1.0, 0.0])


@pytest.mark.parametrize(
    "policy",
    [
        gvf.policies.Uniform(2),
        gvf.policies.Fixed([0.2, 0.8]),
        gvf.policies.Function(doors, actions=2),
        gvf.policies.Mixture(gvf.policies.Function(doors, 2), gvf.policies.Uniform(2), 0.5),
        gvf.policies.Gaussian(lambda states: states["position"], 0.1),
        gvf.policies.Function(lambda states: doors(states)),
    ],
    ids=str,
)
def test_policies_draw_one_action_for_an_observation(policy):
    closed, opened = {"position": [0.5, 1.0], "door": 0}, {"position": [1.5, 2.0], "door": 1}
    array = Observations(SPACES["number"]).one(closed)
    for states, count in ((closed, 1), ([closed], 1), ([closed, opened], 2), (array, 1)):
        expected = len(as_states(states))
        assert expected == count
        actions, likelihood = policy.act(states, rng=np.random.default_rng(0))
        again = policy.sample(states, rng=np.random.default_rng(0))
        assert (actions == again).all()
        assert len(actions) == len(likelihood) == count
        assert policy.probability(states, actions).shape == (count,)
        assert policy.log_probability(states, actions).shape == (count,)
        if isinstance(policy, gvf.policies.DiscretePolicy):
            assert policy.probabilities(states).shape == (count, 2)


class Mine(gvf.policies.DiscretePolicy):
    """A policy of a user, who reads fields."""

    actions = 2

    def probabilities(self, states: Any) -> Any:
        return doors(states)


def test_a_policy_of_ones_own_gets_a_batch():
    opened = {"position": [1.5, 2.0], "door": 1}
    rng = np.random.default_rng(0)
    assert Mine().sample(opened, rng=rng).tolist() == [1]
    assert Mine().act(opened, rng=rng)[0].tolist() == [1]
    assert Mine().probability([opened] * 2, [0, 1]).tolist() == [0.0, 1.0]


def test_features_take_an_observation():
    dense = gvf.features.Dense(2, lambda states: states["position"])
    assert dense({"position": [0.5, 1.0], "door": 1}).tolist() == [[0.5, 1.0]]
    tiles: Any = gvf.features.TileCoder([0.0], [1.0])
    observation = {"position": [0.5], "door": 1}
    with pytest.raises(ValueError, match="TileCoder takes arrays, and these states have the field"):
        tiles(observation)


def test_columns_of_a_dict_are_the_numbers_of_its_fields():
    space = SPACES["nested"]
    batch = as_transitions(rows(space, 5))
    after = batch.next_state
    columns = [gvf.SignalBank("next_state", 15)[str(i)](batch) for i in range(15)]
    expected = [*after["at"]["p"].T, after["at"]["q"], *after["image"].reshape(5, -1).T]
    np.testing.assert_array_equal(columns, expected)
    asked = gvf.question_grid({"a": LIKELY}, gvf.SignalBank("next_state", 15), [0.0])
    dense = gvf.features.Dense(15, flat)
    horde = gvf.Horde(asked, dense, gvf.updates.TD(0.1), behaviour=LIKELY, seed=0)
    horde.learn(Drawn(space), steps=8, seed=0)
    assert horde.predict(space.sample()).shape == (1, 15)


@pytest.mark.parametrize("kind", KINDS)
def test_the_prediction_for_a_state_with_a_nan_is_nan(kind, tmp_path):
    def made(on_nan: Any) -> Any:
        tiles = gvf.features.TileCoder([0.0, 0.0], [1.0, 1.0], tilings=4)
        more: dict[str, Any] = {"behaviour": LIKELY, "on_nan": on_nan}
        asked = gvf.question_grid(
            {"a": gvf.policies.Always(0, 2)}, {"reward": "reward"}, [0.5, 0.9]
        )
        if kind == "horde":
            return gvf.Horde(asked, tiles, gvf.updates.TD(0.1), seed=0, **more)
        if kind == "online":
            return gvf.OnlineLearner(QUESTION, tiles, online.TDLambda(0.1), **more)
        if kind == "least squares":
            return gvf.LSTDLearner(QUESTION, tiles, **more)
        step = gvf.updates.TD([0.1, 0.2] if kind == "lanes" else 0.1)
        return gvf.Learner(QUESTION, tiles, step, seed=0, **more)

    nan = float("nan")
    states = [[0.1, 0.2], [nan, 0.2], [0.3, 0.4]]
    for on_nan in ("skip", "error"):
        learner = made(on_nan)
        learner.observe([0.1, 0.2], 0, 1.0, [0.3, 0.4], False)
        learner.export(tmp_path / "exported")
        for predictor in (learner, gvf.load(tmp_path / "exported")):
            if on_nan == "error":
                with pytest.raises(ValueError, match="number 0 of the state in row 1 is nan"):
                    predictor.predict(states)
                continue
            found = predictor.predict(states)
            assert np.isnan(found[1]).all()
            np.testing.assert_allclose(found[[0, 2]], learner.predict(states[::2]), rtol=1e-12)
            assert np.isnan(predictor.predict([states[1]])).all()


def test_a_nan_in_a_field_is_a_nan():
    learner = gvf.Learner(
        QUESTION,
        gvf.features.Dense(2, lambda s: s["position"]),
        gvf.updates.TD(0.1),
        behaviour=LIKELY,
        on_nan="skip",
        seed=0,
    )
    one = {"position": np.array([0.5, 1.0]), "door": 1.0}
    learner.observe(one, 0, 1.0, one, False)
    assert not np.isnan(learner.predict(one)).any()
    assert np.isnan(learner.predict({**one, "door": np.nan})).tolist() == [True]


@pytest.mark.parametrize("kind", KINDS)
def test_a_list_of_rows_goes_wherever_transitions_go(kind):
    space = SPACES["number"]
    listed, learned, many = (learners(space)[kind] for _ in range(3))
    listed.observe(rows(space, 6))
    learned.learn(rows(space, 6))
    many.observe(as_transitions(rows(space, 6)))
    fitted = learners(space)[kind]
    fitted.fit(rows(space, 6), order="log", progress=False)
    one = space.sample()
    for other in (learned, many, fitted):
        np.testing.assert_array_equal(listed.predict(one), other.predict(one))


def test_questions_and_windows_take_a_list_of_rows():
    listed = rows(SPACES["number"], 6)
    batch = as_transitions(listed)
    for mine, other in zip(
        QUESTION.evaluate(listed, behaviour=LIKELY),
        QUESTION.evaluate(batch, behaviour=LIKELY),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, other)
    assert QUESTION.ratios(listed, behaviour=LIKELY).tolist() == [2.0, 0.0] * 3
    for method in (QUESTION.cumulants, QUESTION.continuations, QUESTION.interests):
        assert method(listed).tolist() == method(batch).tolist()


def test_a_horde_takes_a_list_for_its_errors_and_its_page(tmp_path):
    space = SPACES["number"]
    asked = gvf.question_grid({"always": gvf.policies.Always(0, 2)}, {"reward": "reward"}, [0.0])
    horde = gvf.Horde(asked, gvf.features.Dense(3, flat), gvf.updates.TD(0.1), seed=0)
    listed = [{**row, "action": 0, "behaviour_probability": 1.0} for row in rows(space, 30)]
    horde.learn(listed)
    with warnings.catch_warnings(action="ignore"):
        errors = horde.stream_error(listed)
        batch = horde.stream_error(as_transitions(listed))
    assert repr(errors) == repr(batch)
    horde.page(tmp_path / "page.html", stretch=listed)


@pytest.mark.parametrize("given", [{"state": [0, 1]}, "rows", 3])
def test_what_is_no_list_of_rows_is_refused(given):
    with pytest.raises(TypeError, match=r"expected gvf\.Transitions, or a list of mappings"):
        QUESTION.cumulants(given)


def test_a_tuple_of_unlike_parts_is_named():
    learner = learners(SPACES["number"])["learner"]
    with pytest.raises(ValueError, match="the rows of 'state' differ in shape"):
        learner.observe((np.zeros(2), 1), 0, 1.0, (np.zeros(2), 1), False)


def test_plain_arrays_are_batches_as_before():
    learner = gvf.Learner(
        QUESTION, gvf.features.OneHot(5), gvf.updates.TD(0.5), behaviour=LIKELY, seed=0
    )
    learner.observe(3, 0, 1.0, 2, False)
    assert learner.predict([3]).tolist() == [0.5]
    assert learner.predict([[3, 2], [2, 3]][0]).tolist() == [0.5, 0.0]
    with pytest.raises(ValueError, match="the states of OneHot are a batch of integers"):
        learner.predict(3)
    tiles = gvf.Learner(
        QUESTION,
        gvf.features.TileCoder([0, 0], [1, 1]),
        gvf.updates.TD(0.5),
        behaviour=LIKELY,
        seed=0,
    )
    with pytest.raises(ValueError, match=r"states must be a batch \[m, 2\], got shape \(2,\)"):
        tiles.predict([0.5, 0.5])


def test_a_judge_takes_a_list_of_rows():
    space = SPACES["number"]
    listed = [
        {**row, "terminated": at % 2 == 1, "behaviour_probability": 0.5}
        for at, row in enumerate(rows(space, 40))
    ]
    learner = learners(space)["learner"]
    learner.learn(listed)
    judged = gvf.compare_learners({"mine": learner}, listed, replicates=50, seed=0)
    other = gvf.compare_learners({"mine": learner}, as_transitions(listed), replicates=50, seed=0)
    assert repr(judged) == repr(other)


@pytest.mark.parametrize("method", ["td", "lstd"])
def test_intervals_take_an_observation(method):
    walks = [
        {
            "obs": {"position": np.random.default_rng(i).random((3, 2)), "door": [0, 1, 0]},
            "action": [i % 2, 1], "reward": [1.0 * (i % 3), 0.5], "terminated": True,
        }
        for i in range(60)
    ]  # fmt: skip
    log = gvf.read_log(walks, quiet=True)
    learner = learners(SPACES["number"])["learner"]
    intervals = gvf.bootstrap(learner, log, method=method, replicates=39, seed=1)
    one = {"position": np.array([0.5, 0.5]), "door": 1}
    assert [len(part) for part in intervals.predict(one)] == [1, 1, 1]
    assert [len(part) for part in intervals.predict([one, one])] == [2, 2, 2]


@pytest.mark.parametrize("on_nan", ["error", "skip"])
def test_no_states_have_no_predictions(on_nan: Any) -> None:
    question = gvf.GVF(gvf.policies.Always(1, actions=2))
    learner = gvf.Learner(question, gvf.features.Dense(2), gvf.updates.TD(0.1), on_nan=on_nan)
    assert learner.predict(np.zeros((0, 2))).shape == (0,)
