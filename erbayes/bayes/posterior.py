"""Posterior draws of metrics, from a fit or from a saved fit."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from .._internal.arrays import FloatArray
from .._internal.errors import DataError, NotIdentified
from ..metrics.columns import Column, Known
from ..metrics.definitions import ALL, USUAL, Metric, Wanted, chosen
from ..metrics.uncertain import Draws, Tabled

NAMED = {c.name: c for m in ALL for c in m.columns}
"""Totals that a saved fit may hold, by name."""


TABLE = "erbayes_table"
"""Attribute of a saved tree that holds the table of the fit as JSON."""
Total = Callable[[Column | Known], FloatArray]
"""A function of a column that returns posterior draws of its population total, (chain, draw)."""


def totals(metrics: Wanted, total: Total) -> Draws:
    """Return posterior draws of the totals that metrics need, (chain, draw, column)."""
    columns = dict.fromkeys(c for m in chosen(metrics) for c in m.columns)
    values = {c.name: total(c) for c in columns}
    return Draws(tuple(values), np.stack(list(values.values()), axis=-1), ((0.0, np.inf),) * len(values))


def applied(metrics: Wanted, total: Total) -> Draws:
    """Return posterior draws of metrics, (chain, draw, k): see `Posterior.apply`."""
    metrics = chosen(metrics)
    draws = totals(metrics, total).apply(metrics)
    return replace(draws, values=np.clip(draws.values, *np.transpose(draws.support)))


class Posterior(Tabled):
    """Posterior draws of totals, and of the metrics that follow from them."""

    __slots__ = ()

    @property
    @abstractmethod
    def log_prior(self) -> Mapping[str, FloatArray]:
        """Log prior density of the parameters, by part, (chain, draw) each."""

    @abstractmethod
    def identifies(self, metric: Metric) -> bool:
        """Return True if there are draws of all totals of a metric."""

    @abstractmethod
    def total(self, column: Column | Known) -> FloatArray:
        """Return posterior draws of a column's population total, (chain, draw); refuse one without draws."""

    def totals(self, metrics: Wanted) -> Draws:
        """Return posterior draws of the totals that metrics need, (chain, draw, column)."""
        return totals(metrics, self.total)

    def apply(self, metrics: Wanted) -> Draws:
        """Return posterior draws of metrics, (chain, draw, k).

        Draws of totals can break their inequalities with known totals. A draw of a metric outside its support
        is then set to the end of the support.

        Parameters
        ----------
        metrics : Metric or str, or several

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        return applied(metrics, self.total)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Return the metrics of `erbayes.metrics.ALL` that have draws."""
        return tuple(m for m in ALL if self.identifies(m))

    def table(self, level: float = 0.95, metrics: Wanted | None = None) -> pd.DataFrame:
        """Return estimates and intervals of metrics, and how far they rest on priors and laws.

        Parameters
        ----------
        level : float in (0, 1)
        metrics : Metric or str, or several, optional
            By default those of `erbayes.metrics.USUAL` that have draws.

        Returns
        -------
        DataFrame, one row per metric
            Columns of `Draws.table`, and these. A saved fit has the last four groups at the level .95 alone.

            - prior_shift: the shift of the mean, in posterior standard deviations, if the prior of one part
              counts twice, for the part with the largest shift. Above .3, the answer depends on that prior.
              prior_shift_error is its Monte Carlo standard error, .1 to .4 with 1,000 draws.
            - posterior_lower, posterior_upper: the interval of the posterior. If the alarm of recall is
              raised, lower and upper of the metrics that count true links are those of the pool instead, and
              kind says so (see `Fit.disowned`).
            - pooled_lower, pooled_upper: the interval of `Fit.pooled`; NaN if the closed form lacks the
              metric.
            - by_second, if there is a second clustering: the share of the true links taken from it.
            - law_lower, law_upper, if parts have several laws: the ends of the widest range of the intervals
              under the laws that the sample does not reject (see `Fit.laws`).

        Raises
        ------
        NotIdentified
            A metric whose columns have no draws.
        """
        wanted = [m for m in USUAL if self.identifies(m)] if metrics is None else metrics
        return self._tabulate(level, chosen(wanted))

    def _tabulate(self, level: float, metrics: Sequence[Metric]) -> pd.DataFrame:
        """Return the columns of `table` that follow from the draws alone."""
        draws = self.apply(metrics)
        shift, error = self.prior_shift(draws), self.prior_shift_error(draws)
        largest = np.arange(len(shift)), shift.to_numpy().argmax(axis=1)
        return draws.table(level).assign(
            prior_shift=shift.to_numpy()[largest], prior_shift_error=error.to_numpy()[largest]
        )

    def prior_shift(self, draws: Draws) -> pd.DataFrame:
        """Return the influence of each part's prior on each mean, one row per metric, one column per part.

        It is the absolute shift of the mean, in posterior standard deviations, if the prior p is raised to
        the power α = 2, from the slope at α = 1, which for a metric g is a posterior covariance:

            d E(g)/d log α = Cov(g, log p)

        Source: Kallioinen et al. (2024), doi 10.1007/s11222-023-10366-5.

        Parameters
        ----------
        draws : Draws
            Posterior draws of metrics, from `apply`.
        """
        moves = self._moves(draws)
        return self._by_metric_and_part(draws, np.abs(moves.sum(axis=(0, 1))) / (moves[..., 0, 0].size - 1))

    def prior_shift_error(self, draws: Draws) -> pd.DataFrame:
        """Return the Monte Carlo standard error of each number of `prior_shift`.

        It is that of the means of batches of √n consecutive draws, n per chain, since copies are consecutive.
        """
        moves = self._moves(draws)
        n = moves.shape[1]
        length = int(np.sqrt(n))
        batches = moves[:, n % length :].reshape(-1, length, *moves.shape[2:]).mean(axis=1)
        return self._by_metric_and_part(draws, batches.std(axis=0, ddof=1) / np.sqrt(len(batches)))

    def _moves(self, draws: Draws) -> FloatArray:
        """Return what each draw adds to the shift of each metric by each part, (chain, draw, k, part)."""
        priors = np.stack(list(self.log_prior.values()), axis=-1)
        certain = draws.sd <= 1e-12 * np.maximum(np.abs(draws.mean), 1)
        metrics = (draws.values - draws.mean) / np.where(certain, np.inf, draws.sd)
        deviations = priors - priors.mean(axis=(0, 1))
        return np.asarray(np.log(2) * metrics[..., None] * deviations[..., None, :])

    def _by_metric_and_part(self, draws: Draws, values: FloatArray) -> pd.DataFrame:
        return pd.DataFrame(values, index=pd.Index(draws.names, name="metric"), columns=list(self.log_prior))


@dataclass(frozen=True, eq=False, repr=False)
class Saved(Posterior):
    """A saved fit: a `tree` of its draws of totals, as in `Fit.tree`, without the sample and the model."""

    tree: xr.DataTree

    @classmethod
    def load(cls, path: Path | str) -> Saved:
        """Read a file of `Fit.save`: the tree, the metrics and the table, with every column at the level .95.

        Pickle keeps all of a fit.
        """
        try:
            with xr.open_datatree(path) as stored:
                tree = stored.map_over_datasets(xr.Dataset.load)
        except (OSError, ValueError) as error:
            raise DataError(f"cannot read {path}: {error}") from error
        if missing := {"totals", "log_prior"} - set(tree.children):
            raise DataError(f"{path} is no saved fit: it has no group {', '.join(sorted(missing))}")
        return cls(tree)

    def _tabulate(self, level: float, metrics: Sequence[Metric]) -> pd.DataFrame:
        """Return rows of the table of the fit as it was saved, or what follows from the draws."""
        names, text = [m.name for m in metrics], self.tree.attrs.get(TABLE)
        if text is not None and level == 0.95:
            saved = pd.read_json(StringIO(text), orient="split").rename_axis("metric")
            if set(names) <= set(saved.index):
                return saved.loc[names]
        return super()._tabulate(level, metrics)

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
                f"no draws of '{column.name}' were saved, only those that metrics of erbayes.metrics.ALL "
                "need: fit the sample again"
            )
        return self._saved[column.name]
