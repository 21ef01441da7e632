"""The buffer: one head for columns, inputs and masses; traces, and masses that change."""

import copy
import pickle

import numpy as np
import pytest
from five_states import BEHAVIOUR, CHAIN, CHAIN_BEHAVIOUR, QUESTION, chain_stream, stream
from oracles import p_value
from own_corrections import EmphaticIS, FollowOn, Prioritised, SquareRoot

import gvf
from gvf.corrections import WINDOW
from gvf.corrections.carried import Trace
from gvf.learners import update_loop as loop
from gvf.window.buffer import Buffer

EVERY = [
    gvf.corrections.IS(),
    gvf.corrections.WISMinibatch(),
    gvf.corrections.IR(),
    gvf.corrections.BCIR(),
    gvf.corrections.WISOptimal(),
    gvf.corrections.OnPolicy(),
    gvf.corrections.Interpolated(0.5),
    SquareRoot(),
    FollowOn(),
    EmphaticIS(0.6),
    Prioritised(0.7),
]


def make(correction, update=None, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 100, "seed": 0, **options}
    return gvf.Learner(
        CHAIN, gvf.features.OneHot(5), update or gvf.updates.TD(0.3), correction, **options
    )


def insert(buffer, ratio, continuation=1.0):
    with buffer.rows({"ratio": ratio}, ratio, np.full(len(ratio), continuation)) as rows:
        buffer.extend(rows)


@pytest.mark.parametrize("correction", EVERY, ids=lambda c: c.name)
def test_the_compiled_loop_is_the_loop_in_python_to_the_last_bit(correction, monkeypatch):
    """Window of 100, three laps, an update every second step after a warm-up."""
    data = chain_stream(CHAIN_BEHAVIOUR, 350, seed=4)
    compiled, plain = (make(correction, update_every=2, warm_up=7) for _ in range(2))
    compiled.observe(data)
    monkeypatch.setattr(
        plain.values, "observe", lambda *arguments: loop.observe(plain.values, *arguments)
    )
    for start in range(0, 350, 33):
        plain.observe(data[start : start + 33])
    assert np.abs(plain.weights).max() > 0.05
    np.testing.assert_array_equal(compiled.weights, plain.weights)
    assert compiled.report() == plain.report()
    np.testing.assert_array_equal(compiled.buffer.masses.rings, plain.buffer.masses.rings)
    np.testing.assert_array_equal(compiled.buffer.masses.nodes, plain.buffer.masses.nodes)


@pytest.mark.parametrize("correction", EVERY, ids=lambda c: c.name)
def test_saved_and_resumed_it_goes_on_to_the_last_bit(correction, tmp_path):
    data = chain_stream(CHAIN_BEHAVIOUR, 300, seed=2)
    straight, first, second = (make(correction) for _ in range(3))
    straight.observe(data)
    first.observe(data[:170])
    first.save(tmp_path / "learner")
    second.load(tmp_path / "learner").observe(data[170:])
    np.testing.assert_array_equal(second.weights, straight.weights)
    assert second.report() == straight.report()


def test_columns_and_masses_share_the_head():
    buffer = Buffer(gvf.Window(5), SquareRoot())
    assert buffer.masses.place is buffer.window.place
    rng, seen = np.random.default_rng(0), []
    for rows in (3, 1, 4, 12, 2):
        ratio = rng.lognormal(size=rows)
        seen += ratio.tolist()
        insert(buffer, ratio)
        np.testing.assert_array_equal(buffer.ratios, buffer.window.columns["ratio"][: len(buffer)])
        assert sorted(buffer.ratios.tolist()) == sorted(seen[-5:])
        slots = buffer.draw(50, rng)
        assert slots is not None
        drawn = buffer.window[slots].ratio
        # sqrt(rho) / k: from the masses at the slots, and from the columns there.
        np.testing.assert_allclose(buffer.weigh(slots), np.sqrt(drawn) / 50)


def test_draws_are_in_proportion_to_the_mass():
    """Chi-square at level 1e-5, for a ring and for a tree."""
    rng = np.random.default_rng(5)
    for correction in (SquareRoot(), Prioritised(1.0)):
        buffer = Buffer(gvf.Window(5), correction)
        ratio = np.array([9.9, 0.3, 1.7, 0.0, 4.4, 2.3, 0.9])
        insert(buffer, ratio)
        if correction == Prioritised(1.0):
            buffer.refresh(np.arange(5), np.array([0.4, -2.0, 0.0, 1.0, 3.3]))
            deltas = np.array([0.4, 2.0, 0.0, 1.0, 3.3])
            p = buffer.ratios * (deltas + 0.1)
        else:
            p = np.sqrt(buffer.ratios)
        slots = buffer.draw(100_000, rng)
        assert slots is not None
        assert p_value(np.bincount(slots, minlength=5), p) > 1e-5


def test_without_mass_nothing_is_drawn():
    for correction in (gvf.corrections.IR(), SquareRoot(), Prioritised(1.0)):
        buffer = Buffer(gvf.Window(3), correction)
        insert(buffer, np.zeros(2))
        assert buffer.draw(4, np.random.default_rng(0)) is None


def test_a_window_that_is_not_empty_is_refused():
    window = gvf.Window(3)
    window.append(state=1)
    with pytest.raises(ValueError, match="fills its window itself; this one is not new"):
        Buffer(window, gvf.corrections.IR())


def test_a_learner_fills_the_window_that_it_is_given():
    window = gvf.Window(40)
    given, own = make(gvf.corrections.IR(), window=window), make(gvf.corrections.IR(), window=40)
    for learner in (given, own):
        learner.observe(chain_stream(CHAIN_BEHAVIOUR, 90, seed=3))
    assert given.window is window
    assert len(window) == 40
    np.testing.assert_array_equal(given.weights, own.weights)
    with pytest.raises(TypeError, match="keeps features, not frames"):
        make(gvf.corrections.IR(), window=gvf.FrameWindow(40))


# Traces: kept apart for each stream and episode.


def follow_on(ratio, continuation, ended):
    """F of one stream, by its definition."""
    out, previous = [], None
    for rho, gamma, end in zip(ratio, continuation, ended, strict=True):
        out.append(1.0 if previous is None else previous + 1.0)
        previous = None if end or gamma == 0.0 else gamma * rho * out[-1]
    return out


def batches_of_streams(seed):
    """Rows of three streams, mixed, with ends of episodes of both kinds."""
    rng = np.random.default_rng(seed)
    m = 200
    terminated, truncated = rng.random(m) < 0.1, rng.random(m) < 0.1
    return gvf.Transitions(
        stream=rng.integers(3, size=m) * 7,
        ratio=rng.lognormal(size=m),
        continuation=np.where(terminated, 0.0, 0.9),
        terminated=terminated,
        truncated=truncated,
    )


@pytest.mark.parametrize("piece", [1, 7, 200])
def test_a_trace_is_kept_apart_for_each_stream_and_episode(piece):
    rows = batches_of_streams(seed=1)
    trace, found = Trace(FollowOn()), []
    for start in range(0, 200, piece):
        part = rows[start : start + piece]
        inputs = trace.inputs(part.ratio, part.continuation, part)
        np.testing.assert_array_equal(inputs[0], part.ratio)
        found += inputs[1].tolist()
    for name in (0, 7, 14):
        at = np.flatnonzero(rows.stream == name)
        expected = follow_on(rows.ratio[at], rows.continuation[at], rows.truncated[at])
        np.testing.assert_allclose(np.array(found)[at], expected, rtol=1e-14)
    assert max(found) > 3.0


def test_episodes_of_a_log_are_kept_apart_by_their_column():
    trace = Trace(FollowOn())
    rows = gvf.Transitions(episode=[4, 4, 9, 9], state=[0, 1, 2, 3])
    inputs = trace.inputs(np.full(4, 2.0), np.full(4, 0.5), rows)
    assert inputs[1].tolist() == [1.0, 2.0, 1.0, 2.0]


def test_a_trace_of_a_vector_environment_follows_its_streams():
    import gymnasium

    env = gymnasium.vector.SyncVectorEnv([lambda: gymnasium.make("FrozenLake-v1")] * 3)
    question = gvf.GVF(gvf.policies.Favour(2, 0.7, actions=4), "reward", 0.9)
    learner = gvf.Learner(
        question,
        gvf.features.OneHot(16),
        gvf.updates.TD(0.1),
        FollowOn(),
        behaviour=gvf.policies.Uniform(4),
        seed=0,
        window=500,
    )
    learner.learn(env, steps=300, seed=3)
    seen = list(gvf.collect(env, gvf.policies.Uniform(4), 300, seed=3))
    rows = gvf.Transitions.concatenate(seen)
    ratio = gvf.policies.ratio(
        question.policy, rows.state, rows.action, behaviour=gvf.policies.Uniform(4)
    )
    expected = np.empty(300)
    for name in range(3):
        at = np.flatnonzero(rows.stream == name)
        gamma = np.where(rows.terminated[at], 0.0, 0.9)
        expected[at] = follow_on(ratio[at], gamma, rows.truncated[at])
    np.testing.assert_allclose(learner.buffer.inputs[1], expected, rtol=1e-12)


def test_an_observation_that_fails_leaves_the_trace_as_it_was():
    learner = make(FollowOn())
    learner.observe(1, 1, 0.0, 2, False)
    before = learner.buffer.trace.checkpoint()["memory"]
    with pytest.raises(ValueError, match="outside"):
        learner.observe(2, 1, 0.0, 9, False)
    learner.values.features = gvf.features.Dense(5, lambda s: np.eye(5)[s])
    with pytest.raises(ValueError, match="same form"):
        learner.observe(2, 1, 0.0, 3, False)
    np.testing.assert_array_equal(learner.buffer.trace.checkpoint()["memory"], before)


def test_rows_that_do_not_fit_the_window_leave_the_trace_as_it_was():
    buffer = Buffer(gvf.Window(3), FollowOn())
    insert(buffer, np.array([2.0, 0.5]))
    before = buffer.trace.checkpoint()["memory"]
    ratio = np.array([3.0])
    with (
        pytest.raises(ValueError, match="this window has the columns"),
        buffer.rows({"other": np.zeros(1)}, ratio, np.ones(1)) as rows,
    ):
        buffer.extend(rows)
    np.testing.assert_array_equal(buffer.trace.checkpoint()["memory"], before)


def test_emphasis_in_the_draw_and_in_the_weight_have_the_same_mean():
    """Given the window, FollowOn times the mean mass is, on average, emphatic IS."""
    draw, weight = Buffer(gvf.Window(6), FollowOn()), Buffer(gvf.Window(6), EmphaticIS(0.9))
    rng = np.random.default_rng(2)
    ratio = rng.lognormal(size=6)
    for buffer in (draw, weight):
        insert(buffer, ratio, 0.9)
    np.testing.assert_array_equal(draw.inputs, weight.inputs)
    update = rng.normal(size=6)
    p = draw.inputs[0] * draw.inputs[1]
    resampled = p.mean() * (p / p.sum()) @ update
    weights = [EmphaticIS(0.9).weights(weight.inputs[:, [i]], [1, 1, 1])[0] for i in range(6)]
    assert resampled == pytest.approx(np.mean(weights * update))


# Masses that change.


def test_priorities_follow_the_errors_of_drawn_transitions():
    """After each update the drawn slots have new masses, and the others keep theirs."""
    learner = make(Prioritised(1.0), window=8, batch_size=3)
    masses, values, rng = {}, np.zeros(5), np.random.default_rng(0).spawn(2)[0]
    rows = chain_stream(CHAIN_BEHAVIOUR, 30, seed=1)
    rho = gvf.policies.ratio(CHAIN.policy, rows.state, rows.action, behaviour=CHAIN_BEHAVIOUR)
    kept = {}
    for t in range(30):
        learner.observe(rows[t : t + 1])
        gamma = 0.0 if rows.terminated[t] else 0.9
        kept[t % 8] = rows.state[t], rows.next_state[t], rows.reward[t], gamma, rho[t]
        masses[t % 8] = rho[t] * 1.1
        order = range(len(masses))
        mean = sum(masses.values()) / len(masses)
        edges = np.cumsum([masses[slot] for slot in order])
        slots = [int(np.searchsorted(edges, u * edges[-1], side="right")) for u in rng.random(3)]
        delta = [kept[i][2] + kept[i][3] * values[kept[i][1]] - values[kept[i][0]] for i in slots]
        w = [mean * kept[i][4] / (masses[i] * 3) for i in slots]
        for i, d in zip(slots, delta, strict=True):
            masses[i] = kept[i][4] * (abs(d) + 0.1)
        for i, d, weight in zip(slots, delta, w, strict=True):
            values[kept[i][0]] += 0.3 * weight * d
        np.testing.assert_allclose(learner.weights, values, rtol=1e-12, atol=1e-15)
    leaves = learner.buffer.masses.nodes[-8:]
    np.testing.assert_allclose(leaves, [masses[slot] for slot in range(8)], rtol=1e-12)


def test_priorities_work_with_a_network():
    torch = pytest.importorskip("torch")
    from functools import partial

    from networks import OneHot

    from gvf.neural import NeuralLearner

    options = {"behaviour": BEHAVIOUR, "window": 7, "batch_size": 4, "seed": 3}
    sgd = partial(torch.optim.SGD, lr=0.3)
    neural = NeuralLearner(QUESTION, OneHot(5), sgd, Prioritised(1.0), **options)
    linear = gvf.Learner(
        QUESTION, gvf.features.OneHot(5), gvf.updates.TD(0.3), Prioritised(1.0), **options
    )
    for transition in stream(25, seed=8):
        neural.observe(*transition)
        linear.observe(*transition)
    np.testing.assert_allclose(neural.predict(np.arange(5)), linear.weights, rtol=1e-9)


def test_where_changing_masses_make_no_sense_is_said():
    with pytest.raises(ValueError, match="several step sizes share their draws"):
        make(Prioritised(1.0), gvf.updates.TD([0.1, 0.2]))
    from gvf.window.draw_batches import draw_batches as draw

    with pytest.raises(ValueError, match="draws cannot be made beforehand"):
        draw(Prioritised(1.0), np.ones(5), window=5, batch_size=2,
             seed=np.random.SeedSequence(0))  # fmt: skip

    class NoMass(gvf.corrections.Correction):
        weigh = gvf.corrections.IS.weigh
        refresh = Prioritised.refresh

    with pytest.raises(ValueError, match="NoMass refreshes masses, but has none"):
        make(NoMass())


def test_a_diagnosis_knows_only_the_trace_of_its_own_learner():
    learner = make(FollowOn())
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 90, seed=3))
    found = learner.diagnose()
    assert isinstance(found, gvf.Diagnosis)
    p = learner.buffer.inputs[0] * learner.buffer.inputs[1]
    size = found.moments["FollowOn"].effective_sample_size
    assert size == pytest.approx(p.sum() ** 2 / (p**2).sum())
    with pytest.raises(ValueError, match="carries something along the stream"):
        learner.diagnose(corrections=[EmphaticIS(0.5)])
    with pytest.raises(ValueError, match="carries something along the stream"):
        make_and_observe(gvf.corrections.IR()).diagnose(corrections=[FollowOn()])


def make_and_observe(correction):
    learner = make(correction)
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 90, seed=3))
    return learner


@pytest.mark.parametrize(
    "clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))], ids=["copy", "pickle"]
)
@pytest.mark.parametrize("correction", EVERY, ids=lambda c: c.name)
def test_a_copied_learner_goes_on_by_itself_to_the_last_bit(clone, correction):
    data = chain_stream(CHAIN_BEHAVIOUR, 300, seed=2)
    learner = make(correction)
    learner.observe(data[:170])
    other = clone(learner)
    assert other.buffer.window is other.window
    assert other.buffer.masses.place is other.window.place
    assert other.window.place is not learner.window.place
    for one in (learner, other):
        one.observe(data[170:])
    np.testing.assert_array_equal(other.weights, learner.weights)
    assert other.report() == learner.report()


# Mistakes that compiled code would not notice.


class Ragged:
    """A feature map whose number of active features depends on the batch."""

    size = 5

    def __call__(self, states):
        return np.zeros((len(states), 3 if np.asarray(states)[0] == 0 else 1), np.int64)


def test_features_of_changing_width_are_refused():
    learner = gvf.Learner(CHAIN, Ragged(), gvf.updates.TD(0.1), behaviour=CHAIN_BEHAVIOUR)
    with pytest.raises(ValueError, match=r"same form; got int32\[m, 1\] and int32\[m, 3\]"):
        learner.observe(0, 1, 0.0, 1, False)
    learner.observe(1, 1, 0.0, 2, False)
    with pytest.raises(ValueError, match="same form"):
        learner.observe(0, 1, 0.0, 0, False)
    assert learner.steps == 1


class Transposed(gvf.policies.DiscretePolicy):
    """Probabilities whose rows are not contiguous."""

    actions = 2

    def probabilities(self, states):
        right = 0.1 + 0.15 * np.asarray(states)
        return np.array([1 - right, right]).T


@pytest.mark.parametrize(
    "update", [gvf.updates.Sarsa(0.3), gvf.updates.ExpectedSarsa(0.3)], ids=repr
)
def test_the_layout_of_probabilities_does_not_matter(update):
    data = chain_stream(CHAIN_BEHAVIOUR, 200, seed=1)
    question = gvf.GVF(Transposed(), "reward", 0.9)
    together, apart = (
        gvf.Learner(question, gvf.features.OneHot(5), update, behaviour=CHAIN_BEHAVIOUR, seed=0)
        for _ in range(2)
    )
    together.observe(data)
    for i in range(200):
        apart.observe(data[i : i + 1])
    np.testing.assert_array_equal(together.weights, apart.weights)


def test_a_window_serves_one_learner():
    window = gvf.Window(10)
    make(gvf.corrections.IR(), window=window)
    with pytest.raises(ValueError, match="belongs to another learner"):
        make(gvf.corrections.IR(), window=window)
    used = gvf.Window(10)
    used.extend(cumulant=np.zeros(0, np.int64))
    with pytest.raises(ValueError, match="this one is not new"):
        make(gvf.corrections.IR(), window=used)


def test_any_generator_draws():
    class Own(np.random.PCG64):
        """A type that is not NumPy's own, so its address is not known."""

    buffer = Buffer(gvf.Window(5), gvf.corrections.IR())
    insert(buffer, np.ones(5))
    slots = buffer.draw(1000, np.random.Generator(Own(0)))
    assert slots is not None
    assert set(slots.tolist()) == set(range(5))
    learner = make(gvf.corrections.IR(), seed=np.random.Generator(Own(0)))
    learner.observe(chain_stream(CHAIN_BEHAVIOUR, 50, seed=1))
    assert learner.updates == 50


class Age(gvf.corrections.Correction):
    """Counts the transitions since the episode began."""

    @staticmethod
    def trace(carry, ratio, continuation, interest, restart, parameters):
        return interest if restart else carry + interest

    weigh = gvf.corrections.IS.weigh


def test_a_trace_begins_anew_when_the_environment_is_reset():
    from five_states import Chain

    class Endless(Chain):
        def step(self, action):
            return (*super().step(action)[:2], False, False, {})

    question = gvf.GVF(CHAIN.policy, "reward", 0.0)  # a continuation of 0 is no end of an episode
    learner = gvf.Learner(
        question,
        gvf.features.OneHot(5),
        gvf.updates.TD(0.1),
        Age(),
        behaviour=CHAIN_BEHAVIOUR,
        window=20,
    )
    for _ in range(2):
        learner.learn(Endless(), steps=5, seed=0)
    assert learner.buffer.inputs[1].tolist() == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("names", [2**60 + np.arange(4), np.array(["a", "b", "c", "d"])])
def test_episodes_may_have_any_names(names):
    rows = gvf.Transitions(episode=names.repeat(2))
    assert Trace(Age()).inputs(np.ones(8), np.ones(8), rows)[1].tolist() == [1, 2] * 4


def test_a_mass_that_is_refreshed_badly_is_refused():
    class Wrong(Prioritised):
        @staticmethod
        def refresh(delta, inputs, parameters, out):
            out[:] = -1.0

    learner = make(Wrong(1.0))
    with pytest.raises(ValueError, match="refresh gave a mass"):
        learner.observe(2, 1, 1.0, 3, False)


def test_the_whole_window_needs_no_ratios():
    class Mean(gvf.corrections.Correction):
        """Every transition alike."""

        mass = WINDOW
        weigh = gvf.corrections.OnPolicy.weigh
        needs_ratios = False

    question = gvf.GVF(gvf.policies.Always(1, actions=2), "reward", 0.9)
    for correction, skipped in ((Mean(), 0), (gvf.corrections.WISOptimal(), 2)):
        learner = gvf.Learner(
            question,
            gvf.features.OneHot(5),
            gvf.updates.TD(0.5),
            correction,
            behaviour=CHAIN_BEHAVIOUR,
        )
        for _ in range(2):
            learner.observe(2, 0, 1.0, 1, False)
        assert (learner.skipped, learner.updates) == (skipped, 2 - skipped)
