"""The result of estimating a behaviour: probabilities, a policy, and how good they are."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from textwrap import fill
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.behaviour_rows import LogRows, as_actions
from gvf.behaviour.behaviour_scores import Scores
from gvf.behaviour.reliability import Reliability
from gvf.behaviour.support import Support, support_of
from gvf.common.arrays import Array, Floats
from gvf.findings import Code, Finding, sentence
from gvf.log import Log
from gvf.policies import DiscretePolicy, Policy
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
        log_findings: the findings about the log.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> walks = [
        ...     {"state": rng.integers(4, size=11), "action": rng.integers(2, size=10)}
        ...     for _ in range(100)
        ... ]
        >>> log = gvf.read_log(walks, ends="truncated", quiet=True)
        >>> gvf.estimate_behaviour(log)
        EstimatedBehaviour of 1,000 transitions in 100 episodes: counts, 5 folds by episode
          log loss           0.693 (0.692 to 0.695); the same frequencies everywhere: 0.692
          Brier score        0.500 (0.499 to 0.502)
          calibration error  0.0363 (0.0170 to 0.0589); by chance 0.051
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
    log_findings: tuple[Finding, ...]

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
            in_fold = good & (fold == k)
            if in_fold.any():
                rate = policy.log_probability if logs else policy.probability
                actions = as_actions(batch["action"][in_fold], self.rows.count)
                out[in_fold] = rate(batch["state"][in_fold], actions)
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
            in_fold = good & (fold == k)
            if in_fold.any():
                out[in_fold] = policy.probabilities(batch["state"][in_fold])
        return out

    def reliability(self, path: str | os.PathLike[str] | None = None) -> Reliability:
        """Return how reliable the probabilities are; write the picture to a file if it is named."""
        reliability = self.scores.reliability
        if path is not None:
            reliability.save(path)
        return reliability

    def support(self, target: Policy, **options: Any) -> Support:
        """Return how well the behaviour covers a target policy; see :func:`gvf.check_support`."""
        return support_of(self.log, target, self._laws, **options)

    def _laws(self, batch: Transitions) -> list[tuple[NDArray[Any], Policy]]:
        """Return the rows of each fold among transitions, with the policy that judges them."""
        fold = self.fold_of[batch["episode"]]
        parts = [(np.flatnonzero(fold == k), p) for k, p in enumerate(self.fold_policies)]
        return [(rows, policy) for rows, policy in parts if len(rows)]

    def __repr__(self) -> str:
        scores, log = self.scores, self.source
        folds = f"{self.folds} folds by episode" if self.folds > 1 else "not cross-fitted"
        error = scores.reliability
        everywhere = "frequencies" if self.rows.count is not None else "Gaussian"
        low, high = (f"{t:.3g}" for t in (min(self.temperatures), max(self.temperatures)))
        sampled = (
            f", judged on {scores.rows:,}" if scores.rows + self.rows.missing < len(log) else ""
        )
        rows = [
            ("log loss", f"{scores.log_loss}; the same {everywhere} everywhere: "
             f"{scores.constant:.3g}"),
            ("Brier score", "" if scores.brier is None else str(scores.brier)),
            ("calibration error", f"{error.error}; by chance {error.by_chance:.2g}"),
            ("temperature", low if low == high else f"{low} to {high}"),
            ("smallest", "" if scores.smallest is None else f"{scores.smallest:.3g}"),
        ]  # fmt: skip
        lines = [
            f"EstimatedBehaviour of {len(log):,} transitions in {len(log.numbers):,} episodes"
            f"{sampled}: {self.model}, {folds}",
            *(f"  {name:17}  {text}" for name, text in rows if text),
            *(f"  WARNING: {sentence(finding)}" for finding in self.findings),
        ]
        return "\n".join(fill(line, 92, subsequent_indent="    ") for line in lines)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about the log and about scores that are not good."""
        return (*self.log_findings, *self._findings_of_scores())

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings about the log in words."""
        return tuple(map(sentence, self.log_findings))

    @property
    def doubts(self) -> tuple[str, ...]:
        """The findings about scores in words."""
        return tuple(map(sentence, self._findings_of_scores()))

    def _findings_of_scores(self) -> Iterator[Finding]:
        scores, reliability = self.scores, self.scores.reliability
        error = reliability.error
        if error.value > reliability.limit and not error.low <= reliability.by_chance:
            yield Finding(Code.MISCALIBRATED, "warning")
        if scores.log_loss.low > scores.constant:
            yield Finding(Code.TOO_RICH, "warning")
