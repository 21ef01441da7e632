"""Numbers, tables and pictures of the page docs/intervals.md."""
