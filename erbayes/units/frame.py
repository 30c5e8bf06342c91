"""The frame: the records that existed when the labels were made.

A prediction may have newer records. If some belong to a labelled entity, the labels have none of them, and
their links count as false. With a frame, everything is counted inside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, IntArray
from .._internal.errors import DataError, refuse_cases
from .._internal.tables import is_table, to_frame
from .clustering import Clustering
from .columns import find_record
from .ids import are_listed, ids, same_kind
from .reading import Near


@dataclass(frozen=True, slots=True)
class FrameFacts:
    """Counts of what a frame F leaves of a prediction.

    Of its records, some are `inside` F and others `outside`, and `absent` records of F are missing in it.
    `links_inside` is Σ_k f_k (f_k - 1) / Σ_k f_k (m_k - 1), the share of predicted links of records in F that
    stay in F, or 1 if there are none. Without the frame, pairwise precision is too low by this factor.
    """

    inside: int
    outside: int
    links_inside: float
    absent: int

    @classmethod
    def of(cls, clusters: IntArray, inside: BoolArray, listed: int) -> FrameFacts:
        """Count from the cluster of each record, (N,), whether it is in F, (N,), and the records of F."""
        m = np.bincount(clusters).astype(float)
        f = np.bincount(clusters[inside], minlength=len(m)).astype(float)
        return cls.counted(f.sum(), m.sum(), f @ (f - 1), f @ (m - 1), listed)

    @classmethod
    def counted(cls, f: float, m: float, inside: float, links: float, listed: int) -> FrameFacts:
        """Make one from sums over clusters, of f, m, f (f - 1) and f (m - 1), and the records of F."""
        share = float(inside / links) if links else 1.0
        return cls(int(f), int(m) - int(f), share, listed - int(f))

    def in_words(self) -> dict[str, str]:
        """Text of each value, by its name in words."""
        return {
            "records outside the frame": f"{self.outside:,} of {self.inside + self.outside:,}",
            "precision without the frame": f"{self.links_inside:.3f} of that inside",
            "records of the frame missing in the prediction": f"{self.absent:,}",
        }


def frame_ids(frame: Any, near: Near | None = None) -> pd.Index:
    """Record ids of a frame: keys, column, index of a Series, or values if its index counts from 0."""
    if isinstance(frame, Clustering):
        values: Any = frame.records
    elif isinstance(frame, pd.Series):
        plain = isinstance(frame.index, pd.RangeIndex) and frame.index.equals(pd.RangeIndex(len(frame)))
        values = frame.array if plain and frame.is_unique else frame.index
    elif is_table(frame) and hasattr(frame, "columns"):
        table = to_frame(frame)
        values = table[find_record(table, near, "frame")]
    elif isinstance(frame, str | bytes) or not isinstance(frame, Iterable):
        raise DataError(
            f"frame: expected record ids or an older prediction, not {type(frame).__name__}; files go with a "
            "prediction in files"
        )
    else:
        values = frame if isinstance(frame, pd.Index | np.ndarray) else list(frame)
    listed = ids(values, "record ids of the frame")
    if not len(listed):
        raise DataError("the frame holds no record")
    return listed


def framed(
    clustering: Clustering, labels: Clustering, frame: Any, what: str = "prediction"
) -> tuple[Clustering, FrameFacts | None]:
    """Restrict a prediction to the frame, and count what is left of it."""
    if frame is None:
        return clustering, None
    listed = frame_ids(frame, Near({labels.records.name: labels.records}))
    for other, name in ((listed, "frame"), (labels.records, "labels")):
        same_kind(clustering.records, other, name)
    labelled = listed[are_listed(listed, labels.records)]
    refuse_outside(labels.records, ~labels.records.isin(labelled))
    inside = are_listed(clustering.records, listed)
    if not inside.any():
        raise DataError(f"no record of the {what} is in the frame")
    shared = int(inside.sum())
    count = shared if shared == len(listed) else listed.nunique()
    return clustering.where(inside), FrameFacts.of(clustering.codes, inside, count)


def refuse_outside(records: pd.Index, outside: BoolArray) -> None:
    """Refuse labelled records that are not in the frame."""
    said = f"{{n}} of {len(records)} labelled records are outside the frame, such as"
    must = "hold every record that existed when the labels were made, with ids written as in the labels"
    refuse_cases(records[outside], said, f": it must {must}")
