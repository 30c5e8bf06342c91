"""Plumbing that a user never opens; its exceptions are names of `erbayes`."""
