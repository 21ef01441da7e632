"""Numbers, tables and pictures of the page docs/racing.md."""
