"""The tests' oracle: a learner written the obvious way, with lists, dense vectors and one lane.

It shares no code with the library's learners: features become dense vectors, the window is a list
in order of age, and each update is its formula.
"""

import numpy as np


def dense(features, states):
    """Return any feature map's output as dense vectors [m, size]."""
    x = features(np.asarray(states))
    if x.dtype.kind == "f":
        return x
    vectors = np.zeros((len(x), features.size))
    for row, active in zip(vectors, x, strict=True):
        row[active] += 1.0
    return vectors


def masses(correction, rho):
    """Return the p of the design's table: None for uniform draws, "window" for no draws, or [n]."""
    name, rho = type(correction).__name__, np.asarray(rho)
    if name in ("IR", "BCIR"):
        return rho
    if name in ("Interpolated", "BCInterpolated"):
        return rho**correction.beta
    if name == "SquareRoot":
        return np.sqrt(rho)
    return "window" if name == "WISOptimal" else None


def follow_on(ratio, continuation, interest, ended, beta=None):
    """Return the follow-on trace; the decay is the continuation of the transition before."""
    out = []
    for t in range(len(ratio)):
        if t == 0 or ended[t - 1] or continuation[t - 1] == 0.0:
            out.append(interest[t])
        else:
            decay = continuation[t - 1] if beta is None else beta
            out.append(decay * ratio[t - 1] * out[-1] + interest[t])
    return np.array(out)


def probabilities(correction, rho):
    """Return the probability of each transition of a window in one draw; 1 without draws."""
    p = masses(correction, rho)
    if p is None:
        return np.full(len(rho), 1 / len(rho))
    if isinstance(p, str):
        return np.ones(len(rho))
    return p / p.sum() if p.sum() > 0 else 0 * p


def draw(p, n, capacity, head, k, rng):
    """Draw positions in a window of n (oldest first) by masses, with a linear search."""
    if isinstance(p, str):
        return None
    uniforms = rng.random(k)
    if p is None:
        # The library draws slots, not ages: in a full window the oldest is in slot `head`.
        return [(int(u * n) - (head if n == capacity else 0)) % n for u in uniforms]
    chosen = []
    for u in uniforms:
        x, total = u * sum(p), 0.0
        for position, mass in enumerate(p):
            total += mass
            if total > x:
                chosen.append(position)
                break
    return chosen


def weigh(correction, rho, window):
    """Return the w of the design's table."""
    name, rho, window = type(correction).__name__, np.asarray(rho), np.asarray(window)
    k, mean = len(rho), np.mean(window)
    if name in ("IS", "Uneven"):
        return rho / k
    if name == "VTrace":
        return np.minimum(rho, correction.clip) / k
    if name in ("WISMinibatch", "WISOptimal"):
        return rho / rho.sum() if rho.sum() > 0 else 0 * rho
    if name == "WISBuffer":
        return rho / (k * mean) if mean > 0 else 0 * rho
    if name == "NormIS":
        return rho / (k * correction.max_ratio)
    if name in ("IR", "OnPolicy"):
        return np.full(k, 1 / k)
    if name == "BCIR":
        return np.full(k, mean / k)
    if name in ("Interpolated", "SquareRoot"):
        beta = getattr(correction, "beta", 0.5)
        return rho ** (1 - beta) / k
    if name == "BCInterpolated":
        return np.mean(window**correction.beta) * rho ** (1 - correction.beta) / k
    raise NotImplementedError(name)


class DumbUpdate:
    """One lane of an update; `apply` takes dense features [k, rows]."""

    def __init__(self, kind, rows, **constants):
        self.kind, self.constants = kind, constants
        self.weights = np.zeros(rows)
        self.second = np.zeros(rows)
        self.first = np.zeros(rows)
        self.time = 0
        if kind == "wis_td":
            self.u = np.full(rows, constants["u0"])

    def apply(self, x, x_next, c, gamma, w):
        getattr(self, self.kind)(x, x_next, np.asarray(c), np.asarray(gamma), w)

    def direction(self, x, x_next, c, gamma, w):
        delta = c + gamma * (x_next @ self.weights) - x @ self.weights
        return x.T @ (w * delta)

    def sgd(self, *batch):
        self.weights = self.weights + self.constants["alpha"] * self.direction(*batch)

    def rmsprop(self, *batch, decay=0.9, epsilon=1e-8):
        g = self.direction(*batch)
        self.second = decay * self.second + (1 - decay) * g**2
        self.weights = self.weights + self.constants["alpha"] * g / np.sqrt(self.second + epsilon)

    def adam(self, *batch, beta1=0.9, beta2=0.999, epsilon=1e-8):
        g = self.direction(*batch)
        self.time += 1
        self.first = beta1 * self.first + (1 - beta1) * g
        self.second = beta2 * self.second + (1 - beta2) * g**2
        corrected = self.first / (1 - beta1**self.time)
        root = np.sqrt(self.second / (1 - beta2**self.time))
        self.weights = self.weights + self.constants["alpha"] * corrected / (root + epsilon)

    def incremental(self, x, x_next, c, gamma, w):
        for i in range(len(w)):
            delta = c[i] + gamma[i] * x_next[i] @ self.weights - x[i] @ self.weights
            self.weights = self.weights + self.constants["alpha"] * len(w) * w[i] * delta * x[i]

    def wis_td(self, x, x_next, c, gamma, w):
        eta = self.constants["eta"]
        for i in range(len(w)):
            r = len(w) * w[i]
            delta = c[i] + gamma[i] * x_next[i] @ self.weights - x[i] @ self.weights
            self.u = (1 - eta * x[i] ** 2) * self.u + r * x[i] ** 2
            self.weights = self.weights + r * delta * x[i] / self.u

    def tdc(self, x, x_next, c, gamma, w):
        alpha, ratio, beta = (self.constants[key] for key in ("alpha", "ratio", "beta"))
        h = self.second
        delta = c + gamma * (x_next @ self.weights) - x @ self.weights
        expected = x @ h
        self.weights = self.weights + alpha * (
            x.T @ (w * delta) - x_next.T @ (w * gamma * expected)
        )
        self.second = h + alpha * ratio * (x.T @ (w * (delta - expected)) - beta * h)


class DumbLearner:
    """A learner that observes one transition at a time and updates after each."""

    def __init__(self, question, features, update, correction, behaviour, window, k, seed, sarsa):
        self.question, self.features, self.update = question, features, update
        self.correction, self.behaviour = correction, behaviour
        self.capacity, self.k, self.sarsa = window, k, sarsa
        self.rng, self.action_rng = np.random.default_rng(seed).spawn(2)
        self.window = []
        self.steps = self.skipped = 0

    def observe(self, s, a, r, s_next, terminated):
        pi, mu = self.question.policy, self.behaviour
        rho = (pi.probability([s], [a]) / mu.probability([s], [a]))[0]
        x, x_next = dense(self.features, [s])[0], dense(self.features, [s_next])[0]
        if self.sarsa:
            shares = pi.probabilities([s_next])[0]
            if self.sarsa == "sampled":
                shares = np.eye(pi.actions)[pi.sample([s_next], rng=self.action_rng)[0]]
            x, x_next = np.kron(np.eye(pi.actions)[a], x), np.kron(shares, x_next)
        gamma = 0.0 if terminated else self.question.continuation
        self.window = [*self.window, (x, x_next, r, gamma, rho)][-self.capacity :]
        self.steps += 1
        self.learn()

    def learn(self):
        ratios = [row[4] for row in self.window]
        p = masses(self.correction, ratios)
        if p is not None and sum(ratios if isinstance(p, str) else p) == 0:
            self.skipped += 1
            return
        head = self.steps % self.capacity
        chosen = draw(p, len(ratios), self.capacity, head, self.k, self.rng)
        rows = self.window if chosen is None else [self.window[i] for i in chosen]
        x, x_next, c, gamma, rho = (np.array(column) for column in zip(*rows, strict=True))
        w = weigh(self.correction, rho, ratios)
        self.update.apply(x, x_next, c, gamma, w)
