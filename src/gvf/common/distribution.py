"""Our distributions: what they are imported as, and how users get them and their extras.

This is the one place that knows what is on a package index.
"""

ON_INDEX: frozenset[str] = frozenset()
"""Our distributions that pip finds by name alone; today none."""
PACKAGES = ("gvf", "gvf_lab")
"""The packages of our distributions; their code is trusted and is not a user's."""
FOLDERS = {"gvf": ".", "gvf-lab": "./lab"}
"""The folder of each of our distributions in a clone."""


def how_to_install(requirement: str) -> str:
    """Return how to install one of our distributions, perhaps with an extra.

    Args:
        requirement: a name, or a name with an extra, such as ``gvf[ray]``.

    Example:
        >>> from gvf.common.distribution import how_to_install
        >>> how_to_install("gvf-lab")
        'in a clone: pip install ./lab'
        >>> how_to_install("gvf[ray]")
        'in a clone: pip install ".[ray]"'
    """
    name, bracket, extra = requirement.partition("[")
    target = requirement if name in ON_INDEX else f"{FOLDERS[name]}{bracket}{extra}"
    command = f'pip install "{target}"' if extra else f"pip install {target}"
    return command if name in ON_INDEX else f"in a clone: {command}"
