"""The result of estimating a behaviour: probabilities, a policy, and how good they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.check import support_of
from gvf.behaviour.reliability import Reliability
from gvf.behaviour.rows import LogRows, as_actions
from gvf.behaviour.scores import Scores
from gvf.behaviour.support import Support
from gvf.common.arrays import Array, Floats
from gvf.log import Log
from gvf.policy import DiscretePolicy, Policy
from gvf.transition import ESTIMATED, Transitions, nan_rows


@dataclass(frozen=True, eq=False, repr=False)
class EstimatedBehaviour:
    """The estimated behaviour of a log; :func:`gvf.estimate_behaviour` makes one.

    Attributes:
        source: the log that it was estimated from.
        model: the name of the model.
        folds: the number of folds; 1 if the estimate is not cross-fitted.
        policy: the policy of a model of all episodes, to be used as ``behaviour=``. Reports say
            that its ratios are estimated. For rows of the log itself, :attr:`log` is better.
        temperatures: the temperature of each fold's model, above 1 if it was too sure of itself.
        scores: the scores on left-out episodes: ``log_loss``, ``brier`` and others.
        fold_of: the fold of each episode of the log, by its number.
        fold_policies: the policy that judged each fold, which has not seen its episodes.
        rows: the rows that the models were fitted to and judged on.
        warnings: sentences about what is wrong with the log.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> walks = [
        ...     {"state": rng.integers(4, size=11), "action": rng.integers(2, size=10)}
        ...     for _ in range(100)
        ... ]
        >>> log = gvf.read(walks, ends="truncated", quiet=True)
        >>> gvf.estimate_behaviour(log)
        EstimatedBehaviour of 1,000 transitions in 100 episodes: counts, 5 folds by episode
          log loss           0.693 (0.692 to 0.695); the same frequencies everywhere: 0.692
          Brier score        0.5 (0.499 to 0.502)
          calibration error  0.0363 (0.017 to 0.0589); by chance 0.051
          temperature        1.08 to 20
          smallest           0.446
    """

    source: Log
    model: str
    folds: int
    policy: Policy
    temperatures: tuple[float, ...]
    scores: Scores
    fold_of: NDArray[np.int64]
    fold_policies: tuple[Policy, ...]
    rows: LogRows
    warnings: tuple[str, ...]

    @cached_property
    def log(self) -> Log:
        """The log with the estimated probabilities, which learners then use.

        The column is ``behaviour_probability``, or ``behaviour_log_probability`` for continuous
        actions. The column ``behaviour_is_estimated`` marks them, also in files.
        """
        return self.source.with_columns(self._columns, origin=f"estimated by {self.model}")

    def _columns(self, batch: Transitions) -> dict[str, Array | None]:
        discrete = self.rows.count is not None
        name, other = "behaviour_probability", "behaviour_log_probability"
        if not discrete:
            name, other = other, name
        return {
            other: None,
            name: self._likelihood(batch, logs=not discrete),
            ESTIMATED: np.ones(len(batch), bool),
        }

    def _likelihood(self, batch: Transitions, *, logs: bool) -> Floats:
        """Return mu(a|s) of transitions, or its logarithm, by models that have not seen them."""
        out = np.full(len(batch), np.nan)
        good = ~(nan_rows(batch["state"]) | nan_rows(batch["action"]))
        fold = self.fold_of[batch["episode"]]
        for k, policy in enumerate(self.fold_policies):
            own = good & (fold == k)
            if own.any():
                rate = policy.log_probability if logs else policy.probability
                actions = as_actions(batch["action"][own], self.rows.count)
                out[own] = rate(batch["state"][own], actions)
        return out

    def probabilities(self, batch: Transitions) -> Floats:
        """Return the probability of every action in each state of the log's transitions [m, A].

        They are cross-fitted like the log's own. Only for discrete actions.
        """
        if self.rows.count is None:
            raise ValueError("the actions are continuous, so only densities of actions are known")
        out = np.full((len(batch), self.rows.count), np.nan)
        good, fold = ~nan_rows(batch["state"]), self.fold_of[batch["episode"]]
        for k, policy in enumerate(self.fold_policies):
            assert isinstance(policy, DiscretePolicy)
            own = good & (fold == k)
            if own.any():
                out[own] = policy.probabilities(batch["state"][own])
        return out

    def reliability(self, path: str | os.PathLike[str] | None = None) -> Reliability:
        """Return how reliable the probabilities are; write the picture to a file if it is named."""
        found = self.scores.reliability
        if path is not None:
            found.save(path)
        return found

    def support(self, target: Policy, **options: Any) -> Support:
        """Return how well the behaviour covers a target policy; see :func:`gvf.support`."""
        return support_of(self.log, target, self._laws, **options)

    def _laws(self, batch: Transitions) -> list[tuple[NDArray[Any], Policy]]:
        """Return the rows of each fold among transitions, with the policy that judges them."""
        fold = self.fold_of[batch["episode"]]
        found = [(np.flatnonzero(fold == k), p) for k, p in enumerate(self.fold_policies)]
        return [(rows, policy) for rows, policy in found if len(rows)]

    def __repr__(self) -> str:
        found, log = self.scores, self.source
        folds = f"{self.folds} folds by episode" if self.folds > 1 else "not cross-fitted"
        error = found.reliability
        everywhere = "frequencies" if self.rows.count is not None else "Gaussian"
        low, high = (f"{t:.3g}" for t in (min(self.temperatures), max(self.temperatures)))
        sampled = f", judged on {found.rows:,}" if found.rows + self.rows.missing < len(log) else ""
        rows = [
            ("log loss", f"{found.log_loss}; the same {everywhere} everywhere: "
             f"{found.constant:.3g}"),
            ("Brier score", "" if found.brier is None else str(found.brier)),
            ("calibration error", f"{error.error}; by chance {error.by_chance:.2g}"),
            ("temperature", low if low == high else f"{low} to {high}"),
            ("smallest", "" if found.smallest is None else f"{found.smallest:.3g}"),
        ]  # fmt: skip
        lines = [
            f"EstimatedBehaviour of {len(log):,} transitions in {len(log.numbers):,} episodes"
            f"{sampled}: {self.model}, {folds}",
            *(f"  {name:17}  {text}" for name, text in rows if text),
            *(f"  WARNING: {warning}" for warning in (*self.warnings, *self.doubts)),
        ]
        return "\n".join(fill(line, 92, subsequent_indent="    ") for line in lines)

    @property
    def doubts(self) -> list[str]:
        """Sentences about scores that are not good."""
        found, told = self.scores, []
        error = found.reliability
        if error.error.value > error.limit and not error.error.low <= error.by_chance:
            told.append(
                "The calibration error is larger than chance explains: look at .reliability(), and "
                "try another model or features."
            )
        if found.log_loss.low > found.constant:
            told.append(
                "The same probabilities in every state would do better: the model is too rich for "
                "this log."
            )
        return told
