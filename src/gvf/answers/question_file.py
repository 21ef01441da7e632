"""Question files: TOML in, a :class:`gvf.answers.plan.Plan` out.

Nothing is imported or run here. A part that would run code, such as a function of the user's own,
is refused unless the user trusts it. `gvf show question` prints the commented example that lies
beside this module.
"""

from __future__ import annotations

import os
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

from gvf.answers.plan import Asked, Plan, Table, texts
from gvf.answers.toml_table import NEEDED, Section, placed
from gvf.common.checks import brief, is_number
from gvf.common.part_names import is_reference
from gvf.intervals.bootstrap_result import rank_of
from gvf.log.column_meanings import MEANINGS
from gvf.log.episode_bounds import Ends, Gaps, Steps

POLICIES = (
    "uniform", "always", "favour", "fixed", "table", "softmax", "gaussian", "mixture",
    "state-dict", "torchscript", "function",
)  # fmt: skip
"""The kinds of policies."""
FEATURES = ("tiles", "one-hot", "dense", "function")
"""The kinds of features."""
ORDERS = ("drawn", "shuffled", "log")
"""The orders of a fit; see :meth:`gvf.Learner.fit`."""
ACTIVATIONS = ("tanh", "relu", "sigmoid", "none")
MODELS = ("counts", "logistic", "sklearn", "gaussian")
"""The models of an estimated behaviour; see :func:`gvf.estimate_behaviour`."""
LEAST_SQUARES = "LSTD"
"""The name of the method without a step size."""
OUTPUTS = ("logits", "probabilities")
CORRECTIONS = ("IR", "WIS-Minibatch", "IS")
STEP_SIZES = (0.01, 0.03, 0.1, 0.3)


def example() -> str:
    """Return the commented question file.

    Example:
        >>> from gvf.answers.question_file import example
        >>> example().splitlines()[0]
        '# A question about a log: what would happen if another policy acted?'
    """
    return (files("gvf.answers") / "question.toml").read_text(encoding="utf-8")


def load(path: str | os.PathLike[str], *, trust: bool = False) -> Plan:
    r"""Read a question file.

    Args:
        path: the file.
        trust: True to allow parts that run code: functions of modules, and TorchScript files.

    Raises:
        ValueError: if the file is not TOML, has an unknown key or a wrong value, or needs trust.

    Example:
        >>> from gvf.answers.question_file import load
        >>> from pathlib import Path
        >>> import tempfile
        >>> file = Path(tempfile.mkdtemp()) / "right.toml"
        >>> _ = file.write_text('[[question]]\npolicy = {kind = "always", action = 1}')
        >>> load(file).questions
        (Asked(name='right', policy={'kind': 'always', 'action': 1, 'actions': None},
               cumulant='reward', continuation=0.9, interest=None),)
    """
    path = Path(path)
    try:
        contents = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from None
    top = Section(contents, str(path))
    asked = top.take("question")
    tables = asked if isinstance(asked, list) else [asked]
    if not tables:
        top.fail("question is empty: ask at least one")
    alone = len(tables) == 1
    questions = tuple(
        _question(
            Section(table, f"{path}, [[question]]{'' if alone else f' {i + 1}'}"),
            path.stem if alone else f"question {i + 1}",
            trust,
        )
        for i, table in enumerate(tables)
    )
    names = [question.name for question in questions]
    for name in names:
        if names.count(name) > 1:
            top.fail(f"two questions have the name {name!r}: give each a name of its own")
    learn = _learn(top.inside("learn", {}), trust)
    judge, intervals = top.inside("judge", {}), top.inside("intervals", {})
    page = top.inside("page", {})
    dimensions = None
    if "dimensions" in page:
        dimensions = page.several(
            "dimensions", None, lambda v: isinstance(v, str | int), "two names or numbers"
        )
        if len(dimensions) > 2:
            page.fail(f"dimensions must be one or two of the state's, got {len(dimensions)}")
    else:
        page.take("dimensions", None)
    plan = Plan(
        name=path.stem,
        folder=path.absolute().parent,
        questions=questions,
        behaviour=_behaviour(top, trust),
        log=_log(top.inside("log", {})),
        features=_features(top.inside("features", {}), trust),
        methods=learn.pop("methods"),
        step_sizes=learn.pop("step_sizes"),
        learn=learn,
        folds=judge.whole("folds", 3, least=2),
        replicates=intervals.whole("replicates", 199),
        level=intervals.share("level", 0.95),
        seed=top.whole("seed", 0),
        dimensions=dimensions,
        trust=trust,
    )
    for section in (top, judge, intervals, page):
        section.end()
    if plan.replicates:
        with intervals.placed():
            rank_of(plan.level, plan.replicates)
    return plan


def _question(section: Section, name: str, trust: bool) -> Asked:
    asked = Asked(
        name=section.text("name", name),
        policy=_policy(section, "policy", trust),
        cumulant=_signal(section, "cumulant", "reward", trust),
        continuation=_signal(section, "continuation", 0.9, trust),
        interest=_signal(section, "interest", None, trust),
    )
    section.end()
    return asked


def _signal(section: Section, key: str, default: Any, trust: bool) -> Any:
    """Read a number, the name of a column, a reference, or one entry of a column."""
    value = section.take(key, default)
    if isinstance(value, dict):
        inner = Section(value, f"{section.place}, {key}")
        entry = {"column": inner.text("column"), "index": inner.whole("index")}
        inner.end()
        return entry
    number = is_number(value) and not isinstance(value, bool)
    if value is not None and not isinstance(value, str) and not number:
        section.fail(f'{key} must be a number, a column or "module:name", got {brief(value)}')
    if key == "continuation" and isinstance(value, int | float) and not 0 <= value <= 1:
        section.fail(f"continuation must be in [0, 1], got {value}")
    if isinstance(value, str) and is_reference(value):
        _trusted(section, f"{key} = {value!r}", value, trust)
    return value


def _trusted(section: Section, what: str, runs: str, trust: bool) -> None:
    if not trust:
        section.fail(f"{what} would run code of {runs.partition(':')[0]}: allow it with --trust")


def _policy(section: Section, key: str, trust: bool, kinds: tuple[str, ...] = POLICIES) -> Table:
    value = section.take(key)
    if isinstance(value, str):  # "uniform", or "module:name"
        value = {"kind": "function", "of": value} if is_reference(value) else {"kind": value}
    inner = Section(value, f"{section.place}, {key}")
    kind = inner.choice("kind", None, kinds)
    table: Table = {"kind": kind}
    if kind in ("always", "favour"):
        table["action"] = inner.whole("action")
    if kind == "favour":
        table["probability"] = inner.checked(
            "probability", NEEDED, lambda v: is_number(v) and 0 <= v <= 1, "a number in [0, 1]"
        )
    if kind == "fixed" or (kind == "table" and "file" not in inner):
        table["probabilities"] = inner.numbers("probabilities")
    elif kind == "table":
        table["file"] = inner.text("file")
    if kind == "softmax":
        table |= {"weights": inner.numbers("weights"), "bias": inner.numbers("bias", None)}
    if kind == "gaussian":
        table |= {"mean": inner.numbers("mean", 0.0), "sd": inner.numbers("sd")}
        table["weights"] = inner.numbers("weights", None)
    if kind == "mixture":
        table["first"] = _policy(inner, "first", trust)
        table["second"] = _policy(inner, "second", trust)
        table["share"] = inner.share("share")
    if kind in ("state-dict", "torchscript"):
        table["file"] = inner.text("file")
        table["output"] = inner.choice("output", "logits", OUTPUTS)
    if kind == "state-dict":
        table["activation"] = inner.choice("activation", "tanh", ACTIVATIONS)
    if kind == "torchscript":
        _trusted(inner, f"the TorchScript file {table['file']}", table["file"], trust)
    if kind == "function":
        table["of"] = inner.text("of")
        if not is_reference(table["of"]):
            inner.fail(f'of must be "module:name", got {table["of"]!r}')
        _trusted(inner, f"of = {table['of']!r}", table["of"], trust)
    if kind in ("uniform", "always", "favour", "torchscript", "function"):
        table["actions"] = inner.whole("actions", None, least=1)
    if kind == "estimated":
        table["model"] = inner.choice("model", "default", ("default", *MODELS))
        table["model"] = None if table["model"] == "default" else table["model"]
        table["folds"] = inner.whole("folds", None, least=1)
    inner.end()
    return table


def _behaviour(top: Section, trust: bool) -> Table:
    if "behaviour" not in top:
        top.take("behaviour", None)
        return {"kind": "default"}
    return _policy(top, "behaviour", trust, ("recorded", "estimated", *POLICIES))


def _log(section: Section) -> Table:
    """Read the arguments of gvf.read_log."""
    options = section.rest(MEANINGS)
    for key, value in options.items():
        several = isinstance(value, list) and all(isinstance(part, str) for part in value)
        if not (value is False or several or (isinstance(value, str) and value)):
            section.fail(f"{key} must be a column, a list of columns, or false if there is none")
        options[key] = None if value is False else value
    for key, choices in {"steps": Steps, "ends": Ends, "gaps": Gaps}.items():
        if key in section:
            options[key] = section.choice(key, None, get_args(choices))
        else:
            section.take(key, None)
    section.end()
    return options


def _features(section: Section, trust: bool) -> Table:
    kind = section.choice("kind", "auto", ("auto", *FEATURES))
    table: Table = {"kind": kind}
    if kind in ("auto", "tiles"):
        tiles = section.checked("tiles", 4, _counts, "a whole number, or a list of them")
        table |= {"tiles": tiles, "tilings": section.whole("tilings", 16, least=1)}
    if kind in ("auto", "tiles", "dense"):
        table |= {key: section.numbers(key, None) for key in ("low", "high")}
    if kind in ("auto", "one-hot"):
        table["states"] = section.whole("states", None, least=1)
    if kind == "function":
        table |= {"of": section.text("of"), "size": section.whole("size", least=1)}
        if not is_reference(table["of"]):
            section.fail(f'of must be "module:name", got {table["of"]!r}')
        _trusted(section, f"of = {table['of']!r}", table["of"], trust)
    section.end()
    return table


def _counts(value: Any) -> bool:
    if isinstance(value, list):
        return len(value) > 0 and all(map(_counts, value))
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _learn(section: Section, trust: bool) -> Table:
    methods = section.several(
        "corrections", CORRECTIONS, lambda v: isinstance(v, str | dict), "a list of corrections"
    )
    for method in methods:
        for part in texts(method):
            if is_reference(part.partition("(")[0]):
                _trusted(section, f"correction {part!r}", part, trust)
    settings: Table = {
        "methods": methods,
        "step_sizes": section.several(
            "step_sizes", STEP_SIZES, lambda v: is_number(v) and v > 0, "a list of positive numbers"
        ),
        "epochs": section.whole("epochs", None, least=1),
        "order": section.choice("order", "drawn", ORDERS)
        if "order" in section
        else section.take("order", None),
        "batch_size": section.whole("batch_size", 16, least=1),
        "every": section.whole("every", 1, least=1),
        "window": section.whole("window", None, least=1),
    }
    section.end()
    with placed(f"{section.place}, corrections"):
        _check_methods(methods)
    return settings


def _check_methods(methods: tuple[Any, ...]) -> None:
    from gvf.learners.method import Method

    for entry in methods:
        if entry == LEAST_SQUARES:
            continue
        method = Method.of(entry)
        if method.needs_largest:
            raise ValueError(f"{method.name} needs the largest ratio: give it as a number")
        if method.make(1.0).refresh is not None:
            raise ValueError(f"the masses of {method.name} follow one step size; leave it out")
        if method.update == "wis-td":
            raise ValueError(f"{method.name} has no step size to compare")
