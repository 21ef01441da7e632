"""A trunk with many heads: the weights of :class:`gvf.neural.NeuralHorde`.

    v_q(s) = h_q . (phi(s), 1),    phi the trunk, h_q the head of question q

Every question has the loss of :mod:`gvf.neural.tensors` on the rows drawn for its policy,

    L_q = 1/2 sum_i w_i delta_qi^2,    delta_qi = c_qi + gamma_qi v_q(s'_i) - v_q(s_i).

A head follows the gradient of its own L_q, so its step does not depend on the other questions. The
trunk follows the gradient of the mean of L_q over the questions that learn, so its step does not
grow with their number. Both are written out: with the errors ``e = w delta``,

    -dL_q / dh_q = sum_i e_qi (phi(s_i), 1),    -dL / dphi(s_i) = sum_q e_qi h_q / questions,

which are batched products for the questions of each policy. PyTorch goes on from phi(s_i). A clip
bounds the norm of what one question adds to the second sum, ``|e_q| |h_q|`` without the bias.
"""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gvf.common.arrays import Array, Arrays, Bools, Floats
from gvf.common.checks import brief
from gvf.common.divergence import DIVERGED
from gvf.horde.group_draws import DrawnRows
from gvf.horde.layout import Ints, Layout
from gvf.horde.shard import ShardOptions
from gvf.horde.watch import Watch
from gvf.horde.weights import Weights
from gvf.neural.network_checks import check_optimiser
from gvf.neural.neural_learner import ROWS, NetworkPrediction, described, evaluating
from gvf.neural.tensors import outputs_of, precision

_STEPS_PER_CALL = 16
"""The number of transitions that are inserted together; the answers do not depend on it."""
MakeOptimiser = Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]


class Headed(nn.Module):
    """A trunk, and a linear head for each of G questions: [G, d + 1], with the bias last.

    Heads begin with 0, so a question that is new does not move the trunk at once. Their width is 0
    until the first states show how many outputs the trunk has.
    """

    def __init__(self, trunk: nn.Module, count: int) -> None:
        super().__init__()
        self.trunk = trunk
        like = next(trunk.parameters(), torch.empty(0))
        self.heads = nn.Parameter(torch.zeros(count, 1, dtype=like.dtype, device=like.device))

    @property
    def width(self) -> int:
        """The number of outputs of the trunk, d; 0 until it is known."""
        return self.heads.shape[1] - 1

    def widen(self, width: int) -> None:
        """Give the heads the width of the trunk; the optimiser keeps the parameter."""
        self.heads.data = self.heads.new_zeros(len(self.heads), width + 1)

    def forward(self, states: Tensor) -> Tensor:
        """Return the outputs of the trunk, and a 1 for the bias: [m, d + 1]."""
        outputs = outputs_of(self.trunk, states)
        if not isinstance(outputs, Tensor):
            raise TypeError(f"a trunk must return a tensor [m, d], got {brief(outputs)}")
        if outputs.shape[:-1] != states.shape[:1] or self.width not in (0, outputs.shape[-1]):
            raise ValueError(
                f"a trunk must map states [m, ...] to [m, {self.width or 'd'}]; this one gives "
                f"{list(outputs.shape)} for states {list(states.shape)}"
            )
        return nn.functional.pad(outputs.to(self.heads.dtype), (0, 1), value=1.0)


@dataclass(frozen=True)
class NetworkChoice:
    """The choice of a trunk and its heads as the weights of a horde.

    Args:
        trunk: the trunk.
        optimiser: a function that makes the optimiser.
        target_every: the number of updates between copies to the target network, or None.
        clip: the largest norm of the gradient that one question has for the features, or None.
        mixed_precision: True to compute the trunk in bfloat16.
        device: the device.
        dtype: the type of the weights.
    """

    trunk: nn.Module
    optimiser: MakeOptimiser
    target_every: int | None
    clip: float | None
    mixed_precision: bool
    device: torch.device
    dtype: np.dtype[Any]
    size = 0  # nobody knows the width of the heads before the first states
    first_size = 1.0
    on_device = False
    step_size_rule = None

    def check_memory(self, layout: Layout, window: int) -> None:
        """Leave it to PyTorch, because the width of the heads is not known."""

    def new_watch(self, layout: Layout, rows: int) -> Watch:
        """Make a watch of predictions, which come from the device; RUPEE needs fixed features."""
        return Watch(layout, rows, 0, self.dtype)

    def new_weights(
        self, layout: Layout, dense: bool, options: ShardOptions, steps_per_call: int
    ) -> NetworkWeights:
        """Make heads that are 0, and the optimiser."""
        return NetworkWeights(
            layout,
            self.trunk,
            self.optimiser,
            self.target_every,
            self.clip,
            self.mixed_precision,
            self.device,
        )

    def best_steps_per_call(self, layout: Layout, dense: bool, options: ShardOptions) -> int:
        """Return the number of transitions that are inserted together."""
        return _STEPS_PER_CALL


class Drawn(NamedTuple):
    """The distinct rows of an update, [R, ...], and which of them were drawn."""

    x: Tensor
    """The features of the states, [R, d + 1]."""
    x_next: Tensor
    """The features of the next states, by the target network."""
    cumulant: Tensor
    continuation: Tensor
    at: Tensor
    """The drawn rows of each group, or of all: numbers of distinct rows, int64[D, k]."""
    w: Tensor
    """The weights of the drawn rows at each place, [G, k]."""


class NetworkWeights(NetworkPrediction, Weights):
    """The trunk and the heads of all questions, changed by drawn rows.

    Args:
        layout: the layout of the questions.
        trunk: the trunk, on its device.
        optimiser: a function that makes the optimiser.
        target_every: the number of updates between copies to the target network, or None.
        clip: the largest norm of the gradient that one question has for the features, or None.
        mixed_precision: True to compute the trunk in bfloat16.
        device: the device.
    """

    network: Headed

    def __init__(
        self,
        layout: Layout,
        trunk: nn.Module,
        optimiser: MakeOptimiser,
        target_every: int | None,
        clip: float | None,
        mixed_precision: bool,
        device: torch.device,
    ) -> None:
        network = Headed(trunk, len(layout)).to(device)
        super().__init__(network, device, mixed_precision)
        self.optimiser = optimiser(network.parameters())
        check_optimiser(self.optimiser)
        self.optimiser_as_made = described(self.optimiser)
        self.target_every, self.clip, self.updates = target_every, clip, 0
        # Without a target network, the network itself gives v(s').
        self._target = copy.deepcopy(network).requires_grad_(False) if target_every else network
        self._networks = [network, self._target] if target_every else [network]
        self._number = _number(self.optimiser, network.heads)
        if self._number < 0:
            raise ValueError("the optimiser leaves out the heads, the first of its parameters")
        self.diverged = torch.zeros(len(layout), dtype=torch.bool, device=device)
        self._blocks = _blocks(layout.starts)
        self._group, self._cumulant, self._source = (
            torch.as_tensor(part, device=device)
            for part in (layout.group, layout.cumulant, layout.source)
        )
        self._scale = torch.as_tensor(layout.scale, dtype=self._dtype, device=device)

    def see(self, x: Array) -> None:
        """Find the width of the heads from the first states."""
        if not self.network.width and len(x):
            with evaluating(self.network), torch.no_grad():
                self._widen(self._features(self.network, x[:1].copy()).shape[1] - 1)

    def _widen(self, width: int) -> None:
        """Give the heads their width, and whatever the optimiser keeps for them from the start."""
        heads = self.network.heads
        memory = self.optimiser.state.get(heads, {})
        for name, part in memory.items():
            if isinstance(part, Tensor) and part.shape == heads.shape:
                memory[name] = part.expand(-1, width + 1).clone()
        for network in self._networks:
            network.widen(width)

    def _features(self, network: Headed, states: Any) -> Tensor:
        with precision(self.device, self.mixed_precision):
            return network(self._put(states))

    def _values(self, network: Headed, states: Tensor) -> Tensor:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self._features(network, states) @ network.heads.mT

    def apply(self, columns: Arrays, drawn: DrawnRows, step_size: Floats | None) -> None:
        """Apply U updates at all places, whatever they predict."""
        everywhere = np.full(len(self._group), np.inf)
        self.learn(columns, drawn, step_size, np.zeros(0, np.int64), lambda: everywhere)

    def learn(
        self,
        columns: Arrays,
        drawn: DrawnRows,
        step_size: Floats | None,
        paused: Ints,
        limits: Callable[[], Floats],
    ) -> Bools:
        """Apply U updates, and return the places that diverge, which do not learn from then on.

        There is no step size, because the optimiser has it; see :class:`gvf.horde.weights.Weights`.
        """
        may_learn = np.ones(len(self._group), np.bool_)
        may_learn[paused] = False
        learns, limit = self._put(may_learn), self._put(limits())
        for rows, w, has_mass in zip(drawn.rows, drawn.w, drawn.has_mass, strict=True):
            has_rows = self._put(has_mass > 0)[self._group]
            self.diverged |= self._update(columns, rows, w, learns & has_rows, limit)
            learns &= ~self.diverged
        return self.diverged.cpu().numpy()

    def _update(
        self, columns: Arrays, rows: Ints, w: Floats, learns: Tensor, largest: Tensor
    ) -> Tensor:
        """Take a step for rows [D, k] with weights [groups, k]; return who diverged, bool[G]."""
        if not learns.any():
            return learns
        distinct, numbers = np.unique(rows, return_inverse=True)
        pieces = [distinct[i : i + ROWS] for i in range(0, len(distinct), ROWS)]
        with torch.no_grad():
            x_next = [self._features(self._target, columns["x_next"][piece]) for piece in pieces]
        # Many rows pass the trunk a second time, so that a piece at a time has its graph in memory.
        with torch.set_grad_enabled(len(pieces) == 1):
            x = [self._features(self.network, columns["x"][piece]) for piece in pieces]
        drawn = Drawn(
            torch.cat(x).detach(),
            torch.cat(x_next),
            self._put(columns["cumulant"][distinct]),
            self._put(columns["continuation"][distinct]),
            torch.as_tensor(numbers.reshape(rows.shape), device=self.device),
            self._put(w)[self._group],
        )
        errors, sizes = self._errors(drawn)
        pulls = errors.abs().amax(dim=1) * self.network.heads.detach().abs().amax(dim=1)
        diverged = learns & ~((sizes <= DIVERGED * largest) & pulls.isfinite())
        learns = learns & ~diverged
        if not learns.any():
            return diverged
        self.optimiser.zero_grad()
        slopes = self._slopes(drawn, errors.where(learns[:, None], 0.0), learns)
        for piece, slope in zip(pieces, slopes.split(ROWS), strict=True):
            features = (
                x[0] if len(pieces) == 1 else self._features(self.network, columns["x"][piece])
            )
            if features.requires_grad:
                features.backward(slope)
        self._step(learns)
        return diverged

    @torch.no_grad()
    def _errors(self, drawn: Drawn) -> tuple[Tensor, Tensor]:
        """Return w delta of the drawn rows, [G, k], and the largest absolute values, [G]."""
        errors, sizes = torch.empty_like(drawn.w), torch.empty_like(drawn.w[:, 0])
        for weights, places, shape in self._parts(drawn.at):
            v = _stack(self.network.heads, places, shape) @ drawn.x[weights].mT  # [p, q, k]
            v_next = _stack(self._target.heads, places, shape) @ drawn.x_next[weights].mT
            cumulant, source, scale, w = (
                _stack(part, places, shape)
                for part in (self._cumulant, self._source, self._scale, drawn.w)
            )
            rows = weights[:, None]
            gamma = scale * drawn.continuation[rows, source]
            delta = torch.addcmul(drawn.cumulant[rows, cumulant], gamma, v_next) - v
            errors[places] = (w * delta).flatten(0, 1)
            sizes[places] = torch.maximum(v.abs(), v_next.abs()).amax(dim=2).flatten()
        return errors, sizes

    @torch.no_grad()
    def _slopes(self, drawn: Drawn, errors: Tensor, learns: Tensor) -> Tensor:
        """Write the gradient of the heads, and return that of the features, [R, d + 1]."""
        # A head that has diverged may not be a number, and 0 times it neither.
        heads = self.network.heads.where(learns[:, None], 0.0)
        shares = errors / learns.sum()
        if self.clip is not None:
            norms = errors.norm(dim=1) * heads[:, :-1].norm(dim=1)
            shares = shares * (self.clip / norms.clamp(min=self.clip))[:, None]
        gradient, slopes = torch.empty_like(heads), torch.zeros_like(drawn.x)
        for weights, places, shape in self._parts(drawn.at):
            pull = _stack(errors, places, shape) @ drawn.x[weights]  # [p, q, d + 1]
            gradient[places] = -pull.flatten(0, 1)
            slope = _stack(shares, places, shape).mT @ _stack(heads, places, shape)
            slopes.index_add_(0, weights.flatten(), slope.flatten(0, 1), alpha=-1)
        self.network.heads.grad = gradient
        return slopes

    def _parts(self, at: Tensor) -> Iterator[tuple[Tensor, slice, tuple[int, int]]]:
        """Yield the drawn rows [p, k], the places and the shape of each block of p x q questions.

        If all groups share their rows, there is one block.
        """
        if len(at) == 1:
            yield at, slice(0, len(self._group)), (1, len(self._group))
        else:
            for groups, places in self._blocks:
                count = groups.stop - groups.start
                yield at[groups], places, (count, (places.stop - places.start) // count)

    def _step(self, learns: Tensor) -> None:
        """Take a step of the optimiser; whatever belongs to a question that pauses stays."""
        waits = ~learns
        kept = [(part, part[waits]) for part in self._rows()] if waits.any() else []
        self.optimiser.step()
        for part, rows in kept:
            part[waits] = rows
        self.updates += 1
        if self.target_every and self.updates % self.target_every == 0:
            self._target.load_state_dict(self.network.state_dict())

    def _rows(self) -> list[Tensor]:
        """Return the tensors that have a row for each head: weights, and the optimiser's memory."""
        heads = self.network.heads.detach()
        memory = self.optimiser.state.get(self.network.heads, {}).values()
        alike = (p for p in memory if isinstance(p, Tensor) and p.shape == heads.shape)
        return [heads, *alike]

    def take(self, places: Any) -> dict[str, NDArray[Any]]:
        """Return trunk, target and optimiser, with the heads at some places, saved by PyTorch."""
        at = torch.as_tensor(places, device=self.device)
        networks = [
            {**network.state_dict(), "heads": network.heads.detach()[at]}
            for network in self._networks
        ]
        optimiser = self.optimiser.state_dict()
        memory = optimiser["state"].get(self._number)
        if memory is not None:
            moved = self._moved(memory, self.network.heads.shape, lambda rows: rows[at], places)
            optimiser["state"] = {**optimiser["state"], self._number: moved}
        buffer = io.BytesIO()
        torch.save([networks, optimiser], buffer)
        saved = np.frombuffer(buffer.getvalue(), np.uint8)
        return {"torch": saved, "updates": np.array(self.updates)}

    def put(self, places: Any, arrays: Arrays) -> None:
        """Restore what :meth:`take` returned, without running code in it; other heads are new."""
        buffer = io.BytesIO(arrays["torch"].tobytes())
        networks, optimiser = torch.load(buffer, map_location=self.device, weights_only=True)
        at = torch.as_tensor(places, device=self.device)
        if not self.network.width:
            self._widen(networks[0]["heads"].shape[1] - 1)

        def spread(rows: Tensor) -> Tensor:
            out = rows.new_zeros(self.network.heads.shape)
            out[at] = rows
            return out

        for network, state in zip(self._networks, networks, strict=True):
            network.load_state_dict({**state, "heads": spread(state["heads"])})
        memory = optimiser["state"].get(self._number)
        if memory is not None:
            shape = torch.Size((len(at), self.network.width + 1))
            optimiser["state"][self._number] = self._moved(memory, shape, spread, places)
        self.optimiser.load_state_dict(optimiser)
        self.updates = int(arrays["updates"])

    def _moved(
        self,
        memory: dict[str, Any],
        shape: torch.Size,
        move: Callable[[Tensor], Tensor],
        places: Any,
    ) -> dict[str, Any]:
        """Return the optimiser's memory of the heads with its rows moved.

        A memory that has not a row for each head, as in Adafactor, begins anew if places change.
        """
        apart = [part for part in memory.values() if isinstance(part, Tensor) and part.ndim]
        if len(places) < len(self._group) and any(part.shape != shape for part in apart):
            return {}
        return {
            name: move(part) if isinstance(part, Tensor) and part.shape == shape else part
            for name, part in memory.items()
        }


def _blocks(starts: Ints) -> list[tuple[slice, slice]]:
    """Return the groups and the places of neighbouring groups with equally many questions."""
    sizes = np.diff(starts)
    edges = [0, *(np.flatnonzero(np.diff(sizes)) + 1).tolist(), len(sizes)]
    return [(slice(a, b), slice(int(starts[a]), int(starts[b]))) for a, b in pairwise(edges)]


def _stack(part: Tensor, places: slice, shape: tuple[int, int]) -> Tensor:
    """Return a view [p, q, ...] of what belongs to neighbouring places [G, ...]."""
    return part[places].view(*shape, part.shape[1] if part.ndim == 2 else 1)


def _number(optimiser: torch.optim.Optimizer, heads: nn.Parameter) -> int:
    """Return the number by which an optimiser's state names the heads; -1 if it leaves them out."""
    parameters = (weights for group in optimiser.param_groups for weights in group["params"])
    return next((i for i, weights in enumerate(parameters) if weights is heads), -1)
