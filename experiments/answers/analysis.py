"""Draw page.png: three pictures of the page about the example log."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib.image
import numpy as np

from experiments.answers.sweep import example
from gvf.answers import answer_plots as plots
from gvf.answers.answer_plots import WIDTH
from gvf.common.plot_style import render


def write(folder: Path) -> None:
    """Answer the example, and stack the pictures of its first question."""
    result = example(folder)
    material, answered = result.material, result.answers[0]
    scores, values = plots.scores_of(material, answered), plots.map_of(material, answered)
    assert scores is not None
    assert values is not None
    assert values.figure is not None
    drawn = scores, plots.tracks_of(material, answered), values.figure
    images = [matplotlib.image.imread(io.BytesIO(render(figure, "png"))) for figure in drawn]
    wide = round(WIDTH * 150)
    stacked = np.concatenate([image[:, :wide, :3] for image in images])
    matplotlib.image.imsave(folder / "page.png", stacked)
