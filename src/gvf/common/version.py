"""The version of gvf: written here once, read by the package, its files and its build."""

__version__ = "0.1.0"
