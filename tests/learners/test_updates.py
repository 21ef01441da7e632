"""Every correction x update x representation against the dumb learner; convergence; the star."""

import dumb
import numpy as np
import pytest
from five_states import (
    BEHAVIOUR,
    CHAIN,
    CHAIN_BEHAVIOUR,
    CORRECTIONS,
    LANES,
    QUESTION,
    UPDATES,
    chain_stream,
    chain_values,
    stream,
)

import gvf
from gvf.learners.update_loop import learn_once
from gvf.updates.linear_kernels import Experience, td_direction

VECTORS = np.random.default_rng(5).normal(size=(5, 3)).round(2) / 2
FEATURES = {
    "tabular": gvf.features.OneHot(5),
    "dense": gvf.features.Dense(3, lambda states: VECTORS[states]),
    # A float state from a discrete one: two neighbours share tiles.
    "tiles": gvf.features.TileCoder([0.0], [4.0], tiles=2, tilings=3),
}


class Tiles:
    """The tile coder, for integer states."""

    size = FEATURES["tiles"].size

    def __call__(self, states):
        return FEATURES["tiles"](np.asarray(states, float)[:, None])


@pytest.mark.parametrize("representation", FEATURES)
@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_learner_equals_the_dumb_one(correction, update, representation):
    """The matrix: window of 7, three laps and a bit, batches of 4, two lanes."""
    features = Tiles() if representation == "tiles" else FEATURES[representation]
    fast, constants = UPDATES[update]
    learner = gvf.Learner(
        QUESTION,
        features,
        fast,
        correction,
        behaviour=BEHAVIOUR,
        window=7,
        batch_size=4,
        seed=3,
    )
    sarsa = fast.next_action if fast.action_values else None
    rows = features.size * (2 if sarsa else 1)
    slow = [
        dumb.DumbLearner(
            QUESTION,
            features,
            dumb.DumbUpdate(rows=rows, **constants, **{"alpha": lane, "eta": lane}),
            correction,
            BEHAVIOUR,
            window=7,
            k=4,
            seed=3,
            sarsa=sarsa,
        )
        for lane in LANES
    ]
    for transition in stream(25, seed=8):
        learner.observe(*transition)
        for one in slow:
            one.observe(*transition)
    expected = np.stack([one.update.weights for one in slow], axis=1)
    assert np.abs(expected).max() > 0.01
    assert np.abs(expected[:, 0] - expected[:, 1]).max() > 1e-3
    np.testing.assert_allclose(learner.weights, expected, rtol=1e-9, atol=1e-12)
    assert learner.skipped == slow[0].skipped


CONVERGING = {
    "IR": (gvf.updates.TD(0.5), gvf.corrections.IR()),
    "BC-IR": (gvf.updates.TD(0.5), gvf.corrections.BCIR()),
    "IS": (gvf.updates.TD(0.3), gvf.corrections.IS()),
    "NormIS": (gvf.updates.TD(0.6), gvf.corrections.NormIS(1.875)),
    "V-trace at the largest ratio": (gvf.updates.TD(0.3), gvf.corrections.VTrace(1.875)),
    "WIS-Buffer": (gvf.updates.TD(0.3), gvf.corrections.WISBuffer()),
    "WIS-Minibatch": (gvf.updates.TD(0.3), gvf.corrections.WISMinibatch()),
    "RMSProp": (gvf.updates.TD(0.003, gvf.updates.RMSProp()), gvf.corrections.IR()),
    "Adam": (gvf.updates.TD(0.003, gvf.updates.Adam()), gvf.corrections.IR()),
    "incremental": (gvf.updates.IncrementalTD(0.02), gvf.corrections.IR()),
    "WIS-TD(0)": (gvf.updates.WISTD(u0=5.0, eta=0.002), gvf.corrections.IS()),
    "IR+WIS-TD(0)": (gvf.updates.WISTD(u0=5.0, eta=0.002), gvf.corrections.IR()),
    "Sarsa": (gvf.updates.Sarsa(1.0), gvf.corrections.OnPolicy()),
    "Expected Sarsa": (gvf.updates.ExpectedSarsa(1.0), gvf.corrections.OnPolicy()),
    "TDC": (gvf.updates.TDC(0.5, secondary=0.2), gvf.corrections.IR()),
    "TDRC": (gvf.updates.TDRC(0.5), gvf.corrections.IR()),
}


@pytest.mark.parametrize("name", CONVERGING)
def test_converges_to_the_known_values_of_a_chain(name):
    """Off-policy, 20,000 steps: within .05, while the values lie between .3 and .9."""
    update, correction = CONVERGING[name]
    learner = gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        update,
        correction,
        behaviour=CHAIN_BEHAVIOUR,
        window=20_000,
        seed=0,
    )
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 20_000, seed=1))
    truth = chain_values(CHAIN.policy, 0.9)
    on_behaviour = chain_values(CHAIN_BEHAVIOUR, 0.9)
    assert np.abs(truth - on_behaviour).max() > 0.15
    assert np.abs(learner.predict(np.arange(5)) - truth).max() < 0.05


def test_on_policy_converges_on_its_own_data():
    learner = gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        gvf.updates.TD(0.5),
        gvf.corrections.OnPolicy(),
        seed=0,
        behaviour=CHAIN.policy,
        window=20_000,
    )
    learner.observe(chain_stream(CHAIN.policy, 20_000, seed=1))
    assert np.abs(learner.predict(np.arange(5)) - chain_values(CHAIN.policy, 0.9)).max() < 0.05


def test_wis_optimal_converges_to_the_exact_solution_of_its_window():
    """The fixed point of the window's weighted transitions, by a linear solve, to 1e-9."""
    data = chain_stream(CHAIN_BEHAVIOUR, 300, seed=2)
    learner = gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        gvf.updates.TD(1.0),
        gvf.corrections.WISOptimal(),
        behaviour=CHAIN_BEHAVIOUR,
        window=300,
        warm_up=299,
        update_every=1,
    )
    learner.observe(data)
    for _ in range(3000):
        learn_once(learner.values, learner.buffer, learner.schedule)
    rho = gvf.policies.ratio(CHAIN.policy, data.state, data.action, behaviour=CHAIN_BEHAVIOUR)
    x, x_next = np.eye(5)[data.state], np.eye(5)[data.next_state]
    gamma = np.where(data.terminated, 0.0, 0.9)[:, None]
    a = x.T @ (rho[:, None] * (x - gamma * x_next))
    b = x.T @ (rho * data.reward)
    np.testing.assert_allclose(learner.predict(np.arange(5)), np.linalg.solve(a, b), rtol=1e-9)


def test_ir_with_all_ratios_one_equals_on_policy():
    data = chain_stream(CHAIN.policy, 500, seed=3)
    learners = [
        gvf.Learner(
            CHAIN,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.4),
            correction,
            behaviour=CHAIN.policy,
            seed=9,
        )
        for correction in (
            gvf.corrections.IR(),
            gvf.corrections.BCIR(),
            gvf.corrections.IS(),
            gvf.corrections.OnPolicy(),
        )
    ]
    for learner in learners:
        learner.observe(data)
    assert learners[-1].weights.max() > 0.5
    for learner in learners:
        np.testing.assert_array_equal(learner.weights, learners[-1].weights)


@pytest.mark.parametrize("sarsa", [gvf.updates.Sarsa, gvf.updates.ExpectedSarsa])
def test_sarsa_with_a_deterministic_target_equals_vtrace_one(sarsa):
    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
    data = chain_stream(CHAIN_BEHAVIOUR, 500, seed=4)
    pair = [
        gvf.Learner(
            question,
            gvf.features.OneHot(5),
            update,
            correction,
            behaviour=CHAIN_BEHAVIOUR,
            seed=1,
            window=100,
        )
        for update, correction in (
            (sarsa(0.7), gvf.corrections.OnPolicy()),
            (gvf.updates.TD(0.7), gvf.corrections.VTrace(1.0)),
        )
    ]
    for learner in pair:
        learner.observe(data)
    values = [learner.predict(np.arange(5)) for learner in pair]
    assert values[0].max() > 0.5
    np.testing.assert_allclose(values[0], values[1], rtol=1e-13)


# Baird's star: state 7 (index 6) is where "solid" (action 1) leads; "dashed" leads to the others.
STAR = np.zeros((7, 8))
STAR[np.arange(6), np.arange(6)], STAR[:6, 7] = 2.0, 1.0
STAR[6, 6], STAR[6, 7] = 1.0, 2.0
STAR_BEHAVIOUR = gvf.policies.Fixed([6 / 7, 1 / 7])


def star_learner(update, correction, steps=20_000):
    question = gvf.GVF(gvf.policies.Always(1, actions=2), lambda t: np.zeros(len(t)), 0.99)
    learner = gvf.Learner(
        question,
        gvf.features.Dense(8, lambda s: STAR[s]),
        update,
        correction,
        behaviour=STAR_BEHAVIOUR,
        window=1000,
        seed=0,
    )
    learner.weights[...] = [1, 1, 1, 1, 1, 1, 10, 1]
    rng = np.random.default_rng(0)
    actions = STAR_BEHAVIOUR.sample(np.zeros(steps), rng=rng)
    states = np.where(actions == 1, 6, rng.integers(6, size=steps))
    learner.observe(gvf.Transitions(state=states[:-1], action=actions[1:], next_state=states[1:]))
    return learner


@pytest.mark.parametrize(
    "correction",
    [gvf.corrections.IS(), gvf.corrections.IR(), gvf.corrections.WISBuffer()],
    ids=lambda c: c.name,
)
def test_td_diverges_on_the_star_and_gradient_td_does_not(correction):
    def size(learner):
        return np.abs(learner.predict(np.arange(7))).max()

    start = np.abs(STAR @ [1, 1, 1, 1, 1, 1, 10, 1]).max()
    td = star_learner(gvf.updates.TD(0.1), correction)
    assert not size(td) < 1e6 * start
    for update in (gvf.updates.TDC(0.03, secondary=1.0), gvf.updates.TDRC(0.03)):
        assert size(star_learner(update, correction)) < start
    assert size(star_learner(gvf.updates.TDRC(0.03), correction)) < 0.3 * start


def test_a_diverging_lane_leaves_its_neighbours_alone():
    data = chain_stream(CHAIN_BEHAVIOUR, 2000, seed=5)
    both, alone = (
        gvf.Learner(
            CHAIN,
            gvf.features.OneHot(5),
            gvf.updates.TD(steps),
            gvf.corrections.IS(),
            behaviour=CHAIN_BEHAVIOUR,
            seed=2,
        )
        for steps in ((0.2, 50.0), 0.2)
    )
    both.observe(data)
    alone.observe(data)
    assert both.report().diverged == (1,)
    np.testing.assert_array_equal(both.weights[:, 0], alone.weights)


def test_wis_td_with_eta_above_one_has_diverged():
    learner = gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        gvf.updates.WISTD(u0=5.0, eta=[0.1, 1.5]),
        gvf.corrections.IS(),
        behaviour=CHAIN_BEHAVIOUR,
        seed=2,
    )
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 200, seed=5))
    assert learner.report().diverged == (1,)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gvf.updates.TD(-0.1), "step_size must be finite and not negative, got -0.1"),
        (lambda: gvf.updates.TD([0.1, float("nan")]), "step_size must be finite"),
        (lambda: gvf.updates.TD([]), "step_size must be a number or a sequence"),
        (lambda: gvf.updates.WISTD(0.0, 0.1), "u0 must be positive"),
        (lambda: gvf.updates.WISTD([1.0, 2.0], [0.1, 0.2, 0.3]), "as many lanes"),
        (lambda: gvf.updates.TDC(0.1, secondary=-1.0), "secondary must be finite and not negative"),
        (lambda: gvf.updates.RMSProp(decay=1.0), r"decay must be in \[0, 1\), got 1.0"),
        (lambda: gvf.updates.Adam(beta2=-0.1), "beta2 must be in"),
    ],
)
def test_bad_constants_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("representation", FEATURES)
@pytest.mark.parametrize(
    "make",
    [
        gvf.updates.TD,
        gvf.updates.IncrementalTD,
        gvf.updates.TDRC,
        gvf.updates.ExpectedSarsa,
        lambda rate: gvf.updates.TD(rate, gvf.updates.RMSProp()),
        lambda rate: gvf.updates.WISTD(10.0, rate),
    ],
    ids=["sgd", "incremental", "tdrc", "expected sarsa", "rmsprop", "wis-td"],
)
def test_many_lanes_have_the_bits_of_each_alone(make, representation):
    """27 lanes are a vector of 16, one of 8, and three single numbers."""
    features = Tiles() if representation == "tiles" else FEATURES[representation]
    rates = np.linspace(0.01, 0.9, 27)

    def weights(rate):
        options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3}
        learner = gvf.Learner(QUESTION, features, make(rate), gvf.corrections.IS(), **options)
        for transition in stream(60, seed=8):
            learner.observe(*transition)
        return learner.weights

    together = weights(rates)
    alone = np.stack([weights(rate) for rate in rates], axis=-1)
    np.testing.assert_array_equal(together.reshape(alone.shape), alone)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
def test_one_lane_has_the_bits_of_several(dense, blocks):
    rng, rows, size, a = np.random.default_rng(0), 20, 7, 3

    def shares():
        return rng.random((rows, blocks)) * rng.integers(2, size=(rows, blocks))

    def features():
        if dense:
            return rng.normal(size=(rows, size))
        return rng.integers(size, size=(rows, a)).astype(np.int32)

    kept = (features(), shares(), features(), shares(), rng.normal(size=rows), rng.random(rows))
    slots, w = rng.integers(rows, size=16), rng.random(16) * rng.integers(2, size=16)
    weights, directions = rng.normal(size=(blocks * size, 1)), []
    for lanes in (1, 2):
        several, target = np.repeat(weights, lanes, axis=1), np.zeros((blocks * size, lanes))
        td_direction(target, np.full(lanes, 0.3), several, Experience(*kept), slots, w)
        directions.append(target[:, 0])
    assert directions[0].any()
    np.testing.assert_array_equal(*directions)
