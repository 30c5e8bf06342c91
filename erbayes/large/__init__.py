"""Predictions too large for memory, counted where they lie: in files, databases, Spark, or behind SQL."""

from .scan import Scanned, refuse_different_records, scan, scan_common, scan_releases
from .sources import (
    DatabaseTable,
    DuckDB,
    Files,
    RunSQL,
    Spark,
    backquoted,
    char_literal,
    chr_literal,
    concat_literal,
    double_quoted,
    lies_elsewhere,
)

__all__ = [
    "DatabaseTable",
    "DuckDB",
    "Files",
    "RunSQL",
    "Scanned",
    "Spark",
    "backquoted",
    "char_literal",
    "chr_literal",
    "concat_literal",
    "double_quoted",
    "lies_elsewhere",
    "refuse_different_records",
    "scan",
    "scan_common",
    "scan_releases",
]
