"""Labels of an old release, topped up by a few draws among the records that came since."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from .._internal.errors import DataError, refuse_cases
from ..units.clustering import Clustering, list_all_records
from ..units.ids import ids
from ..units.lookup import look_up
from .drawn import Ids
from .known import KnownSelection
from .strata import Pooled


def top_up(labels: Any, old: tuple[Any, Ids], new: tuple[Any, Ids]) -> Pooled:
    """Return the design of labels of an old release and of further draws among the records that came since.

    An entity with f of the F old records and a of the A new ones counts once, with weight 1/π for its chance
    π = 1 - (1 - f/F)^n (1 - a/A)^m, for n draws among the old records and m among the new ones.

    Parameters
    ----------
    labels : memberships
        True entity of every record of each drawn entity, old and new.
    old : (record ids, draws)
        All records from which the old draws were made, and the entity of each draw, with repeats.
    new : (record ids, draws)
        The same of the new draws, where the ids may be those of all records that there are now.

    Raises
    ------
    DataError
        Labelled records that are neither old nor new, or draws of entities without a record of their part.

    Examples
    --------
    >>> import erbayes as eb
    >>> labels = {1: "x", 2: "x", 3: "y", 4: "z"}
    >>> design = top_up(labels, old=([1, 2, 5], ["x", "x"]), new=(range(1, 7), ["y", "z"]))
    >>> units = eb.measure({1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}, labels)
    >>> eb.Sample(units, design).expansion.weight.round(2)
    array([1.12, 1.8 , 1.8 ])
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
    outside = ~(inside[0] | inside[1])
    said = f"{{n}} of {len(outside):,} labelled records are neither old nor new, such as"
    refuse_cases(known.records[outside], said, ": list all records, old=(ids, draws), new=(ids, draws)")
    parts = []
    for what, draws, part, records in zip(
        ("old", "new"), (old[1], new[1]), inside, (before, after), strict=True
    ):
        count = np.bincount(known.codes[part], minlength=len(known.clusters))
        drawn = ids(draws, f"{what} draws")
        said = f"{what} draws are of entities that have no {what} record in the labels, such as"
        strange = ~drawn.isin(known.clusters[count > 0])
        remedy = ": label every record of each drawn entity"
        refuse_cases(drawn[strange], f"{{n}} of {len(drawn):,} {said}", remedy)
        parts.append(KnownSelection(pd.Series(count / len(records), known.clusters), drawn))
    return Pooled(parts)
