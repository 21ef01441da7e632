"""Run a page's Python blocks in the folder of its pictures, to redraw them.

    python docs/draw.py which-correction        writes docs/which-correction/*.png

The build and the tests run the same blocks in a folder that is thrown away.
"""

import contextlib
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def draw(page: Path) -> None:
    """Run the blocks of a Markdown page in the folder that is named after it."""
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    namespace: dict[str, object] = {"__name__": "__main__"}
    with contextlib.chdir(folder):
        for block in BLOCK.findall(page.read_text(encoding="utf-8")):
            exec(compile(block, page, "exec"), namespace)


if __name__ == "__main__":
    draw(Path(__file__).resolve().with_name(f"{sys.argv[1]}.md"))
