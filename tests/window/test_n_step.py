"""n-step rows: against a plain loop, by exact enumeration, at the fixed point, and in learners."""

import itertools
import math
from functools import partial

import dumb
import gymnasium
import numpy as np
import pytest
from five_states import BEHAVIOUR, CHAIN, CHAIN_BEHAVIOUR, CORRECTIONS, QUESTION, Chain, stream
from own_corrections import FollowOn

import gvf
from gvf.window.buffer import Rows
from gvf.window.n_step import NSteps

NUMBERS = ("cumulant", "continuation", "ratio")


def joined_by_hand(steps, n):
    """Join dicts of one step each, in order; `cut` marks a gap before a row."""
    waiting, done = {}, []

    def finish(stream, rows):
        ratio, cumulant, discount = 1.0, 0.0, 1.0
        for row in rows:
            ratio *= row["ratio"]
            cumulant += discount * row["cumulant"]
            discount *= row["continuation"]
        done.append((rows[0]["x"], rows[-1]["x_next"], cumulant, discount, ratio))
        waiting[stream].pop(0)

    for row in steps:
        if row["cut"]:
            # Across streams, rows that a gap completes are finished in order of arrival.
            everything = sorted((r["x"], s) for s, rows in waiting.items() for r in rows)
            for _, stream_of_row in everything:
                finish(stream_of_row, waiting[stream_of_row])
        own = waiting.setdefault(row["stream"], [])
        if own and own[-1]["episode"] != row["episode"]:
            while own:
                finish(row["stream"], own)
        own.append(row)
        if row["terminated"] or row["truncated"] or row["continuation"] == 0.0:
            while own:
                finish(row["stream"], own)
        elif len(own) == n:
            finish(row["stream"], own)
    return done, sum(map(len, waiting.values()))


def random_steps(count, seed, gaps=0.03):
    """Steps of three streams with ends of every kind; x numbers the rows, x_next those after."""
    rng = np.random.default_rng(seed)
    steps = [
        {
            "x": i,
            "x_next": 1000 + i,
            "stream": int(rng.integers(3)),
            "episode": i // 40,
            "terminated": bool(rng.random() < 0.1),
            "truncated": bool(rng.random() < 0.07),
            "cumulant": rng.normal(),
            "continuation": float(rng.choice([0.0, 0.9, 0.5, 1.0], p=[0.05, 0.35, 0.3, 0.3])),
            "ratio": float(rng.choice([0.0, 0.3, 1.7, 2.9])),
            "cut": bool(rng.random() < gaps),
        }
        for i in range(count)
    ]
    for row in steps:
        row["continuation"] *= not row["terminated"]
    return steps


def as_rows(steps):
    """Make the arguments of `join`: rows, transitions and gaps."""
    column = {name: np.array([row[name] for row in steps]) for name in steps[0]}
    kept = {name: column[name] for name in ("x", "x_next", "cumulant", "continuation")}
    told = {name: column[name] for name in ("stream", "episode", "terminated", "truncated")}
    gaps = np.flatnonzero(column["cut"]).tolist()
    return Rows(kept, column["ratio"][None], np.ones(len(steps))), gvf.Transitions(**told), gaps


def as_tuples(rows):
    names = ("x", "x_next", "cumulant", "continuation")
    columns = (rows.columns[name].tolist() for name in names)
    return list(zip(*columns, rows.inputs[0].tolist(), strict=True))


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("size", [1, 2, 5, 300])
def test_rows_are_those_of_a_plain_loop_whatever_the_batches(n, size):
    steps = random_steps(300, seed=n)
    expected, left = joined_by_hand(steps, n)
    joiner, found = NSteps(n, gvf.corrections.IR()), []
    for start in range(0, len(steps), size):
        rows, told, gaps = as_rows(steps[start : start + size])
        found += as_tuples(joiner.join(rows, told, gaps))
    assert len(expected) > 200
    assert len({last - 1000 - first for first, last, *_ in expected}) > 2  # also shorter ones
    np.testing.assert_allclose(found, expected, rtol=1e-15)
    assert len(joiner) == left > 0
    rest = as_tuples(joiner.rest())
    assert len(joiner) == 0
    assert sorted(row[0] for row in found + rest) == list(range(300))  # none lost, none invented


def test_a_gap_between_calls_cuts_every_stream_and_a_gap_at_the_end_cuts_the_next_call():
    def one_by_one(cut_by_call):
        joiner, found = NSteps(3, gvf.corrections.IS()), []
        for row in random_steps(60, seed=4, gaps=0.2):
            if row["cut"] and cut_by_call:
                joiner.cut()
                row["cut"] = False
            rows, told, gaps = as_rows([row])
            found += as_tuples(joiner.join(rows, told, gaps))
        return found

    assert one_by_one(cut_by_call=True) == one_by_one(cut_by_call=False)
    steps = random_steps(60, seed=4, gaps=0.0)
    joiner = NSteps(3, gvf.corrections.IS())
    rows, told, _ = as_rows(steps[:30])
    found = as_tuples(joiner.join(rows, told, [30]))
    rows, told, _ = as_rows(steps[30:])
    found += as_tuples(joiner.join(rows, told))
    steps[30]["cut"] = True
    assert len(found) == len(joined_by_hand(steps, 3)[0])
    np.testing.assert_allclose(found, joined_by_hand(steps, 3)[0], rtol=1e-15)


def test_a_product_that_is_no_number_is_named():
    steps = [{**row, "ratio": 1e200, "cut": False} for row in random_steps(2, seed=0)]
    rows, told, gaps = as_rows([{**row, "stream": 0, "terminated": False} for row in steps])
    told.columns["truncated"][:], rows.columns["continuation"][:] = False, 0.5
    joiner = NSteps(2, gvf.corrections.IS())
    with pytest.raises(
        ValueError, match=r"product of 2 ratios is above 1e\+290; .* smaller n_step"
    ):
        joiner.join(rows, told, gaps)


@pytest.mark.parametrize("n", [0, -1, 1.5])
def test_n_step_must_be_a_whole_number(n):
    with pytest.raises((ValueError, TypeError), match="n_step"):
        make(gvf.corrections.IR(), n_step=n)


def make(correction, **options):
    options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3} | options
    update = options.pop("update", gvf.updates.TD(0.3))
    return gvf.Learner(QUESTION, gvf.features.OneHot(5), update, correction, **options)


def batch(count, seed=8):
    names = ("state", "action", "reward", "next_state", "terminated")
    columns = zip(*stream(count, seed), strict=True)
    # With a column `episode` the states, which are random, need not follow one another.
    episode = np.zeros(count, int)
    return gvf.Transitions(**dict(zip(names, map(np.array, columns), strict=True)), episode=episode)


class JoinedByHand(dumb.DumbLearner):
    """The obvious learner, fed with rows that a plain loop has joined."""

    def learn_from(self, transitions, n):
        evaluated = QUESTION.evaluate(transitions, behaviour=self.behaviour)
        steps = [
            {"x": s, "x_next": after, "terminated": end, "truncated": False, "stream": 0,
             "episode": 0, "cut": False, "ratio": rho, "cumulant": c, "continuation": gamma}
            for s, after, end, rho, c, gamma in zip(
                transitions.state, transitions.next_state, transitions.terminated, *evaluated[:3],
                strict=True)
        ]  # fmt: skip
        for s, after, cumulant, gamma, rho in joined_by_hand(steps, n)[0]:
            row = (np.eye(5)[s], np.eye(5)[after], cumulant, gamma, rho)
            self.window = [*self.window, row][-self.capacity :]
            self.steps += 1
            self.learn()


@pytest.mark.parametrize("correction", CORRECTIONS, ids=lambda c: c.name)
def test_a_learner_is_the_obvious_one_with_every_correction(correction):
    learner, log = make(correction, n_step=3), batch(40)
    slow = JoinedByHand(
        QUESTION,
        gvf.features.OneHot(5),
        dumb.DumbUpdate("sgd", 5, alpha=0.3),
        correction,
        BEHAVIOUR,
        window=7,
        k=4,
        seed=3,
        sarsa=None,
    )
    learner.observe(log)
    slow.learn_from(log, 3)
    assert np.abs(slow.update.weights).max() > 0.01
    np.testing.assert_allclose(learner.weights, slow.update.weights, rtol=1e-9, atol=1e-12)
    assert learner.skipped == slow.skipped
    assert learner.steps == 40


def test_one_step_is_the_learner_without_n_steps():
    plain, one = make(gvf.corrections.IR()), make(gvf.corrections.IR(), n_step=1)
    for learner in (plain, one):
        learner.observe(batch(40))
    np.testing.assert_array_equal(plain.weights, one.weights)


@pytest.mark.parametrize("correction", [gvf.corrections.IR(), FollowOn()], ids=lambda c: c.name)
def test_results_do_not_depend_on_batches_and_survive_a_file(correction, tmp_path):
    log = batch(60)
    log.columns["terminated"][28:31] = False
    whole, single, resumed = (make(correction, n_step=4) for _ in range(3))
    whole.observe(log)
    for i in range(60):
        single.observe(log[i : i + 1])
    resumed.observe(log[:31])
    assert len(resumed.n_steps) > 0
    resumed.save(tmp_path / "half")
    resumed = make(correction, n_step=4, seed=99).load(tmp_path / "half")
    resumed.observe(log[31:])
    for other in (single, resumed):
        np.testing.assert_array_equal(whole.weights, other.weights)
        np.testing.assert_array_equal(whole.buffer.inputs, other.buffer.inputs)
        assert len(whole.n_steps) == len(other.n_steps)
    with pytest.raises(ValueError, match="n_step"):
        make(correction, n_step=3).load(tmp_path / "half")
    loaded = gvf.load(tmp_path / "half", trust=["own_corrections"])
    assert isinstance(loaded, gvf.Learner)
    assert loaded.n_steps.n == 4


def test_a_trace_is_that_of_single_steps():
    """The emphasis of a state is carried step by step, whatever the length of returns."""
    log = batch(12)
    one, three = make(FollowOn(), window=50), make(FollowOn(), window=50, n_step=3)
    one.observe(log)
    three.learn([log])
    by_state = {tuple(row) for row in np.c_[one.window.columns["x"][:12, 0], one.buffer.inputs[1]]}
    found = np.c_[three.window.columns["x"][:12, 0], three.buffer.inputs[1]]
    assert {tuple(row) for row in found} == by_state


def test_learning_from_a_log_ends_with_the_rows_that_wait():
    log, learner = batch(40), make(gvf.corrections.IR(), n_step=5, window=100)
    log.columns["terminated"][-3:] = False
    learner.learn([log])
    assert len(learner.n_steps) == 0
    assert len(learner.window) == learner.steps == 40
    learner.observe(log[-1:])
    assert (len(learner.n_steps), len(learner.window), learner.steps) == (1, 40, 41)


def test_a_vector_environment_is_three_single_ones():
    vector = gymnasium.vector.SyncVectorEnv([Chain] * 3)
    log = gvf.Transitions.concatenate(
        gvf.collect(vector, CHAIN_BEHAVIOUR, 90, seed=1)  # columns `stream` and `terminated`
    )

    def rows_of(*logs):
        found = []
        for part in logs:
            learner = gvf.Learner(
                CHAIN,
                gvf.features.OneHot(5),
                gvf.updates.TD(0.1),
                window=200,
                n_step=3,
                behaviour=CHAIN_BEHAVIOUR,
            )
            learner.learn([part])
            names = ("x", "x_next", "cumulant", "continuation")
            columns = (learner.window.columns[name][: len(learner.window)] for name in names)
            ratios = learner.buffer.ratios
            found += zip(*(c.ravel().tolist() for c in columns), ratios.tolist(), strict=True)
        return sorted(found)

    assert rows_of(log) == rows_of(*(log[log["stream"] == i] for i in range(3)))
    in_one_stream = gvf.Transitions(**{k: v for k, v in log.columns.items() if k != "stream"})
    with pytest.raises(ValueError, match="or add the columns 'stream' and 'episode'"):
        rows_of(in_one_stream)


def test_a_transition_left_out_for_a_nan_cuts_returns():
    log = batch(20)
    log.columns["terminated"][:] = False
    reward = log.columns["reward"].copy()
    reward[9] = np.nan
    broken = gvf.Transitions(**{**log.columns, "reward": reward})
    together, alone = (
        make(gvf.corrections.IR(), n_step=4, window=50, on_nan="skip") for _ in range(2)
    )
    together.learn([broken])
    alone.learn((broken[i : i + 1] for i in range(20)), act_steps=1)
    np.testing.assert_array_equal(together.weights, alone.weights)
    at = np.delete(np.arange(20), 9).tolist().index(8)
    for learner in (together, alone):
        assert len(learner.window) == 19
        # The row before the gap has one step.
        assert learner.window.columns["cumulant"][at] == pytest.approx(log.reward[8])


def test_an_observation_that_fails_changes_nothing():
    learner = make(gvf.corrections.IR(), n_step=3)
    learner.observe(batch(10))
    before = {name: array.copy() for name, array in learner._arrays().items()}
    bad = batch(10, seed=2)
    bad.columns["reward"][5] = np.inf
    with pytest.raises(ValueError, match="must be finite"):
        learner.observe(bad)
    huge = gvf.Transitions(**{**batch(4).columns, "behaviour_probability": np.full(4, 1e-200)})
    huge.columns["terminated"][:], huge.columns["action"][:] = False, 1
    tiny = make(gvf.corrections.IR(), n_step=3, on_conflict="recorded")
    tiny.observe(huge[:2])
    kept = tiny.n_steps.checkpoint()
    with pytest.raises(ValueError, match="smaller n_step"):
        tiny.observe(huge[2:])
    assert kept.keys() == tiny.n_steps.checkpoint().keys()
    assert all(np.array_equal(kept[name], a) for name, a in tiny.n_steps.checkpoint().items())
    after = learner._arrays()
    assert before.keys() == after.keys()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_rows_that_could_not_be_inserted_wait_as_before(monkeypatch):
    learner, log = make(gvf.corrections.IR(), n_step=3), batch(40)
    learner.observe(log[:20])
    with monkeypatch.context() as broken:
        broken.setattr(learner.values, "observe", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            learner.observe(log[20:])
    learner.observe(log[20:])
    whole = make(gvf.corrections.IR(), n_step=3)
    whole.observe(log)
    np.testing.assert_array_equal(learner.weights, whole.weights)


def walk(count):
    """A walk through the chain of the tests, with the columns of an environment."""
    batches = gvf.collect(Chain(), CHAIN_BEHAVIOUR, count, seed=2, batch=count)
    return gvf.Transitions.concatenate(batches)


def chain_learner():
    return gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        gvf.updates.TD(0.1),
        n_step=3,
        behaviour=CHAIN_BEHAVIOUR,
        seed=0,
    )


@pytest.mark.parametrize("told", [False, True])
def test_another_log_cuts_the_rows_that_wait_unless_it_goes_on(told):
    log = walk(60)
    if told:
        log = gvf.Transitions(**log.columns, episode=np.zeros(60, int))
    inside = next(i for i in range(20, 60) if not log.terminated[i - 3 : i + 1].any())
    other = next(i for i in range(60) if log.state[i] != log.state[inside])
    jumping, cut, going_on, whole = (chain_learner() for _ in range(4))
    for learner in (jumping, going_on, cut):
        learner.observe(log[: inside - 1])
    last = log[inside - 1 : inside]
    cut.observe(gvf.Transitions(**last.columns | {"truncated": [True]}))
    for learner in (jumping, going_on):
        learner.observe(last)
        assert len(learner.n_steps) == 2
    jumping.learn([log[other:]])
    cut.learn([log[other:]])
    np.testing.assert_array_equal(jumping.weights, cut.weights)
    going_on.learn([log[inside:]])
    whole.learn([log])
    np.testing.assert_array_equal(going_on.weights, whole.weights)
    with pytest.raises(ValueError, match="does not begin in the state"):  # within a source
        chain_learner().learn([walk(60)[np.r_[0:inside, other]]])


@pytest.mark.parametrize("size", [1, 7, 60])
def test_transitions_out_of_order_are_refused_in_one_line_and_change_nothing(size):
    log = walk(60)
    order = np.arange(60)
    at = next(i for i in range(20, 60) if not log.terminated[i - 1] and not log.terminated[i])
    order[at] = next(i for i in range(60) if log.state[i] != log.state[at])
    learner, fresh, told = (chain_learner() for _ in range(3))
    seen = at // size * size
    learner.observe(log[:seen])
    with pytest.raises(ValueError, match=rf"position {at - seen} does not begin .* n_step=3 joins"):
        learner.observe(log[order[seen : seen + size]])
    assert learner.steps == seen
    learner.observe(log[seen:])
    fresh.observe(log)
    np.testing.assert_array_equal(learner.weights, fresh.weights)
    told.observe(gvf.Transitions(**log[order].columns, episode=np.arange(60)))


def test_episodes_that_take_turns_are_refused():
    turns = gvf.Transitions(**walk(60).columns, episode=np.arange(60) % 3)
    learner = chain_learner()
    with pytest.raises(ValueError, match=r"returns to an episode .* n_step=3 joins"):
        learner.observe(turns)
    assert learner.steps == 0
    learner.observe(gvf.Transitions(**turns.columns, stream=np.arange(60) % 3))
    assert learner.steps == 60


def test_states_of_every_kind_follow_one_another():
    for name in ("CartPole-v1", "Blackjack-v1"):
        env = gymnasium.make(name)
        if name == "Blackjack-v1":
            env = gymnasium.wrappers.TransformObservation(
                env, lambda s: {"hand": np.array(s[:2]), "ace": s[2]},
                gymnasium.spaces.Dict(hand=gymnasium.spaces.MultiDiscrete([32, 11]),
                                      ace=gymnasium.spaces.Discrete(2)),
            )  # fmt: skip
        learner = gvf.Learner(
            gvf.GVF(gvf.policies.Uniform(2)),
            Count(),
            gvf.updates.TD(0.01),
            behaviour=gvf.policies.Uniform(2),
            n_step=4,
        )
        assert learner.learn(env, 300, seed=0).steps == 300
        assert len(learner.window) == 300


class Count:
    """One feature that is 1 in every state."""

    size = 1

    def __call__(self, states):
        return np.ones((len(states), 1))


def test_text_of_any_length_may_follow():
    features = gvf.features.Dense(1, lambda words: np.array([[float(len(word))] for word in words]))
    learner = gvf.Learner(CHAIN, features, gvf.updates.TD(0.1), n_step=3, behaviour=CHAIN_BEHAVIOUR)
    for here, there in itertools.pairwise(["a", "b", "long", "c", "d"]):
        learner.observe(here, 1, 0.0, there, False)
    assert (learner.steps, len(learner.n_steps)) == (4, 2)


def test_action_values_are_refused_in_one_line():
    with pytest.raises(ValueError, match="n_step is for state values, and Sarsa learns action"):
        make(gvf.corrections.OnPolicy(), update=gvf.updates.Sarsa(0.1), n_step=2)


def test_a_network_learns_from_the_same_rows():
    torch = pytest.importorskip("torch")
    from networks import OneHot

    from gvf.neural import NeuralLearner

    options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3, "n_step": 3}
    neural = NeuralLearner(
        QUESTION, OneHot(5), partial(torch.optim.SGD, lr=0.3), gvf.corrections.IR(), **options
    )
    linear, log = make(gvf.corrections.IR(), n_step=3), batch(40)
    for learner in (neural, linear):
        learner.observe(log)
    np.testing.assert_allclose(neural.predict(np.arange(5)), linear.weights, rtol=1e-9)


def test_frames_are_those_of_n_steps():
    torch = pytest.importorskip("torch")
    from gvf.neural import NeuralLearner

    film = np.arange(22, dtype=np.uint8).repeat(4).reshape(22, 2, 2)
    log = gvf.Transitions(
        state=film[:-1], action=np.ones(21, int), reward=np.arange(21.0), next_state=film[1:],
        terminated=np.zeros(21, bool),
    )  # fmt: skip

    class Mean(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, frames):
            return self.layer(frames.flatten(1).float() / 255)

    windows = (gvf.FrameWindow(12), gvf.Window(12))
    for window in windows:
        NeuralLearner(
            gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.5),
            Mean(),
            partial(torch.optim.SGD, lr=0.01),
            behaviour=gvf.policies.Uniform(2),
            window=window,
            n_step=3,
        ).observe(log)
    frames, plain = (window[window.oldest_first] for window in windows)
    np.testing.assert_array_equal(frames.state[:, 0, 0], np.arange(7, 19))
    np.testing.assert_array_equal(frames.next_state[:, 0, 0], np.arange(10, 22))
    for name in ("state", "next_state", "cumulant", "continuation"):
        np.testing.assert_array_equal(frames[name], plain[name])


# The expected update, by exact enumeration, in a world of three states and two actions.

PI = np.array([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
MU = np.array([[0.3, 0.7], [0.6, 0.4], [0.25, 0.75]])
MOVES = np.array([[[0.1, 0.9, 0.0], [0.5, 0.0, 0.5]], [[0.0, 0.3, 0.7], [1.0, 0.0, 0.0]],
                  [[0.6, 0.2, 0.2], [0.0, 0.0, 1.0]]])  # fmt: skip
REWARD, GAMMA = np.array([1.0, -2.0, 0.5]), np.array([0.9, 0.7, 0.95])  # by the next state
X = np.array([[1.0, 0.0], [0.4, 1.0], [-0.3, 0.8]])
LAW = np.array([0.5, 0.2, 0.3])  # of the first state


def paths(n):
    """All paths of n steps: their probabilities under the behaviour, and their rows joined."""
    chance, joined = [], []
    for first in range(3):
        for choices in itertools.product(range(6), repeat=n):
            states, actions = [first], []
            for choice in choices:
                actions.append(choice // 3)
                states.append(choice % 3)
            at, a, after = np.array(states[:-1]), np.array(actions), np.array(states[1:])
            probability = LAW[first] * math.prod(MU[at, a] * MOVES[at, a, after])
            if probability == 0.0:
                continue
            columns = {"x": at, "x_next": after, "cumulant": REWARD[after]}
            columns["continuation"] = GAMMA[after]
            rows = Rows(columns, (PI / MU)[at, a][None], np.ones(n))
            row = NSteps(n, gvf.corrections.IR()).join(rows, gvf.Transitions(state=at))
            assert len(row) == 1 or n == 1
            chance.append(probability)
            joined.append(as_tuples(row)[0])
    return np.array(chance), joined


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_expected_update_has_the_fixed_point_of_n_step_td(n):
    chance, joined = paths(n)
    assert chance.sum() == pytest.approx(1.0, rel=1e-12)
    a, b = np.zeros((2, 2)), np.zeros(2)
    for p, (s, after, cumulant, continuation, ratio) in zip(chance, joined, strict=True):
        a += p * ratio * np.outer(X[s], X[s] - continuation * X[after])
        b += p * ratio * cumulant * X[s]
    # The same by matrices: v = (r + P r + ... + P^(n-1) r) + P^n v, projected with weights LAW.
    moves = np.einsum("sa,sat->st", PI, MOVES)
    carried, reward = moves * GAMMA, moves @ REWARD
    powers = [np.linalg.matrix_power(carried, i) for i in range(n + 1)]
    weighted = X.T * LAW
    exact_a, exact_b = weighted @ (np.eye(3) - powers[n]) @ X, weighted @ sum(powers[:n]) @ reward
    np.testing.assert_allclose(a, exact_a, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(b, exact_b, rtol=1e-12, atol=1e-13)
    values = X @ np.linalg.solve(a, b)
    one = X @ np.linalg.solve(weighted @ (np.eye(3) - carried) @ X, weighted @ reward)
    assert (np.abs(values - one).max() > 0.01) == (n > 1)  # another fixed point than one step


def test_given_the_window_ir_is_the_weighted_n_step_update():
    """The mean over all draws, each with its probability, is WIS with products of ratios."""
    log = batch(6)
    log.columns["terminated"][:] = False
    learner = make(gvf.corrections.IR(), n_step=3, window=50, batch_size=2, warm_up=10**6)
    learner.learn([log])
    assert len(learner.window) == 6
    ratio, cumulant, continuation, _ = QUESTION.evaluate(log, behaviour=BEHAVIOUR)
    w, v = np.array([0.3, -1.0, 2.0, 0.7, 0.1]), np.eye(5)
    updates, products = [], []
    for i in range(6):
        steps = range(i, min(i + 3, 6))
        g = sum(cumulant[j] * np.prod(continuation[i:j]) for j in steps)
        g += np.prod(continuation[i : steps[-1] + 1]) * w[log.next_state[steps[-1]]]
        updates.append((g - w[log.state[i]]) * v[log.state[i]])
        products.append(np.prod(ratio[i : steps[-1] + 1]))
    products = np.array(products)
    expected = products @ np.array(updates) / products.sum()
    learner.weights[:] = w
    mean, p = np.zeros(5), products / products.sum()
    for slots in itertools.product(range(6), repeat=2):
        learner.weights[:] = w
        learner.buffer.draw(2, np.random.default_rng(0))  # writes the window's means
        weights = learner.buffer.weigh(np.array(slots))
        learner.values.update(learner.buffer, np.array(slots), weights)
        mean += p[slots[0]] * p[slots[1]] * (learner.weights - w) / 0.3
    np.testing.assert_allclose(learner.buffer.ratios, products[np.r_[0:6]], rtol=1e-12)
    np.testing.assert_allclose(mean, expected, rtol=1e-11)
