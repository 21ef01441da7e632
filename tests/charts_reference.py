"""The tests' oracle for online prediction: the eleven algorithms with traces, a few lines each.

A stream is a list of :class:`Step`. An algorithm is a generator that takes a stream and yields its
weights before every step, and once more after the last. Nothing is shared with the library, and
nothing is compiled. The equations are those that Ghiassian and Sutton (2021) coded.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RELEASED_SHARES = np.array(
    [
        0.05715077505175114,
        0.11427990211510529,
        0.17142456363441183,
        0.2285684168707556,
        0.2285684168707556,
        0.11428066755621491,
        0.05715311278887139,
        0.028574145112134203,
    ]
)
"""The weights of Collision's states in the released code, estimated from a long run."""

REPRESENTATIONS = {
    0: "245 012 125 023 014 123 015 025",
    3: "023 345 135 245 045 024 135 135",
}
"""The released features of Collision in two runs: those that are 1 in each of the eight states."""

COLLISION_VALUES = 0.9 ** np.arange(7, -1, -1)


class Step(NamedTuple):
    """One step of a stream, as one question sees it.

    ``g`` is the continuation into the state, which decays traces: 0 in the first state of an
    episode. ``g_next`` is the continuation into the next state, with which it bootstraps.
    """

    x: Floats
    x_next: Floats
    pi: float
    mu: float
    g: float
    g_next: float
    c: float
    active: bool = True

    @property
    def rho(self) -> float:
        return self.pi / self.mu

    def delta(self, w: Floats) -> float:
        return float(self.c + self.g_next * (w @ self.x_next) - w @ self.x)


def td(stream: list[Step], alpha: float, lam: float) -> Iterator[Floats]:
    w, z = _zeros(stream, 2)
    for s in stream:
        yield w
        z = s.rho * (s.g * lam * z + s.x)
        if s.active:
            w = w + alpha * s.delta(w) * z
    yield w


def gtd(
    stream: list[Step], alpha: float, lam: float, eta: float, regulariser: float = 0.0
) -> Iterator[Floats]:
    w, z, h = _zeros(stream, 3)
    for s in stream:
        yield w
        z = s.rho * (s.g * lam * z + s.x)
        if s.active:
            delta = s.delta(w)
            w = w + alpha * (delta * z - s.g_next * (1 - lam) * (z @ h) * s.x_next)
            h = h + eta * alpha * (delta * z - (s.x @ h) * s.x - regulariser * h)
    yield w


def tdrc(stream: list[Step], alpha: float, lam: float) -> Iterator[Floats]:
    return gtd(stream, alpha, lam, eta=1.0, regulariser=1.0)


def gtd2(stream: list[Step], alpha: float, lam: float, eta: float) -> Iterator[Floats]:
    w, z, h = _zeros(stream, 3)
    for s in stream:
        yield w
        z = s.rho * (s.g * lam * z + s.x)
        if s.active:
            delta = s.delta(w)
            w = w + alpha * ((s.x @ h) * s.x - s.g_next * (1 - lam) * (z @ h) * s.x_next)
            h = h + eta * alpha * (delta * z - (s.x @ h) * s.x)
    yield w


def htd(stream: list[Step], alpha: float, lam: float, eta: float) -> Iterator[Floats]:
    w, z, z_b, h = _zeros(stream, 4)
    for s in stream:
        yield w
        z = s.rho * (s.g * lam * z + s.x)
        z_b = s.g * lam * z_b + s.x
        if s.active:
            delta, difference = s.delta(w), s.x - s.g_next * s.x_next
            w = w + alpha * (delta * z + difference * ((z - z_b) @ h))
            h = h + eta * alpha * (delta * z - difference * (z_b @ h))
    yield w


def proximal_gtd2(stream: list[Step], alpha: float, lam: float, eta: float) -> Iterator[Floats]:
    w, z, h = _zeros(stream, 3)
    for s in stream:
        yield w
        z = s.rho * (s.g * lam * z + s.x)
        if s.active:
            middle_h = h + eta * alpha * (s.delta(w) * z - (s.x @ h) * s.x)
            middle_w = w + alpha * ((s.x @ h) * s.x - s.g_next * (1 - lam) * (z @ h) * s.x_next)
            delta = s.delta(middle_w)
            w = w + alpha * (
                (s.x @ middle_h) * s.x - s.g_next * (1 - lam) * (z @ middle_h) * s.x_next
            )
            h = h + eta * alpha * (delta * z - (s.x @ middle_h) * s.x)
    yield w


def emphatic_td(
    stream: list[Step], alpha: float, lam: float, beta: float | None = None
) -> Iterator[Floats]:
    """Without beta, the follow-on trace decays by the continuation: Emphatic TD(lambda)."""
    w, z = _zeros(stream, 2)
    follow_on, previous_rho = 0.0, 0.0
    for s in stream:
        yield w
        decay = s.g if beta is None else beta * (s.g > 0)
        follow_on = decay * previous_rho * follow_on + 1
        z = s.rho * (s.g * lam * z + (lam + (1 - lam) * follow_on) * s.x)
        if s.active:
            w = w + alpha * s.delta(w) * z
        previous_rho = s.rho
    yield w


def tree_backup(stream: list[Step], alpha: float, lam: float) -> Iterator[Floats]:
    w, z = _zeros(stream, 2)
    previous_pi = 0.0
    for s in stream:
        yield w
        z = s.g * lam * previous_pi * z + s.x
        if s.active:
            w = w + alpha * s.rho * s.delta(w) * z
        previous_pi = s.pi
    yield w


def v_trace(stream: list[Step], alpha: float, lam: float) -> Iterator[Floats]:
    w, z = _zeros(stream, 2)
    previous_rho = 0.0
    for s in stream:
        yield w
        z = s.g * lam * min(1.0, previous_rho) * z + s.x
        if s.active:
            w = w + alpha * s.rho * s.delta(w) * z
        previous_rho = s.rho
    yield w


def abtd(
    stream: list[Step], alpha: float, zeta: float, xi_max: float, xi_0: float = 1.0
) -> Iterator[Floats]:
    xi = 2 * zeta * xi_0 + max(0.0, 2 * zeta - 1) * (xi_max - 2 * xi_0)
    w, z = _zeros(stream, 2)
    previous_pi, previous_nu = 0.0, 0.0
    for s in stream:
        yield w
        z = s.g * previous_nu * previous_pi * z + s.x
        if s.active:
            w = w + alpha * s.rho * s.delta(w) * z
        previous_pi, previous_nu = s.pi, min(xi, 1 / max(s.pi, s.mu))
    yield w


def collision_features(run: int) -> Floats:
    """Make the released representation of a run, float64[8, 6]."""
    return features_of(REPRESENTATIONS[run])


def features_of(representation: str) -> Floats:
    """Make the features of eight states, float64[8, 6], from a line of the released file."""
    x = np.zeros((8, 6))
    for state, word in enumerate(representation.split()):
        x[state, [int(feature) for feature in word]] = 1
    return x


def collision_stream(run: int, steps: int = 20_000, seed: int | None = None) -> list[Step]:
    """Make the stream of a run, with the draws of the released code; the seed is the run's number.

    There is one draw for each start, and one for each choice in states 4 to 7 (0 is forward).
    """
    rng = np.random.RandomState(run if seed is None else seed)
    x = collision_features(run)
    stream, state, g = [], rng.randint(4), 0.0
    for _ in range(steps):
        turn = state >= 4 and rng.randint(2) == 1
        hit = state == 7 and not turn
        ends = turn or hit
        stream.append(
            Step(
                x=x[state],
                x_next=np.zeros(6) if ends else x[state + 1],
                pi=0.0 if turn else 1.0,
                mu=0.5 if state >= 4 else 1.0,
                g=g,
                g_next=0.0 if ends else 0.9,
                c=float(hit),
            )
        )
        state, g = (rng.randint(4), 0.0) if ends else (state + 1, 0.9)
    return stream


def collision_errors(weights: Iterator[Floats], run: int) -> Floats:
    """Compute the error of all weights but the last, under the released weighting, float64[T]."""
    w, d = np.array(list(weights))[:-1], RELEASED_SHARES
    difference = w @ collision_features(run).T - COLLISION_VALUES
    return np.sqrt((difference**2) @ d / d.sum())


def _zeros(stream: list[Step], count: int) -> list[Floats]:
    return [np.zeros(len(stream[0].x)) for _ in range(count)]
