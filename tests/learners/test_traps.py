"""Traps for new users: mistakes that a learner must report instead of staying silent."""

from functools import partial

import grid_world
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from own_corrections import FollowOn

import gvf

QUESTION = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
BEHAVIOUR = gvf.policies.Uniform(2)


def walk(count, seed=0, **changed):
    """Random states of three numbers, with a reward for action 1."""
    rng = np.random.default_rng(seed)
    states, action = rng.normal(size=(count + 1, 3)), rng.integers(2, size=count)
    columns = {
        "state": states[:-1].copy(),
        "action": action,
        "reward": action.astype(float),
        "next_state": states[1:].copy(),
        "terminated": np.zeros(count, bool),
    }
    return gvf.Transitions(**{**columns, **changed})


def make(update=None, correction=None, features=None, question=QUESTION, **options):
    options = {"behaviour": BEHAVIOUR, "seed": 0, **options}
    return gvf.Learner(
        question,
        features or gvf.features.Dense(3),
        update or gvf.updates.TD(0.01),
        correction or gvf.corrections.IR(),
        **options,
    )


# done


def test_done_without_terminated_is_refused_with_the_way_out():
    row = {"state": 0, "action": 1, "reward": 1.0, "next_state": 1, "done": True}
    for give in (
        lambda: make(features=gvf.features.OneHot(2)).learn([row, row]),
        lambda: gvf.Transitions(**{name: [value] for name, value in row.items()}),
    ):
        with pytest.raises(ValueError, match="a column 'done' and none 'terminated'") as refused:
            give()
        assert "terminated=done, truncated=np.zeros(len(done), bool)" in str(refused.value)
    both = gvf.Transitions(**{name: [value] for name, value in row.items()}, terminated=[True])
    assert "done" in both


# divergence


def test_a_learner_that_diverges_says_so_long_before_its_weights_are_infinite():
    learner = make(gvf.updates.TD(5.0))
    report = learner.learn([walk(100)])
    assert np.isfinite(learner.weights).all()
    assert report.diverged == (0,)
    assert report.largest_return == pytest.approx(10.0)
    largest = np.abs(learner.predict(walk(100).state)).max()
    assert report.largest_predictions == (pytest.approx(largest),)
    sentence = (
        f"predictions up to {largest:.3g}, and no return here can be above 10; take a smaller"
    )
    assert f"DIVERGED in lanes [0]: {sentence} step size" in repr(report)
    with pytest.raises(ValueError, match="this learner has diverged: predictions up to"):
        learner.diagnose()


def test_of_several_step_sizes_only_those_that_diverge_are_named():
    learner = make(gvf.updates.TD([0.001, 5.0]))
    assert learner.learn([walk(100)]).diverged == (1,)
    first, second = learner.diagnose()  # pyright: ignore[reportGeneralTypeIssues]
    assert second is None
    assert first is not None
    assert first.window == 100


def test_large_returns_that_are_right_are_no_divergence():
    """A state that never ends, without discount; and large rewards that have left the window."""
    count = 3000
    standing = dict(
        state=np.zeros(count, int),
        action=np.ones(count, int),
        reward=np.ones(count),
        next_state=np.zeros(count, int),
    )
    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 1.0)
    never_ends = make(gvf.updates.TD(1.0), features=gvf.features.OneHot(1), question=question)
    report = never_ends.learn([gvf.Transitions(**standing)])
    assert max(report.largest_predictions) > 1000
    assert report.diverged == ()

    rare = make(gvf.updates.TD(1.0), features=gvf.features.OneHot(1), window=50)
    rare.learn([gvf.Transitions(**{**standing, "reward": 1e9 * (np.arange(count) < 10)})])
    rare.values.state.weights[:] = 1e9  # as if nothing had been forgotten
    assert rare.report().diverged == ()
    assert rare.report().largest_return == pytest.approx(1e10)


def test_what_was_seen_is_saved(tmp_path):
    learner = make(window=20)
    learner.learn([walk(10, reward=np.full(10, 1e6)), walk(50)])
    learner.save(tmp_path / "learner")
    assert gvf.load(tmp_path / "learner").report() == learner.report()
    assert learner.report().largest_return == pytest.approx(1e7)


def test_a_network_that_diverges_says_so():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    for rate, diverged in ((1e-3, ()), (50.0, (0,))):
        optimiser = partial(torch.optim.SGD, lr=rate)
        network = torch.nn.Linear(3, 1)
        learner = gvf.neural.NeuralLearner(  # pyright: ignore[reportAttributeAccessIssue]
            QUESTION, network, optimiser, behaviour=BEHAVIOUR, seed=0
        )
        assert learner.report().diverged == ()
        report = learner.learn([walk(12, reward=np.zeros(12))])
        assert all(bool(weights.isfinite().all()) for weights in network.parameters())
        assert report.diverged == diverged


# ratios that are not known


def test_ratios_of_an_unknown_behaviour_are_reported_as_unknown():
    learner = make(correction=gvf.corrections.OnPolicy(), behaviour=None, window=30)
    report = learner.learn([walk(20)])
    assert np.isnan([report.mean_ratio, report.max_ratio, report.zero_ratios]).all()
    assert np.isnan(report.effective_sample_size)
    assert "ratios and effective sample size unknown" in repr(report)
    with pytest.raises(ValueError, match="the ratios are not known"):
        learner.diagnose()
    known = walk(29, behaviour_probability=np.full(29, 0.5))
    assert np.isnan(learner.learn([known]).mean_ratio)  # one that is not known is still there
    assert learner.learn([known]).mean_ratio > 0.0


def test_ratios_that_are_known_to_be_1_are_reported():
    learner = make(correction=gvf.corrections.OnPolicy(), behaviour=None)
    ones = walk(20, action=np.ones(20, int), behaviour_probability=np.ones(20))
    assert learner.learn([ones]).effective_sample_size == 20


# NaN


def broken(name, place, count=40):
    data = walk(count)
    data.columns[name][place] = np.nan
    return data


TILES = gvf.features.TileCoder([-3.0] * 3, [3.0] * 3, tiles=2, tilings=4)


@pytest.mark.parametrize(
    ("options", "data", "message"),
    [
        ({}, broken("state", (7, 2)), r"^state\[2\] is nan at position 7; .*on_nan=\"skip\""),
        (
            {"features": TILES},
            broken("next_state", (3, 0)),
            r"^next_state\[0\] is nan at position 3",
        ),
        ({}, broken("reward", 5), "^cumulant 'reward' is nan at position 5; it must be finite"),
        (
            {"question": gvf.GVF(gvf.policies.Uniform(2), lambda t: t.reward + t.next_state[:, 1])},
            broken("reward", 5),
            r"<lambda> is nan at position 5, where reward is nan; it must be finite",
        ),
        (
            {
                "question": gvf.GVF(
                    gvf.policies.Uniform(2), "reward", lambda t: 0.9 + 0.0 * t.next_state[:, 1]
                )
            },
            broken("next_state", (4, 1)),
            r"<lambda> is nan at position 4, where next_state\[1\] is nan; it must be in \[0, 1\]",
        ),
    ],
)
def test_a_nan_is_named_with_its_sensor_and_row_or_left_out(options, data, message):
    learner = make(**options)
    with pytest.raises(ValueError, match=message):
        learner.learn([data])
    skipping, without = make(on_nan="skip", **options), make(**options)
    report = skipping.learn([data])
    assert (report.steps, report.missing) == (39, 1)
    assert "39 steps, 1 transitions left out for a NaN" in repr(report)
    row = int(skipping.question.missing(data).argmax())
    without.learn([gvf.Transitions.concatenate([data[:row], data[row + 1 :]])])
    assert np.array_equal(skipping.weights, without.weights)


def test_a_nan_in_a_field_of_a_dict_is_named_by_its_key():
    count = 10
    lidar = np.zeros((count, 4), np.float32)
    lidar[6, 3] = np.nan
    states = {"door": np.zeros(count, int), "lidar": lidar}
    data = walk(count, state=states, next_state={**states, "lidar": 0 * np.nan_to_num(lidar)})
    features = gvf.features.Dense(4, lambda s: s["lidar"])
    with pytest.raises(ValueError, match=r"^state\['lidar'\]\[3\] is nan at position 6"):
        make(features=features).learn([data])
    assert make(features=features, on_nan="skip").learn([data]).missing == 1


def test_features_that_put_up_with_a_nan_may():
    features = gvf.features.Dense(3, np.nan_to_num)
    assert make(features=features).learn([broken("state", (7, 2))]).steps == 40


def test_a_network_refuses_a_nan_before_its_weights_are_lost():
    torch = pytest.importorskip("torch")
    for on_nan in ("error", "skip"):
        learner = gvf.neural.NeuralLearner(  # pyright: ignore[reportAttributeAccessIssue]
            QUESTION,
            torch.nn.Linear(3, 1),
            partial(torch.optim.SGD, lr=0.01),
            behaviour=BEHAVIOUR,
            on_nan=on_nan,
        )
        if on_nan == "skip":
            assert learner.learn([broken("state", (7, 2))]).missing == 1
            continue
        with pytest.raises(ValueError, match=r"^state\[2\] is nan at position 7"):
            learner.learn([broken("state", (7, 2))])


def test_a_nan_of_an_environment_is_left_out_too():
    class Sensor(gymnasium.Env):
        observation_space, action_space = Box(-9.0, 9.0, (3,), np.float64), Discrete(2)

        def reset(self, *, seed=None, options=None):
            self.steps = 0
            return np.zeros(3), {}

        def step(self, action):
            self.steps += 1
            seen = np.array([0.1, np.nan if self.steps == 70 else 0.2, 0.3])
            return seen, 1.0, False, False, {}

    with pytest.raises(ValueError, match=r"^state\[1\] is nan at position 6") as refused:
        make().learn(Sensor(), steps=100, seed=0)
    assert refused.value.__notes__ == ["Positions count from transition 64 of the source."]
    report = make(on_nan="skip").learn(Sensor(), steps=100, seed=0)
    assert (report.steps, report.missing) == (98, 2)  # into that state, and out of it


@pytest.mark.parametrize("row", [0, 7, 39])
def test_nothing_is_carried_over_a_transition_that_is_left_out(row):
    """The rest is learned from as if the stream had been cut there."""
    data, cut = broken("state", (row, 0)), walk(40, truncated=np.arange(40) == row - 1)
    question = gvf.GVF(
        gvf.policies.Uniform(2), "reward", 0.9
    )  # no ratio is 0, so all is carried on
    skipping = make(correction=FollowOn(), question=question, on_nan="skip")
    skipping.learn([data])
    rest = make(correction=FollowOn(), question=question)
    rest.learn([gvf.Transitions.concatenate([cut[:row], cut[row + 1 :]])])
    assert np.array_equal(skipping.weights, rest.weights)
    assert np.array_equal(skipping.buffer.inputs, rest.buffer.inputs)


# the default step size


def chosen(features, update=None, correction=None, data=None, **options):
    options = {"features": features, **options}
    learner = make(update or gvf.updates.TD(), correction, **options)
    return learner, learner.learn([walk(50) if data is None else data])


def test_the_default_step_size_follows_the_features_and_is_shown():
    learner, report = chosen(TILES)
    assert report.step_size == 0.1 / 4
    assert "; step size 0.025 by default" in repr(report)
    assert learner.update == gvf.updates.TD(0.1 / 4)
    assert "TD(step_size=0.025" in repr(learner)
    data = walk(50)
    longest = np.square([*data.state, *data.next_state]).sum(axis=1).max()
    assert chosen(gvf.features.Dense(3))[1].step_size == pytest.approx(0.1 / longest)
    assert chosen(TILES, gvf.updates.IncrementalTD())[1].step_size == pytest.approx(0.1 / 4 / 16)
    assert chosen(TILES, gvf.updates.TDRC())[1].step_size == 0.1 / 4
    assert chosen(TILES, gvf.updates.TD(optimiser=gvf.updates.RMSProp()))[1].step_size == 1e-3
    assert chosen(TILES, gvf.updates.TD(optimiser=gvf.updates.Adam()))[1].step_size == 1e-3
    assert chosen(TILES, gvf.updates.TD(0.5))[1].step_size is None
    assert make(gvf.updates.TD()).report().step_size is None  # nothing seen yet


def test_no_ratio_takes_a_prediction_past_its_target():
    rare = gvf.policies.Fixed([0.998, 0.002])
    action = (np.arange(50) == 10).astype(int)
    data = walk(50, action=action)
    _, report = chosen(TILES, correction=gvf.corrections.IS(), behaviour=rare, data=data)
    assert report.step_size == pytest.approx(16 / 500 / 4)
    _, report = chosen(TILES, correction=gvf.corrections.IR(), behaviour=rare, data=data)
    assert report.step_size == 0.1 / 4
    _, report = chosen(TILES, correction=gvf.corrections.VTrace(1.0), behaviour=rare, data=data)
    assert report.step_size == 0.1 / 4


def test_a_default_step_size_does_not_depend_on_how_transitions_come():
    one, many = make(gvf.updates.TD()), make(gvf.updates.TD())
    many.learn([walk(200)])
    one.learn([walk(200)], act_steps=1)
    assert np.array_equal(one.weights, many.weights)


def test_features_of_length_0_do_no_harm():
    nothing = np.zeros((100, 3))
    learner, report = chosen(
        gvf.features.Dense(3), data=walk(100, state=nothing, next_state=nothing)
    )
    assert np.isfinite(learner.weights).all()
    assert report.diverged == ()


RANDOM = np.random.default_rng(8).normal(size=(121, 60))
PLACES = gvf.features.TileCoder([0.0, 0.0], [10.0, 10.0], tiles=5, tilings=16)


class Places:
    """Tiles over the rooms, whose states are numbers."""

    size = PLACES.size

    def __call__(self, states):
        return PLACES(np.column_stack(np.divmod(states, 11)))


@pytest.mark.parametrize(
    "correction", [gvf.corrections.IR(), gvf.corrections.IS()], ids=["IR", "IS"]
)
@pytest.mark.parametrize(
    "update",
    [gvf.updates.TD(), gvf.updates.TDRC(), gvf.updates.IncrementalTD()],
    ids=["TD", "TDRC", "incremental"],
)
@pytest.mark.parametrize(
    ("features", "much"),
    [
        (gvf.features.OneHot(121), 0.6),
        (Places(), 0.6),
        (gvf.features.Dense(60, lambda s: RANDOM[s]), 0.95),
    ],
    ids=["one-hot", "tiles", "dense"],
)
def test_the_default_step_size_learns_and_does_not_diverge(features, much, update, correction):
    """The domain is the four rooms, with ratios of 500 in some of the states."""
    behaviour, truth = grid_world.seldom_down(0.002), grid_world.values()
    data = next(gvf.collect(grid_world.Rooms(), behaviour, 20_000, seed=1, batch=20_000))
    learner = make(update, correction, features, grid_world.QUESTION, behaviour=behaviour)
    report = learner.learn([data])
    assert report.max_ratio > 400
    assert report.diverged == ()
    seen = np.unique(data.state)
    error = np.square(learner.predict(seen) - truth[seen]).mean() / np.square(truth[seen]).mean()
    assert error < much**2
    assert np.abs(learner.predict(seen)).max() < 2.0


@pytest.mark.parametrize(
    "correction", [gvf.corrections.IR(), gvf.corrections.IS()], ids=["IR", "IS"]
)
def test_the_default_step_size_learns_where_a_car_is(correction):
    env = gymnasium.make("MountainCar-v0")
    low, high = env.observation_space.low, env.observation_space.high  # pyright: ignore
    question = gvf.GVF(gvf.policies.Always(2, actions=3), lambda t: t.next_state[:, 0], 0.9)
    features = gvf.features.TileCoder(low, high, tiles=8, tilings=32)
    learner = make(
        gvf.updates.TD(), correction, features, question, behaviour=gvf.policies.Uniform(3)
    )
    report = learner.learn(env, steps=10_000, seed=0)
    assert report.step_size == pytest.approx(0.1 / 32)
    held_out = gvf.held_out_returns(env, question, states=30, run_length=150, seed=1)
    error = np.square(learner.predict(held_out.states) - held_out.values).mean()
    assert error < 0.1 * np.square(held_out.values).mean()


def test_the_step_of_a_prediction_is_the_step_size_times_the_tilings():
    """The note on units: the same for every k, and in proportion to the active features."""
    ended = walk(1, reward=[1.0], action=[1], terminated=[True])
    for tilings in (4, 16, 64):
        tiles = gvf.features.TileCoder([-3.0] * 3, [3.0] * 3, tiles=2, tilings=tilings)
        for batch_size in (1, 16):
            learner = make(gvf.updates.TD(0.1 / tilings), features=tiles, batch_size=batch_size)
            learner.learn([ended])
            assert learner.predict(ended.state) == pytest.approx(0.1)
        learner = make(gvf.updates.IncrementalTD(0.1 / tilings), features=tiles, batch_size=16)
        learner.learn([ended])
        assert learner.predict(ended.state) == pytest.approx(1 - 0.9**16)


@pytest.mark.parametrize("on_nan", ["error", "skip"])
def test_the_state_after_the_last_one_may_be_missing(on_nan):
    question = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.9)
    features = gvf.features.TileCoder([0.0], [1.0], tiles=4, tilings=2)
    learners = [
        gvf.Learner(
            question,
            features,
            gvf.updates.TD(0.1),
            behaviour=gvf.policies.Uniform(2),
            seed=0,
            on_nan=on_nan,
        )
        for _ in range(2)
    ]
    ended = np.arange(60) % 3 == 2
    columns = dict(action=np.zeros(60, int), reward=np.ones(60), terminated=ended)
    state = np.random.default_rng(0).random((60, 1))
    after = np.roll(state, -1, axis=0)
    for learner, fill in zip(learners, (after, np.nan), strict=True):
        batch = gvf.Transitions(
            state=state, next_state=np.where(ended[:, None], fill, after), **columns
        )
        learner.observe(batch)
    assert learners[1].report().missing == 0
    np.testing.assert_array_equal(learners[0].weights, learners[1].weights)
    assert np.abs(learners[0].weights).max() > 0.05
    with pytest.raises(ValueError, match=r"next_state\[0\] is nan at position 0"):
        gvf.Learner(
            question, features, gvf.updates.TD(0.1), behaviour=gvf.policies.Uniform(2)
        ).observe(gvf.Transitions(state=state, next_state=np.full((60, 1), np.nan), **columns))


def test_a_cumulant_of_a_missing_last_state_is_an_error():
    question = gvf.GVF(gvf.policies.Uniform(2), lambda t: t.next_state[:, 0], 0.9)
    features = gvf.features.TileCoder([0.0], [1.0], tiles=4, tilings=2)
    learner = gvf.Learner(
        question, features, gvf.updates.TD(0.1), behaviour=gvf.policies.Uniform(2)
    )
    with pytest.raises(ValueError, match=r"is nan at position 0, where next_state\[0\]"):
        learner.observe([0.5], 0, 1.0, [np.nan], terminated=True)


@pytest.mark.parametrize(("said", "doubted"), [([0.6, 0.4], False), ([0.1, 0.9], True)])
def test_a_wrong_behaviour_shows_in_the_report(said, doubted):
    rng = np.random.default_rng(0)
    action = (rng.random(2000) < 0.4).astype(int)
    question = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
    learner = gvf.Learner(
        question, gvf.features.OneHot(1), gvf.updates.TD(0.1), behaviour=gvf.policies.Fixed(said)
    )
    none = np.zeros(2000, int)
    columns = dict(state=none, next_state=none, reward=np.ones(2000), terminated=none == 1)
    learner.observe(gvf.Transitions(action=action, **columns))
    assert ("check the behaviour's probabilities" in repr(learner.report())) == doubted
