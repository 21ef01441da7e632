"""Studies of update variance: against the formula and against a dumb simulation."""

from itertools import product

import dumb
import numpy as np
import pytest

from gvf.window.draw_batches import draw_batches as draw
from gvf_lab import domain as domains
from gvf_lab.study import NAMED, VarianceStudy, run_variance
from gvf_lab.study.base_study import seed_for
from gvf_lab.study.study_loop import experience_of
from gvf_lab.study.variance_study import update_sizes


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


def closed_form(rho, delta, x, k):
    """The traces V(IS|B), V(BC-IR|B), V(IR|B) for ratios [n], TD errors [n] and features [n, d]."""
    g, r = (delta**2) * (x**2).sum(axis=1), rho.mean()
    center = (((rho * delta) @ x / len(rho)) ** 2).sum()
    bc = (r * (rho * g).mean() - center) / k
    return {"IS": ((rho**2 * g).mean() - center) / k, "BC-IR": bc, "IR": bc / r**2}


def test_the_trace_of_all_possible_batches_is_that_of_the_formula():
    """Exactly, for three transitions and batches of two, each of them as often as it is likely."""
    chain, rng = domains.get("markov-chain"), np.random.default_rng(1)
    path = chain.walk(chain.behaviour("easy"), ["easy"], 3, seed_for(0, 0))
    asked, weights = path.signals["easy"], rng.normal(size=(10, 1))
    rho = asked.ratio
    assert set(rho.round(9)) == {0.2, 1.8}
    x, after = np.eye(10)[path.x[:, 0]], weights[path.next_state, 0]
    delta = asked.cumulant + asked.continuation * after - x @ weights[:, 0]
    expected = closed_form(rho, delta, x, k=2)
    # A slot of ratio 1.8 stands nine times where one of ratio .2 stands once.
    by_ratio = np.repeat(np.arange(3), np.rint(rho / 0.2).astype(int))
    for name, value in expected.items():
        slots = np.arange(3) if name == "IS" else by_ratio
        rows = np.array(list(product(slots, repeat=2)))
        w = {"IS": rho[rows], "IR": np.ones(rows.shape), "BC-IR": np.full(rows.shape, rho.mean())}
        sizes = np.empty((len(rows), 3))
        squares = update_sizes(weights, experience_of(path, "easy"), rows, w[name] / 2, sizes)
        assert squares / len(rows) == pytest.approx(value, rel=1e-12), name


def test_the_trace_is_that_of_the_formula():
    """The mean quotient of measured trace and formula is 1, over 40 buffers of 2000 transitions.

    Each of the six comparisons is a t test with 39 degrees of freedom. |t| > 4 has a probability of
    .0003, so all six together pass by chance alone with 99.8 %.
    """
    study = VarianceStudy("v", methods=("IS", "BC-IR", "IR"), pairs=(("hard", "hard"),),
                          buffer=2000, iterations=(0, 30), batches=2000, runs=40)  # fmt: skip
    chain = domains.get("markov-chain")
    quotients = {(name, row): [] for name in study.methods for row in (0, 1)}
    for task in study.tasks():
        measured = run_variance(task)
        seed = seed_for(0, task.run, "walk", "hard")
        path = chain.walk(chain.behaviour("hard"), ["hard"], 2000, seed)
        state, asked = path.x[:, 0], path.signals["hard"]
        values, share = np.zeros(10), asked.ratio / asked.ratio.sum()
        for row, updates in enumerate(study.iterations):
            for _ in range(updates):
                delta = (
                    asked.cumulant + asked.continuation * values[path.next_state] - values[state]
                )
                values = values + np.bincount(state, share * delta, 10)
            delta = asked.cumulant + asked.continuation * values[path.next_state] - values[state]
            for name, value in closed_form(asked.ratio, delta, np.eye(10)[state], k=16).items():
                quotients[name, row].append(measured[name][row, 3] / value)
    for at, found in quotients.items():
        spread = np.std(found, ddof=1) / 40**0.5
        assert spread < 0.03, at  # so a factor of 1.12 is found
        assert abs(np.mean(found) - 1.0) < 4.0 * spread, at


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
            correction, sizes, updates = NAMED[name].make(largest), [], []
            draws = draw(correction, rho, window=300, batch_size=16, updates=50, seed=seed)
            for batch in draws.rows:
                w, g, signed = dumb.weigh(correction, rho[batch], rho), np.zeros(x.shape[1]), 0.0
                for i in range(16):
                    g += w[i] * delta[batch[i]] * x[batch[i]]
                    signed += w[i] * delta[batch[i]]
                sizes.append([np.abs(g).sum(), np.sqrt((g**2).sum()), signed])
                updates.append(g)
            trace = np.trace(np.cov(np.array(updates), rowvar=False))
            expected = np.append(np.var(sizes, axis=0, ddof=1), trace)
            np.testing.assert_allclose(measured[name][row], expected, rtol=1e-9)
            if iterations and domain != "star":
                assert len(set(expected.round(9))) == 4  # far from each other


def test_methods_without_mini_batches_have_no_update_variance():
    with pytest.raises(ValueError, match="WIS-Optimal makes no updates from weighed"):
        VarianceStudy("v", methods=("WIS-Optimal",))
    with pytest.raises(ValueError, match="On-policy has data of its own"):
        VarianceStudy("v", methods=("On-policy",))
    with pytest.raises(ValueError, match="Sarsa makes no updates from weighed mini-batches"):
        VarianceStudy("v", methods=("Sarsa",))
