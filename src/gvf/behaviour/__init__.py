"""Who acted: the behaviour of a log without probabilities, and how well it covers a target.

:func:`gvf.estimate_behaviour` fits a model of the actions to left-out episodes, calibrates it, and
gives the log its missing probabilities, marked as estimates. :func:`gvf.support` tells how much of
a target policy the behaviour covers. The models are here, for those who want other settings than
``model="counts"`` and its like.
"""

from gvf.behaviour.check import support
from gvf.behaviour.classifiers import Counts, Logistic, Model
from gvf.behaviour.densities import Normals
from gvf.behaviour.estimate import estimate_behaviour
from gvf.behaviour.groups import StateGroup
from gvf.behaviour.others import Classifier, Network
from gvf.behaviour.reliability import Reliability
from gvf.behaviour.result import EstimatedBehaviour
from gvf.behaviour.scores import Scores
from gvf.behaviour.support import Support
from gvf.behaviour.trim import Trimmed
from gvf.common.means import Interval

__all__ = [
    "Classifier",
    "Counts",
    "EstimatedBehaviour",
    "Interval",
    "Logistic",
    "Model",
    "Network",
    "Normals",
    "Reliability",
    "Scores",
    "StateGroup",
    "Support",
    "Trimmed",
    "estimate_behaviour",
    "support",
]
