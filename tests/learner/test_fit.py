"""Fits: passes over a log in three orders, callbacks, interruptions, and files."""

import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream

import gvf

DATA = chain_stream(CHAIN_BEHAVIOUR, 400, seed=2)
QUESTIONS = [CHAIN, gvf.GVF(CHAIN.policy, "reward", 0.5)]


@pytest.fixture(scope="module")
def log():
    return gvf.read(DATA, quiet=True)


def make(correction=None, *, update=None, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 100, "seed": 0, **options}
    return gvf.Learner(
        CHAIN, gvf.OneHot(5), update or gvf.TD(0.1), correction or gvf.IR(), **options
    )


def online(**options):
    return gvf.OnlineLearner(
        CHAIN, gvf.OneHot(5), gvf.online.TDLambda(0.1, 0.8), behaviour=CHAIN_BEHAVIOUR
    )


def horde(correction=None, **options):
    return gvf.Horde(
        QUESTIONS, gvf.OneHot(5), gvf.TD(0.1), correction or gvf.IR(),
        behaviour=CHAIN_BEHAVIOUR, window=100, seed=0, threads=1,
    )  # fmt: skip


LEARNERS = {
    "IR": make,
    "default step size": lambda: make(update=gvf.TD()),
    "emphatic": lambda: make(gvf.EmphaticIR()),
    "n-step": lambda: make(n_step=3, every=3),
    "whole": lambda: make(gvf.WISOptimal(), every=7),
    "prioritised": lambda: make(gvf.PrioritisedIR()),
    "Sarsa": lambda: make(gvf.OnPolicy(), update=gvf.Sarsa(0.1)),
    "online": online,
    "horde": horde,
    "emphatic horde": lambda: horde(gvf.EmphaticIR()),
}
WINDOWED = [name for name in LEARNERS if name != "online" and "horde" not in name]


def bits(learner, folder):
    """The bytes of a learner's file, without what a fit remembers."""
    learner._fitted = 0
    learner.save(folder / "learner")
    return (folder / "learner").read_bytes()


@pytest.mark.parametrize("name", LEARNERS)
def test_an_epoch_in_the_order_of_the_log_is_learn(name, log, tmp_path):
    fitted, learned, batch = LEARNERS[name](), LEARNERS[name](), LEARNERS[name]()
    assert repr(fitted.fit(log, order="log")) == repr(learned.learn(log))
    batch.fit(log.transitions(), order="log")
    assert bits(fitted, tmp_path) == bits(learned, tmp_path) == bits(batch, tmp_path)


@pytest.mark.parametrize("order", ["log", "shuffled", "drawn"])
@pytest.mark.parametrize("name", WINDOWED)
def test_a_fit_that_is_stopped_saved_and_resumed_is_one_without_a_stop(name, order, log, tmp_path):
    whole = LEARNERS[name]()
    whole.fit(log, epochs=3, order=order, seed=1)
    parts = LEARNERS[name]()
    for steps in (137, 500):  # within an epoch, twice
        stop = [(steps, lambda _: True)]
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
    parts.fit(log, epochs=2, order="shuffled", seed=1, callbacks=(433, lambda _: True))
    parts.save(tmp_path / "half")
    parts = LEARNERS[name]().load(tmp_path / "half")
    parts.fit(log, epochs=2, order="shuffled", seed=1, resume=True)
    assert bits(parts, tmp_path) == bits(whole, tmp_path)
