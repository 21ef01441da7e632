"""Domains: environments with the policies, questions and ground truth of an experiment."""
