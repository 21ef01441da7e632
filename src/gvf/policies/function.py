"""Policies computed from the state by a network or any other function.

For a batch of m states the function returns either probabilities or a distribution,

    f(s) = [pi(0|s), ..., pi(A-1|s)]    or    f(s).log_prob(a) = log pi(a|s),

the second as in ``torch.distributions``. The lower half of this module supports torch: it makes
tensors of the distribution's device and type, and seeds torch's random numbers. Torch is imported
only if a distribution is one of torch's.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from gvf.common.arrays import Floats
from gvf.common.checks import brief, set_frozen
from gvf.common.fields import as_states
from gvf.policies.action_checks import (
    batch_size,
    check_action,
    distributions,
    generator,
    numpy_array,
)
from gvf.policies.policy import (
    Choice,
    DiscretePolicy,
    FunctionOfStates,
    Policy,
    describe,
    draw,
    log,
    pick,
    thresholds,
)


@dataclass(frozen=True, repr=False, init=False)
class Function(Policy):
    """A policy computed by a function of the states, for example a network.

    The function returns probabilities [m, A] (NumPy or torch), or a distribution with ``log_prob``
    and ``sample``, as in ``torch.distributions`` and Stable-Baselines3:
    ``Function(lambda states: Normal(network(torch.as_tensor(states)), 1.0))``.
    Single-precision probabilities are rescaled to sum to 1. Draws from a torch distribution are
    seeded by ``rng`` and do not change torch's global random state. For any other distribution
    ``rng`` has no effect.

    Args:
        function: a function of the batch of states, which is passed on unchanged, except that
            ``Dict`` observations become a structured array [m].
        actions: the number of actions; with it the policy is a :class:`DiscretePolicy`.

    Example:
        >>> import gvf
        >>> import numpy as np
        >>> def left_if_negative(states):
        ...     return np.where(states[:, :1] < 0, [0.9, 0.1], [0.1, 0.9])
        >>> policy = gvf.policies.Function(left_if_negative, actions=2)
        >>> policy
        Function(left_if_negative, 2)
        >>> policy.probability(states=np.array([[-1.0], [1.0]]), actions=[0, 0])
        array([0.9, 0.1])
    """

    function: FunctionOfStates
    actions: int | None = None

    @overload
    def __new__(cls, function: FunctionOfStates, actions: int) -> _DiscreteFunctionPolicy: ...
    @overload
    def __new__(cls, function: FunctionOfStates, actions: None = None) -> Function: ...
    def __new__(cls, function: Any = None, actions: Any = None) -> Function:
        """Make a DiscretePolicy if the number of actions is given."""
        # Copying and unpickling give no arguments; there cls is the variant already.
        return object.__new__(cls if actions is None else _DiscreteFunctionPolicy)

    # Written out, because type checkers ignore __new__ if the dataclass generates __init__.
    def __init__(self, function: FunctionOfStates, actions: int | None = None) -> None:
        if not callable(function):
            raise TypeError(f"function must be a function of the states, not {brief(function)}")
        if actions is not None:
            check_action(0, actions)
        set_frozen(self, function=function, actions=actions)

    def probability(self, states: Any, actions: Any) -> Floats:
        """Return the probability, or density, of each action in its state: float64[m]."""
        return _probability(self._law(states), actions, batch_size(states))

    def log_probability(self, states: Any, actions: Any) -> Floats:
        """Return the log probability, or log density, of each action in its state: float64[m]."""
        return _log_probability(self._law(states), actions, batch_size(states))

    def sample(self, states: Any, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw one action for each state: [m], or [m, d] for actions of d dimensions."""
        return _sample(self._law(states), generator(rng))

    def _choice(self, states: Any) -> Choice:
        law, count = self._law(states), batch_size(states)
        rate = _probability if isinstance(self, DiscretePolicy) else _log_probability
        return Choice(
            lambda rng: _sample(law, generator(rng)),
            lambda actions: rate(law, actions, count),
        )

    def _law(self, states: Any) -> Any:
        """Call the function; return a checked table of probabilities [m, A], or a distribution."""
        law = self.function(as_states(states))
        if isinstance(law, tuple):
            name, count = describe(self.function), self.actions or "A"
            raise TypeError(_TUPLE.format(name=name, size=len(law), count=count))
        return law if hasattr(law, "log_prob") else self._table(law, states)

    def _table(self, law: Any, states: Any) -> Floats:
        table = distributions(law, describe(self.function))
        expected = (batch_size(states), self.actions or table.shape[1])
        if table.shape != expected:
            raise ValueError(
                f"{describe(self.function)} returned probabilities of shape {table.shape}, "
                f"expected {expected}: a row for each state, a column for each action"
            )
        return table


_TUPLE = """{name} returned a tuple of {size}; a policy's function must return probabilities
[m, actions], or a distribution. The predict method of Stable-Baselines3 returns a tuple of actions
and hidden states, and does not say how likely the actions are. Where the model has a distribution:
    def law(states):
        return model.policy.get_distribution(model.policy.obs_to_tensor(states)[0])
Where it always takes the action that predict returns, as DQN does:
    def law(states):
        return np.eye({count})[model.predict(states, deterministic=True)[0]]
Then: gvf.policies.Function(law, actions={count})"""


def as_policy(value: Any, name: str, actions: int | None) -> Policy:
    """Return a policy, or that of a function; refuse all else that a user may have named.

    Args:
        value: the policy, or a function of states as :class:`Function` takes it.
        name: its name, for messages.
        actions: the number of actions of a function, if it is known.

    Example:
        >>> import gvf
        >>> from gvf.policies.function import as_policy
        >>> as_policy(gvf.policies.Uniform(2), "mine:policy", None)
        Uniform(2)
        >>> as_policy(gvf.policies.Uniform, "mine:policy", None)
        Traceback (most recent call last):
        ValueError: mine:policy is a class; name an instance of it
    """
    if isinstance(value, type) and issubclass(value, Policy):
        raise ValueError(f"{name} is a class; name an instance of it")
    if isinstance(value, Policy):
        return value
    if not callable(value):
        raise ValueError(f"{name} is {brief(value)}, neither a gvf.policies.Policy nor a function")
    return Function(value, actions)


class _DiscreteFunctionPolicy(Function, DiscretePolicy):
    actions: int

    def probabilities(self, states: Any) -> Floats:
        law, count = self._law(states), batch_size(states)
        if isinstance(law, np.ndarray):
            return law
        logs = [_log_prob(law, np.full(count, a), count) for a in range(self.actions)]
        return self._table(np.exp(np.stack(logs, axis=1)), states)


def _probability(law: Any, actions: Any, count: int) -> Floats:
    """Return the probability, or density, of each action [m] by a table [m, A] or distribution."""
    if isinstance(law, np.ndarray):
        return pick(law, actions)
    return np.exp(_log_probability(law, actions, count))


def _log_probability(law: Any, actions: Any, count: int) -> Floats:
    if isinstance(law, np.ndarray):
        return log(pick(law, actions))
    return _log_prob(law, actions, count).astype(np.float64)


def _sample(law: Any, rng: np.random.Generator) -> NDArray[Any]:
    """Draw one action for each state from a table [m, A] or a distribution."""
    if isinstance(law, np.ndarray):
        return draw(thresholds(law), rng)
    return _sample_distribution(law, rng)


def _torch_of(distribution: Any) -> tuple[Any, Any]:
    """Return the torch module, and a tensor with the distribution's device and precision.

    Both are None for a distribution that does not take tensors.
    """
    homes = {base.__module__.partition(".")[0] for base in type(distribution).__mro__}
    if not homes & {"torch", "stable_baselines3"}:
        return None, None
    torch = importlib.import_module("torch")
    return torch, next(_tensors(torch, distribution), torch.empty(0))


def _tensors(torch: Any, part: Any) -> Iterator[Any]:
    """Yield the tensors in a distribution."""
    if isinstance(part, torch.Tensor):
        yield part
    elif isinstance(part, list) or hasattr(part, "log_prob"):
        for inner in part if isinstance(part, list) else vars(part).values():
            yield from _tensors(torch, inner)


def _log_prob(distribution: Any, actions: Any, count: int) -> NDArray[Any]:
    """Return log probabilities [m] in the distribution's own precision."""
    array = native = np.array(actions, order="C")
    torch, like = _torch_of(distribution)
    if torch is not None:
        # Integers stay integers because they are classes. Some densities need one floating type.
        dtype = like.dtype if array.dtype.kind == "f" else None
        native = torch.tensor(array, dtype=dtype, device=like.device)
    logs = numpy_array(distribution.log_prob(native))
    if len(array) != count or logs.shape not in ((count,), array.shape):
        raise ValueError(
            f"log_prob returned shape {logs.shape} for actions of shape {array.shape} in {count} "
            f"states, expected ({count},), or one number for each dimension of each action"
        )
    return logs.sum(axis=tuple(range(1, logs.ndim)))


def _sample_distribution(distribution: Any, rng: np.random.Generator) -> NDArray[Any]:
    torch, like = _torch_of(distribution)
    if torch is None:
        return numpy_array(distribution.sample())
    device, cuda = like.device, like.device.type == "cuda"
    # Torch distributions use a global generator: seed it from rng, and restore it afterwards.
    with torch.random.fork_rng(devices=[device] if cuda else []):
        stream = torch.cuda.default_generators[device.index] if cuda else torch.default_generator
        stream.manual_seed(int(rng.integers(2**63)))
        return numpy_array(distribution.sample())
