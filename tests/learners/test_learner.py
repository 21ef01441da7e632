"""The learner: its updates, its input, its reports, and its checkpoints."""

import copy
import os
import signal
import threading

import gymnasium
import numpy as np
import pytest
from five_states import (
    BEHAVIOUR,
    CHAIN,
    CHAIN_BEHAVIOUR,
    QUESTION,
    TARGET,
    Chain,
    chain_stream,
    chain_values,
)

import gvf


def make(update=None, correction=None, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 100, "seed": 0, **options}
    return gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        update or gvf.updates.TD(0.5),
        correction or gvf.corrections.IR(),
        **options,
    )


@pytest.mark.parametrize(
    ("update_every", "warm_up", "expected"),
    [(1, 0, 50), (16, 0, 3), (1, 10, 40), (7, 10, 5), (60, 0, 0), (1, 50, 0), (50, 0, 1)],
)
def test_updates_come_every_so_many_steps_after_the_warm_up(update_every, warm_up, expected):
    learner = make(correction=gvf.corrections.IS(), update_every=update_every, warm_up=warm_up)
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 50, seed=0))
    assert (learner.updates, learner.steps) == (expected, 50)


@pytest.mark.parametrize(
    "update", [gvf.updates.TD(0.5), gvf.updates.Sarsa(0.5)], ids=["TD", "Sarsa"]
)
@pytest.mark.parametrize("every", [1, 3])
def test_it_does_not_matter_how_many_transitions_come_at_a_time(update, every):
    data = chain_stream(CHAIN_BEHAVIOUR, 230, seed=1)
    one_by_one, in_pieces, at_once, learned = (
        make(update, update_every=every, warm_up=20) for _ in range(4)
    )
    for i in range(len(data)):
        row = data[i : i + 1]
        one_by_one.observe(
            *(row[name][0] for name in ("state", "action", "reward", "next_state", "terminated"))
        )
    for start in range(0, len(data), 11):
        in_pieces.observe(data[start : start + 11])
    at_once.observe(data)
    learned.learn([data[i : i + 1] for i in range(len(data))])
    for other in (in_pieces, at_once, learned):
        np.testing.assert_array_equal(other.weights, one_by_one.weights)
        assert other.report() == one_by_one.report()


@pytest.mark.parametrize(
    "update",
    [
        gvf.updates.TD([0.3, 0.5]),
        gvf.updates.TD(0.01, gvf.updates.RMSProp()),
        gvf.updates.TD(0.01, gvf.updates.Adam()),
        gvf.updates.IncrementalTD(0.1),
        gvf.updates.WISTD(5.0, 0.01),
        gvf.updates.Sarsa(0.5),
        gvf.updates.TDRC(0.1),
    ],
    ids=repr,
)
def test_saved_and_resumed_is_bit_for_bit_the_same(update, tmp_path):
    data = chain_stream(CHAIN_BEHAVIOUR, 400, seed=2)
    straight, first, second = (make(update, update_every=3) for _ in range(3))
    straight.observe(data)
    first.observe(data[:170])
    first.save(tmp_path / "learner.npz")
    assert second.load(tmp_path / "learner.npz") is second
    second.observe(data[170:])
    np.testing.assert_array_equal(second.weights, straight.weights)
    assert second.report() == straight.report()
    assert [p.name for p in tmp_path.iterdir()] == ["learner.npz"]


def test_a_checkpoint_of_another_learner_is_refused(tmp_path):
    make().save(tmp_path / "learner.npz")
    other = make(gvf.updates.TD(0.25))
    with pytest.raises(
        ValueError, match=r"another learner:\n  update\.step_size: there 0\.5, here"
    ):
        other.load(tmp_path / "learner.npz")


def test_the_seed_decides_the_draws():
    data = chain_stream(CHAIN_BEHAVIOUR, 100, seed=3)
    learners = [make(seed=seed) for seed in (5, 5, 6)]
    for learner in learners:
        learner.observe(data)
    np.testing.assert_array_equal(learners[0].weights, learners[1].weights)
    assert not np.array_equal(learners[0].weights, learners[2].weights)


def test_without_mass_updates_are_skipped_and_counted():
    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
    for correction, skipped in (
        (gvf.corrections.IR(), 3),
        (gvf.corrections.WISOptimal(), 3),
        (gvf.corrections.IS(), 0),
    ):
        learner = gvf.Learner(
            question,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.5),
            correction,
            behaviour=CHAIN_BEHAVIOUR,
        )
        for _ in range(3):
            learner.observe(2, 0, 1.0, 1, False)
        assert (learner.skipped, learner.updates) == (skipped, 3 - skipped)
        assert not learner.weights.any()
        learner.observe(2, 1, 1.0, 3, True)
        assert learner.updates == 4 - skipped


def test_terminated_ends_the_return_and_truncated_does_not():
    for terminated, truncated, expected in ((True, False, 1.0), (False, True, 1.0 + 0.9 * 7.0)):
        learner = make(gvf.updates.TD(1.0), gvf.corrections.OnPolicy(), batch_size=1)
        learner.weights[3] = 7.0
        learner.observe(2, 1, 1.0, 3, terminated, truncated)
        assert learner.predict([2]) == pytest.approx([expected])


def test_recorded_probabilities_do_what_a_behaviour_policy_does():
    data = chain_stream(CHAIN_BEHAVIOUR, 60, seed=4)
    mu = CHAIN_BEHAVIOUR.probability(data.state, data.action)
    known = make()
    known.observe(data)
    for column, values in (
        ("behaviour_probability", mu),
        ("behaviour_log_probability", np.log(mu)),
    ):
        recorded = make(behaviour=None)
        recorded.observe(gvf.Transitions(**data.columns, **{column: values}))
        np.testing.assert_allclose(recorded.weights, known.weights, rtol=1e-12)


def test_without_behaviour_the_error_says_what_is_needed():
    learner = make(behaviour=None)
    with pytest.raises(ValueError, match=r"(?s)behaviour is not known.*behaviour_probability"):
        learner.observe(0, 1, 0.0, 1, False)
    assert (learner.steps, len(learner.window)) == (0, 0)
    learner.observe(0, 1, 0.0, 1, False, behaviour_probability=0.4)
    assert learner.steps == 1


def test_a_failed_observation_changes_nothing():
    learner = make()
    data = chain_stream(CHAIN_BEHAVIOUR, 150, seed=5)
    learner.observe(data)
    before = learner.report(), learner.weights.copy()
    bad = {name: column.copy() for name, column in data[:9].columns.items()}
    bad["reward"][7] = np.nan
    with pytest.raises(ValueError, match="position 7"):
        learner.observe(gvf.Transitions(**bad))
    with pytest.raises(ValueError, match="outside"):
        learner.observe(9, 1, 0.0, 1, False)
    assert learner.report() == before[0]
    np.testing.assert_array_equal(learner.weights, before[1])


@pytest.mark.parametrize("vector", [False, True])
def test_learns_from_an_environment_in_one_call(vector):
    env = gymnasium.vector.SyncVectorEnv([Chain] * 4) if vector else Chain()
    learner = make(gvf.updates.TD(0.2), window=20_000)
    report = learner.learn(env, steps=12_000, seed=0)
    assert (report.steps, report.updates) == (12_000, 12_000)
    assert report.mean_ratio == pytest.approx(1.0, abs=4 * 0.65 / np.sqrt(12_000))
    values = learner.predict(np.arange(5))
    assert np.abs(values - chain_values(CHAIN.policy, 0.9)).max() < 0.06


def test_learns_from_mappings_batches_and_a_limited_number_of_steps():
    data = chain_stream(CHAIN_BEHAVIOUR, 90, seed=6)
    rows = [{name: column[i] for name, column in data.columns.items()} for i in range(len(data))]
    whole, mapped, limited = make(), make(), make()
    whole.observe(data)
    mapped.learn(iter(rows))
    np.testing.assert_array_equal(whole.weights, mapped.weights)
    assert limited.learn([data], steps=70).steps == 70


@pytest.mark.parametrize(
    ("source", "steps", "options", "message"),
    [
        (Chain(), 10, {"behaviour": None}, "needs a behaviour policy"),
        (Chain(), None, {}, "how many steps"),
        ([(0, 1, 0.0, 1, False)], None, {}, "item 0 is a tuple"),
        ([{"state": 0}, {"action": 1}], None, {}, "same columns"),
    ],
)
def test_sources_that_cannot_be_learned_from(source, steps, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**options).learn(source, steps)


def test_ctrl_c_stops_between_batches_and_loses_nothing():
    data = chain_stream(CHAIN_BEHAVIOUR, 640, seed=7)

    def interrupted():
        for start in range(0, 640, 64):
            yield data[start : start + 64]
            if start == 128:
                os.kill(os.getpid(), signal.SIGINT)

    learner, straight = make(), make()
    with pytest.raises(KeyboardInterrupt):
        learner.learn(interrupted(), progress=True)
    # The batch that was fetched when the signal came is still taken in.
    assert learner.steps in (192, 256)
    learner.observe(data[learner.steps :])
    straight.observe(data)
    np.testing.assert_array_equal(learner.weights, straight.weights)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def rows_of(data):
    return ({name: c[i] for name, c in data.columns.items()} for i in range(len(data)))


def test_ctrl_c_does_not_wait_for_single_transitions_to_be_joined():
    data = chain_stream(CHAIN_BEHAVIOUR, 60, seed=7)

    def interrupted():
        for i, row in enumerate(rows_of(data)):
            if i == 20:
                os.kill(os.getpid(), signal.SIGINT)
            yield row

    learner, straight = make(), make()
    with pytest.raises(KeyboardInterrupt):
        learner.learn(interrupted())
    assert learner.steps == 21
    learner.observe(data[21:])
    straight.observe(data)
    np.testing.assert_array_equal(learner.weights, straight.weights)


def test_a_second_ctrl_c_stops_a_source_that_waits_and_loses_nothing():
    heard = []

    def waiting():
        yield from rows_of(chain_stream(CHAIN_BEHAVIOUR, 20, seed=7))
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            heard.append(signal.SIGINT)
        pytest.fail("the source still waits")

    learner = make()
    with pytest.raises(KeyboardInterrupt):
        learner.learn(waiting())
    assert (learner.steps, len(heard)) == (20, 1)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_learning_in_another_thread_leaves_signals_alone():
    learner = make()
    data = chain_stream(CHAIN_BEHAVIOUR, 64, seed=7)
    thread = threading.Thread(target=learner.learn, args=([data],))
    thread.start()
    thread.join()
    assert learner.steps == 64


def test_evaluate_estimates_the_error_from_held_out_returns():
    """The bias of the true values is within 4 standard errors; that of values 0.3 off is not."""
    learner = make(gvf.updates.TD([0.0, 0.1]))
    learner.weights[:, 0] = chain_values(CHAIN.policy, 0.9)
    learner.weights[:, 1] = chain_values(CHAIN.policy, 0.9) + 0.3
    errors = learner.return_error(Chain(), states=300, run_length=30, seed=0)
    assert isinstance(errors, list)
    right, wrong = errors
    assert abs(right.bias.value) < 4 * right.bias.standard_error < 0.2
    assert wrong.bias.value == pytest.approx(right.bias.value + 0.3)
    single = make()
    error = single.return_error(Chain(), states=20, seed=0)
    assert isinstance(error, gvf.ReturnError)
    assert error.states == 20


def test_report_describes_the_window():
    learner = make(correction=gvf.corrections.IS())
    data = chain_stream(CHAIN_BEHAVIOUR, 150, seed=8)
    learner.observe(data)
    rho = gvf.policies.ratio(CHAIN.policy, data.state, data.action, behaviour=CHAIN_BEHAVIOUR)[
        -100:
    ]
    report = learner.report()
    assert report.window == 100
    assert report.mean_ratio == pytest.approx(rho.mean())
    assert report.max_ratio == rho.max()
    assert report.zero_ratios == 0.0
    assert report.effective_sample_size == pytest.approx(rho.sum() ** 2 / (rho**2).sum())
    assert "150 steps, 150 updates" in repr(report)


def test_sarsa_predicts_the_mean_over_the_policys_actions():
    learner = gvf.Learner(
        QUESTION, gvf.features.OneHot(5), gvf.updates.Sarsa(0.1), behaviour=BEHAVIOUR
    )
    learner.weights[...] = np.arange(10)
    expected = (TARGET.probabilities(np.arange(5)) * np.arange(10).reshape(2, 5).T).sum(1)
    np.testing.assert_allclose(learner.predict(np.arange(5)), expected)


def test_sarsa_needs_discrete_actions():
    question = gvf.GVF(gvf.policies.Gaussian(0.0, 1.0), "reward", 0.9)
    with pytest.raises(ValueError, match="no finite number"):
        gvf.Learner(question, gvf.features.OneHot(5), gvf.updates.Sarsa(0.1))


def test_continuous_actions_learn_with_log_densities():
    """One state, target N(1, .1), behaviour N(0, 1): the cumulant is the action, the value 1."""
    target, behaviour = gvf.policies.Gaussian(1.0, 0.1), gvf.policies.Gaussian(0.0, 1.0)
    question = gvf.GVF(target, lambda t: t.action, 0.0)
    learner = gvf.Learner(
        question,
        gvf.features.Dense(1, lambda s: np.ones((len(s), 1))),
        gvf.updates.TD(0.05),
        behaviour=behaviour,
        window=20_000,
        seed=0,
    )
    rng = np.random.default_rng(0)
    state = np.zeros(20_000)
    action = behaviour.sample(state, rng=rng)
    learner.observe(gvf.Transitions(state=state, action=action, next_state=state))
    assert learner.report().max_ratio > 10
    assert learner.predict([0.0]) == pytest.approx([1.0], abs=0.05)


class Shifty:
    """A feature map that lies about its size."""

    size = 5

    def __init__(self, output):
        self.output = output

    def __call__(self, states):
        return np.tile(self.output, (len(states), 1))


@pytest.mark.parametrize(
    ("output", "message"),
    [([5], r"must be in \[0, 5\), got 5 to 5"), ([-1], "got -1"), ([0.5] * 4, r"float\[m, 5\]")],
)
def test_features_that_do_not_fit_are_refused_before_any_kernel_sees_them(output, message):
    learner = gvf.Learner(CHAIN, Shifty(output), gvf.updates.TD(0.1), behaviour=CHAIN_BEHAVIOUR)
    with pytest.raises(ValueError, match=message):
        learner.observe(0, 1, 0.0, 1, False)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"update_every": 0}, "update_every must be at least 1"),
        ({"warm_up": -1}, "warm_up must be at least 0"),
        ({"window": 0}, "window must be at least 1"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_arguments_in_the_wrong_place_are_named():
    with pytest.raises(TypeError, match=r"update must be a gvf.updates.Update, got IR\(\)"):
        gvf.Learner(CHAIN, gvf.features.OneHot(5), gvf.corrections.IR())  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((CHAIN, 4, gvf.updates.TD(0.1)), {}, "features must be a feature map such as"),
        (
            (CHAIN, gvf.features.OneHot(5), gvf.updates.TD(0.1)),
            {"behaviour": "uniform"},
            "must be a gvf.policies.Policy",
        ),
        (
            (CHAIN, gvf.features.OneHot(5), gvf.updates.TD(0.1)),
            {"batch_size": 1.5},
            "an integer, got 1.5",
        ),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(arguments, options, message):
    with pytest.raises(TypeError, match=message):
        gvf.Learner(*arguments, **options)


def test_an_optimiser_is_no_word():
    with pytest.raises(TypeError, match=r"gvf.updates.Adam\(\), got 'adam'"):
        gvf.updates.TD(0.1, "adam")  # pyright: ignore[reportArgumentType]


def test_target_and_behaviour_have_the_same_actions():
    with pytest.raises(ValueError, match="number of actions: 2 and 3"):
        make(behaviour=gvf.policies.Uniform(3))


def test_sarsa_learns_from_a_log_without_the_behaviour():
    data = chain_stream(CHAIN_BEHAVIOUR, 200, seed=9)
    known, unknown = (
        make(gvf.updates.ExpectedSarsa(0.5), gvf.corrections.OnPolicy(), behaviour=b)
        for b in (CHAIN_BEHAVIOUR, None)
    )
    known.learn([data])
    unknown.learn([data])
    np.testing.assert_array_equal(known.weights, unknown.weights)


def test_an_error_in_a_log_says_where_its_positions_start():
    data = chain_stream(CHAIN_BEHAVIOUR, 200, seed=9)
    data.reward[100] = np.inf
    rows = [data[i : i + 1] for i in range(200)]
    with pytest.raises(ValueError, match="position 36") as caught:
        make().learn(rows)
    assert caught.value.__notes__ == ["Positions count from transition 64 of the source."]


def test_a_checkpoint_of_another_question_is_refused(tmp_path):
    make().save(tmp_path / "learner.npz")
    other = gvf.GVF(CHAIN.policy, "reward", 0.5)
    with pytest.raises(ValueError, match="another learner"):
        gvf.Learner(
            other,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.5),
            behaviour=CHAIN_BEHAVIOUR,
            window=100,
        ).load(tmp_path / "learner.npz")


class Clocked(Chain):
    """The chain, counting its steps."""

    steps = 0

    def step(self, action):
        self.steps += 1
        return super().step(action)


def drifting(env):
    """A behaviour that changes with every step of the environment."""

    def probabilities(states):
        right = 0.2 + 0.6 * (env.steps % 7) / 6
        return np.tile([1 - right, right], (len(states), 1))

    return gvf.policies.Function(probabilities, actions=2)


def test_a_behaviour_that_changes_is_corrected_by_what_it_was_when_it_acted():
    """The window's ratios are pi over the probability at the time of each action."""
    env = Clocked()
    learner = make(behaviour=drifting(env), window=500)
    report = learner.learn(env, steps=300, seed=1)
    env = Clocked()
    rows = gvf.Transitions.concatenate(list(gvf.collect(env, drifting(env), 300, seed=1)))
    right = 0.2 + 0.6 * (np.arange(300) % 7) / 6
    mu = np.where(rows.action == 1, right, 1 - right)
    np.testing.assert_allclose(rows.behaviour_probability, mu, rtol=1e-15)
    pi = CHAIN.policy.probability(rows.state, rows.action)
    np.testing.assert_array_equal(learner.buffer.ratios, pi / rows.behaviour_probability)
    error = 4 * np.std(learner.buffer.ratios) / np.sqrt(300)
    assert report.mean_ratio == pytest.approx(1.0, abs=error)


@pytest.mark.parametrize("act_steps", [1, 64])
def test_a_behaviour_may_look_at_the_predictions_of_its_learner(act_steps):
    """Greedy towards what is known; what it saw is recorded, the latest with act_steps=1."""
    seen = []

    def towards_the_unknown(states):
        values = learner.predict(np.arange(5))
        seen.append(learner.steps)
        right = 0.5 + 0.4 * np.tanh(values[-1] - values[0])
        return np.tile([1 - right, right], (len(states), 1))

    behaviour = gvf.policies.Function(towards_the_unknown, actions=2)
    learner = make(gvf.updates.TD(0.2), behaviour=behaviour, window=5000)
    learner.learn(Chain(), steps=4000, seed=0, act_steps=act_steps)
    assert seen == [step // act_steps * act_steps for step in range(4000)]
    values = learner.predict(np.arange(5))
    assert np.abs(values - chain_values(CHAIN.policy, 0.9)).max() < 0.12
    assert learner.report().mean_ratio == pytest.approx(1.0, abs=0.06)


def test_a_log_that_contradicts_the_behaviour_is_an_error_unless_one_chooses():
    data = chain_stream(CHAIN_BEHAVIOUR, 60, seed=4)
    wrong = np.full(60, 0.5)
    log = gvf.Transitions(**data.columns, behaviour_probability=wrong)
    with pytest.raises(ValueError, match="on_conflict"):
        make().observe(log)
    pi = CHAIN.policy.probability(data.state, data.action)
    mu = CHAIN_BEHAVIOUR.probability(data.state, data.action)
    for choice, expected in (("recorded", pi / 0.5), ("behaviour", pi / mu)):
        learner = make(on_conflict=choice)
        learner.observe(log)
        np.testing.assert_allclose(learner.buffer.ratios, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="on_conflict must be"):
        make(on_conflict="ignore")


def test_what_is_learned_does_not_depend_on_the_chunk():
    data = chain_stream(CHAIN_BEHAVIOUR, 300, seed=4)
    learners = [make() for _ in range(3)]
    for learner, act_steps in zip(learners, (None, 1, 37), strict=True):
        learner.learn([data], act_steps=act_steps)
    for learner in learners[1:]:
        np.testing.assert_array_equal(learner.weights, learners[0].weights)
    with pytest.raises(ValueError, match="act_steps must be at least 1, got 0"):
        learners[0].learn([data], act_steps=0)


def test_learn_says_where_a_log_and_a_batch_go():
    data = chain_stream(CHAIN_BEHAVIOUR, 30, seed=4)
    with pytest.raises(TypeError, match=r"^learn takes .* a batch goes to observe\(batch\).*$"):
        make().learn(data)
    with pytest.raises(TypeError, match=r'^learn takes .* fit\(log, order="log"\)$'):
        make().learn(gvf.read_log(data.columns, quiet=True))


def test_observe_takes_a_transition_a_mapping_or_a_batch():
    data = chain_stream(CHAIN_BEHAVIOUR, 30, seed=4)
    rows = [{name: column[i] for name, column in data.columns.items()} for i in range(len(data))]
    single, mapped, listed, whole = (make() for _ in range(4))
    for row in rows:
        single.observe(**row)
        mapped.observe(row)
    listed.observe(rows)
    whole.observe(data)
    for learner in (mapped, listed, whole):
        assert learner.steps == 30
        np.testing.assert_array_equal(learner.weights, single.weights)


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        ({"state": 0, "action": 1}, "reward, next_state, terminated"),
        ({"state": 0, "action": 1, "reward": 0.0, "terminated": False}, "next_state"),
        ({"state": 0, "next_state": 1, "truncated": True}, "action, reward, terminated"),
        (
            {"state": gvf.Transitions(state=[0]), "heat": 1.0},
            "action, reward, next_state, terminated",
        ),
    ],
)
def test_a_transition_that_lacks_values_is_refused_in_a_line(values, missing):
    learner = make()
    with pytest.raises(TypeError, match=f"^a transition lacks {missing}; a batch comes alone$"):
        learner.observe(**values)
    assert learner.steps == 0


def test_a_table_of_columns_is_no_transition():
    with pytest.raises(TypeError, match=r"one transition; of a table, gvf.Transitions\(\*\*table"):
        make().observe({"state": [0, 1], "reward": [0.0, 1.0]})


def test_sources_of_the_wrong_kind_are_named():
    for source in (3, "log.csv", {"state": 1}):
        with pytest.raises(TypeError, match=f"cannot learn from a {type(source).__name__}"):
            make().learn(source)


@pytest.mark.parametrize(
    "update",
    [
        gvf.updates.TD([0.01, 0.1, 0.3]),
        gvf.updates.TD([0.01, 0.1, 0.3], gvf.updates.RMSProp()),
        gvf.updates.TDRC([0.01, 0.1, 0.3]),
        gvf.updates.ExpectedSarsa([0.01, 0.1, 0.3]),
    ],
    ids=repr,
)
def test_a_lane_goes_on_alone_with_the_same_numbers(update):
    rng = np.random.default_rng(0)
    data = gvf.Transitions(
        state=rng.integers(5, size=200),
        action=rng.integers(2, size=200),
        reward=rng.normal(size=200),
        next_state=rng.integers(5, size=200),
        terminated=rng.random(200) < 0.1,
    )
    question = gvf.GVF(gvf.policies.Fixed([0.3, 0.7]), "reward", 0.9)
    learner = gvf.Learner(
        question,
        gvf.features.OneHot(5),
        update,
        behaviour=gvf.policies.Uniform(2),
        window=50,
        seed=0,
    )
    learner.observe(data[:100])
    for number in range(3):
        alone = learner.lane(number)
        assert alone.steps == 100
        alone.observe(data[100:])
        both = copy.deepcopy(learner)
        both.observe(data[100:])
        np.testing.assert_allclose(alone.weights, both.weights[:, number], rtol=1e-13, atol=1e-15)
    assert learner.steps == 100
    with pytest.raises(IndexError, match="there are 3 lanes"):
        learner.lane(3)
    with pytest.raises(ValueError, match="one step size"):
        learner.lane(0).lane(0)
