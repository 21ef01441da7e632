"""Sphinx configuration: every warning is an error, and every public name is documented."""

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.util import logging

import gvf

project = "gvf"
author = "The gvf developers"
copyright = author
version = release = gvf.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

autodoc_class_signature = "mixed"
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"gvf {release}"


def require_public_names(_: Sphinx, environment: BuildEnvironment) -> None:
    """Warn, and so fail the build, where a name in `gvf.__all__` has no entry."""
    documented = environment.domains.python_domain.objects
    for name in gvf.__all__:
        if not name.startswith("__") and f"gvf.{name}" not in documented:
            logging.getLogger(__name__).warning(
                "public, but not documented: gvf.%s", name, location="api"
            )


def setup(app: Sphinx) -> None:
    """Check the documented names once all pages have been read."""
    app.connect("env-check-consistency", require_public_names)
