"""Numbers, tables and pictures of the page docs/recommendations.md."""
