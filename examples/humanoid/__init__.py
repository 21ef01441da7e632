"""A humanoid robot and 25,000 questions: ``python -m examples.humanoid``."""
