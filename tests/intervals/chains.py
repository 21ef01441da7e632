"""Small logs of the Markov chain, simulated step by step, and what repeats their episodes."""

from typing import Any

import numpy as np

import gvf

QUESTION = gvf.GVF(gvf.policies.Fixed([0.1, 0.9]), "reward", 0.9)
BEHAVIOUR = gvf.policies.Fixed([0.5, 0.5])
STATES = np.arange(1, 9)


def episodes(count: int, seed: int, limit: int = 40) -> list[dict[str, Any]]:
    """Episodes of the chain, cut after `limit` steps."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        states, actions = [int(rng.integers(1, 9))], []
        while len(actions) < limit and 0 < states[-1] < 9:
            actions.append(int(rng.integers(2)))
            states.append(states[-1] + 2 * actions[-1] - 1)
        made.append(
            {
                "state": np.array(states),
                "action": np.array(actions),
                "reward": (np.array(states[1:]) == 9).astype(float),
                "terminated": states[-1] in (0, 9),
                "behaviour_probability": np.full(len(actions), 0.5),
            }
        )
    return made


def read(made: list[dict[str, Any]]) -> gvf.Log:
    """The episodes as a log."""
    return gvf.read_log(made, quiet=True)


def repeated(made: list[dict[str, Any]], counts: Any) -> gvf.Log:
    """The log in which episode e occurs counts[e] times."""
    return read([one for one, count in zip(made, counts, strict=True) for _ in range(count)])


def learner(
    update: gvf.updates.Update | None = None,
    correction: gvf.corrections.Correction | None = None,
    **options: Any,
) -> gvf.Learner:
    """A learner of the chain."""
    correction = gvf.corrections.IR() if correction is None else correction
    return gvf.Learner(
        QUESTION, gvf.features.OneHot(10), update or gvf.updates.TD(0.1), correction, **options
    )
