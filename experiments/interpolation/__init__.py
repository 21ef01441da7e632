"""Numbers, tables and pictures of the page docs/interpolation.md."""
