"""One HTML page about a sample."""

from .page import (
    IN_WORDS,
    LONG,
    LONGEST,
    MOST,
    NONE_SHOWN,
    OTHER_SHOWN,
    PACKAGES,
    POOLED,
    ROLES,
    ROUNDING,
    STYLE,
    report,
)

__all__ = [
    "IN_WORDS",
    "LONG",
    "LONGEST",
    "MOST",
    "NONE_SHOWN",
    "OTHER_SHOWN",
    "PACKAGES",
    "POOLED",
    "ROLES",
    "ROUNDING",
    "STYLE",
    "report",
]
