"""A horde gives the answers of many learners."""

import numpy as np
import pytest
from many_learners import BEHAVIOUR, CORRECTIONS, asked, learner_like, record, stream

import gvf
from gvf.horde.active_weights import ActiveWeights

FEATURES = {
    "one-hot": (gvf.features.OneHot(12), 12),
    "tiles": (gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4), 0),
    "dense": (gvf.features.Dense(5, lambda s: np.column_stack([np.ones(len(s)), s, s**2])), 0),
}
UPDATES = {
    "SGD": gvf.updates.TD(0.1),
    "default": gvf.updates.TD(),
    "RMSProp": gvf.updates.TD(0.01, gvf.updates.RMSProp()),
    "Adam": gvf.updates.TD(0.01, gvf.updates.Adam()),
    "TDRC": gvf.updates.TDRC(0.05),
    "incremental": gvf.updates.IncrementalTD(0.02),
}


def compare(
    features,
    update,
    correction,
    questions=None,
    *,
    steps=120,
    pieces=50,
    tolerance=1e-12,
    **options,
):
    """Run a horde and its learners on the same stream with the same slots; compare them."""
    kind, states = FEATURES[features]
    data = stream(steps, states=states)
    options = {"window": 40, "batch_size": 4, "seed": 0, **options}
    horde = gvf.Horde(
        questions or asked(), kind, update, correction, behaviour=BEHAVIOUR, **options
    )
    batches = record(horde, data.state[:1])
    for start in range(0, steps, pieces):
        horde.observe(data[start : start + pieces])
    predictions = horde.predict(data.state)
    shard = horde._shard
    for i, name in enumerate(horde.names):
        learner = learner_like(horde, i, batches)
        learner.observe(data)
        np.testing.assert_allclose(
            horde.weights(name), learner.weights, rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            predictions[:, i], learner.predict(data.state), rtol=10 * tolerance, atol=10 * tolerance
        )
        assert shard.skipped[shard.layout.group[shard.layout.place[i]]] == learner.skipped
        assert learner.updates + learner.skipped == horde.updates
    return horde


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
@pytest.mark.parametrize("features", FEATURES)
def test_a_horde_learns_what_learners_learn(features, update):
    compare(features, update, gvf.corrections.IR())


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
@pytest.mark.parametrize("features", FEATURES)
def test_every_correction_works(features, correction):
    horde = compare(features, gvf.updates.TD(0.1), correction)
    assert horde.report().window == 40


@pytest.mark.parametrize("steps_per_call", [1, 3, 64])
@pytest.mark.parametrize(("update_every", "warm_up"), [(1, 0), (3, 10)])
def test_chunks_and_schedules_do_not_matter(steps_per_call, update_every, warm_up):
    for features in FEATURES:
        compare(
            features,
            gvf.updates.TD(0.1),
            gvf.corrections.IR(),
            steps_per_call=steps_per_call,
            update_every=update_every,
            warm_up=warm_up,
        )


def test_a_default_step_size_follows_each_policy():
    compare("dense", gvf.updates.TD(), gvf.corrections.IS(), pieces=7)
    compare("tiles", gvf.updates.TDRC(), gvf.corrections.IS(), steps_per_call=5)


def test_policies_without_mass_skip_and_the_others_go_on():
    horde = compare("one-hot", gvf.updates.TD(0.1), gvf.corrections.IR(), window=2, steps=60)
    assert list(horde.report().skipped) == ["Always(1, 3)"]


@pytest.mark.parametrize("features", FEATURES)
def test_each_question_may_have_its_own_policy(features):
    rng = np.random.default_rng(0)
    questions = [
        gvf.GVF(gvf.policies.Fixed(rng.dirichlet(np.ones(3))), "reward", rng.random(), name=str(i))
        for i in range(5)
    ]
    compare(features, gvf.updates.TD(0.1), gvf.corrections.IR(), questions)
    compare(features, gvf.updates.TD(0.1), gvf.corrections.WISMinibatch(), questions, steps=60)


def test_wide_groups_are_cut_into_blocks():
    many = gvf.SignalBank(lambda t: np.outer(t.reward, np.arange(40.0)), 40)
    questions = gvf.question_grid(
        {"u": gvf.policies.Uniform(3), "a": gvf.policies.Always(1, 3)}, many, [0.9, 0.5]
    )
    features = gvf.features.TileCoder(
        [0, 0], [1, 1], tiles=90, tilings=1
    )  # so large that 16 columns fit
    horde = gvf.Horde(
        questions,
        features,
        gvf.updates.TD(0.1),
        behaviour=BEHAVIOUR,
        window=40,
        batch_size=4,
        seed=0,
    )
    data = stream(60, states=0)
    batches = record(horde, data.state[:1])
    horde.observe(data)
    engine = horde._shard.weights
    assert isinstance(engine, ActiveWeights)
    assert np.diff(engine.starts).tolist() == [16] * 10
    for i in (0, 39, 79, 159):
        learner = learner_like(horde, i, batches)
        learner.observe(data)
        np.testing.assert_allclose(
            horde.predict(data.state)[:, i], learner.predict(data.state), rtol=1e-12, atol=1e-12
        )
