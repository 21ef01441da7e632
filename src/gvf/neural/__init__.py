"""Neural value functions: any PyTorch network, any correction, many copies at once.

This subpackage needs PyTorch, ``pip install "gvf[torch]"``; ``import gvf`` does not.
"""

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ImportError(
        'gvf.neural needs PyTorch, which is not installed: pip install "gvf[torch]"', name="torch"
    ) from error

from gvf.neural.horde import NeuralHorde
from gvf.neural.lanes import Lanes
from gvf.neural.learner import NeuralLearner
from gvf.neural.network import driving_network, mlp

__all__ = ["Lanes", "NeuralHorde", "NeuralLearner", "driving_network", "mlp"]
