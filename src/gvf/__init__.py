"""Off-policy prediction: general value functions, learned by importance resampling.

A question (:class:`GVF`) defines a signal to predict and the policy to predict it for. A
:class:`Learner` answers the question from the transitions of another policy, with a correction such
as :class:`IR`. A :class:`RatioRing` draws in proportion to importance ratios, for any training
loop. Importing this package registers its environments with Gymnasium, from ``gvf/MarkovChain-v0``
to ``gvf/CarRacing-v0``.
"""

from gvf.common import interrupt  # noqa: F401 - first, for Ctrl-C during the other imports

# isort: split
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from gvf.behaviour import EstimatedBehaviour, Support, estimate_behaviour, support
from gvf.common.gym import gym
from gvf.common.version import __version__ as __version__
from gvf.correction import (
    BCIR,
    IR,
    IS,
    BCInterpolated,
    Correction,
    EmphaticBCIR,
    EmphaticIR,
    EmphaticIS,
    EmphaticWISMinibatch,
    Interpolated,
    NormIS,
    OnPolicy,
    PrioritisedIR,
    StateRatioIR,
    VTrace,
    WISBuffer,
    WISMinibatch,
    WISOptimal,
)
from gvf.diagnosis import Diagnosis, diagnose
from gvf.domain import Domain, GymnasiumDomain
from gvf.domain.state_ratios import target_visits, visit_ratios
from gvf.features import Dense, FeatureMap, OneHot, TileCoder
from gvf.horde import (
    Columns,
    Horde,
    HordeDiagnosis,
    HordeReport,
    HordeReturnError,
    HordeWarning,
    PolicyBank,
    questions,
)
from gvf.intervals import Events, Interval, Intervals, TooFewEventsError, bootstrap, count_events
from gvf.judging import Judgement, Score, Selection, judge, select
from gvf.learner import (
    SGD,
    TD,
    TDC,
    TDRC,
    WISTD,
    Adam,
    Every,
    ExpectedSarsa,
    IncrementalTD,
    Learner,
    LearnerReport,
    NotLearnedWarning,
    Problem,
    RMSProp,
    Sarsa,
    Update,
)
from gvf.log import Log, read
from gvf.online import LSTDLearner, LSTDReport, OnlineLearner, OnlineReport
from gvf.policy import (
    Always,
    DiscretePolicy,
    Favour,
    Fixed,
    FunctionPolicy,
    Gaussian,
    Mixture,
    Policy,
    Table,
    Uniform,
    largest_ratio,
    ratio,
)
from gvf.question import GVF, Evaluation
from gvf.sampling import RatioRing, SumTree, uniform_slots
from gvf.saved import Predictor, load, load_predictor
from gvf.stream import transitions
from gvf.transition import Transitions
from gvf.truth import (
    Estimate,
    FixedPoint,
    HeldOutReturns,
    Model,
    ReturnError,
    TrueValues,
    exact_values,
    fixed_point,
    held_out_returns,
)
from gvf.window import Window
from gvf.window.frames import FrameWindow

if TYPE_CHECKING:
    from . import answers, cli, neural, paper, report, study, theory  # noqa: F401

__all__ = [
    "Adam",
    "Always",
    "BCIR",
    "BCInterpolated",
    "Columns",
    "Correction",
    "Dense",
    "Diagnosis",
    "DiscretePolicy",
    "Domain",
    "EmphaticBCIR",
    "EmphaticIR",
    "EmphaticIS",
    "EmphaticWISMinibatch",
    "Estimate",
    "EstimatedBehaviour",
    "Evaluation",
    "Events",
    "Every",
    "ExpectedSarsa",
    "Favour",
    "FeatureMap",
    "Fixed",
    "FixedPoint",
    "FrameWindow",
    "FunctionPolicy",
    "GVF",
    "Gaussian",
    "GymnasiumDomain",
    "HeldOutReturns",
    "Horde",
    "HordeDiagnosis",
    "HordeReport",
    "HordeReturnError",
    "HordeWarning",
    "IR",
    "IS",
    "IncrementalTD",
    "Interpolated",
    "Interval",
    "Intervals",
    "Judgement",
    "LSTDLearner",
    "LSTDReport",
    "Learner",
    "LearnerReport",
    "Log",
    "Mixture",
    "Model",
    "NormIS",
    "NotLearnedWarning",
    "OnPolicy",
    "OneHot",
    "OnlineLearner",
    "OnlineReport",
    "Policy",
    "PolicyBank",
    "Predictor",
    "PrioritisedIR",
    "Problem",
    "RMSProp",
    "RatioRing",
    "ReturnError",
    "SGD",
    "Sarsa",
    "Score",
    "Selection",
    "StateRatioIR",
    "SumTree",
    "Support",
    "TD",
    "TDC",
    "TDRC",
    "Table",
    "TileCoder",
    "TooFewEventsError",
    "Transitions",
    "TrueValues",
    "Uniform",
    "Update",
    "VTrace",
    "WISBuffer",
    "WISMinibatch",
    "WISOptimal",
    "WISTD",
    "Window",
    "bootstrap",
    "count_events",
    "diagnose",
    "estimate_behaviour",
    "exact_values",
    "fixed_point",
    "held_out_returns",
    "judge",
    "largest_ratio",
    "load",
    "load_predictor",
    "questions",
    "ratio",
    "read",
    "select",
    "support",
    "target_visits",
    "transitions",
    "uniform_slots",
    "visit_ratios",
]

_SUBPACKAGES = (
    "answers",
    "charts",
    "cli",
    "figure",
    "neural",
    "paper",
    "racing",
    "report",
    "study",
    "theory",
)

for _environment, _entry_point in (
    ("MarkovChain", "gvf.domain.markov_chain:MarkovChain"),
    ("FourRooms", "gvf.domain.four_rooms:FourRooms"),
    ("ContinuousFourRooms", "gvf.domain.continuous_four_rooms:ContinuousFourRooms"),
    ("Star", "gvf.domain.star:Star"),
    ("Collision", "gvf.domain.collision:Collision"),
    ("Rooms", "gvf.domain.rooms:Rooms"),
    ("HighVarianceRooms", "gvf.domain.rooms:Rooms"),
    ("Torcs", "gvf.racing.simulators:torcs"),
    ("CarRacing", "gvf.racing.car_racing:CarRacing"),
):
    gym.register(f"gvf/{_environment}-v0", entry_point=_entry_point)


def __getattr__(name: str) -> object:
    """Import a subpackage such as ``gvf.study`` at its first use; few programs need it."""
    if name in _SUBPACKAGES:
        try:
            return import_module(f"gvf.{name}")
        except ImportError as error:  # an extra is missing: for help() and hasattr(), so is this
            raise AttributeError(str(error), name=name, obj=None) from error
    # With name and obj, Python adds "Did you mean".
    message = f"module 'gvf' has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    """List the public names and the subpackages, imported or not."""
    rooms = {name for name in globals() if f"gvf.{name}" in sys.modules}
    hidden = {name for name in globals() if name.startswith("__")}
    return sorted({*__all__, *rooms, *hidden, *_SUBPACKAGES})
