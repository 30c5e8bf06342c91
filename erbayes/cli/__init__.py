"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from . import commands, drawing, planning, thresholds  # each registers its commands
from .options import app
from .predictions import TAKES

_OF_COMMANDS = [commands, drawing, planning, thresholds]
__all__ = ["TAKES", "app"]
