"""Watching the errors of questions: against one question, one row and one number at a time."""

import numpy as np
import pytest
from many_learners import BEHAVIOUR, asked, stream

import gvf
from gvf.features import features_of

FEATURES = {
    "tiles": gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4),
    "dense": gvf.features.Dense(5, lambda s: np.column_stack([np.ones(len(s)), s, s**2])),
}


class Dumb:
    """UDE and RUPEE of one question, step by step."""

    def __init__(self, size, rows):
        self.rows, self.seen = rows, 0
        self.recent = self.mean = self.square = self.longest = 0.0
        self.h, self.m = np.zeros(size), np.zeros(size)

    def look(self, x, x_next, weights, found):
        """Look at the last rows; `found` is a :class:`gvf.Evaluation` of all rows so far."""
        self.largest = np.abs(found.cumulant).max()
        last = range(len(x) - self.rows, len(x))
        self.longest = max(self.longest, *(x[t] @ x[t] for t in last))
        for t in last:
            error = found.cumulant[t] + found.continuation[t] * x_next[t] @ weights - x[t] @ weights
            y = found.ratio[t] * error
            self.seen += 1
            self.recent = (1 - 1 / 200) * self.recent + 1 / 200 * y
            self.mean = (1 - 1 / 20_000) * self.mean + 1 / 20_000 * y
            self.square = (1 - 1 / 20_000) * self.square + 1 / 20_000 * y**2
            self.h = self.h + 0.1 / self.longest * (y - self.h @ x[t]) * x[t]
            self.m = (1 - 1 / 200) * self.m + 1 / 200 * y * x[t]

    @property
    def ude(self):
        short, long = 1 - (1 - 1 / 200) ** self.seen, 1 - (1 - 1 / 20_000) ** self.seen
        deviation = np.sqrt(self.square / long - (self.mean / long) ** 2)
        return abs(self.recent / short) / (deviation + 2**-26 * self.largest)

    @property
    def rupee(self):
        return np.sqrt(abs(self.h @ self.m) / (1 - (1 - 1 / 200) ** self.seen))


def as_vectors(features, states):
    x = features_of(features, features.size, states)
    if x.dtype.kind == "f":
        return x
    return (x[:, :, None] == np.arange(features.size)).sum(axis=1).astype(float)


@pytest.mark.parametrize(
    "update", [gvf.updates.TD(0.05), gvf.updates.TDRC(0.05)], ids=["TD", "TDRC"]
)
@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize(
    ("batch_size", "update_every", "rows"), [(4, 1, 4), (4, 3, 1), (100, 1, 64)]
)
def test_all_questions_are_watched_as_one_would_be(kind, update, batch_size, update_every, rows):
    features, data = FEATURES[kind], stream(64 * 5, states=0)
    horde = gvf.Horde(
        asked(), features, update, behaviour=BEHAVIOUR, window=90, batch_size=batch_size,
        update_every=update_every, rupee=True, seed=0,
    )  # fmt: skip
    oracles = {name: Dumb(features.size, rows) for name in horde.names}
    x, x_next = as_vectors(features, data.state), as_vectors(features, data.next_state)
    for end in range(64, len(data) + 1, 64):
        horde.observe(data[end - 64 : end])
        for question, oracle in zip(horde.questions, oracles.values(), strict=True):
            found = question.evaluate(data[:end], behaviour=BEHAVIOUR)
            oracle.look(x[:end], x_next[:end], horde.weights(question.name), found)
    report = horde.report()
    assert horde._shard.watch.seen.tolist() == [5 * rows] * len(horde.names)
    for measure in ("ude", "rupee"):
        expected = [getattr(oracle, measure) for oracle in oracles.values()]
        np.testing.assert_allclose(getattr(report, measure), expected, rtol=1e-12, atol=1e-12)


def test_pieces_and_chunks_do_not_matter():
    data, reports = stream(200, states=0), []
    for steps_per_call, pieces in ((1, 1), (None, 200), (7, 50)):
        horde = made(asked(), steps_per_call=steps_per_call, rupee=True)
        for start in range(0, 200, pieces):
            horde.observe(data[start : start + pieces])
        reports.append(horde.report())
    for report in reports[1:]:
        np.testing.assert_allclose(report.ude, reports[0].ude, rtol=1e-9)
        np.testing.assert_allclose(report.rupee, reports[0].rupee, rtol=1e-9)


def made(questions, kind="tiles", **options):
    options = {"window": 90, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return gvf.Horde(questions, FEATURES[kind], gvf.updates.TD(0.05), **options)


def rupee(horde):
    found = horde.report().rupee
    assert found is not None
    return found


def with_signals(data, **columns):
    return gvf.Transitions(**data.columns, **columns)


TWO = gvf.question_grid(
    {"u": gvf.policies.Uniform(3), "one": gvf.policies.Always(1, actions=3)},
    {"good": "reward", "weak": "weak"},
    [0.5],
)


def test_nothing_is_known_before_the_first_look():
    horde = made(asked(), rupee=True)
    horde.observe(stream(63, states=0))
    report = horde.report()
    assert np.isnan(report.ude).all()
    assert np.isnan(rupee(horde)).all()
    assert report.worst() == {}
    assert "UDE" not in repr(report)


def test_a_paused_question_keeps_its_errors_and_goes_on():
    data = stream(640, states=0)
    weak = data.reward.copy()
    weak[130] = np.nan
    sick = with_signals(data, weak=weak)
    horde = made(TWO, rupee=True)
    horde.observe(sick[:128])
    before, place = horde.report(), dict(zip(horde.names, range(4), strict=True))
    estimates = [rupee(horde)]
    horde.observe(sick[128:192])
    after = horde.report()
    estimates.append(rupee(horde))
    assert list(after.paused) == ["u, weak, 0.5", "one, weak, 0.5"]
    for name in horde.names:
        changes = name not in after.paused
        assert (before.ude[place[name]] != after.ude[place[name]]) == changes
        assert (estimates[0][place[name]] != estimates[1][place[name]]) == changes
    horde.observe(sick[192:])
    healed = horde.report()
    assert np.isfinite(healed.ude).all()
    assert np.isfinite(rupee(horde)).all()
    assert (healed.ude != after.ude).all()
    whole = made(TWO, rupee=True)
    whole.observe(with_signals(data, weak=data.reward))
    np.testing.assert_allclose(healed.ude[[0, 2]], whole.report().ude[[0, 2]], rtol=1e-12)


def test_a_question_that_overflows_disturbs_nobody():
    data = stream(640, states=0)
    wild = np.where(np.arange(640) == 100, 1e200, data.reward)
    horde = made(TWO, rupee=True)
    horde.observe(with_signals(data, weak=wild))
    report = horde.report()
    assert np.isfinite(report.ude).all()
    assert np.isfinite(rupee(horde)[[0, 2]]).all()


@pytest.mark.parametrize("kind", FEATURES)
def test_what_is_known_is_saved_and_goes_on(tmp_path, kind):
    data = stream(300, states=0)
    horde, again = (made(asked(), kind, rupee=True, seed=seed) for seed in (0, 5))
    horde.observe(data[:150])
    horde.save(tmp_path / "horde")
    again.load(tmp_path / "horde", same_functions=True)
    for one in (horde, again):
        one.observe(data[150:])
    np.testing.assert_array_equal(again.report().ude, horde.report().ude)
    np.testing.assert_array_equal(again.report().rupee, horde.report().rupee)


def test_questions_that_come_and_go_do_not_mix_up_what_is_known():
    data = stream(640, states=0)
    both = with_signals(data, weak=data.reward**2)
    alone, changing = made(TWO[1:3], rupee=True), made(TWO[:3], rupee=True)
    for part, change in (
        (both[:150], lambda: changing.add([TWO[3]])),
        (both[150:290], lambda: changing.remove("u, good, 0.5")),
        (both[290:], lambda: None),
    ):
        for one in (alone, changing):
            one.observe(part)
        change()
    one, other = alone.report(), changing.report()
    assert changing.names[:2] == alone.names
    for measure in ("ude", "rupee"):
        np.testing.assert_allclose(
            getattr(other, measure)[:2], getattr(one, measure), rtol=1e-9, atol=1e-12
        )
    # The new question's signal is not known for rows before it came: 150 = 2 * 64 + 22.
    assert changing._shard.watch.seen[changing._layout.place[2]] == (10 - 2) * 4


def test_a_question_is_not_looked_at_in_rows_from_before_it_came():
    data = stream(128, states=0)
    both = with_signals(data, weak=data.reward)
    horde = made(TWO[:1])
    horde.observe(both[:126])
    horde.add(TWO[1:2])
    horde.observe(both[126:])
    seen = horde._shard.watch.seen[horde._layout.place]
    assert seen.tolist() == [8, 0]


def test_a_question_that_comes_does_not_wake_one_that_pauses():
    data = stream(128, states=0)
    weak = np.where(np.arange(128) == 120, np.nan, data.reward)
    sick = with_signals(data, weak=weak)
    horde = made(TWO[:2])
    horde.observe(sick[:126])
    horde.add([gvf.GVF(gvf.policies.Uniform(3), lambda t: t.reward, 0.9, name="new")])
    horde.observe(sick[126:])
    seen = horde._shard.watch.seen[horde._layout.place]
    assert seen.tolist() == [8, 4, 0]


def test_ude_rises_if_a_sensor_changes_and_falls_again():
    steps = 40_000
    data = stream(steps, states=0)
    rng = np.random.default_rng(3)
    broken = rng.normal(size=steps) + 3.0 * (np.arange(steps) >= 20_000)
    horde = gvf.Horde(
        gvf.question_grid(
            {"u": gvf.policies.Uniform(3), "f": gvf.policies.Favour(0, 0.6, 3)},
            {"good": "reward", "broken": "weak"},
            [0.0, 0.8],
        ),
        FEATURES["tiles"], gvf.updates.TD(0.02), behaviour=BEHAVIOUR, window=1_000, seed=0,
    )  # fmt: skip
    all_rows = with_signals(data, weak=broken)
    horde.observe(all_rows[:20_000])
    calm = horde.report().ude
    horde.observe(all_rows[20_000:20_192])
    startled = horde.report()
    horde.observe(all_rows[20_192:])
    again = horde.report().ude
    changed = np.array(["broken" in name for name in horde.names])
    # Independent errors give 0.05 at a time; five times as much is rare.
    assert calm.max() < 0.25
    assert startled.ude[changed].min() > 2 * startled.ude[~changed].max()
    assert startled.ude[changed].min() > 0.3
    assert again.max() < 0.25
    assert set(startled.worst(4)) == {n for n, c in zip(horde.names, changed, strict=True) if c}
    assert f"largest UDE {startled.ude.max():.2g} (" in repr(startled)


def test_a_constant_sensor_is_never_unexpected():
    data = stream(6_400, states=0)
    constant = np.full(len(data), 0.1)
    for dtype in ("float64", "float32"):
        horde = made(TWO, dtype=dtype, window=500)
        horde.observe(with_signals(data, weak=constant))
        horde.observe(with_signals(data, weak=constant))
        assert horde.report().ude[[1, 3]].max() < 0.5
    horde = made(TWO)
    horde.observe(with_signals(data, weak=0.0 * constant))
    assert horde.report().ude[[1, 3]].tolist() == [0.0, 0.0]


def states_and_actions(steps, seed):
    """Independent states 0..4, and actions by the behaviour; rewards follow from both."""
    rng = np.random.default_rng(seed)
    state, action = rng.integers(5, size=steps), BEHAVIOUR.sample(np.zeros(steps), rng=rng)
    return gvf.Transitions(
        state=state,
        action=action,
        reward=REWARDS[state, action],
        next_state=(state + action) % 5,
        terminated=np.zeros(steps, bool),
    )


REWARDS = np.random.default_rng(0).normal(size=(5, 3))
TARGET, GAMMA = np.array([0.5, 0.4, 0.1]), 0.7
THREE = np.column_stack([np.ones(5), np.arange(5.0) - 2, np.array([1.0, -1, 0, 1, -1])])


def root_projected_bellman_error(x, weights):
    """The exact root of ``E[y x] E[x x]^-1 E[y x]``, state by state and action by action."""
    b, C = np.zeros(x.shape[1]), x.T @ x / 5
    for s in range(5):
        for a in range(3):
            error = REWARDS[s, a] + GAMMA * x[(s + a) % 5] @ weights - x[s] @ weights
            b += 0.2 * TARGET[a] * error * x[s]
    return np.sqrt(b @ np.linalg.solve(C, b))


@pytest.mark.parametrize("kind", ["one-hot", "dense"])
def test_rupee_estimates_the_projected_bellman_error(kind):
    features = (
        gvf.features.OneHot(5) if kind == "one-hot" else gvf.features.Dense(3, lambda s: THREE[s])
    )
    x = np.eye(5) if kind == "one-hot" else THREE
    horde = gvf.Horde(
        gvf.question_grid(
            {"t": gvf.policies.Fixed(TARGET)}, {"a": "reward", "b": lambda t: t.reward}, [GAMMA]
        ),
        features,
        gvf.updates.TD(0.02),
        behaviour=BEHAVIOUR,
        window=5_000,
        warm_up=40_000,
        rupee=True,
        seed=0,
    )
    horde._predict([0])
    weights = np.random.default_rng(1).normal(size=(2, x.shape[1]))
    weights[0] = 0.0
    engine = horde._shard.weights
    assert engine is not None
    engine.put(horde._layout.place, {"weights": weights})
    found = []
    for seed in range(8):  # nothing is learned yet
        horde.observe(states_and_actions(5_000, seed))
        found.append(rupee(horde))
    exact = np.array([root_projected_bellman_error(x, w) for w in weights])
    np.testing.assert_allclose(np.mean(found[2:], axis=0), exact, rtol=0.12)
    horde.observe(states_and_actions(40_000, 9))
    learned = [root_projected_bellman_error(x, horde.weights(name)) for name in horde.names]
    assert (np.array(learned) < 0.05 * exact).all()
    assert (rupee(horde) < 0.35 * exact).all()
