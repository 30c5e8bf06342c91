"""What two predictions share, counted where they lie (see `erbayes.units.shared`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
import pandas as pd

from .._internal.errors import DataError, Remedy
from ..units.shared import Overlap, Overlaps, Pairs
from .choice import use_columns
from .counted import Place, Scanned
from .prediction import FrameIds, Prediction, frame_sources
from .sources import identify, opened


def overlaps_of(scans: Mapping[str, Scanned]) -> Overlaps:
    """Return what each two scans share, for which their sources are opened again."""
    return Overlaps(partial(_count_each, dict(scans)))


def _count_each(scans: Mapping[str, Scanned], wanted: Pairs) -> list[Overlap]:
    names, units = [*scans], [*scans.values()]
    with _opened_again(units) as predictions:
        return [
            _count(predictions[i], predictions[j], (units[i], units[j]), f"{names[i]!r} and {names[j]!r}")
            for i, j in wanted
        ]


@contextmanager
def _opened_again(scans: Sequence[Scanned]) -> Iterator[list[Prediction]]:
    """Open the predictions of scans, each on the records that were counted."""
    places, first = [place for scan in scans for place in (scan.place, *scan.place.others)], scans[0].place
    sources = {(identify(p.source), p.columns[0]): p.source for p in places}
    frames = frame_sources(first.frame, sources.values())
    with opened([*sources.values(), *frames], first.database) as tables:
        of_place = dict(zip(sources, tables, strict=False))
        for key, table in of_place.items():
            own = [p.columns[1] for p in places if (identify(p.source), p.columns[0]) == key]
            use_columns(table, key[1], list(dict.fromkeys(own)))

        def find(place: Place) -> Prediction:
            return Prediction.of(of_place[identify(place.source), place.columns[0]], place.columns)

        predictions = []
        for scan in scans:
            lists = [f"SELECT r FROM {find(other).table}" for other in scan.place.others]
            predictions.append(find(scan.place).within(*lists))
        ids = [FrameIds.of(table, first.frame_record) for table in tables[len(sources) :]]
        yield [ids[0].restrict(prediction) for prediction in predictions] if ids else predictions


def _count(first: Prediction, second: Prediction, units: tuple[Scanned, Scanned], names: str) -> Overlap:
    """Count what predictions share by cells, the n records that clusters c of m and d of k records share."""
    database, number, ids = first.database, units[0].rows, units[0].piece_of
    both = f"(SELECT r, c FROM {first.table}) AS a JOIN (SELECT r, c FROM {second.table}) AS b ON a.r = b.r"
    of_both = "SELECT a.c AS c, b.c AS d, COUNT(*) AS n FROM {} GROUP BY a.c, b.c"
    m, k = (f"(SELECT c, COUNT(*) AS m FROM {one.table} GROUP BY c)" for one in (first, second))
    with database.counting(number):
        cells = database.keep(
            f"SELECT p.c, p.d, p.n, s.m, t.m AS k FROM ({of_both.format(both)}) AS p "
            f"JOIN {m} AS s ON p.c = s.c JOIN {k} AS t ON p.d = t.c"
        )
    same = "CASE WHEN n = m AND n = k THEN 1 ELSE 0 END"
    sums = database.rows(
        f"SELECT 0, m, SUM(n * (m - n)), SUM(n), SUM(n * (n - 1)), SUM({same}), SUM({same} * n) FROM {cells} "
        f"GROUP BY m UNION ALL SELECT 1, k, SUM(n * (k - n)), 0, 0, 0, 0 FROM {cells} GROUP BY k"
    )
    side, size, alone, *totals = np.array(sorted(sums), dtype=float).T
    records, links, clusters, inside = np.sum(totals, axis=1)
    if not units[0].rows == units[1].rows == records:
        said = f"{units[0].rows:,} and {units[1].rows:,}, of which {int(records):,} are in both"
        raise DataError(f"{names} cover different records, {said}", Remedy.DIFFERING)
    different = [np.flatnonzero((side == x) & (alone > 0)) for x in (0, 1)]
    one, other = ((size[at], alone[at] / 2) for at in different)
    assert ids is not None
    labelled = [
        row
        for listed in database.listed(ids.index.tolist())
        for row in database.rows(
            f"SELECT p.c, p.d, p.n, p.m, p.k, l.n FROM {cells} "
            f"JOIN ({of_both.format(f'{both} WHERE a.r IN ({listed})')}) AS l ON p.c = l.c AND p.d = l.d"
        )
    ]
    # cells come again with each list of ids
    table = pd.DataFrame(labelled, columns=[*"cdnmk", "known"]).astype(
        dict.fromkeys([*"nmk", "known"], float)
    )
    cell = table.groupby([*"cdnmk"], as_index=False)["known"].sum()
    differ = (cell["n"] != cell["m"]) | (cell["n"] != cell["k"])
    of_labelled = cell["n"].to_numpy(), cell["known"].to_numpy(), differ.to_numpy()
    return Overlap.labelled((links / 2, clusters, inside), (one, other), number, of_labelled)
