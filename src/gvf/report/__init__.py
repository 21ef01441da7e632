"""The page that shows figures and studies, and the files beside it."""
