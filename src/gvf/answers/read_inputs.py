"""The material of an answer: a log, and the questions, features and behaviour made for it.

Before anything is learned, the whole log is looked through once: every question is evaluated, and
every state is coded. So a bad row is found here, with its place, and nothing has been written. The
ratios that this gives show how far the log supports a question.
"""

from __future__ import annotations

import hashlib
import sys
import sysconfig
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from gvf.answers import build_question
from gvf.answers.build_policies import policy
from gvf.answers.plan import Facts, Plan
from gvf.answers.toml_table import placed
from gvf.common.arrays import Floats
from gvf.common.errors import OptionError
from gvf.common.progress import progress_of
from gvf.features import FeatureMap, outside_bounds
from gvf.log import Log, read_log
from gvf.policies import Policy
from gvf.question import GVF
from gvf.transition import Transitions, without_last_states

LIKELIHOODS = ("behaviour_probability", "behaviour_log_probability")
MOST_RATIOS = 1_000_000
"""The number of ratios of a question that are kept, at most; of a longer log every so many."""
_NOT_OWN = (Path(__file__).parents[1], *map(Path, sysconfig.get_paths().values()))
"""The folders of gvf, of Python's standard library, and of packages."""


@dataclass(frozen=True, eq=False)
class Material:
    """A log, and what was made for it.

    Attributes:
        plan: what the question file says.
        log: the log, with the probabilities of the behaviour if they were recorded or estimated.
        facts: what the plan leaves open, from the log.
        questions: the questions, in the order of the plan.
        features: the features.
        behaviour: the policy that acted, if it was given.
        source: "recorded", "estimated" or "given": where the behaviour's probabilities come from.
        estimated: the estimate of the behaviour, if there is one.
        ratios: the ratios of each question, [questions, n].
        digest: the digest of the log's contents.
        outside: the share of the log's states outside the bounds of the features.
    """

    plan: Plan
    log: Log
    facts: Facts
    questions: tuple[GVF, ...]
    features: FeatureMap
    behaviour: Policy | None
    source: str
    estimated: Any = None
    ratios: Floats = field(default_factory=lambda: np.empty((0, 0)))
    digest: str = ""
    outside: float = 0.0

    @property
    def ratios_from(self) -> str:
        """The origin of the ratios, in words, for pages and reports."""
        return {
            "recorded": "from the probabilities that the log has",
            "estimated": "ESTIMATED: the behaviour was fitted to the log",
            "given": "from the behaviour that the question file gives",
        }[self.source]


def prepare(plan: Plan, source: Any, *, quiet: bool = False) -> Material:
    """Read a log, make what is asked about it, and look through all of it.

    Args:
        plan: what the question file says.
        source: the log, or anything that :func:`gvf.read_log` takes.
        quiet: True to print nothing; otherwise the log's columns are printed to standard error.

    Raises:
        ValueError: if the log, the plan, or the two together are impossible.
    """
    try:
        log = source if isinstance(source, Log) else read_log(source, quiet=True, **plan.log)
        if not quiet:
            print(described(log, plan), file=sys.stderr)
        facts = Facts.of(log)
    except OptionError as error:
        raise ValueError(error.in_file) from error
    show = False if quiet else None
    log, behaviour, where, estimated = _behaviour(plan, log, facts, show)
    columns = tuple(name for name in log.columns)
    questions = tuple(
        build_question.question(asked, plan, facts, columns) for asked in plan.questions
    )
    features = build_question.features(plan, facts)
    build_question.dimensions(plan, facts)
    material = Material(plan, log, facts, questions, features, behaviour, where, estimated)
    ratios, digest, outside = look_through(material, show)
    return replace(material, ratios=ratios, digest=digest, outside=outside)


def described(log: Log, plan: Plan) -> str:
    """Return the table of a log, with the origin of probabilities that it does not have."""
    origins = {"default": "", "recorded": "", "estimated": "so they are estimated"}
    return log.describe(behaviour=origins.get(plan.behaviour["kind"], "but [behaviour] gives them"))


def _in_words(error: Exception) -> str:
    """Return the message of an error about one row, in words of the question file."""
    return error.text(in_file=True, placed=False) if isinstance(error, OptionError) else str(error)


def _behaviour(
    plan: Plan, log: Log, facts: Facts, show: bool | None
) -> tuple[Log, Policy | None, str, Any]:
    """Return the log with probabilities, the policy that acted, where both come from, a fit."""
    kind = plan.behaviour["kind"]
    recorded = any(name in log.columns for name in LIKELIHOODS)
    if kind == "default" and not recorded:
        raise ValueError(
            f"{log.source}: the log does not tell with which probability its actions were chosen: "
            'name the column in [log], say kind = "estimated" in [behaviour], or give the policy '
            "that acted there"
        )
    if kind in ("default", "recorded"):
        if not recorded:
            raise ValueError(
                f"[behaviour] is recorded, and {log.source} has no probabilities of its actions: "
                'name their column in [log], or say kind = "estimated" in [behaviour]'
            )
        return log, None, "recorded", None
    if kind == "estimated":
        from gvf.behaviour import estimate_behaviour

        options = {name: v for name, v in plan.behaviour.items() if name != "kind" and v}
        estimated = estimate_behaviour(log, **options, seed=plan.seed, progress=show)
        return estimated.log, None, "estimated", estimated
    with placed("behaviour"):
        return log, policy(plan.behaviour, plan, facts), "given", None


def look_through(material: Material, show: bool | None) -> tuple[Floats, str, float]:
    """Evaluate all questions on all of the log.

    Returns:
        The ratios [questions, n], a digest, and the share of states outside the features' bounds.
    """
    log, behaviour = material.log, material.behaviour
    stride = -(-len(log) // MOST_RATIOS)
    ratio_parts: list[list[Floats]] = [[] for _ in material.questions]
    before = outside = 0
    digests: dict[str, Any] = {}
    of = material.plan.features.get("of")
    coding = f"features (by {of}, for all states at once): " if of else "features: "
    title, total = "looking through the log", len(log)
    with progress_of(title, total, show=show, transient=True) as advance:
        for batch in log:
            for name, column in batch.columns.items():
                kind = f"{name} {column.dtype} {column.shape[1:]}"
                digests.setdefault(kind, hashlib.sha256()).update(
                    np.ascontiguousarray(column).tobytes()
                )

            def known(part: Transitions) -> None:
                _check_finite(part, "state", material.facts.names)
                _check_finite(part, "action")

            def code(part: Transitions) -> None:
                rows = without_last_states(part)
                _check_finite(rows, "next_state")
                material.features(rows.state)
                material.features(rows.next_state)

            _each(known, batch, log, before)
            _each(code, batch, log, before, coding)
            outside += outside_bounds(material.features, batch["state"]) or 0
            for at, question in enumerate(material.questions):

                def evaluate(part: Transitions, question: GVF = question) -> Floats:
                    return question.evaluate(part, behaviour=behaviour).ratio

                ratio = _each(evaluate, batch, log, before, f"question {question.name!r}: ")
                ratio_parts[at].append(ratio[(-before) % stride :: stride])
            before += len(batch)
            advance(len(batch))
    ratios = np.stack([np.concatenate(batches) for batches in ratio_parts])
    for question, ratio in zip(material.questions, ratios, strict=True):
        if not ratio.any():
            raise ValueError(
                f"question {question.name!r}: no action in the log is one that its policy would "
                f"take ({question.policy!r}), so the log tells nothing about it"
            )
    lines = sorted(f"{kind} {digest.hexdigest()}" for kind, digest in digests.items())
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return ratios, digest, outside / max(before, 1)


def _check_finite(batch: Transitions, name: str, columns: Sequence[str] = ()) -> None:
    """Raise ValueError if a column has a number that is not finite."""
    values = batch[name]
    if values.dtype.kind != "f" or np.isfinite(values).all():
        return
    flat = values.reshape(len(values), -1)
    bad = ~np.isfinite(flat)
    at = int(bad.any(axis=0).argmax())
    what = f"column {columns[at]!r}" if at < len(columns) else f"the {name.replace('_', ' ')}"
    raise ValueError(f"{what} is {flat[bad[:, at], at][0]}; it must be finite")


def _each(
    function: Callable[[Transitions], Any],
    batch: Transitions,
    log: Log,
    before: int,
    what: str = "",
) -> Any:
    """Call a function of transitions; an error names the place of the first row that raises it."""
    try:
        return function(batch)
    except (ValueError, TypeError, IndexError) as error:
        row = _first_bad(function, batch)
        if row is None:
            raise ValueError(f"{what}{error}{_line(error)}") from error
        try:
            function(batch[row : row + 1])
        except (ValueError, TypeError, IndexError) as alone:
            error = alone
        message = f"{what}{_in_words(error)}{_line(error)}"
        raise ValueError(f"{log.place(before + row)}: {message}") from error


def _line(error: Exception) -> str:
    """Return the line of a function outside of gvf that raised an error; empty if there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if not any(file.is_relative_to(folder) for folder in _NOT_OWN):
            return f" ({file.name}, line {frame.lineno}: functions get all rows at once, as arrays)"
    return ""


def _first_bad(function: Callable[[Transitions], Any], batch: Transitions) -> int | None:
    """Find the first row for which a function fails; None if it fails for rows together only."""

    def fails(start: int, stop: int) -> bool:
        try:
            function(batch[start:stop])
        except (ValueError, TypeError, IndexError):
            return True
        return False

    low, high = 0, len(batch)
    while high - low > 1:
        middle = (low + high) // 2
        if fails(low, middle):
            high = middle
        elif fails(middle, high):
            low = middle
        else:
            return None
    return low
