"""Traces follow their streams, refuse rows that are out of order, and say when they overflow."""

import gymnasium
import numpy as np
import pytest
from dumb import follow_on
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream
from grid_world import Rooms
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import gvf
from gvf.corrections.carried import Trace, TraceOverflowError

DATA = chain_stream(CHAIN_BEHAVIOUR, 200, seed=3)
LAST_END = int(DATA.terminated.nonzero()[0][-1]) + 1
WHOLE = DATA[:LAST_END]
"""Whole episodes."""
REFUSED = "does not begin in the state where the one before it ended"
REMEDY = (
    r"give them in the order of the stream, .* add the columns 'stream' and 'episode'; or use a "
    r"gvf\.Learner whose correction has no trace, such as gvf\.corrections\.IR\(\)$"
)


def make(correction=None, question=CHAIN, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 500, "seed": 0, **options}
    correction = correction or gvf.corrections.EmphaticIR()
    return gvf.Learner(question, gvf.features.OneHot(5), gvf.updates.TD(0.3), correction, **options)


def with_columns(rows, **columns):
    return gvf.Transitions(**rows.columns, **columns)


def trace_of(rows):
    """Return the trace of rows of the chain in order."""
    found = CHAIN.evaluate(rows, behaviour=CHAIN_BEHAVIOUR)
    return follow_on(found.ratio, found.continuation, np.ones(len(rows)), rows.terminated)


def one_by_one(learner, rows):
    for i in range(len(rows)):
        learner.observe(rows[i : i + 1])


# Rows out of order


def shuffled(rows):
    return rows[np.random.default_rng(0).permutation(len(rows))]


def test_shuffled_rows_are_refused_in_one_line_that_says_the_way_out():
    learner, untouched = make(), make()
    with pytest.raises(ValueError, match=rf"^the transition at position \d+ {REFUSED}.*{REMEDY}"):
        learner.observe(shuffled(DATA))
    assert learner.steps == 0
    for one in (learner, untouched):
        one.observe(DATA)
    np.testing.assert_array_equal(learner.weights, untouched.weights)
    make(gvf.corrections.IR()).observe(shuffled(DATA))  # without a trace


def test_rows_out_of_order_are_refused_one_by_one_too():
    learner = make()
    learner.observe(2, 1, 0.0, 3, False)
    with pytest.raises(ValueError, match=f"at position 0 {REFUSED}"):
        learner.observe(1, 1, 0.0, 2, False)
    learner.observe(3, 0, 0.0, 2, False, True)
    learner.observe(4, 0, 0.0, 3, False)  # the episode was cut
    assert learner.steps == 3


def test_learning_from_another_log_begins_anew():
    learner = make()
    for start in (0, 50, 3):
        learner.learn([DATA[start : start + 40]])
    expected = [trace_of(DATA[start : start + 40]) for start in (0, 50, 3)]
    np.testing.assert_allclose(learner.buffer.inputs[1], np.concatenate(expected), rtol=1e-12)


def test_learning_goes_on_where_the_log_before_ended():
    learner = make()
    for start in range(0, 200, 40):
        learner.learn([DATA[start : start + 40]])
    np.testing.assert_allclose(learner.buffer.inputs[1], trace_of(DATA), rtol=1e-12)


def test_a_shuffled_log_is_refused_after_another_one():
    learner = make()
    learner.learn([DATA])
    with pytest.raises(ValueError, match=REFUSED):
        learner.learn([shuffled(DATA)])


def numbered(rows):
    """Return rows with a column that numbers their episodes."""
    return with_columns(rows, episode=np.cumsum(rows.terminated) - rows.terminated)


@pytest.mark.parametrize("names", [int, str])
def test_an_episode_that_comes_back_is_refused(names):
    log = numbered(DATA)
    log = gvf.Transitions(**log.columns | {"episode": log.episode.astype(names)})
    make().observe(log)
    mixed, learner = shuffled(log), make()
    with pytest.raises(ValueError, match=f"returns to an episode that another .*{REMEDY}"):
        learner.observe(mixed)
    with pytest.raises(ValueError, match="returns to an episode"):
        one_by_one(learner, mixed)


@pytest.mark.parametrize("names", [int, str])
def test_episodes_that_take_turns_are_refused_however_many_they_are(names):
    """Without a column `stream`, the environments of a log that records them side by side."""
    turns = with_columns(DATA, episode=(np.arange(200) % 5).astype(names))
    learner = make()
    with pytest.raises(ValueError, match=r"position [5-9] returns to an episode"):
        learner.observe(turns)
    assert learner.steps == 0
    cut = gvf.Transitions(**turns.columns | {"truncated": np.ones(200, bool)})
    learner.observe(cut)
    learner.observe(with_columns(turns, stream=np.arange(200) % 5))
    make(gvf.corrections.StateRatioIR()).observe(turns)  # its trace does not look back
    assert learner.steps == 400


def test_a_column_of_episodes_is_believed_where_states_differ():
    noisy = gvf.Transitions(**numbered(DATA).columns | {"state": (DATA.state + 1) % 5})
    learner = make()
    learner.observe(noisy)
    assert learner.steps == 200


def test_the_next_source_may_have_the_names_of_episodes_of_the_one_before():
    learner, zero, one = make(), np.zeros(2, int), np.ones(2, int)
    first = gvf.Transitions(**WHOLE[:2].columns | {"terminated": zero > 0})
    learner.learn([with_columns(first, episode=zero)])  # episode 0 is left before its end
    learner.learn([with_columns(first, episode=one)])
    learner.learn([with_columns(first, episode=zero)])
    learner.observe(with_columns(first, episode=one))
    with pytest.raises(ValueError, match="returns to an episode"):
        learner.observe(with_columns(first, episode=zero))


def test_the_same_log_may_come_twice():
    log, learner = numbered(DATA), make()
    learner.observe(log[:LAST_END])
    learner.observe(log[:LAST_END])
    learner.learn([log])
    learner.learn([log])
    assert learner.steps == 400 + 2 * LAST_END


def test_interleaved_streams_need_their_column():
    mixed = np.arange(2 * LAST_END).reshape(2, -1).T.ravel()
    other = chain_stream(CHAIN_BEHAVIOUR, LAST_END, seed=8)
    both = gvf.Transitions.concatenate([WHOLE, other])[mixed]
    with pytest.raises(ValueError, match=REFUSED):
        make().observe(both)
    learner = make()
    stream = np.tile([7, 3], LAST_END)
    learner.observe(with_columns(both, stream=stream))
    np.testing.assert_allclose(learner.buffer.inputs[1, ::2], trace_of(WHOLE), rtol=1e-12)
    np.testing.assert_allclose(learner.buffer.inputs[1, 1::2], trace_of(other), rtol=1e-12)


def test_a_row_of_no_stream_is_refused():
    stream = np.zeros(200)
    stream[7] = np.nan
    learner = make()
    with pytest.raises(ValueError, match="column 'stream' is nan at position 7"):
        learner.observe(with_columns(DATA, stream=stream))
    assert learner.steps == 0


def test_rows_of_a_stream_that_are_out_of_order_are_refused():
    with pytest.raises(ValueError, match=REFUSED):
        make().observe(shuffled(with_columns(DATA, stream=np.arange(200) % 2)))


def test_a_row_left_out_for_a_nan_cuts_only_its_own_stream():
    other = chain_stream(CHAIN_BEHAVIOUR, LAST_END, seed=8)
    mixed = np.arange(2 * LAST_END).reshape(2, -1).T.ravel()
    both = gvf.Transitions.concatenate([WHOLE, other])[mixed]
    both = with_columns(both, stream=np.tile([0, 1], LAST_END))
    both.reward[[20, 90]] = np.nan  # of the first stream
    for piece in (1, 7, 400):
        learner = make(on_nan="skip")
        for start in range(0, 2 * LAST_END, piece):
            learner.observe(both[start : start + piece])
        kept = np.delete(both.stream, [20, 90]) == 1
        np.testing.assert_allclose(learner.buffer.inputs[1, kept], trace_of(other), rtol=1e-12)
        first = learner.buffer.inputs[1, ~kept]
        cut = [WHOLE[:10], WHOLE[11:45], WHOLE[46:]]
        expected = np.concatenate([trace_of(part) for part in cut])
        np.testing.assert_allclose(first, expected, rtol=1e-12)


def states_and_successors(kind):
    """Return states [4] and next states, the last of which nothing follows."""
    numbers = np.array([0.1, 0.7, -0.0, 0.3, 0.9])
    path = np.stack([numbers, 1 - numbers], axis=1)
    if kind == "dict":
        path = gvf.Transitions(state={"at": path, "door": numbers > 0.5}).state
    if kind == "frames":
        path = np.random.default_rng(0).integers(0, 256, (5, 6, 7), np.uint8)
    if kind == "text":
        path = np.array(["a", "b", "long", "c", "d"])
    state, following = path[:-1].copy(), path[1:].copy()
    if kind == "single":
        state = state.astype(np.float32)
    if kind == "zeros":
        following[1, 0] = 0.0
    if kind == "strided":
        state = np.repeat(state, 2, axis=0)[::2]
    return state, following


@pytest.mark.parametrize("kind", ["dict", "frames", "text", "single", "zeros", "strided"])
@pytest.mark.parametrize("piece", [1, 4])
def test_states_of_any_type_are_compared(kind, piece):
    state, following = states_and_successors(kind)

    def carry(order):
        trace, rows = (
            Trace(gvf.corrections.EmphaticIR()),
            gvf.Transitions(state=state, next_state=following),
        )
        for start in range(0, 4, piece):
            at = order[start : start + piece]
            trace.inputs(np.ones(len(at)), np.ones(len(at)), rows[at])
        return trace

    trace = carry([0, 1, 2, 3])
    again = Trace(gvf.corrections.EmphaticIR())
    again.restore(trace.checkpoint())
    with pytest.raises(ValueError, match=REFUSED):
        again.inputs(np.ones(1), np.ones(1), gvf.Transitions(state=state[:1], next_state=state[:1]))
    with pytest.raises(ValueError, match=REFUSED):
        carry([0, 2, 1, 3])


def test_rows_without_states_are_taken_as_they_come():
    trace = Trace(gvf.corrections.EmphaticIR())
    for rows in (gvf.Transitions(state=[3, 1]), gvf.Transitions(reward=[0.0, 0.0]), None):
        assert trace.inputs(np.ones(2), np.ones(2), rows)[1].size == 2
    assert trace.inputs(np.ones(1), np.ones(1))[1].tolist() == [7.0]


def test_a_last_row_without_a_next_state_ends_its_episode():
    nan = np.nan
    log = gvf.Transitions(
        state=[[0.1], [0.2], [0.5]], action=[1, 1, 0], reward=np.zeros(3),
        next_state=[[0.2], [nan], [0.6]], terminated=[False, True, False],
    )  # fmt: skip
    learner = gvf.Learner(
        CHAIN,
        gvf.features.Dense(1, lambda s: s),
        gvf.updates.TD(0.1),
        gvf.corrections.EmphaticIR(),
        behaviour=CHAIN_BEHAVIOUR,
    )
    learner.observe(log)
    assert learner.buffer.inputs[1, 2] == 1.0


# Streams of the library are never refused


def lake(steps):
    return gymnasium.make("FrozenLake-v1", max_episode_steps=steps)


SOURCES = {
    "CartPole": lambda: gymnasium.make("CartPole-v1", max_episode_steps=15),
    "Four Rooms": lambda: Rooms(),
    "Mountain Car": lambda: gymnasium.make("MountainCar-v0"),
    **{
        f"3 lakes, {mode.value}": lambda mode=mode: SyncVectorEnv(
            [lambda: lake(9)] * 3, autoreset_mode=mode
        )
        for mode in AutoresetMode
    },
    "2 poles": lambda: SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2),
}


@pytest.mark.parametrize("name", SOURCES)
def test_an_environment_is_in_order(name):
    env = SOURCES[name]()
    space = getattr(env, "single_observation_space", env.observation_space)
    actions = int(getattr(env, "single_action_space", env.action_space).n)
    if isinstance(space, gymnasium.spaces.Discrete):
        features = gvf.features.OneHot(int(space.n))
    else:
        size = int(np.prod(space.shape))
        features = gvf.features.Dense(size, lambda s: np.tanh(s.astype(float)))
    question = gvf.GVF(gvf.policies.Favour(0, 0.5, actions=actions), "reward", 0.9)
    learner = gvf.Learner(
        question,
        features,
        gvf.updates.TD(0.01),
        gvf.corrections.EmphaticIR(0.5),
        behaviour=gvf.policies.Uniform(actions),
        seed=0,
        on_nan="skip",
    )
    learner.learn(env, steps=300, seed=0)
    learner.learn(env, steps=200, seed=0, act_steps=1)
    learner.learn(gvf.collect(env, gvf.policies.Uniform(actions), 100, seed=2))
    assert learner.steps == 600


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_of_3_is_three_single_ones(mode):
    env = SyncVectorEnv([lambda: lake(9)] * 3, autoreset_mode=mode)
    question = gvf.GVF(
        gvf.policies.Favour(2, 0.7, actions=4), "reward", lambda t: 0.5 + t.next_state / 40
    )

    def learner():
        return gvf.Learner(
            question,
            gvf.features.OneHot(16),
            gvf.updates.TD(0.1),
            gvf.corrections.EmphaticIR(),
            behaviour=gvf.policies.Uniform(4),
            window=1000,
            seed=0,
        )

    vector = learner()
    vector.learn(env, steps=600, seed=3)
    rows = gvf.Transitions.concatenate(list(gvf.collect(env, gvf.policies.Uniform(4), 600, seed=3)))
    assert rows.truncated.sum() > 5
    assert rows.terminated.sum() > 5
    for name in range(3):
        single, at = learner(), rows.stream == name
        columns = {key: column[at] for key, column in rows.columns.items() if key != "stream"}
        single.observe(gvf.Transitions(**columns))
        np.testing.assert_array_equal(vector.buffer.inputs[:, at], single.buffer.inputs)
    assert vector.buffer.inputs[1].max() > 3.0


def test_learners_of_one_stream_do_not_disturb_each_other(tmp_path):
    """Two learn side by side from three environments; one is saved within their episodes."""
    env = SyncVectorEnv([lambda: lake(9)] * 3)
    rows = gvf.Transitions.concatenate(list(gvf.collect(env, gvf.policies.Uniform(4), 300, seed=3)))
    rows = gvf.Transitions(**rows.columns | {"reward": np.random.default_rng(0).normal(size=300)})
    ended = rows.terminated | rows.truncated
    middle = next(i for i in range(150, 300) if not ended[i - 6 : i].any())
    question = gvf.GVF(gvf.policies.Favour(2, 0.7, actions=4), "reward", 0.9)

    def learner():
        return gvf.Learner(
            question,
            gvf.features.OneHot(16),
            gvf.updates.TD(0.1),
            gvf.corrections.EmphaticIR(),
            behaviour=gvf.policies.Uniform(4),
            window=200,
            seed=0,
        )

    one, saved, alone = learner(), learner(), learner()
    for each in (one, saved):
        each.observe(rows[:middle])
    saved.save(tmp_path / "learner")
    saved = learner().load(tmp_path / "learner")
    for start in range(middle, 300, 10):
        for each in (one, saved):
            each.observe(rows[start : start + 10])
    alone.observe(rows)
    for each in (one, saved):
        np.testing.assert_array_equal(each.buffer.inputs, alone.buffer.inputs)
        np.testing.assert_array_equal(each.weights, alone.weights)


# Overflow


@pytest.mark.parametrize("kind", [gvf.corrections.EmphaticIR, gvf.corrections.EmphaticIS])
def test_a_trace_that_overflows_says_which_question_and_what_to_do(kind, tmp_path):
    question = gvf.GVF(CHAIN.policy, "reward", 1.0, name="far ahead")
    learner = make(kind(), question, behaviour=None)
    learner.observe(with_columns(WHOLE, behaviour_probability=np.full(LAST_END, 0.5)))
    learner.save(tmp_path / "before")
    m = 300
    large = gvf.Transitions(
        state=np.zeros(m, int), action=np.ones(m, int), reward=np.zeros(m),
        next_state=np.zeros(m, int), terminated=np.zeros(m, bool),
        behaviour_probability=np.full(m, 0.075),
    )  # fmt: skip
    with pytest.raises(
        TraceOverflowError, match=r"^GVF\(.*'far ahead'\): the trace .* overflows at .* beta=0.5"
    ):
        learner.observe(large)
    learner.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()
    calm = make(kind(0.05), question, behaviour=None)
    calm.observe(large)
    assert calm.steps == m
