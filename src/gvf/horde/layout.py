"""The layout of many questions: their distinct parts, and the columns of weights.

Questions with the same policy form a *group*: they share ratios, draws and the features of drawn
rows. If the correction carries a trace, which depends on the continuation and the interest, they
also have these two in common. Questions that were added later, with signals that earlier rows do
not have, form groups of their own. The weights of a group are the columns of one matrix, sorted by
continuation, so that questions with the same continuation are neighbours: a *stretch*. A *place* is
a position in this order; a question keeps its position in the list of questions.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gvf.common.checks import brief
from gvf.corrections import Correction
from gvf.policies import DiscretePolicy, Policy
from gvf.question import GVF

Ints = NDArray[np.int64]


def distinct(parts: Iterable[Any]) -> tuple[list[Any], Ints]:
    """Return the distinct parts in order, and for each part the number of its equal, int64[G]."""
    parts = list(parts)  # all alive, so that no two have the same identity
    values: list[Any] = []
    by_value: dict[Hashable, int] = {}
    by_identity: dict[int, int] = {}  # first, because some parts take long to compare
    numbers = []
    for part in parts:
        at = by_identity.get(id(part))
        if at is None:
            try:
                at = by_value.setdefault(part, len(values))
            except TypeError:  # it cannot be hashed, so only itself is the same
                at = len(values)
            by_identity[id(part)] = at
            if at == len(values):
                values.append(part)
        numbers.append(at)
    return values, np.array(numbers, np.int64)


class Stretches(NamedTuple):
    """The S stretches of a layout, sorted by their places."""

    first: Ints
    """The first place, [S]."""
    questions: Ints
    """The number of questions, [S]."""
    group: Ints
    """The group, [S]."""
    scale: NDArray[np.float64]
    """The factor of the continuation, [S]."""
    source: Ints
    """The column of the continuation, [S]."""


class Layout:
    """The distinct parts of G questions, and their order by group.

    Args:
        questions: the questions.
        correction: the correction, which decides which questions can share draws.
        since: the step from which on transitions are known to each question, int64[G]; those before
            have ratio 0. It is 0 for all by default.

    Attributes:
        names: the name of each question, [G].
        policies: the P distinct policies.
        cumulants: the C distinct cumulants.
        signals: the distinct continuations that are functions.
        group_policy: the policy of each group, int64[groups].
        group_question: the first question of each group, int64[groups].
        order: the question at each place, int64[G].
        place: the place of each question, int64[G].
        group: the group at each place, int64[G], sorted.
        starts: the first place of each group, and the number of places, int64[groups + 1].
        cumulant: the cumulant at each place, int64[G].
        scale: the factor of the continuation at each place, float64[G].
        source: the column that it multiplies at each place, int64[G]: 0 for `alive`, then signals.
        signal_columns: the columns of cumulants, then of continuations, that these questions need:
            their numbers in the layout of all questions, int64[C + 1 + Z].
    """

    def __init__(
        self, questions: Sequence[GVF], correction: Correction, since: Ints | None = None
    ) -> None:
        self.questions = tuple(questions)
        self.names = _names(self.questions)
        self.policies, policy = distinct(q.policy for q in self.questions)
        _check_actions(self.policies, policy, self.names)
        self.cumulants, cumulant = distinct(q.cumulant for q in self.questions)
        continuations, continuation = distinct(q.continuation for q in self.questions)
        self.since = np.zeros(len(policy), np.int64) if since is None else since
        shared = [policy, self.since]
        if correction.trace is not None:
            shared += [continuation, distinct(q.interest for q in self.questions)[1]]
        group = distinct(zip(*(part.tolist() for part in shared), strict=True))[1]
        self.order = np.lexsort((cumulant, continuation, group))
        self.place = np.argsort(self.order)
        self.group, self.cumulant = group[self.order], cumulant[self.order]
        starts = np.flatnonzero(np.diff(self.group, prepend=-1))
        self.starts = np.append(starts, len(self.order))
        self.group_question = self.order[starts]
        self.group_policy = policy[self.group_question]
        self.signals = [c for c in continuations if callable(c)]
        scale = np.array([1.0 if callable(c) else float(c) for c in continuations])
        column = np.cumsum([callable(c) for c in continuations]) * [
            callable(c) for c in continuations
        ]
        self.scale = scale[continuation[self.order]]
        self.source = column[continuation[self.order]].astype(np.int64)
        self.signal_columns = np.arange(len(self.cumulants) + 1 + len(self.signals))

    def __len__(self) -> int:
        return len(self.order)

    @property
    def groups(self) -> int:
        """The number of groups."""
        return len(self.group_policy)

    @property
    def stretches(self) -> Stretches:
        """The questions of a group with the same continuation, which are neighbours."""
        kinds = np.stack([self.group, self.source, self.scale])
        first = np.flatnonzero(np.append(True, (np.diff(kinds, axis=1) != 0).any(axis=0)))
        questions = np.diff(np.append(first, len(self)))
        return Stretches(first, questions, self.group[first], self.scale[first], self.source[first])

    def part(self, first: int, last: int) -> Layout:
        """Return the layout of the groups from `first` to `last`, without the functions.

        It has the cumulants and continuations that these groups need, and no others.
        """
        part, places = copy(self), slice(self.starts[first], self.starts[last])
        part.questions, part.names, part.policies = (), (), []
        for name in ("order", "group", "scale"):
            setattr(part, name, getattr(self, name)[places])
        cumulants, part.cumulant = np.unique(self.cumulant[places], return_inverse=True)
        sources = np.union1d(0, self.source[places])  # all need `alive`
        part.source = np.searchsorted(sources, self.source[places])
        part.cumulants, part.signals = [None] * len(cumulants), [None] * (len(sources) - 1)
        part.signal_columns = np.append(cumulants, len(self.cumulants) + sources)
        part.group = part.group - first
        part.starts = self.starts[first : last + 1] - self.starts[first]
        part.group_question = self.group_question[first:last]
        part.group_policy = self.group_policy[first:last]
        return part

    def group_name(self, group: int) -> str:
        """Return a name for a group: its policy."""
        return repr(self.policies[self.group_policy[group]])

    def first_with(self, places: NDArray[np.bool_]) -> str:
        """Return the name of the first question among some places, bool[G]."""
        return self.names[int(self.order[places].min())]


def _names(questions: tuple[GVF, ...]) -> tuple[str, ...]:
    if not questions:
        raise ValueError("a horde needs at least one question")
    for question in questions:
        if not isinstance(question, GVF):
            raise TypeError(f"questions must be gvf.GVFs, got {brief(question)}")
    names = tuple(question.name or repr(question) for question in questions)
    if len(set(names)) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))
        raise ValueError(f"two questions are named {twice!r}; give each GVF a name of its own")
    return names


def _check_actions(policies: list[Policy], policy: Ints, names: tuple[str, ...]) -> None:
    """Raise ValueError if discrete policies differ in their number of actions."""
    counts = {i: p.actions for i, p in enumerate(policies) if isinstance(p, DiscretePolicy)}
    for i, count in counts.items():
        first = next(iter(counts))
        if count != counts[first]:
            first_name, other_name = (names[int((policy == j).argmax())] for j in (first, i))
            raise ValueError(
                f"questions differ in their number of actions: {first_name!r} has {counts[first]}, "
                f"{other_name!r} has {count}"
            )
