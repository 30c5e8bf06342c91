"""Predictions too large for memory, counted where they are: in files, databases, Spark, or behind SQL."""

from .choice import Columns
from .draw import drawing
from .duckdb import DuckDB
from .files import Files
from .groups import GroupSource
from .quoting import Dialect
from .runsql import RunSQL
from .scanning import scan
from .tables import DatabaseTable

__all__ = [
    "Columns",
    "DatabaseTable",
    "Dialect",
    "DuckDB",
    "Files",
    "GroupSource",
    "RunSQL",
    "drawing",
    "scan",
]
