"""Labels of an old release, topped up by a few draws among its new records."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, head
from ..units.clustering import Clustering, ids, list_all_records
from ..units.lookup import look_up
from .drawn import Ids
from .known import KnownChances
from .strata import Pooled


def topped_up(labels: Any, old: tuple[Any, Ids], new: tuple[Any, Ids]) -> Pooled:
    """Return the design of labels of an old release and of further draws among the records that came since.

    Old draws were made among the F old records, and new ones among the A new records, each with its whole
    entity. With f and a records of an entity among them, its chances at one draw are f/F and a/A, and a draw
    of it has weight 1/(n f/F + m a/A), for n old draws and m new ones.

    Parameters
    ----------
    labels : memberships
        True entity of every record of each drawn entity, old and new. Old entities are completed by their
        new records.
    old : (record ids, draws)
        All records from which the old draws were made, and the entity of each draw, with repeats.
    new : (record ids, draws)
        The same of the new draws. Old records among the ids are left out, so that these may be all records
        that there are now.

    Raises
    ------
    DataError
        Labelled records that are neither old nor new, or draws of entities without a record of their part.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> design = topped_up(labels, old=([1, 2, 5], ["x", "x"]), new=(range(1, 7), ["y", "z"]))
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}, labels)
    >>> eb.Sample(units, design).expansion.weight.round(2)
    array([0.75, 0.75, 1.5 , 1.5 ])
    """
    known = Clustering.of(labels, "labels")
    nothing = pd.Index([])
    before, _ = list_all_records(old[0], nothing, "old part")
    now = ids(new[0], "record ids of the new part")
    after, _ = list_all_records(now[~now.isin(before)], nothing, "new part")
    if not len(after):
        raise DataError(
            f"all {len(now):,} records of the new part are old ones: no draw was made among new ones"
        )
    inside = [look_up(records, known.records, of="part") >= 0 for records in (before, after)]
    lost = ~(inside[0] | inside[1])
    if lost.any():
        raise DataError(
            f"{lost.sum():,} of {len(lost):,} labelled records are neither old nor new, such as "
            f"{head(known.records[lost])}: list all records, old=(ids, draws), new=(ids, draws)"
        )
    parts = []
    for what, draws, part, records in zip(
        ("old", "new"), (old[1], new[1]), inside, (before, after), strict=True
    ):
        count = np.bincount(known.codes[part], minlength=len(known.clusters))
        drawn = ids(draws, f"{what} draws")
        strange = drawn[~drawn.isin(known.clusters[count > 0])]
        if len(strange):
            raise DataError(
                f"{len(strange):,} of {len(drawn):,} {what} draws are of entities that have no {what} record "
                f"in the labels, such as {head(strange)}: label every record of each drawn entity"
            )
        parts.append(KnownChances(pd.Series(count / len(records), known.clusters), drawn))
    return Pooled(parts)
