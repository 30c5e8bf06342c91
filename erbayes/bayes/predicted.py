"""Predicted clusters by size that posterior draws expect, to check them against the known prediction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.special import betainc

from .._internal.arrays import FloatArray
from ..metrics.columns import pairs
from .grid import SizeGrid


def expect_predicted_clusters(
    by_size: Mapping[str, FloatArray], grid: SizeGrid, data: Mapping[str, Any]
) -> FloatArray:
    """Return the expected number of predicted clusters in each bin of sizes, (..., J).

    It approximates, because a model of links does not say into which pieces an entity breaks. Broken entities
    here have equal pieces and a smaller rest, with the links that they keep. All records of an entity that
    meets v foreign ones per record meet v, or a share v of them meets one if v < 1. Records are then those
    of the draw, and so are predicted links up to the widths of bins.
    """
    records, intact = by_size["entities"] * grid.size, by_size["intact"]
    # records of entities of size s in pieces of n, (..., s, n)
    pieces = (records * (1 - intact))[..., None] * _spread_broken(by_size, grid)
    pieces += (records * intact)[..., None] * np.eye(len(grid.size))
    if "met" not in by_size:
        return np.asarray(pieces.sum(axis=-2) / grid.size)
    met = by_size["met"][..., None]
    found, merged = ((1 - met) * pieces).sum(axis=-2), _merge(grid, data["intrusion_value"])
    for doubling in np.unique(grid.doubling):
        of_doubling = grid.doubling == doubling
        merging = (met * pieces)[..., of_doubling, :].sum(axis=-2)
        chance = by_size["intrusion_chance"][..., doubling, :]
        found = found + np.einsum("...n,...v,nvm->...m", merging, chance, merged, optimize=True)
    return np.asarray(found / grid.size)


def _spread_broken(by_size: Mapping[str, FloatArray], grid: SizeGrid) -> FloatArray:
    """Return the share of the records of broken entities of each size in pieces of each, (..., J, J)."""
    precision, J = by_size["share_precision"], len(grid.size)
    a = by_size["share_mean"] * precision
    b = precision - a
    shares = np.zeros((*a.shape, J))
    for i, s in enumerate(grid.size[1:], 1):
        least, piece = (np.minimum(n[: i + 1], s - 1) for n in (grid.lower, grid.size))
        links = np.floor(s / least) * pairs(least) + pairs(s % least)
        # k of s - 2 steps are observed as the share (k + 1/2)/(s - 1), which rounds those from k/(s - 1)
        steps = (s - 2) * links / np.maximum(pairs(s - 1), 1)
        below = betainc(a[..., i, None], b[..., i, None], np.clip(steps / (s - 1), 0, 1))
        rest, bins = s % piece, np.zeros((i + 1, J))
        np.add.at(bins, (np.arange(i + 1), grid.bin(piece)), 1 - rest / s)
        np.add.at(bins, (np.arange(i + 1), np.maximum(grid.bin(rest), 0)), rest / s)
        shares[..., i, :] = np.diff(below, axis=-1, append=1.0) @ bins
    return shares


def _merge(grid: SizeGrid, foreign: FloatArray) -> FloatArray:
    """Return the share of the records in a piece of n, with v foreign ones, in clusters of m, (n, v, m)."""
    J, V = len(grid.size), len(foreign)
    merged, (piece, met) = np.zeros((J, V, J)), np.indices((J, V))
    cluster = grid.bin(grid.size[:, None] + np.maximum(foreign, 1))
    np.add.at(merged, (piece, met, np.minimum(cluster, J - 1)), np.minimum(foreign, 1))
    np.add.at(merged, (piece, met, piece), 1 - np.minimum(foreign, 1))
    return merged
