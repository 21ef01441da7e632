"""Draw docs/answers/page.png: three pictures of the page about the example log.

Run it with ``python docs/answers/draw.py``, after changes of the pictures or of the example.
"""

import io
import tempfile
from pathlib import Path

import matplotlib.image
import numpy as np

from gvf.answers import answer, load
from gvf.answers import plotted_numbers as plots
from gvf.answers.answer_plots import WIDTH
from gvf.common.plot_style import render

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "examples" / "logs"


def main() -> None:
    """Answer the example, and stack the pictures of its first question."""
    plan = load(LOGS / "question.toml")
    with tempfile.TemporaryDirectory() as folder:
        result = answer(plan, LOGS / "cartpole.parquet", Path(folder), quiet=True)
    material, answered = result.material, result.answers[0]
    scores, values = plots.scores_of(material, answered), plots.map_of(material, answered)
    assert scores is not None
    assert values is not None
    assert values.figure is not None
    drawn = scores, plots.tracks_of(material, answered), values.figure
    images = [matplotlib.image.imread(io.BytesIO(render(figure, "png"))) for figure in drawn]
    wide = round(WIDTH * 150)
    stacked = np.concatenate([image[:, :wide, :3] for image in images])
    matplotlib.image.imsave(Path(__file__).parent / "page.png", stacked)


if __name__ == "__main__":
    main()
