"""Options that learners share: one text, one set of defaults, one error for a wrong name."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import gvf
from gvf.learners.learner_options import (
    LearnerOptions,
    WindowOptions,
    documents_options,
    options_of,
)

QUESTION = gvf.GVF(gvf.policies.Uniform(2))
FEATURES = gvf.features.OneHot(3)


def learner_of(kind: str, **options: Any) -> Any:
    arguments: dict[str, tuple[Any, ...]] = {
        "Learner": (QUESTION, FEATURES, gvf.updates.TD(0.1)),
        "OnlineLearner": (QUESTION, FEATURES, gvf.online.TDLambda(0.1)),
        "LSTDLearner": (QUESTION, FEATURES),
    }
    return getattr(gvf, kind)(*arguments[kind], **options)


KINDS = ["Learner", "OnlineLearner", "LSTDLearner"]
WINDOW = {"window", "batch_size", "update_every", "warm_up", "n_step", "seed"}


@pytest.mark.parametrize("kind", KINDS)
def test_every_option_is_in_the_documentation_and_in_the_signature(kind: str) -> None:
    cls = getattr(gvf, kind)
    parameters = inspect.signature(cls).parameters
    options = {"behaviour", "on_conflict", "on_nan"} | (WINDOW if kind == "Learner" else set())
    assert options <= parameters.keys()
    for name, parameter in parameters.items():
        assert f"\n        {name}: " in cls.__doc__.expandtabs(), name
        assert parameter.kind != parameter.VAR_KEYWORD
    for name in options:
        assert parameters[name].default == LearnerOptions.__dataclass_fields__[name].default
    assert "{options}" not in cls.__doc__
    assert max(map(len, cls.__doc__.splitlines())) <= 100


def test_the_defaults_are_those_that_the_documentation_promises() -> None:
    options = LearnerOptions()
    assert (options.window, options.batch_size, options.n_step) == (15_000, 16, 1)
    assert (options.update_every, options.warm_up, options.seed) == (1, 0, None)
    assert (options.on_conflict, options.on_nan, options.behaviour) == ("error", "error", None)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_name_is_refused_as_python_does_it_with_the_nearest_one(kind: str) -> None:
    with pytest.raises(TypeError) as caught:
        learner_of(kind, on_nam="skip")
    message = f"{kind}.__init__() got an unexpected keyword argument 'on_nam'"
    assert str(caught.value) == f"{message}; did you mean 'on_nan'?"
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'zzz'$"):
        learner_of(kind, zzz=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"on_nan": "leave"}, ValueError, "on_nan must be one of 'error', 'skip'"),
        ({"on_conflict": "no"}, ValueError, "on_conflict must be one of"),
        ({"behaviour": "uniform"}, TypeError, "behaviour must be a gvf.policies.Policy"),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(
    kind: str, options: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        learner_of(kind, **options)


@pytest.mark.parametrize("name", ["window", "batch_size", "update_every", "n_step"])
def test_a_count_is_at_least_1(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        learner_of("Learner", **{name: 0})
    with pytest.raises(TypeError, match=f"{name} must be an integer, and 2.0 is a float"):
        learner_of("Learner", **{name: 2.0})


def test_a_warm_up_may_be_0_and_not_less() -> None:
    assert learner_of("Learner", warm_up=0).schedule.warm_up == 0
    with pytest.raises(ValueError, match="warm_up must be at least 0"):
        learner_of("Learner", warm_up=-1)


def test_options_reach_the_parts_of_a_learner() -> None:
    learner = learner_of(
        "Learner", window=7, batch_size=3, update_every=2, warm_up=5, n_step=4, on_nan="skip",
        on_conflict="recorded", behaviour=gvf.policies.Fixed([0.5, 0.5]),
    )  # fmt: skip
    schedule = learner.schedule
    assert learner.window.capacity == 7
    assert (schedule.batch_size, schedule.update_every, schedule.warm_up) == (3, 2, 5)
    assert (learner.n_steps.n, learner.on_nan, learner.on_conflict) == (4, "skip", "recorded")
    assert learner.behaviour == gvf.policies.Fixed([0.5, 0.5])
    assert learner.states.on_nan == learner.row_maker.on_nan == "skip"


def test_a_class_may_have_texts_and_options_of_its_own() -> None:
    @documents_options(WindowOptions, window="the only text that differs.")
    class Mine:
        """Something.

        Args:
            {options}
            more: an argument of its own.
        """

        def __init__(self, first: int, *, more: int = 0, **options: Any) -> None:
            self.options = options_of(WindowOptions, self, options)

    assert "            window: the only text that differs.\n" in (Mine.__doc__ or "")
    assert list(inspect.signature(Mine).parameters)[:2] == ["first", "behaviour"]
    assert list(inspect.signature(Mine).parameters)[-1] == "more"
    assert Mine(1, window=3).options.window == 3
    with pytest.raises(TypeError, match=r"Mine.__init__.. got an unexpected keyword .*'n_step'"):
        Mine(1, n_step=2)
