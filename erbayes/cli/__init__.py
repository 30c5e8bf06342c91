"""The command line: `erbayes estimate PREDICTION LABELS --design uniform-records`."""

from .commands import app
from .designs import TAKES, DesignName
from .options import REMEDIES

__all__ = ["REMEDIES", "TAKES", "DesignName", "app"]
