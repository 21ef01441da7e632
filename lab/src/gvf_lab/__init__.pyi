# The public names, each with one home; each is imported when it is first used.
from . import charts as charts
from . import commands as commands
from . import domain as domain
from . import figure as figure
from . import paper as paper
from . import racing as racing
from . import report as report
from . import study as study
from . import theory as theory
from . import truth as truth
from .domain import Domain as Domain
from .domain import GymnasiumDomain as GymnasiumDomain
from .truth import FixedPoint as FixedPoint
from .truth import Model as Model
from .truth import TrueValues as TrueValues
from .truth import exact_values as exact_values
from .truth import fixed_point as fixed_point

__all__: list[str]
