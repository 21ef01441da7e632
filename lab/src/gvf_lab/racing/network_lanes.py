"""Lanes: many copies of a network, trained at once on shared draws.

A sensitivity figure trains the same network for every (method, learning rate, run). Here their
weights are stacked, one row per lane, and one program updates all of them. Lane l descends the
gradient of

    1/2 sum_i w_li (c_i + gamma_i v_l(s'_i) - v_l(s_i))^2,    v_l(s'_i) taken as fixed.

Lanes do not affect each other, so a lane equals the same network trained alone, up to rounding.
:class:`gvf.neural.NeuralLearner` is one network with a window; here the caller supplies the draws.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import index
from threading import Lock
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap
from torch.nn.modules.dropout import _DropoutNd

from gvf.common.checks import brief
from gvf.neural.network_kernels import (
    as_batch,
    as_device,
    as_input,
    check_network,
    check_optimiser,
    check_options,
    flat_values,
    precision,
    td_loss,
)
from gvf_lab.racing.cuda_graph import Graph, can_be_recorded

_ROWS = 1024  # predictions made at a time, over all lanes
_making = Lock()  # all threads share the random numbers of initial weights
_JOINT = ("Adafactor", "Muon", "SparseAdam")
"""Optimisers whose step of one weight depends on other weights, and so on other lanes."""

Weights = dict[str, Tensor]
"""The parameters of a network by name; those of a stack have lanes as first axis."""


class Lanes:
    """Copies of a network, each with its own learning rate and initial weights.

    Args:
        make_network: a function that makes a network; called once for every distinct seed. Frozen
            parameters (``requires_grad=False``) do not change. Networks with buffers or dropout are
            not supported.
        optimiser: a function that makes a PyTorch optimiser from a list of parameter groups, each
            with its ``lr``: ``torch.optim.Adam``, or ``partial(torch.optim.RMSprop, alpha=0.9)``.
            The optimiser must treat each weight by itself, as most do.
        learning_rates: the learning rate of each lane.
        seeds: the seed of the initial weights of each lane.
        group: the row of draws that each lane uses; lanes with the same row share their draws. By
            default all lanes use row 0.
        device: the device of the weights.
        clip: the largest norm of a lane's gradient; by default there is none.
        target_every: the number of updates between copies of the weights to a target network, which
            gives v(s'). By default the weights themselves give v(s').
        mixed_precision: True to compute layers in bfloat16; weights, errors and steps keep their
            type.
        together: True to pass all lanes through the network as one stack, False for one after the
            other. The default is a stack, except for convolutions on a CPU, where it is slower.
        graph: True to record an update on a GPU once, as a CUDA graph, and to replay it from then
            on, which saves the time of starting each operation. The default is True for a stack on
            a GPU, if the optimiser can be recorded. Results agree up to rounding.

    Example:
        >>> import torch
        >>> from gvf_lab.racing.network_lanes import Lanes
        >>> from gvf.neural import mlp
        >>> lanes = Lanes(lambda: mlp(2), torch.optim.SGD, [0.1, 0.001, 0.1], seeds=[0, 0, 1])
        >>> states, ones = torch.zeros(1, 16, 2), torch.ones(1, 16)
        >>> for _ in range(100):
        ...     lanes.update(states, states, ones, 0 * ones, torch.full((3, 16), 1 / 16))
        >>> (lanes.predict(torch.zeros(1, 2)) > 0.9).tolist()
        [[True], [False], [True]]
    """

    def __init__(
        self,
        make_network: Callable[[], nn.Module],
        optimiser: Callable[[list[dict[str, Any]]], torch.optim.Optimizer],
        learning_rates: Iterable[float],
        seeds: Iterable[int],
        *,
        group: Iterable[int] | None = None,
        device: str | torch.device = "cpu",
        clip: float | None = None,
        target_every: int | None = None,
        mixed_precision: bool = False,
        together: bool | None = None,
        graph: bool | None = None,
    ) -> None:
        rates = _numbers("learning_rates", learning_rates, float)
        seeds = _numbers("seeds", seeds, index)
        count = len(rates)
        group = [0] * count if group is None else _numbers("group", group, index)
        if not 0 < count == len(seeds) == len(group):
            raise ValueError(
                "give one learning rate, one seed and one group a lane; "
                f"got {count}, {len(seeds)} and {len(group)}"
            )
        for lane, (rate, row) in enumerate(zip(rates, group, strict=True)):
            if not rate >= 0.0:
                raise ValueError(f"a learning rate must be at least 0, got {rate} in lane {lane}")
            if row < 0:
                raise ValueError(f"a group is a row, 0 or more; got {row} in lane {lane}")
        if isinstance(make_network, nn.Module) or not callable(make_network):
            raise TypeError(
                "make_network must be a function that makes a network, such as lambda: mlp(2), "
                f"got {brief(make_network)}"
            )
        check_options(optimiser, target_every, clip)
        _check_apart(optimiser)
        self.device = as_device(device)
        self.clip, self.target_every = clip, target_every
        self.mixed_precision = mixed_precision
        self.updates = 0
        self._made_with = {"learning_rates": rates, "seeds": seeds, "group": group}
        networks = {seed: _seeded(make_network, seed) for seed in dict.fromkeys(seeds)}
        form = check_network(networks[seeds[0]], "what make_network makes")
        if next(form.buffers(), None) is not None:
            raise ValueError(
                "a network with buffers, such as the running means of BatchNorm, cannot be stacked"
            )
        for part in form.modules():
            if isinstance(part, _DropoutNd) and part.p > 0.0:
                raise ValueError(f"a network with dropout cannot be stacked; leave out {part}")
        if together is None:
            convolutions = any(isinstance(part, nn.Conv2d) for part in form.modules())
            together = self.device.type != "cpu" or not convolutions
        # Lanes of one learning rate are adjacent, so that they are a slice of the stack.
        order = sorted(range(count), key=lambda lane: rates[lane])
        self._order = torch.tensor(order, device=self.device)
        self._place = torch.argsort(self._order)
        self._groups = [group[lane] for lane in order]
        self._group = torch.tensor(self._groups, device=self.device)
        self._stack: Weights = {
            name: _stacked(
                [networks[seeds[lane]].get_parameter(name) for lane in order], self.device
            )
            for name, _ in form.named_parameters()
        }
        self._gradients = [w.grad for w in self._stack.values() if w.grad is not None]
        self._dtype = next(iter(self._stack.values())).dtype
        self._network = copy.deepcopy(form).to("meta")  # only its form is needed from here on
        self._target = _copy(self._stack) if target_every else self._stack
        groups, first = [], 0
        for rate, lanes in groupby(rates[lane] for lane in order):
            last = first + len(list(lanes))
            part = _part(self._stack, slice(first, last)).values()
            groups.append({"params": [w for w in part if w.requires_grad], "lr": rate})
            first = last
        self._optimiser = optimiser(groups)
        self._apart = None if together else [_part(self._stack, lane) for lane in range(count)]
        possible = self.device.type == "cuda" and together and can_be_recorded(self._optimiser)
        if graph and not possible:
            raise ValueError(
                "graph=True needs a stack of lanes on a GPU, and an optimiser that can be "
                "recorded, such as torch.optim.Adam, RMSprop or SGD"
            )
        self._recorded = possible and graph is not False
        self._prepare_optimiser()

    def __len__(self) -> int:
        return len(self._groups)

    @property
    def diverged(self) -> Tensor:
        """True for lanes with a weight that is not finite, bool[lanes]."""
        finite = [weights.isfinite().flatten(1).all(dim=1) for weights in self._stack.values()]
        return ~torch.stack(finite).all(dim=0)[self._place]

    def update(
        self, states: Any, next_states: Any, cumulant: Any, continuation: Any, weights: Any
    ) -> None:
        """Update every lane once.

        Tensors on the device are used without a copy, and the call does not wait for the device. A
        lane whose weights are all 0 still takes its optimiser's step.

        Args:
            states: the drawn states, [groups, k, ...], with a row for each group of lanes.
            next_states: the next states, in the same form.
            cumulant: the cumulants, [groups, k].
            continuation: the continuations, [groups, k].
            weights: a correction's weights of the draws, [lanes, k].
        """
        drawn = [self._put(x) for x in (states, next_states, cumulant, continuation)]
        lane_weights = self._put(weights)
        self._check(drawn, lane_weights)
        if self._graph is None:
            self._step(*drawn, lane_weights)
        else:
            self._graph(self._step, *drawn, lane_weights)
        self.updates += 1
        if self.target_every and self.updates % self.target_every == 0:
            _assign(self._target, self._stack)

    def _step(self, *inputs: Tensor) -> None:
        *drawn, weights = inputs
        lane_weights = weights[self._order]
        for gradient in self._gradients:
            gradient.zero_()
        if self._apart is None:
            self._descend_together(drawn, lane_weights)
        else:
            self._descend_one_by_one(self._apart, drawn, lane_weights)
        if self.clip is not None:
            self._clip_gradients(self.clip)
        self._optimiser.step()

    @torch.no_grad()
    def predict(self, states: Any) -> Tensor:
        """Predict with all lanes for states [m, ...]: [lanes, m]."""
        pieces = self._put(as_batch(states)).split(max(16, _ROWS // len(self)))
        if self._apart is None:
            values = [self._stacked_values(self._stack, piece, None) for piece in pieces]
            return torch.cat(values, dim=1)[self._place]
        lanes = [torch.cat([self._values(w, piece) for piece in pieces]) for w in self._apart]
        return torch.stack(lanes)[self._place]

    def state_dict(self) -> dict[str, Any]:
        """Return the state for :meth:`load_state_dict` or ``torch.save``, without copying it.

        It includes learning rates, seeds and groups, so that a state of other lanes is recognised.
        """
        return {
            **self._made_with,
            "updates": self.updates,
            "weights": {name: weights.detach() for name, weights in self._stack.items()},
            "target": {name: weights.detach() for name, weights in self._target.items()},
            "optimiser": self._optimiser.state_dict(),
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the state of lanes that were made with the same arguments."""
        for name, weights in self._stack.items():
            stored = state["weights"].get(name)
            if stored is None or stored.shape != weights.shape:
                raise ValueError(
                    f"the state is of other lanes: {name} should be {list(weights.shape)} and is "
                    f"{'missing' if stored is None else list(stored.shape)}"
                )
        for name, argument in self._made_with.items():
            if state[name] != argument:
                raise ValueError(
                    f"the state is of other lanes: {name} should be {argument} and is {state[name]}"
                )
        _assign(self._stack, state["weights"])
        if self.target_every:
            _assign(self._target, state["target"])
        self._optimiser.load_state_dict(state["optimiser"])
        self._prepare_optimiser()
        self.updates = state["updates"]

    def _prepare_optimiser(self) -> None:
        """Tell the optimiser that it will be recorded; a recording of its old state is dropped."""
        self._graph = Graph() if self._recorded else None
        # Without this, PyTorch warns of the first steps, which are not recorded.
        vars(self._optimiser)["_warned_capturable_if_run_uncaptured"] = True
        for group in self._optimiser.param_groups:
            if "capturable" in group and self._recorded:
                group["capturable"] = True

    def _put(self, values: Any) -> Tensor:
        return as_input(values, self.device, self._dtype)

    def _check(self, drawn: list[Tensor], weights: Tensor) -> None:
        states, next_states, cumulant, continuation = drawn
        if weights.ndim != 2 or len(weights) != len(self):
            raise ValueError(f"weights must be [{len(self)} lanes, k], got {list(weights.shape)}")
        rows = (max(self._groups) + 1, weights.shape[1])
        if (
            not states.shape[:2]
            == next_states.shape[:2]
            == rows
            == cumulant.shape
            == continuation.shape
        ):
            raise ValueError(
                f"draws must be [{rows[0]} groups, {rows[1]}, ...], as groups and weights say; "
                f"got {', '.join(str(list(x.shape)) for x in drawn)}"
            )

    def _values(self, weights: Weights, states: Tensor) -> Tensor:
        """Compute the values [m] of one lane."""
        with precision(self.device, self.mixed_precision):
            return flat_values(
                lambda states: functional_call(self._network, weights, (states,)),
                states,
                self._dtype,
            )

    def _stacked_values(self, stack: Weights, states: Tensor, axis: int | None) -> Tensor:
        """Compute values [lanes, m] of states [lanes, m, ...] (axis 0) or [m, ...] (axis None)."""
        return vmap(self._values, in_dims=(0, axis))(stack, states)

    def _descend_together(self, drawn: list[Tensor], weights: Tensor) -> None:
        if len(set(self._groups)) == 1:
            axis, drawn = None, [x[self._groups[0]] for x in drawn]
        else:
            axis, drawn = 0, [x[self._group] for x in drawn]
        states, next_states, cumulant, continuation = drawn
        # Two passes, because a joint pass would also compute gradients for the next states.
        with torch.no_grad():
            next_values = self._stacked_values(self._target, next_states, axis)
        values = self._stacked_values(self._stack, states, axis)
        td_loss(values, next_values, cumulant, continuation, weights).backward()

    def _descend_one_by_one(
        self, apart: list[Weights], drawn: list[Tensor], weights: Tensor
    ) -> None:
        for lane, (group, parameters) in enumerate(zip(self._groups, apart, strict=True)):
            states, next_states, cumulant, continuation = (x[group] for x in drawn)
            target = {name: w[lane] for name, w in self._target.items()}
            with torch.no_grad():
                next_values = self._values(target, next_states)
            values = self._values(parameters, states)
            td_loss(values, next_values, cumulant, continuation, weights[lane]).backward()

    def _clip_gradients(self, largest: float) -> None:
        """Clip the gradient of each lane as ``torch.nn.utils.clip_grad_norm_`` does."""
        norms = [torch.linalg.vector_norm(g.flatten(1), dim=1) for g in self._gradients]
        norm = torch.linalg.vector_norm(torch.stack(norms), dim=0)
        factor = (largest / (norm + 1e-6)).clamp(max=1.0)
        for gradient in self._gradients:
            gradient.mul_(factor.view(-1, *(1,) * (gradient.ndim - 1)))


def _numbers(name: str, values: Any, kind: Callable[[Any], Any]) -> list[Any]:
    try:
        return [kind(value) for value in values]
    except (TypeError, ValueError):
        what = "a number" if kind is float else "a whole number"
        raise TypeError(f"{name} must be a sequence, {what} a lane, got {brief(values)}") from None


def _check_apart(optimiser: Callable[[list[dict[str, Any]]], Any]) -> None:
    # Tested with one weight, because some optimisers reject a stack with another message.
    trial = optimiser([{"params": [nn.Parameter(torch.zeros(1, 1))], "lr": 0.1}])
    check_optimiser(trial)
    if (kind := type(trial).__name__) in _JOINT:
        raise ValueError(
            f"{kind} does not treat each weight by itself, so that lanes would mix; use an "
            "optimiser such as torch.optim.Adam, RMSprop or SGD"
        )


def _seeded(make_network: Callable[[], nn.Module], seed: int) -> nn.Module:
    """Make a network whose initial weights depend only on the seed."""
    with _making, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return make_network()


def _stacked(rows: Sequence[Tensor], device: torch.device) -> Tensor:
    """Stack parameters as rows of one tensor, each with its own memory layout.

    The stack has a gradient, unless the parameters are frozen.
    """
    shape, stride = (len(rows), *rows[0].shape), (rows[0].numel(), *rows[0].stride())
    stack = torch.empty_strided(shape, stride, dtype=rows[0].dtype, device=device)
    stack.copy_(torch.stack([row.detach() for row in rows]))
    if rows[0].requires_grad:
        stack.requires_grad_().grad = torch.zeros_like(stack)
    return stack


def _part(stack: Weights, lanes: slice | int) -> Weights:
    """Return some lanes of a stack, which share the memory of weights and gradients."""
    parts = {}
    for name, weights in stack.items():
        parts[name] = weights.detach()[lanes]
        if weights.grad is not None:
            parts[name].requires_grad_().grad = weights.grad[lanes]
    return parts


def _copy(stack: Weights) -> Weights:
    return {name: weights.detach().clone() for name, weights in stack.items()}


@torch.no_grad()
def _assign(stack: Weights, values: Mapping[str, Tensor]) -> None:
    """Set a stack in place, since a graph keeps the addresses of its tensors."""
    for name, weights in stack.items():
        weights.copy_(values[name])
