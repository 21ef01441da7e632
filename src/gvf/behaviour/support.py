"""The support that a behaviour gives a target policy: whether it goes where the target would go.

A ratio pi(a|s) / mu(a|s) exists only where mu(a|s) > 0, and is large where it is small. The cover
of an action is

    mu(a|s)               for discrete actions,
    mu(a|s) / pi(a|s)     for continuous ones, at most 1,

and the lost mass at a threshold c is the share of the target's own actions with a smaller cover,
averaged over the states of the log. If all of mu is known, as a policy, it is computed state by
state; each state also has a cost, E_pi[rho | s], the number of rows that are worth one row of the
target. If only the probabilities of the recorded actions are known, the lost mass is estimated by
mean(rho 1[cover < c]), and what mu never does shows only in a mean ratio below 1.
:mod:`gvf.behaviour.cover` has the numbers of each row.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.behaviour.cover import Cover, Laws, cover_of, usable
from gvf.behaviour.trim import Trimmed, trimmed
from gvf.common.arrays import Floats
from gvf.common.checks import brief, is_number, whole
from gvf.common.fields import as_matrix
from gvf.estimate import Estimate, mean_by_episode, percent, percent_of_mass
from gvf.findings import Code, Finding, sentence
from gvf.log import Log
from gvf.policies import Policy
from gvf.question import RECORDED, OnConflict
from gvf.ratios import tail_index, trusted_up_to
from gvf.transition import Transitions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MUCH = 0.05
"""A larger share of lost mass gives a warning, and so does that of one ratio that extrapolates."""
_FEW = 10
"""With fewer rows of an action than this, expected by its probability, a log cannot tell it."""
_BINS = 8
"""The number of groups into which a dimension of the states is cut."""


class StateGroup(NamedTuple):
    """Some states of a log, and what the target loses there."""

    name: str
    """The states in words: ``state 3``, ``state[2] from -0.1 to 0.2``, or ``age = 2``."""
    rows: int
    """The number of rows."""
    lost: Estimate
    """The share of the target's mass that is lost, with a 95 % interval over episodes."""
    middle: float
    """The state, or the middle of the group."""


@dataclass(frozen=True, eq=False, repr=False)
class Support:
    """The support of a target policy by the behaviour of a log, from :func:`gvf.check_support`.

    ``print`` shows a summary, :meth:`plot` draws a picture.

    Attributes:
        log: the log.
        target: the target policy.
        rows: the number of rows looked at.
        episodes: the number of their episodes.
        least: the threshold c; with a smaller cover an action counts as lost.
        lost: the lost mass at the thresholds c / 10, c and 10 c, with 95 % intervals over episodes.
        mean_ratio: the mean ratio with its interval; 1 if the behaviour's probabilities are right
            and it covers the target.
        effective_sample_size: (sum rho)^2 / sum rho^2.
        largest_ratio: the largest ratio.
        k_hat: the Pareto index of the ratios, as in :class:`gvf.Diagnosis`.
        k_threshold: the largest k-hat for which averages can be trusted.
        untried: the share of the target's mass on each action that is never taken in the log.
        estimated: True if the behaviour's probabilities were estimated.
        cover: the numbers of each row, of which these are averages.
        batch: the rows themselves.
        position: their positions in the log, int64[m].
        laws: the behaviour as policies; None if only recorded probabilities are used.
        on_conflict: the rule for records that differ from it.

    Example:
        >>> import gvf
        >>> walk = {"state": [0, 1, 0, 1, 0], "action": [1, 0, 1, 0], "terminated": True}
        >>> log = gvf.read_log([walk] * 50, behaviour_probability=None, quiet=True)
        >>> gvf.check_support(
        ...     log, gvf.policies.Fixed([0.5, 0.5]), behaviour=gvf.policies.Fixed([0.5, 0.5])
        ... )
        Support of Fixed((0.5, 0.5)) by 200 transitions in 50 episodes (state by state)
          0 % (0 to 0 %) of the target's mass has a behaviour's probability below 0.001
          0 % (0 to 0 %) of the target's mass has a behaviour's probability below 0.01
          0 % (0 to 0 %) of the target's mass has a behaviour's probability below 0.1
          mean ratio 1 (1 to 1), largest 1
          effective sample size 200 (100 %)
    """

    log: Log
    target: Policy
    rows: int
    episodes: int
    least: float
    lost: dict[float, Estimate]
    mean_ratio: Estimate
    effective_sample_size: float
    largest_ratio: float
    k_hat: float
    k_threshold: float
    untried: dict[int, float]
    estimated: bool
    cover: Cover
    batch: Transitions
    position: NDArray[np.int64]
    laws: Laws | None
    on_conflict: OnConflict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The findings about what the log cannot answer, as codes with fields."""
        return tuple(self._findings())

    @property
    def warnings(self) -> tuple[str, ...]:
        """The findings in words."""
        return tuple(sentence(finding, "log", self.estimated) for finding in self.findings)

    def _findings(self) -> Iterator[Finding]:
        lost, mean = self.lost[self.least], self.mean_ratio
        if self.untried:
            fields = {"actions": list(self.untried), "share": sum(self.untried.values())}
            yield Finding(Code.UNTRIED_ACTIONS, "warning", fields)
        if lost.value > _MUCH:
            yield Finding(Code.HARDLY_TAKEN, "warning", {"share": lost.value})
        if not math.isnan(mean.low) and not mean.low <= 1.0 <= mean.high:
            code = Code.MASS_MISSING if mean.value < 1.0 else Code.MASS_ABOVE
            yield Finding(code, "warning", {"mean": mean.value})
        if self.extrapolated is not None:
            fields = {
                "ratio": self.largest_ratio,
                "share": self._largest_share,
                "probability": self.extrapolated,
                "rows": self.rows,
            }
            yield Finding(Code.EXTRAPOLATED, "warning", fields)
        if self.k_hat > self.k_threshold:
            fields = {"k_hat": self.k_hat, "limit": self.k_threshold}
            yield Finding(Code.HEAVY_TAIL, "warning", fields)

    @property
    def extrapolated(self) -> float | None:
        """The estimated probability below the largest ratio, if that decides; None otherwise.

        It is smaller than the log can tell, fewer than ten rows in all, and the ratio has more than
        5 % of the sum of all ratios.
        """
        if not (self.estimated and self.cover.discrete and self._largest_share > _MUCH):
            return None
        at = int(self.cover.ratio.argmax())
        state, action = (self.batch[name][at : at + 1] for name in ("state", "action"))
        probability = float(self.target.probability(state, action)[0] / self.largest_ratio)
        return probability if probability * self.rows < _FEW else None

    @property
    def _largest_share(self) -> float:
        """The share of the largest ratio in the sum of all."""
        total = float(self.cover.ratio.sum())
        return self.largest_ratio / total if total > 0.0 else 0.0

    def worst(self, n: int = 10) -> list[dict[str, Any]]:
        """Return the n rows in whose states the target is covered worst, each as a dict.

        The keys are the row's position in the ``log``, ``episode``, ``state``, ``action``,
        ``ratio``, ``lost`` (the lost mass in the state) and ``cost`` (the rows worth one of the
        target, there).
        """
        order = np.argsort(-self.cover.cost, kind="stable")[: whole("n", n, 1)]
        return [
            {
                "row": int(self.position[i]),
                "episode": int(self.batch["episode"][i]),
                "state": self.batch["state"][i],
                "action": self.batch["action"][i],
                "ratio": float(self.cover.ratio[i]),
                "lost": float(self.cover.lost(self.least)[i]),
                "cost": float(self.cover.cost[i]),
            }
            for i in order
        ]

    def by_state(self, threshold: float | None = None) -> list[StateGroup]:
        """Return the lost mass by state, the worst first.

        States that are integers are groups of their own. Of others each dimension is cut into eight
        groups of equal size; one with at most eight values has a group for each.

        Args:
            threshold: the cover below which an action counts as lost; by default ``least``.
        """
        threshold = self.least if threshold is None else threshold
        states, lost = self.batch["state"], self.cover.lost(threshold)
        if states.dtype.kind in "iu" and states.ndim == 1:
            groups = _by_value(states, lost, self.batch["episode"])
        else:
            groups = [group for _, members in self.by_dimension(threshold) for group in members]
        return sorted(groups, key=lambda group: -group.lost.value)

    def by_dimension(self, threshold: float) -> list[tuple[str, list[StateGroup]]]:
        """Return the lost mass in groups of each dimension of the states, in ascending order."""
        x, lost = as_matrix(self.batch["state"]), self.cover.lost(threshold)
        episode = self.batch["episode"]
        names = self.log.meanings.get("state", ())
        if len(names) != x.shape[1]:
            names = [f"state[{j}]" for j in range(x.shape[1])]
        return [(name, _by_quantile(name, x[:, j], lost, episode)) for j, name in enumerate(names)]

    def trim(
        self,
        *,
        most: float | None = None,
        largest_ratio: float | None = None,
    ) -> Trimmed:
        """Return the log without the rows that the target is not covered in, and say what is gone.

        Nothing is trimmed unless you call this. It changes the question: predictions are about the
        states that remain, and a transition into a state that was removed takes its value from
        rows elsewhere. Give one of the two rules.

        Args:
            most: remove rows in whose state more than this share of the target's mass is lost, at
                the threshold ``least``. The behaviour must be known as a policy.
            largest_ratio: remove rows with a larger ratio. This removes what the target does most
                and the behaviour least, so predictions are biased towards the behaviour.

        Returns:
            A :class:`Trimmed` with the new ``log``, which is kept in memory, and how many rows and
            how much mass it has lost. Episodes are cut where rows are removed.
        """
        if (most is None) == (largest_ratio is None):
            raise TypeError("give one rule: most=0.1, or largest_ratio=100.0")
        if most is not None and self.laws is None:
            raise ValueError(
                "most= needs the whole distribution of the behaviour, and the log has the "
                "probabilities of recorded actions only: give support(..., behaviour=policy), or "
                "use largest_ratio="
            )
        for name, value in (("most", most), ("largest_ratio", largest_ratio)):
            if value is not None and not (is_number(value) and value >= 0):
                raise ValueError(f"{name} must be a number, 0 or more; got {brief(value)}")

        def judge(batch: Transitions) -> tuple[NDArray[np.bool_], Floats]:
            good = usable(batch)
            cover = cover_of(batch[good], self.target, self.laws, self.on_conflict, seed=0)
            bad, mass = np.zeros(len(batch), bool), np.zeros(len(batch))
            mass[good] = cover.ratio
            if most is not None:
                bad[good] = cover.lost(self.least) > most
            elif largest_ratio is not None:
                bad[good] = cover.ratio > largest_ratio
            return bad, mass

        return trimmed(self.log, judge)

    def plot(self, axes: Any = None) -> Figure:
        """Draw the target's mass by cover, and the lost mass by state, on two matplotlib axes."""
        from gvf.behaviour.behaviour_plots import support_picture

        return support_picture(self, axes)

    def __repr__(self) -> str:
        n, size = self.rows, self.effective_sample_size
        discrete = self.cover.discrete
        cover = "probability" if discrete else "density, relative to the target's,"
        rows = [
            (f"below {c:g}", f"{percent_of_mass(share)} of the target's mass has a behaviour's "
             f"{cover} below {c:g}")
            for c, share in self.lost.items()
        ]  # fmt: skip
        how = "estimated from recorded actions" if self.laws is None else "state by state"
        lines = [
            f"Support of {self.target!r} by {len(self.log):,} transitions in {self.episodes:,} "
            f"episodes ({how}{f', {n:,} rows looked at' if n < len(self.log) else ''})",
            *(["  The behaviour's probabilities are estimated."] if self.estimated else []),
            *(f"  {text}" for _, text in rows),
            f"  mean ratio {self.mean_ratio}, largest {self.largest_ratio:.4g}",
            f"  effective sample size {size:,.0f} ({percent(size / n)})",
            *(f"  WARNING: {warning}" for warning in self.warnings),
        ]
        worst = [group for group in self.by_state()[:3] if group.lost.value > self.least]
        if worst:
            places = "; ".join(
                f"{g.name}: {percent(min(g.lost.value, 1.0))} of {g.rows:,} rows" for g in worst
            )
            lines.append(f"  lost most in {places}")
        return "\n".join(fill(line, 92, subsequent_indent="    ") for line in lines)


def check_support(
    log: Log,
    target: Policy,
    *,
    behaviour: Policy | None = None,
    on_conflict: OnConflict = "error",
    least: float = 0.01,
    rows: int = 100_000,
    seed: int = 0,
) -> Support:
    """Check how well the behaviour of a log covers a target policy.

    Args:
        log: the log, with the behaviour's probabilities unless ``behaviour`` is given.
        target: the target policy.
        behaviour: the policy that chose the actions, if known; then the check is done state by
            state. For an estimated behaviour use :meth:`EstimatedBehaviour.support`.
        on_conflict: the rule for recorded probabilities that differ from it, as in
            :meth:`gvf.GVF.evaluate`. With "recorded", the policy is not used.
        least: the probability (for continuous actions the density, relative to the target's) below
            which an action is hardly taken.
        rows: the largest number of transitions to look at; a longer log gives a random sample.
        seed: the seed of this sample, and of the target's actions if they are continuous.

    Returns:
        A :class:`Support`.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> mu = gvf.policies.Table([[0.5, 0.5], [0.995, 0.005]])
        >>> walks = []
        >>> for _ in range(300):
        ...     states = rng.integers(2, size=11)
        ...     walks.append({"state": states, "action": mu.sample(states[:-1], rng=rng)})
        >>> log = gvf.read_log(walks, ends="truncated", quiet=True)
        >>> found = gvf.check_support(log, gvf.policies.Fixed([0.2, 0.8]), behaviour=mu)
        >>> {c: round(share.value, 2) for c, share in found.lost.items()}
        {0.001: 0.0, 0.01: 0.4, 0.1: 0.4}
        >>> found.by_state()[0].name
        'state 1'
    """
    if behaviour is not None and not isinstance(behaviour, Policy):
        raise TypeError(f"behaviour must be a gvf.policies.Policy, not {brief(behaviour)}")
    options: Any = {"on_conflict": on_conflict, "least": least, "rows": rows, "seed": seed}
    recorded = isinstance(log, Log) and any(name in log.columns for name in RECORDED)
    if behaviour is None or (recorded and on_conflict == "recorded"):
        return support_of(log, target, None, **options)

    def everywhere(batch: Transitions) -> list[tuple[NDArray[Any], Policy]]:
        return [(np.arange(len(batch)), behaviour)]

    return support_of(log, target, everywhere, **options)


def support_of(
    log: Log,
    target: Policy,
    laws: Laws | None,
    *,
    on_conflict: OnConflict = "error",
    least: float = 0.01,
    rows: int = 100_000,
    seed: int = 0,
) -> Support:
    """Check the support as :func:`check_support` does, with a behaviour that may differ by row."""
    if not isinstance(log, Log):
        raise TypeError(f"log must be a gvf.Log, as gvf.read_log makes, not {brief(log)}")
    if not isinstance(target, Policy):
        raise TypeError(f"target must be a gvf.policies.Policy, not {brief(target)}")
    if not (is_number(least) and 0 < least < 1):
        raise ValueError(f"least must be a number between 0 and 1, got {brief(least)}")
    if "action" not in log.columns:
        raise ValueError(f"{log.source}: the log has no actions, so it has no behaviour")
    taken: set[int] = set()

    def note_actions(batch: Transitions, position: NDArray[np.int64]) -> None:
        if batch["action"].ndim == 1:
            taken.update(np.unique(batch["action"]).tolist())

    batch, position, _ = log.sample(
        whole("rows", rows, 2), rng=np.random.default_rng(seed), usable=usable, inspect=note_actions
    )
    if not len(batch):
        raise ValueError(f"{log.source}: all rows have a NaN in the state, the action or mu")
    try:
        cover = cover_of(batch, target, laws, on_conflict, seed=seed)
    except ValueError as error:
        if len(batch) < len(log):
            error.add_note(f"Positions count among the {len(batch):,} rows looked at.")
        raise
    episode, ratio = batch["episode"], cover.ratio
    total = ratio.sum()
    probabilities: Callable[[Any], Floats] | None = getattr(target, "probabilities", None)
    untried: dict[int, float] = {}
    if probabilities is not None and cover.discrete:
        shares = probabilities(batch["state"]).mean(axis=0)
        never = sorted({*range(len(shares))} - taken)
        untried = {a: float(shares[a]) for a in never if shares[a] > 0}
    estimated = log.has_estimates
    if laws is not None:
        estimated |= any(policy.is_estimated for _, policy in laws(batch[:1]))
    thresholds = [round(c, 12) for c in (least / 10, least, min(10 * least, 1.0))]
    return Support(
        log=log,
        target=target,
        rows=len(batch),
        episodes=len(np.unique(episode)),
        least=thresholds[1],
        lost={c: mean_by_episode(cover.lost(c), episode) for c in thresholds},
        mean_ratio=mean_by_episode(ratio, episode),
        effective_sample_size=float(total * (total / (ratio @ ratio))) if total > 0 else 0.0,
        largest_ratio=float(ratio.max()),
        k_hat=tail_index(ratio),
        k_threshold=trusted_up_to(len(ratio)),
        untried=untried,
        estimated=estimated,
        cover=cover,
        batch=batch,
        position=position,
        laws=laws,
        on_conflict=on_conflict,
    )


def _by_value(states: NDArray[Any], lost: Floats, episode: NDArray[Any]) -> list[StateGroup]:
    """Return a group for each state, int[m], with the lost mass of its rows [m]."""
    order = np.argsort(states, kind="stable")
    names, starts = np.unique(states[order], return_index=True)
    return [
        StateGroup(
            f"state {name}",
            len(members),
            mean_by_episode(lost[members], episode[members]),
            float(name),
        )
        for name, members in zip(names, np.split(order, starts[1:]), strict=True)
    ]


def _by_quantile(name: str, x: Floats, lost: Floats, episode: NDArray[Any]) -> list[StateGroup]:
    """Return the lost mass of rows [m] in groups of equal size of a dimension, or by its value."""
    values, place = np.unique(x, return_inverse=True)
    if len(values) > _BINS:
        edges = np.unique(np.quantile(x, np.linspace(0, 1, _BINS + 1)))
        place = np.searchsorted(edges[1:-1], x, side="right")
    groups = []
    for k in np.unique(place):
        members = place == k
        low, high = x[members].min(), x[members].max()
        words = f"{name} from {low:.3g} to {high:.3g}" if low < high else f"{name} = {low:.3g}"
        share = mean_by_episode(lost[members], episode[members])
        groups.append(StateGroup(words, int(members.sum()), share, float(np.median(x[members]))))
    return groups
