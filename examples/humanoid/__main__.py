"""Ask a humanoid robot 25,000 questions, learn all answers from one stream, and check them.

    python -m examples.humanoid                          all, about 13 minutes on two cores
    python -m examples.humanoid --quick                  the same in seconds, too short to learn
    python -m examples.humanoid --pictures docs/horde    redraw the pictures and tables of the page

It needs the library and MuJoCo: in a clone, ``pip install ".[robot]"``. The robot is Gymnasium's
Humanoid-v5. It acts at random, falls, and wriggles on the floor. A horde learns what its sensors
would read if it acted otherwise. Each piece of work is kept in ``--results``, so that an
interrupted run goes on.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from examples.humanoid.findings import choose, comparison, find, overall
from examples.humanoid.learn import CORRECTIONS, FULL, QUICK
from examples.humanoid.pictures import draw_pictures
from examples.humanoid.robot import HUMANOID, Robot
from examples.humanoid.tables import write_tables
from examples.humanoid.work import FIRST, OTHERS, Folder


def main(arguments: Sequence[str] | None = None, robot: Robot = HUMANOID) -> None:
    """Simulate, compare corrections, learn all answers, judge them, write and draw."""
    parser = argparse.ArgumentParser(description="Ask a humanoid robot 25,000 questions.")
    parser.add_argument("--quick", action="store_true", help="take seconds")
    parser.add_argument("--results", type=Path, default=Path("gvf-results"))
    parser.add_argument("--pictures", type=Path, default=Path("results/humanoid"))
    options = parser.parse_args(arguments)

    scale = QUICK if options.quick else FULL
    folder = Folder(
        options.results / ("humanoid-quick" if options.quick else "humanoid"), robot, scale
    )
    print("simulate")
    folder.simulate()
    print("choose step sizes")
    folder.compare(FIRST, list(product(CORRECTIONS, scale.step_sizes)))
    chosen = choose(folder)
    print("compare corrections")
    best = sorted({(correction, size) for (correction, _), size in chosen.items()})
    for seed in OTHERS:
        folder.compare(seed, best)
    print("learn all answers")
    folder.learn_all(overall(folder))
    found, compared = find(folder), comparison(folder, chosen)
    options.pictures.mkdir(parents=True, exist_ok=True)
    write_tables(options.pictures, robot, found, compared)
    draw_pictures(options.pictures, folder, found, compared)
    for name, value in found.summary.items():
        print(f"{name:24} {value:,.6g}")
    print(f"tables and pictures: {options.pictures}")


if __name__ == "__main__":
    main()
