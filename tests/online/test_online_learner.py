"""The online learner: sources, streams, files, and calls that are refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from charts_reference import Step, gtd, tree_backup
from collision_road import Road
from gymnasium.vector import SyncVectorEnv

import gvf
from gvf import online

TARGET, BEHAVIOUR = gvf.policies.Fixed([0.2, 0.8]), gvf.policies.Fixed([0.6, 0.4])
QUESTION = gvf.GVF(TARGET, "reward", lambda t: 0.5 + 0.1 * t.next_state)
ALGORITHMS = [
    online.TDLambda(0.1, 0.9),
    online.EmphaticTD([0.05, 0.02], 0.5),
    online.TreeBackup(0.1, 0.9),
    online.ABTD(0.1, 0.4),
    online.HTD(0.05, 0.9),
    online.TDRCLambda(0.05, 0.5),
    online.LSTD([0.0, 0.9]),
    online.VTraceLambda(0.1, 0.9),
    online.GTD(0.05, 0.9, 0.5),
    online.GTD2(0.05, 0.9, 2.0),
    online.ProximalGTD2(0.05, 0.9),
    online.EmphaticTD(0.05, [0.0, 0.9], 0.5),
    online.LSTD([0.0, 0.9], emphatic=True),
]


def walk(m: int = 60, seed: int = 0) -> gvf.Transitions:
    """Walk among five states in a row; leaving it ends an episode, and a limit cuts some."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    state = 2
    for _ in range(m):
        action = int(BEHAVIOUR.sample(np.array([state]), rng=rng)[0])
        reached = state + 2 * action - 1
        ended, cut = reached in (-1, 5), rng.random() < 0.1
        reached = min(max(reached, 0), 4)
        rows.append((state, action, rng.normal(), reached, ended, bool(cut and not ended)))
        state = 2 if ended or cut else reached
    names = ("state", "action", "reward", "next_state", "terminated", "truncated")
    columns = zip(*rows, strict=True)
    return gvf.Transitions(
        **{name: np.array(column) for name, column in zip(names, columns, strict=True)}
    )


DATA = walk()


def make(algorithm: online.Algorithm = ALGORITHMS[0], **options: Any) -> gvf.OnlineLearner:
    options = {
        "behaviour": BEHAVIOUR,
        "question": QUESTION,
        "features": gvf.features.OneHot(5),
        **options,
    }
    return gvf.OnlineLearner(algorithm=algorithm, **options)


def by_hand(data: gvf.Transitions) -> list[Step]:
    """Return the steps of a log, with the continuation into each state by the definition."""
    one_hot, steps, into = np.eye(5), [], 0.0
    for i in range(len(data)):
        state, action, after = (int(data[name][i]) for name in ("state", "action", "next_state"))
        gamma = 0.0 if data.terminated[i] else 0.5 + 0.1 * after
        pi, mu = (float(p.probability([state], [action])[0]) for p in (TARGET, BEHAVIOUR))
        steps.append(
            Step(one_hot[state], one_hot[after], pi, mu, into, gamma, float(data.reward[i]))
        )
        into = 0.0 if data.terminated[i] or data.truncated[i] else gamma
    return steps


def test_a_log_is_learned_as_the_definition_says() -> None:
    learner = make(online.GTD(0.1, 0.9, 0.5))
    learner.observe(DATA)
    want = list(gtd(by_hand(DATA), 0.1, 0.9, 0.5))[-1]
    np.testing.assert_allclose(learner.weights, want, rtol=0, atol=1e-12)
    learner = make(online.TreeBackup(0.1, 0.9))
    learner.observe(DATA)
    want = list(tree_backup(by_hand(DATA), 0.1, 0.9))[-1]
    np.testing.assert_allclose(learner.weights, want, rtol=0, atol=1e-12)


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: type(a).__name__)
def test_the_result_does_not_depend_on_batches(algorithm: online.Algorithm) -> None:
    together, single, learned = (make(algorithm) for _ in range(3))
    together.observe(DATA)
    for i in range(len(DATA)):
        single.observe(**{name: column[i] for name, column in DATA.columns.items()})
    report = learned.learn([DATA[:7], DATA[7:50], DATA[50:]], act_steps=5)
    for other in (single, learned):
        assert np.array_equal(together.weights, other.weights)
        assert repr(together.report()) == repr(other.report())
    assert report == learned.report()
    assert learned.steps == report.steps == 60
    assert together.predict([0, 4]).shape == ((2,) if algorithm.lanes is None else (2, 2))


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: type(a).__name__)
def test_a_saved_learner_goes_on_bit_for_bit(algorithm: online.Algorithm, tmp_path: Path) -> None:
    question = gvf.GVF(TARGET, "reward", 0.9)
    path = tmp_path / "learner"
    straight = make(algorithm, question=question)
    straight.observe(DATA[:33])  # within an episode
    assert not DATA.terminated[32]
    assert not DATA.truncated[32]
    straight.save(path)
    made, filled = gvf.load(path), make(algorithm, question=question).load(path)
    assert isinstance(made, gvf.OnlineLearner)
    assert repr(made) == repr(straight)
    for other in (made, filled):
        assert repr(other.report()) == repr(straight.report())
    straight.observe(DATA[33:])
    for other in (made, filled):
        other.observe(DATA[33:])
        assert np.array_equal(other.weights, straight.weights)
        for name, array in straight.streams._asdict().items():
            assert np.array_equal(getattr(other.streams, name), array)
    with pytest.raises(ValueError, match="saved by another learner:\n  algorithm"):
        make(online.TDLambda(0.7), question=question).load(path)


@pytest.mark.parametrize("name", ["listed", "counts", "is_listed"])
def test_a_file_with_a_wrong_list_is_refused(name: str) -> None:
    learner = make()
    learner.observe(DATA[:3])
    arrays = {key: array.copy() for key, array in learner._arrays().items()}
    arrays[f"streams/{name}"].flat[0] = 77
    before = learner.weights.copy()
    with pytest.raises(ValueError, match="not a list of rows"):
        learner.load_state_dict(arrays)
    assert np.array_equal(learner.weights, before)
    learner.observe(DATA[3:])


def test_predictions_can_be_exported(tmp_path: Path) -> None:
    learner = make(online.EmphaticTD([0.05, 0.02], 0.5))
    learner.observe(DATA)
    learner.export(tmp_path / "predictor")
    predictor = gvf.load(tmp_path / "predictor")
    assert np.array_equal(predictor.predict([0, 3]), learner.predict([0, 3]))


@pytest.mark.parametrize("algorithm", ALGORITHMS[:5], ids=lambda a: type(a).__name__)
def test_a_vector_of_three_has_the_traces_of_three(algorithm: Any) -> None:
    """Weights are shared, so they are frozen here: traces do not depend on them."""
    frozen = type(algorithm)(0.0, 0.9)
    env = SyncVectorEnv([Road] * 3)
    data = gvf.Transitions.concatenate(gvf.collect(env, gvf.policies.Uniform(2), 151, seed=0))
    question = gvf.GVF(gvf.policies.Fixed([0.7, 0.3]), "reward", 0.9)
    options = {
        "question": question,
        "features": gvf.features.OneHot(9),
        "behaviour": gvf.policies.Uniform(2),
    }
    together = make(frozen, **options)
    together.observe(data)
    assert together.streams.traces.shape[0] == 3
    for s in range(3):
        alone = make(frozen, **options)
        alone.observe(data[data.stream == s])
        for name in ("traces", "follow_on", "before"):
            (own,) = getattr(alone.streams, name)
            assert np.array_equal(getattr(together.streams, name)[s], own)
        assert np.abs(alone.streams.traces).max() > 0


@pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda a: type(a).__name__)
def test_learners_of_one_stream_do_not_disturb_each_other(
    algorithm: online.Algorithm, tmp_path: Path
) -> None:
    """Two learn side by side from three environments; one is saved within their episodes."""
    env = SyncVectorEnv([Road] * 3)
    data = gvf.Transitions.concatenate(gvf.collect(env, gvf.policies.Uniform(2), 151, seed=0))
    data = gvf.Transitions(**data.columns | {"reward": np.random.default_rng(0).normal(size=151)})
    middle = next(i for i in range(60, 151) if not data.terminated[i - 6 : i].any())
    question = gvf.GVF(gvf.policies.Fixed([0.7, 0.3]), "reward", 0.9)
    options = {
        "question": question,
        "features": gvf.features.OneHot(9),
        "behaviour": gvf.policies.Uniform(2),
    }
    one, saved, alone = (make(algorithm, **options) for _ in range(3))
    for learner in (one, saved):
        learner.observe(data[:middle])
    saved.save(tmp_path / "learner")
    saved = make(algorithm, **options).load(tmp_path / "learner")
    for start in range(middle, 151, 10):
        for learner in (one, saved):
            learner.observe(data[start : start + 10])
    alone.observe(data)
    for learner in (one, saved):
        assert np.array_equal(learner.weights, alone.weights)
        for name, array in alone.streams._asdict().items():
            assert np.array_equal(getattr(learner.streams, name), array)


def test_learning_in_an_environment_is_learning_from_its_transitions() -> None:
    env, question = Road(), gvf.GVF(gvf.policies.Fixed([0.7, 0.3]))
    options = {
        "question": question,
        "features": gvf.features.OneHot(9),
        "behaviour": gvf.policies.Uniform(2),
    }
    acting, given = make(**options), make(**options)
    acting.learn(env, 200, seed=3)
    given.learn(gvf.collect(env, gvf.policies.Uniform(2), 200, seed=3))
    assert np.array_equal(acting.weights, given.weights)
    assert acting.report().mean_ratio == pytest.approx(1.0, abs=0.15)
    error = acting.return_error(Road(), states=5, rollouts=2, seed=0)
    assert isinstance(error, gvf.ReturnError)


def test_episodes_of_a_log_are_told_apart() -> None:
    """The same log, once with ends of episodes and once with their names."""
    ends = DATA.terminated | DATA.truncated
    names = np.concatenate([[0], np.cumsum(ends)[:-1]])
    named = {**DATA.columns, "truncated": np.zeros(60, bool), "episode": names}
    one, other = make(), make()
    one.observe(DATA)
    other.observe(gvf.Transitions(**named))
    assert np.array_equal(one.weights, other.weights)


def test_rows_out_of_order_are_refused_and_change_nothing() -> None:
    learner, again = make(), int(np.argmin((DATA.terminated | DATA.truncated)[20:])) + 20
    learner.observe(DATA[:again])
    weights, arrays = learner.weights.copy(), learner._arrays()
    with pytest.raises(ValueError, match="does not begin in the state where the one before"):
        learner.observe(DATA[[again, again]])
    assert np.array_equal(learner.weights, weights)
    for name, array in learner._arrays().items():
        assert np.array_equal(array, arrays[name])


def test_a_trace_is_not_carried_over_a_missing_row() -> None:
    inside = next(
        i for i in range(5, 60) if not (DATA.terminated | DATA.truncated)[i - 2 : i + 1].any()
    )
    reward = DATA.reward.copy()
    reward[inside] = np.nan
    broken = gvf.Transitions(**{**DATA.columns, "reward": reward})
    with pytest.raises(ValueError, match=f"at position {inside}"):
        make().observe(broken)
    skipping, cut = make(on_nan="skip"), make()
    skipping.observe(broken)
    cut.observe(DATA[: inside - 1])
    last = DATA[inside - 1 : inside]
    cut.observe(gvf.Transitions(**{**last.columns, "truncated": [True]}))
    cut.observe(DATA[inside + 1 :])
    assert np.array_equal(skipping.weights, cut.weights)
    assert "59 steps, 1 transitions left out for a NaN" in repr(skipping.report())


def test_diverged_lanes_are_named() -> None:
    learner = make(online.TDLambda([0.1, 50.0], 0.9))
    for seed in range(30):
        learner.observe(walk(60, seed))
        learner.trace.new_source(reset=True)
    report = learner.report()
    assert report.diverged == (1,)
    assert "DIVERGED in lanes [1]" in repr(report)
    assert np.isfinite(learner.weights[:, 0]).all()


@pytest.mark.parametrize(
    ("algorithm", "lanes", "remedy"),
    [
        (online.EmphaticTD(0.01, 0.0, [0.0, 1.0]), (1,), "a smaller step size or a smaller beta"),
        (online.LSTD([0.0, 1.0], emphatic=True), (0, 1), "behaviour closer to the target"),
    ],
    ids=["emphatic TD", "LSTD"],
)
def test_a_follow_on_trace_that_overflows_spoils_its_lane_alone(
    algorithm: online.Algorithm, lanes: tuple[int, ...], remedy: str
) -> None:
    """The ratio is always 4: with beta = 1 the trace grows by it at every step."""
    question = gvf.GVF(gvf.policies.Fixed([0.0, 1.0]), "reward", 0.9)
    learner = make(algorithm, question=question, behaviour=gvf.policies.Fixed([0.75, 0.25]))
    states = np.arange(1001) % 5
    learner.observe(
        gvf.Transitions(
            state=states[:-1],
            action=np.ones(1000, int),
            reward=np.ones(1000),
            next_state=states[1:],
            terminated=np.zeros(1000, bool),
        )
    )
    report = learner.report()
    assert report.diverged == lanes
    assert remedy in repr(report)


GAUSSIAN = gvf.policies.Gaussian(lambda s: np.zeros(len(s)), 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": gvf.updates.TD(0.1)}, "algorithm must be one of gvf.online"),
        ({"question": "reward"}, "question must be a gvf.GVF"),
        ({"features": 5}, "features must be a feature map"),
        ({"behaviour": 0.5}, "behaviour must be a gvf.policies.Policy"),
        ({"behaviour": gvf.policies.Uniform(3)}, "differ in their number of actions: 2 and 3"),
        ({"on_nan": "ignore"}, "on_nan must be one of"),
    ],
)
def test_bad_arguments_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message) as refused:
        make(**options)
    assert "\n" not in str(refused.value)


def test_densities_are_no_probabilities() -> None:
    question = gvf.GVF(GAUSSIAN)
    make(online.VTraceLambda(0.1), question=question, behaviour=GAUSSIAN)
    for algorithm in (online.TreeBackup(0.1), online.ABTD(0.1)):
        with pytest.raises(ValueError, match="needs the probabilities of actions"):
            make(algorithm, question=question, behaviour=GAUSSIAN)
        with pytest.raises(ValueError, match=r"Function\(function, actions=n\)"):
            make(
                algorithm,
                question=gvf.GVF(gvf.policies.Function(lambda s: np.full((len(s), 2), 0.5))),
            )


def test_a_learner_before_its_first_step() -> None:
    learner = make()
    assert not learner.weights.any()
    assert repr(learner.report()).startswith("OnlineReport(0 steps; mean ratio nan")
    learner.weights[:] = 2.0
    assert learner.predict([3]) == [2.0]
