"""Emphatic resampling: draws by rho F, with the fixed point of emphatic TD(0).

The paper has no result about it; these are our own. With rho F in the place of rho, the paper's
statements about one window hold as they are, since F is known and fixed when a transition is
inserted. The limit is another one: that of emphatic TD(0). The traces come from the library's own
``gvf.kernels.carried``, and their predictions from :mod:`gvf_lab.theory.corridor`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf import RatioRing
from gvf import draw_batches as draw
from gvf.common.arrays import Floats
from gvf.common.colours import METHOD_COLOURS
from gvf.corrections import Correction, EmphaticBCIR, EmphaticIR, EmphaticIS, EmphaticWISMinibatch
from gvf.kernels import carried
from gvf_lab.study.base_study import seed_for
from gvf_lab.theory.bias import SIZES, BiasBySize, first_order, multinomial_windows
from gvf_lab.theory.corridor import MU, Corridor, Stream
from gvf_lab.theory.enumeration import (
    EnumeratedMoments,
    MakeRing,
    enumerated_moments,
    squared_norms,
)
from gvf_lab.theory.finding import (
    BLACK,
    Finding,
    FindingRow,
    exactly,
    label_axis,
    sampled,
)
from gvf_lab.theory.simulation import Draw, mean_and_error, updates

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


def moments_in_windows(
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


def emphatic_resampling(
    *,
    seed: int = 0,
    ir: Correction = EmphaticIR(),  # noqa: B008 (frozen)
    bcir: Correction = EmphaticBCIR(),  # noqa: B008
    importance_sampling: Correction = EmphaticIS(),  # noqa: B008
    wis: Correction = EmphaticWISMinibatch(),  # noqa: B008
    ring: MakeRing = RatioRing,
    draw: Draw = draw,
    carried: Carried = carried,
) -> Finding:
    """Test that emphatic IR is emphatic WIS on average, with the fixed point of emphatic TD(0).

    With the follow-on trace F_t = gamma_t rho_{t-1} F_{t-1} + i_t, for every window B with mass::

        E[X | B] = sum_i rho_i F_i Delta_i / sum_j rho_j F_j,
        V(X | B) = (1/k) (sum_i P_i g_i - |E[X | B]|^2),    P_i = rho_i F_i / sum_j rho_j F_j.

    As the window grows, the first tends to E[rho F Delta] / E[rho F], which is 0 at the fixed point
    of emphatic TD(0). In windows of n independent episodes, with H the sum of rho F over an episode
    divided by its mean, and Y that of rho F (Delta - limit) divided by the same mean, the bias is
    -Cov(H, Y) / n + O(1 / n^2).

    Example:
        >>> from gvf_lab.theory import emphatic_resampling
        >>> all(row.holds for row in emphatic_resampling().rows)
        True
    """
    windows = emphatic_windows(ir, seed, carried)
    bias = emphatic_bias(wis, carried)
    points = fixed_points(ir, seed, draw, carried)
    corrections = ir, bcir, importance_sampling
    enumerated = [moments_in_windows(correction, windows, ring) for correction in corrections]
    simulated = simulated_variances(corrections, windows, seed, draw)
    return Finding(
        "Emphatic resampling",
        "Emphatic IR has the fixed point of emphatic TD(0) (our own result)",
        (
            exactly(
                f"E[Emphatic IR | B] is emphatic WIS, in {len(windows.emphasis)} windows",
                windows.weighted_mean,
                enumerated[0].mean,
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=np.abs(windows.update).max(axis=(1, 2))[:, None],
            ),
            *_rows_of_bias(bias),
            *_rows_of_fixed_point(points),
            exactly(
                "V(update | B) is the lemma's with rho F: Emphatic IR, BC-IR, IS",
                windows.variance / BATCH,
                [moments.variance for moments in enumerated],
                "weights wrong by 2e-12, a ratio by 1e-11",
                scale=[moments.second for moments in enumerated],
            ),
            sampled(
                f"... in {BATCHES:,} batches of {SIMULATED_BATCH} from a window",
                windows.variance[:, 0],
                *simulated,
                "weights wrong by 2 %; stratified draws",
            ),
        ),
        partial(draw_emphatic_resampling, bias, points),
    )


def _rows_of_bias(bias: BiasBySize) -> tuple[FindingRow, ...]:
    n = int(SIZES[-1])
    return first_order(f"-Cov(H, Y); n = {n} episodes", bias, n)


def _rows_of_fixed_point(points: FixedPoints) -> tuple[FindingRow, ...]:
    measured = points.mean, points.error
    return (
        sampled(
            f"weights where it stops, {RUNS} streams: those of emphatic TD(0)",
            points.emphatic_td,
            *measured,
            "2 % of the draws made uniformly; a trace by the row's own ratio or continuation",
        ),
        sampled(
            "... which are not those of TD(0)",
            points.td,
            *measured,
            "a trace that is always 1",
            relation="!=",
        ),
    )


def draw_emphatic_resampling(by_size: BiasBySize, points: FixedPoints, figure: Any) -> None:
    """Draw n times the bias of Emphatic IR against n, and values at the fixed points."""
    left, right = figure.subplots(1, 2)
    sizes, colour = SIZES, METHOD_COLOURS["Emphatic IR"]
    for component, (marker, face) in enumerate((("o", colour), ("s", "white"))):
        left.plot(
            sizes, sizes * by_size.bias[:, component], color=colour, marker=marker,
            markerfacecolor=face, label=f"component {component + 1}",
        )  # fmt: skip
        left.axhline(by_size.limit[component], color=BLACK, linestyle="--", linewidth=1)
    left.set_xscale("log", base=2)
    label_axis(left, "window size n, in episodes", "n × bias of Emphatic IR", "dashed: −Cov(H, Y)")
    corridor = LONG
    states = np.arange(corridor.states)
    right.plot(states, corridor.values, "--", color=BLACK, label="true values")
    right.plot(states, corridor.phi @ points.td, color=METHOD_COLOURS["IR"], label="TD(0), IR")
    emphatic = corridor.phi @ points.emphatic_td
    right.plot(states, emphatic, color=colour, label="emphatic TD(0)")
    drawn = corridor.phi @ points.mean
    right.plot(states, drawn, "o", color=colour, markerfacecolor="white", label="Emphatic IR")
    right.set_xticks(states)
    label_axis(right, "state of the corridor", "value", "at fixed points; points: measured")
