"""Neural value functions: any PyTorch network, any correction.

This subpackage needs PyTorch, the extra ``torch`` of gvf; ``import gvf`` does not.
"""

from gvf.common.distribution import how_to_install as _how_to_install

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        f"gvf.neural needs PyTorch, which is not installed; {_how_to_install('gvf[torch]')}",
        name="torch",
    ) from error

from gvf.neural.mlp import mlp
from gvf.neural.neural_horde import NeuralHorde
from gvf.neural.neural_learner import NeuralLearner

__all__ = ["NeuralHorde", "NeuralLearner", "mlp"]


def __dir__() -> list[str]:
    """List the public names, imported tools left out."""
    return __all__
