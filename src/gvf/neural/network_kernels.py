"""Parts of networks for laboratories, re-exported; no version promises them.

They are what :mod:`gvf.kernels` is for linear values.
"""

from gvf.neural.mlp import ValueNetwork, dense_layers
from gvf.neural.network_checks import as_device, check_network, check_optimiser, check_options
from gvf.neural.tensors import as_batch, as_input, flat_values, precision, td_loss

__all__ = [
    "ValueNetwork",
    "as_batch",
    "as_device",
    "as_input",
    "check_network",
    "check_optimiser",
    "check_options",
    "dense_layers",
    "flat_values",
    "precision",
    "td_loss",
]
