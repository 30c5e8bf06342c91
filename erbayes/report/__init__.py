"""One HTML page about a sample."""

from .page import report

__all__ = ["report"]
