"""Learn a prediction off-policy, and draw it against the truth.

The world is a frozen lake, 7 x 7, with holes. The behaviour walks at random. The target mostly goes
right, and the question is how soon it would fall into a hole. The answer is learned from the random
walk, by importance resampling and by reweighting. The transition probabilities are known, so the
picture shows the true values, the predictions, and the error while learning.

    python examples/quickstart.py [--picture results/quickstart.png] [--steps 20000]

It needs the library alone: in a clone, ``pip install .``
"""

import argparse
import itertools
from pathlib import Path

import gymnasium
import numpy as np

import gvf
from gvf.common.colours import METHOD_COLOURS

LAKE = ["SSSSSSS", "SSHSSSS", "SSSSSHS", "SSSSSSS", "SHSSSSS", "SSSSHSS", "SSSSSSG"]
RIGHT = 2
STEP_SIZES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
PIECES = 60


def falls(transitions: gvf.Transitions) -> np.ndarray:
    """Return the cumulant: 1 if an episode ends without the reward of the goal, else 0."""
    return transitions.terminated & (transitions.reward == 0)


def true_values(env: gymnasium.Env, question: gvf.GVF, gamma: float) -> np.ndarray:
    """Solve v = c + gamma P v with the transition probabilities of the environment."""
    model = env.unwrapped.P  # pyright: ignore[reportAttributeAccessIssue]
    states = len(model)
    transition, cumulant = np.zeros((states, states)), np.zeros(states)
    chances = question.policy.probabilities(np.arange(states))  # pyright: ignore[reportAttributeAccessIssue]
    for s, a in np.ndindex(chances.shape):
        for probability, after, reward, terminated in model[s][a]:
            cumulant[s] += chances[s, a] * probability * (terminated and reward == 0)
            transition[s, after] += chances[s, a] * probability * (not terminated)
    return np.linalg.solve(np.eye(states) - gamma * transition, cumulant)


def main() -> None:
    """Learn, compare, draw."""
    parser = argparse.ArgumentParser(
        description="Learn a prediction and draw it against the truth."
    )
    parser.add_argument("--picture", type=Path, default=Path("results/quickstart.png"))
    parser.add_argument("--steps", type=int, default=20_000)
    options = parser.parse_args()

    env = gymnasium.make("FrozenLake-v1", desc=LAKE, is_slippery=True)
    gamma = 0.9
    question = gvf.GVF(gvf.policies.Favour(RIGHT, 0.9, actions=4), falls, gamma)
    truth = true_values(env, question, gamma)
    land = np.array([cell == "S" for cell in "".join(LAKE)])

    # All methods learn from the same random walk, in pieces. Each step size has its own weights.
    stream = gvf.collect(env, gvf.policies.Uniform(4), options.steps, seed=0)
    walk = gvf.Transitions.concatenate(stream)
    edges = np.linspace(0, len(walk), PIECES + 1).astype(int)
    curves, learners = {}, {}
    for correction in (gvf.corrections.IR(), gvf.corrections.WISMinibatch(), gvf.corrections.IS()):
        learner = gvf.Learner(
            question,
            gvf.features.OneHot(49),
            gvf.updates.TD(STEP_SIZES),
            correction,
            update_every=16,
            seed=1,
        )
        errors = []
        for start, stop in itertools.pairwise(edges):
            learner.observe(walk[start:stop])
            values = learner.predict(np.arange(49))
            errors.append(np.abs(values - truth[:, None])[land].mean(axis=0))
        curves[correction.name], learners[correction.name] = np.array(errors), learner

    ir = learners["IR"]
    best = {name: int(np.nanargmin(curve.mean(axis=0))) for name, curve in curves.items()}
    print(ir.report())
    for name, curve in curves.items():
        lane = best[name]
        print(
            f"{name:14} mean absolute error {curve[-1, lane]:.4f} at the end, "
            f"{curve[:, lane].mean():.4f} on average, with its best step size {STEP_SIZES[lane]:g}"
        )
    draw(options.picture, truth, ir.predict(np.arange(49))[:, best["IR"]], land, curves, best)
    print(f"picture: {options.picture}")


def draw(
    path: Path,
    truth: np.ndarray,
    prediction: np.ndarray,
    land: np.ndarray,
    curves: dict[str, np.ndarray],
    best: dict[str, int],
) -> None:
    """Draw two maps side by side, and the errors while learning."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure, axes = plt.subplots(
        1, 3, figsize=(11, 3.4), width_ratios=[1, 1, 1.5], layout="constrained"
    )
    maps = {"true values": truth, "predictions of IR": prediction}
    colours = ScalarMappable(Normalize(0, truth[land].max()), "cividis")
    for axis, (title, values) in zip(axes, maps.items(), strict=False):
        axis.imshow(np.where(land, values, np.nan).reshape(7, 7), norm=colours.norm, cmap="cividis")
        for row, line in enumerate(LAKE):
            for column, cell in enumerate(line):
                if cell in "HG":
                    word = "hole" if cell == "H" else "goal"
                    axis.text(column, row, word, ha="center", va="center", fontsize=8)
        axis.set(title=title, xticks=[], yticks=[])
    figure.colorbar(colours, ax=axes[:2], shrink=0.8, label="discounted chance of falling in")
    share = 100 * np.arange(1, PIECES + 1) / PIECES
    for name, curve in curves.items():
        label = f"{name}, step size {STEP_SIZES[best[name]]:g}"
        axes[2].plot(share, curve[:, best[name]], color=METHOD_COLOURS[name], label=label)
    axes[2].set(
        xlabel="share of the walk seen (%), an update every 16 steps",
        ylabel="mean absolute error",
        title="error while learning (one run)",
        ylim=(0, None),
    )
    axes[2].legend(frameon=False)
    axes[2].spines[["top", "right"]].set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
