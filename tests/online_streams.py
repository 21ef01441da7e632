"""Streams for the tests of online algorithms, and each algorithm beside its oracle.

The oracles are the plain loops of charts_reference.
"""

from collections.abc import Callable, Iterator
from typing import Any

import charts_reference as reference
import numpy as np
from charts_reference import Floats, Step

from gvf import online
from gvf.online.online_loop import Steps, steps_of

SIZE, ACTIVE = 7, 2


def random_stream(seed: int, steps: int = 300, dense: bool = False) -> list[Step]:
    """Make a stream in which everything varies: continuations, ratios, cumulants and episodes."""
    rng = np.random.default_rng(seed)

    def features() -> Floats:
        if dense:
            return rng.normal(size=SIZE) / 2
        x = np.zeros(SIZE)
        x[rng.choice(SIZE, ACTIVE, replace=False)] = 1
        return x

    stream: list[Step] = []
    x, g = features(), 0.0
    for _ in range(steps):
        x_next, g_next = features(), rng.choice([0.0, 0.3, 0.8, 1.0], p=[0.15, 0.15, 0.6, 0.1])
        mu = rng.uniform(0.3, 1)
        pi = rng.choice([0.0, rng.uniform(), 1.0])
        stream.append(Step(x, x_next, float(pi), mu, g, float(g_next), rng.normal()))
        restarts = g_next == 0.0 or rng.random() < 0.05  # some episodes are cut, and go on in v
        x, g = (features(), 0.0) if restarts else (x_next, float(g_next))
    return stream


def steps_from(stream: list[Step], dense: bool) -> Steps:
    """Return the columns of a stream, with dense features or active indices."""

    def column(name: str) -> Floats:
        return np.array([getattr(step, name) for step in stream], np.float64)

    x, x_next = column("x"), column("x_next")
    if not dense:
        count = int(x[0].sum())
        x, x_next = (np.argsort(-f, axis=1, kind="stable")[:, :count] for f in (x, x_next))
        x, x_next = (np.ascontiguousarray(f, np.int32) for f in (x, x_next))
    numbers = (column("c"), column("g_next"), column("rho"))
    steps = steps_of(x, x_next, *numbers, probability=column("pi"))
    return steps._replace(into=column("g"))


Oracle = Callable[[list[Step]], Iterator[Floats]]
LAMBDAS = (0.0, 0.4, 0.9, 1.0)
ALPHA = 0.03


def with_lambda(oracle: Callable[..., Iterator[Floats]], *more: Any) -> list[Oracle]:
    """Return an oracle for each lambda."""
    return [lambda stream, lam=lam: oracle(stream, ALPHA, lam, *more) for lam in LAMBDAS]


CASES: dict[str, tuple[online.Algorithm, list[Oracle]]] = {
    "TD": (online.TDLambda(ALPHA, LAMBDAS), with_lambda(reference.td)),
    "TDRC": (online.TDRCLambda(ALPHA, LAMBDAS), with_lambda(reference.tdrc)),
    "ETD": (online.EmphaticTD(ALPHA, LAMBDAS), with_lambda(reference.emphatic_td)),
    "Tree Backup": (online.TreeBackup(ALPHA, LAMBDAS), with_lambda(reference.tree_backup)),
    "V-trace": (online.VTraceLambda(ALPHA, LAMBDAS), with_lambda(reference.v_trace)),
}
for _eta in (0.25, 1.0, 4.0):
    for _made, _oracle in (
        (online.GTD, reference.gtd),
        (online.GTD2, reference.gtd2),
        (online.HTD, reference.htd),
        (online.ProximalGTD2, reference.proximal_gtd2),
    ):
        _algorithm = _made(ALPHA / 4, LAMBDAS, _eta)
        CASES[f"{_made.__name__}, eta {_eta}"] = (
            _algorithm,
            [
                lambda stream, lam=lam, eta=_eta, oracle=_oracle: oracle(
                    stream, ALPHA / 4, lam, eta
                )
                for lam in LAMBDAS
            ],
        )
for _beta in (0.0, 0.5, 1.0):
    CASES[f"ETD, beta {_beta}"] = (
        online.EmphaticTD(ALPHA, LAMBDAS, _beta),
        with_lambda(reference.emphatic_td, _beta),
    )
for _xi_max, _xi_0 in ((2.0, 1.0), (4.0, 1.0), (2.8, 1.1)):
    CASES[f"ABTD, xi_0 {_xi_0}, xi_max {_xi_max}"] = (
        online.ABTD(ALPHA, LAMBDAS, _xi_0, _xi_max),
        with_lambda(reference.abtd, _xi_max, _xi_0),
    )
