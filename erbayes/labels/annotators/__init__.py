"""Annotators: models of their errors, and comparisons of two of them."""
