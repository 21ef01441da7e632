"""Sphinx configuration: every warning is an error, every public name is documented, code runs."""

import contextlib
import io
import re
import tempfile
from pathlib import Path
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

import gvf
import gvf.domain
import gvf.figure
import gvf.neural
import gvf.online
import gvf.paper
import gvf.racing
import gvf.report
import gvf.study
import gvf.theory
from gvf.report.build import build

project = "gvf"
author = "The gvf developers"
copyright = author
version = release = gvf.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings tell more: what, and of which shape
napoleon_attr_annotations = False
napoleon_use_ivar = True
python_maximum_signature_line_length = 88

html_css_files = ["output.css"]
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_theme = "furo"
html_title = f"gvf {release}"

BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)


def show_what_is_printed(app: Sphinx, page: str, source: list[str]) -> None:
    """Run a page's Python blocks in order, and put below each what it prints."""
    text, path = source[0], app.env.doc2path(page)
    namespace: dict[str, object] = {"__name__": "__main__"}

    def with_output(found: re.Match[str]) -> str:
        above = "\n" * text.count("\n", 0, found.start(1))
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(above + found[1], path, "exec"), namespace)
        output = printed.getvalue()
        return found[0] + (f"\n```text\n{output}```\n" if output else "")

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        source[0] = BLOCK.sub(with_output, text)


def keep_colons(_app: Sphinx, what: str, *details: Any) -> None:
    """Keep Napoleon from reading "a short remark: the rest" as "type: description"."""
    if what in ("attribute", "property"):
        details[-1][:0] = ["..", ""]  # an empty comment: it looks at the first line only


def inline_mathml(translator: HTML5Translator, node: nodes.math) -> None:
    """Mathematics that browsers render themselves: no script, nothing to fetch."""
    translator.body.append(convert(node.astext()))
    raise nodes.SkipNode


def block_mathml(translator: HTML5Translator, node: nodes.math_block) -> None:
    """The same, on lines of its own."""
    translator.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def require_public_names(_: Sphinx, environment: BuildEnvironment) -> None:
    """Warn, and so fail the build, where a public name has no entry."""
    documented = environment.domains.python_domain.objects
    shown = (
        gvf, gvf.domain, gvf.figure, gvf.neural, gvf.online, gvf.paper, gvf.racing, gvf.report,
        gvf.study, gvf.theory,
    )  # fmt: skip
    for module in shown:
        for name in module.__all__:
            if not {f"{module.__name__}.{name}", f"gvf.{name}"} & documented.keys():
                logging.getLogger(__name__).warning(
                    "public, but not documented: %s.%s", module.__name__, name, location="api"
                )


def show_the_paper(app: Sphinx, error: Exception | None) -> None:
    """Write the pages of the shipped results, which the page about reproduction refers to."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "paper"
        folder.mkdir(exist_ok=True)
        build(folder, "gvf report")


def setup(app: Sphinx) -> None:
    """Say when each of these is called."""
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))
    app.connect("source-read", show_what_is_printed)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)  # Napoleon's is 500
    app.connect("env-check-consistency", require_public_names)
    app.connect("build-finished", show_the_paper)
