"""The version of gvf, read by the package, its files and its build."""

__version__ = "0.1.0"
