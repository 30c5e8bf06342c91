"""What other fits tell of the parameters of a law: a mixture of normals in place of its prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import fdtrc, fdtri, gammaincc, gammainccinv, logsumexp

from .._internal.arrays import FloatArray
from .._internal.errors import DataError
from .importance import Block, Stretched
from .priors import TAIL

NEAREST = 1e-24
"""Least |v|² of a block that is stretched, since at 0 the stretch is 0/0."""
RAREST = 1e-250
"""Least probability of a tail, far beyond any draw, so that no stretch is infinite."""


class Scores(Stretched):
    """Coordinates z in which the prior of the parameters θ of a law, (d,), is standard normal.

    A block with a t prior is stretched to the |z|² of the same probability. Others are standardised.
    """

    @classmethod
    def of(cls, names: Sequence[str], blocks: Sequence[Block], data: Mapping[str, Any]) -> Scores:
        """Read the priors of a compiled part: the names of its coordinates, its t blocks and its data."""
        scores = cls(len(names), blocks)
        for i in np.flatnonzero(scores.member.sum(axis=1) == 0).tolist():
            if f"{names[i]}_mean" not in data or f"{names[i]}_sd" not in data:
                raise DataError(
                    f"fits cannot share '{names[i]}', whose prior is not known as a Level, a Slope or a "
                    "smooth function: give it one of these"
                )
            scores.location[i], scores.scale[i] = data[f"{names[i]}_mean"], data[f"{names[i]}_sd"]
        return scores

    def z(self, theta: FloatArray) -> FloatArray:
        """Return z at each θ, (..., d)."""
        v, k = (theta - self.location) / self.scale, self.member.sum(axis=0)
        square = np.maximum(v**2 @ self.member, NEAREST)
        normal = 2 * gammainccinv(k / 2, np.maximum(fdtrc(k, TAIL, square / k), RAREST))
        return self.stretch(v, np.sqrt(normal / square))

    def theta(self, z: FloatArray) -> FloatArray:
        """Return θ at each z, (..., d)."""
        k = self.member.sum(axis=0)
        square = np.maximum(z**2 @ self.member, NEAREST)
        # 1/F of a number F with k and 3 degrees of freedom has 3 and k, so that no tail is rounded off
        of_t = k / fdtri(TAIL, k, np.maximum(gammaincc(k / 2, square / 2), RAREST))
        return np.asarray(self.location + self.scale * self.stretch(z, np.sqrt(of_t / square)))


@dataclass(frozen=True, eq=False)
class Told:
    """A prior from other fits: K normals in z, with `weights` (K,), `means` (K, d) and `covs` (K, d, d)."""

    scores: Scores
    weights: FloatArray
    means: FloatArray
    covs: FloatArray

    @cached_property
    def _inverse_roots(self) -> FloatArray:
        return np.linalg.inv(np.linalg.cholesky(self.covs))

    def log_ratio(self, thetas: FloatArray) -> FloatArray:
        """Return the log density of the mixture over that of the prior, at each θ, (..., d)."""
        z = self.scores.z(thetas)
        white = np.einsum("kij,...kj->...ki", self._inverse_roots, z[..., None, :] - self.means)
        log_scale = np.log(np.diagonal(self._inverse_roots, axis1=1, axis2=2)).sum(axis=1)
        normals = np.log(self.weights) + log_scale - (white**2).sum(axis=-1) / 2
        return np.asarray(logsumexp(normals, axis=-1) + (z**2).sum(axis=-1) / 2)

    @property
    def centre(self) -> FloatArray:
        """θ at the mean of the mixture, (d,)."""
        return self.scores.theta(self.weights @ self.means)

    def draws(self, number: int, rng: np.random.Generator) -> FloatArray:
        """Draw θ, (number, d)."""
        which = rng.choice(len(self.weights), number, p=self.weights)
        roots, noise = np.linalg.cholesky(self.covs), rng.standard_normal((number, self.means.shape[1]))
        return self.scores.theta(self.means[which] + np.einsum("nij,nj->ni", roots[which], noise))
