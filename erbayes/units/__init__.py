"""From records to labelled units."""

from .frame import links_inside
from .units import Units

__all__ = ["Units", "links_inside"]
