"""Calls that fail, or bring nothing, leave a learner as it was."""

from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream

import gvf

DATA = chain_stream(CHAIN_BEHAVIOUR, 60, seed=2)


def make(update=None, correction=None, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 30, "seed": 0, **options}
    return gvf.Learner(
        CHAIN, gvf.OneHot(5), update or gvf.TD(0.5), correction or gvf.IR(), **options
    )


def test_an_empty_batch_changes_nothing():
    for update in (gvf.TD(), gvf.TD(0.5)):
        learner = make(update)
        learner.observe_many(DATA[:0])
        assert learner.steps == 0
        learner.observe_many(DATA)
        before = learner.report()
        learner.observe_many(DATA[:0])
        assert learner.report() == before
