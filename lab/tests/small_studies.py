"""Settings of small studies, and their errors computed by the dumb learner."""

import dumb
import numpy as np

import gvf
from gvf_lab import domain as domains
from gvf_lab.study.base_study import seed_for
from gvf_lab.study.task import TaskInputs

CHAIN = {"domain": "markov-chain", "pairs": (("hard", "hard"),)}
ROOMS = {"domain": "four-rooms", "pairs": (("favoured-down", "random-state"),)}
TILES = {
    "domain": "continuous-four-rooms",
    "pairs": (("favoured-down", "uniform"),),
    "evaluation_states": 20,
    "measure_every": 7,
}
FIXED = {**CHAIN, "pairs": (("easy", "easy"),), "steps": 300, "updates": 20}
ONLINE = {"steps": 90, "window": 40, "warm_up": 10, "gaps": (4,)}


def dumb_errors(task, name, lane):
    """One lane of one method of a task: dense vectors, the formulas, and every measurement."""
    study, bench, method = task.study, TaskInputs(task), task.study.method(name)
    path = bench.on_policy if method.on_policy else bench.off_policy
    asked, domain = path.signals[task.question], bench.domain
    assert isinstance(domain, domains.CellDomain)
    ratio, pi = asked.ratio, domain.table(domain.target(task.question))
    actions = pi.shape[1]

    def cells(places):
        return places if places.ndim == 1 else (places // 1 @ [11, 1]).astype(int)

    def vectors(x, share):
        rows = np.zeros((len(x), domain.features.size))
        for row, active in zip(rows, x, strict=True):
            row[active] = 1.0
        return np.einsum("mb,mf->mbf", share, rows).reshape(len(x), -1)

    one = np.ones((len(path.action), 1))
    share, share_next, states_share = one, one, np.ones((len(bench.truth.states), 1))
    if method.update in ("sarsa", "expected sarsa"):
        share, share_next = np.eye(actions)[path.action], pi[cells(path.next_state)]
        if method.update == "sarsa":
            seed = seed_for(study.seed, task.run, "next action", task.question, task.behaviour)
            for row, u in zip(
                share_next, np.random.default_rng(seed).random(len(one)), strict=True
            ):
                row[:] = np.eye(actions)[next(a for a in range(actions) if u < row[: a + 1].sum())]
        states_share = pi[cells(bench.truth.states)]
    x, x_next = vectors(path.x, share), vectors(path.x_next, share_next)
    states = vectors(domain.features(bench.truth.states), states_share)
    kind = {"wis-td": "wis_td"}.get(method.update, study.update)
    constants = {"u0": lane[0], "eta": lane[1]} if kind == "wis_td" else {"alpha": lane}
    if kind in ("tdc", "tdrc"):
        constants = {**constants, "ratio": 1.0, "beta": 1.0 if kind == "tdrc" else 0.0}
        kind = "tdc"
    update = dumb.DumbUpdate(kind=kind, rows=x.shape[1], **constants)
    correction = method.make(domain.largest_ratio(task.question, task.behaviour))
    draws = bench.draws(correction, on_policy=method.on_policy)
    if correction.emphatic:  # the plain form, with rho F in place of rho
        none, ones = np.zeros(len(ratio), bool), np.ones(len(ratio))
        ratio = ratio * dumb.follow_on(ratio, asked.continuation, ones, none)
        correction = getattr(gvf.corrections, type(correction).__name__.removeprefix("Emphatic"))()

    errors, done = [], 0
    for t in range(1, (study.updates or study.steps) + 1):
        due = t if study.updates else max(t - study.warm_up, 0) // task.gap
        while done < due:
            begin, end = draws.first[done], draws.last[done]
            whole = isinstance(dumb.masses(correction, ratio), str)
            rows = np.arange(begin, end) if whole else draws.rows[done]
            if rows[0] >= 0:
                w = dumb.weigh(correction, ratio[rows], ratio[begin:end])
                signals = asked.cumulant[rows], asked.continuation[rows]
                update.apply(x[rows], x_next[rows], *signals, w)
            done += 1
        if t % study.measure_every == 0:
            difference = np.abs(states @ update.weights - bench.truth.values)
            squared = study.error == "root mean square"
            errors.append(np.sqrt((difference**2).mean()) if squared else difference.mean())
    return np.array(errors)
