"""The behaviour of a log, estimated: how likely each action was, if nobody has written it down.

The episodes are divided into folds. For each fold a model is fitted to the other folds, and gives
the probabilities of this fold's actions: no row is judged by a model that has seen its episode. A
model that has would find the actions it remembers too likely, and ratios too small. Within the
other folds a quarter of the episodes is set apart once, to find the temperature of the model
(:mod:`gvf.behaviour.calibration`). A last model, of all episodes, is the policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

import numpy as np

from gvf.behaviour import calibration
from gvf.behaviour.behaviour_models import Counts, Model, Normals
from gvf.behaviour.behaviour_rows import LogRows, rows_of
from gvf.behaviour.behaviour_scores import scored
from gvf.behaviour.classifiers import Classifier, Logistic, as_model
from gvf.behaviour.estimated_behaviour import EstimatedBehaviour
from gvf.common.arrays import Array, Bools
from gvf.common.checks import brief, whole
from gvf.common.fields import as_matrix
from gvf.common.progress import progress_of
from gvf.findings import Code, Finding
from gvf.log import Log
from gvf.policies import Policy

ModelName = Literal["counts", "logistic", "sklearn", "gaussian"]
_ROWS_PER_STATE = 10
"""The mean number of visits from which on states are counted by default."""
_SET_APART = 4
"""One of so many episodes is set apart to find a temperature."""


def estimate_behaviour(
    log: Log,
    *,
    model: ModelName | Model | Any = None,
    folds: int = 5,
    calibrate: bool = True,
    features: Any = None,
    actions: int | None = None,
    rows: int = 100_000,
    seed: int = 0,
    progress: bool | None = None,
) -> EstimatedBehaviour:
    """Estimate the probabilities with which the actions of a log were chosen.

    Ratios need them, and many logs lack them. The estimate is cross-fitted by episode, calibrated
    and judged: print the result. Its ``log`` has the probabilities as columns, marked as estimates,
    so that reports of learners say so; its ``policy`` can be given as ``behaviour=``. Errors of
    the estimate become errors of the ratios. What needs no ratios,
    :class:`gvf.updates.ExpectedSarsa`, needs no estimate.

    Args:
        log: the log. Probabilities that it has already are replaced.
        model: "counts" (smoothed, for integer states); "logistic" (regression) or "sklearn"
            (gradient-boosted trees), which need ``gvf[sklearn]``; "gaussian" for continuous
            actions; any classifier with ``fit`` and ``predict_proba``; an object of
            :mod:`gvf.behaviour`; or a function from states and actions to a
            :class:`gvf.policies.Policy`. By default counts for integer states that come again,
            logistic regression for others, and a Gaussian for continuous actions.
        folds: the number of folds of episodes. 1 fits one model to all rows, and judges it on the
            same; scores are then too good, and the result says so.
        calibrate: False to leave out the temperature.
        features: a feature map such as :class:`gvf.features.TileCoder`, or a function from states
            to numbers [m, f]; by default each model has its own.
        actions: the number of actions, if some are never taken or they are floating-point numbers.
        rows: the largest number of transitions to fit and judge with; a longer log gives a random
            sample of so many.
        seed: the seed of folds, samples and models.
        progress: False to show none. By default it is a bar in a terminal, and elsewhere a line now
            and then. True adds a line at the end there.

    Returns:
        An :class:`EstimatedBehaviour`.

    Raises:
        ValueError: if the log does not tell enough, such as one episode only; the message says why.
        ImportError: if a model needs an extra that is not installed.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> walks = []
        >>> for _ in range(200):
        ...     states = rng.integers(4, size=11)
        ...     right = rng.random(10) < 0.2 + 0.2 * states[:-1]
        ...     walks.append({"state": states, "action": right.astype(int), "terminated": False})
        >>> log = gvf.read_log(walks, ends="truncated", quiet=True)
        >>> behaviour = gvf.estimate_behaviour(log)
        >>> behaviour.policy.probabilities([0, 3])[:, 1].round(1)
        array([0.2, 0.8])
        >>> behaviour.log.columns[-3:]
        ('behaviour_probability', 'behaviour_is_estimated', 'episode')
    """
    whole("folds", folds, 1)
    whole("rows", rows, 2)
    if actions is not None:
        whole("actions", actions, 1)
    rng = np.random.default_rng(seed)
    log_rows = rows_of(log, rows, actions, rng)
    chosen = _model(model, features, log_rows)
    _check_enough(log, log_rows, folds)
    episodes = len(log.numbers)
    used = min(folds, episodes)
    fold = np.full(int(log.numbers.max()) + 1, -1)
    fold[log.numbers] = rng.permutation(episodes) % used
    # The last model, of all episodes, is the policy; with one fold it is the only one.
    folds_left_out = [*range(used), -1] if used > 1 else [-1]
    policies: list[Policy] = []
    temperatures: list[float] = []
    title, total = "fitting the behaviour", len(folds_left_out)
    with progress_of(title, total, show=progress, transient=True) as advance:
        for k, left_out in enumerate(folds_left_out):
            seen = fold[log_rows.episode] != left_out
            known = float(np.exp(np.mean(np.log(temperatures)))) if k == used else None
            policy, t = _fit(chosen, log_rows, seen, [seed, k], calibrate, known)
            policies.append(policy)
            temperatures.append(t)
            advance()
    fold_policies = policies[:used]
    return EstimatedBehaviour(
        source=log,
        model=chosen.name,
        folds=used,
        policy=policies[-1],
        temperatures=tuple(temperatures[:used]),
        scores=scored(fold_policies, fold, log_rows, rng),
        fold_of=fold,
        fold_policies=tuple(fold_policies),
        rows=log_rows,
        log_findings=tuple(_findings(log_rows, used, len(log.numbers))),
    )


def _fit(
    model: Model, rows: LogRows, seen: Bools, seed: list[int], calibrate: bool, known: float | None
) -> tuple[Policy, float]:
    """Fit a model to the rows that it may see, bool[m], and find its temperature if not known.

    The temperature is found by episodes set apart, with a model of the others.
    """
    rng, count = np.random.default_rng(seed), rows.count
    states, actions, episode = rows.states[seen], rows.actions[seen], rows.episode[seen]
    if not len(actions):
        raise ValueError("the episodes outside a fold have no rows: take fewer folds, or more rows")
    policy = model.estimate(states, actions, count, rng)
    t = 1.0 if known is None else known
    if calibrate and known is None:
        names = np.unique(episode)
        apart = rng.permutation(names)[: len(names) // _SET_APART or 1]
        out = np.isin(episode, apart)
        if len(names) > 1:
            inner = model.estimate(states[~out], actions[~out], count, rng)
            calibration.estimated(inner, count, int((~out).sum()))  # raises if it does not fit
            t = calibration.temperature(inner, int((~out).sum()), states[out], actions[out])
    return calibration.estimated(policy, count, len(actions), t), t


def _model(model: Any, features: Any, rows: LogRows) -> Model:
    """Return the model by its name, as it is, or by default."""
    discrete = rows.count is not None
    if model is None:
        model = "gaussian" if not discrete else _default(rows, features)
    if not isinstance(model, str):
        return as_model(model, features)
    names: Mapping[str, Any] = {
        "counts": Counts,
        "logistic": Logistic,
        "sklearn": Classifier,
        "gaussian": Normals,
    }
    if model not in names:
        raise ValueError(f"model must be one of {', '.join(map(repr, names))}; got {brief(model)}")
    if (model == "gaussian") == discrete:
        kind, other = ("discrete", "continuous")[:: 1 if discrete else -1]
        fitting = [repr(name) for name in names if (name == "gaussian") != discrete]
        raise ValueError(
            f"model={model!r} is for {other} actions, and those of the log are {kind}: "
            f"take {', '.join(fitting)}"
        )
    return names[model](features=features)


def _default(rows: LogRows, features: Any) -> ModelName:
    """Return "counts" for integer states that come again, and "logistic" for others."""
    states: Array = rows.states
    if features is not None or states.dtype.kind not in "iu":
        return "logistic"
    if states.ndim == 1:
        return "counts"
    distinct = len(np.unique(states.reshape(len(states), -1), axis=0))
    return "counts" if _ROWS_PER_STATE * distinct <= len(states) else "logistic"


def _check_enough(log: Log, rows: LogRows, folds: int) -> None:
    """Raise ValueError if the log cannot tell a behaviour."""
    if len(log.numbers) == 1 and folds > 1:
        raise ValueError(
            f"{log.source}: the log has one episode, and cross-fitting leaves out whole episodes; "
            "folds=1 fits and judges one model on the same rows"
        )
    if rows.count is not None and len(rows.taken) == 1:
        (only,) = rows.taken.tolist()
        raise ValueError(
            f"{log.source}: every action is {only}, so there is nothing to estimate; if that is "
            f"the policy, give learners behaviour=gvf.policies.Always({only}, actions=...)"
        )


def _findings(rows: LogRows, folds: int, episodes: int) -> Iterator[Finding]:
    """Yield the findings about the log."""
    if folds == 1:
        yield Finding(Code.NOT_CROSS_FITTED, "warning")
    elif episodes < 20:
        yield Finding(Code.ROUGH_INTERVALS, "warning", {"episodes": episodes})
    if rows.missing:
        yield Finding(Code.MISSING_ROWS, "warning", {"rows": rows.missing})
    states = as_matrix(rows.states)
    if (states == states[:1]).all():
        yield Finding(Code.EQUAL_STATES, "warning")
    if rows.count is not None:
        never = sorted({*range(rows.count)} - {*rows.taken.tolist()})
        if never:
            yield Finding(Code.ACTIONS_NEVER_TAKEN, "warning", {"actions": never})
