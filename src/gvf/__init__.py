"""Off-policy prediction: general value functions, learned by importance resampling.

A question (:class:`GVF`) defines a signal to predict and the policy to predict it for. A
:class:`Learner` answers the question from the transitions of another policy, with a correction such
as :class:`gvf.corrections.IR`. A :class:`RatioRing` draws in proportion to importance ratios, for
any training loop. A name is imported when it is first used: ``__init__.pyi`` lists them all.
"""

from gvf.common import interrupts  # noqa: F401 - first, for Ctrl-C during the other imports

# isort: split
import sys

import lazy_loader

from gvf.common.version import __version__ as __version__

_attribute, _names, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Import a public name, or a namespace such as ``gvf.policies``, at its first use."""
    try:
        return _attribute(name)
    except ImportError as error:  # an extra is missing: for help() and hasattr(), so is this
        raise AttributeError(str(error), name=name, obj=None) from error
    except AttributeError:
        if name in __all__:
            raise
        # With name and obj, Python adds "Did you mean".
        message = f"module 'gvf' has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=sys.modules[__name__]) from None


def __dir__() -> list[str]:
    """List the public names and the namespaces, imported or not."""
    return sorted({*_names(), *(name for name in globals() if name.startswith("__"))})
