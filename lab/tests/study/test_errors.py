"""Errors over evaluation states: the tree of sums reads the same weights as each state alone."""

import numpy as np
import pytest

from gvf.features import TileCoder
from gvf_lab.study.measure import END, LEVEL, STATE, measure, sum_tree

CODER = TileCoder([0.0, 0.0], [1.0, 1.0], tiles=4, tilings=16)


def states(count: int) -> np.ndarray:
    return CODER(np.random.default_rng(count).random((count, 2)))


@pytest.mark.parametrize("count", [1, 2, 7, 200])
def test_the_nodes_above_a_state_have_its_features_once_each(count):
    x = states(count)
    nodes, rows = sum_tree(x, np.ones((count, 1)))
    seen, above, begin = {}, {}, 0
    for node in nodes:
        level = node[LEVEL]
        above[level] = [*above.get(level + 1, []), *rows[begin : node[END]]]
        for below in range(level):
            above.pop(below, None)
        begin = node[END]
        if level == 0:
            seen[int(node[STATE])] = sorted(above[0])
    assert seen == {s: sorted(x[s].tolist()) for s in range(count)}


def test_neighbours_share_sums():
    _, rows = sum_tree(states(200), np.ones((200, 1)))
    assert len(rows) < 0.7 * 200 * CODER.tilings


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_shared_sums_give_the_same_errors(squared, weighted):
    rng, x, lanes = np.random.default_rng(2), states(50), 27
    weights, truth = rng.normal(size=(CODER.size, lanes)), rng.normal(size=50)
    weights[x[3, 4], 1] = np.inf
    counts = rng.random(50) if weighted else np.empty(0)
    dead, error = np.zeros(lanes, np.bool_), np.empty(lanes)
    target = (
        x,
        np.ones((50, 1)),
        np.empty(0, np.int64),
        truth,
        counts,
        *sum_tree(x, np.ones((50, 1))),
    )
    measure(weights, target, squared, dead, error)
    size = np.abs(weights[x].sum(axis=1) - truth[:, None]) ** (2 if squared else 1)
    mean = (size * (counts[:, None] if weighted else 1.0)).mean(axis=0)
    assert dead.tolist() == [lane == 1 for lane in range(lanes)]
    np.testing.assert_allclose(error, np.sqrt(mean) if squared else mean, rtol=1e-13)


@pytest.mark.parametrize(
    ("x", "share"),
    [
        (np.zeros((3, 4)), np.ones((3, 1))),
        (np.zeros((3, 1), np.int32), np.ones((3, 1))),
        (np.zeros((3, 4), np.int32), np.ones((3, 2))),
        (np.zeros((3, 4), np.int32), np.full((3, 1), 0.5)),
    ],
    ids=["dense", "table", "action values", "shares"],
)
def test_values_that_are_no_plain_sums_have_no_tree(x, share):
    nodes, rows = sum_tree(x, share)
    assert len(nodes) == len(rows) == 0
