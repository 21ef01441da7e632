"""Learn a prediction with a small neural network, in rooms where a body moves continuously.

The behaviour walks at random through four rooms. The target always goes down, and the question is
how soon it would bump into a wall. The network sees only the position, two numbers. Three
corrections learn from the same walk, each with its own copy of the network. The picture shows their
predictions beside true values, which are sampled by going down.

    python examples/neural_four_rooms.py [--steps 40000] [--picture results/neural_four_rooms.png]

It needs PyTorch, and the laboratory for its rooms: in a clone, ``pip install ".[torch]" ./lab``.
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import torch

import gvf
import gvf_lab.domain
from gvf.neural import NeuralLearner, mlp

CORRECTIONS = (gvf.corrections.IR(), gvf.corrections.WISMinibatch(), gvf.corrections.IS())


class Positions(torch.nn.Module):
    """A layer that scales positions (y, x) from [0, 11] to [-1, 1], which eases learning."""

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        """Scale positions [m, 2]."""
        return positions / 5.5 - 1


def main() -> None:
    """Learn, compare, draw."""
    parser = argparse.ArgumentParser(description="Learn a prediction with a small neural network.")
    parser.add_argument("--steps", type=int, default=8000)
    parser.add_argument("--picture", type=Path, default=Path("results/neural_four_rooms.png"))
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()

    torch.set_num_threads(1)  # fastest for small networks
    rooms = gvf_lab.domain.get("continuous-four-rooms")
    behaviour, question = rooms.behaviour("uniform"), rooms.question("down")
    truth = rooms.truth("down", "uniform")
    steps = gvf.collect(rooms.make(), behaviour, options.steps, seed=0)
    walk = gvf.Transitions.concatenate(steps)

    learned = {}
    for correction in CORRECTIONS:
        torch.manual_seed(0)
        learner = NeuralLearner(
            question,
            torch.nn.Sequential(Positions(), mlp(2, hidden=(64, 64))),
            partial(torch.optim.Adam, lr=1e-3),
            correction,
            behaviour=behaviour,
            update_every=8,
            device=options.device,
            seed=0,
        )
        learner.observe(walk)
        learned[correction.name] = learner.predict(truth.states)
        print(f"{correction.name:14} {learner.report()}")
    print("mean absolute error")
    print(f"{'always 0':14} {np.abs(truth.values).mean():.3f}")
    for name, values in learned.items():
        print(f"{name:14} {np.abs(values - truth.values).mean():.3f}")
    draw(options.picture, truth.states, {"the truth (rollouts)": truth.values, **learned})
    print(f"picture: {options.picture}")


def draw(path: Path, states: np.ndarray, values: dict[str, np.ndarray]) -> None:
    """Draw the same states side by side, coloured by their values."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    colours = ScalarMappable(Normalize(0, 1), "cividis")
    size = (3 * len(values), 3.2)
    figure, axes = plt.subplots(1, len(values), figsize=size, layout="constrained")
    for axis, (title, shown) in zip(axes, values.items(), strict=True):
        y, x = states.T
        axis.scatter(x, y, c=shown, s=9, norm=colours.norm, cmap=colours.cmap)
        axis.set(title=title, xticks=[], yticks=[], aspect="equal", xlim=(0, 11), ylim=(11, 0))
    figure.colorbar(colours, ax=axes, shrink=0.8, label="bumping soon, if I went down")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    main()
