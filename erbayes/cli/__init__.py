"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from . import (
    commands,
    impact,
    labelling,
    pairs,
    planning,
    thresholds,
)  # each registers its commands
from .designs import TAKES, DesignName
from .options import app

_OF_COMMANDS = [commands, impact, labelling, pairs, planning, thresholds]
__all__ = ["TAKES", "DesignName", "app"]
