"""Numbers, tables and pictures of the page docs/answers.md."""
