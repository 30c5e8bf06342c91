"""How tables are printed or written."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from enum import Enum
from io import StringIO
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from ..files import replacing


class Format(Enum):
    """How a table is printed."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    HTML = "html"


def _rendered(table: pd.DataFrame, format: Format) -> str:
    match format:
        case Format.CSV:
            return table.to_csv(index=False)
        case Format.HTML:
            with pd.option_context("display.max_colwidth", None):
                return table.to_html(index=False) + "\n"
        case Format.JSON:
            rows = [
                {k: None if isinstance(x, float) and not math.isfinite(x) else x for k, x in row.items()}
                for row in table.to_dict("records")
            ]
            return json.dumps(rows, indent=1, ensure_ascii=False) + "\n"
        case Format.TABLE:
            return _plain(table)


def _plain(table: pd.DataFrame) -> str:
    """Aligned columns, as wide as they need to be."""
    shown = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in table.columns:
        number = pd.api.types.is_float_dtype(table[name])
        shown.add_column(str(name), justify="right" if number else "left", no_wrap=True)
    for row in table.itertuples(index=False):
        shown.add_row(*(f"{x:,.4f}" if isinstance(x, float) else str(x) for x in row))
    console = Console(file=StringIO(), width=10_000, markup=False, highlight=False, emoji=False)
    with console.capture() as text:
        console.print(shown)
    return "".join(f"{line.rstrip()}\n" for line in text.get().splitlines())


@dataclass(frozen=True, kw_only=True)
class Printing:
    """Where a table goes, and how it looks."""

    format: Annotated[Format, typer.Option(help="How to print.")] = Format.TABLE
    output: Annotated[
        Path | None, typer.Option(help="File to write instead of printing; replaced only by a whole one.")
    ] = None

    def show(self, table: pd.DataFrame) -> None:
        text = _rendered(table, self.format)
        if self.output is None:
            typer.echo(text, nl=False)
            return
        with replacing(self.output) as new:
            new.write_text(text, encoding="utf-8")

    def show_estimates(self, table: pd.DataFrame, level: float) -> None:
        """Estimates with their method; the plain table says the level once and leaves out the method."""
        if self.format is Format.TABLE:
            bounds = {bound: f"{bound} {100 * level:g} %" for bound in ("lower", "upper")}
            table = table.drop(columns="level").rename(columns=bounds)
        else:
            table.insert(list(table.columns).index("metric") + 1, "method", "taylor")
        self.show(table)
