"""Posterior draws of metrics, of a fit or of what a fit has saved."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from ..arrays import FloatArray
from ..columns import Column, Known
from ..errors import DataError, NotIdentified
from ..metrics import ALL, USUAL, Metric, Wanted, chosen
from ..uncertain import Draws, Tabled

NAMED = {c.name: c for m in ALL for c in m.columns}
"""Totals that a saved fit may hold, by name."""


class Posterior(Tabled):
    """Posterior draws of totals, and of the metrics that follow from them."""

    __slots__ = ()

    @property
    @abstractmethod
    def log_prior(self) -> Mapping[str, FloatArray]:
        """Log prior density of the parameters of each part, (chain, draw)."""

    @abstractmethod
    def identifies(self, metric: Metric) -> bool:
        """True if there are draws of all totals of a metric."""

    @abstractmethod
    def total(self, column: Column | Known) -> FloatArray:
        """Posterior draws of a column's population total, (chain, draw).

        Raises
        ------
        NotIdentified
            A column without draws.
        """

    def totals(self, metrics: Wanted) -> Draws:
        """Posterior draws of the totals that metrics need."""
        found = {c.name: self.total(c) for c in dict.fromkeys(c for m in chosen(metrics) for c in m.columns)}
        return Draws(tuple(found), np.stack(list(found.values()), axis=-1), ((0.0, np.inf),) * len(found))

    def apply(self, metrics: Wanted) -> Draws:
        """Posterior draws of metrics, within what they can be.

        Modelled totals know nothing of their inequalities with known ones: a draw beyond the end of a
        metric's support is set to that end.

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        metrics = chosen(metrics)
        found = self.totals(metrics).apply(metrics)
        return replace(found, values=np.clip(found.values, *np.transpose(found.support)))

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics of `erbayes.ALL` of which there are draws."""
        return tuple(m for m in ALL if self.identifies(m))

    def table(self, level: float = 0.95, metrics: Wanted | None = None) -> pd.DataFrame:
        """Metrics with the weight of the priors on each; by default the usual ones of which there are draws.

        prior_shift is how far the mean moves, in posterior standard deviations, if a part's prior is raised
        to the power 2: by its slope at the power 1, and of the part that moves it most. Above .3 the answer
        rests on what a prior says of entities that are not in the sample. Of 1,000 draws it has a Monte Carlo
        error of .1 to .2. `prior_shift(draws)` has it by part.
        """
        found = self.apply([m for m in USUAL if self.identifies(m)] if metrics is None else metrics)
        return found.table(level).assign(prior_shift=self.prior_shift(found).max(axis=1))

    def prior_shift(self, draws: Draws) -> pd.DataFrame:
        """Shift of each mean, in standard deviations, by the prior of each part; see `table`.

        The slope of the mean of g by log α, with α the power of a prior p, is Cov(g, log p) (Kallioinen et
        al. 2024, doi 10.1007/s11222-023-10366-5).
        """
        priors = np.stack([prior.ravel() for prior in self.log_prior.values()], axis=-1)
        slope = (draws.flat - draws.mean).T @ (priors - priors.mean(axis=0)) / (len(priors) - 1)
        certain = draws.sd <= 1e-12 * np.maximum(np.abs(draws.mean), 1)
        shift = np.log(2) * np.abs(slope) / np.where(certain, np.inf, draws.sd)[:, None]
        return pd.DataFrame(shift, index=pd.Index(draws.names, name="metric"), columns=list(self.log_prior))


@dataclass(frozen=True, eq=False, repr=False)
class Saved(Posterior):
    """What a fit saved: its draws of totals, without the sample and the model.

    Attributes
    ----------
    tree : DataTree
        See `Fit.tree`.
    """

    tree: xr.DataTree

    @classmethod
    def load(cls, path: Path | str) -> Saved:
        """What `Fit.save` wrote, or `Fit.tree.to_zarr`.

        Raises
        ------
        DataError
            A file that cannot be read, or that holds no saved fit.
        """
        try:
            with xr.open_datatree(path) as stored:
                tree = stored.map_over_datasets(xr.Dataset.load)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path}: {error}") from error
        if lacking := {"totals", "log_prior"} - set(tree.children):
            raise DataError(f"{path} is no saved fit: it has no group {', '.join(sorted(lacking))}")
        return cls(tree)

    @cached_property
    def log_prior(self) -> Mapping[str, FloatArray]:
        return {str(part): v.to_numpy() for part, v in self.tree["log_prior"].data_vars.items()}

    @cached_property
    def _saved(self) -> dict[str, FloatArray]:
        totals = self.tree["totals"]["totals"]
        return {str(name): totals.sel(column=name).to_numpy() for name in totals["column"].to_numpy()}

    def _has(self, column: Column | Known) -> bool:
        return column.name in self._saved and NAMED.get(column.name) == column

    def identifies(self, metric: Metric) -> bool:
        return all(self._has(c) for c in metric.columns)

    def total(self, column: Column | Known) -> FloatArray:
        if not self._has(column):
            raise NotIdentified(
                f"no draws of '{column.name}' were saved, only those that metrics of erbayes.ALL "
                "need: fit the sample again"
            )
        return self._saved[column.name]
