"""Selection of a step size and a correction from a log."""

import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from test_judge import RIGHT, TRUTH, Values, chain, log_of

import gvf
from gvf.findings import Code, Finding
from gvf.judging.compare import resampled
from gvf.judging.select_learner import splits

LOG = log_of(chain(120, np.random.default_rng(20)))


def learners(sizes=(0.003, 0.1), seed=0):
    return {
        c.name: gvf.Learner(
            RIGHT, gvf.features.OneHot(10), gvf.updates.TD(list(sizes)), c, seed=seed
        )
        for c in (gvf.corrections.IR(), gvf.corrections.VTrace(1.0))
    }


def test_selection_finds_the_better_step_size_and_learns_from_the_whole_log():
    given = learners()
    found = gvf.select_learner(given, LOG)
    assert (found.name, found.lane) == ("IR, step size 0.1", 1)
    assert found.sure
    assert found.chance > 0.9
    assert found.comparison.episodes == 120  # every episode is held out once
    assert all(learner.steps == 0 for learner in given.values())
    again = learners()["IR"]
    again.fit(LOG, order="log")
    np.testing.assert_array_equal(found.predict(np.arange(10)), again.predict(np.arange(10))[:, 1])
    assert found.learner.steps == len(LOG)
    assert repr(found).startswith("selected: IR, step size 0.1 (best in ")
    assert gvf.select_learner(learners(), LOG).comparison == found.comparison


def test_one_part_is_judged_as_by_hand():
    found = gvf.select_learner(learners(), LOG, cross_validate=False, seed=3)
    rest, out = next(splits(120, 0.2, False, 3))
    by_hand = learners()
    for learner in by_hand.values():
        learner.fit(LOG.select(rest), order="log")
    assert len(out) == 24
    assert found.comparison == gvf.compare_learners(by_hand, LOG.select(out), seed=3)


def test_parts_are_disjoint_and_complete():
    parts = list(splits(23, 0.2, True, 0))
    assert len(parts) == 5
    np.testing.assert_array_equal(np.sort(np.concatenate([out for _, out in parts])), np.arange(23))
    for rest, out in parts:
        np.testing.assert_array_equal(np.sort(np.concatenate([rest, out])), np.arange(23))
    assert len(list(splits(3, 0.2, True, 0))) == 3
    assert len(list(splits(23, 0.2, False, 0))) == 1


def test_parts_of_cross_validation_widen_intervals():
    found = gvf.select_learner(learners(), LOG)
    sums, names = found.comparison._sums, found.comparison._names
    first, second = names.index("IR, step size 0.1"), names.index("IR, step size 0.003")
    narrow, wide = (
        np.std((samples := resampled(sums, 400, 0, parts))[:, first] - samples[:, second])
        for parts in (1, 5)
    )
    assert wide / narrow == pytest.approx(1.5)


def test_learners_may_learn_in_another_way():
    calls = []

    def twice(learner, log):
        calls.append(len(log.episodes))
        for _ in range(2):
            learner.fit(log, order="log")

    found = gvf.select_learner(learners(), LOG, learn=twice)
    assert found.learner.steps == 2 * len(LOG)
    assert calls == [96] * 10 + [120]


def test_a_behaviour_of_the_learners_is_used():
    columns = {**LOG.transitions().columns}
    del columns["behaviour_probability"]
    log = gvf.read_log(columns, quiet=True)
    mu = gvf.policies.Fixed([0.6, 0.4])
    made = gvf.Learner(
        RIGHT, gvf.features.OneHot(10), gvf.updates.TD([0.003, 0.1]), behaviour=mu, seed=0
    )
    assert gvf.select_learner(made, log).lane == 1
    with pytest.raises(ValueError, match="behaviour is not known"):
        gvf.select_learner(
            gvf.Learner(
                RIGHT,
                gvf.features.OneHot(10),
                gvf.updates.ExpectedSarsa(0.1),
                gvf.corrections.OnPolicy(),
            ),
            log,
        )


def test_candidates_of_several_learners_keep_names_that_differ():
    class Named(Values):
        def fit(self, log, order=None, progress=None):
            pass

    several = {"IR": learners()["IR"], "IR, step size 0.1": Named(TRUTH)}
    comparison = gvf.select_learner(several, LOG, cross_validate=False).comparison
    names = [score.name for score in comparison.scores if score.standing != "reference"]
    assert len(set(names)) == 3
    assert {"IR, step size 0.003", "IR, step size 0.1 (1)"} < set(names)


def test_own_learners_are_selected_too():
    class Mean(Values):
        def fit(self, log, order=None, progress=None):
            pass

    found = gvf.select_learner({"a": Mean(TRUTH), "b": Mean(0.3 * TRUTH)}, LOG)
    assert found.name == "a"
    assert found.lane is None
    np.testing.assert_array_equal(found.predict([3, 4]), TRUTH[[3, 4]])


def test_what_cannot_be_selected_from_is_refused():
    learned = learners()
    learned["IR"].fit(LOG, order="log")
    with pytest.raises(ValueError, match=r"learner 'IR' has learned from \d+ steps already"):
        gvf.select_learner(learned, LOG)
    with pytest.raises(ValueError, match="one episode cannot be split"):
        gvf.select_learner(learners(), LOG.select([0]))
    with pytest.raises(TypeError, match=r"log must be a gvf\.Log, which gvf\.read_log makes"):
        gvf.select_learner(learners(), LOG.transitions())  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"held_out must be above 0 and at most 0\.5"):
        gvf.select_learner(learners(), LOG, held_out=0.7)
    one = learners()["IR"]
    with pytest.raises(ValueError, match="the same learner is given twice"):
        gvf.select_learner([one, one], LOG)


def test_progress_can_be_shown(capsys):
    gvf.select_learner(learners(), LOG, progress=True)
    lines = capsys.readouterr().err
    assert "learners: 10 of 10" in lines
    assert "learning from all: 1 of 1" in lines


@pytest.mark.parametrize("workers", [3, None])
def test_the_number_of_workers_changes_nothing(workers):
    before = gvf.select_learner(learners(), LOG)
    again = gvf.select_learner(learners(), LOG, workers=workers)
    assert again.comparison == before.comparison
    assert again.name == before.name
    states = np.arange(10)
    np.testing.assert_array_equal(again.predict(states), before.predict(states))


def test_a_ray_cluster_changes_nothing():
    ray = pytest.importorskip("ray")
    before = gvf.select_learner(learners(), LOG, cross_validate=False)
    try:
        place = gvf.jobs.RayCluster(workers=1)
        again = gvf.select_learner(learners(), LOG, cross_validate=False, workers=place)
    finally:
        ray.shutdown()
    assert again.comparison == before.comparison
    states = np.arange(10)
    np.testing.assert_array_equal(again.predict(states), before.predict(states))


def test_a_learner_that_fails_is_named():
    def fail(learner, log):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken") as caught:
        gvf.select_learner(learners(), LOG, learn=fail)
    assert caught.value.__notes__ == ["in job IR, part 1 held out"]


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_an_interrupt_ends_a_selection_whatever_it_learns_by():
    def learn(learner, log):
        threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        learner.fit(log, epochs=100_000, progress=False)

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        gvf.select_learner(learners(), LOG, learn=learn)
    assert time.monotonic() - start < 5.0
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("gvf-worker")]


def test_the_winner_has_the_step_size_that_won_and_may_learn_in_passes():
    found = gvf.select_learner(learners(), LOG, epochs=3)
    assert found.lane == 1
    assert found.learner.update == gvf.updates.TD(0.1)
    alone = gvf.Learner(
        RIGHT, gvf.features.OneHot(10), gvf.updates.TD(0.1), found.learner.correction, seed=0
    )
    alone.fit(LOG, epochs=3)
    np.testing.assert_array_equal(
        found.learner.predict(np.arange(10)), alone.predict(np.arange(10))
    )
    np.testing.assert_array_equal(found.predict(np.arange(10)), alone.predict(np.arange(10)))
    with pytest.raises(ValueError, match="epochs, or learn"):
        gvf.select_learner(
            learners(), LOG, epochs=3, learn=lambda one, log: one.fit(log, order="log")
        )
    with pytest.raises(ValueError, match="epochs"):
        gvf.select_learner(learners(), LOG, epochs=0)


def test_a_selection_with_doubts_is_not_sure():
    found = gvf.select_learner(learners(), LOG)
    assert found.sure
    doubtful = replace(
        found.comparison, findings=(Finding(Code.UNEVEN_EPISODES, "stops", {"k_hat": 0.9}),)
    )
    assert not replace(found, comparison=doubtful).sure


def test_a_selection_takes_the_smaller_step_of_a_tie():
    log = log_of(chain(12, np.random.default_rng(6)))
    learner = gvf.Learner(RIGHT, gvf.features.OneHot(10), gvf.updates.TD([0.4, 0.2, 0.1]), seed=6)
    found = gvf.select_learner(learner, log, epochs=3)
    assert found.comparison.best.lane == 0
    assert found.best == found.comparison.scores[[s.lane for s in found.comparison.scores].index(2)]
    assert found.learner.update.step_size == 0.1
    assert found.name == "TD, IR, step size 0.1"
    assert found.lane == 2
    assert not found.sure
    alone = gvf.Learner(
        RIGHT, gvf.features.OneHot(10), gvf.updates.TD([0.4, 0.2, 0.1]), seed=6
    ).lane(2)
    alone.fit(log, epochs=3, progress=False)
    np.testing.assert_array_equal(found.predict([3, 4]), alone.predict([3, 4]))
