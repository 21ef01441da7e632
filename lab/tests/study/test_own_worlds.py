"""Studies in worlds of one's own."""

from dataclasses import replace
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from own_code import told_by
from own_corrections import FollowOn

import gvf
import gvf_lab
from gvf_lab import domain as domains
from gvf_lab.domain import Domain, Signals, Trajectory
from gvf_lab.study import Study, run, run_task

pytestmark = pytest.mark.usefixtures("apart")


class Weighted(Domain):
    """Three states that lead anywhere; the first counts most."""

    name = "weighted"
    behaviours = {"uniform": gvf.policies.Uniform(2)}  # noqa: RUF012
    questions = {"left": gvf.GVF(gvf.policies.Fixed([0.8, 0.2]), "reward", 0.5)}  # noqa: RUF012
    pairs = (("left", "uniform"),)
    features, initial_weights = gvf.features.OneHot(3), np.zeros(3)
    counts: np.ndarray | None = np.array([4.0, 1.0, 0.0])
    active = False

    def walk(self, policy, questions, steps, seed):
        rng = np.random.default_rng(seed)
        state = rng.integers(3, size=steps + 1)
        action, mu = policy.act(state[:-1], rng=rng)
        seen = gvf.Transitions(
            state=state[:-1], action=action, reward=state[1:], behaviour_probability=mu
        )
        here = state[:-1] != 1 if self.active else None
        signals = {}
        for name in questions:
            ratio, cumulant, continuation, interest = self.questions[name].evaluate(seen)
            ratio = ratio if here is None else np.where(here, ratio, 0.0)
            signals[name] = Signals(ratio, cumulant, continuation, interest, here)
        x, x_next = self.features(state[:-1]), self.features(state[1:])
        return Trajectory(x, x_next, action, state[1:], signals)

    def truth(self, question, behaviour, *, states=3, seed=0):
        return gvf_lab.TrueValues(np.arange(3), np.full(3, 2.0), np.zeros(3), self.counts)


class Alike(Weighted):
    name, counts = "alike", None


class Partly(Weighted):
    name, counts, active = "partly", np.array([1.0, 0.0, 1.0]), True


GRID = {"methods": ("IR", "IS"), "step_sizes": (0.5,), "steps": 400, "window": 100, "runs": 1}


@pytest.mark.parametrize("error", ["absolute", "root mean square"])
def test_states_count_as_much_as_the_truth_says(error):
    """With weights 4, 1 and 0 the error is that over four copies of the first and one second."""

    class Copies(Weighted):
        name, counts = "copies", None

        def truth(self, question, behaviour, *, states=3, seed=0):
            return gvf_lab.TrueValues(np.array([0, 0, 0, 0, 1]), np.full(5, 2.0), np.zeros(5))

    study = Study("s", "test_own_worlds:Weighted", error=error, **GRID)
    task = next(study.tasks())
    weighted = run_task(task)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(domains, "get", lambda name, protocol="paper": Copies())
        copies = run_task(task)
        patch.setattr(domains, "get", lambda name, protocol="paper": Alike())
        alike = run_task(task)
    for one, same, other in zip(weighted, copies, alike, strict=True):
        np.testing.assert_allclose(one.error, same.error, rtol=1e-12)
        np.testing.assert_allclose(one.curve, same.curve, rtol=1e-12)
        assert abs(one.error - other.error).min() > 1e-3


def test_nothing_is_learned_where_a_question_is_not_asked():
    study = Study("s", "test_own_worlds:Partly", **GRID)
    from gvf_lab.study.task import TaskInputs

    bench = TaskInputs(next(study.tasks()))
    asked = bench.off_policy.signals["left"]
    assert asked.active is not None
    assert 0 < asked.active.mean() < 1
    drawn = bench.draws(gvf.corrections.IR())
    assert asked.active[drawn.rows[drawn.rows >= 0]].all()
    assert all(np.isfinite(outcome.error).all() for outcome in run_task(next(study.tasks())))
    for method in ("Sarsa", {"correction": "OnPolicy", "name": "as if on-policy"}):
        with pytest.raises(ValueError, match="not asked in every state"):
            run_task(next(study.with_(methods=(method,)).tasks()))


def test_a_world_is_found_by_reference_by_entry_point_and_by_id(monkeypatch):
    assert domains.get("test_own_worlds:Weighted").name == "weighted"
    points = [EntryPoint("my-world", "test_own_worlds:Alike", "gvf.domains")]
    monkeypatch.setattr(
        domains, "entry_points",
        lambda group, name=None: [p for p in points if name in (None, p.name)],
    )  # fmt: skip
    assert domains.get("my-world").name == "alike"
    assert "'my-world'" in told_by(domains.get, "my-wrld")
    assert domains.get("FrozenLake-v1").name == "FrozenLake-v1"
    assert run(Study("s", "my-world", **GRID), "out").done == 1


def test_what_is_carried_begins_anew_where_an_episode_is_cut():
    from gvf.corrections.carried import carried
    from gvf_lab.domain import GymnasiumDomain

    world = GymnasiumDomain("CartPole-v1", arguments={"max_episode_steps": 7})
    path = world.walk(world.behaviour("uniform"), ["favour-0"], 40, np.random.SeedSequence(0))
    asked = path.signals["favour-0"]
    assert path.ended is not None
    assert path.ended.nonzero()[0].tolist() == [6, 13, 20, 27, 34]
    trace = carried(FollowOn(), asked.ratio, asked.continuation, path.ended)[1]
    begins = np.concatenate([[0], path.ended.nonzero()[0] + 1])
    np.testing.assert_array_equal(trace[begins], 1.0)
    assert (carried(FollowOn(), asked.ratio, asked.continuation)[1][begins[1:]] != 1.0).any()


class Level(Weighted):
    """One dense feature, which is 2 everywhere: the weight 1 is a value of 2."""

    name, counts = "level", None
    features, initial_weights = (
        gvf.features.Dense(1, lambda s: np.full((len(s), 1), 2.0)),
        np.ones(1),
    )
    questions = {"left": gvf.GVF(gvf.policies.Fixed([0.8, 0.2]), lambda t: 0 * t.reward + 1.0, 0.5)}  # noqa: RUF012


def test_a_single_dense_feature_counts_with_its_level():
    (outcome,) = run_task(next(Study("s", "test_own_worlds:Level", **GRID | ONE).tasks()))
    assert outcome.final[0] == 0.0  # 1 + .5 * 2 = 2, from the start


class Elsewhere(Weighted):
    """Values are known in the first state only; the reward is such that others diverge."""

    name, counts = "elsewhere", None

    def truth(self, question, behaviour, *, states=1, seed=0):
        return gvf_lab.TrueValues(np.zeros(1, np.int64), np.zeros(1), np.zeros(1))

    def walk(self, policy, questions, steps, seed):
        path = super().walk(policy, questions, steps, seed)
        asked = path.signals["left"]
        odd = np.where(path.x[:, 0] == 2, 1e308, 0.0)
        changed = Signals(np.ones(steps), odd, np.zeros(steps), None)
        assert asked.active is None
        return Trajectory(path.x, path.x_next, path.action, path.next_state, {"left": changed})


ONE = {"methods": ({"correction": "OnPolicy", "name": "plain"},), "step_sizes": (1.0,)}


def test_a_lane_that_diverges_where_nobody_looks_has_diverged():
    sizes = {"methods": ({"correction": "OnPolicy", "name": "plain"},), "step_sizes": (0.5, 1e3)}
    study = Study("s", "test_own_worlds:Elsewhere", **GRID | sizes)
    (outcome,) = run_task(next(study.tasks()))
    assert np.isfinite(outcome.final[0])
    assert np.isinf(outcome.final[1])


class Redrawn(Weighted):
    """Every run has weights of its own to start with."""

    name = "redrawn"

    def for_run(self, run, seed):
        mine = Redrawn()
        mine.initial_weights = np.full(3, 100.0 * run)
        return mine


def test_a_world_may_differ_from_run_to_run():
    study = Study("s", "test_own_worlds:Redrawn", **GRID | {"runs": 2, "step_sizes": (0.0,)})
    first, second = (run_task(task)[0] for task in study.tasks())
    assert (first.final[0], second.final[0]) == (2.0, 98.0)


class Endless(Weighted):
    """A walk on which every ratio is 10, and the question never ends."""

    name = "endless"

    def walk(self, policy, questions, steps, seed):
        path = super().walk(policy, questions, steps, seed)
        large, ones = np.full(steps, 10.0), np.ones(steps)
        signals = {q: replace(path.signals[q], ratio=large, continuation=ones) for q in questions}
        return replace(path, signals=signals)


def test_a_trace_that_overflows_in_a_study_leaves_the_other_methods_alone():
    methods = ("Emphatic IR", "IR", "EmphaticIR(0.05)")
    study = Study(
        "s", "test_own_worlds:Endless", methods, (0.1, 0.2), steps=600, window=100, runs=1
    )
    task = next(iter(study.tasks()))
    with pytest.warns(RuntimeWarning, match=r"question .*: the trace of Emphatic IR overflows"):
        lost, *others = run_task(task)
    assert np.isinf([*lost.error, *lost.final, *lost.curve.ravel()]).all()
    for outcome in others:
        assert np.isfinite(outcome.error).all()
        assert outcome.curve.shape == lost.curve.shape
