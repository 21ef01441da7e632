"""Copy the results of `gvf reproduce racing-step-size --scale paper` into the documentation.

    python tools/racing_page.py gvf-results        writes docs/racing/<simulator>-*

Pictures are copied. The tables are made from the files beside them, so no number is typed by hand.
"""

import csv
import json
import shutil
import sys
from pathlib import Path

FIGURE = "racing-step-size"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "racing"


def main(out: Path) -> None:
    """Write everything that the page shows from a folder of results."""
    made = out / FIGURE
    how = json.loads((made / "made-paper.json").read_text(encoding="utf-8"))
    simulator = how["options"]["simulator"]
    PAGE.mkdir(exist_ok=True)
    for name in (FIGURE, "learning-curves", "film"):
        shutil.copyfile(made / f"{name}.png", PAGE / f"{simulator}-{name}.png")
    with (made / f"{FIGURE}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    rates = list(dict.fromkeys(row["x"] for row in rows))
    lines = [["", *(f"{float(rate):g}" for rate in rates)]]
    for method in dict.fromkeys(row["series"] for row in rows):
        mine = [row for row in rows if row["series"] == method]
        points = (f"{float(row['y']):.3f} ± {float(row['stderr']):.3f}" for row in mine)
        lines.append([method, *points])
    _write(f"{simulator}-errors", lines)
    claims = json.loads((made / "claims.json").read_text(encoding="utf-8"))
    lines = [["claim", "statistic", "95 % interval", "verdict"]]
    for claim in claims:
        between = f"{claim['low']:.3g} to {claim['high']:.3g}"
        statistic = f"{claim['statistic']:.3g}: {claim['measure']}"
        lines.append([claim["sentence"], statistic, between, f"**{claim['verdict']}**"])
    _write(f"{simulator}-claims", lines)


def _write(name: str, lines: list[list[str]]) -> None:
    """Write a table in Markdown."""
    lines = [lines[0], ["---"] * len(lines[0]), *lines[1:]]
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    (PAGE / f"{name}.markdown").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
