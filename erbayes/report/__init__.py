"""One HTML page about a sample."""

import sys

from .._internal.nearest import call_as
from .page import report

call_as(sys.modules[__name__], report)

__all__ = ["report"]
