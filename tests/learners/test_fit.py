"""Fits: passes over a log in three orders, callbacks, interruptions, and files."""

import os
import signal
from dataclasses import dataclass

import numpy as np
import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, Chain, chain_stream
from oracles import p_value

import gvf
from gvf import online as algorithms
from gvf.learners import batches, training
from gvf.learners import update_loop as loop
from gvf.learners.batches import Passes, as_log
from gvf.links import episode_starts

DATA = chain_stream(CHAIN_BEHAVIOUR, 400, seed=2)
QUESTIONS = [CHAIN, gvf.GVF(CHAIN.policy, "reward", 0.5)]


@pytest.fixture(scope="module")
def log():
    return gvf.read_log(DATA, quiet=True)


def make(correction=None, *, update=None, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 100, "seed": 0, **options}
    return gvf.Learner(
        CHAIN,
        gvf.features.OneHot(5),
        update or gvf.updates.TD(0.1),
        correction or gvf.corrections.IR(),
        **options,
    )


def online(**options):
    return gvf.OnlineLearner(
        CHAIN, gvf.features.OneHot(5), algorithms.TDLambda(0.1, 0.8), behaviour=CHAIN_BEHAVIOUR
    )


def horde(correction=None, **options):
    return gvf.Horde(
        QUESTIONS, gvf.features.OneHot(5), gvf.updates.TD(0.1), correction or gvf.corrections.IR(),
        behaviour=CHAIN_BEHAVIOUR, window=100, seed=0, threads=1,
    )  # fmt: skip


LEARNERS = {
    "IR": make,
    "default step size": lambda: make(update=gvf.updates.TD()),
    "emphatic": lambda: make(gvf.corrections.EmphaticIR()),
    "n-step": lambda: make(n_step=3, update_every=3),
    "whole": lambda: make(gvf.corrections.WISOptimal(), update_every=7),
    "prioritised": lambda: make(gvf.corrections.PrioritisedIR()),
    "Sarsa": lambda: make(gvf.corrections.OnPolicy(), update=gvf.updates.Sarsa(0.1)),
    "online": online,
    "horde": horde,
    "emphatic horde": lambda: horde(gvf.corrections.EmphaticIR()),
}
WINDOWED = [name for name in LEARNERS if name != "online" and "horde" not in name]


def bits(learner, folder):
    """The bytes of a learner's file, without what a fit remembers."""
    learner.fitted = 0
    learner.save(folder / "learner")
    return (folder / "learner").read_bytes()


@pytest.mark.parametrize("name", LEARNERS)
def test_an_epoch_in_the_order_of_the_log_is_learn(name, log, tmp_path):
    fitted, learned, batch = LEARNERS[name](), LEARNERS[name](), LEARNERS[name]()
    assert repr(fitted.fit(log, order="log")) == repr(learned.learn(iter(log)))
    batch.fit(log.transitions(), order="log")
    assert bits(fitted, tmp_path) == bits(learned, tmp_path) == bits(batch, tmp_path)


@pytest.mark.parametrize("order", ["log", "shuffled", "drawn"])
@pytest.mark.parametrize("name", WINDOWED)
def test_a_fit_that_is_stopped_saved_and_resumed_is_one_without_a_stop(name, order, log, tmp_path):
    whole = LEARNERS[name]()
    whole.fit(log, epochs=3, order=order, seed=1)
    parts = LEARNERS[name]()
    for steps in (137, 500):  # within an epoch, twice
        stop = [gvf.Callback(lambda _: True, every_steps=steps)]
        parts.fit(log, epochs=3, order=order, seed=1, resume=True, callbacks=stop)
        parts.save(tmp_path / "half")
        parts = gvf.load(tmp_path / "half")
    parts.fit(log, epochs=2, order=order, seed=1, resume=True)
    assert parts.fit(log, epochs=3, order=order, seed=1, resume=True) == whole.report()
    assert bits(parts, tmp_path) == bits(whole, tmp_path)


@pytest.mark.parametrize("name", ["online", "horde", "emphatic horde"])
def test_other_learners_resume_too(name, log, tmp_path):
    whole, parts = LEARNERS[name](), LEARNERS[name]()
    whole.fit(log, epochs=2, order="shuffled", seed=1)
    parts.fit(
        log,
        epochs=2,
        order="shuffled",
        seed=1,
        callbacks=gvf.Callback(lambda _: True, every_steps=433),
    )
    parts.save(tmp_path / "half")
    parts = LEARNERS[name]().load(tmp_path / "half")
    parts.fit(log, epochs=2, order="shuffled", seed=1, resume=True)
    assert bits(parts, tmp_path) == bits(whole, tmp_path)


def test_a_log_that_is_read_from_its_file_gives_the_same_bits(log, tmp_path):
    log.to_parquet(tmp_path / "log.parquet")
    streamed = gvf.read_log(tmp_path / "log.parquet", in_memory=False, quiet=True)
    for name in ("IR", "n-step", "online", "emphatic horde"):
        there, here = LEARNERS[name](), LEARNERS[name]()
        stop = gvf.Callback(lambda _: True, every_steps=500)  # and go on in the middle of the file
        there.fit(streamed, epochs=2, callbacks=stop)
        there.fit(streamed, epochs=2, resume=True)
        here.fit(log, epochs=2, order="log")
        assert bits(there, tmp_path) == bits(here, tmp_path)
    drawn, straight = make(), make()
    drawn.fit(streamed, epochs=2, order="drawn")
    straight.fit(log, epochs=2, order="drawn")
    assert bits(drawn, tmp_path) == bits(straight, tmp_path)


def numbered(count, **more):
    rows = np.arange(count)
    return gvf.Transitions(
        state=rows, action=rows % 2, reward=np.ones(count), next_state=rows,
        terminated=rows % 7 == 6, **more,
    )  # fmt: skip


def test_a_shuffled_pass_has_each_row_once_in_an_order_that_its_seed_decides():
    log = as_log(numbered(5000))

    def passed(number, seed, skip=0):
        passes = Passes(log, "shuffled", episodes=False, seed=seed)
        return np.concatenate([batch.state for batch in passes.rows(number, skip)])

    order = passed(0, 3)
    np.testing.assert_array_equal(np.sort(order), np.arange(5000))
    np.testing.assert_array_equal(order, passed(0, 3))
    np.testing.assert_array_equal(order[1234:], passed(0, 3, skip=1234))
    assert all((order != other).any() for other in (passed(1, 3), passed(0, 4)))
    # A row of the first half is as likely in the first half of the order as in the second.
    early = [np.sum(passed(number, 5)[:2500] < 2500) for number in range(200)]
    assert abs(np.mean(early) - 1250) < 5 * 2500 / np.sqrt(4 * 5000 * 200)


def test_shuffled_episodes_keep_their_rows_in_order():
    data = numbered(700)
    passes = Passes(as_log(data), "shuffled", episodes=True, seed=0)
    order = np.concatenate([batch.state for batch in passes.rows(0, 0)]).reshape(100, 7)
    assert (np.diff(order, axis=1) == 1).all()
    np.testing.assert_array_equal(np.sort(order[:, 0]), np.arange(0, 700, 7))
    assert (np.diff(order[:, 0]) < 0).any()
    assert episode_starts(numbered(20, truncated=np.arange(20) == 3)).tolist() == [0, 4, 7, 14]
    assert episode_starts(numbered(9, episode=np.arange(9) // 4)).tolist() == [0, 4, 7, 8]
    with pytest.raises(ValueError, match=r"have streams and no column 'episode'.*gvf.read_log"):
        episode_starts(numbered(9, stream=np.arange(9) % 2))


def test_rows_are_shuffled_alone_only_if_nothing_is_carried(log):
    for name in LEARNERS:
        learner = LEARNERS[name]()
        carries = name in ("n-step", "emphatic", "emphatic horde", "online")
        assert learner.keeps_order is carries
        learner.fit(log, order="shuffled", seed=1)
        assert learner.steps == len(log)


@pytest.mark.parametrize("name", ["emphatic", "n-step", "online", "emphatic horde"])
def test_every_epoch_begins_anew(name):
    ends = np.flatnonzero(DATA.next_state[:-1] == DATA.state[0])
    piece = DATA[: ends[~DATA.terminated[ends]][-1] + 1]  # its first row could follow its last
    cut = gvf.Transitions(**piece.columns, truncated=np.arange(len(piece)) == len(piece) - 1)
    open_end, closed = LEARNERS[name](), LEARNERS[name]()
    open_end.fit(piece, epochs=3, order="log")
    closed.fit(cut, epochs=3, order="log")
    np.testing.assert_array_equal(
        open_end.predict(np.arange(5)), closed.predict(np.arange(5)), strict=True
    )
    joined = LEARNERS[name]()
    joined.observe(gvf.Transitions.concatenate([piece] * 3))
    assert (joined.predict(np.arange(5)) != closed.predict(np.arange(5))).any()


BANDIT = gvf.GVF(gvf.policies.Uniform(2), "reward", 0.0)


def counted(data, **options):
    """How often each row is drawn: with a tiny step size the weights count it."""
    learner = gvf.Learner(
        BANDIT,
        gvf.features.OneHot(len(data)),
        gvf.updates.IncrementalTD(1e-9),
        gvf.corrections.IR(),
        window=10,
        **options,
    )
    learner.fit(data, order="drawn")
    counts = learner.weights / 1e-9
    assert np.abs(counts - counts.round()).max() < 0.1
    return counts.round().astype(np.int64)


def test_drawn_updates_have_the_law_of_the_whole_log_from_the_first_on():
    probability = np.random.default_rng(0).uniform(0.1, 0.9, 60)
    data = numbered(60, behaviour_probability=probability)
    each = [counted(data, update_every=60, batch_size=64, seed=seed) for seed in range(100)]
    first = np.sum(each, axis=0)
    assert first.sum() == 64 * 100  # one update of 64 rows for each learner
    assert p_value(first, 0.5 / probability) > 1e-4
    late = counted(data, batch_size=200, seed=0)
    assert late.sum() == 60 * 200
    assert p_value(late, 0.5 / probability) > 1e-4


def one_by_one(learner):
    """Let a learner repeat updates in Python."""

    def repeat(buffer, schedule, times):
        for _ in range(times):
            loop.learn_once(learner.values, buffer, schedule)

    learner.values.repeat = repeat
    return learner


@pytest.mark.parametrize("name", WINDOWED)
def test_compiled_drawn_updates_are_those_of_the_loop_in_python(name, log, tmp_path):
    compiled, python = LEARNERS[name](), one_by_one(LEARNERS[name]())
    assert compiled.fit(log, order="drawn") == python.fit(log, order="drawn")
    del python.values.repeat
    assert bits(compiled, tmp_path) == bits(python, tmp_path)
    assert compiled.updates == len(log) // compiled.schedule.update_every
    assert compiled.steps == compiled.window.capacity == len(compiled.window) == len(log)


def test_a_drawn_fit_has_as_many_updates_as_the_rows_would_bring(log):
    learner = make(update_every=7, warm_up=50)
    report = learner.fit(log, epochs=3)
    assert (report.steps, report.updates, report.window) == (400, 3 * 400 // 7, 400)
    learner.observe(DATA[:13])  # goes on, with the log as its window
    assert (learner.steps, learner.updates, len(learner.window)) == (413, 3 * 400 // 7 + 1, 400)
    again = learner.fit(DATA[:30], epochs=2)  # another log takes its place
    assert (again.window, learner.updates) == (30, 3 * 400 // 7 + 1 + 60 // 7)


def test_the_window_has_all_rows_of_the_log_and_no_others():
    piece = DATA[: np.flatnonzero(~DATA.terminated)[-1] + 1]  # the last rows wait for more steps
    used, new = make(n_step=3), make(n_step=3)
    used.observe(DATA[: np.flatnonzero(~DATA.terminated)[5] + 1])
    assert len(used.n_steps)
    for learner in (used, new):
        learner.fit(piece)
        assert len(learner.window) == len(piece)
        assert not len(learner.n_steps)
    for name, column in new.window.columns.items():
        np.testing.assert_array_equal(used.window.columns[name], column)


def test_rows_with_a_nan_are_left_out_of_the_window():
    columns = {name: column.copy() for name, column in DATA.columns.items()}
    columns["reward"][[0, 7, 399]] = np.nan
    report = make(on_nan="skip").fit(gvf.Transitions(**columns))
    assert (report.window, report.steps, report.missing, report.updates) == (397, 397, 3, 400)


def test_the_default_is_drawn_if_the_log_can_be_the_window(log, tmp_path, monkeypatch):
    log.to_parquet(tmp_path / "log.parquet")
    streamed = gvf.read_log(tmp_path / "log.parquet", in_memory=False, quiet=True)
    assert make().fit(log).window == 400
    assert make().fit(streamed).window == 100
    assert horde().fit(log).window == online().fit(log).steps - 300 == 100
    monkeypatch.setattr(training, "LARGEST_WINDOW", 400 * 56 - 1)
    assert make().fit(log).window == 100
    monkeypatch.setattr(training, "LARGEST_WINDOW", 400 * 56)
    assert make().fit(log).window == 400


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"order": "random"}, ValueError, "order"),
        ({"epochs": 0}, ValueError, "epochs must be"),
        ({"order": "shuffled", "resume": True}, ValueError, "give the seed of the first call"),
        ({"callbacks": 3}, TypeError, "callbacks must be gvf.Callback"),
        ({"callbacks": [3]}, TypeError, "callbacks must be gvf.Callback"),
        ({"callbacks": (10, print)}, TypeError, "callbacks must be gvf.Callback"),
        ({"log": [1, 2]}, TypeError, "fit takes a log, got .*gvf.read_log makes one"),
        ({"log": DATA[:0]}, ValueError, "the log has no transitions"),
        ({"log": iter([DATA])}, TypeError, r"fit takes a log, .* from a stream, learn\(...\)"),
        ({"log": Chain()}, TypeError, r"fit takes a log, .* from an environment, learn\(...\)"),
    ],
)
def test_wrong_arguments_are_refused_in_a_line_and_change_nothing(
    arguments, error, message, log, tmp_path
):
    learner = make()
    learner.fit(log)
    before = bits(learner, tmp_path)
    with pytest.raises(error, match=message):
        learner.fit(**{"log": log, **arguments})
    assert bits(learner, tmp_path) == before


def test_orders_that_a_learner_or_a_log_does_not_allow(log, tmp_path):
    log.to_parquet(tmp_path / "log.parquet")
    streamed = gvf.read_log(tmp_path / "log.parquet", in_memory=False, quiet=True)
    with pytest.raises(ValueError, match='order="shuffled" needs the log in memory'):
        make().fit(streamed, order="shuffled")
    for learner in (online(), horde()):
        with pytest.raises(ValueError, match='order="drawn" is not for it; take order="log"'):
            learner.fit(log, order="drawn")


def test_a_row_that_is_refused_is_named_and_rows_before_it_stay(tmp_path):
    columns = {name: column.copy() for name, column in DATA.columns.items()}
    columns["action"] = columns["action"].astype(float)
    columns["action"][303] = np.nan
    learner, straight = make(), make()
    with pytest.raises(ValueError, match="nan") as refused:
        learner.fit(
            gvf.Transitions(**columns),
            order="log",
            callbacks=gvf.Callback(lambda _: None, every_steps=100),
        )
    assert refused.value.__notes__ == ["Positions count from transition 300 of the log."]
    learner.fit(DATA, order="log", resume=True)  # the log was repaired
    straight.fit(DATA, order="log")
    assert bits(learner, tmp_path) == bits(straight, tmp_path)


@dataclass
class Watch:
    """A callback that asks for everything, and remembers when it was called."""

    stop: int = -1

    def __post_init__(self):
        self.steps = []

    def __call__(self, learner):
        learner.report()
        learner.predict(np.arange(5))
        self.steps.append(learner.steps)
        return np.bool_(learner.steps == self.stop)


class Counted(Chain):
    resets = 0

    def reset(self, **options):
        self.resets += 1
        return super().reset(**options)


@pytest.mark.parametrize("name", LEARNERS)
def test_callbacks_change_no_bit_and_reset_nothing(name, tmp_path):
    watched, alone, watch, other = LEARNERS[name](), LEARNERS[name](), Watch(), Watch()
    envs = Counted(), Counted()
    calls = [gvf.Callback(watch, every_steps=70), gvf.Callback(other, every_steps=100)]
    report = watched.learn(envs[0], steps=250, seed=1, callbacks=calls)
    assert repr(report) == repr(alone.learn(envs[1], steps=250, seed=1))
    assert bits(watched, tmp_path) == bits(alone, tmp_path)
    assert (watch.steps, other.steps) == ([70, 140, 210], [100, 200])
    assert envs[0].resets == envs[1].resets


def test_a_callback_of_a_fit_counts_over_all_epochs(log):
    learner, watch = make(), Watch()
    learner.fit(log, epochs=2, order="log", callbacks=[gvf.Callback(watch, every_steps=300)])
    assert watch.steps == [300, 600]
    updates = []
    made = make(update_every=2)
    count = gvf.Callback(lambda learner: updates.append(learner.updates), every_steps=300)
    made.fit(log, epochs=2, callbacks=count)
    assert updates == [150, 300]


def test_learning_stops_after_the_batch_if_a_callback_says_so():
    learner, watch = make(), Watch(stop=40)
    learner.learn(Chain(), steps=1000, seed=0, callbacks=gvf.Callback(watch, every_steps=20))
    assert (learner.steps, watch.steps) == (64, [20, 40])  # the behaviour acts for 64 steps


def failing(learner):
    raise RuntimeError("the disk is full")


def pressing(learner):
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("order", ["log", "shuffled", "drawn"])
@pytest.mark.parametrize(
    ("press", "error"), [(failing, RuntimeError), (pressing, KeyboardInterrupt)]
)
def test_an_error_in_a_callback_and_ctrl_c_lose_nothing(press, error, order, log, tmp_path):
    parts, whole = make(), make()
    with pytest.raises(error):
        parts.fit(
            log,
            epochs=2,
            order=order,
            seed=1,
            callbacks=gvf.Callback(press, every_steps=523),
            progress=True,
        )
    parts.fit(log, epochs=2, order=order, seed=1, resume=True)
    whole.fit(log, epochs=2, order=order, seed=1)
    assert bits(parts, tmp_path) == bits(whole, tmp_path)
    with pytest.raises(error):
        parts.learn(iter(log), callbacks=gvf.Callback(press, every_steps=250))
    assert parts.steps == whole.steps + (250 if error is RuntimeError else 400)


def test_ctrl_c_while_the_window_is_filled_loses_nothing(log, tmp_path, monkeypatch):
    monkeypatch.setattr(batches, "LONGEST_BATCH", 64)
    parts, whole, take_in = make(n_step=2), make(n_step=2), gvf.Learner.observe_batch

    def interrupted(learner, *arguments):
        take_in(learner, *arguments)
        pressing(learner)

    monkeypatch.setattr(gvf.Learner, "observe_batch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        parts.fit(log)
    assert parts.steps == 64
    monkeypatch.setattr(gvf.Learner, "observe_batch", take_in)
    parts.fit(log, resume=True)
    whole.fit(log)
    assert bits(parts, tmp_path) == bits(whole, tmp_path)


def test_a_learner_that_was_fitted_is_loaded_into_one_with_the_same_arguments(log, tmp_path):
    fitted, other = make(), make()
    fitted.fit(log)
    fitted.save(tmp_path / "fitted")
    assert other.load(tmp_path / "fitted").window.capacity == 400
    assert "window=400" in repr(other)
    assert bits(other, tmp_path) == bits(fitted, tmp_path)
    smaller = make()
    smaller.observe(DATA[:5])
    smaller.save(tmp_path / "small")
    assert other.load(tmp_path / "small").window.capacity == 100
