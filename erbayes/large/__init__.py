"""Predictions too large for memory, counted where they are: in files, databases, Spark, or behind SQL."""

from .counted import drawing
from .database import Dialect, RunSQL
from .duckdb import DatabaseTable, DuckDB
from .files import Files
from .prediction import Columns
from .scanning import GroupSource, scan

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
