"""Numbers, tables and pictures of the page docs/clinic.md."""
