"""From a prediction to labels: candidates, and the page on which annotators answer."""

from .page import labelling_page, read_answers

__all__ = ["labelling_page", "read_answers"]
