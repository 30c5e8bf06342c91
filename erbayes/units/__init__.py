"""From records to labelled units."""

from .units import Units

__all__ = ["Units"]
