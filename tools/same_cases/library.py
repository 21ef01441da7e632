"""The cases of the library: each function turns the data of a case into calls of its present API.

A case uses no domain of ours: its rows come from NumPy alone. After a renaming only this file and
``laboratory.py`` change; the data of the cases, and with them the names of the results, stay.
"""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import gvf

SPACES = (
    "gvf", "gvf.online", "gvf.policies", "gvf.features", "gvf.corrections", "gvf.updates",
    "gvf.truth", "gvf.neural",
)  # fmt: skip
"""The modules in which a name of the cases may be public."""
ROOT = Path(__file__).resolve().parents[2]
STATES, ACTIONS, LENGTH, ALONE = 12, 3, 1200, 300
"""The sizes of the streams, and how many rows a learner gets that takes them one by one."""
if not Path(gvf.__file__ or "").is_relative_to(ROOT):
    raise ImportError(f"gvf comes from {gvf.__file__}, not from {ROOT}")
OPTIONS: dict[str, Any] = {"window": 200, "batch_size": 8, "update_every": 3, "warm_up": 20}
"""The options of learners with a window."""
Outputs = dict[str, Any]


def public(name: str) -> Any:
    """Return a public object by its name, whichever module has it."""
    for space in SPACES:
        with contextlib.suppress(ImportError):
            module = import_module(space)
            if name in getattr(module, "__all__", ()) or hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"no public name {name} in {', '.join(SPACES)}")


def part(description: Any) -> Any:
    """Make a correction, an update or an algorithm from its name and arguments."""
    name, arguments = description
    parts = {
        key: part(value) if isinstance(value, list) and isinstance(value[0], str) else value
        for key, value in arguments.items()
    }
    return public(name)(**parts)


# Streams


def of_tiles(states: Any) -> np.ndarray:
    """Return the target's probabilities in the stream "tiles", [m, ACTIONS]."""
    states = np.asarray(states, float).reshape(-1, 2)
    odds = np.column_stack([states[:, 0], states[:, 1], 1.0 - states[:, 0]])
    return odds / odds.sum(axis=1, keepdims=True)


def goes_on(transitions: Any) -> np.ndarray:
    """Return a continuation that ends in the corner of the stream "tiles", [m]."""
    return np.where(np.asarray(transitions["next_state"])[:, 0] > 0.9, 0.0, 0.95)


def powers(states: Any) -> np.ndarray:
    """Return dense features of states [m] or [m, 2], [m, 6]."""
    states = np.asarray(states, float).reshape(len(states), -1) / 10.0
    x, y = states[:, 0], states[:, -1]
    return np.column_stack([np.ones(len(x)), x, y, x * y, np.sin(3.0 * x), np.cos(5.0 * y)])


@cache
def target_table() -> np.ndarray:
    """Return the target's probabilities in the stream "table"."""
    return np.random.default_rng(11).dirichlet(np.ones(ACTIONS), STATES)


@cache
def walk(stream: str, missing: bool, length: int = LENGTH) -> dict[str, np.ndarray]:
    """Return the columns of a stream; with `missing`, some rows have a NaN."""
    rng = np.random.default_rng(5)
    shift = rng.dirichlet(np.full(STATES, 0.4), (STATES, ACTIONS))
    behaviour = rng.dirichlet(np.full(ACTIONS, 2.0), STATES)
    names = ("state", "action", "reward", "next_state", "terminated", "truncated")
    rows: dict[str, list[Any]] = {name: [] for name in names}
    probability: list[float] = []
    state: Any = 0 if stream == "table" else np.array([0.5, 0.5])
    for _ in range(length):
        if stream == "table":
            odds = behaviour[state]
        else:
            odds = np.array([0.5 - 0.3 * state[0], 0.2 + 0.3 * state[0], 0.3])
        action = int(np.searchsorted(np.cumsum(odds)[:-1], rng.random(), side="right"))
        if stream == "table":
            following: Any = int(rng.choice(STATES, p=shift[state, action]))
            reward = float(following % 5) - 1.0 + 0.1 * rng.standard_normal()
        else:
            step = np.array([[0.1, 0.0], [-0.08, 0.05], [0.0, -0.1]])[action]
            following = np.clip(state + step + 0.03 * rng.standard_normal(2), 0.0, 1.0)
            reward = float(following[0] - following[1] ** 2)
        ends = rng.random()
        values = (state, action, reward, following, bool(ends < 0.06), bool(0.06 <= ends < 0.08))
        for name, value in zip(names, values, strict=True):
            rows[name].append(value)
        probability.append(float(odds[action]))
        state = following
        if ends < 0.08:
            state = int(rng.integers(STATES)) if stream == "table" else rng.random(2)
    columns = {name: np.asarray(values) for name, values in rows.items()}
    columns["behaviour_probability"] = np.array(probability)
    columns["interest"] = 0.5 + rng.random(length)
    if missing:
        places = np.unique([*rng.choice(length, 40, replace=False), 63, 64, 299, 999, 1000])
        columns["behaviour_probability"][places[::2]] = np.nan
        if stream == "tiles":
            columns["state"][places[1::2]] = np.nan
    return columns


def question(stream: str, **more: Any) -> Any:
    """Return the question about a stream."""
    if stream == "table":
        policy = public("Table")(target_table())
        return gvf.GVF(policy, "reward", 0.9, interest="interest", **more)
    policy = public("Function")(of_tiles, actions=ACTIONS)
    return gvf.GVF(policy, "reward", goes_on, interest="interest", **more)


def features(stream: str) -> Any:
    """Return the representation of the states of a stream."""
    if stream == "table":
        return public("OneHot")(STATES)
    return public("TileCoder")([0.0, 0.0], [1.0, 1.0], tiles=4, tilings=8)


def dense() -> Any:
    """Return dense features for the states of either stream."""
    return public("Dense")(6, powers)


def probes(stream: str) -> np.ndarray:
    """Return the states for which a case predicts."""
    if stream == "table":
        return np.arange(STATES)
    return np.random.default_rng(3).random((16, 2))


def feed(learner: Any, columns: dict[str, np.ndarray], rows: int, first: int = 0) -> None:
    """Give the rows of a stream to a learner, in batches or one by one."""
    length = len(columns["reward"])
    if rows > 1:
        for start in range(first, length, rows):
            batch = {name: values[start : start + rows] for name, values in columns.items()}
            learner.observe(gvf.Transitions(**batch))
        return
    plain = ("state", "action", "reward", "next_state", "terminated", "truncated")
    for i in range(first, min(first + ALONE, length)):
        more = {name: values[i] for name, values in columns.items() if name not in plain}
        learner.observe(*(columns[name][i] for name in plain), **more)


def nan_rule(missing: bool) -> str:
    """Return the option for rows with a NaN."""
    return "skip" if missing else "error"


def answers_of(learner: Any, states: Any) -> Outputs:
    """Return the weights and predictions of a learner, and what its report counts."""
    report = learner.report()
    counts = [report.steps, report.missing, report.mean_ratio, report.effective_sample_size]
    counts += [getattr(report, name) for name in ("updates", "skipped") if hasattr(report, name)]
    return {
        "weights": np.array(learner.weights),
        "predictions": learner.predict(states),
        "counts": np.array(counts, float),
        "largest predictions": np.array(report.largest_predictions),
    }


# Learners


def make_learner(update: Any, correction: Any, stream: str, **more: Any) -> Any:
    """Return a learner with linear values and a window."""
    parts = question(stream), features(stream), part(update), part(correction)
    options: dict[str, Any] = OPTIONS | {"seed": 7} | more
    return gvf.Learner(*parts, **options)


def learner(
    update: Any, correction: Any, stream: str, rows: int, n_step: int, missing: bool
) -> Outputs:
    """Run a learner with a window over a stream."""
    rule: Any = nan_rule(missing)
    learner = make_learner(update, correction, stream, n_step=n_step, on_nan=rule)
    feed(learner, walk(stream, missing), rows)
    return answers_of(learner, probes(stream))


def online(algorithm: Any, stream: str, rows: int, missing: bool) -> Outputs:
    """Run an online learner over a stream."""
    rule: Any = nan_rule(missing)
    parts = question(stream), features(stream), part(algorithm)
    learner = gvf.OnlineLearner(*parts, on_nan=rule)
    feed(learner, walk(stream, missing), rows)
    return answers_of(learner, probes(stream))


def least_squares(correction: Any, stream: str, rows: int, missing: bool) -> Outputs:
    """Solve least squares over a stream."""
    rule: Any = nan_rule(missing)
    parts = question(stream), features(stream), part(correction)
    learner = gvf.LSTDLearner(*parts, on_nan=rule)
    feed(learner, walk(stream, missing), rows)
    report = learner.report()
    numbers = [report.features, report.condition, report.is_singular, report.ridge, report.residual]
    return answers_of(learner, probes(stream)) | {"equations": np.array(numbers, float)}


def window_least_squares(correction: Any) -> Outputs:
    """Solve least squares for a batch at once."""
    learner = gvf.LSTDLearner(question("table"), features("table"), part(correction))
    learner.observe(gvf.Transitions(**walk("table", False)))
    return {"weights": learner.weights}


def fit(correction: Any, order: Any, n_step: int) -> Outputs:
    """Fit a learner to a log in two calls, the second of which resumes."""
    learner = make_learner(["TD", {"step_size": 0.05}], correction, "table", n_step=n_step)
    log = read_table("table")
    learner.fit(log, epochs=2, order=order, seed=3, progress=False)
    first = answers_of(learner, probes("table"))
    learner.fit(log, epochs=1, order=order, seed=4, progress=False)
    return first | {f"again, {k}": v for k, v in answers_of(learner, probes("table")).items()}


def learn(environments: int, n_step: int) -> Outputs:
    """Learn from an environment of Gymnasium, or from several together."""
    asked = gvf.GVF(public("Favour")(1, 0.8, actions=2), "reward", 0.9)
    coder = public("TileCoder")([-2.4, -3, -0.2, -3], [2.4, 3, 0.2, 3], tiles=2, tilings=8)
    learner = gvf.Learner(
        asked, coder, part(["TD", {"step_size": 0.05}]), part(["IR", {}]),
        behaviour=public("Uniform")(2), n_step=n_step, seed=7, **OPTIONS,
    )  # fmt: skip
    together = gymnasium.make_vec("CartPole-v1", num_envs=environments)
    env = gymnasium.make("CartPole-v1") if environments == 1 else together
    learner.learn(env, steps=600, seed=2, progress=False)
    return answers_of(learner, np.random.default_rng(1).normal(0, 0.1, (8, 4)))


# Hordes


def ask_many(stream: str, policies: dict[str, Any]) -> list[Any]:
    """Return two cumulants and two continuations of each policy."""
    return gvf.question_grid(policies, {"reward": "reward", "interest": "interest"}, [0.0, 0.9])


def policies_of(stream: str) -> dict[str, Any]:
    """Return three policies for the states of a stream."""
    main = question(stream).policy
    return {
        "target": main,
        "fixed": public("Fixed")([0.2, 0.5, 0.3]),
        "mixed": public("Mixture")(main, public("Uniform")(ACTIONS), 0.5),
    }


def horde_outputs(horde: Any, states: Any) -> Outputs:
    """Return all weights and predictions of a horde, and the numbers of its report."""
    report = horde.report()
    return {
        "names": list(horde.names),
        "weights": np.concatenate([horde.weights(name).ravel() for name in horde.names]),
        "predictions": horde.predict(states),
        "mean ratio": report.mean_ratio,
        "effective sample size": report.effective_sample_size,
        "UDE": report.ude,
        "RUPEE": np.zeros(0) if report.rupee is None else report.rupee,
        "variance explained": report.variance_explained,
        "paused": sorted(report.paused),
        "diverged": sorted(report.diverged),
        "counts": [
            report.steps,
            report.updates,
            report.missing,
            dict(sorted(report.skipped.items())),
        ],
    }


def horde(horde: Any, correction: Any, rows: int, chunk: int | None, missing: bool) -> Outputs:
    """Run a horde over a stream; questions are removed and added in between."""
    options = dict(horde)
    kind, update = options.pop("features"), options.pop("update")
    if "dtype" in options and missing:
        chunk = 64
    stream = "tiles" if kind == "sparse" else "table"
    policies, rule = policies_of(stream), nan_rule(missing)
    first = ask_many(stream, {name: policies[name] for name in ("target", "fixed")})
    representation = features(stream) if kind == "sparse" else dense()
    many: Any = gvf.Horde(
        first, representation, part(update), part(correction), steps_per_call=chunk, on_nan=rule,  # pyright: ignore
        threads=2, seed=7, **OPTIONS, **options,
    )  # fmt: skip
    columns, half = walk(stream, missing), LENGTH // 2
    if rows == 1:
        half = 100
    feed(many, {name: values[:half] for name, values in columns.items()}, rows)
    outputs = {f"first, {k}": v for k, v in horde_outputs(many, probes(stream)).items()}
    many.remove([first[1].name, first[4].name, first[5].name])
    feed(many, {name: values[: half + 130] for name, values in columns.items()}, rows, half)
    many.add(ask_many(stream, {"mixed": policies["mixed"]}))
    rest = (
        {name: values[: half + 330] for name, values in columns.items()} if rows == 1 else columns
    )
    feed(many, rest, rows, half + 130)
    return outputs | horde_outputs(many, probes(stream))


def network(network: Any, correction: Any, rows: int, n_step: int, missing: bool) -> Outputs:
    """Run a learner or a horde with a network."""
    import torch

    from gvf.neural import NeuralHorde, NeuralLearner

    torch.set_num_threads(1)
    torch.manual_seed(0)
    rule: Any = nan_rule(missing)
    body = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU())
    optimiser = partial(torch.optim.Adam, lr=1e-2)
    options = {**OPTIONS, "update_every": 10, "seed": 7, "on_nan": rule}
    options |= {name: value for name, value in network.items() if name != "horde"}
    columns = walk("tiles", missing)
    columns = {name: values[:ALONE] for name, values in columns.items()}
    if network["horde"]:
        if n_step > 1:
            return {"none": "a horde of networks has no n-step updates"}
        asked = ask_many("tiles", policies_of("tiles"))
        learner: Any = NeuralHorde(asked, body, optimiser, part(correction), **options)
    else:
        whole = torch.nn.Sequential(*body, torch.nn.Linear(8, 1))
        asked = question("tiles")
        learner = NeuralLearner(asked, whole, optimiser, part(correction), n_step=n_step, **options)
    feed(learner, columns, rows)
    states = np.asarray(probes("tiles"), np.float32)
    return {"predictions": learner.predict(states), "steps": learner.steps}


# Draws


def law(correction: Any) -> Outputs:
    """Compute the masses and weights of a correction on fixed inputs."""
    rule, rng = part(correction), np.random.default_rng(8)
    ratios = np.array([0.0, 0.25, 1.0, 3.0, 5.5, *rng.exponential(1.0, 27)])
    if rule.trace is not None:
        ratios = np.stack([ratios, *([rng.exponential(2.0, len(ratios))] * (rule.rows - 1))])
    masses = np.asarray(rule.masses(ratios))
    outputs = {"masses": masses}
    for k in (1, 4, 16):
        rows = rng.integers(32, size=k)
        inputs = ratios[..., rows]
        p = masses[rows] if masses.ndim == 1 and len(masses) == 32 else None
        means = [float(ratios.ravel()[:32].mean())]
        if ratios.ndim > 1:
            means = [*ratios.mean(axis=1)]
        means += [float(masses.mean()) if masses.size else 1.0]
        outputs[f"weights of {k}"] = np.asarray(rule.weights(inputs, np.array(means), p))
    return outputs


def sampler() -> Outputs:
    """Draw from rings, a tree and uniformly, between insertions."""
    masses, draws = walk("table", False)["interest"], np.random.default_rng(3)
    ring, many = gvf.RatioRing(100, seed=3), gvf.RatioRing(100, questions=3, seed=3)
    tree = gvf.SumTree(100, seed=3)
    slots: dict[str, list[Any]] = {"ring": [], "several": [], "tree": [], "uniform": []}
    for start in range(0, 300, 30):
        rows = masses[start : start + 30]
        ring.extend(rows)
        many.extend(np.stack([rows, rows**2, np.ones(30)], axis=1))
        tree.set(np.arange(start, start + 30) % 100, rows)
        for name, structure in (("ring", ring), ("several", many), ("tree", tree)):
            slots[name].append(structure.sample(20))
        slots["uniform"].append((draws.random(20) * 100).astype(np.int64))
    outputs: Outputs = {name: np.asarray(several) for name, several in slots.items()}
    numbers = [ring.total, ring.mean, ring.max, ring.effective_sample_size, tree.total]
    return outputs | {"numbers": np.array(numbers, float)}


def tile_coder() -> Outputs:
    """Code states as tiles."""
    states = np.random.default_rng(2).random((50, 2))
    coders = {
        "regular": public("TileCoder")([0, 0], [1, 1], tiles=[3, 5], tilings=4),
        "default": public("TileCoder")([0, 0], [1, 1]),
    }
    return {name: np.asarray(coder(states)) for name, coder in coders.items()}


def diagnose(stream: str) -> Outputs:
    """Diagnose a window by arrays, by a learner, and by a horde."""
    rng = np.random.default_rng(4)
    ratios, updates = rng.exponential(1.0, 300), rng.standard_normal((300, 5))
    plain = gvf.diagnose(ratios, updates, batch_size=8, rng=np.random.default_rng(1))
    learner = make_learner(["TD", {"step_size": 0.05}], ["IR", {}], stream)
    feed(learner, walk(stream, False), 1000)
    by_learner = learner.diagnose(rng=np.random.default_rng(1))
    return {"arrays": numbers_of(plain), "learner": numbers_of(by_learner)}


def numbers_of(diagnosis: Any) -> Outputs:
    """Return the numbers of a diagnosis."""
    names = (
        "effective_sample_size", "emphatic_sample_size", "zero_ratios", "max_ratio", "max_share",
        "mean_ratio", "mean_ratio_error", "k_hat", "k_threshold", "bias_windows",
    )  # fmt: skip
    moments = {
        name: [float(x) for x in np.ravel([moment.variance.value, moment.variance.standard_error])]
        for name, moment in diagnosis.moments.items()
    }
    compared = diagnosis.comparison
    comparison = [compared.difference, compared.spread, compared.dependence, compared.correlation]
    numbers = {name: float(getattr(diagnosis, name)) for name in names}
    return {"numbers": numbers, "moments": moments, "comparison": comparison}


# Files


def saved(learner: str, missing: bool) -> Outputs:
    """Save a learner half way, load it, and go on with both."""
    rule: Any = nan_rule(missing)
    table = public("Table")(target_table())
    asked = gvf.GVF(table, "reward", 0.9, interest="interest")
    x, update = public("OneHot")(STATES), part(["TD", {"step_size": 0.05}])
    learned: Any
    if learner == "learner":
        learned = gvf.Learner(asked, x, update, n_step=3, on_nan=rule, seed=7, **OPTIONS)
    elif learner == "online":
        learned = gvf.OnlineLearner(asked, x, part(["TDLambda", {"step_size": 0.05}]), on_nan=rule)
    elif learner == "lstd":
        learned = gvf.LSTDLearner(asked, x, on_nan=rule)
    else:
        many = ask_many("table", {"target": table, "fixed": public("Fixed")([0.2, 0.5, 0.3])})
        learned = gvf.Horde(many, x, update, on_nan=rule, seed=7, **OPTIONS)
    columns, states = walk("table", missing), probes("table")
    feed(learned, {name: values[:600] for name, values in columns.items()}, 64)
    with tempfile.TemporaryDirectory() as folder:
        file, exported = Path(folder, "learner.gvf"), Path(folder, "predictor.gvf")
        learned.save(file)
        learned.export(exported)
        again, predictor = gvf.load(file), gvf.load(exported)
        outputs = {
            "saved": learned.predict(states),
            "loaded": again.predict(states),
            "exported": predictor.predict(states),
        }
    feed(learned, columns, 64, 600)
    feed(again, columns, 64, 600)
    return outputs | {"gone on": learned.predict(states), "loaded, gone on": again.predict(states)}


def read_table(stream: str, length: int = LENGTH, **more: Any) -> Any:
    """Return a stream as a log in memory."""
    columns = {**walk(stream, False, length)}
    columns["truncated"] = columns["truncated"].copy()
    columns["truncated"][-1] = not columns["terminated"][-1]
    return gvf.read_log(columns, quiet=True, **more)


def bootstrap(bootstrap: Any) -> Outputs:
    """Compute intervals by the bootstrap."""
    options = dict(bootstrap)
    kind, log = options.pop("learner"), read_table("table")
    asked, x, update = question("table"), features("table"), part(["TD", {"step_size": 0.1}])
    learner: Any
    if kind == "learner":
        learner = gvf.Learner(asked, x, update, seed=7, **OPTIONS)
    elif kind == "lstd":
        learner = gvf.LSTDLearner(asked, x)
    else:
        learner = gvf.Horde(ask_many("table", policies_of("table")), x, update, seed=7, **OPTIONS)
    intervals = gvf.bootstrap(
        learner, log, replicates=39, epochs=2, seed=1, progress=False, **options
    )
    point, low, high = intervals.predict(probes("table"))
    outputs: Outputs = {"point": point, "low": low, "high": high, "weights": intervals.weights}
    outputs |= {
        "drift": intervals.drift(probes("table")),
        "mean": np.array(intervals.mean(probes("table"))),
    }
    return outputs | {"counts": [intervals.episodes, intervals.updates, intervals.empty]}


def candidates() -> dict[str, Any]:
    """Return learners with different corrections and step sizes."""
    return {
        name: make_learner(["TD", {"step_size": [0.005, 0.1]}], [name, {}], "table")
        for name in ("IR", "WISMinibatch")
    }


def scores_of(judgement: Any) -> Outputs:
    """Return the numbers of a judgement."""
    scores = [
        [s.name, s.lane, s.score, list(s.difference), s.chance, s.standing]
        for s in judgement.scores
    ]
    values = {name: [float(x) for x in value] for name, value in judgement.values.items()}
    numbers = [
        judgement.effective_sample_size,
        judgement.k_hat,
        judgement.beyond,
        judgement.rewards,
    ]
    counts = [judgement.episodes, judgement.states, len(judgement.doubts)]
    return {"scores": scores, "values": values, "numbers": numbers, "counts": counts}


def judge(returns: Any) -> Outputs:
    """Judge learners on held-out episodes of a log."""
    train, held_out = read_table("table").split(0.3, seed=1)
    learners = candidates()
    for learner in learners.values():
        learner.fit(train, epochs=2, seed=1, progress=False)
    judgement = gvf.compare_learners(learners, held_out, returns=returns, replicates=200, seed=2)
    episodes = [train.numbers, held_out.numbers]
    return scores_of(judgement) | {"episodes": [np.asarray(part).tolist() for part in episodes]}


def select() -> Outputs:
    """Select one of several learners by cross-validation."""
    selection = gvf.select_learner(
        candidates(), read_table("table"), replicates=200, seed=2, progress=False
    )
    outputs = scores_of(selection.comparison) | {"best": [selection.best.name, selection.best.lane]}
    return outputs | {"predictions": selection.learner.predict(probes("table"))}


def behaviour(model: Any) -> Outputs:
    """Estimate who acted, and check how well that covers a target."""
    log = read_table("table", behaviour_probability=None)
    if model == "logistic":
        log = read_table("tiles", behaviour_probability=None)
    estimate: Any = gvf.estimate_behaviour(
        log, model=model, actions=ACTIONS, seed=1, progress=False
    )
    stream = "tiles" if model == "logistic" else "table"
    support = gvf.check_support(estimate.log, question(stream).policy, seed=1)
    numbers = [
        *support.mean_ratio, support.effective_sample_size, support.largest_ratio, support.k_hat,
        support.k_threshold,
    ]  # fmt: skip
    return {
        "probabilities": estimate.policy.probabilities(probes(stream)),
        "temperatures": np.array(estimate.temperatures),
        "folds": np.asarray(estimate.fold_of),
        "recorded": estimate.log.transitions()["behaviour_probability"],
        "support": np.array(numbers, float),
        "untried": {str(action): float(share) for action, share in support.untried.items()},
        "lost": {str(key): [float(x) for x in value] for key, value in support.lost.items()},
    }


def held_out_returns() -> Outputs:
    """Sample returns of a target policy in an environment of Gymnasium."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=True)
    asked = gvf.GVF(public("Favour")(2, 0.7, actions=4), "reward", 0.9)
    options = {"behaviour": public("Uniform")(4), "states": 30, "rollouts": 3, "seed": 1}
    sample = gvf.held_out_returns(env, asked, **options)
    return {"states": np.asarray(sample.states), "returns": sample.returns, "cut": sample.cut}


def log(source: str) -> Outputs:
    """Write a small log and read it again."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    columns = {**walk("tiles", False, 200)}
    rows = {"x": columns["state"][:, 0], "y": columns["state"][:, 1]}
    rows |= {name: columns[name] for name in ("action", "reward", "terminated", "truncated")}
    rows["pscore"] = columns["behaviour_probability"]
    rows["truncated"] = rows["truncated"].copy()
    rows["truncated"][-1] = not rows["terminated"][-1]
    names: dict[str, Any] = {"state": ["x", "y"], "behaviour_probability": "pscore", "quiet": True}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"log.{source}")
        origin: Any = path
        if source == "csv":
            pyarrow.csv.write_csv(pa.table(rows), path)
        elif source == "parquet":
            pyarrow.parquet.write_table(pa.table(rows), path)
        elif source == "npz":
            np.savez(path, allow_pickle=False, **rows)
        elif source == "columns":
            origin = rows
        else:
            ends = np.flatnonzero(rows["terminated"] | rows["truncated"]) + 1
            origin = [
                {name: values[a:b] for name, values in rows.items() if name not in ("x", "y")}
                | {"state": np.column_stack([rows["x"], rows["y"]])[[*range(a, b), b - 1]]}
                for a, b in zip([0, *ends[:-1]], ends, strict=True)
            ]
            for episode in origin:
                episode["terminated"] = bool(episode["terminated"][-1])
                episode["truncated"] = bool(episode["truncated"][-1])
            del names["state"]
        whole_log = gvf.read_log(origin, **names)
        whole = whole_log.transitions()
        outputs: Outputs = {name: whole[name] for name in sorted(whole.columns)}
        parts = whole_log.split(0.3, seed=1)
    return outputs | {
        "lengths": np.asarray(whole_log.lengths),
        "parts": [np.asarray(half.numbers).tolist() for half in parts],
    }


PLAIN = """\
[[question]]
name = "mostly to the right"
policy = {kind = "favour", action = 1, probability = 0.6}
cumulant = "reward"
continuation = 0.9

[log]
state = ["x", "speed", "angle", "spin"]
action = "push"
behaviour_probability = "probability"
episode = "run"
terminated = "fell"

[features]
kind = "tiles"
tiles = [2, 2, 4, 4]
tilings = 4

[learn]
corrections = ["IR", "IS"]
step_sizes = [0.01, 0.1]
"""


def command(*words: str) -> tuple[int, str]:
    """Run the command `gvf` in this process; return its status and what it printed."""
    main = import_module("gvf.cli").main
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            status = main([*words])
        except SystemExit as error:
            status = error.code
    return int(status or 0), printed.getvalue()


def as_text(html: str) -> str:
    """Return the text of a page, without versions, times, paths and pictures."""
    for pattern in (r"<(script|style|svg)\b.*?</\1>", r"<[^>]*>"):
        html = re.sub(pattern, "\n", html, flags=re.DOTALL)
    html = re.sub(r"\b\d+\.\d+\.\d+\S*", "VERSION", html)
    html = re.sub(r"\b(20\d\d-\d\d-\d\d)([T ]\d\d:\d\d\S*)?", "DATE", html)
    html = re.sub(r"\b[\d.]+ (s|min|h|seconds|minutes|hours)\b", "TIME", html)
    for folder in (str(ROOT), tempfile.gettempdir()):
        html = re.sub(rf"{re.escape(folder)}/\S*", "PATH", html)
    return "\n".join(line.strip() for line in html.splitlines() if line.strip())


def answer() -> Outputs:
    """Answer the question file of the examples, with all files that come of it."""
    import pyarrow.parquet as pq

    log, asked = ROOT / "examples/logs/cartpole.parquet", ROOT / "examples/logs/question.toml"
    with tempfile.TemporaryDirectory() as folder:
        status, _ = command("learn", str(log), str(asked), "--out", folder, "--workers", "1")
        table = pq.read_table(Path(folder, "predictions.parquet"))
        page = Path(folder, "report.html").read_text(encoding="utf-8")
        files = sorted(path.name for path in Path(folder).glob("*.gvf"))
        states = np.column_stack([table[n].to_numpy() for n in ("x", "speed", "angle", "spin")])
        learners = {
            f"learner {name}": gvf.load(Path(folder, name)).predict(states[:50]) for name in files
        }
    outputs: Outputs = {"status": status, "files": files, **learners}
    for name in table.column_names:
        outputs[f"column {name}"] = table[name].to_pylist()
    return outputs | {"page": as_text(page)}


def log_diagnosis() -> Outputs:
    """Diagnose a log by the command, with its page."""
    with tempfile.TemporaryDirectory() as folder:
        asked, page = Path(folder, "question.toml"), Path(folder, "page.html")
        asked.write_text(PLAIN, encoding="utf-8")
        log = str(ROOT / "examples/logs/cartpole.parquet")
        status, printed = command("diagnose", log, str(asked), "--out", str(page))
        text = page.read_text(encoding="utf-8")
    return {"status": status, "printed": as_text(printed), "page": as_text(text)}
