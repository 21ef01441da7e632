"""Domains whose states are integers, with a table of outcomes.

The same :class:`gvf_lab.truth.Model` drives the environment, the compiled loops and dynamic
programming. One step of them all is

    outcome = the first b with p(s, a, 0) + ... + p(s, a, b) > u,    u uniform in [0, 1),

which is a row of the model's flattened tables. The next state, the reward, and the cumulant and
continuation of any question are looked up there. For states that are real numbers, see
:mod:`gvf_lab.domain.continuous_four_rooms`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import set_frozen
from gvf.common.gymnasium import gym
from gvf.common.part_names import known
from gvf.kernels import streams, thresholds, uniform
from gvf.policies import DiscretePolicy
from gvf_lab.domain.domain import CellDomain, Signals, Trajectory, check_action, check_render_mode
from gvf_lab.domain.small_pictures import Image
from gvf_lab.domain.visits import long_run, reached
from gvf_lab.truth import FixedPoint, Model, TrueValues, exact_values, fixed_point


@njit(cache=True, nogil=True)
def first_above(sums, row, uniform):
    """Return the first column that exceeds u in a row of sums [rows, columns], the last infinite.

    This draws an action from the thresholds of a policy's table, or an outcome.
    """
    column = 0
    while sums[row, column] <= uniform:
        column += 1
    return column


@njit(cache=True, nogil=True)
def draw_outcome(sums, actions, state, action, uniform):
    """Draw the outcome of one step, a row of the model's flattened tables.

    ``sums`` are the model's running probabilities, float64[S * A, B], from :func:`outcome_sums`.
    """
    row = state * actions + action
    return row * sums.shape[1] + first_above(sums, row, uniform)


@njit(cache=True, nogil=True)
def draw_start(starts, uniform):
    """Draw the first state of an episode from ``starts`` int64[n], all equally likely."""
    return starts[int(uniform * starts.size)]


@njit(cache=True, nogil=True)
def walk_table(mu, outcomes, next_state, terminal, starts, stream, state, action, outcome):
    """Fill state, action and outcome [T] with a walk through a table of outcomes."""
    actions = mu.shape[1]
    s = draw_start(starts, uniform(stream))
    for t in range(state.size):
        a = first_above(mu, s, uniform(stream))
        row = draw_outcome(outcomes, actions, s, a, uniform(stream))
        state[t], action[t], outcome[t] = s, a, row
        s = next_state[row]
        if terminal[s]:
            s = draw_start(starts, uniform(stream))


def outcome_sums(model: Model) -> Floats:
    """Compute the running probabilities of a model's outcomes, float64[S * A, B]."""
    return thresholds(model.probability.reshape(-1, model.probability.shape[2]))


class TabularEnvironment(gym.Env[Any, Any]):
    """An environment that follows a model; it never truncates.

    Every step and every reset takes one uniform number from ``np_random``.

    Args:
        model: the table of outcomes.
        starts: the states in which episodes begin, int64[n], all equally likely.
        action_names: the names of the actions.
        render_mode: "ansi", "rgb_array", or None.
    """

    metadata = {"render_modes": ["ansi", "rgb_array"], "render_fps": 8}  # noqa: RUF012

    def __init__(
        self,
        model: Model,
        starts: NDArray[np.int64],
        action_names: tuple[str, ...],
        render_mode: str | None,
    ) -> None:
        self.render_mode = check_render_mode(render_mode, self.metadata["render_modes"])
        self.observation_space = gym.spaces.Discrete(len(model.terminal))
        self.action_space = gym.spaces.Discrete(len(action_names))
        self.model, self.action_names = model, action_names
        self._starts, self._sums = starts, outcome_sums(model)
        self._state = -1
        self._reward = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._state = int(draw_start(self._starts, self.np_random.random()))
        self._reward = 0.0
        return self._state, self._information()

    def step(self, action: Any) -> tuple[int, float, bool, bool, dict[str, Any]]:
        """Act once."""
        chosen = check_action(action, self.action_names)
        if self._state < 0:
            raise gym.error.ResetNeeded("call reset() before the first step()")
        model = self.model
        outcome = draw_outcome(
            self._sums, len(self.action_names), self._state, chosen, self.np_random.random()
        )
        self._state = int(model.next_state.flat[outcome])
        self._reward = float(model.reward.flat[outcome])
        terminated = bool(model.terminal[self._state])
        return self._state, self._reward, terminated, False, self._information()

    def render(self) -> Any:
        """Return a picture uint8[height, width, 3] or a text, depending on ``render_mode``."""
        if self.render_mode is None:
            gym.logger.warn('nothing is rendered: make the environment with render_mode="ansi"')
            return None
        if self._state < 0:
            raise gym.error.ResetNeeded("call reset() before render()")
        return self._text() if self.render_mode == "ansi" else self._picture()

    def _information(self) -> dict[str, Any]:
        return {}

    def _text(self) -> str:
        raise NotImplementedError

    def _picture(self) -> Image:
        raise NotImplementedError


class _Partial(DiscretePolicy):
    """A policy as a table [S, A] whose rows may be 0 in states that do not matter."""

    def __init__(self, policy: DiscretePolicy, rows: Floats) -> None:
        self.actions, self._policy, self._rows = policy.actions, policy, rows

    def probabilities(self, states: Any) -> Floats:
        return self._rows[states]

    def __repr__(self) -> str:
        return repr(self._policy)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TabularDomain(CellDomain):
    """A domain with a model, whose values are exact and whose walks are compiled.

    Attributes:
        model: the table of outcomes.
        starts: the states in which episodes begin, int64[n], all equally likely; by default all
            that are not terminal.
        counted: the states over which errors are averaged, int64[n]; by default all that are not
            terminal.
        active: masks bool[S] by question, True for states in which the question is active; by
            default all are. In other states ratios are 0, nothing is learned, no error is measured,
            and the target may be undefined. The question itself sets its continuations: unless they
            are 0 on leaving the active states, its values include cumulants from outside.
        weighting: the weights of the states in errors: "uniform" for equal weights, "visits" for
            the shares of the behaviour's visits in the long run, "emphasis" for those of
            :meth:`emphasis`, or numbers float64[S], not negative.

    Example:
        >>> from gvf_lab.domain import get
        >>> chain = get("markov-chain")
        >>> chain.truth("hard")
        TrueValues(10 states, values from 0 to 0.9774, exact)
        >>> chain.table(chain.behaviour("hard"))[:2]
        array([[0.9, 0.1],
               [0.9, 0.1]])

        A table of your own, in which action 1 ends the episode with reward 1:

        >>> import gvf, gvf_lab, numpy as np
        >>> from gvf_lab.domain import TabularDomain
        >>> mine = TabularDomain(
        ...     name="mine",
        ...     behaviours={"uniform": gvf.policies.Uniform(2)},
        ...     questions={"end": gvf.GVF(gvf.policies.Fixed([0.9, 0.1]), "reward", 0.9)},
        ...     features=gvf.features.OneHot(2),
        ...     model=gvf_lab.Model(
        ...         probability=np.ones((2, 2, 1)),
        ...         next_state=np.array([[[0], [1]], [[1], [1]]]),
        ...         reward=np.array([[[0.0], [1.0]], [[0.0], [0.0]]]),
        ...         terminal=np.array([False, True]),
        ...     ),
        ... )
        >>> mine.truth("end").values.round(4)
        array([0.5263])
    """

    repeats = True
    model: Model
    starts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    counted: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    active: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    weighting: str | Floats = "uniform"
    _made: dict[Any, Any] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        alive = np.flatnonzero(~self.model.terminal)
        starts, counted = (
            states if states.size else alive for states in (self.starts, self.counted)
        )
        if not np.isin(starts, alive).all():
            wrong = starts[~np.isin(starts, alive)][0]
            raise ValueError(f"episodes of {self.name} cannot begin in state {wrong}")
        if not np.isin(counted, self.cells).all():
            wrong = counted[~np.isin(counted, self.cells)][0]
            raise ValueError(f"{self.name} has no state {wrong} to count")
        active = {name: np.asarray(mask) for name, mask in self.active.items()}
        weighting = self.weighting
        if not isinstance(weighting, str):
            weighting = np.array(weighting, np.float64)
        set_frozen(self, starts=starts, counted=counted, active=active, weighting=weighting)
        self._check_parts()

    def _check_parts(self) -> None:
        """Raise ValueError if states or weights do not fit the model."""
        states = len(self.model.terminal)
        for question, active in self.active.items():
            self.question(question)
            if active.dtype != bool or active.shape != (states,):
                raise ValueError(
                    f"active of question {question!r} must be bool[{states}], "
                    f"got {active.dtype}{list(active.shape)}"
                )
        if isinstance(self.weighting, str):
            known(self.weighting, ("uniform", "visits", "emphasis"), "weighting")
            return
        shape = np.shape(self.weighting)
        if shape != (states,):
            raise ValueError(f"weighting must be float64[{states}], got shape {shape}")
        if not (np.isfinite(self.weighting) & (self.weighting >= 0)).all():
            raise ValueError("weighting must be finite and not negative")

    @property
    def cells(self) -> NDArray[np.int64]:
        """The states, int64[S]."""
        return np.arange(len(self.model.terminal))

    @property
    def reachable(self) -> NDArray[np.bool_]:
        """True for states in which a transition can start, bool[S], if any action may be taken."""
        anything = np.ones(self.model.probability.shape[:2], bool)
        return self._once("reachable", lambda: reached(self.model, self.starts, anything))

    def active_cells(self, question: str) -> NDArray[np.bool_]:
        """Return True for states in which a question is active, bool[S]."""
        everywhere = super().active_cells(question)
        return self.active.get(question, everywhere)

    def visits(self, behaviour: str) -> Floats:
        """Compute the share of steps that a behaviour spends in each state in the long run.

        After an episode the next begins in one of the ``starts``. The shares, float64[S], are
        exact. If they depend on chance, an error is raised.
        """
        mu = self.table(self.behaviour(behaviour))
        try:
            return self._once(("visits", behaviour), lambda: long_run(self.model, self.starts, mu))
        except ValueError as error:
            raise ValueError(f"behaviour {behaviour!r} of {self.name}: {error}") from None

    def emphasis(self, question: str, behaviour: str) -> Floats:
        """Compute the weight of each state in the expected update of emphatic TD(0), float64[S].

        It is the share of the behaviour's visits times the mean of the follow-on trace there.

        Example:
            The target goes right, so states on the right follow from more states:

            >>> from gvf_lab.domain import get
            >>> get("markov-chain").emphasis("easy", "easy").round(2)
            array([0.  , 0.09, 0.22, 0.38, 0.53, 0.67, 0.76, 0.8 , 0.71, 0.  ])
        """

        def make() -> Floats:
            emphasis = self.fixed_point(question, behaviour, emphatic=True).emphasis
            return np.maximum(emphasis, 0.0)  # rounding may leave a 0 just below 0

        return self._once(("emphasis", question, behaviour), make)

    def make(self, **options: Any) -> gym.Env[Any, Any]:
        """Make the environment; without a Gymnasium id, make one that follows the model."""
        if self.environment:
            return super().make(**options)
        names = tuple(f"action {i}" for i in range(self.model.probability.shape[1]))
        return TabularEnvironment(
            self.model, self.starts, names, **({"render_mode": None} | options)
        )

    def walk(
        self,
        policy: DiscretePolicy,
        questions: Sequence[str],
        steps: int,
        seed: np.random.SeedSequence,
    ) -> Trajectory:
        """Let a policy walk; transitions with the same outcome are of the same kind."""
        mu, stream = self.table(policy), streams(1, seed)[0]
        state, action, outcome = (np.empty(steps, np.int64) for _ in range(3))
        following = np.ascontiguousarray(self.model.next_state).ravel()
        terminal, starts, sums = self.model.terminal, self.starts, outcome_sums(self.model)
        walk_table(
            thresholds(mu), sums, following, terminal, starts, stream, state, action, outcome
        )
        after, signals = following[outcome], {}
        for name in questions:
            cumulant, continuation = self.signals(name)
            signals[name] = Signals(
                self.ratios_along(name, mu, state, action),
                cumulant.ravel()[outcome],
                continuation.ravel()[outcome],
                self._interests(name, outcome),
                self.active[name][state] if name in self.active else None,
                self.target_table(name)[state, action],
            )
        x, x_next = self.features(state), self.features(after)
        return Trajectory(x, x_next, action, after, signals, outcome)

    def truth(
        self, question: str, behaviour: str | None = None, *, states: int = 0, seed: int = 0
    ) -> TrueValues:
        """Compute the exact values of a question in the states that are counted and active.

        The behaviour only determines their weights, with ``weighting="visits"`` or "emphasis".
        """
        if behaviour is not None:
            self.behaviour(behaviour)
        counted = self.counted[self.active_cells(question)[self.counted]]
        if not counted.size:
            raise ValueError(f"question {question!r} is active in none of the states that count")
        weights = self._weights(question, behaviour, counted)
        values = self._once(("values", question), lambda: self._values(question))[counted]
        return TrueValues(counted, values, np.zeros(len(values)), weights)

    def fixed_point(
        self,
        question: str,
        behaviour: str,
        *,
        trace_decay: float = 0.0,
        emphatic: bool = False,
        beta: float | None = None,
    ) -> FixedPoint:
        """Compute the fixed point of a question with these features (:func:`gvf_lab.fixed_point`).

        States count as often as the behaviour visits them, whatever the ``weighting`` of errors.
        For emphatic TD they also count by the question's interest, which may depend on the state
        only.

        Example:
            >>> from gvf_lab.domain import get
            >>> rooms = get("rooms")
            >>> truth = rooms.truth("SW-H0", "uniform")
            >>> round(rooms.fixed_point("SW-H0", "uniform").error(truth), 4)
            0.2281
            >>> round(rooms.fixed_point("SW-H0", "uniform", emphatic=True).error(truth), 4)
            0.0944
        """
        asked = replace(
            self.question(question),
            policy=_Partial(self.target(question), self.target_table(question)),
        )
        x = self.features(self.cells)
        if x.dtype.kind in "iu":
            dense = np.zeros((len(x), self.features.size))
            np.add.at(dense, (self.cells[:, None], x), 1.0)
            x = dense
        visits = self.visits(behaviour)
        if emphatic:
            visits = visits * self._interest_in_states(question)
        return fixed_point(
            self.model,
            asked,
            x,
            visits,
            trace_decay=trace_decay,
            emphatic=emphatic,
            beta=beta,
        )

    def _weights(
        self, question: str, behaviour: str | None, counted: NDArray[np.int64]
    ) -> Floats | None:
        """Return the weights of states, float64[n]; None for equal weights."""
        if not isinstance(self.weighting, str):
            weights = self.weighting[counted]
        elif self.weighting == "uniform":
            return None
        elif behaviour is None:
            raise ValueError(
                "states count as often as a behaviour visits them: name one of "
                f"{', '.join(map(repr, self.behaviours))}"
            )
        elif self.weighting == "visits":
            weights = self.visits(behaviour)[counted]
        else:
            weights = self.emphasis(question, behaviour)[counted]
        if not weights.any():
            raise ValueError(
                f"no state in which question {question!r} is active has a weight above 0"
            )
        return weights

    def _values(self, question: str) -> Floats:
        """Compute the values of all states, float64[S]; 0 for those that are not needed."""
        asked = self.question(question)
        if not self.active_cells(question).all():
            asked = replace(asked, policy=_Partial(self.target(question), self._needed(question)))
        return exact_values(self.model, asked)

    def _needed(self, question: str) -> Floats:
        """Return the target as a table [S, A], 0 in states that the values do not depend on.

        The values of active states depend on all states that follow with a continuation above 0,
        even if these are not active.
        """
        rows, target, model = self.target_table(question), self.target(question), self.model
        _, continuation = self.signals(question)
        done = self.active_cells(question) | model.terminal
        carried = (model.probability * continuation > 0) & ~model.terminal[:, None, None]
        while True:
            following = np.unique(model.next_state[carried & (rows > 0)[:, :, None]])
            new = following[~done[following]]
            if not new.size:
                return rows
            rows[new], done[new] = target.probabilities(new), True

    def check(self, question: str, behaviour: str) -> None:
        """Raise ValueError for a behaviour without support or a question whose returns never end.

        Support is needed in states that are active and can be reached.
        """
        super().check(question, behaviour)
        self.truth(question, behaviour)

    def _once(self, name: Any, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """Return ``make()``, computed once for this domain; the array must not be changed."""
        if name not in self._made:
            self._made[name] = make()
            self._made[name].setflags(write=False)
        return self._made[name]

    def _interests(self, question: str, outcome: NDArray[np.int64]) -> Floats | None:
        asked = self.question(question)
        if asked.interest is None:
            return None
        return asked.interests(self.model.transitions)[outcome]

    def _interest_in_states(self, question: str) -> Floats:
        """Return the interest in each state, float64[S]."""
        each = (
            self.question(question).interests(self.model.transitions).reshape(len(self.cells), -1)
        )
        if (each != each[:, :1]).any():
            raise ValueError(
                f"the interest of question {question!r} depends on more than the state"
            )
        return each[:, 0]

    def signals(self, question: str) -> tuple[Floats, Floats]:
        """Compute cumulant and continuation of every outcome, each float64[S, A, B]."""
        return self.model.signals(self.question(question))
