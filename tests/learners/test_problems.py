"""Problems that a report names: states outside bounds, predictions outside returns, no ends."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import gymnasium
import numpy as np
import pytest

import gvf
from gvf import online
from gvf.learners.learner_report import Range

torch = pytest.importorskip("torch", reason='needs PyTorch: pip install "gvf[torch]"')

from gvf.neural import NeuralHorde, NeuralLearner  # noqa: E402

QUESTION = gvf.GVF(gvf.policies.Always(0, actions=2), "reward", 0.9)
NAMED = replace(QUESTION, name="a")
LIKELY = gvf.policies.Uniform(2)
Problem = gvf.learners.Problem


def tiles(low: float = 0.0, high: float = 1.0, tilings: int = 4) -> gvf.features.TileCoder:
    return gvf.features.TileCoder([low], [high], tilings=tilings)


def stream(count: int, seed: int = 0, **changed: Any) -> gvf.Transitions:
    """States in [0, 1], in order, with rewards in [0, 1]; every tenth transition ends."""
    rng = np.random.default_rng(seed)
    states = rng.random((count + 1, 1))
    columns = {
        "state": states[:-1],
        "action": rng.integers(2, size=count),
        "reward": rng.random(count),
        "next_state": states[1:],
        "terminated": np.arange(count) % 10 == 9,
        "truncated": np.ones(count, bool),
    }
    return gvf.Transitions(**{**columns, **changed})


def learner(kind: str, features: Any, question: gvf.GVF = QUESTION, **options: Any) -> Any:
    more: dict[str, Any] = {"behaviour": LIKELY, **options}
    if kind == "online":
        return gvf.OnlineLearner(question, features, online.TDLambda(0.01, 0.5), **more)
    if kind == "least squares":
        return gvf.LSTDLearner(question, features, **more)
    if kind == "horde":
        return gvf.Horde(
            [replace(question, name="a")], features, gvf.updates.TD(0.01), seed=0, **more
        )
    return gvf.Learner(question, features, gvf.updates.TD(0.01), seed=0, **more)


KINDS = ["learner", "online", "least squares", "horde"]


# states outside the bounds of features


def test_tiles_count_the_states_outside_them():
    two = gvf.features.TileCoder([0.0, -1.0], [1.0, 1.0])
    states = [[0.0, -1.0], [1.0, 1.0], [1.1, 0.0], [0.5, -1.1], [-0.1, 9.0], [0.5, 0.5]]
    assert two.outside(states) == 3
    assert two.outside(np.array(states, np.float32)) == 3
    assert two.outside(np.empty((0, 2))) == 0
    assert two.outside(np.repeat(states, 2, axis=1)[:, ::2]) == 3  # not contiguous


@pytest.mark.parametrize("kind", KINDS)
def test_a_report_tells_the_share_of_states_outside_the_bounds(kind, tmp_path):
    made = partial(learner, kind, tiles(0.0, 0.75))
    one, alone, later = made(), made(), made()
    data = stream(200)
    share = float((data.state > 0.75).mean())
    assert 0.2 < share < 0.4
    assert one.report().outside_bounds is None
    one.observe(data)
    for i in range(200):
        alone.observe(data[i])
    later.observe(data[:120])
    later.save(tmp_path / "saved")
    later = made().load(tmp_path / "saved")
    later.observe(data[120:])
    for report in (one.report(), alone.report(), later.report()):
        assert report.outside_bounds == pytest.approx(share)
        assert report.problems == (Problem.OUTSIDE_BOUNDS,)
        text = f"{100 * share:.0f} % of the states are outside the bounds of the features"
        assert text in repr(report)


@pytest.mark.parametrize("kind", KINDS)
def test_states_that_have_left_the_window_still_count(kind):
    more: dict[str, Any] = {} if kind in ("online", "least squares") else {"window": 10}
    made = learner(kind, tiles(), **more)
    outside = stream(50, state=np.full((50, 1), 2.0))
    made.observe(outside)
    made.observe(stream(50))
    assert made.report().outside_bounds == 0.5


@pytest.mark.parametrize(("share", "named"), [(9, False), (10, True)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_tenth_of_the_states_outside_is_a_problem(kind, share, named):
    made = learner(kind, tiles())
    states = np.where(np.arange(100) < share, -0.5, 0.5)[:, None]
    made.observe(stream(100, state=states))
    assert (Problem.OUTSIDE_BOUNDS in made.report().problems) is named
    assert ("outside the bounds" in repr(made.report())) is named


@pytest.mark.parametrize("kind", KINDS)
def test_rows_left_out_for_a_nan_are_no_states(kind):
    made = learner(kind, gvf.features.TileCoder([0.0] * 2, [1.0] * 2, tilings=4), on_nan="skip")
    states = np.full((100, 2), 0.5)
    states[:50] = np.nan, 7.0
    states[99, 0] = 3.0
    made.observe(stream(100, state=states, next_state=np.full((100, 2), 0.5)))
    assert made.report().outside_bounds == pytest.approx(0.02)


@pytest.mark.parametrize(
    "features", [gvf.features.Dense(1), gvf.features.Dense(2, lambda s: np.hstack([s, s]))]
)
@pytest.mark.parametrize("kind", KINDS)
def test_features_without_bounds_have_no_share(kind, features):
    made = learner(kind, features)
    made.observe(stream(50, state=np.full((50, 1), 2.0)))
    assert made.report().outside_bounds is None
    assert made.report().problems == ()


def test_features_of_ones_own_may_count():
    class Mine:
        size = 1

        def __call__(self, states: Any, /) -> Any:
            return np.ones((len(states), 1))

        def outside(self, states: Any) -> int:
            return int((states > 0.5).sum())

    made = learner("learner", Mine())
    data = stream(100)
    made.observe(data)
    assert made.report().outside_bounds == (data.state > 0.5).mean()


def test_cartpole_outside_its_tiles():
    env = gymnasium.make("CartPole-v1")
    made = gvf.Learner(
        QUESTION,
        gvf.features.TileCoder([-0.01] * 4, [0.01] * 4),
        gvf.updates.TD(),
        behaviour=LIKELY,
        seed=0,
    )
    report = made.learn(env, steps=300, seed=0)
    assert report.problems == (Problem.OUTSIDE_BOUNDS,)
    wide = gvf.features.TileCoder([-2.4, -3, -0.21, -3], [2.4, 3, 0.21, 3])
    made = gvf.Learner(QUESTION, wide, gvf.updates.TD(), behaviour=LIKELY, seed=0)
    assert made.learn(env, steps=300, seed=0).problems == ()


# predictions outside the returns that are possible


def test_the_range_of_returns():
    assert Range(-2.0, 1.0, 0.75, 100).returns == (-8.0, 4.0)
    assert Range(-2.0, 1.0, 0.75, 2).returns == (-4.0, 2.0)  # no update could have passed on more
    found = Range(-2.0, 1.0, 0.75, 100).findings(np.array([[9.9, -13.9], [10.1, -14.1], [0, 0]]))
    assert found["outside_returns"] == pytest.approx((1 / 3, 1 / 3))
    assert found["return_range"] == (-8.0, 4.0)
    assert found["largest_predictions"] == (10.1, 14.1)
    assert found["diverged"] == ()
    nothing = Range(0.0, 0.0, 0.9, 100)
    assert nothing.findings(np.array([[0.0], [0.5]]))["outside_returns"] == (0.5,)
    assert nothing.findings(np.array([[0.0], [0.5]]), 1.0)["outside_returns"] == (0.0,)
    assert nothing.findings(np.array([[0.0], [np.inf]]))["outside_returns"] == (0.5,)


def test_a_step_size_that_is_too_large_is_seen_before_it_diverges():
    """With 4 tilings a step of 5 goes 20 times too far, and no return is above 10."""
    made = gvf.Learner(QUESTION, tiles(), gvf.updates.TD([0.05, 5.0]), behaviour=LIKELY, seed=0)
    made.observe(stream(2, reward=np.ones(2), action=[0, 0]))
    report = made.report()
    assert 20.0 < report.largest_predictions[1] < 10_000.0
    assert report.diverged == ()
    assert report.return_range == pytest.approx((0.0, 10.0))
    assert report.outside_returns[0] == 0.0
    assert report.outside_returns[1] > 0.1
    assert report.problems == (Problem.OUTSIDE_RETURNS,)
    share = f"{100 * report.outside_returns[1]:.0f} % of predictions in lanes [1] are outside twice"
    assert share in repr(report)
    assert "returns, 0 to 10: take a smaller step size" in repr(report)


@pytest.mark.parametrize("kind", KINDS)
def test_weights_that_predict_too_much_are_named_and_those_that_fit_are_not(kind):
    for scale, problems in ((0.4, ()), (3.0, (Problem.OUTSIDE_RETURNS,))):
        made = learner(kind, gvf.features.OneHot(1))
        zeros = np.zeros(200, int)
        made.observe(stream(200, state=zeros, next_state=zeros))
        limit = 10.0  # of returns, with rewards up to 1
        if kind == "least squares":
            made.solution.weights[:] = scale * limit
        elif kind == "horde":
            made._shard.weights.put(np.array([0]), {"weights": np.full((1, 1), scale * limit)})
        else:
            made.weights[:] = scale * limit
        report = made.report()
        assert report.problems == problems
        if kind == "horde":
            assert report.outside_returns == ("a",) * bool(problems)
            sentence = "1 of 1 questions predict more than twice the largest possible return: a"
            assert (sentence in repr(report)) is bool(problems)
            assert (sentence in " ".join(repr(made.diagnose()).split())) is bool(problems)
        else:
            assert report.outside_returns == (float(bool(problems)),)


def test_a_diverged_lane_is_only_named_once():
    made = gvf.Learner(
        QUESTION, gvf.features.OneHot(1), gvf.updates.TD([0.1, 0.2]), behaviour=LIKELY, seed=0
    )
    zeros = np.zeros(200, int)
    made.observe(stream(200, state=zeros, next_state=zeros))
    made.weights[:, 1] = 1e9
    assert made.report().problems == (Problem.DIVERGED,)
    assert made.report().diverged == (1,)


def test_a_negative_cumulant_has_negative_returns():
    made = learner("learner", gvf.features.OneHot(1))
    zeros = np.zeros(200, int)
    made.observe(stream(200, state=zeros, next_state=zeros, reward=-np.ones(200)))
    assert made.report().return_range == pytest.approx((-10.0, 0.0))
    made.weights[:] = 6.0
    assert made.report().problems == (Problem.OUTSIDE_RETURNS,)
    made.weights[:] = 4.0  # a margin of half the range
    assert made.report().problems == ()


def test_a_new_network_may_predict_what_is_small():
    for bias, problems in ((0.9, ()), (3.0, (Problem.OUTSIDE_RETURNS,))):
        network = torch.nn.Linear(1, 1)
        torch.nn.init.zeros_(network.weight)
        torch.nn.init.constant_(network.bias, bias)
        made = NeuralLearner(
            QUESTION, network, partial(torch.optim.SGD, lr=0.0), behaviour=LIKELY, seed=0
        )
        made.observe(stream(150, reward=np.full(150, 0.001)))
        assert made.report().problems == problems
        assert made.report().outside_bounds is None


def test_a_horde_with_a_network_has_no_bounds():
    made = NeuralHorde(
        [NAMED], torch.nn.Linear(1, 3), partial(torch.optim.SGD, lr=0.0), behaviour=LIKELY, seed=0
    )
    made.observe(stream(150))
    assert made.report().outside_bounds is None
    assert made.report().problems == ()


# a continuation of 1 without an end


def endless(t: gvf.Transitions) -> Any:
    return np.ones(len(t))


@pytest.mark.parametrize("continuation", [1.0, endless], ids=["number", "function"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_continuation_of_1_that_meets_no_end_is_named(kind, continuation):
    question = replace(QUESTION, continuation=continuation)
    never: dict[str, Any] = {"terminated": np.zeros(150, bool)}
    made = learner(kind, tiles(), question)
    made.observe(stream(150, **never)[:99])
    assert Problem.ENDLESS not in made.report().problems  # too early to tell
    made.observe(stream(150, **never)[99:])
    assert Problem.ENDLESS in made.report().problems
    assert "no transition ends" in repr(made.report())
    others: list[tuple[gvf.GVF, dict[str, Any]]] = [
        (question, {}),
        (replace(question, continuation=0.99), never),
        (replace(question, continuation=lambda t: 1.0 - (np.arange(len(t)) == 77)), never),
    ]
    for other in others:
        made = learner(kind, tiles(), other[0])
        made.observe(stream(150, **other[1]))
        assert Problem.ENDLESS not in made.report().problems


def test_an_end_that_has_left_the_window_is_none():
    question = replace(QUESTION, continuation=1.0)
    for kind in ("learner", "horde"):
        made = learner(kind, tiles(), question, window=120)
        made.observe(stream(10))
        made.observe(stream(119, terminated=np.zeros(119, bool)))
        assert Problem.ENDLESS not in made.report().problems
        made.observe(stream(1, terminated=[False]))
        assert Problem.ENDLESS in made.report().problems


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_learner_remembers_what_it_saw(kind, tmp_path):
    question = replace(QUESTION, continuation=1.0)
    for data, there in ((stream(150), False), (stream(150, terminated=np.zeros(150, bool)), True)):
        made = learner(kind, tiles(), question)
        made.observe(data)
        made.save(tmp_path / "saved")
        again = learner(kind, tiles(), question).load(tmp_path / "saved")
        assert (Problem.ENDLESS in again.report().problems) is there
        assert repr(again.report()) == repr(made.report())


# hordes


def test_questions_of_a_horde_are_named_one_by_one():
    asked = gvf.question_grid({"u": LIKELY}, {"one": "reward"}, {"1": 1.0, "half": 0.5})
    made: Any = gvf.Horde(
        asked, gvf.features.OneHot(2), gvf.updates.TD(0.01), behaviour=LIKELY, seed=0
    )
    zeros = np.zeros(150, int)
    never: dict[str, Any] = {"terminated": np.zeros(150, bool), "state": zeros, "next_state": zeros}
    made.observe(stream(150, **never))
    place = made._layout.place[1]
    made._shard.weights.put(np.array([place]), {"weights": np.full((1, 2), 5.0)})
    report = made.report()
    assert report.endless == ("u, one, 1",)
    assert report.outside_returns == ("u, one, half",)
    assert report.problems == (Problem.OUTSIDE_RETURNS, Problem.ENDLESS)
    assert "1 of 2 questions have continuation 1, and no transition ends: u, one, 1" in repr(report)
    made._shard.weights.put(np.array([place]), {"weights": np.full((1, 2), 5e5)})
    assert made.report().diverged == ("u, one, half",)
    assert made.report().outside_returns == ()
    assert made.report().problems == (Problem.DIVERGED, Problem.ENDLESS)


# predictions before the first update


def test_predictions_before_the_first_update_warn_once():
    for kind in KINDS:
        made = learner(kind, tiles())
        with pytest.warns(gvf.NotLearnedWarning, match="before the first update, after 0") as told:
            made.predict([[0.5]])
        assert told[0].filename == __file__
        made.predict([[0.5]])  # does not warn, since warnings are errors here
        made.observe(stream(20))
        made.predict([[0.5]])


def test_a_warm_up_and_a_window_without_mass_are_no_updates():
    waits = learner("learner", tiles(), warm_up=30)
    never = learner("learner", tiles(), replace(QUESTION, policy=gvf.policies.Always(1, 2)))
    for made in (waits, never):
        made.observe(stream(20, action=np.zeros(20, int)))
        with pytest.warns(gvf.NotLearnedWarning, match="after 20 transitions"):
            made.predict([[0.5]])


def test_a_network_has_not_learned_whatever_it_predicts():
    made = NeuralLearner(QUESTION, torch.nn.Linear(1, 1), torch.optim.SGD, behaviour=LIKELY)
    with pytest.warns(gvf.NotLearnedWarning, match=r"NeuralLearner\.predict"):
        made.predict([[0.5]])


@pytest.mark.parametrize("kind", ["learner", "online"])
def test_weights_that_were_set_are_something_learned(kind, tmp_path):
    made = learner(kind, tiles())
    made.weights[:] = 1.0
    assert made.predict([[0.5]]).tolist() == [4.0]
    made.save(tmp_path / "saved")
    again = learner(kind, tiles()).load(tmp_path / "saved")
    assert again.predict([[0.5]]).tolist() == [4.0]


@pytest.mark.parametrize("kind", KINDS)
def test_calls_of_our_own_do_not_warn(kind):
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    seen: list[Any] = []

    def follow(states: Any) -> Any:
        seen.append(made.predict(states))
        return np.full((len(states), 4), 0.25)

    question = gvf.GVF(gvf.policies.Favour(1, 0.7, actions=4), "reward", 0.9)
    behaviour = gvf.policies.Function(follow, actions=4)
    made = learner(kind, gvf.features.OneHot(16), question, behaviour=behaviour)
    with warnings.catch_warnings(action="error"):
        callback = gvf.Callback(lambda learner: learner.predict([0]), every_steps=1)
        made.learn(env, steps=5, act_steps=1, seed=0, callbacks=callback)
        fresh = learner(kind, gvf.features.OneHot(16), question, behaviour=gvf.policies.Uniform(4))
        fresh.return_error(env, states=2, rollouts=2, seed=0)
        fresh.report()
    assert len(seen) == 5
    with pytest.warns(gvf.NotLearnedWarning):
        fresh.predict([0])


# text is no number


def row(**changed: Any) -> dict[str, Any]:
    columns = {"state": [0.5], "action": 0, "reward": 1.0, "next_state": [0.5], "terminated": False}
    return {**columns, "truncated": False, **changed}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"reward": "1"}, "'reward': '1' at position 1 is text, and must be a number"),
        ({"reward": b"1"}, "is text, and must be a number"),
        ({"action": "0"}, "the actions: '0' at position 1 is text"),
        ({"behaviour_probability": "0.5"}, "behaviour_probability: '0.5' at position 1 is text"),
        ({"behaviour_log_probability": "-0.5"}, "behaviour_log_probability: '-0.5' at position 1"),
        ({"state": ["0.5"]}, r"'0.5' at position \[1, 0\] is text"),
        ({"terminated": "True"}, "'terminated' is 'True' at position 1"),
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_text_is_no_number(kind, changed, message):
    same = {name: changed[name] for name in changed if name not in row()}
    known = {name: 0.5 if name == "behaviour_probability" else np.log(0.5) for name in same}
    made = learner(kind, gvf.features.Dense(1), on_conflict="recorded")
    columns: dict[str, Any] = {name: [value] * 2 for name, value in row(**known).items()}
    for name, value in changed.items():
        columns[name] = np.array([columns[name][0], value], object)
    before = made.steps
    with pytest.raises(ValueError, match=message):
        made.observe(gvf.Transitions(**columns))
    with pytest.raises(ValueError, match=r"text|'True'"):
        made.observe(**row(**changed))
    with pytest.raises(ValueError, match=r"text|'True'"):
        made.learn([row(**changed)])
    assert made.steps == before


def test_a_cumulant_a_continuation_and_an_interest_are_no_text():
    for change in (
        {"cumulant": lambda t: ["1"] * len(t)},
        {"continuation": lambda t: ["1"] * len(t)},
        {"interest": lambda t: ["1"] * len(t)},
        {"cumulant": "clicks"},
    ):
        question = replace(QUESTION, **change)
        batch = gvf.Transitions(**{k: [v] for k, v in row(clicks="1").items()})
        with pytest.raises(ValueError, match="'1' at position 0 is text, and must be a number"):
            question.evaluate(batch, behaviour=LIKELY)


def test_the_end_of_an_episode_is_no_text():
    made = learner("online", gvf.features.Dense(1))
    with pytest.raises(ValueError, match="column 'truncated': 'False' at position 0 is text"):
        made.observe(**row(truncated="False"))
    steps = learner("learner", gvf.features.Dense(1), n_step=2)
    with pytest.raises(ValueError, match="column 'truncated': 'False' at position 0 is text"):
        steps.observe(**row(truncated="False"))


def test_columns_of_text_that_nothing_computes_with_stay():
    made = learner("learner", gvf.features.Dense(1))
    made.observe(**row(place="kitchen"))
    assert made.steps == 1


def test_logs_name_the_row_and_the_column_of_text():
    columns = {"state": [0, 1, 2], "action": [0, 1, 0], "terminated": [False, False, True]}
    for text in (["1", "2", "3"], np.array(["1", "2", "3"], object)):
        with pytest.raises(ValueError, match="row 0: column 'reward', the reward, is '1', and"):
            gvf.read_log({**columns, "reward": text}, quiet=True)
    log = gvf.read_log({**columns, "reward": [1.0] * 3, "clicks": ["1"] * 3}, quiet=True)
    made = learner("learner", gvf.features.OneHot(3), replace(QUESTION, cumulant="clicks"))
    with pytest.raises(ValueError, match="'clicks': '1' at position 0 is text"):
        made.fit(log, progress=False)
