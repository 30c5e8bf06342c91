"""What a study says: measures of estimators with their Monte Carlo errors, and paired differences.

Each measure is a smooth function of means over runs. Its Monte Carlo error is the standard error of the mean
of its influence values, and that of a paired difference the one of differences of influence values. If all
runs agree about a share, its error is that of Wilson's limits (1927), and that of its paired differences of
Bonett and Price (2012), Journal of Educational and Behavioral Statistics 37, 479-488, which are not 0.

Sources: Morris, White and Crowther (2019), Statistics in Medicine 38, 2074-2102 (Monte Carlo errors);
Gneiting and Raftery (2007), JASA 102, 359-378 (interval score); Bracher et al. (2021), PLOS Computational
Biology 17, e1008618 (weighted interval score); Talts et al. (2018), arXiv 1804.06788 (calibration).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import batched
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from .._internal.digits import round_to_error
from .._internal.errors import DataError, head, import_extra
from ..metrics.tables import Pictured
from ..metrics.unseen import ROUNDING

if TYPE_CHECKING:
    import xarray as xr

CELL = ("population", "plan", "n", "annotator")
"""Columns that name a cell. Runs have the last one if annotators are a factor of the study."""
SHARES = ["coverage", "missed_below", "missed_above"]
PRINTED = ("bias", "rmse", "coverage", "width")
Z = 1.96
"""Normal quantile of limits of 95 %."""


def name_bounds(levels: Sequence[float]) -> list[str]:
    """Return the columns of the bounds at each level; those of the first level have its bare names."""
    ends = [f"_{level:g}" if i else "" for i, level in enumerate(levels)]
    return [f"{bound}{end}" for end in ends for bound in ("lower", "upper")]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Study(Pictured):
    """All estimates of a study, `runs`, one row per repetition, estimator and metric.

    Attributes
    ----------
    runs : DataFrame
        Columns: population, plan, n, annotator (if it is a factor), estimator, metric, repetition, truth,
        estimate, se, lower and upper, lower_0.5 and so on for further levels, seconds, warned, and reason:
        why there is no estimate, or "".
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
        `bias_mcse` is the Monte Carlo error of bias, and so on. Seconds, of one sample, are medians, which
        leave out compilation.
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
        return table.assign(warnings=runs["warned"].sum().to_numpy().astype(int))

    def against(self, reference: str) -> pd.DataFrame:
        """Return differences of the measures of each estimator from those of one, on the same samples.

        Runs count in which neither failed, `pairs` of them. As both see the same samples, the Monte Carlo
        error of a difference can be far below those of its parts.

        Parameters
        ----------
        reference : str
            Name of an estimator.
        """
        x = self._measure()
        if reference not in (names := list(x["estimator"].unique())):
            raise DataError(f"the study has no estimator {reference!r}; it has {head(names, 9)}")
        own = x[x["estimator"] != reference].reset_index(drop=True)
        key = [c for c in (*CELL, "metric", "repetition") if c in x]
        other = x[x["estimator"] == reference].drop(columns=["estimator", "group"])
        theirs = own[[*key, "estimator", "group"]].merge(other, how="left", on=key)
        figures = _find_figures(x)
        known = own[figures].notna() & theirs[figures].notna()
        (own_values, own_influence), (values, influence) = (
            _linearise(side.assign(**side[figures].where(known))) for side in (own, theirs)
        )
        errors, change = (own_influence - influence).groupby(own["group"]).sem(), own[SHARES] - theirs[SHARES]
        gains, losses, n = (y.groupby(own["group"]).sum() for y in (change > 0, change < 0, known[SHARES]))
        p, q = (gains + 1) / (n + 2), (losses + 1) / (n + 2)
        least = ((p + q - (p - q) ** 2) / (n + 2)) ** 0.5
        errors[SHARES] = errors[SHARES].where(errors[SHARES] > 0, least.where(n > 0))
        counts = self.table()[[*_find_keys(x), "failures"]].loc[values.index]
        counts["pairs"] = known["error"].groupby(own["group"]).sum()
        return counts.join(_alternate(own_values - values, errors)).reset_index(drop=True)

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

    def rounded(self, measures: Sequence[str] = PRINTED) -> pd.DataFrame:
        """Return measures as text, with the digits that their Monte Carlo errors warrant."""
        table = self.table()
        if unknown := [name for name in measures if f"{name}_mcse" not in table]:
            raise DataError(f"a study has no measure {head(unknown)}; Study.table has all")
        text = table[[*_find_keys(table), "failures"]].copy()
        for name in measures:
            text[name] = [
                round_to_error(*pair) for pair in zip(table[name], table[f"{name}_mcse"], strict=True)
            ]
        return text

    def latex(self, measures: Sequence[str] = PRINTED, caption: str = "", label: str = "") -> str:
        """Return measures as a LaTeX table for booktabs, a row per cell, in which the best ones are bold.

        The best bias is nearest to 0, the best coverage to the level, and the best `se_ratio` to 1. Others
        are least. Digits are those of `rounded`, so that equal ones are best together.
        """
        keys, aims = _find_keys(self.runs), {"bias": 0.0, "coverage": self.level, "se_ratio": 1.0}
        rounded, table = (x.set_index(keys) for x in (self.rounded(measures), self.table()))
        texts, marks = {}, {}
        for name in measures:
            texts[name] = text = pd.DataFrame(rounded[name].unstack("estimator", sort=False))
            distance = (table[name] - aims.get(name, 0.0)).abs().unstack("estimator", sort=False)
            best = distance.apply(lambda row, text=text: text.loc[row.name, row.idxmin()], axis=1)
            marks[name] = text.eq(best, axis=0)
        text, best = pd.concat(texts, axis=1), pd.concat(marks, axis=1)
        text = text.where(~best, "\\textbf{" + text + "}").rename(index=_escape, columns=_escape)
        text = text.rename_axis(index=_escape, columns=_escape)
        return str(text.to_latex(caption=caption or None, label=label or None, multirow=False))

    def _choose_printed(self) -> tuple[str, pd.DataFrame]:
        return f"Study, {100 * self.level:g} % intervals", self.rounded()

    @property
    def _failed(self) -> pd.Series:
        """Return whether each run has no estimate or no truth."""
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


def _find_keys(runs: pd.DataFrame) -> list[str]:
    """Return the columns that name a cell, and those of the estimator and the metric."""
    return [c for c in (*CELL, "estimator", "metric") if c in runs]


def _find_figures(x: pd.DataFrame) -> list[str]:
    """Return the columns of figures."""
    return [str(c) for c in x if c not in (*CELL, "estimator", "metric", "repetition", "group")]


def _linearise(x: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the measures of each group, (groups, measures), and the influence of each run on them."""
    figures, groups = _find_figures(x), x.groupby("group")
    values, sd = groups[figures].mean(), groups["error"].std()
    mean, spread = values.loc[x["group"]].set_index(x.index), sd.loc[x["group"]].set_axis(x.index)
    influence = x[figures] - mean
    ratio = influence["se"] / spread - mean["se"] * (influence["error"] ** 2 - spread**2) / (2 * spread**3)
    # where no run errs, the root of the mean square does not change with its weight
    root = influence["square"] / (2 * np.sqrt(mean["square"]))
    influence["square"] = root.where(mean["square"] > 0, influence["square"])
    influence["se"], values["se"], values["square"] = ratio, values["se"] / sd, np.sqrt(values["square"])
    names = {"error": "bias", "square": "rmse", "se": "se_ratio"}
    return values.rename(columns=names), influence.rename(columns=names)


def _alternate(values: pd.DataFrame, errors: pd.DataFrame) -> pd.DataFrame:
    """Return each measure with its Monte Carlo error in the column after it."""
    return pd.DataFrame({c: x for m in values for c, x in ((m, values[m]), (f"{m}_mcse", errors[m]))})


def _escape(name: Any) -> Any:
    return re.sub(r"([&%$#_{}])", r"\\\1", name) if isinstance(name, str) else name
