"""Policies that a user might have, and the level of statistical tests."""

import scipy.stats

LEVEL = 1e-4  # of each statistical test below; seeds are fixed
TABLE = [[0.1, 0.2, 0.7], [0.0, 1.0, 0.0], [0.3, 0.0, 0.7], [1 / 3, 1 / 3, 1 / 3]]


class FakeNormal:
    """A distribution in the style of torch's that knows nothing of torch."""

    def __init__(self, mean, sd=1.0):
        self.mean, self.sd = mean, sd

    def log_prob(self, actions):
        return scipy.stats.norm.logpdf(actions, self.mean, self.sd)

    def sample(self):
        return self.mean + 0.5 * self.sd
