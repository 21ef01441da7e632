"""Who acted: the behaviour of a log without probabilities, and how well it covers a target.

:func:`gvf.estimate_behaviour` fits a model of the actions to left-out episodes, calibrates it, and
gives the log its missing probabilities, marked as estimates. :func:`gvf.check_support` tells how
much of a target policy the behaviour covers. The models are here, for those who want other settings
than ``model="counts"`` and its like.
"""

from gvf.behaviour.behaviour_models import Counts, Model, Normals
from gvf.behaviour.behaviour_scores import Scores
from gvf.behaviour.classifiers import Classifier, Logistic
from gvf.behaviour.estimate_behaviour import estimate_behaviour as estimate_behaviour
from gvf.behaviour.estimated_behaviour import EstimatedBehaviour as EstimatedBehaviour
from gvf.behaviour.reliability import Reliability
from gvf.behaviour.support import StateGroup
from gvf.behaviour.support import Support as Support
from gvf.behaviour.support import check_support as check_support
from gvf.behaviour.trim import Trimmed

__all__ = [
    "Classifier",
    "Counts",
    "Logistic",
    "Model",
    "Normals",
    "Reliability",
    "Scores",
    "StateGroup",
    "Trimmed",
]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
