"""The compiled loop against the plain loops, the released digits and the bits of its slices."""

from itertools import pairwise
from typing import Any

import charts_reference as reference
import numpy as np
import pytest
from charts_reference import Floats, Step
from online_streams import CASES, SIZE, Oracle, random_stream, steps_from

from gvf import online
from gvf.online.online_loop import Measure, Steps, run, start_streams, steps_of


def learned(algorithm: online.Algorithm, steps: Steps, size: int = SIZE) -> Floats:
    """Return the weights after all steps of one stream."""
    state = algorithm.start(size)
    run(algorithm, state, start_streams(algorithm, state, 1), steps)
    return algorithm.weights(state)


def expected(oracles: list[Oracle], stream: list[Step]) -> Floats:
    return np.array([list(oracle(stream))[-1] for oracle in oracles]).T


@pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])
@pytest.mark.parametrize("name", CASES)
def test_every_algorithm_equals_its_plain_loop(name: str, dense: bool) -> None:
    algorithm, oracles = CASES[name]
    for seed in range(3):
        stream = random_stream(seed, dense=dense)
        want = expected(oracles, stream)
        assert np.abs(want).max() < 100, "the comparison is absolute"
        np.testing.assert_allclose(
            learned(algorithm, steps_from(stream, dense)), want, rtol=0, atol=1e-12
        )


def test_active_indices_and_dense_features_give_the_same_weights() -> None:
    stream = random_stream(5)
    for algorithm, _ in CASES.values():
        one, other = (learned(algorithm, steps_from(stream, dense)) for dense in (False, True))
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)


def released(run_number: int) -> Measure:
    x = reference.collision_features(run_number)
    return Measure.of_states(x, reference.COLLISION_VALUES, reference.RELEASED_SHARES)


@pytest.mark.parametrize(
    ("algorithm", "last", "mean"),
    [
        (online.TDLambda(2.0**-9, 0.9), 0.083194728410, 0.131298683212),
        (online.TDRCLambda(2.0**-4), 0.546696321945, 0.550121707237),
    ],
    ids=["TD(.9)", "TDRC(0)"],
)
def test_released_digits(algorithm: online.Algorithm, last: float, mean: float) -> None:
    steps = steps_from(reference.collision_stream(0), dense=True)
    state = algorithm.start(6)
    errors = run(algorithm, state, start_streams(algorithm, state, 1), steps, released(0))
    assert errors.shape == (20_000, 1)
    assert errors[-1, 0] == pytest.approx(last, abs=1e-10)
    assert errors.mean() == pytest.approx(mean, abs=1e-10)


COLLISION = steps_from(reference.collision_stream(3, 3000), dense=True)


def test_without_traces_four_algorithms_are_one() -> None:
    for steps in (COLLISION, steps_from(random_stream(1, dense=True), dense=True)):
        size = steps.x.shape[1]
        td = learned(online.TDLambda(0.05), steps, size)
        for other in (online.TreeBackup(0.05), online.VTraceLambda(0.05), online.ABTD(0.05)):
            np.testing.assert_allclose(learned(other, steps, size), td, rtol=0, atol=1e-12)


def test_emphatic_td_is_td_at_lambda_1() -> None:
    steps = steps_from(random_stream(2), dense=False)
    td, emphatic = (kind(0.02, 1.0) for kind in (online.TDLambda, online.EmphaticTD))
    np.testing.assert_allclose(learned(emphatic, steps), learned(td, steps), rtol=0, atol=1e-12)


def test_on_collision_tree_backup_is_v_trace_and_abtd_is_flat_above_one_half() -> None:
    decays = (0.0, 0.3, 0.9, 1.0)
    tree, clipped = (
        learned(kind(0.05, decays), COLLISION, 6)
        for kind in (online.TreeBackup, online.VTraceLambda)
    )
    np.testing.assert_allclose(tree, clipped, rtol=0, atol=1e-12)
    flat = learned(online.ABTD(0.05, (0.3, 0.5, 0.7, 1.0)), COLLISION, 6)
    np.testing.assert_allclose(flat[:, 1:3], flat[:, [3, 3]], rtol=0, atol=1e-12)
    assert np.abs(flat[:, 0] - flat[:, 3]).max() > 0.01


@pytest.mark.parametrize(
    ("zeta", "xi_0", "xi_max", "xi"),
    [
        (0.0, 1.0, 4.0, 0.0),
        (0.25, 1.0, 4.0, 0.5),
        (0.45, 1.0, 4.0, 0.9),
        (0.5, 1.0, 4.0, 1.0),
        (0.75, 1.0, 4.0, 2.5),
        (1.0, 1.0, 4.0, 4.0),
        (0.25, 1.5, 6.0, 0.75),
        (0.75, 1.5, 6.0, 3.75),
        (1.0, 1.5, 6.0, 6.0),
        (0.75, 1.5, 2.0, 1.75),
    ],
)
def test_the_trace_of_abtd_by_hand(zeta: float, xi_0: float, xi_max: float, xi: float) -> None:
    """xi = 2 zeta xi_0 + max(0, 2 zeta - 1) (xi_max - 2 xi_0), limited by 1 / max(pi, mu)."""
    algorithm = online.ABTD(0.1, zeta, xi_0, xi_max)
    x, zeros = np.arange(3, dtype=np.int32)[:, None], np.zeros(2)
    for pi, mu in ((0.1, 0.05), (0.1, 0.4), (0.5, 0.25)):
        steps = steps_of(
            x[:-1], x[1:], zeros, np.array([0.8, 0.0]), np.array([pi / mu, 7.0]),
            probability=np.array([pi, 0.3]),
        )  # fmt: skip
        streams = start_streams(algorithm, algorithm.start(3), 1)
        run(algorithm, algorithm.start(3), streams, steps)
        want = [0.8 * min(xi, 1 / max(pi, mu)) * pi, 1.0, 0.0]
        np.testing.assert_allclose(streams.traces[0, 0, :, 0], want, rtol=1e-14)


def partly_active(seed: int) -> list[Step]:
    """Make a stream of a question that is active half of the time, as the released Rooms have it.

    In an inactive state the target has no probabilities, and the continuation into it is 0.
    """
    rng, stream = np.random.default_rng(seed), random_stream(seed)
    active = np.cumsum(rng.random(len(stream) + 1) < 0.2) % 2 == 0
    made, g = [], 0.0
    for i, step in enumerate(stream):
        g_next = 0.8 if active[i + 1] else 0.0
        pi = step.pi if active[i] else 0.0
        made.append(step._replace(pi=pi, g=g, g_next=g_next, active=bool(active[i])))
        g = g_next
    return made


@pytest.mark.parametrize("name", CASES)
def test_inactive_steps_can_be_left_out_except_for_htd(name: str) -> None:
    algorithm, oracles = CASES[name]
    stream = partly_active(1)
    active = np.array([step.active for step in stream])
    steps = steps_from(stream, dense=False)
    after_gap = active & ~np.append(False, active[:-1])
    steps.into[after_gap] = 0.0
    kept = Steps(*(column[active] for column in steps))
    same = np.allclose(learned(algorithm, kept), expected(oracles, stream), rtol=0, atol=1e-12)
    assert same == (not isinstance(algorithm, online.HTD))


def test_gtd_without_a_second_step_size_is_td() -> None:
    steps = steps_from(random_stream(3), dense=False)
    gtd = learned(online.GTD(0.02, (0.0, 0.5), eta=0.0), steps)
    np.testing.assert_allclose(gtd, learned(online.TDLambda(0.02, (0.0, 0.5)), steps), atol=1e-12)


def test_htd_is_td_on_policy() -> None:
    steps = steps_from(random_stream(3), dense=False)
    steps = steps._replace(ratio=np.ones_like(steps.ratio))
    htd = learned(online.HTD(0.02, (0.0, 0.9), eta=2.0), steps)
    np.testing.assert_allclose(htd, learned(online.TDLambda(0.02, (0.0, 0.9)), steps), atol=1e-12)


def parts(steps: Steps, cuts: list[int]) -> list[Steps]:
    edges = [0, *cuts, len(steps.ratio)]
    return [Steps(*(column[a:b] for column in steps)) for a, b in pairwise(edges)]


@pytest.mark.parametrize("name", ["TD", "HTD, eta 0.25", "ETD", "Tree Backup"])
def test_slices_of_a_stream_give_the_same_bits(name: str) -> None:
    """150 lanes are three groups; 40 rows of weights make rows leave their list."""
    few, _ = CASES[name]
    kind: Any = type(few)
    algorithm = kind(0.02, tuple(np.linspace(0, 1, 150)))
    rng = np.random.default_rng(0)
    m = 400
    x = rng.integers(0, 40, size=(m + 1, 2)).astype(np.int32)
    ratio = rng.choice([0.0, 0.5, 1.0, 1.5], size=m)
    steps = steps_of(
        x[:-1].copy(), x[1:].copy(), rng.normal(size=m), rng.choice([0.5, 0.9], size=m), ratio
    )
    whole = algorithm.start(40)
    run(algorithm, whole, start_streams(algorithm, whole, 1), steps)
    cut = algorithm.start(40)
    streams = start_streams(algorithm, cut, 1)
    for part in parts(steps, [1, 2, 63, 200]):
        run(algorithm, cut, streams, part)
    assert np.array_equal(whole.weights, cut.weights)
    assert np.abs(whole.weights).max() > 0.01


def test_columns_of_other_lengths_are_refused() -> None:
    x, ones = np.zeros((3, 1), np.int32), np.ones(3)
    with pytest.raises(ValueError, match="one number a step, 3: \\(2,\\)"):
        steps_of(x, x, ones[:2], ones, ones)


def test_columns_of_other_types_are_converted() -> None:
    x, ones = np.zeros((4, 2), np.int64), np.ones(8, np.float32)[::2]
    x[:, 1] = 1
    plain = steps_of(x[:, ::-1], x, ones, 0 * ones, ones)  # pyright: ignore[reportArgumentType]
    np.testing.assert_allclose(learned(online.TDLambda(0.25), plain, 2), 0.5 - 0.5**5, rtol=1e-15)


def test_lanes_do_not_depend_on_each_other() -> None:
    steps = steps_from(random_stream(4), dense=False)
    decays = tuple(np.linspace(0, 1, 130))
    together = learned(online.GTD(0.01, decays, 0.5), steps)
    for lane in (0, 63, 64, 129):
        alone = learned(online.GTD(0.01, decays[lane], 0.5), steps)
        np.testing.assert_allclose(together[:, lane], alone[:, 0], rtol=0, atol=1e-13)


def interleaved(one: Steps, other: Steps) -> Steps:
    columns = [np.stack(pair, axis=1) for pair in zip(one, other, strict=True)]
    mixed = Steps(*(column.reshape(-1, *column.shape[2:]) for column in columns))
    return mixed._replace(stream=np.arange(len(mixed.ratio)) % 2)


@pytest.mark.parametrize("name", CASES)
def test_streams_have_their_own_traces(name: str) -> None:
    """With frozen weights, two streams together have the traces that each has alone."""
    kind: Any = type(CASES[name][0])
    algorithm = kind(0.0, 0.9)
    one, other = (steps_from(random_stream(seed, 51), dense=False) for seed in (7, 8))
    state = algorithm.start(SIZE)
    both = start_streams(algorithm, state, 2)
    run(algorithm, state, both, interleaved(one, other))
    for s, steps in enumerate((one, other)):
        alone = start_streams(algorithm, algorithm.start(SIZE), 1)
        run(algorithm, algorithm.start(SIZE), alone, steps)
        for field in ("traces", "follow_on", "before"):
            assert np.array_equal(getattr(both, field)[s], getattr(alone, field)[0])
    assert np.abs(both.traces).max() > 0


def test_a_row_leaves_the_list_when_its_trace_is_gone() -> None:
    """Rounding keeps a number below the smallest normal one alive for ever, so it counts as 0."""
    algorithm, m = online.TDLambda(0.1, 0.5), 3000
    x, ones = np.arange(m, dtype=np.int32)[:, None], np.ones(m)
    steps = steps_of(x, x, ones, 0.9 * ones, ones)
    state = algorithm.start(m)
    streams = start_streams(algorithm, state, 1)
    run(algorithm, state, streams, steps)
    lasting = int(np.log(np.finfo(float).tiny) / np.log(0.45))  # steps until a trace of 1 is gone
    assert lasting <= streams.counts[0, 0, 0] <= 2 * lasting + 2
    z = streams.traces[0, 0, :, 0]
    np.testing.assert_allclose(z[-lasting:], 0.45 ** np.arange(lasting - 1, -1, -1), rtol=1e-9)
    assert z[np.argmin(z > 0)] == 0.0
    assert set(np.flatnonzero(z)) <= set(streams.listed[0, 0, : streams.counts[0, 0, 0]])


def test_an_infinite_weight_of_an_ended_episode_is_not_read() -> None:
    algorithm = online.GTD(0.1, 0.5)
    state = algorithm.start(2)
    state.weights[1] = np.inf
    x, x_next = np.array([[0]], np.int32), np.array([[1]], np.int32)
    one = np.ones(1)
    steps = steps_of(x, x_next, one, 0 * one, one)
    run(algorithm, state, start_streams(algorithm, state, 1), steps)
    assert algorithm.weights(state)[0, 0] == 0.1


def test_an_error_over_states_is_a_root_mean_square() -> None:
    rng = np.random.default_rng(0)
    x, values, shares = rng.normal(size=(20, SIZE)), rng.normal(size=20), rng.uniform(size=20)
    measure = Measure.of_states(x, values, shares)
    assert measure.root.shape == (SIZE, SIZE)
    for w in rng.normal(size=(5, SIZE)):
        want = np.sqrt(np.average((x @ w - values) ** 2, weights=shares))
        found = np.sqrt(np.sum((measure.root @ w - measure.target) ** 2) + measure.rest)
        assert found == pytest.approx(want, rel=1e-13)


def test_errors_are_measured_before_the_steps() -> None:
    algorithm = online.TDLambda((0.1, 0.2))
    steps = steps_from(random_stream(0), dense=False)
    rng = np.random.default_rng(0)
    measure = Measure(rng.normal(size=(5, SIZE)), rng.normal(size=5), 0.3)
    state = algorithm.start(SIZE)
    errors = run(algorithm, state, start_streams(algorithm, state, 1), steps, measure, every=70)
    assert errors.shape == (5, 2)
    for k in range(5):
        w = learned(algorithm, parts(steps, [70 * k])[0]) if k else np.zeros((SIZE, 2))
        want = np.sqrt(((measure.root @ w - measure.target[:, None]) ** 2).sum(axis=0) + 0.3)
        np.testing.assert_allclose(errors[k], want, rtol=1e-13)
