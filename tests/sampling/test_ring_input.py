"""RatioRing names bad input, and is unchanged by it."""

import math

import numpy as np
import pytest
from rings import filled, unchanged

from gvf import RatioRing

BAD_RATIOS = [-1.0, -1e-300, math.nan, math.inf, -math.inf, 1e300]
NOT_GENERATORS = [np.random.RandomState(0), 3, "seed", np.random.PCG64(0), np.random]


@pytest.mark.parametrize("bad", BAD_RATIOS)
@pytest.mark.parametrize("laps", [0.0, 0.5, 1.5])
def test_a_bad_ratio_is_named_and_nothing_changes(bad, laps):
    ring, _ = filled(10, np.random.default_rng(0).random(int(10 * laps)))
    value = str(bad).replace("+", r"\+")
    with unchanged(ring), pytest.raises(ValueError, match=f"got {value}"):
        ring.append(bad)
    with unchanged(ring), pytest.raises(ValueError, match=f"got {value}"):
        ring.append_and_sample(bad, 3)
    for position in (0, 3, 24):
        ratios = np.full(25, 0.3)
        ratios[position] = bad
        with (
            unchanged(ring),
            pytest.raises(ValueError, match=f"got {value} at position {position}$"),
        ):
            ring.extend(ratios)


@pytest.mark.parametrize("bad", BAD_RATIOS)
def test_with_questions_a_bad_ratio_s_row_and_question_are_named(bad):
    ring = RatioRing(4, questions=3)
    ring.extend(np.full((6, 3), 0.3))
    value = str(bad).replace("+", r"\+")
    for row, question in [(0, 0), (0, 2), (4, 1), (5, 2)]:
        ratios = np.full((6, 3), 0.3)
        ratios[row, question] = bad
        ratios[5, 2] = bad  # the first one is named
        with (
            unchanged(ring),
            pytest.raises(ValueError, match=rf"got {value} at position {row}, {question}$"),
        ):
            ring.extend(ratios)
    with unchanged(ring), pytest.raises(ValueError, match=rf"got {value} at position 0, 1$"):
        ring.append([0.3, bad, 0.3])


@pytest.mark.parametrize("ratios", [1.0, [[1.0]], np.ones((2, 3)), np.ones((1, 1, 1))])
def test_ratios_of_the_wrong_shape_are_refused(ratios):
    ring, _ = filled(4, [0.5])
    with unchanged(ring), pytest.raises(ValueError, match=r"shape \[m\], got \("):
        ring.extend(ratios)


@pytest.mark.parametrize("ratios", [1.0, [1.0, 2.0, 3.0], np.ones((2, 2)), np.ones((3, 1))])
def test_with_questions_ratios_of_the_wrong_shape_are_refused(ratios):
    ring = RatioRing(4, questions=3)
    ring.append([0.5, 0.5, 0.5])
    with unchanged(ring), pytest.raises(ValueError, match=r"shape \[m, 3\], got \("):
        ring.extend(ratios)
    with unchanged(ring), pytest.raises(ValueError, match=r"shape"):
        ring.append([1.0, 2.0])


@pytest.mark.parametrize("questions", [None, 2])
@pytest.mark.parametrize("k", [0, -1, -16])
def test_k_below_1_is_named(k, questions):
    ring, rng = RatioRing(4, questions=questions), np.random.default_rng(0)
    ring.append(1.0 if questions is None else [1.0, 1.0])
    with unchanged(ring, rng), pytest.raises(ValueError, match=f"k must be at least 1, got {k}"):
        ring.sample(k, rng=rng)
    with unchanged(ring), pytest.raises(ValueError, match=f"k must be at least 1, got {k}"):
        ring.sample(k)
    if questions is None:
        with unchanged(ring), pytest.raises(ValueError, match=f"got {k}"):
            ring.append_and_sample(1.0, k)


@pytest.mark.parametrize("k", [2.5, "3", None])
def test_k_that_is_no_whole_number_is_a_type_error(k):
    ring, _ = filled(4, [1.0])
    rng = np.random.default_rng(0)
    with unchanged(ring, rng), pytest.raises(TypeError):
        ring.sample(k, rng=rng)
    with unchanged(ring), pytest.raises(TypeError):
        ring.append_and_sample(1.0, k)


@pytest.mark.parametrize("questions", [None, 2])
@pytest.mark.parametrize("threads", [0, -2, 2.5])
def test_threads_must_be_a_whole_number_of_at_least_1(threads, questions):
    ring, rng = RatioRing(4, questions=questions), np.random.default_rng(0)
    ring.append(1.0 if questions is None else [1.0, 1.0])
    for source in (rng, None):
        with unchanged(ring, source), pytest.raises((ValueError, TypeError)):
            ring.sample(3, rng=source, threads=threads)


@pytest.mark.parametrize("questions", [None, 2])
@pytest.mark.parametrize("rng", NOT_GENERATORS)
def test_an_rng_that_is_no_generator_is_named(rng, questions):
    ring = RatioRing(4, questions=questions)
    ring.append(1.0 if questions is None else [1.0, 1.0])
    with unchanged(ring), pytest.raises(TypeError, match=r"a numpy\.random\.Generator, got"):
        ring.sample(3, rng=rng)


@pytest.mark.parametrize("capacity", [0, -1])
def test_a_capacity_or_a_number_of_questions_below_1_is_named(capacity):
    with pytest.raises(ValueError, match=f"capacity must be at least 1, got {capacity}"):
        RatioRing(capacity)
    with pytest.raises(ValueError, match=f"questions must .* at least 1, got {capacity}"):
        RatioRing(3, questions=capacity)


@pytest.mark.parametrize("questions", [None, 2])
@pytest.mark.parametrize("stratified", [False, True])
def test_drawing_from_an_empty_window_says_so(stratified, questions):
    ring, rng = RatioRing(3, questions=questions), np.random.default_rng(0)
    for source in (rng, None):
        with unchanged(ring, source), pytest.raises(ValueError, match="empty window"):
            ring.sample(2, rng=source, stratified=stratified)


def test_drawing_from_a_window_with_no_mass_says_so():
    ring, rng = RatioRing(3, seed=0), np.random.default_rng(0)
    for ratios, filled_slots in [([0.0], 1), ([0.0, 0.0], 3), ([1.0, 2.0, 0.0, 0.0, 0.0], 3)]:
        ring.extend(ratios)
        for source in (rng, None):
            message = f"all {filled_slots} ratios in the window are 0"
            with unchanged(ring, source), pytest.raises(ValueError, match=message):
                ring.sample(2, rng=source)
    ring.append(1e-9)
    assert ring.sample(2).tolist() == [2, 2]


def test_with_questions_the_one_with_no_mass_is_named():
    ring, rng = RatioRing(2, questions=4), np.random.default_rng(0)
    ring.extend([[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    for source in (rng, None):
        with (
            unchanged(ring, source),
            pytest.raises(ValueError, match=r"are 0 for 2 of 4 questions.* question 1\."),
        ):
            ring.sample(2, rng=source)


def test_append_and_sample_that_would_leave_no_mass_inserts_nothing():
    ring = RatioRing(3)
    with unchanged(ring), pytest.raises(ValueError, match="empty window"):
        ring.append_and_sample(0.0, 2)
    ring.extend([1.0, 0.0, 0.0])
    with unchanged(ring), pytest.raises(ValueError, match="would leave"):
        ring.append_and_sample(0.0, 2)
    assert ring.append_and_sample(0.5, 2)[1].tolist() == [0, 0]
    assert ring.append_and_sample(0.0, 2)[1].tolist() == [0, 0]


def test_append_and_sample_is_for_one_question():
    ring = RatioRing(3, questions=2)
    with unchanged(ring), pytest.raises(ValueError, match="use append and sample"):
        ring.append_and_sample([1.0, 1.0], 2)


@pytest.mark.parametrize("other", [RatioRing(4), RatioRing(3, questions=2)])
def test_a_checkpoint_of_another_ring_is_refused(other):
    ring, _ = filled(3, [1.0, 2.0])
    with unchanged(ring), pytest.raises(ValueError, match=r"this ring of 1 and 3$"):
        ring.restore(other.checkpoint())


def test_a_checkpoint_with_a_part_missing_is_refused():
    ring, _ = filled(3, [1.0, 2.0])
    for name in ring.checkpoint():
        arrays = filled(3, [3.0])[0].checkpoint()
        del arrays[name]
        with unchanged(ring), pytest.raises((KeyError, ValueError)):
            ring.restore(arrays)
