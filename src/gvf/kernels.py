"""Compiled kernels and types for laboratories, re-exported; no version promises them.

A study has loops of its own, and compiles into them what learners use. This module lists all that
``gvf_lab`` takes from the library beyond public names and the tools of :mod:`gvf.common`; what
needs PyTorch is in :mod:`gvf.neural.network_kernels`. A test fails on any other private import, and
on a name that the laboratory does not use.
"""

from gvf.corrections.carried import TraceOverflowError, carried
from gvf.corrections.correction import Draw
from gvf.diagnosis.batch_law import law_of, self_normalised
from gvf.diagnosis.variance_comparison import covariance, difference_of_variances, separation
from gvf.features import ActiveTable, features_of
from gvf.learners.method import BETWEEN, NAMED, PAPER, UPDATES
from gvf.online.online_loop import Measure, Steps, run, start_streams, steps_of
from gvf.policies.default_behaviour import LARGEST_BOUND, count_actions, middle_and_spread
from gvf.policies.policy import check_same_actions, describe, thresholds
from gvf.sampling.xoshiro import streams, uniform
from gvf.stream import Actor
from gvf.stream.infos import info_columns
from gvf.stream.observations import Observations
from gvf.truth.held_out_returns import Cut, check_share_cut, cut_text
from gvf.truth.target_visits import stationary
from gvf.updates.linear_kernels import (
    NARROW,
    WIDE,
    Experience,
    accumulate,
    add_at,
    experience_type,
    td_error_at,
    weight_row,
)
from gvf.updates.update import LearnerState, state_type
from gvf.window.draw_batches import Draws, update_times

__all__ = [
    "ActiveTable",
    "Actor",
    "BETWEEN",
    "Cut",
    "Draw",
    "Draws",
    "Experience",
    "LARGEST_BOUND",
    "LearnerState",
    "Measure",
    "NAMED",
    "NARROW",
    "Observations",
    "PAPER",
    "Steps",
    "TraceOverflowError",
    "UPDATES",
    "WIDE",
    "accumulate",
    "add_at",
    "carried",
    "check_same_actions",
    "check_share_cut",
    "count_actions",
    "covariance",
    "cut_text",
    "describe",
    "difference_of_variances",
    "experience_type",
    "features_of",
    "info_columns",
    "law_of",
    "middle_and_spread",
    "run",
    "self_normalised",
    "separation",
    "start_streams",
    "state_type",
    "stationary",
    "steps_of",
    "streams",
    "td_error_at",
    "thresholds",
    "uniform",
    "update_times",
    "weight_row",
]
