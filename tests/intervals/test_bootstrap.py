"""`gvf.bootstrap` and `gvf.BootstrapResult`: coverage, unknown states, files, errors, Ctrl-C."""

import pickle
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from chains import BEHAVIOUR, QUESTION, STATES, episodes, learner, read
from five_states import chain_values
from numba import njit

import gvf
from gvf.intervals import replicates
from gvf.intervals.replicates import Replicate
from gvf.intervals.whole_log import WholeLog
from gvf.jobs import RayCluster
from gvf.jobs import ray_cluster as cluster
from gvf.online import TDLambda


def truth() -> np.ndarray[Any, Any]:
    """The true values of the chain's states."""
    return chain_values(QUESTION.policy, 0.9, states=len(STATES))


def intervals(count: int = 30, seed: int = 0, **options: Any) -> gvf.BootstrapResult:
    options = {"method": "lstd", "seed": 0, **options}
    return gvf.bootstrap(learner(), read(episodes(count, seed)), **options)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Sixty logs of 40 episodes; 7 states a log, which are not independent.

    The bounds leave out 1 in 1000 outcomes if each log had but one state: binomial, 60 draws.
    """
    values, covered = truth(), []
    for seed in range(60):
        found = intervals(40, seed=100 + seed, replicates=99)
        point, low, high = found.predict(STATES, level=0.8)
        assert ((low < point) & (point < high)).all()
        covered.append(((low <= values) & (values <= high)).mean())
    assert 0.62 < np.mean(covered) < 0.94
    assert np.mean(covered) < 0.99


def test_an_interval_reaches_as_far_as_the_share_of_replicates() -> None:
    found = intervals(replicates=39)
    for level, reached in ((0.95, 38), (0.5, 20)):
        point, low, high = found.predict(STATES, level=level)
        drawn = found.replicate(STATES)
        assert drawn.shape == (8, 39)
        np.testing.assert_allclose(high - point, point - low)
        inside = (drawn >= low[:, None] - 1e-15) & (drawn <= high[:, None] + 1e-15)
        assert (inside.sum(axis=1) == reached).all()


def test_large_batches_of_states_are_taken_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    found, states = intervals(), np.tile(STATES, 5)
    together = found.predict(states)
    monkeypatch.setattr("gvf.intervals.bootstrap_result._TOGETHER", 3 * 200)
    for one, other in zip(together, found.predict(states), strict=True):
        np.testing.assert_array_equal(one, other)
    assert [len(end) for end in found.predict(STATES[:0])] == [0, 0, 0]


def test_a_state_that_the_log_never_saw_has_an_infinite_interval() -> None:
    made = [one for one in episodes(60, seed=3) if one["state"].max() < 7]
    for one in made:  # in state 2 the target never does what the behaviour did
        one["behaviour_probability"][:] = 1.0
        one["action"][:] = np.where(one["state"][:-1] == 2, 0, 1)
        one["reward"][:] = one["state"][1:]
    question = replace(QUESTION, policy=gvf.policies.Table(np.eye(2)[np.ones(10, int)]))
    for update in (gvf.updates.TD(0.1), gvf.updates.ExpectedSarsa(0.1)):
        one = gvf.Learner(question, gvf.features.OneHot(10), update, seed=0)
        found = gvf.bootstrap(one, read(made), method="lstd")
        point, low, high = found.predict([1, 2, 5, 7])
        assert np.isinf(high - low).tolist() == [False, True, False, True]
        assert np.isfinite(point).all()
        assert (low < high).any()


def test_half_of_the_tiles_must_be_known() -> None:
    known = np.array([True, True, False, False])
    weights = np.random.default_rng(0).normal(size=(1, 4, 20))
    found = replace(
        intervals(replicates=19),
        features=gvf.features.Dense(4, lambda s: np.asarray(s, np.float64)),
        weights=weights,
        known=known[None],
    )
    states = [[1, 0, 0, 0], [1, 0, -1, 0], [1, 0, -1, 1], [0, 0, 0, 1], [0, 0, 0, 0]]
    infinite = np.isinf(found.predict(states).high)
    assert infinite.tolist() == [False, False, True, True, True]  # without features, all agree


def test_replicates_that_diverged_make_the_interval_infinite() -> None:
    found = intervals(replicates=39)
    for lost, infinite in ((1, False), (2, True)):
        weights = found.weights.copy()
        weights[:, 5, 1 : 1 + lost] = np.nan
        _, low, high = replace(found, weights=weights).predict([5, 6])
        assert np.isinf([low, high]).tolist() == [[infinite, False]] * 2
    weights[:, 5, 0] = np.inf
    point, low, high = replace(found, weights=weights).predict([5])
    assert [*point, *low, *high] == [np.inf, -np.inf, np.inf]


@pytest.mark.parametrize("method", ["td", "lstd"])
def test_a_horde_has_the_intervals_of_its_questions(method: Any) -> None:
    policies = {"right": gvf.policies.Fixed([0.1, 0.9]), "left": gvf.policies.Fixed([0.8, 0.2])}
    asked = gvf.question_grid(policies, {"reward": "reward"}, [0.5, 0.9])
    log = read(episodes(60, seed=1))
    options: dict[str, Any] = {"method": method, "replicates": 39, "epochs": 2, "seed": 3}
    horde = gvf.Horde(
        asked,
        gvf.features.OneHot(10),
        gvf.updates.TD(0.2),
        gvf.corrections.BCIR(),
        batch_size=8,
        seed=0,
    )
    found = gvf.bootstrap(horde, log, **options)
    assert "4 questions: 95 %, 39 replicates of 60 episodes" in repr(found)
    assert found.questions == horde.names
    ends = found.predict(STATES)
    assert ends.point.shape == (8, 4)
    assert found.replicate(STATES).shape == (8, 4, 39)
    for g, question in enumerate(asked):
        one = gvf.Learner(
            question,
            gvf.features.OneHot(10),
            gvf.updates.TD(0.2),
            gvf.corrections.BCIR(),
            batch_size=8,
        )
        alone = gvf.bootstrap(one, log, **options)
        for end, other in zip(ends, alone.predict(STATES), strict=True):
            np.testing.assert_array_equal(end[:, g], other)


def test_intervals_are_the_same_after_a_file(tmp_path: Path) -> None:
    log = read(episodes(20, seed=1))
    sarsa = gvf.Learner(
        QUESTION,
        gvf.features.OneHot(10),
        gvf.updates.ExpectedSarsa(0.1),
        gvf.corrections.OnPolicy(),
    )
    asked = gvf.question_grid({"right": QUESTION.policy}, {"reward": "reward"}, [0.5, 0.9])
    horde = gvf.Horde(asked, gvf.features.OneHot(10), gvf.updates.TD(0.2), behaviour=BEHAVIOUR)
    for one in (learner(), sarsa, horde):
        found = gvf.bootstrap(one, log, seed=1)
        found.save(tmp_path / "intervals")
        again = gvf.BootstrapResult.load(tmp_path / "intervals")
        assert repr(again) == repr(found)
        np.testing.assert_array_equal(again.predict([3, 9]), found.predict([3, 9]))
    learner().save(tmp_path / "learner")
    with pytest.raises(ValueError, match="holds a learner, not a bootstrap"):
        gvf.BootstrapResult.load(tmp_path / "learner")


def test_a_learner_with_all_options_has_intervals_and_does_not_change() -> None:
    made = episodes(20, seed=2)
    made[3]["reward"][0] = np.nan
    log = gvf.read_log(made, on_nan="keep", quiet=True)
    one = learner(
        gvf.updates.TD(),
        gvf.corrections.EmphaticBCIR(0.5),
        on_nan="skip",
        n_step=2,
        update_every=3,
        warm_up=5,
    )
    before = one.weights.copy()
    found = gvf.bootstrap(one, log, epochs=4, seed=1)
    rows = len(log) - 1
    assert found.updates == 4 * rows // 3
    assert np.array_equal(one.weights, before)
    assert one.steps == 0
    _, low, high = found.predict(STATES)
    assert (low < high).all()
    with pytest.raises(ValueError, match="reward"):
        gvf.bootstrap(learner(), log)


def test_a_stream_without_episodes_needs_blocks() -> None:
    made = episodes(200, seed=4)
    stream = {
        "state": np.concatenate([one["state"][:-1] for one in made]),
        "action": np.concatenate([one["action"] for one in made]),
        "reward": np.concatenate([one["reward"] for one in made]),
        "next_state": np.concatenate([one["state"][1:] for one in made]),
        "behaviour_probability": 0.5,
    }
    question = replace(QUESTION, continuation=lambda t: 0.9 * (t.next_state % 9 != 0))
    one = gvf.Learner(question, gvf.features.OneHot(10), gvf.updates.TD(0.1), behaviour=BEHAVIOUR)
    rows = len(stream["state"])
    stream["behaviour_probability"] = np.full(rows, 0.5)
    log = gvf.read_log(
        stream | {"episode": np.zeros(rows, int)},
        ends="truncated",
        gaps="keep",  # the continuation is 0 where the next row begins elsewhere
        next_state="next_state",
        quiet=True,
    )
    with pytest.raises(ValueError, match=r"has 1 episode, and intervals need .* block="):
        gvf.bootstrap(one, log)
    blocks = gvf.bootstrap(one, log, block=50, method="lstd")
    assert f"{-(-len(log) // 50)} blocks of 50 steps" in repr(blocks)
    episodic = gvf.bootstrap(learner(), read(made), method="lstd")
    widths = [np.diff(found.predict(STATES)[1:], axis=0).mean() for found in (blocks, episodic)]
    assert widths[0] == pytest.approx(widths[1], rel=0.3)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"level": 1.0}, ValueError, "level must be between 0 and 1"),
    ({"replicates": 18}, ValueError, "needs at least 19 replicates, and there are 18"),
    ({"level": 0.999}, ValueError, "needs at least 999"),
    ({"method": "bayes"}, ValueError, "method"),
    ({"block": 0}, ValueError, "block must be at least 1"),
    ({"epochs": 0}, ValueError, "epochs must be at least 1"),
    ({"workers": 0}, ValueError, "workers must be at least 1"),
]


@pytest.mark.parametrize(("options", "error", "message"), BAD)
def test_bad_arguments_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gvf.bootstrap(learner(), read(episodes(6, seed=0)), **options)


def test_learners_without_lanes_are_refused() -> None:
    log = read(episodes(6, seed=0))
    online: Any = gvf.OnlineLearner(QUESTION, gvf.features.OneHot(10), TDLambda(0.1))
    for given, message in (
        (online, "a gvf.Learner, a gvf.LSTDLearner or a gvf.Horde"),
        (learner(gvf.updates.TD([0.1, 0.2])), "has 2 step sizes"),
        (learner(correction=gvf.corrections.PrioritisedIR()), "choose another correction"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            gvf.bootstrap(given, log)
    transitions: Any = log.transitions()
    with pytest.raises(TypeError, match=r"takes a gvf.Log.*gvf.read_log"):
        gvf.bootstrap(learner(), transitions)
    with pytest.raises(ValueError, match="has 4 episodes, and intervals need at least 5"):
        gvf.bootstrap(learner(), read(episodes(4, seed=0)))


def test_least_squares_have_the_intervals_of_the_learner_that_tends_to_them() -> None:
    log, correction = read(episodes(30, seed=0)), gvf.corrections.IR()
    solver = gvf.LSTDLearner(QUESTION, gvf.features.OneHot(10), correction, behaviour=BEHAVIOUR)
    found = gvf.bootstrap(solver, log, seed=2)
    expected = gvf.bootstrap(learner(correction=correction), log, method="lstd", seed=2)
    np.testing.assert_array_equal(found.predict(STATES), expected.predict(STATES))
    solver.fit(log)
    np.testing.assert_allclose(found.predict(STATES).point, solver.predict(STATES), rtol=1e-6)
    with pytest.raises(ValueError, match="no step size to learn with: take method='lstd'"):
        gvf.bootstrap(solver, log, method="td")
    with pytest.raises(ValueError, match="replicates have no regulariser"):
        gvf.bootstrap(gvf.LSTDLearner(QUESTION, gvf.features.OneHot(10), regulariser=1.0), log)


def test_the_mean_over_states_has_the_interval_of_the_replicates_means(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = gvf.bootstrap(learner(), read(episodes(30, seed=0)), method="lstd", seed=0)
    states = np.repeat(STATES, [1, 2, 3, 1, 2, 3, 1, 2])
    means = found.replicate(states).mean(axis=0)
    point = found.predict(states).point.mean()
    for level, reached in ((0.95, 190), (0.8, 160)):
        half = np.sort(np.abs(means - point))[reached - 1]
        given = found.mean(states, level=level)
        np.testing.assert_allclose(given, [point, point - half, point + half])
    assert np.ptp(given) < np.mean(np.ptp(found.predict(states, level=0.8), axis=0))
    monkeypatch.setattr("gvf.intervals.bootstrap_result._TOGETHER", 1000)  # five states at a time
    np.testing.assert_allclose(found.mean(states, level=0.8), given)
    unseen = found.mean([*STATES, 0])  # no transition begins in state 0
    assert (unseen.low, unseen.high) == (-np.inf, np.inf)
    with pytest.raises(ValueError, match="a mean over no states"):
        found.mean([])
    twice = gvf.GVF(QUESTION.policy, "reward", 0.9, name="again")
    horde = gvf.Horde(
        [QUESTION, twice], gvf.features.OneHot(10), gvf.updates.TD(0.1), gvf.corrections.IR()
    )
    both = gvf.bootstrap(horde, read(episodes(30, seed=0)), method="lstd", seed=0)
    for end, one in zip(both.mean(states), found.mean(states), strict=True):
        np.testing.assert_allclose(end, [one, one])


def test_an_update_of_the_users_own_has_replicates() -> None:
    @njit
    def one_weight(state: Any, experience: Any, slots: Any, w: Any) -> None:
        for i in range(slots.size):
            state.weights[experience.x[slots[i], 0], 0] += w[i]

    @dataclass(frozen=True)
    class Own(gvf.updates.Update):
        step_size: float = 1.0
        kernel = staticmethod(one_weight)

    found = gvf.bootstrap(learner(Own()), read(episodes(12, seed=0)), epochs=2, replicates=19)
    np.testing.assert_allclose(found.weights[0].sum(axis=0), found.updates)  # IR weighs by 1 / k


def test_estimated_ratios_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "estimated" not in repr(intervals())
    monkeypatch.setattr(gvf.Log, "has_estimates", True, raising=False)
    assert repr(intervals()).endswith("lstd, estimated ratios)")
    sarsa = gvf.Learner(
        QUESTION,
        gvf.features.OneHot(10),
        gvf.updates.ExpectedSarsa(0.1),
        gvf.corrections.OnPolicy(),
    )
    assert "estimated" not in repr(gvf.bootstrap(sarsa, read(episodes(20, seed=1))))


@pytest.mark.parametrize("when", ["reading", "learning", "solving"])
def test_control_c_stops_soon(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def interrupt(call: Callable[..., Any]) -> Callable[..., Any]:
        def interrupted(*given: Any) -> Any:
            calls.append(when)
            if len(calls) == 1:
                signal.raise_signal(signal.SIGINT)
            time.sleep(0.02)
            return call(*given)

        return interrupted

    places = {
        "reading": (WholeLog, "_insert"),
        "learning": (Replicate, "learn"),
        "solving": (replicates, "solved"),
    }
    method = "lstd" if when == "solving" else "td"
    kind, name = places[when]
    monkeypatch.setattr(kind, name, interrupt(getattr(kind, name)))
    monkeypatch.setattr("gvf.learners.batches.LONGEST_BATCH", 20)
    with pytest.raises(KeyboardInterrupt):
        gvf.bootstrap(learner(), read(episodes(100, seed=0)), method=method, epochs=100)
    assert len(calls) < 40  # two threads, each of which looks after a fifth of a second at most


def test_the_bar_ends_at_its_total(monkeypatch: pytest.MonkeyPatch) -> None:
    totals: list[int] = []

    @contextmanager
    def bar(title: str, total: int, before: int, **options: Any) -> Iterator[Callable[[], None]]:
        totals.append(total)
        done: list[int] = []
        yield lambda: done.append(1)
        assert sum(done) == total

    monkeypatch.setattr(sys.modules["gvf.jobs.run_jobs"], "progress_of", bar)
    monkeypatch.setattr(cluster, "import_ray", DumbRay)
    given: list[dict[str, Any]] = [{"method": "lstd"}, {"epochs": 3}, {"workers": RayCluster()}]
    for options in given:
        gvf.bootstrap(learner(update_every=7), read(episodes(12, seed=0)), **options)
    assert totals == [200] * 3


def test_long_solving_tells_how_far_it_is_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def slow(whole: WholeLog, copies: Any) -> Any:
        time.sleep(0.02)
        return np.zeros(10)

    monkeypatch.setattr("gvf.common.progress.EVERY", 0.1)
    monkeypatch.setattr(replicates, "solved", slow)
    intervals(replicates=39, workers=1)
    lines = capsys.readouterr().err.splitlines()
    estimate = r"bootstrap: [1-9]\d* of 40, \d s so far, about \d s left"
    assert any(re.fullmatch(estimate, line) for line in lines)
    intervals(replicates=39, workers=1, progress=False)
    assert not capsys.readouterr().err


class DumbRay:
    """A cluster of this process: arguments and results are pickled."""

    cloudpickle = pickle

    def __init__(self) -> None:
        self.running, self.batches = False, 0

    def is_initialized(self) -> bool:
        return self.running

    def init(self, **options: Any) -> None:
        self.running = True

    def shutdown(self) -> None:
        self.running = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 3.0}

    def put(self, value: Any) -> bytes:
        return pickle.dumps(value)

    def remote(self, **options: Any) -> Any:
        def wrapped(function: Any) -> Any:
            class Remote:
                @staticmethod
                def remote(shared: bytes, batch: bytes) -> bytes:
                    self.batches += 1
                    return pickle.dumps(function(pickle.loads(shared), batch))

            return Remote

        return wrapped

    def wait(self, tasks: list[bytes], timeout: float, num_returns: int = 1) -> Any:
        return tasks[:num_returns], tasks[num_returns:]

    def get(self, value: bytes) -> Any:
        return pickle.loads(value)


@pytest.mark.parametrize("method", ["td", "lstd"])
def test_replicates_on_a_cluster_are_the_same_bits(
    method: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray, log = DumbRay(), read(episodes(10, seed=0))
    monkeypatch.setattr(cluster, "import_ray", lambda: ray)
    here = gvf.bootstrap(learner(), log, method=method, seed=4)
    there = gvf.bootstrap(learner(), log, method=method, seed=4, workers=RayCluster())
    np.testing.assert_array_equal(here.weights, there.weights)
    assert repr(here) == repr(there)
    assert here.updates == there.updates
    assert ray.batches > 3
    assert not ray.running
