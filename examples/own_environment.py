"""Draw the paper's sensitivity figure for your own environment: change the constants below.

    python examples/own_environment.py [--runs 10] [--steps 5000] [--picture sensitivity.png]

It needs the laboratory, which draws the figure: in a clone, ``pip install . ./lab``.
"""

import argparse

import gymnasium
import numpy as np

import gvf
from gvf_lab.figure import sensitivity

ENVIRONMENT = "FrozenLake-v1"
BEHAVIOUR = gvf.policies.Favour(0, 0.7, actions=4)  # acts
QUESTION = gvf.GVF(gvf.policies.Favour(2, 0.9, actions=4), lambda t: t.terminated, 0.9)  # learned
FEATURES = gvf.features.OneHot(16)
STEP_SIZES = [0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]
METHODS = {
    "IR": gvf.corrections.IR(),
    "IS": gvf.corrections.IS(),
    "V-trace(1.0)": gvf.corrections.VTrace(1.0),
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--runs", type=int, default=2)
parser.add_argument("--steps", type=int, default=2000)
parser.add_argument("--picture", default="sensitivity.png")
options = parser.parse_args()

env = gymnasium.make(ENVIRONMENT)
errors = {name: np.empty((options.runs, len(STEP_SIZES))) for name in METHODS}
for run in range(options.runs):
    returns = gvf.held_out_returns(env, QUESTION, behaviour=BEHAVIOUR, states=200, seed=1000 + run)
    for name, correction in METHODS.items():
        update = gvf.updates.TD(STEP_SIZES)  # all step sizes learn from the same draws
        learner = gvf.Learner(QUESTION, FEATURES, update, correction, behaviour=BEHAVIOUR, seed=run)
        learner.learn(env, options.steps, seed=run)
        wrong = np.abs(learner.predict(returns.states) - returns.values[:, None]).mean(axis=0)
        errors[name][run] = np.where(np.isfinite(wrong), wrong, np.inf)  # diverged runs
sensitivity(errors, STEP_SIZES, y="absolute return error", x_log=True).savefig(options.picture)
