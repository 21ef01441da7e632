"""Calls that fail, or bring nothing, leave a learner as it was."""

from dataclasses import dataclass

import pytest
from five_states import CHAIN, CHAIN_BEHAVIOUR, chain_stream
from own_corrections import Prioritised

import gvf
from gvf.learner.loop import refreshing

DATA = chain_stream(CHAIN_BEHAVIOUR, 60, seed=2)


@dataclass(frozen=True)
class Contrary(Prioritised):
    """A correction that refreshes masses, and draws uniformly."""

    power: float = 0.7
    mass = None


def make(update=None, correction=None, question=CHAIN, **options):
    options = {"behaviour": CHAIN_BEHAVIOUR, "window": 30, "seed": 0, **options}
    return gvf.Learner(
        question, gvf.OneHot(5), update or gvf.TD(0.5), correction or gvf.IR(), **options
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


@pytest.mark.parametrize("arguments", [(gvf.TD([0.1, 0.2]), Prioritised(0.7)), (None, Contrary())])
def test_a_learner_that_was_never_made_does_not_take_the_window(arguments):
    window = gvf.Window(30)
    with pytest.raises(ValueError, match="masses"):
        make(*arguments, window=window)
    make(window=window)


def test_no_name_makes_two_questions_the_same(tmp_path):
    def named(cumulant):
        return make(question=gvf.GVF(CHAIN.policy, cumulant, 0.9))

    named("what cannot be compared").save(tmp_path / "learner")
    with pytest.raises(ValueError, match=r"here 'reward'$"):
        named("reward").load(tmp_path / "learner", same_functions=True)


def test_a_kernel_that_refreshes_masses_is_compiled_once_for_all_learners():
    assert refreshing(Prioritised(0.7), dense=False) == refreshing(Prioritised(0.5), dense=False)
    assert refreshing(Prioritised(0.7), dense=False) != refreshing(Prioritised(0.7), dense=True)
