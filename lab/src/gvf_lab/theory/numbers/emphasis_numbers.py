"""Emphatic resampling in a corridor: windows, bias, fixed point and variance.

The traces come from the library's own :func:`gvf.corrections.carried.carried`, and their
predictions from :mod:`gvf_lab.theory.numbers.corridor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.corrections import Correction
from gvf.kernels import carried
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.numbers.bias_numbers import SIZES, BiasBySize, multinomial_windows
from gvf_lab.theory.numbers.corridor import MU, Corridor, Stream
from gvf_lab.theory.numbers.enumeration import EnumeratedMoments, MakeRing, enumerated_moments
from gvf_lab.theory.numbers.prediction import squared_norms
from gvf_lab.theory.numbers.simulation import Draw, mean_and_error, updates

Carried = Callable[..., Floats]
"""The function that computes the inputs of a stream, with the arguments of `carried`."""
LONG, SHORT = Corridor.of(5), Corridor.of(2)
"""The corridors of windows and fixed points, and of the bias: it has three kinds of episodes."""
THETA = np.array([2.0, -1.0])
"""Frozen weights, far from the truth."""
WINDOW, BATCH = 6, 2
"""The length of windows whose batches are enumerated, and the size of their batches."""
RUNS, EPISODES, DRAWS = 100, 10_000, 40_000
"""Streams, episodes in each, and draws from each for the fixed point."""
BATCHES, SIMULATED_BATCH = 400_000, 4
"""The number of batches that are simulated from one window, and their size."""


def inputs_of(correction: Correction, stream: Stream, carried: Carried = carried) -> Floats:
    """Return the inputs [2, T] of a stream by the library's own trace."""
    return carried(correction, stream.ratio, stream.continuation, stream.ended, stream.interest)


@dataclass(frozen=True)
class EmphaticWindows:
    """G windows of the long corridor, each of WINDOW transitions.

    Attributes:
        inputs: ratios and traces by the library, [2, G, n].
        emphasis: rho F as predicted, [G, n].
        update: the updates, [G, n, d].
    """

    inputs: Floats
    emphasis: Floats
    update: Floats

    @property
    def shares(self) -> Floats:
        """The shares of rho F in the window, [G, n]."""
        return self.emphasis / self.emphasis.sum(axis=1, keepdims=True)

    @property
    def weighted_mean(self) -> Floats:
        """Emphatic weighted importance sampling over each window, [G, d]."""
        return (self.shares[:, :, None] * self.update).sum(axis=1)

    @property
    def variance(self) -> Floats:
        """V(X | B) times k by the lemma, of Emphatic IR, BC-IR and IS, [3, G]."""
        g, mean, p = squared_norms(self.update), self.weighted_mean, self.emphasis.mean(axis=1)
        ir = (self.shares * g).sum(axis=1) - squared_norms(mean)
        reweighted = (self.emphasis**2 * g).mean(axis=1) - p**2 * squared_norms(mean)
        return np.array([ir, p**2 * ir, reweighted])


def emphatic_windows(correction: Correction, seed: int, carried: Carried) -> EmphaticWindows:
    """Cut a stream of the long corridor into windows."""
    stream = LONG.stream(400, seed=seed, run=0)
    count = len(stream.row) // WINDOW
    cut = slice(count * WINDOW)
    row = stream.row[cut].reshape(count, WINDOW)
    return EmphaticWindows(
        inputs_of(correction, stream, carried)[:, cut].reshape(2, count, WINDOW),
        LONG.ratio[row] * LONG.trace[row // 2],
        LONG.updates(THETA)[row],
    )


def enumerated(
    correction: Correction, windows: EmphaticWindows, ring: MakeRing
) -> EnumeratedMoments:
    """Sum a correction's update over all batches of each window."""
    return enumerated_moments(correction, windows.inputs, windows.update, BATCH, ring=ring)


def simulated_variances(
    corrections: tuple[Correction, ...], windows: EmphaticWindows, seed: int, draw: Draw
) -> tuple[Floats, Floats]:
    """Simulate batches of the first window: variances times k, and standard errors, [C]."""
    variances = []
    for correction in corrections:
        draws = draw(
            correction,
            windows.inputs[:, 0],
            window=WINDOW,
            batch_size=SIMULATED_BATCH,
            updates=BATCHES,
            seed=seed_for(seed, 0, "theory", "emphasis"),
        )
        x = updates(correction, windows.update[0], draws)
        squares = SIMULATED_BATCH * squared_norms(x - x.mean(axis=0))
        variances.append((squares.mean(), squares.std() / np.sqrt(BATCHES)))
    variance, error = np.array(variances).T
    return variance, error


def emphatic_bias(wis: Correction, carried: Carried) -> BiasBySize:
    """Compute E[X] over all windows of n episodes, which are of three kinds.

    X is Emphatic WIS over the window: by the first rows of the finding, the mean of Emphatic IR. It
    depends only on the number of episodes of each kind. With H the sum of rho F over an episode and
    Y that of rho F Delta, it is a quotient of means, as in Theorem 3.1.
    """
    kinds = [[0], [1, 2], [1, 3]]  # turn away at once; go on, and turn away or not
    chance = np.array([MU[0], MU[1] * MU[0], MU[1] * MU[1]])
    rows = np.concatenate(kinds)
    episode = np.repeat(np.arange(3), [len(kind) for kind in kinds])
    stream = Stream(
        SHORT.ratio[rows],
        SHORT.continuation[rows],
        SHORT.interest[rows // 2],
        SHORT.continuation[rows] == 0.0,
        rows,
    )
    inputs = inputs_of(wis, stream, carried)
    update = SHORT.updates(THETA)[rows]
    emphasis = SHORT.ratio[rows] * SHORT.trace[rows // 2]
    h = np.bincount(episode, emphasis)
    y = np.array([np.bincount(episode, emphasis * part) for part in update.T]).T
    scale = chance @ h
    expected = chance @ y / scale
    means = [_mean_of_windows(wis, inputs, episode, update, chance, n) for n in SIZES.tolist()]
    excess, centred = h / scale - 1.0, (y - h[:, None] * expected) / scale
    return BiasBySize.of_quotient(np.array(means) - expected, chance, excess, centred)


def _mean_of_windows(
    wis: Correction,
    inputs: Floats,
    episode: NDArray[np.int64],
    update: Floats,
    chance: Floats,
    n: int,
) -> Floats:
    """Return E[X] over windows of n episodes, [d]; rows that repeat are weighted as one."""
    counts, probability = multinomial_windows(chance, n)
    ratio = counts[:, episode] * inputs[0]
    rows = np.arange(ratio.size).reshape(ratio.shape)
    stacked = np.stack([ratio.ravel(), np.broadcast_to(inputs[1], ratio.shape).ravel()])
    w = wis.weigh_rows(stacked, np.empty(0), rows, np.ones((len(rows), 3)))
    return probability @ (w @ update)


@dataclass(frozen=True)
class FixedPoints:
    """Fixed points in the long corridor, [d] each: by exact solves, and of drawn transitions.

    Attributes:
        emphatic_td: that of emphatic TD(0).
        td: that of TD(0).
        mean: the weights at which the mean update of the drawn transitions is 0, over RUNS streams.
        error: the standard errors of `mean`.
    """

    emphatic_td: Floats
    td: Floats
    mean: Floats
    error: Floats


def fixed_points(correction: Correction, seed: int, draw: Draw, carried: Carried) -> FixedPoints:
    """Draw transitions from windows of whole streams, and solve for the weights without update."""
    here = LONG.phi.repeat(2, axis=0)
    moved = here - LONG.continuation[:, None] * LONG.phi_next
    matrices = here[:, :, None] * moved[:, None, :]
    vectors = LONG.cumulant[:, None] * here
    points = np.empty((RUNS, 2))
    for run in range(RUNS):
        stream = LONG.stream(EPISODES, seed=seed, run=run)
        inputs = inputs_of(correction, stream, carried)[: correction.rows]
        draws = draw(
            correction,
            inputs,
            window=len(stream.row),
            batch_size=DRAWS,
            updates=1,
            seed=seed_for(seed, run, "theory", "fixed point"),
        )
        w = draws.weights(correction)[0]
        weight = np.bincount(stream.row[draws.rows[0]], w, minlength=len(LONG.ratio))
        points[run] = np.linalg.solve(np.tensordot(weight, matrices, axes=1), weight @ vectors)
    return FixedPoints(
        LONG.fixed_point(LONG.visits * LONG.trace),
        LONG.fixed_point(LONG.visits),
        *mean_and_error(points),
    )
