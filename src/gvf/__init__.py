"""Off-policy prediction: general value functions, learned by importance resampling.

A question (:class:`GVF`) says what is predicted, under which policy; a :class:`Learner` answers it
from transitions that another policy made, with a correction such as :class:`IR`; a
:class:`RatioRing` draws in proportion to importance ratios, for any training loop.
"""

from importlib import import_module

from gvf.correction import (
    BCIR,
    IR,
    IS,
    BCInterpolated,
    Correction,
    Interpolated,
    NormIS,
    OnPolicy,
    VTrace,
    WISBuffer,
    WISMinibatch,
    WISOptimal,
)
from gvf.diagnosis import Diagnosis, diagnose
from gvf.domain import Domain, GymnasiumDomain
from gvf.features import Dense, FeatureMap, OneHot, TileCoder
from gvf.frames import FrameWindow
from gvf.learner import (
    SGD,
    TD,
    TDC,
    TDRC,
    WISTD,
    Adam,
    ExpectedSarsa,
    IncrementalTD,
    Learner,
    Report,
    RMSProp,
    Sarsa,
    Update,
)
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
    HeldOutReturns,
    Model,
    ReturnError,
    TrueValues,
    exact_values,
    held_out_returns,
)
from gvf.window import Window

__all__ = [
    "Adam",
    "Always",
    "BCIR",
    "BCInterpolated",
    "Correction",
    "Dense",
    "Diagnosis",
    "DiscretePolicy",
    "Domain",
    "Estimate",
    "Evaluation",
    "ExpectedSarsa",
    "Favour",
    "FeatureMap",
    "Fixed",
    "FrameWindow",
    "FunctionPolicy",
    "GVF",
    "Gaussian",
    "GymnasiumDomain",
    "HeldOutReturns",
    "IR",
    "IS",
    "IncrementalTD",
    "Interpolated",
    "Learner",
    "Mixture",
    "Model",
    "NormIS",
    "OnPolicy",
    "OneHot",
    "Policy",
    "Predictor",
    "RMSProp",
    "RatioRing",
    "Report",
    "ReturnError",
    "SGD",
    "Sarsa",
    "SumTree",
    "TD",
    "TDC",
    "TDRC",
    "Table",
    "TileCoder",
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
    "diagnose",
    "exact_values",
    "held_out_returns",
    "largest_ratio",
    "load",
    "load_predictor",
    "ratio",
    "transitions",
    "uniform_slots",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``gvf.study`` and ``gvf.neural`` when they are first asked for: most programs never do."""
    if name in ("neural", "study"):
        return import_module(f"gvf.{name}")
    raise AttributeError(f"module 'gvf' has no attribute {name!r}")
