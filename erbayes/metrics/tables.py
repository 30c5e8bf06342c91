"""Results that print as tables, draw themselves, and go where pandas and ArviZ expect tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from .._internal.digits import shown
from .._internal.errors import DataError
from .._internal.names import Nearest
from .definitions import Metric, resolve_metrics

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from plotly.graph_objects import Figure


class Tabled(Nearest, ABC):
    """A result that prints as its table, in consoles and notebooks (see `erbayes._internal.digits`).

    Columns and conversions of its table are its own: `result["estimate"]`, `result.to_csv("found.csv")`.
    """

    __slots__ = ()
    explored: ClassVar[str] = "table"

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """Return the result as a table, with all digits."""

    def to_frame(self, *chosen: Any, **settings: Any) -> pd.DataFrame:
        """Return `table`, with its arguments, under the name that it has in pandas."""
        return self.table(*chosen, **settings)

    def summary(self, *chosen: Any, **settings: Any) -> pd.DataFrame:
        """Return `table`, with its arguments such as `level`, under the name that it has in ArviZ."""
        return self.table(*chosen, **settings)

    def explore(self, *chosen: Any, **settings: Any) -> Figure:
        """Show the table of `explored`, with its arguments, by `erbayes.plots.explore`."""
        shown = getattr(self, self.explored)(*chosen, **settings)
        figure: Figure = import_module("erbayes.plots").explore(shown)
        return figure

    if not TYPE_CHECKING:  # since those of results with rows by name return other types

        def __getitem__(self, name: Metric | str) -> pd.Series | pd.DataFrame:
            """Return a column of `table`, or what it has of a metric."""
            table = self.table()
            if isinstance(name, str) and name in table:
                return table[name]
            with suppress(ValueError):  # as a DataError is
                metrics = [metric.name for metric in resolve_metrics(name)]
                if table.index.isin(metrics).any():
                    return table.loc[metrics if len(metrics) > 1 else metrics[0]]
                if "metric" in table and len(rows := table[table["metric"].isin(metrics)]):
                    return rows.reset_index(drop=True)
            raise DataError(f"no column {name!r}; the table has {', '.join(map(str, table))}")

        def __contains__(self, name: object) -> bool:
            """Return True if there is something in brackets under this name."""
            with suppress(ValueError):  # as a DataError is
                self[name]
                return True
            return False

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        """Return a heading, and the part of the table that is printed under it."""
        return type(self).__name__, self.table()

    def __repr__(self) -> str:
        heading, table = self._choose_printed()
        return f"{heading}\n{shown(table).to_string(max_rows=60)}"

    def _repr_html_(self) -> str:
        heading, table = self._choose_printed()
        return f"{heading}{shown(table).to_html(max_rows=60)}"


class Pictured(Tabled):
    """A result that draws itself, by the function of `erbayes.plots` that draws a `picture`."""

    __slots__ = ()
    picture: ClassVar[str]

    def plot(self, *chosen: Any, **settings: Any) -> Axes:
        """Draw the result, with arguments of its function in `erbayes.plots`."""
        # imported here, since pictures lie above results, and matplotlib is an extra
        draw = getattr(import_module("erbayes.plots"), f"draw_{self.picture}")
        axes: Axes = draw(self, *chosen, **settings)
        return axes


def reason_column(reasons: Iterable[str]) -> dict[str, list[str]]:
    """Return a table column of reasons, or none if all of them are empty."""
    column = list(reasons)
    return {"reason": column} if any(column) else {}
