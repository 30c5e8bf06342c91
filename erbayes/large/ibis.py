"""Tables of Ibis, and so of the databases that Ibis reaches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .._internal.errors import DataError
from .quoting import Dialect
from .runsql import RunSQL


@dataclass(frozen=True, slots=True)
class IbisDialect(Dialect):
    """Names and strings as sqlglot writes them in the dialect of an Ibis connection."""

    sqlglot: Any = None

    def quote(self, name: str) -> str:
        from sqlglot import to_identifier  # Ibis brings it

        return str(to_identifier(name, quoted=True).sql(self.sqlglot))

    def literal(self, text: str) -> str:
        from sqlglot.expressions import Literal

        return str(Literal.string(text).sql(self.sqlglot))


def is_ibis(source: Any) -> bool:
    return type(source).__module__.partition(".")[0] == "ibis"


def read_through_ibis(table: Any) -> RunSQL:
    """Return an Ibis table as a source whose statements run on the connection of the table."""
    place = table.op()
    if type(place).__name__ != "DatabaseTable":
        raise DataError(
            "only a table or a view of a database can be scanned through Ibis, not another expression: make "
            "a view of it, as by connection.create_view(name, expression)"
        )
    connection = table.get_backend()

    def run(sql: str) -> Iterable[Sequence[Any]]:
        returned = connection.raw_sql(sql)
        # a cursor nearly everywhere; BigQuery returns the rows themselves
        rows: Iterable[Sequence[Any]] = returned.fetchall() if hasattr(returned, "fetchall") else returned
        return rows

    names = tuple(name for name in (place.namespace.catalog, place.namespace.database, place.name) if name)
    return RunSQL(run, names, IbisDialect(sqlglot=connection.dialect), names=list(table.columns))
