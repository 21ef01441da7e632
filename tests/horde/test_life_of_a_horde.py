"""A horde in use: sensors that fail, questions that come and go, files, environments, errors."""

import copy
import os
import pickle
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from many_learners import BEHAVIOUR, asked, stream

import gvf
from gvf.horde import dense_weights as dense
from gvf.horde.group_draws import Pool

TILES = gvf.features.TileCoder([0, 0], [1, 1], tiles=3, tilings=4)
KINDS = {"tiles": TILES, "dense": gvf.features.Dense(2), "TDRC": TILES}


def made(questions, kind="tiles", update=None, **options):
    update = update or (gvf.updates.TDRC(0.05) if kind == "TDRC" else gvf.updates.TD(0.1))
    options = {"window": 30, "batch_size": 4, "seed": 0, "behaviour": BEHAVIOUR, **options}
    return gvf.Horde(questions, KINDS[kind], update, **options)


def with_signals(data, **columns):
    return gvf.Transitions(**data.columns, **columns)


TWO = gvf.question_grid(
    {"u": gvf.policies.Uniform(3), "one": gvf.policies.Always(1, actions=3)},
    {"good": "reward", "weak": "weak"},
    [0.5],
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("steps_per_call", [1, None])
def test_a_failing_sensor_pauses_its_questions_only(kind, steps_per_call):
    data = stream(150, states=0)
    weak = data.reward.copy()
    weak[40:43] = np.nan
    whole, broken = (
        made(TWO, kind, steps_per_call=steps_per_call),
        made(TWO, kind, steps_per_call=steps_per_call),
    )
    whole.observe(with_signals(data, weak=data.reward))
    sick = with_signals(data, weak=weak)
    broken.observe(sick[:40])
    before = broken.weights("u, weak, 0.5")
    assert not broken.report().paused
    broken.observe(sick[40:72])
    assert list(broken.report().paused) == ["u, weak, 0.5", "one, weak, 0.5"]
    assert "not finite" in repr(broken.report())
    np.testing.assert_array_equal(broken.weights("u, weak, 0.5"), before)
    broken.observe(sick[72:])
    assert not broken.report().paused
    assert (broken.weights("u, weak, 0.5") != before).any()
    for name in ("u, good, 0.5", "one, good, 0.5"):
        np.testing.assert_allclose(broken.weights(name), whole.weights(name), rtol=1e-12)
    one_by_one = made(TWO, kind, steps_per_call=1)
    for i in range(len(sick)):
        one_by_one.observe(sick[i : i + 1])
    np.testing.assert_allclose(
        one_by_one.predict(data.state), broken.predict(data.state), rtol=1e-10, atol=1e-12
    )


def test_a_question_that_diverges_is_paused_and_named():
    data = stream(1300, states=0, ends=0.0)
    wild = np.where(np.arange(1300) == 5, 1e200, 0.0)
    questions = [*TWO, gvf.GVF(gvf.policies.Uniform(3), "wild", 1.0, name="wild")]
    horde = made(questions, update=gvf.updates.TD(50.0), kind="dense")
    horde.observe(with_signals(data, weak=data.reward, wild=wild))
    assert horde.report().paused["wild"] == "it has diverged"
    # It was found while learning, not by the report, and its weights do not change any more.
    before = horde.weights("wild")
    assert horde._shard.pauses.diverged[horde._layout.place[-1]]
    horde.observe(with_signals(data, weak=data.reward, wild=0.0 * wild)[:10])
    np.testing.assert_array_equal(horde.weights("wild"), before)
    tame = made(questions, update=gvf.updates.TD(0.01), kind="dense")
    tame.observe(with_signals(data, weak=data.reward, wild=0.0 * wild))
    assert not tame.report().paused


@pytest.mark.parametrize("pieces", [1, 4, 30])
def test_a_question_goes_on_as_soon_as_the_broken_reading_has_left_the_window(pieces):
    """It pauses as long as the reading can be drawn: for as many steps as the window has rows."""
    data = stream(30, states=0)
    weak = data.reward.copy()
    weak[12] = np.nan
    sick, weights = with_signals(data, weak=weak), []
    for rows in (12, 12 + 8, 12 + 8 + 1):
        horde = made(TWO, window=8)
        for start in range(0, rows, pieces):
            horde.observe(sick[start : min(start + pieces, rows)])
        weights.append(horde.weights("u, weak, 0.5"))
        assert bool(horde.report().paused) == (rows == 20)
    np.testing.assert_array_equal(weights[1], weights[0])
    assert (weights[2] != weights[1]).any()


def test_a_diverged_question_does_not_wake_up_when_others_come_and_go():
    data = with_signals(stream(60, states=0), weak=stream(60, states=0).reward)
    horde = made(TWO[:3], kind="dense")
    horde.observe(data[:30])
    place = horde._layout.place[1]
    horde._shard.pauses.diverged[place] = True
    before = horde.weights(TWO[1].name)
    for change in (lambda: horde.add([TWO[3]]), lambda: horde.remove([TWO[0].name])):
        change()
        horde.observe(data[30:45])
        assert dict(horde.report().paused) == {TWO[1].name: "it has diverged"}
        np.testing.assert_array_equal(horde.weights(TWO[1].name), before)
        assert (horde.weights(TWO[2].name) != 0).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "correction",
    [gvf.corrections.IR(), gvf.corrections.WISBuffer(), gvf.corrections.EmphaticIR(0.5)],
)
def test_a_horde_is_saved_and_goes_on_bit_for_bit(tmp_path, kind, correction):
    data = stream(120, states=0)
    horde = made(asked(), kind, correction=correction)
    horde.observe(data[:70])
    horde.save(tmp_path / "horde")
    again = made(asked(), kind, correction=correction, seed=5)
    # Two lambdas without a name of their own cannot be compared.
    again.load(tmp_path / "horde", same_functions=True)
    for one in (horde, again):
        one.observe(data[70:])
    np.testing.assert_array_equal(again.predict(data.state), horde.predict(data.state))
    assert repr(again.report()) == repr(horde.report())


def test_a_horde_with_added_questions_is_saved(tmp_path):
    data = stream(120, states=0)
    both = with_signals(data, weak=data.reward**2)
    horde = made([replace(TWO[0], name=str(i)) for i in range(64)], "dense")
    horde.observe(both[:50])
    steps_per_call = horde._shard.steps_per_call
    horde.add([replace(TWO[1], name=f"{i}%", continuation=0.01 * i) for i in range(80)])
    horde.observe(both[50:70])
    horde.save(tmp_path / "horde")
    again = made(horde.questions, "dense", seed=5)
    again._predict(data.state)
    assert (
        again._shard.steps_per_call < steps_per_call
    )  # with these questions from the start it would be shorter
    again.load(tmp_path / "horde")
    for one in (horde, again):
        one.observe(both[70:])
        one.add([TWO[3]])
        one.observe(both[:20])
    np.testing.assert_array_equal(again.predict(data.state), horde.predict(data.state))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("clone", [copy.deepcopy, lambda h: pickle.loads(pickle.dumps(h))])
def test_a_copy_of_a_horde_goes_on_bit_for_bit_and_alone(kind, clone):
    data = stream(120, states=0)
    both = with_signals(data, weak=data.reward**2)
    horde = made(TWO, kind, correction=gvf.corrections.EmphaticIR(0.5), threads=2)
    horde.observe(both[:70])
    again = clone(horde)
    before = again.predict(data.state)
    horde.observe(both[70:])
    np.testing.assert_array_equal(again.predict(data.state), before)
    again.observe(both[70:])
    np.testing.assert_array_equal(again.predict(data.state), horde.predict(data.state))
    assert repr(again.report()) == repr(horde.report())


@pytest.mark.parametrize("correction", [gvf.corrections.IR(), gvf.corrections.EmphaticIR(0.5)])
@pytest.mark.parametrize("kind", KINDS)
def test_transitions_with_a_nan_are_left_out_if_asked(tmp_path, kind, correction):
    data = stream(100, states=0)
    state = data.state.copy()
    state[[20, 21, 60], 1] = np.nan
    weak = data.reward.copy()
    weak[30] = np.nan
    broken = gvf.Transitions(**{**data.columns, "state": state, "weak": weak})
    with pytest.raises(ValueError, match=r"state\[1\] is nan at position 20.*on_nan"):
        made(TWO, kind, correction=correction).observe(broken)
    horde = made(TWO, kind, correction=correction, on_nan="skip", window=50)
    horde.observe(broken[:20])
    horde.observe(broken[20:22])
    horde.observe(broken[22:])
    assert (horde.steps, horde.report().missing) == (97, 3)
    assert "3 transitions left out for a NaN" in repr(horde.report())
    learner = gvf.Learner(
        TWO[0],
        KINDS[kind],
        gvf.updates.TD(0.1),
        correction,
        behaviour=BEHAVIOUR,
        on_nan="skip",
        window=50,
    )
    learner.observe(broken)
    np.testing.assert_array_equal(
        horde._shard.draws.ratios[0], learner.buffer.inputs[0][: len(learner.window)]
    )
    assert learner.report().missing == 3
    horde.save(tmp_path / "horde")
    again = made(TWO, kind, correction=correction, on_nan="skip", window=50)
    assert again.load(tmp_path / "horde").report().missing == 3


def test_an_error_beside_a_nan_counts_the_rows_that_stay():
    data = stream(10, states=0)
    state, action = data.state.copy(), data.action.copy()
    state[2, 0], action[5] = np.nan, 7
    broken = gvf.Transitions(**{**data.columns, "state": state, "action": action})
    horde = made([TWO[0]], on_nan="skip")
    with pytest.raises(ValueError, match="position 4") as caught:
        horde.observe(broken)
    assert caught.value.__notes__ == ["Positions do not count the rows left out for a NaN, [2]."]
    assert (horde.steps, horde.report().missing) == (0, 0)


def test_a_file_of_another_horde_is_refused(tmp_path):
    made(TWO).save(tmp_path / "horde")
    with pytest.raises(ValueError, match="was saved by another learner"):
        made(TWO, window=31).load(tmp_path / "horde")


@pytest.mark.parametrize("kind", KINDS)
def test_questions_come_and_go_and_the_others_do_not_notice(kind):
    data = stream(160, states=0)
    both = with_signals(data, weak=data.reward**2)
    alone, changing = made(TWO[:3], kind), made(TWO[:3], kind)
    for part, change in (
        (both[:50], lambda: changing.add([TWO[3]])),
        (both[50:90], lambda: changing.remove("one, good, 0.5")),
        (both[90:], lambda: None),
    ):
        alone.observe(part)
        changing.observe(part)
        before = dict(zip(changing.names, changing.predict(data.state).T, strict=True))
        change()
        for name in set(before) & set(changing.names):
            after = changing.predict(data.state, name)
            np.testing.assert_allclose(after, before[name], rtol=1e-12, atol=1e-14)
    assert changing.names == (TWO[0].name, TWO[1].name, TWO[3].name)
    np.testing.assert_allclose(
        changing.predict(data.state, [TWO[0].name, TWO[1].name]),
        alone.predict(data.state)[:, :2],
        rtol=1e-12,
        atol=1e-14,
    )
    assert changing.weights(TWO[3].name).any()


def test_a_question_with_new_parts_learns_from_new_transitions_only():
    data = stream(100, states=0)
    both = with_signals(data, weak=np.arange(100.0))
    horde = made([TWO[0]])
    horde.observe(both[:50])
    horde.add([TWO[1], replace(TWO[0], continuation=0.25, name="shorter")])
    assert horde._layout.since.tolist() == [0, 50, 0]
    batch = both[50:51]
    horde.observe(batch)
    # Its only transition so far is drawn k times: one step towards its cumulant.
    state = batch.state
    assert horde.predict(state, "u, weak, 0.5")[0] == pytest.approx(0.1 * 4 * 50.0)
    assert horde.weights("shorter").any()


def test_a_signal_is_known_since_its_first_question_only():
    data = stream(200, states=0)
    both = with_signals(data, weak=np.arange(200.0))
    horde = made([TWO[0], TWO[2]], window=100)
    horde.observe(both[:50])
    horde.add([TWO[1]])  # the first with this cumulant
    horde.observe(both[50:70])
    # One may share the draws of the question before. No other group has only rows that know it.
    horde.add([replace(TWO[1], continuation=0.25, name="shorter"), TWO[3]])
    assert horde._layout.since.tolist() == [0, 0, 50, 50, 70]
    horde.observe(both[70:150])
    # By now all rows of the window know it.
    horde.add([replace(TWO[3], continuation=0.75, name="longer")])
    assert horde._layout.since.tolist() == [0, 0, 50, 50, 70, 0]


@pytest.mark.parametrize("update", [gvf.updates.TD(1.0), gvf.updates.TDC(1.0)])
@pytest.mark.parametrize(
    "correction", [gvf.corrections.OnPolicy(), gvf.corrections.IS(), gvf.corrections.WISOptimal()]
)
def test_uniform_draws_of_rows_that_a_new_question_does_not_know_are_left_out(correction, update):
    still = gvf.Transitions(
        state=np.zeros(60, int),
        action=np.zeros(60, int),
        reward=np.full(60, 5.0),
        next_state=np.zeros(60, int),
        terminated=np.zeros(60, bool),
        behaviour_probability=np.ones(60),
    )
    one = gvf.GVF(gvf.policies.Uniform(1), "reward", 0.0, name="one")
    horde = gvf.Horde(
        [one], gvf.features.OneHot(1), update, correction, window=100, batch_size=4, seed=0
    )
    horde.observe(still)
    horde.add([replace(one, cumulant=lambda t: 2.0 * t.reward, name="two")])
    horde.observe(still)
    np.testing.assert_allclose(horde.predict([0]), [[5.0, 10.0]], rtol=1e-3)
    # Rows that it does not know are no part of its mean.
    assert horde.report().mean_ratio.tolist() == [1.0, 1.0]


def test_a_horde_acts_in_an_environment():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    policies = {name: gvf.policies.Favour(a, 0.9, actions=4) for a, name in enumerate("LDRU")}
    questions = gvf.question_grid(policies, {"reward": "reward"}, [0.5, 0.9])
    horde = gvf.Horde(
        questions,
        gvf.features.OneHot(16),
        gvf.updates.TD(1.0),
        behaviour=gvf.policies.Uniform(4),
        batch_size=4,
        seed=0,
    )
    report = horde.learn(env, steps=300, seed=0)
    assert (report.steps, report.updates, report.questions) == (300, 300, 8)
    assert horde.predict([14]).shape == (1, 8)
    with pytest.raises(KeyError, match="no question is named 'X'"):
        horde.predict([14], "X")


class Lidar(gymnasium.Env):
    """Two states, and an info with three distances."""

    observation_space, action_space = gymnasium.spaces.Discrete(2), gymnasium.spaces.Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {"lidar": np.zeros(3)}

    def step(self, action):
        return int(action > 0), 0.0, False, False, {"lidar": np.arange(3.0)}


def test_columns_of_info_are_found():
    questions = gvf.question_grid({"u": gvf.policies.Uniform(3)}, gvf.SignalBank("lidar", 3), [0.0])
    horde = gvf.Horde(
        questions,
        gvf.features.OneHot(2),
        gvf.updates.TD(0.5),
        behaviour=gvf.policies.Uniform(3),
        window=50,
        seed=0,
    )
    horde.learn(Lidar(), steps=200, seed=0)
    np.testing.assert_allclose(horde.predict([0, 1]), [[0, 1, 2]] * 2, atol=1e-3)


def bad(transitions):
    return np.zeros((len(transitions), 2))


def nothing(transitions):
    """A cumulant without its return."""


def words(transitions):
    return ["x"] * len(transitions)


UNKNOWN = stream(5, states=0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: made([]), "a horde needs at least one question"),
        (lambda: made([TWO[0], TWO[0]]), "two questions are named 'u, good, 0.5'"),
        (
            lambda: made([TWO[0], gvf.GVF(gvf.policies.Uniform(2), name="b")]),
            "differ in their number of actions: 'u, good, 0.5' has 3, 'b' has 2",
        ),
        (lambda: made(TWO, behaviour=gvf.policies.Uniform(2)), "targets and behaviour differ"),
        (
            lambda: made([gvf.GVF(gvf.policies.Uniform(3), bad, 0.5, name="b")]).observe(UNKNOWN),
            r"question 'b': its cumulant bad has shape \(5, 2\) for 5 transitions",
        ),
        (
            lambda: made([gvf.GVF(gvf.policies.Uniform(3), "reward", bad, name="b")]).observe(
                UNKNOWN
            ),
            "question 'b': its continuation bad has shape",
        ),
        (
            lambda: made([gvf.GVF(gvf.policies.Uniform(3), nothing, name="b")]).observe(UNKNOWN),
            "question 'b': its cumulant nothing must be numbers, got None",
        ),
        (
            lambda: made([gvf.GVF(gvf.policies.Uniform(3), words, name="b")]).observe(UNKNOWN),
            "question 'b': its cumulant words: 'x' at position 0 is text",
        ),
        (
            lambda: made(TWO, "TDRC", dtype="float32"),
            "dtype='float32' is for gvf.updates.TD with SGD",
        ),
        (
            lambda: made([TWO[0]], behaviour=None).observe(UNKNOWN),
            "the behaviour is not known",
        ),
        (lambda: made(TWO, device="gpu"), "device must be 'cpu', 'cuda' or 'cuda:1', got 'gpu'"),
        (lambda: made(TWO, dtype="tf32"), "dtype='tf32' is for device='cuda'"),
        (lambda: made(TWO, dtype="float16"), "dtype must be one of 'float64', 'float32', 'tf32'"),
        (lambda: made(TWO, update=gvf.updates.TD([0.1, 0.2])), "a horde has one step size"),
        (lambda: made(TWO, update=gvf.updates.Sarsa(0.1)), "learns values of states"),
        (
            lambda: made(TWO, correction=gvf.corrections.PrioritisedIR()),
            "follow the errors of one question",
        ),
        (lambda: made(TWO).remove([q.name for q in TWO]), "at least one question"),
    ],
)
def test_bad_input_is_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_weights_that_do_not_fit_are_counted():
    many = [replace(TWO[0], name=str(i)) for i in range(1000)]
    with pytest.raises(MemoryError, match=r"1,000 questions .* 2,000,000,000 .* 16,000\.0 GB for"):
        gvf.Horde(many, gvf.features.Dense(2 * 10**9), gvf.updates.TD(0.1))
    with pytest.raises(TypeError, match="for one, use a"):
        gvf.Horde(TWO[0], gvf.features.Dense(2), gvf.updates.TD(0.1))  # pyright: ignore[reportArgumentType]
    for given in (TWO[1], None):
        with pytest.raises(TypeError, match=r"must be a list of gvf\.GVFs, got"):
            made(TWO[:1]).add(given)  # pyright: ignore[reportArgumentType]
    horde = made(TWO[:1])
    horde.add(question for question in TWO[1:])
    assert len(horde.questions) == 4


def test_memory_is_not_counted_where_the_system_does_not_tell_it(monkeypatch):
    """As on Windows."""
    monkeypatch.delattr(os, "sysconf")
    assert len(made(TWO).questions) == 4


def test_an_update_by_the_whole_window_takes_no_square_of_its_rows(monkeypatch):
    taken = []
    monkeypatch.setattr(dense, "aligned", lambda n, kind: taken.append(n) or np.empty(n, kind))
    data, questions = stream(3000, states=0), asked()
    made(
        questions, "dense", correction=gvf.corrections.WISOptimal(), window=3000, update_every=3000
    ).learn([data])
    assert 0 < max(taken) < 300_000  # 3000 rows with the features, differences and errors of each


def test_dense_features_are_compiled_once_for_all_shapes_of_batches():
    for k in (1, 4):
        for policies in (1, 3):
            made(asked(policies), "dense", batch_size=k).observe(stream(20, states=0))
    first = [str(signature[0]) for signature in dense._learn.signatures]
    assert len([kind for kind in first if "float64" in kind]) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_no_states_have_no_predictions(kind):
    horde = made(asked(), kind)
    for _ in range(2):
        assert horde.predict(np.empty((0, 2))).shape == (0, len(horde.questions))
        horde.observe(stream(10, states=0))


def test_cumulants_near_the_largest_number_are_no_warning():
    data = stream(40, states=0)
    horde = made(TWO[:1])
    huge = gvf.Transitions(**{**data.columns, "reward": np.full(40, 1e308)})
    horde.observe(huge)
    assert "questions about" in repr(horde.report())


def test_a_failed_observation_changes_nothing():
    data = stream(40, states=0, ends=0.0)
    horde, same = (made(asked(), correction=gvf.corrections.EmphaticIR(0.5)) for _ in range(2))
    for one in (horde, same):
        one.observe(data[:20])
    with pytest.raises(ValueError, match="does not begin in the state"):
        horde.observe(data[[20, 35]])
    for one in (horde, same):
        one.observe(data[20:])
    np.testing.assert_array_equal(horde.predict(data.state), same.predict(data.state))


@pytest.mark.parametrize("kind", ["tiles", "dense"])
def test_single_precision_is_close(kind):
    data = stream(200, states=0)
    double, single = made(asked(), kind), made(asked(), kind, dtype="float32")
    for one in (double, single):
        one.observe(data)
    assert single.predict(data.state).dtype == np.float32
    np.testing.assert_allclose(
        single.predict(data.state), double.predict(data.state), rtol=1e-4, atol=1e-4
    )


@pytest.mark.parametrize("kind", ["tiles", "dense", "TDRC"])
def test_threads_do_not_matter(kind, monkeypatch):
    over = Pool.over
    monkeypatch.setattr(Pool, "over", lambda *given, worth: over(*given, worth=True))
    data = stream(200, states=0)
    one, two = made(asked(60), kind, threads=1), made(asked(60), kind, threads=5)
    for horde in (one, two):
        horde.observe(data)
    np.testing.assert_array_equal(one.predict(data.state), two.predict(data.state))
