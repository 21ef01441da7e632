"""The neural learner: one question answered by a network, from a window of experience.

    transitions -> question (ratio, cumulant, continuation) -> window -> draw (slots, weights)
                -> loss -> gradient -> optimiser -> predictions

This is the counterpart of :class:`gvf.Learner`, with a network instead of features and weights, and
a PyTorch optimiser instead of an update. The corrections and the draws are the same.
"""

from __future__ import annotations

import copy
import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from gvf.common.arrays import Floats
from gvf.corrections import IR, Correction
from gvf.learners import update_loop
from gvf.learners.learner_options import (
    LearnerKeywords,
    LearnerOptions,
    documents_options,
    options_of,
)
from gvf.learners.one_question import check_question
from gvf.learners.update_loop import Schedule
from gvf.learners.window_learner import WindowLearner
from gvf.neural.network_checks import (
    as_device,
    check_network,
    check_optimiser,
    check_options,
    check_states,
)
from gvf.neural.tensors import as_batch, as_input, flat_values, precision, td_loss
from gvf.question import GVF
from gvf.sampling.random_streams import native
from gvf.sampling.ratio_ring import Slots
from gvf.transition import Transitions, check_no_nan
from gvf.window import Window
from gvf.window.buffer import Buffer, Rows
from gvf.window.frame_window import FrameWindow

ROWS = 1024  # states passed through the network at a time
_LOOKED_AT = 16  # states whose predictions are checked for divergence


@documents_options(
    LearnerOptions,
    window="the number of recent transitions to keep, n; or an empty window, for example a "
    ":class:`gvf.FrameWindow`, which stores every frame once.",
    seed="the seed of the draws; anything that :func:`numpy.random.default_rng` takes. For "
    "reproducible initial weights call ``torch.manual_seed(0)`` before making the network.",
)
class NeuralLearner(WindowLearner):
    """A learner with a network: it answers one question by semi-gradient TD(0).

    An update draws k transitions and takes one step of the optimiser on the loss
    ``1/2 sum_i w_i (c_i + gamma_i v(s'_i) - v(s_i))^2``, with v(s') taken as fixed. The weights w
    are those of the correction and contain the 1 / k.

    Args:
        question: the question to answer.
        network: any module that maps states [m, ...] to values [m] or [m, 1]. Floating-point states
            are converted to the network's type; integers (frames in uint8, numbers of states) are
            passed on unchanged.
        optimiser: a function that makes an optimiser from parameters, such as
            ``partial(torch.optim.Adam, lr=1e-3)``. ``LBFGS`` is not supported, because it needs
            more than one gradient per step.
        correction: the correction for the behaviour: :class:`gvf.corrections.IR`,
            :class:`gvf.corrections.IS` and others.
        {options}
        target_every: the number of updates between copies of the network to a target network, which
            gives v(s'). By default the network itself gives v(s').
        clip: the largest norm of the gradient; by default there is none.
        device: the device of the network, for example ``"cuda"``.
        mixed_precision: True to compute layers in bfloat16; weights, errors and steps keep their
            type.

    Example:
        >>> from functools import partial
        >>> import gymnasium, gvf, torch
        >>> from gvf.neural import NeuralLearner, mlp
        >>> _ = torch.manual_seed(0)
        >>> question = gvf.GVF(gvf.policies.Always(1, actions=2), lambda t: t.terminated, 0.9)
        >>> learner = NeuralLearner(
        ...     question, mlp(4), partial(torch.optim.Adam, lr=1e-3), gvf.corrections.IR(),
        ...     behaviour=gvf.policies.Uniform(2), seed=0,
        ... )
        >>> report = learner.learn(gymnasium.make("CartPole-v1"), steps=200, seed=0)
        >>> report.updates + report.skipped
        200
        >>> learner.predict([[0.0, 0.0, 0.0, 0.0]]).shape
        (1,)
    """

    kind: ClassVar[str] = "neural learner"
    values: NetworkValues  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(
        self,
        question: GVF,
        network: nn.Module,
        optimiser: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer],
        correction: Correction = IR(),  # noqa: B008 (frozen)
        *,
        target_every: int | None = None,
        clip: float | None = None,
        device: str | torch.device = "cpu",
        mixed_precision: bool = False,
        **options: Unpack[LearnerKeywords],
    ) -> None:
        check_question(question)
        chosen = options_of(LearnerOptions, self, options)
        # The first of two, so that a linear learner with the same seed has the same draws.
        rng = native(np.random.default_rng(chosen.seed).spawn(2)[0])
        values = NetworkValues(
            network, optimiser, target_every, clip, as_device(device), mixed_precision
        )
        super().__init__(question, correction, values, chosen, rng)

    @property
    def network(self) -> nn.Module:
        """The network, on its device."""
        return self.values.network

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        """The optimiser of the network's weights."""
        return self.values.optimiser

    @property
    def device(self) -> torch.device:
        """The device of the network."""
        return self.values.device


class NetworkPrediction:
    """A network for predictions, on its device."""

    def __init__(self, network: nn.Module, device: torch.device, mixed_precision: bool) -> None:
        self.network, self.device, self.mixed_precision = network, device, mixed_precision
        self._dtype = next(network.parameters()).dtype

    @classmethod
    def load(cls, network: nn.Module, form: str, weights: NDArray[np.uint8]) -> Self:
        """Load saved weights into a network of the same form."""
        check_network(network, "network")
        if in_words(network) != form:
            raise ValueError(
                f"the network has another form.\nThere: {form}\nHere:  {in_words(network)}"
            )
        state = torch.load(io.BytesIO(weights.tobytes()), map_location="cpu", weights_only=True)
        network.load_state_dict(state)
        return cls(network, next(network.parameters()).device, mixed_precision=False)

    def predict(self, states: Any) -> Floats:
        """Predict for a batch of states [m, ...]: [m], with the network in ``eval`` mode."""
        pieces = as_batch(states).split(ROWS)
        with evaluating(self.network), torch.no_grad():
            values = [self._values(self.network, self._put(piece)) for piece in pieces]
        return torch.cat(values).cpu().numpy()

    def _put(self, values: Any) -> Tensor:
        return as_input(values, self.device, self._dtype)

    def _values(self, network: nn.Module, states: Tensor) -> Tensor:
        with precision(self.device, self.mixed_precision):
            return flat_values(network, states, self._dtype)


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Keep a network in ``eval`` mode, then restore the mode of each part; they may differ."""
    modes = [(part, part.training) for part in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def in_words(network: nn.Module) -> str:
    """Describe the form of a network in a line that is the same in every process."""
    return " ".join(re.sub(r" at 0x[0-9a-fA-F]+", "", repr(network)).split())


class NetworkValues(NetworkPrediction):
    """The value function of :class:`NeuralLearner`: a network, its target and its optimiser."""

    def __init__(
        self,
        network: nn.Module,
        optimiser: Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer],
        target_every: int | None,
        clip: float | None,
        device: torch.device,
        mixed_precision: bool,
    ) -> None:
        check_network(network, "network")
        check_options(optimiser, target_every, clip)
        super().__init__(network.to(device), device, mixed_precision)
        self.optimiser = optimiser(self.network.parameters())
        check_optimiser(self.optimiser)
        self.target_every, self.clip = target_every, clip
        self.updates, self.first_size = 0, 1.0
        self._optimiser_as_made = described(self.optimiser)
        # Without a target network, the network itself gives v(s').
        self._target = copy.deepcopy(network).requires_grad_(False) if target_every else network
        self._largest = torch.finfo(self._dtype).max

    def represent(self, transitions: Transitions) -> dict[str, NDArray[Any]]:
        """Return the columns to keep in the window."""
        columns = {name: transitions[name] for name in ("state", "next_state")}
        check_states(columns["state"])
        for name, states in columns.items():
            check_no_nan(name, states)
        return columns

    def observe(self, buffer: Buffer, rows: Rows, schedule: Schedule) -> None:
        """Insert rows into the buffer, and update whenever an update is due."""
        update_loop.observe(self, buffer, rows, schedule)

    def repeat(self, buffer: Buffer, schedule: Schedule, times: int) -> None:
        """Draw, weigh and update so many times, without new rows."""
        for _ in range(times if len(buffer) else 0):
            update_loop.learn_once(self, buffer, schedule)

    def row_size(self, transitions: Transitions) -> int:
        """Return the size in bytes that the states of one transition take in the window."""
        return transitions["state"].nbytes + transitions["next_state"].nbytes

    def update(self, buffer: Buffer, slots: Slots, w: Floats) -> None:
        """Take one step of the optimiser for the transitions in slots [k] with weights w [k]."""
        fits = np.abs(w) <= self._largest
        if not fits.all():
            at = int(fits.argmin())
            raise ValueError(
                f"the weight {w[at]:g} of a drawn transition, whose ratio is "
                f"{buffer.ratios[slots[at]]:g}, is no number of the network's "
                f"{self._dtype}; use a correction that bounds weights, such as "
                "gvf.corrections.IR() or gvf.corrections.VTrace(1.0), or a network in float64, "
                "network.double()"
            )
        self.optimiser.zero_grad()
        # The loss is a sum, so a whole window can be processed in pieces.
        for start in range(0, len(slots), ROWS):
            piece = slice(start, start + ROWS)
            states, next_states, cumulant, continuation = self._drawn(buffer.window, slots[piece])
            with torch.no_grad():
                next_values = self._values(self._target, next_states)
            values = self._values(self.network, states)
            td_loss(values, next_values, cumulant, continuation, self._put(w[piece])).backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
        self.optimiser.step()
        self.updates += 1
        if self.target_every and self.updates % self.target_every == 0:
            self._target.load_state_dict(self.network.state_dict())

    @torch.no_grad()
    def td_errors(self, buffer: Buffer, slots: Slots) -> Floats:
        """Return the TD errors of the transitions in slots [k]."""
        errors = []
        for start in range(0, len(slots), ROWS):
            drawn = self._drawn(buffer.window, slots[start : start + ROWS])
            states, next_states, cumulant, continuation = drawn
            target = cumulant + continuation * self._values(self._target, next_states)
            errors.append(target - self._values(self.network, states))
        return torch.cat(errors).cpu().numpy().astype(np.float64)

    def predict_sample(self, window: Window | FrameWindow) -> Floats:
        """Return predictions for a few states of the window, [m, 1].

        They are infinite if a weight is not finite.
        """
        if not all(bool(weights.isfinite().all()) for weights in self.network.parameters()):
            return np.full((1, 1), np.inf)
        slots = np.linspace(0, len(window) - 1, _LOOKED_AT).astype(np.int64)
        return self.predict(self._drawn(window, slots)[0])[:, None]

    @property
    def were_set(self) -> bool:
        """False, because a network has weights from the start."""
        return False

    @property
    def step_size(self) -> float | None:
        """None, because the optimiser has the step size."""
        return None

    @property
    def parts(self) -> dict[str, Any]:
        """The descriptions of network and optimiser, and the options."""
        return {
            "network": in_words(self.network),
            "optimiser": self._optimiser_as_made,
            "target_every": self.target_every,
            "clip": self.clip,
            "mixed_precision": self.mixed_precision,
        }

    def check(self, window: Window | FrameWindow) -> None:
        """Raise ValueError if the window lacks a column."""
        for name in ("state", "next_state", "cumulant", "continuation"):
            if name not in window[[0]]:
                raise ValueError(f"the window has no column {name!r}")

    @property
    def exported(self) -> dict[str, Any]:
        """The description of the network, and its weights."""
        buffer = io.BytesIO()
        torch.save(self.network.state_dict(), buffer)
        weights = np.frombuffer(buffer.getvalue(), np.uint8)
        return {"network": in_words(self.network), "weights": weights}

    @property
    def rngs(self) -> tuple[np.random.Generator, ...]:
        """An empty tuple, because PyTorch has its own random numbers."""
        return ()

    def checkpoint(self) -> dict[str, NDArray[Any]]:
        """Return the weights of network and target, and the optimiser's state, saved by PyTorch."""
        parts = (self.network, self._target, self.optimiser)
        buffer = io.BytesIO()
        torch.save([part.state_dict() for part in parts], buffer)
        saved = np.frombuffer(buffer.getvalue(), np.uint8)
        return {"torch": saved, "updates": np.array(self.updates)}

    def restore(self, arrays: dict[str, NDArray[Any]]) -> None:
        """Restore the arrays that :meth:`checkpoint` returned, without running code in them."""
        buffer = io.BytesIO(arrays["torch"].tobytes())
        states = torch.load(buffer, map_location=self.device, weights_only=True)
        for part, state in zip((self.network, self._target, self.optimiser), states, strict=True):
            part.load_state_dict(state)
        self.updates = int(arrays["updates"])

    def _drawn(
        self, window: Window | FrameWindow, slots: Slots
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return states, next states, cumulants and continuations of slots, on the device."""
        if not isinstance(window, FrameWindow):
            drawn = window[slots]
            numbers = (drawn.state, drawn.next_state, drawn.cumulant, drawn.continuation)
            return tuple(map(self._put, numbers))  # pyright: ignore[reportReturnType]
        # Pinned memory, which a GPU reads without waiting for the CPU.
        shape = (2, len(slots), *window.frame_shape)
        frames = torch.empty(shape, dtype=torch.uint8, pin_memory=self.device.type == "cuda")
        window.gather(slots, state=frames[0].numpy(), next_state=frames[1].numpy())
        states, next_states = self._put(frames)
        columns = window.columns
        cumulant, continuation = (columns[name][slots] for name in ("cumulant", "continuation"))
        return states, next_states, self._put(cumulant), self._put(continuation)


def described(optimiser: torch.optim.Optimizer) -> str:
    """Describe an optimiser by its kind and the settings that are not off or 0."""
    groups = [
        ", ".join(f"{name}={value}" for name, value in group.items() if name != "params" and value)
        for group in optimiser.param_groups
    ]
    return f"{type(optimiser).__name__}({'; '.join(groups)})"
