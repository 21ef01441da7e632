"""The options that learners and hordes share: their names, defaults, checks and documentation.

An option has one text, from which the documentation of each class is made. A class takes
``**options: Unpack[...]`` of a form below, and checks them with ``options_of``. So type checkers
know every name, ``help`` shows it with its default, and a wrong name is refused as Python does it.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, TypedDict, TypeVar

from gvf.common.checks import brief, check_choice, whole
from gvf.common.part_names import close
from gvf.policies import Policy
from gvf.question import OnConflict, OnNaN
from gvf.window import Window
from gvf.window.frame_window import FrameWindow

_TEXTS = {
    "behaviour": "the policy that chooses the actions, if known. Otherwise transitions must have a "
    "column ``behaviour_probability`` or ``behaviour_log_probability``. A recorded probability "
    "takes precedence over the policy.",
    "window": "the number of recent transitions to keep, n; or an empty :class:`Window`.",
    "batch_size": "the number of transitions drawn for an update, k.",
    "update_every": "the number of steps between updates.",
    "warm_up": "the number of steps before the first of these intervals begins.",
    "n_step": "the number of transitions in a return before it bootstraps, at least 1. From 2 on, "
    "transitions must come in the order of their streams, and each is learned from once the n - 1 "
    "after it are known; see :mod:`gvf.window.n_step`.",
    "on_conflict": "the response to a recorded probability that differs from that of "
    '``behaviour``: ``"error"`` raises, ``"recorded"`` uses the recorded probability, and '
    '``"behaviour"`` that of the policy.',
    "on_nan": "the response to a NaN in a state, an action, a recorded probability, a cumulant or "
    'a continuation: ``"error"`` raises and names the position, ``"skip"`` leaves the transition '
    "out and counts it in the report.",
    "seed": "the seed of the draws; anything that :func:`numpy.random.default_rng` takes.",
}
"""The documentation of each option."""
_WIDTH = 100
"""The largest number of characters in a line of documentation."""


class AnyKeywords(TypedDict, total=False):
    """The options of all learners and hordes, for type checkers."""

    behaviour: Policy | None
    on_conflict: OnConflict
    on_nan: OnNaN


class DrawKeywords(AnyKeywords, total=False):
    """The options of all that draw from a window, for type checkers."""

    batch_size: int
    update_every: int
    warm_up: int
    seed: Any


class HordeKeywords(DrawKeywords, total=False):
    """The options of a horde, for type checkers."""

    window: int


class LearnerKeywords(DrawKeywords, total=False):
    """The options of a learner with a window, for type checkers."""

    window: int | Window | FrameWindow
    n_step: int


@dataclass(frozen=True, kw_only=True)
class AnyOptions:
    """The options of all learners and hordes, checked."""

    behaviour: Policy | None = None
    on_conflict: OnConflict = "error"
    on_nan: OnNaN = "error"

    def __post_init__(self) -> None:
        check_choice("on_conflict", self.on_conflict, OnConflict)
        check_choice("on_nan", self.on_nan, OnNaN)
        if self.behaviour is not None and not isinstance(self.behaviour, Policy):
            raise TypeError(f"behaviour must be a gvf.policies.Policy, got {brief(self.behaviour)}")


@dataclass(frozen=True, kw_only=True)
class WindowOptions(AnyOptions):
    """The options of all that draw from a window, checked."""

    window: int | Window | FrameWindow = 15_000
    batch_size: int = 16
    update_every: int = 1
    warm_up: int = 0
    seed: Any = None

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("update_every", 1), ("warm_up", 0)):
            whole(name, getattr(self, name), least)
        if not isinstance(self.window, Window | FrameWindow):
            whole("window", self.window, 1)
        super().__post_init__()


@dataclass(frozen=True, kw_only=True)
class HordeOptions(WindowOptions):
    """The options of a horde, checked."""

    window: int = 15_000  # pyright: ignore[reportIncompatibleVariableOverride]

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("window", self.window, 1)


@dataclass(frozen=True, kw_only=True)
class LearnerOptions(WindowOptions):
    """The options of a learner with a window, checked."""

    n_step: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("n_step", self.n_step, 1)


Options = TypeVar("Options", bound=AnyOptions)
Class = TypeVar("Class", bound=type)


def options_of(form: type[Options], learner: object, given: Mapping[str, Any]) -> Options:
    """Return checked options; raise TypeError for a name that the form does not have.

    Example:
        >>> from gvf.learners.learner_options import AnyOptions, options_of
        >>> options_of(AnyOptions, object(), {"on_nan": "skip"})
        AnyOptions(behaviour=None, on_conflict='error', on_nan='skip')
        >>> options_of(AnyOptions, object(), {"on_nam": "skip"})
        Traceback (most recent call last):
        TypeError: object.__init__() got an unexpected keyword argument 'on_nam'; did you mean \
'on_nan'?
    """
    known = {field.name for field in fields(form)}
    for name in given:
        if name not in known:
            near = close(name, known)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise TypeError(
                f"{type(learner).__name__}.__init__() got an unexpected keyword argument "
                f"{name!r}{hint}"
            )
    return form(**given)


def documents_options(form: type[AnyOptions], **texts: str) -> Callable[[Class], Class]:
    """Make a class decorator that writes the options of a form into documentation and signature.

    In the class's documentation, ``{options}`` is replaced by the texts of all options. The
    signature of its constructor shows each option with its default.

    Args:
        form: the options.
        **texts: texts that differ for this class.

    Example:
        >>> from gvf.learners.learner_options import AnyOptions, documents_options
        >>> @documents_options(AnyOptions, on_nan="as in a horde.")
        ... class Mine:
        ...     '''A class.
        ...
        ...     Args:
        ...         {options}
        ...     '''
        ...     def __init__(self, question, **options): ...
        >>> print(Mine.__doc__.partition("on_nan")[2].strip())
        : as in a horde.
        >>> import inspect
        >>> list(inspect.signature(Mine).parameters)
        ['question', 'behaviour', 'on_conflict', 'on_nan']
    """
    own = {**_TEXTS, **texts}

    def documented(learner: Class) -> Class:
        names = sorted((field.name for field in fields(form)), key=[*_TEXTS].index)
        if learner.__doc__ is not None:
            learner.__doc__ = re.sub(
                r"( *)\{options\}", partial(_entries, names, own), learner.__doc__
            )
        constructor: Any = learner.__init__
        signature = inspect.signature(constructor)
        plain = [p for p in signature.parameters.values() if p.kind != p.VAR_KEYWORD]
        shown = [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=form.__dataclass_fields__[name].default,
                annotation=form.__dataclass_fields__[name].type,
            )
            for name in names
        ]
        positional = [p for p in plain if p.kind != p.KEYWORD_ONLY]
        others = [p for p in plain if p.kind == p.KEYWORD_ONLY]
        constructor.__signature__ = signature.replace(parameters=[*positional, *shown, *others])
        return learner

    return documented


def _entries(names: Sequence[str], texts: Mapping[str, str], place: re.Match[str]) -> str:
    """Return the entries of options in a docstring, with the indentation of their place."""
    indent = place[1]
    return "\n".join(
        textwrap.fill(
            f"{name}: {texts[name]}",
            _WIDTH,
            initial_indent=indent,
            subsequent_indent=f"{indent}    ",
            break_on_hyphens=False,
        )
        for name in names
    )
