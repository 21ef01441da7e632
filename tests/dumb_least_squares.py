"""Least squares over a batch of transitions in plain NumPy, row after row, as an oracle."""

from typing import Any

import numpy as np

import gvf
from gvf.corrections.carried import Trace


def dumb_least_squares(
    question: gvf.GVF,
    features: gvf.features.FeatureMap,
    transitions: gvf.Transitions,
    correction: gvf.corrections.Correction,
    behaviour: Any = None,
) -> np.ndarray[Any, Any]:
    """Solve for the fixed point of TD(0); row i has the weight p_i w_i of the whole batch.

    Where there are several solutions, it is that of least norm.
    """
    ratio = question.ratios(transitions, behaviour=behaviour)
    cumulant, gamma = question.cumulants(transitions), question.continuations(transitions)
    interest = question.interests(transitions)
    inputs = Trace(correction).inputs(ratio, gamma, transitions, interest=interest)
    p = correction.masses(inputs)
    w = correction.weights(inputs, correction.means(inputs), p=p)
    a, b = np.zeros((features.size, features.size)), np.zeros(features.size)
    x, x_next = (rows_of(features, transitions[name]) for name in ("state", "next_state"))
    for i in np.flatnonzero(p):
        a += p[i] * w[i] * np.outer(x[i], x[i] - gamma[i] * x_next[i])
        b += p[i] * w[i] * cumulant[i] * x[i]
    return np.linalg.lstsq(a, b, rcond=1e-10)[0]


def rows_of(features: gvf.features.FeatureMap, states: Any) -> np.ndarray[Any, Any]:
    """Return features as real numbers, float64[m, size]."""
    x = np.asarray(features(states))
    if x.dtype.kind == "f":
        return x
    rows = np.zeros((len(x), features.size))
    for row, active in zip(rows, x, strict=True):
        np.add.at(row, active, 1.0)
    return rows
