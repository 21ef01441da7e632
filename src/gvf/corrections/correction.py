"""The base of corrections: kernels, with parameters, that draw and weigh rows.

Draw slot i with probability proportional to p_i, then add ``w_i * update_i``, summed over the batch
of k. :class:`Correction` has the kernels for p and w; :mod:`gvf.corrections.plain_corrections` and
:mod:`gvf.corrections.emphatic_corrections` have the library's own corrections. Buffers, learners,
studies, theory and diagnosis ask a correction for its kernels and know none by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from inspect import get_annotations, isfunction
from typing import Any, ClassVar, Final, NamedTuple, cast

import numpy as np
from numba import boolean, float64, int64, njit, void
from numba.extending import is_jitted
from numpy.typing import ArrayLike, NDArray

from gvf.common.arrays import Floats
from gvf.common.compiled import address_of, call, call_float, compile_for, once
from gvf.sampling.prefix_sums import LARGEST_RATIO

RATIO: Final = 0
"""The row of ``inputs``, and of ``means``, that belongs to the importance ratio."""
TRACE: Final = 1
"""The row that belongs to the quantity carried along the stream, if a correction has one."""
MASS: Final = -1
"""The entry of ``means`` that is the window's mean mass."""
WINDOW: Final = "window"
"""The value of ``mass`` that puts every slot of the window into the batch, without a draw."""

_ROWS, _BATCH = float64[::1], float64[:, ::1]
SIGNATURES = {
    "trace": float64(float64, float64, float64, float64, boolean, _ROWS),
    "mass": float64(_ROWS, _ROWS),
    "weigh": void(_BATCH, _ROWS, _ROWS, _ROWS, _ROWS),
    "refresh": void(_ROWS, _BATCH, _ROWS, _ROWS),
}
"""The types of a correction's kernels."""


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a kernel that several corrections share; :class:`Correction` lists the kernels.

    Example:
        >>> import numpy as np
        >>> from gvf.corrections import RATIO, kernel
        >>> @kernel
        ... def mass(inputs, parameters):
        ...     return np.sqrt(inputs[RATIO])
        >>> mass(np.array([9.0]), np.zeros(0))
        3.0
    """
    # Only our own kernels are cached: Numba's cache misses changes in the code that a kernel calls.
    ours = function.__module__.startswith("gvf.") and function.__code__.co_filename[:1] != "<"
    return njit(cache=ours, nogil=True)(function)


class Draw(NamedTuple):
    """The rule by which rows are carried and drawn. Corrections with equal rules share draws."""

    mass: Any
    """None (uniform), ``WINDOW``, or the kernel that returns a row's mass."""
    trace: Any
    """The kernel of the carried quantity, or None."""
    parameters: tuple[float | None, ...]
    """The parameters of both kernels."""

    @property
    def uniform(self) -> bool:
        """True if all slots are equally likely."""
        return self.mass is None

    @property
    def whole(self) -> bool:
        """True if the whole window is in every batch."""
        return isinstance(self.mass, str)


@dataclass(frozen=True)
class Correction:
    """The base of all corrections; subclass it to add one.

    The fields of a subclass are its parameters: numbers, which its kernels get as an array. Its
    kernels are static methods, which Numba compiles:

    ``weigh(inputs, p, means, parameters, out)``
        writes the weights w of a batch into ``out`` [k]. ``inputs[RATIO]`` [k] are the ratios of
        the drawn rows, ``inputs[TRACE]`` their traces; ``p`` [k] are their masses (1 for uniform
        draws); ``means[RATIO]``, ``means[TRACE]`` and ``means[MASS]`` are means over the window.
    ``mass(inputs, parameters)``
        returns the mass p of a row. It is called once, when the row is inserted; ``inputs[RATIO]``
        and ``inputs[TRACE]`` are numbers here. Without a mass, draws are uniform; ``mass = WINDOW``
        puts the whole window into every batch.
    ``trace(carry, ratio, continuation, interest, restart, parameters)``
        returns a quantity carried along the stream, the row's second input. ``carry``, ``ratio``
        and ``continuation`` belong to the transition before it in the same stream; ``restart`` is
        True if there is none because an episode begins. ``interest`` is the question's interest in
        the state.
    ``refresh(delta, inputs, parameters, out)``
        writes new masses of the drawn rows into ``out`` [k], from their TD errors ``delta`` [k],
        before the update. Only corrections whose masses change have one.

    Example:
        >>> from dataclasses import dataclass
        >>> import gvf, numpy as np
        >>> from gvf.corrections import RATIO
        >>> @dataclass(frozen=True)
        ... class SquareRoot(gvf.corrections.Correction):
        ...     @staticmethod
        ...     def mass(inputs, parameters):
        ...         return np.sqrt(inputs[RATIO])
        ...
        ...     @staticmethod
        ...     def weigh(inputs, p, means, parameters, out):
        ...         out[:] = inputs[RATIO] / p / out.size
        >>> correction = SquareRoot()
        >>> correction.masses([4.0, 9.0])
        array([2., 3.])
        >>> correction.weights([4.0, 9.0], means=correction.means([4.0, 9.0, 0.0]))
        array([1. , 1.5])
    """

    # Typed Any, so that static methods may replace them.
    trace = cast(Any, None)
    mass = cast(Any, None)
    weigh = cast(Any, None)
    refresh = cast(Any, None)
    label: ClassVar[str] = ""
    needs_ratios: ClassVar[bool] = True
    """True if the correction uses ratios. If False, the behaviour may be unknown."""
    skips_zeros: ClassVar[bool] = False
    """True if rows of ratio 0 have weight 0 and the other weights are the same without them."""
    emphatic: ClassVar[bool] = False
    """True if the mean update aims at that of ratio times trace, instead of the ratio."""
    looks_back: ClassVar[bool] = True
    """True if a trace depends on earlier rows, so that rows must come in the order of a stream."""

    def __init_subclass__(cls) -> None:
        """Accept kernels that are compiled or not, and static methods or not."""
        super().__init_subclass__()
        for name in SIGNATURES:
            function: Any = cls.__dict__.get(name)
            function = function.__func__ if isinstance(function, staticmethod) else function
            if isfunction(function):
                function = kernel(function)
            if is_jitted(function):
                setattr(cls, name, staticmethod(function))
            elif function is not None and not (name == "mass" and function == WINDOW):
                raise TypeError(f"{cls.__name__}.{name} must be a kernel, got {function!r}")
        if cls.weigh is None:
            raise TypeError(f"{cls.__name__} must say how to weigh: a static method weigh(...)")
        if "weigh" in cls.__dict__:
            # A subclass with its own weights does not inherit what is said about others.
            cls.skips_zeros = cls.__dict__.get("skips_zeros", False)

    @property
    def name(self) -> str:
        """The name that figures and tables use, for example ``V-trace(1.0)``."""
        values = [getattr(self, field.name) for field in fields(self)]
        return with_parameters(self.label or type(self).__name__, values)

    @cached_property
    def parameters(self) -> Floats:
        """The values of the fields as the kernels' array, float64[P]; None becomes nan."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name, value in values.items():
            if not isinstance(value, bool | int | float | np.number | None):
                raise TypeError(f"{type(self).__name__}.{name} must be a number, got {value!r}")
        return np.array([np.nan if v is None else float(v) for v in values.values()], np.float64)

    @cached_property
    def draw(self) -> Draw:
        """The rule by which slots are drawn; equal for corrections that can share draws."""
        if self.trace is None and (self.mass is None or self.mass == WINDOW):
            return Draw(self.mass, None, ())
        values = tuple(getattr(self, field.name) for field in fields(self))
        return Draw(self.mass, self.trace, values)

    @property
    def rows(self) -> int:
        """The number of inputs of a row, C: the ratio, and the trace if there is one."""
        return 1 if self.trace is None else 2

    def __getstate__(self) -> dict[str, Any]:
        # Only the fields: kernels belong to the class and are compared by identity.
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def masses(self, inputs: ArrayLike) -> Floats:
        """Compute the masses p [m] of rows from ratios [m] or inputs [C, m]; 1 without a mass."""
        rows = self._inputs(inputs)
        p = np.ones(rows.shape[1])
        if not (self.draw.uniform or self.draw.whole):
            if self.mass is by_ratio:  # compiles nothing
                p[:] = rows[RATIO]
            else:
                _over_rows()(self.address("mass"), rows, self.parameters, p)
            good = (p >= 0.0) & (p <= LARGEST_RATIO)
            if not good.all():
                at = int(good.argmin())
                raise ValueError(
                    f"the mass of {self.name} must be from 0 to {LARGEST_RATIO:g}, got {p[at]} at "
                    f"position {at}, where the ratio is {rows[RATIO, at]}"
                )
        return p

    def means(self, inputs: ArrayLike) -> Floats:
        """Compute the means [C + 1] over a window for the kernels: inputs first, then masses."""
        rows = self._inputs(inputs)
        return np.append(rows.mean(axis=1), self.masses(rows).mean())

    def weights(
        self, inputs: ArrayLike, means: ArrayLike | float, p: ArrayLike | None = None
    ) -> Floats:
        """Compute the weights w [k] of drawn rows.

        Args:
            inputs: the ratios of the drawn rows, [k], or all of their inputs, [C, k].
            means: the window's means, as :meth:`means` returns them. If draws are uniform or by
                ratio, one number, the mean ratio, is enough.
            p: the masses of the drawn rows, [k], if they have changed since they were inserted.
        """
        _check(self)
        rows = self._inputs(inputs)
        p = self.masses(rows) if p is None else np.ascontiguousarray(p, np.float64)
        means = np.asarray(means, np.float64)
        if means.ndim == 0:
            mean_mass = 1.0 if self.draw.uniform or self.draw.whole else float(means)
            if self.trace is not None or self.mass not in (None, WINDOW, by_ratio):
                raise ValueError(
                    f"{self.name} needs more than the mean ratio: means=correction.means(ratios)"
                )
            means = np.array([float(means), mean_mass])
        out = np.empty(rows.shape[1])
        self.weigh(rows, p, means, self.parameters, out)
        return out

    def weigh_rows(
        self, inputs: Floats, p: Floats, rows: NDArray[np.int64], means: Floats
    ) -> Floats:
        """Compute the weights [B, k] of batches of rows [B, k] in compiled code.

        Args:
            inputs: the inputs of all T rows, [C, T].
            p: the masses of all rows, [T]; empty if all are 1.
            rows: the rows of each batch.
            means: the window's means for each batch, [B, C + 1].
        """
        w = np.empty(rows.shape)
        _over_batches()(self.address("weigh"), inputs, p, rows, means, self.parameters, w)
        return w

    def address(self, name: str) -> int:
        """Return a kernel's address for :func:`gvf.common.compiled.call`; 0 if there is none."""
        _check(self)
        kernel = getattr(self, name)
        return 0 if kernel is None else _address(kernel, name)

    def _inputs(self, inputs: ArrayLike) -> Floats:
        """Return inputs [C, m], given as ratios [m] or as inputs."""
        rows = np.atleast_2d(np.asarray(inputs, np.float64))
        if rows.ndim != 2 or len(rows) != self.rows:
            also = " and the carried quantity" if self.trace is not None else ""
            raise ValueError(
                f"{self.name} needs the ratio{also} of each row, [{self.rows}, m]; got shape "
                f"{rows.shape}"
            )
        return np.ascontiguousarray(rows)


def with_parameters(label: str, values: Sequence[float | str | None]) -> str:
    """Return a label with parameters in brackets, without those at the end that are None.

    Example:
        >>> from gvf.corrections.correction import with_parameters
        >>> with_parameters("V-trace", [1]), with_parameters("V-trace", ["0.5 max"])
        ('V-trace(1.0)', 'V-trace(0.5 max)')
        >>> with_parameters("Emphatic IR", [None])
        'Emphatic IR'
    """
    count = max((i + 1 for i, value in enumerate(values) if value is not None), default=0)
    texts = [str(v if isinstance(v, str | None) else float(v)) for v in values[:count]]
    return f"{label}({', '.join(texts)})" if texts else label


@cache
def _check(correction: Correction) -> None:
    """Try the kernels on three rows in Python, because compiled code does not check indices.

    This finds a kernel that reads beyond its arrays or does not write every weight.
    """
    cls, names = type(correction), [field.name for field in fields(correction)]
    kind = correction.rows
    for name, kept in get_annotations(cls).items():
        if name not in names and "ClassVar" not in str(kept):
            raise TypeError(f"{cls.__name__}.{name} is no field: @dataclass is missing")
    inputs = np.linspace(0.5, 2.0, 3 * kind).reshape(kind, 3)
    p, out, parameters = np.ones(3), np.full(3, np.nan), correction.parameters.copy()

    def tried(name: str, *arguments: Any) -> Any:
        try:
            return getattr(cls, name).py_func(*arguments)
        except Exception as error:
            raise TypeError(f"{cls.__name__}.{name} fails: {error}") from error

    if correction.trace is not None:
        tried("trace", 1.0, 1.0, 0.9, 1.0, False, parameters)
    if not (correction.draw.uniform or correction.draw.whole):
        for i in range(3):
            p[i] = _number(cls, "mass", tried("mass", inputs[:, i].copy(), parameters))
    tried("weigh", inputs, p, np.append(inputs.mean(axis=1), p.mean()), parameters, out)
    if np.isnan(out).any():
        raise TypeError(f"{cls.__name__}.weigh must write a number into every out[i]")
    if correction.refresh is not None:
        out[:] = np.nan
        tried("refresh", np.ones(3), inputs, parameters, out)
        if np.isnan(out).any():
            raise TypeError(f"{cls.__name__}.refresh must write a number into every out[i]")


def _number(cls: type, name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{cls.__name__}.{name} must return a number, got {value!r}") from None


@cache
def _address(kernel: Any, name: str) -> int:
    """Return the address of a kernel and keep the kernel alive."""
    return address_of(kernel, SIGNATURES[name])


def _mass_rows(mass, inputs, parameters, out):
    row = np.empty(inputs.shape[0])
    for i in range(out.size):
        for c in range(row.size):
            row[c] = inputs[c, i]
        out[i] = call_float(mass, (row, parameters))


def _weigh_rows(weigh, inputs, p, rows, means, parameters, w):
    k = rows.shape[1]
    batch, masses = np.empty((inputs.shape[0], k)), np.ones(k)
    for b in range(rows.shape[0]):
        for i in range(k):
            for c in range(inputs.shape[0]):
                batch[c, i] = inputs[c, rows[b, i]]
            if p.size > 0:
                masses[i] = p[rows[b, i]]
        call(weigh, (batch, masses, means[b], parameters, w[b]))


@once
def _over_rows() -> Any:
    return compile_for(_mass_rows, void(int64, _BATCH, _ROWS, _ROWS))


@once
def _over_batches() -> Any:
    rows = int64[:, ::1]
    return compile_for(_weigh_rows, void(int64, _BATCH, _ROWS, rows, _BATCH, _ROWS, _BATCH))


@kernel
def by_ratio(inputs, parameters):
    """Return the mass of importance resampling: the ratio itself."""
    return inputs[RATIO]


@kernel
def by_ratio_and_trace(inputs, parameters):
    """Return the mass of emphatic resampling: the product of ratio and trace."""
    return inputs[RATIO] * inputs[TRACE]
