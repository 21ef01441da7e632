"""Sphinx configuration: every warning is an error, every public name is documented, code runs."""

import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

import gvf
import gvf_lab
from gvf_lab.report.build import build

sys.path.insert(0, str(Path(__file__).parents[1]))
from experiments.page_blocks import BLOCK, CHECKS, run_page, strange_numbers

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

html_css_files = ["pages.css"]
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_theme = "furo"
html_title = f"gvf {release}"

log = logging.getLogger(__name__)

NO_PROMISE = {"gvf.cli", "gvf.kernels"}
"""Namespaces without a promise, whose names need no entry."""
AT_THE_TOP = [getattr(gvf, name) for name in gvf.__all__]
"""What stands at the top of the library; a namespace of any house may have it too."""

TOKEN = re.compile(r"\\(?:[bB]igg?)?(?:[a-zA-Z]+|.)|\s+|.", re.DOTALL)
"""The tokens of a formula: commands, spaces and characters."""
GAP = '<span class="gap"> </span>'
"""A space between formulas of one display; at the end of a line it takes no place."""
RELATIONS = {"=", r"\leftarrow", r"\to", r"\ge", r"\le"}
"""Before these a display may be broken."""


def show_what_is_printed(app: Sphinx, page: str, source: list[str]) -> None:
    """Run a page's Python blocks, put below each what it prints, and check the page's numbers."""
    path = Path(app.env.doc2path(page))
    if not BLOCK.search(source[0]):
        return
    ran = run_page(path)
    for number in strange_numbers(path, ran):
        log.warning("nothing beside it makes the number %s", number, location=page)
    CHECKS.get(path.name, lambda _: None)(ran)
    source[0] = ran.with_output


def keep_colons(_app: Sphinx, what: str, *details: Any) -> None:
    """Keep Napoleon from reading "a short remark: the rest" as "type: description"."""
    if what in ("attribute", "property"):
        details[-1][:0] = ["..", ""]  # an empty comment: it looks at the first line only


def inline_mathml(translator: HTML5Translator, node: nodes.math) -> None:
    """Mathematics that browsers render themselves: no script, nothing to fetch."""
    translator.body.append("".join(map(mathml, pieces(node.astext(), relations=False))))
    raise nodes.SkipNode


def block_mathml(translator: HTML5Translator, node: nodes.math_block) -> None:
    """The same, on lines of its own; a narrow screen breaks a line between two pieces."""
    latex = node.astext()
    if "\\begin" in latex:
        formula = mathml(latex, display="block")
    else:
        parts = pieces(latex, relations=True)
        parts = [part if part == GAP else mathml(part, display="block") for part in parts]
        in_a_row = 'display="inline" displaystyle="true"'
        formula = "".join(parts).replace('display="block"', in_a_row)
    translator.body.append(f'<div class="math">{formula}</div>')
    raise nodes.SkipNode


def mathml(latex: str, display: str = "inline") -> str:
    """Return a formula as MathML; both bars of a norm have the height of a letter."""
    return convert(latex, display=display).replace(
        "<mo>&#x02016;</mo>", '<mo stretchy="false">&#x02016;</mo>'
    )


def pieces(latex: str, *, relations: bool) -> list[str]:
    r"""Divide a formula where a line may break: at ``\allowbreak``, and perhaps more.

    Args:
        latex: the formula.
        relations: True to divide before relations and after spaces too, outside of all brackets.
    """
    result, piece, depth = [], "", 0
    for token in TOKEN.findall(latex):
        depth += token.endswith(("{", "(", "[")) - token.endswith(("}", ")", "]"))
        if token == r"\allowbreak":
            result.append(piece)
            piece = "{}"  # so that an operator in front has a space on both sides
        elif relations and depth == 0 and token in (r"\quad", r"\qquad"):
            result += [piece, GAP]
            piece = ""
        elif relations and depth == 0 and token in RELATIONS:
            result.append(piece)
            piece = "{}" + token
        else:
            piece += token
    return [part for part in (*result, piece) if part.strip("{} \n")]


def keep_punctuation(_app: Sphinx, page: nodes.document, _name: str) -> None:
    """Keep a comma on the line of the formula in front of it."""
    for formula in list(page.findall(nodes.math)):
        rest = formula.next_node(descend=False, siblings=True)
        if isinstance(rest, nodes.Text) and rest[0] in ",.;:)" and formula.parent is rest.parent:
            together = nodes.inline("", "", classes=["together"])
            formula.parent.replace(rest, nodes.Text(rest[1:]))
            formula.parent.replace(formula, together)
            together += [formula, nodes.Text(rest[0])]


def public_names(house: ModuleType) -> Iterator[tuple[str, object]]:
    """List the names of a house and of its namespaces, each at its one home, and their values."""
    names = {name: getattr(house, name) for name in house.__all__}
    for name, value in names.items():
        if not isinstance(value, ModuleType):
            yield f"{house.__name__}.{name}", value
        elif value.__name__ not in NO_PROMISE:
            for name_inside in getattr(value, "__all__", ()):
                value_inside = getattr(value, name_inside)
                at_the_top = any(value_inside is top for top in (*names.values(), *AT_THE_TOP))
                if not at_the_top and not isinstance(value_inside, ModuleType):
                    yield f"{value.__name__}.{name_inside}", value_inside


def require_public_names(_: Sphinx, environment: BuildEnvironment) -> None:
    """Warn, and so fail the build, where a public name has no entry, or something has two."""
    entries = environment.domains.python_domain.objects
    for house in (gvf, gvf_lab):
        for name, _value in public_names(house):
            if name not in entries:
                log.warning("public, but not documented: %s", name, location="api")
    names_of: dict[int, list[str]] = {}
    for name, entry in entries.items():
        if entry.objtype in ("class", "exception", "function") and not entry.aliased:
            names_of.setdefault(id(value_at(name)), []).append(name)
    for names in names_of.values():
        if len(names) > 1:
            log.warning("documented under several names: %s", ", ".join(names), location="api")


def value_at(name: str) -> object:
    """Return the class or function of a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(module), attribute)


def show_the_paper(app: Sphinx, error: Exception | None) -> None:
    """Write the pages of the shipped results, which the page about reproduction refers to."""
    if error is None and app.builder.format == "html":
        folder = Path(app.outdir) / "paper"
        folder.mkdir(exist_ok=True)
        build(folder, "gvf reproduce --report")


def setup(app: Sphinx) -> None:
    """Say when each of these is called."""
    app.add_html_math_renderer("mathml", (inline_mathml, None), (block_mathml, None))
    app.connect("source-read", show_what_is_printed)
    app.connect("autodoc-process-docstring", keep_colons, priority=400)  # Napoleon's is 500
    app.connect("doctree-resolved", keep_punctuation)
    app.connect("env-check-consistency", require_public_names)
    app.connect("build-finished", show_the_paper)
