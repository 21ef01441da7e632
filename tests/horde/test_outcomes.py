"""Checks of predictions while a horde learns: against returns added up row by row."""

import copy
import pickle

import numpy as np
import pytest
from dumb_ray import DumbRay
from many_learners import BEHAVIOUR, stream
from test_cut_returns import STATES, values, world

import gvf
from gvf.jobs import RayCluster
from gvf.jobs import ray_cluster as cluster

FEATURES = {
    "tiles": gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4),
    "dense": gvf.features.Dense(5, lambda s: np.column_stack([np.ones(len(s)), s, s**2])),
}


def sometimes(transitions):
    """A continuation that depends on the state."""
    return np.where(transitions["next_state"][:, 0] > 0.7, 0.0, 0.8)


SIGNALS = {"reward": "reward", "first": lambda t: t.next_state[:, 0]}
HORIZONS = {"0": 0.0, "0.5": 0.5, "0.9": 0.9, "some": sometimes, "1": 1.0}
ASKED = [
    *gvf.question_grid({"mu": BEHAVIOUR}, SIGNALS, HORIZONS),
    *gvf.question_grid({"u": gvf.policies.Uniform(3)}, SIGNALS, HORIZONS),
]
ON = len(SIGNALS) * len(HORIZONS)


def made(kind="tiles", questions=ASKED, **options):
    options = {"window": 90, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return gvf.Horde(questions, FEATURES[kind], gvf.updates.TD(0.05), **options)


class Dumb:
    """The checks of one question, one row at a time."""

    def __init__(self, question):
        self.question, self.pairs, self.cut = question, [], 0
        self.v = None  # the prediction that waits
        self.largest = 0.0
        self.last = {}  # the row before in each stream
        self.ages, self.truncated, self.longest = {}, 0, 0

    def see(self, row):
        """See a row; `row` has one transition."""
        name = row.stream[0] if "stream" in row else 0
        before = self.last.get(name)
        follows = before is not None and bool((before.next_state[0] == row.state[0]).all())
        age = self.ages[name] = (self.ages.get(name, 0) if follows else 0) + 1
        self.longest = max(self.longest, age)
        if row.truncated[0]:
            self.truncated = max(self.truncated, age)
        cumulant = self.question.cumulants(row)[0]
        gamma = self.question.continuations(row)[0]
        at_most = gamma if callable(self.question.continuation) else self.question.continuation
        self.largest = max(self.largest, at_most)
        if self.v is not None and self.name == name:
            if age == 1:
                self.v, self.cut = None, self.cut + 1
            else:
                self.total += self.left * cumulant
                self.left *= gamma
                if self.left <= 0.01:
                    self.pairs.append((self.v, self.total))
                    self.v = None
        ended = row.terminated[0] or row.truncated[0]
        if ended:
            self.ages[name] = 0
        self.last[name] = None if ended else row
        self.newest = name, not ended

    @property
    def limit(self):
        """The time limit, or None."""
        return self.truncated if self.truncated and self.longest == self.truncated else None

    def look(self, value):
        """Take the prediction for the next state of the newest row, if none waits."""
        name, goes_on = self.newest
        if self.v is not None or not goes_on:
            return
        product, steps = 1.0, 0
        while product > 0.01 and steps < 10_000:
            product, steps = product * self.largest, steps + 1
        if self.limit and self.limit - self.ages[name] < steps <= self.limit:
            return
        self.v, self.name, self.total, self.left = value, name, 0.0, 1.0

    @property
    def explained(self):
        """The variance explained, with averages over the latest hundred returns or so."""
        if len(self.pairs) < 20:
            return np.nan
        v, G = np.transpose(self.pairs)
        weights = np.ones(1)
        for n in range(2, len(G) + 1):
            rate = max(1 / n, 1 / 100)
            weights = np.append(weights * (1 - rate), rate)
        mean = weights @ G
        return 1 - weights @ (v - G) ** 2 / (weights @ (G - mean) ** 2)


def interleaved(steps, environments):
    """Rows of several environments in turn, some of which are missing."""
    parts = [stream(steps, states=0, seed=i, ends=0.02) for i in range(environments)]
    rows = {
        name: np.stack([part[name] for part in parts], axis=1).reshape(
            steps * environments, *column.shape[1:]
        )
        for name, column in parts[0].columns.items()
    }
    data = gvf.Transitions(**rows, stream=np.tile(np.arange(environments) * 7, steps))
    rng = np.random.default_rng(9)
    return data[np.flatnonzero(rng.random(len(data)) < 0.998)]


STREAMS = {
    "one": lambda: stream(6_000, states=0, ends=0.02),
    "no ends": lambda: stream(4_000, states=0, ends=0.0),
    "short": lambda: stream(3_000, states=0, ends=0.3),
    "several, with missing rows": lambda: interleaved(3_000, 3),
}


def oracles(horde, data, pieces):
    """Let a horde learn, and oracles beside it."""
    found = [Dumb(question) for question in horde.questions]
    for start in range(0, len(data), pieces):
        batch = data[start : start + pieces]
        horde.observe(batch)
        for i in range(len(batch)):
            for oracle in found:
                oracle.see(batch[i : i + 1])
        if horde.steps % 64 == 0:
            for oracle, value in zip(found, horde.predict(batch.next_state[-1:])[0], strict=True):
                oracle.look(value)
    return found


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("kind", FEATURES)
def test_predictions_are_checked_by_the_returns_that_follow(kind, name):
    data = STREAMS[name]()
    horde = made(kind, ASKED[:ON])
    found = oracles(horde, data, 32)
    report = horde.report()
    assert report.on_policy.all()
    assert report.returns.tolist() == [len(oracle.pairs) for oracle in found]
    assert report.cut.tolist() == [oracle.cut for oracle in found]
    expected = [oracle.explained for oracle in found]
    np.testing.assert_allclose(report.variance_explained, expected, rtol=1e-9, atol=1e-9)
    assert (report.returns >= 20).sum() >= 4


def test_pieces_and_chunks_do_not_matter():
    data, reports = interleaved(1_500, 2), []
    for steps_per_call, pieces in ((1, 1), (None, 5_000), (7, 50)):
        horde = made(steps_per_call=steps_per_call)
        for start in range(0, len(data), pieces):
            horde.observe(data[start : start + pieces])
        reports.append(horde.report())
    for report in reports[1:]:
        for name in ("returns", "cut", "on_policy", "worse"):
            np.testing.assert_array_equal(getattr(report, name), getattr(reports[0], name))
        np.testing.assert_allclose(
            report.variance_explained, reports[0].variance_explained, rtol=1e-8
        )
    assert np.isfinite(reports[0].variance_explained).sum() > 4


def exact(offsets, gamma=0.9, seed=0, steps=40_000, **cut):
    """A horde that predicts exact values times some factors, and has seen a stream; no learning."""
    names = [f"{i}, {offset:g}" for i, offset in enumerate(offsets)]
    asked = [gvf.GVF(gvf.policies.Uniform(1), "reward", gamma, name=name) for name in names]
    horde = gvf.Horde(
        asked,
        gvf.features.OneHot(STATES),
        gvf.updates.TD(0.1),
        behaviour=gvf.policies.Uniform(1),
        warm_up=10**9,
        seed=0,
    )
    horde._predict([0])
    engine = horde._shard.weights
    assert engine is not None
    place = horde._layout.place
    engine.put(place, {"weights": np.outer(offsets, values(gamma))})
    horde.observe(_plain(world(steps, seed, **cut)))
    return horde


def test_questions_far_worse_than_a_constant_are_named():
    factors = [1.0, 3.0, 1.0, -2.0, 1.0, 0.0, *[1.0] * 6]
    horde = exact(factors)
    report = horde.report()
    (warning,) = report.warnings
    assert warning.problem is gvf.learners.Problem.WORSE
    assert set(warning.questions) == {"1, 3", "3, -2", "5, 0"}
    assert warning.value == report.variance_explained.min() < -5
    assert list(warning.questions) == sorted(
        warning.questions, key=lambda name: report.variance_explained[report.names.index(name)]
    )
    assert report.variance_explained[0] > -0.05
    for shown in (repr(report), " ".join(repr(horde.diagnose()).split())):
        assert "3 questions predict worse than a constant: 3, -2; 1, 3; 5, 0" in shown


def test_exact_values_are_not_warned_of():
    """Nor are constants as good as the mean of the returns before, at three standard errors."""
    long = exact([1.0], steps=100_000)._shard.outcomes
    # The mean of about 200 returns is off by a fourteenth of their standard deviation.
    constant = long.mean[0] + np.sqrt(long.variance[0] / 200)
    warned = np.zeros(2)
    for seed in range(40):
        horde = exact([1.0, 1.0], seed=seed, steps=8_000)
        engine, place = horde._shard.weights, horde._layout.place[:1]
        assert engine is not None
        assert not horde.report().warnings
        engine.put(place, {"weights": np.full((1, STATES), constant)})
        horde.observe(_plain(world(20_000, 1000 + seed)))
        warned += horde.report().worse
    # With the chance .002 in each of 40 streams, 2 have the chance .003.
    assert warned.max() <= 2


def _plain(data):
    return gvf.Transitions(
        **{n: c for n, c in data.columns.items() if n != "behaviour_probability"}
    )


def test_a_time_limit_does_not_bias_the_checks():
    """The mean return is that of exact values, within three standard errors."""
    away = []
    for seed in range(40):
        horde = exact([1.0], limit=60, seed=seed, steps=12_000)
        outcomes, report = horde._shard.outcomes, horde.report()
        assert report.cut[0] <= 2  # those begun before the limit was known
        assert report.returns[0] > 60
        away.append(outcomes.mean[0])
    free = [exact([1.0], seed=100 + s, steps=12_000)._shard.outcomes.mean[0] for s in range(40)]
    error = np.hypot(np.std(away), np.std(free)) / np.sqrt(39)
    assert abs(np.mean(away) - np.mean(free)) < 3 * error


def test_returns_that_are_cut_at_any_time_are_no_check():
    report = exact([-2.0], steps=10_000, chance=0.05).report()
    assert report.worse.all()  # of those that were not cut
    assert report.unchecked == {"returns cut": 1}
    assert gvf.learners.Problem.CUT in report.problems
    (warning,) = report.warnings
    assert (warning.problem, warning.questions) == (gvf.learners.Problem.CUT, ("0, -2",))
    assert 0.1 < warning.value < 0.9


def test_what_was_not_checked_is_told():
    horde = made()
    horde.observe(stream(6_400, states=0, ends=0.0))
    report = horde.report()
    assert report.on_policy.tolist() == [True] * ON + [False] * ON
    assert np.isnan(report.variance_explained[ON:]).all()
    assert not report.returns[ON:].any()
    # Without an end no return with the continuation 1 is complete.
    assert report.unchecked == {"off-policy": ON, "too few returns": 2}
    shown = " ".join(repr(horde.diagnose()).split())
    assert f"{ON} about other policies (return_error in an environment" in shown
    assert f"variance explained of {ON - 2} questions about the behaviour" in repr(report)


def test_a_policy_that_stops_acting_is_dropped_and_comes_back():
    def acted_by(policy, steps, seed):
        data = stream(steps, states=0, ends=0.0, seed=seed)
        rng = np.random.default_rng(seed)
        action = policy.sample(np.zeros(steps), rng=rng)
        return gvf.Transitions(
            **{**data.columns, "action": action},
            behaviour_probability=policy.probability(data.state, action),
        )

    policies = {"f": gvf.policies.Favour(0, 0.5, 3), "u": gvf.policies.Uniform(3)}
    asked = gvf.question_grid(policies, {"reward": "reward"}, [0.5])
    horde = made(questions=asked, behaviour=None, window=300)
    expected = [("u", 3_200, [False, True]), ("f", 250, [False, False]), ("f", 400, [True, False])]
    returns = []
    for i, (name, steps, on) in enumerate(expected):
        horde.observe(acted_by(policies[name], steps, i))
        assert horde.report().on_policy.tolist() == on
        returns.append(horde.report().returns.tolist())
    assert returns[0][0] == 0
    assert 40 < returns[0][1] <= 50
    assert returns[1] == [0, 0]
    assert 0 < returns[2][0] <= 6


def test_a_sensor_that_fails_drops_the_return_that_waits():
    data = stream(640, states=0, ends=0.0)
    weak = data.reward.copy()
    weak[70] = np.nan
    asked = gvf.question_grid({"mu": BEHAVIOUR}, {"good": "reward", "weak": "weak"}, [0.9])
    horde = made(questions=asked, window=100)
    sick = gvf.Transitions(**data.columns, weak=weak)
    horde.observe(sick[:69])
    assert horde._shard.outcomes.waiting == 2
    horde.observe(sick[69:128])
    assert horde._shard.outcomes.waiting == 1  # the other began anew; this one pauses
    horde.observe(sick[128:])
    report = horde.report()
    assert report.cut.tolist() == [0, 0]
    assert report.returns[1] == report.returns[0] - 2


def test_a_stream_that_comes_no_more_is_given_up():
    data = stream(11_000, states=0, ends=0.0)
    name = np.where(np.arange(11_000) < 70, 5, 6)
    asked = [gvf.GVF(BEHAVIOUR, "reward", 0.99, name="q")]
    horde = made(questions=asked)
    horde.observe(gvf.Transitions(**data.columns, stream=name)[:10_000])
    assert (horde.report().returns[0], horde.report().cut[0]) == (0, 0)
    horde.observe(gvf.Transitions(**data.columns, stream=name)[10_000:])
    assert (horde.report().returns[0], horde.report().cut[0]) == (1, 1)


def test_a_return_that_takes_long_is_not_given_up():
    data = stream(16_000, states=0, ends=0.0)
    horde = made(questions=[gvf.GVF(BEHAVIOUR, "reward", 0.9997, name="q")])
    horde.observe(data)
    assert (horde.report().returns[0], horde.report().cut[0]) == (1, 0)


def states_of(horde):
    return {
        name: array
        for name, array in horde._arrays().items()
        if name.startswith(("shard/outcomes/", "signals/courses/"))
    }


def assert_same(one, other):
    ours, theirs = states_of(one), states_of(other)
    assert list(ours) == list(theirs) != []
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)
    assert repr(one.report()) == repr(other.report())


@pytest.mark.parametrize("how", ["file", "copy", "pickle", "ray"])
def test_checks_are_saved_and_go_on(tmp_path, monkeypatch, how):
    ray = DumbRay()
    monkeypatch.setattr(cluster, "import_ray", lambda: ray)
    asked = [
        gvf.GVF(policy, "reward", gamma, name=f"{policy}, {gamma}")
        for policy in (BEHAVIOUR, gvf.policies.Uniform(3))
        for gamma in (0.0, 0.9, 0.99)
    ]
    data = interleaved(2_000, 2)
    horde, again = made(questions=asked), made(questions=asked, seed=5)
    horde.observe(data[:2_010])
    assert horde._shard.outcomes.waiting
    if how == "file":
        horde.save(tmp_path / "horde")
        again.load(tmp_path / "horde")
    elif how == "copy":
        again = copy.deepcopy(horde)
    elif how == "pickle":
        again = pickle.loads(pickle.dumps(horde))
    else:
        again = made(questions=asked, workers=RayCluster(workers=2))
        again.observe(data[:2_010])
    assert_same(horde, again)
    for one in (horde, again):
        one.observe(data[2_010:])
    assert_same(horde, again)
    assert horde.report().returns[:3].min() > 0
    assert np.isfinite(horde.report().variance_explained[:2]).all()


def test_questions_that_come_and_go_keep_their_checks():
    data = stream(4_000, states=0, ends=0.02)
    alone, changing = made(questions=ASKED[2:6]), made(questions=ASKED[:6])
    alone.observe(data[:1_000])
    changing.observe(data[:1_000])
    changing.add(ASKED[ON : ON + 2])
    changing.remove([question.name for question in ASKED[:2]])
    for horde in (alone, changing):
        horde.observe(data[1_000:])
    one, other = alone.report(), changing.report()
    assert other.names[:4] == one.names
    np.testing.assert_array_equal(other.returns[:4], one.returns)
    np.testing.assert_array_equal(other.cut[:4], one.cut)
    np.testing.assert_allclose(
        other.variance_explained[:4], one.variance_explained, rtol=1e-9, atol=1e-12
    )
    assert other.on_policy.tolist() == [True] * 4 + [False] * 2
