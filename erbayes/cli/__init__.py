"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from . import commands, impact, labelling, planning, thresholds  # each registers its commands
from .drawing import TAKES, DesignName
from .options import app

_OF_COMMANDS = [commands, impact, labelling, planning, thresholds]
__all__ = ["TAKES", "DesignName", "app"]
