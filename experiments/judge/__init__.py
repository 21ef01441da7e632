"""Numbers, tables and pictures of the page docs/judge.md."""
