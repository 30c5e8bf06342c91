"""Predictions too large for memory, counted where they are: in files, databases, Spark, or behind SQL."""

from .database import Dialect, RunSQL
from .draw import drawing
from .duckdb import DuckDB
from .files import DatabaseTable, Files
from .prediction import GroupSource
from .reading import Columns
from .scanning import scan

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
