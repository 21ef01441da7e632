"""Studies of update variance: against the formula and against a dumb simulation."""

import dumb
import numpy as np
import pytest

from gvf import domain as domains
from gvf.study import NAMED, VarianceStudy, run_variance
from gvf.study.base import seed_for
from gvf.study.draws import draw


def test_a_part_of_update_variance_is_found_by_its_name():
    study = VarianceStudy("v", iterations=(0, 5), batches=20, buffer=100, runs=2)
    task = list(study.tasks())[4]
    names = list(task.parts())
    assert names[1] == "v/hard/hard/run-1/BC-IR"
    alone = run_variance(study.part(names[1]))
    assert list(alone) == ["BC-IR"]
    np.testing.assert_array_equal(alone["BC-IR"], run_variance(task)["BC-IR"])
    with pytest.raises(
        ValueError, match=r"unknown part of v/hard.*: 'IRR'; did you mean 'IR'\? Known"
    ):
        study.part(f"{task.name}/IRR")
    with pytest.raises(ValueError, match="is called 'IR'; a task is called, for example, 'v/easy"):
        study.part("IR")


def test_update_variance_is_that_of_the_formula():
    """The signed sum's variance given the buffer, for IS, BC-IR and IR: within 6 %, 20,000 batches.

    The standard error of a variance of heavy-tailed sums of 16 is about 1.5 % here.
    """
    study = VarianceStudy("v", methods=("IS", "BC-IR", "IR"), pairs=(("hard", "hard"),),
                          buffer=2000, iterations=(0, 3), batches=20_000, runs=1)  # fmt: skip
    measured = run_variance(next(study.tasks()))
    chain = domains.get("markov-chain")
    assert isinstance(chain, domains.TabularDomain)
    mu, pi = chain.table(chain.behaviour("hard")), chain.table(chain.target("hard"))
    seed = seed_for(0, 0, "walk", "hard")
    path = chain.walk(chain.behaviour("hard"), ["hard"], 2000, seed)
    state, after, asked = path.x[:, 0], path.next_state, path.signals["hard"]
    rho = (pi / mu)[state, path.action]
    values, share = np.zeros(10), rho / rho.sum()
    for row, updates in enumerate((0, 3)):
        for _ in range(updates):
            delta = asked.cumulant + asked.continuation * values[after] - values[state]
            values = values + np.bincount(state, share * delta, 10)
        delta = asked.cumulant + asked.continuation * values[after] - values[state]
        mean, r = (rho * delta).mean(), rho.mean()
        expected = {
            "IS": ((rho * delta) ** 2).mean() - mean**2,
            "BC-IR": r * (rho * delta**2).mean() - mean**2,
            "IR": (rho * delta**2).mean() / r - (mean / r) ** 2,
        }
        for name, value in expected.items():
            assert measured[name][row, 2] == pytest.approx(value / 16, rel=0.06), name


@pytest.mark.parametrize(
    ("domain", "pair", "step_size"),
    [
        ("markov-chain", ("easy", "easy"), 1.0),
        ("continuous-four-rooms", ("down", "uniform"), 0.1),
        ("star", None, 0.1),
    ],
    ids=["table", "tiles", "dense features"],
)
def test_the_variance_of_norms_is_that_of_a_dumb_simulation(domain, pair, step_size):
    """Of the same mini-batches, each with its whole vector of an update."""
    world = domains.get(domain)
    assert isinstance(world, domains.CellDomain)
    pair = pair or world.pairs[0]
    study = VarianceStudy("v", domain, pairs=(pair,), buffer=300, iterations=(0, 40),
                          batches=50, step_size=step_size, runs=2)  # fmt: skip
    task = list(study.tasks())[1]
    measured = run_variance(task)
    question, behaviour = pair
    seed = seed_for(0, 1, "walk", behaviour)
    path = world.walk(world.behaviour(behaviour), [question], 300, seed)
    asked, rho = path.signals[question], path.signals[question].ratio
    x, x_next = (
        rows if rows.dtype.kind == "f" else np.eye(world.features.size)[rows].sum(axis=1)
        for rows in (path.x, path.x_next)
    )
    largest = world.ratios(question, behaviour)[world.reachable].max()
    weights = world.initial_weights.copy()
    for row, iterations in enumerate((0, 40)):
        for _ in range(iterations):
            delta = asked.cumulant + asked.continuation * (x_next @ weights) - x @ weights
            weights = weights + step_size * (rho / rho.sum() * delta) @ x
        delta = asked.cumulant + asked.continuation * (x_next @ weights) - x @ weights
        seed = seed_for(0, 1, "batches", *pair, iterations)
        for name in study.methods:
            correction, sizes = NAMED[name].make(largest), []
            draws = draw(correction, rho, window=300, batch_size=16, updates=50, seed=seed)
            for batch in draws.rows:
                w, g, signed = dumb.weigh(correction, rho[batch], rho), np.zeros(x.shape[1]), 0.0
                for i in range(16):
                    g += w[i] * delta[batch[i]] * x[batch[i]]
                    signed += w[i] * delta[batch[i]]
                sizes.append([np.abs(g).sum(), np.sqrt((g**2).sum()), signed])
            expected = np.var(sizes, axis=0, ddof=1)
            np.testing.assert_allclose(measured[name][row], expected, rtol=1e-9)
            if iterations and domain != "star":
                assert len(set(expected.round(9))) == 3  # far from each other


def test_methods_without_mini_batches_have_no_update_variance():
    with pytest.raises(ValueError, match="WIS-Optimal makes no updates from weighed"):
        VarianceStudy("v", methods=("WIS-Optimal",))
    with pytest.raises(ValueError, match="On-policy has data of its own"):
        VarianceStudy("v", methods=("On-policy",))
    with pytest.raises(ValueError, match="Sarsa makes no updates from weighed mini-batches"):
        VarianceStudy("v", methods=("Sarsa",))
