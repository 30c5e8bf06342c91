"""Tables of domains: simultaneous intervals, and differences."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from ...metrics.intervals import Kind
from ...metrics.simultaneous import simultaneous_level
from ...metrics.uncertain import Draws, Normal


def intervals_table(
    fit: Normal | Draws,
    level: float,
    kind: Kind | None,
    few: Sequence[str],
    families: Sequence[Sequence[int]] = (),
) -> pd.DataFrame:
    """Return the table of a result, without intervals of `few` rows; those of a family are simultaneous."""
    table = fit.table(level, kind)
    refused = np.array([bool(why) for why in few], dtype=bool)
    bounds = table[["lower", "upper"]].to_numpy(copy=True)
    for family in families:
        at = [i for i in family if not refused[i]]
        if at:
            part = fit.part(at)
            bounds[at] = part.interval(simultaneous_level(part, level), kind)
    bounds[refused] = np.nan
    reasons = table["reason"] if "reason" in table else [""] * len(few)
    return table.assign(
        lower=bounds[:, 0],
        upper=bounds[:, 1],
        kind=np.where(refused, "none", table["kind"]),
        reason=[why or reason for why, reason in zip(few, reasons, strict=True)],
    )


def differences_table(
    fit: Normal | Draws,
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    few: Sequence[str],
    level: float,
    kind: Kind | None,
    simultaneous: bool,
) -> pd.DataFrame:
    """Return the table of the second minus the first component of each pair."""
    first, second = np.transpose(pairs)
    C = np.zeros((len(pairs), len(fit.names)))
    C[np.arange(len(pairs)), second], C[np.arange(len(pairs)), first] = 1.0, -1.0
    families = [range(len(pairs))] * simultaneous
    table = intervals_table(fit.contrast(C, names), level, kind, few, families)
    return table.rename_axis("difference").reset_index()


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with rows numbered from 0, without a column of reasons if there are none."""
    table = table.reset_index(drop=True)
    return table if table["reason"].any() else table.drop(columns="reason")
