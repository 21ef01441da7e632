"""The programs behind the numbers of the documentation's pages, with a folder for each page.

A page's `sweep` measures and writes numbers, its `analysis` makes tables and pictures of them.
``python -m experiments`` runs both.
"""
