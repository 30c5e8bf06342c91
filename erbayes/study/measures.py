"""What a study says: measures with their Monte Carlo errors, paired differences, and tables for print.

Each measure is a smooth function of means over runs. Its Monte Carlo error, and that of a paired difference,
is the jackknife's. If all runs agree about a share, its error is that of Wilson's limits (1927), and that of
its paired differences of Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37,
479-488, which are not 0.

Sources: Morris, White and Crowther (2019), Statistics in Medicine 38, 2074-2102 (Monte Carlo errors);
Gneiting and Raftery (2007), JASA 102, 359-378 (interval score); Bracher et al. (2021), PLOS Computational
Biology 17, e1008618 (weighted interval score); Talts et al. (2018), arXiv 1804.06788 (calibration).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import batched, combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.digits import NONE, round_to_error
from .._internal.errors import DataError, head, import_extra
from ..metrics.tables import Pictured, Tabled
from ..metrics.unseen import ROUNDING

if TYPE_CHECKING:
    import xarray as xr

CELL = ("population", "plan", "n", "annotator")
"""Columns that name a cell. Runs have the last one if annotators are a factor of the study."""
SHARES = ["coverage", "missed_below", "missed_above"]
PRINTED = ("bias", "rmse", "coverage", "width")
JUDGED = ("rmse", "coverage", "interval_score")
Z = 1.96
"""Normal quantile of limits of 95 %."""
SURE = 2.0
"""Number of paired Monte Carlo errors by which an estimator is surely better or worse than another."""


def name_bounds(levels: Sequence[float]) -> list[str]:
    """Return the columns of the bounds at each level; those of the first level have its bare names."""
    ends = [f"_{level:g}" if i else "" for i, level in enumerate(levels)]
    return [f"{bound}{end}" for end in ends for bound in ("lower", "upper")]


class Measured(Tabled):
    """A table of measures by cell, estimator and metric, each with its Monte Carlo error in `NAME_mcse`."""

    __slots__ = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Return what a reader of the table has to know, a sentence each."""
        return ()

    def rounded(self, measures: Sequence[str] = PRINTED, *, errors: bool = False) -> pd.DataFrame:
        """Return measures as text, with the digits that their Monte Carlo errors warrant.

        With `errors`, these are in parentheses, in units of the last digit: 0.030(2) has an error of .002.
        """
        table = self.table()
        if unknown := [name for name in measures if f"{name}_mcse" not in table]:
            raise DataError(f"a study has no measure {head(unknown)}; Study.table has all")
        text = table[[*_find_keys(table), "failures"]].copy()
        for name in measures:
            pairs = zip(table[name], table[f"{name}_mcse"], strict=True)
            text[name] = [round_to_error(*pair, shown=errors) for pair in pairs]
        return text

    def latex(
        self,
        measures: Sequence[str] = PRINTED,
        caption: str = "",
        label: str = "",
        *,
        errors: bool = False,
        across: str | Sequence[str] = "estimator",
    ) -> str:
        """Return measures as a LaTeX table for booktabs, in which the best ones are bold.

        Of a study, these are the best of each cell and all that are not worse by more than two paired Monte
        Carlo errors; of differences, what is better by more than two. The best bias is nearest to 0, the best
        coverage to the level, and the best `se_ratio` to 1. Others are least.

        Parameters
        ----------
        errors : bool
            Whether Monte Carlo errors stand in parentheses (see `rounded`).
        across : str or several
            What columns are of, such as `["n", "estimator"]`. Rows are of the rest.
        """
        text, best = self.rounded(measures, errors=errors), self._find_best()
        keys, columns = _find_keys(text), [across] if isinstance(across, str) else list(across)
        if unknown := [name for name in columns if name not in keys]:
            raise DataError(f"a study has no {head(unknown)} to go across; it has {head(keys, 9)}")
        for name in measures:
            text[name] = text[name].mask(best[name], "\\textbf{" + text[name] + "}")
        wide = pd.DataFrame(text.set_index(keys)[list(measures)].unstack(columns, sort=False)).fillna(NONE)
        wide = wide.rename(index=_escape, columns=_escape).rename_axis(index=_escape, columns=_escape)
        table = wide.to_latex(caption=caption or None, label=label or None, multirow=False)
        return "".join(f"% {note}\n" for note in self.notes) + str(table)

    def _find_best(self) -> pd.DataFrame:
        """Return which measures are bold, (rows of the table, measures)."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study(Measured, Pictured):
    """All estimates of a study, `runs`, one row per repetition, estimator and metric.

    Attributes
    ----------
    runs : DataFrame
        Columns: population, plan, n, annotator (if it is a factor), estimator, metric, repetition, truth,
        estimate, se, lower and upper, lower_0.5 and so on for further levels, seconds, warned, reason: why
        there is no estimate, or "", and kind: that of the interval, or "".
    level : float
        That of lower and upper.
    """

    picture: ClassVar[str] = "coverage"
    runs: pd.DataFrame
    level: float

    @property
    def levels(self) -> list[float]:
        """Return the levels of the intervals, the first one that of `lower` and `upper`."""
        names = [str(c) for c in self.runs if str(c).startswith("lower_")]
        return [self.level, *(float(name.removeprefix("lower_")) for name in names)]

    def table(self) -> pd.DataFrame:
        """Return the measures of each cell, estimator and metric, over runs that did not fail.

        They are bias; rmse; se_ratio, the mean standard error over the standard deviation of errors;
        coverage, with limits of 95 %; missed_below and missed_above, shares of intervals below the truth and
        above it; width; interval_score; and wis, the weighted interval score, if there are several levels.
        `bias_mcse` is the Monte Carlo error of bias, and so on. Seconds are medians, without compilation.
        """
        x = self._measure()
        values, influence = _linearise(x)
        runs = self.runs.assign(failed=self._failed | self._bare).groupby(_find_keys(x), sort=False)
        errors, n = influence.groupby(x["group"]).sem(), x.groupby("group")[SHARES].count()
        scale = 1 + Z**2 / n
        centre = (values[SHARES] + Z**2 / (2 * n)) / scale
        half = Z / scale * (values[SHARES] * (1 - values[SHARES]) / n + Z**2 / (4 * n**2)) ** 0.5
        errors[SHARES] = errors[SHARES].where(errors[SHARES] > 0, half / Z)
        measured = _alternate(values, errors)
        for name, limit in (("lower", centre - half), ("upper", centre + half)):
            measured[f"coverage_{name}"] = limit["coverage"]
        counts = {"truth": runs["truth"].mean(), "repetitions": runs.size(), "failures": runs["failed"].sum()}
        table = pd.DataFrame(counts).reset_index().join(measured)
        table["seconds"] = runs["seconds"].median().to_numpy()
        kinds = runs["kind"].agg(lambda kind: "; ".join(filter(None, kind.unique())))
        return table.assign(warnings=runs["warned"].sum().to_numpy().astype(int), kind=kinds.to_numpy())

    def against(self, reference: str) -> Against:
        """Return differences of the measures of each estimator from those of one, on the same samples.

        Parameters
        ----------
        reference : str
            Name of an estimator.
        """
        if reference not in (names := list(self.runs["estimator"].unique())):
            raise DataError(f"the study has no estimator {reference!r}; it has {head(names, 9)}")
        return Against(self, reference)

    def alike(self) -> pd.DataFrame:
        """Return `estimators`, tuples of those that give one answer in all runs of a cell and metric."""
        keys = _find_keys(self.runs)
        told = self.runs[["repetition", "estimate", *name_bounds(self.levels)]].round(12)
        answer = pd.util.hash_pandas_object(told[~self._failed], index=False).rename("answer")
        answers = answer.groupby([self.runs[c] for c in keys], sort=False).sum().reset_index()
        same = answers.groupby([c for c in answers if c != "estimator"], sort=False)["estimator"]
        found = same.agg(tuple).rename("estimators").reset_index().drop(columns="answer")
        return found[found["estimators"].map(len) > 1].reset_index(drop=True)

    @property
    def notes(self) -> tuple[str, ...]:
        """Return which estimators answer alike, and which have several kinds of interval in a cell."""
        table, told = self.table(), []
        of = len(table.drop_duplicates([c for c in _find_keys(table) if c != "estimator"]))
        pairs = Counter(pair for names in self.alike()["estimators"] for pair in combinations(names, 2))
        several = table["estimator"][table["kind"].str.contains("; ")].value_counts(sort=False)
        alike = {" and ".join(pair): number for pair, number in pairs.items()}
        for what, found in (("Alike (see Study.alike)", alike), ("Several kinds of interval", dict(several))):
            if found:
                listed = ", ".join(f"{name} in {number}" for name, number in found.items())
                told.append(f"{what}: {listed} of {of} cells and metrics.")
        return tuple(told)

    def failures(self) -> pd.DataFrame:
        """Return the number of failed runs of each cell, estimator and metric, by reason.

        Runs without an interval, where others of their cell have one, are among them.
        """
        failed = self.runs[self._failed | self._bare]
        failed = failed.assign(reason=failed["reason"].mask(self._bare, "no interval"))
        return failed.groupby([*_find_keys(failed), "reason"], sort=False).size().rename("runs").reset_index()

    def pit(self) -> pd.Series:
        """Return where each truth is among the bounds of its intervals, in probability, (runs,).

        If equal-tailed intervals are right at all levels, it is uniform on [0, 1]. It is a random point
        between the probabilities of the bounds next to the truth, as are ranks among equal draws.
        """
        bounds = self._bounds.to_numpy()
        p = np.array([[(1 - level) / 2, (1 + level) / 2] for level in self.levels]).ravel()
        order, truth = np.argsort(p), self.runs["truth"].to_numpy()[:, None]
        bounds, p = bounds[:, order], np.concatenate([[0.0], p[order], [1.0]])
        first, last = p[(bounds < truth).sum(axis=1)], p[(bounds <= truth).sum(axis=1) + 1]
        values = first + np.random.default_rng(0).random(len(first)) * (last - first)
        return pd.Series(np.where(np.isnan(bounds).any(axis=1), np.nan, values), self.runs.index, name="pit")

    def tree(self, metric: str) -> xr.DataTree:
        """Return PIT values of a metric for ArviZ, a variable per estimator: `az.plot_ecdf_pit(tree)`.

        Runs in which an estimator failed are left out of all of them.
        """
        runs = self.runs.assign(pit=self.pit())[self.runs["metric"] == metric]
        run = [c for c in (*CELL, "repetition") if c in runs]
        wide = runs.set_index([*run, "estimator"])["pit"].unstack(sort=False).dropna()
        values = {str(name): wide[name].to_numpy()[None] for name in wide}
        tree: xr.DataTree = import_extra("arviz", "a tree needs ArviZ", "bayes").from_dict(
            {"prior_sbc": values}
        )
        return tree

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        return "\n".join([f"Study, {100 * self.level:g} % intervals", *self.notes]), self.rounded()

    def _find_best(self) -> pd.DataFrame:
        x, table = self._measure(), self.table()
        values, _ = _linearise(x, self.level)
        cell = table.groupby([c for c in _find_keys(table) if c != "estimator"], sort=False).ngroup()
        first = values.fillna(np.inf).groupby(cell).transform("idxmin")
        best = first.eq(first.index, axis=0) & values.notna()
        for reference in table["estimator"].unique():
            change, errors, _ = _pair(x, reference, self.level)
            of_first = first.apply(lambda at: table["estimator"].loc[at].to_numpy()) == reference
            best |= (change.le(SURE * errors.fillna(0.0)) & of_first).reindex(best.index, fill_value=False)
        return best

    @property
    def _failed(self) -> pd.Series:
        return self.runs["estimate"].isna() | self.runs["truth"].isna()

    @property
    def _bounds(self) -> pd.DataFrame:
        """Return the bounds of each run, at the truth where they differ from it by rounding alone."""
        bounds, truth = self.runs[name_bounds(self.levels)], self.runs["truth"]
        near = bounds.sub(truth, axis=0).abs().le(ROUNDING * truth.abs().clip(lower=1), axis=0)
        return bounds.mask(near, truth, axis=0)

    @property
    def _bare(self) -> pd.Series:
        """Return whether each run has an estimate without an interval, where others of its cell have one."""
        bare = self.runs["lower"].isna() & ~self._failed
        with_one = self.runs["lower"].notna().groupby([self.runs[c] for c in _find_keys(self.runs)])
        return bare & with_one.transform("any")

    def _measure(self) -> pd.DataFrame:
        """Return figures of each run whose means make the measures, NaN if it failed, and its `group`."""
        runs, bounds, truth, scores = self.runs, self._bounds, self.runs["truth"], []
        for level, (lower, upper) in zip(self.levels, batched(bounds, 2), strict=True):
            miss = np.maximum(bounds[lower] - truth, 0) + np.maximum(truth - bounds[upper], 0)
            scores.append(bounds[upper] - bounds[lower] + 2 / (1 - level) * miss)
        below, above, error = bounds["upper"] < truth, bounds["lower"] > truth, runs["estimate"] - truth
        figures = {"error": error, "square": error**2, "se": runs["se"], "coverage": ~below & ~above}
        figures |= {"missed_below": below, "missed_above": above, "width": runs["upper"] - runs["lower"]}
        figures["interval_score"] = scores[0]
        if len(scores) > 1:
            parts = [(1 - level) / 2 * x for level, x in zip(self.levels, scores, strict=True)]
            figures["wis"] = (error.abs() / 2 + sum(parts)) / (len(parts) + 0.5)
        x = pd.DataFrame(figures).astype(float).mask(self._failed)
        x[SHARES] = x[SHARES].mask(scores[0].isna())
        keys = _find_keys(runs)
        return runs[[*keys, "repetition"]].assign(group=runs.groupby(keys, sort=False).ngroup()).join(x)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Against(Measured):
    """Differences of the measures of estimators from those of a reference, on the same samples.

    Runs count in which neither failed, `pairs` of them. As both see the same samples, the Monte Carlo error
    of a difference can be far below those of its parts.

    Attributes
    ----------
    study : Study
    reference : str
        Name of an estimator.
    """

    study: Study
    reference: str

    def table(self) -> pd.DataFrame:
        """Return the difference of each measure, with its Monte Carlo error, a row per cell and estimator."""
        change, errors, pairs = _pair(self.study._measure(), self.reference)
        counts = self.study.table()
        counts = counts.loc[change.index, [*_find_keys(counts), "failures"]].assign(pairs=pairs)
        return counts.join(_alternate(change, errors)).reset_index(drop=True)

    def better(self, measures: Sequence[str] = JUDGED) -> pd.DataFrame:
        """Return in how many cells each estimator is better than the reference, and by how many errors.

        A measure is better if it is nearer to its best value (see `Measured.latex`). Columns are `cells`;
        `better`, those in which it is; `surely_better` and `surely_worse`, by more than two paired Monte
        Carlo errors; `change`, the mean over cells of the change of that distance, below 0 if it is better,
        with its error `change_mcse`; and `errors`, their ratio.
        """
        change, errors, _ = _pair(self.study._measure(), self.reference, self.study.level)
        if unknown := [name for name in measures if name not in change]:
            raise DataError(f"a study has no measure {head(unknown)}; Study.table has all")
        table, found = self.study.table().loc[change.index], []
        by = [c for c in ("estimator", "metric", "annotator") if c in table]
        for name in measures:
            x, e = change[name], errors[name]
            signs = {"cells": x.notna(), "better": x < 0, "surely_better": x < -SURE * e}
            signs |= {"surely_worse": x > SURE * e}
            of = pd.DataFrame(signs | {"change": x, "change_mcse": e**2}).groupby(
                [table[c] for c in by], sort=False
            )
            counted = of[list(signs)].sum().assign(change=of["change"].mean())
            counted["change_mcse"] = of["change_mcse"].sum(min_count=1) ** 0.5 / counted["cells"]
            found.append(counted.assign(measure=name).reset_index())
        told = pd.concat(found, ignore_index=True)
        told.insert(len(by), "measure", told.pop("measure"))
        return told.assign(errors=told["change"] / told["change_mcse"])

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        return f"Differences from {self.reference!r}", self.rounded()

    def _find_best(self) -> pd.DataFrame:
        change, errors, _ = _pair(self.study._measure(), self.reference, self.study.level)
        return (change < -SURE * errors).reset_index(drop=True)


def _find_keys(runs: pd.DataFrame) -> list[str]:
    """Return the columns that name a cell, and those of the estimator and the metric."""
    return [c for c in (*CELL, "estimator", "metric") if c in runs]


def _find_figures(x: pd.DataFrame) -> list[str]:
    return [str(c) for c in x if c not in (*CELL, "estimator", "metric", "repetition", "group")]


def _linearise(x: pd.DataFrame, level: float | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the measures of each group, (groups, measures), and the jackknife influence of each run.

    With a `level` of intervals, they are distances of the measures from their best values.
    """
    figures = _find_figures(x)
    groups = x.groupby("group")[figures]
    mean, n = groups.mean(), groups.count()
    values = _find_values(mean, n, level)
    of_run, counts = (y.loc[x["group"]].set_index(x.index) for y in (mean, n))
    left = _find_values(of_run - (x[figures] - of_run) / (counts - 1), counts - 1, level)
    counts.columns = left.columns
    return values, (counts - 1) * (values.loc[x["group"]].set_index(x.index) - left)


def _find_values(mean: pd.DataFrame, n: pd.DataFrame, level: float | None) -> pd.DataFrame:
    """Return measures that belong to means of figures over n runs, or their distances from the best."""
    spread = (mean["square"] - mean["error"] ** 2).clip(lower=0) * n["error"] / (n["error"] - 1)
    measures = mean.assign(square=mean["square"] ** 0.5, se=mean["se"] / spread**0.5)
    measures = measures.rename(columns={"error": "bias", "square": "rmse", "se": "se_ratio"})
    if level is None:
        return measures
    best = {"coverage": level, "se_ratio": 1.0} | dict.fromkeys(SHARES[1:], (1 - level) / 2)
    return (measures - pd.Series(best).reindex(measures.columns, fill_value=0.0)).abs()


def _pair(
    x: pd.DataFrame, reference: str, level: float | None = None
) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series]:
    """Return differences from a reference, (groups, measures), their errors, and numbers of pairs."""
    own = x[x["estimator"] != reference].reset_index(drop=True)
    key = [c for c in (*CELL, "metric", "repetition") if c in x]
    other = x[x["estimator"] == reference].drop(columns=["estimator", "group"])
    theirs = own[[*key, "estimator", "group"]].merge(other, how="left", on=key)
    figures, groups = _find_figures(x), own["group"]
    known = own[figures].notna() & theirs[figures].notna()
    (own_values, own_influence), (values, influence) = (
        _linearise(side.assign(**side[figures].where(known)), level) for side in (own, theirs)
    )
    errors, moved = (own_influence - influence).groupby(groups).sem(), own[SHARES] - theirs[SHARES]
    gains, losses, n = (y.groupby(groups).sum() for y in (moved > 0, moved < 0, known[SHARES]))
    p, q = (gains + 1) / (n + 2), (losses + 1) / (n + 2)
    least = ((p + q - (p - q) ** 2) / (n + 2)) ** 0.5
    errors[SHARES] = errors[SHARES].where(errors[SHARES] > 0, least.where(n > 0))
    # rounding is no difference, and no error
    change, errors = (y.mask(y.abs() <= ROUNDING, 0.0) for y in (own_values - values, errors))
    return change, errors, known["error"].groupby(groups).sum()


def _alternate(values: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Return each measure with its Monte Carlo error in the column after it."""
    return pd.DataFrame({c: x for m in values for c, x in ((m, values[m]), (f"{m}_mcse", errors[m]))})


def _escape(name: Any) -> Any:
    return re.sub(r"([&%$#_{}])", r"\\\1", name) if isinstance(name, str) else name
