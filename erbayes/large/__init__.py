"""Predictions too large for memory, counted where they lie: in files, databases, Spark, or behind SQL."""

from .choice import Columns
from .counted import Scanned
from .draw import drawing
from .duckdb import DuckDB
from .files import Files
from .groups import GroupSource
from .joint import SecondSource
from .quoting import backquoted, char_literal, chr_literal, concat_literal, double_quoted
from .runsql import RunSQL
from .scanning import Releases, refuse_different_records, scan
from .sources import lies_elsewhere
from .spark import Spark
from .stored import DatabaseTable

__all__ = [
    "Columns",
    "DatabaseTable",
    "DuckDB",
    "Files",
    "GroupSource",
    "Releases",
    "RunSQL",
    "Scanned",
    "SecondSource",
    "Spark",
    "backquoted",
    "char_literal",
    "chr_literal",
    "concat_literal",
    "double_quoted",
    "drawing",
    "lies_elsewhere",
    "refuse_different_records",
    "scan",
]
