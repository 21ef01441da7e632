"""Collision: the facts that its authors released, and the oracle of online prediction on it."""

from collections.abc import Callable, Iterator

import charts_reference as reference
import numpy as np
import pytest
from maps import tabular
from released import released_features

from gvf_lab.domain.collision import draw_representation, features, representations
from gvf_lab.domain.tabular import TabularDomain


@pytest.fixture
def domain() -> TabularDomain:
    return tabular("collision")


def dense(rows: np.ndarray) -> np.ndarray:
    """Return a representation [8, 3] as a matrix [8, 6]."""
    return np.array([[float(i in row) for i in range(6)] for row in rows])


def test_values_ratios_and_visits_are_the_published_ones(domain: TabularDomain) -> None:
    domain.check("wall", "turning")
    truth, law = domain.truth("wall", "turning"), np.array([2, 4, 6, 8, 8, 4, 2, 1]) / 35
    assert truth.states.tolist() == list(range(8))
    assert truth.values == pytest.approx(reference.COLLISION_VALUES, abs=1e-14)
    assert [f"{value:.4g}" for value in truth.values[:4]] == [
        "0.4783",
        "0.5314",
        "0.5905",
        "0.6561",
    ]
    assert truth.weights == pytest.approx(law, abs=1e-15)
    assert np.abs(law - reference.RELEASED_SHARES).max() < 1.1e-5
    assert f"{truth.root_mean_square_error(np.zeros(8)):.5f}" == "0.68908"
    assert domain.ratios("wall", "turning")[:8].tolist() == [[1, 0]] * 4 + [[2, 0]] * 4


def test_the_released_representations_have_the_published_ranks() -> None:
    rows = representations()
    assert rows.shape == (50, 8, 3)
    ranks = [np.linalg.matrix_rank(dense(one)) for one in rows]
    assert [ranks.count(rank) for rank in (6, 5, 4)] == [34, 15, 1]
    alike = [len({tuple(row) for row in one.tolist()}) < 8 for one in rows]
    assert sum(alike) == 39


def test_run_r_has_representation_r_modulo_50(domain: TabularDomain) -> None:
    states = np.arange(8)
    for run in (0, 1, 49):
        first, again = domain.for_run(run, seed=0), domain.for_run(run + 50, seed=7)
        assert np.array_equal(first.features(states), representations()[run])
        assert np.array_equal(again.features(states), representations()[run])
        assert np.array_equal(dense(first.features(states)), released_features(run))
    assert all(
        np.array_equal(reference.collision_features(run), released_features(run))
        for run in reference.REPRESENTATIONS
    )
    assert np.array_equal(domain.features(states), representations()[0])


def test_new_representations_are_any_three_of_six_features() -> None:
    rng, counts = np.random.default_rng(0), dict[tuple[int, ...], int]()
    for _ in range(1000):
        rows = draw_representation(rng)
        assert features(rows)(np.arange(9)).shape == (9, 3)
        for row in rows.tolist():
            counts[tuple(row)] = counts.get(tuple(row), 0) + 1
    assert len(counts) == 20
    # 5 standard deviations of a binomial count of 8000 draws with probability 1/20.
    assert np.abs(np.array(list(counts.values())) - 400).max() < 5 * np.sqrt(400 * 19 / 20)


@pytest.mark.parametrize(
    ("weights", "last", "mean"),
    [
        (lambda stream: reference.td(stream, 2**-9, 0.9), 0.083194728410, 0.131298683212),
        (lambda stream: reference.tdrc(stream, 2**-4, 0.0), 0.546696321945, 0.550121707237),
    ],
    ids=["TD(0.9)", "TDRC(0)"],
)
def test_the_oracle_of_online_prediction_gives_the_released_digits(
    weights: Callable, last: float, mean: float
) -> None:
    errors = reference.collision_errors(weights(reference.collision_stream(0)), 0)
    assert abs(errors[-1] - last) < 1e-12
    assert abs(errors.mean() - mean) < 1e-12


def test_the_walk_of_the_domain_is_a_stream_of_the_oracle(domain: TabularDomain) -> None:
    walk = domain.walk(domain.behaviour("turning"), ["wall"], 2000, np.random.SeedSequence(0))
    signals = walk.signals["wall"]
    kinds = {
        (tuple(s.x), tuple(s.x_next) if s.g_next else (), s.rho, s.c, s.g_next)
        for s in reference.collision_stream(0)
    }
    x, x_next = dense(walk.x), dense(walk.x_next)
    ours = {
        (tuple(x[t]), tuple(x_next[t]) if goes_on else (), rho, c, goes_on)
        for t, (rho, c, goes_on) in enumerate(
            zip(signals.ratio, signals.cumulant, signals.continuation, strict=True)
        )
    }
    assert ours == kinds


def test_algorithms_of_the_oracle_coincide_where_they_must() -> None:
    stream = reference.collision_stream(3, steps=3000)

    def same(first: Iterator[np.ndarray], second: Iterator[np.ndarray]) -> bool:
        return np.abs(np.array(list(first)) - np.array(list(second))).max() < 1e-12

    alpha, td = 2**-6, reference.td(stream, 2**-6, 0.0)
    assert same(td, reference.tree_backup(stream, alpha, 0.0))
    assert same(reference.v_trace(stream, alpha, 0.0), reference.abtd(stream, alpha, 0.0, 2.0))
    assert same(reference.td(stream, alpha, 0.0), reference.v_trace(stream, alpha, 0.0))
    assert same(reference.td(stream, alpha, 1.0), reference.emphatic_td(stream, alpha, 1.0))
    assert same(reference.tree_backup(stream, alpha, 0.7), reference.v_trace(stream, alpha, 0.7))
    assert same(reference.abtd(stream, alpha, 0.5, 2.0), reference.abtd(stream, alpha, 0.9, 2.0))
    emphatic = reference.emphatic_td(stream, alpha, 0.3)
    assert same(emphatic, reference.emphatic_td(stream, alpha, 0.3, beta=0.9))
    assert not same(reference.td(stream, alpha, 0.3), reference.td(stream, alpha, 0.4))
