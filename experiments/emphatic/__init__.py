"""Numbers, tables and pictures of the page docs/emphatic.md."""
