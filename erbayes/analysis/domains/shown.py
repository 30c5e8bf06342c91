"""Tables of domains: intervals that hold at once, and differences.

Source of intervals of differences: Zou and Donner (2008), Statistics in Medicine 27, 1693-1702.
"""

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
    """Return the table of a result, without intervals of `few` rows; those of a family hold at once."""
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
    """Return the table of the second minus the first component of each pair (Zou and Donner 2008).

    With limits (l, u) of x and (l', u') of y, and correlation r, the limits of x - y are
    x - y - √((x-l)² + (u'-y)² - 2 r (x-l)(u'-y)) and x - y + √((u-x)² + (y-l')² - 2 r (u-x)(y-l')).
    """
    first, second = np.transpose(pairs)
    C = np.zeros((len(pairs), len(fit.names)))
    C[np.arange(len(pairs)), second], C[np.arange(len(pairs)), first] = 1.0, -1.0
    contrast = fit.contrast(C, names)
    families = [range(len(pairs))] * simultaneous
    table = intervals_table(contrast, level, None if isinstance(fit, Normal) else kind, few, families)
    if isinstance(fit, Normal):
        enough = [i for i, why in enumerate(few) if not why]
        used = simultaneous_level(contrast.part(enough), level) if simultaneous and enough else level
        single = fit.table(used, kind)
        down = (single["estimate"] - single["lower"]).to_numpy()
        up = (single["upper"] - single["estimate"]).to_numpy()
        with np.errstate(divide="ignore", invalid="ignore"):
            r = np.nan_to_num(fit.cov[first, second] / (fit.sd[first] * fit.sd[second]))
        low = down[second] ** 2 + up[first] ** 2 - 2 * r * down[second] * up[first]
        high = up[second] ** 2 + down[first] ** 2 - 2 * r * up[second] * down[first]
        shown = table["kind"] != "none"
        table["lower"] = (table["estimate"] - np.sqrt(np.maximum(low, 0))).where(shown)
        table["upper"] = (table["estimate"] + np.sqrt(np.maximum(high, 0))).where(shown)
        table["kind"] = [
            f"{name}, of both" if there else "none"
            for name, there in zip(single["kind"].to_numpy()[second], shown, strict=True)
        ]
    return table.rename_axis("difference").reset_index()


def tidy(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table with rows numbered from 0, without a column of reasons if there are none."""
    table = table.reset_index(drop=True)
    return table if table["reason"].any() else table.drop(columns="reason")
