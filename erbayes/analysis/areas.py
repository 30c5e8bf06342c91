"""Small-area estimates: domains with few draws borrow from all domains.

On the logit (for shares) or log scale (for counts), the direct estimate of domain g is θ̂_g = θ_g + e_g. The
true value is θ_g = x_g'β + u_g, with u_g of variance τ². The errors e have the joint covariance V of the
design.

Sources: Fay and Herriot (1979), JASA 74, 269-277. Prasad and Rao (1990), JASA 85, 163-171 (mean squared
error). Li and Lahiri (2010), Journal of Multivariate Analysis 101, 882-892 (τ² above 0).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize_scalar
from scipy.special import ndtri

from .._internal.arrays import BoolArray, FloatArray
from .._internal.errors import DataError, need, refuse_cases
from ..metrics.columns import Known
from ..metrics.definitions import Metric, chosen_one
from ..metrics.intervals import DEFAULT, Scale, check_level, identity, log, logit, natural_scale
from ..metrics.uncertain import Normal, Tabled
from .domains.estimates import ByDomain


@dataclass(frozen=True, slots=True, eq=False)
class Direct:
    """Direct estimates of d domains on the scale of the model.

    `there` (d,): false for domains without a draw; `y`, `V` (a,), (a, a): estimates of the others and the
    covariance of their errors; `X` (d, p): a constant and the covariates, called `columns`; `table`: direct
    estimates on the scale of the metric, (d rows).
    """

    names: tuple[str, ...]
    metric: str
    scale: Scale
    there: BoolArray
    y: FloatArray
    V: FloatArray
    X: FloatArray
    columns: tuple[str, ...]
    table: pd.DataFrame


def direct_estimates(
    result: ByDomain, metric: Metric | str, covariates: pd.DataFrame | None = None
) -> Direct:
    """Return direct estimates of domains as a small-area model takes them, by `small_areas`."""
    of, fit = chosen_one(metric), result.result(metric)
    if not isinstance(fit, Normal):
        raise DataError(
            "small-area estimates need a closed form: estimate the domains with Taylor() or Jackknife()"
        )
    scale = _choose_scale(of, covariates)
    effective = result.effective[:, [m.name for m in result.metrics].index(of.name)]
    moved, spread, draws = _add_pseudo_draws(fit, effective, scale)
    there = np.isfinite(moved) & np.isfinite(spread) & (moved > scale.lower) & (moved < scale.upper)
    there &= effective > 0
    sd = scale.slope(moved[there]) * spread[there]
    reliable = (effective[there] >= result.settings.fewest) & (sd > 0)
    if not reliable.any():
        raise DataError(
            f"no domain has {result.settings.fewest:g} effective draws of {of.name} and a standard error "
            "above 0, so that no variance can be borrowed: label more units, or join domains"
        )
    sd = _borrow_variances(sd, reliable, effective[there], draws[there], scale)
    names = tuple(result.names)
    X, columns = _build_design_matrix(covariates, names, there)
    if (most := X.shape[1] + 2) >= there.sum():
        raise DataError(
            f"{there.sum()} domains have a direct estimate of {of.name}; with {X.shape[1]} coefficients a "
            f"model needs {most + 1} or more: estimate more domains at once, or leave out covariates"
        )
    table = pd.DataFrame({"n_eff": effective, "direct": fit.mean, "direct_se": fit.sd}, index=list(names))
    V = _correlate_errors(fit, there) * np.outer(sd, sd)
    return Direct(names, of.name, scale, there, scale.forward(moved[there]), V, X, columns, table)


def _choose_scale(metric: Metric, covariates: pd.DataFrame | None) -> Scale:
    """Return the scale on which domains vary about a level in common, or refuse the metric."""
    scale = natural_scale(metric.support)
    if scale is identity:
        raise DataError(f"{metric.name} has neither a logit nor a log scale: small-area estimates need one")
    none = covariates is None or (isinstance(covariates, pd.DataFrame) and not len(covariates.columns))
    if scale is log and none and any(isinstance(c, Known) and not c.everyone for c in metric.columns):
        raise DataError(
            f"{metric.name} grows with the records of a domain, so that domains have no level in common: "
            "pass covariates with the logarithm of the number of records of each domain"
        )
    return scale


def _add_pseudo_draws(
    fit: Normal, effective: FloatArray, scale: Scale
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return estimates inside their scale, standard errors, and draws with any pseudo-draw, (d,) each."""
    if scale is not logit:
        moved, variance = DEFAULT.moments(fit)
        return moved, np.sqrt(variance), effective
    # a share without an observed error has no logit, so that each domain has a draw at the mean of all
    seen = np.isfinite(fit.mean) & (effective > 0)
    pooled = np.average(fit.mean[seen], weights=effective[seen]) if seen.any() else np.nan
    return (effective * fit.mean + pooled) / (effective + 1), fit.sd, effective + 1


def _borrow_variances(
    sd: FloatArray, reliable: BoolArray, n: FloatArray, draws: FloatArray, scale: Scale
) -> FloatArray:
    """Return standard errors of domains, (a,), by the variance of one draw in all reliable ones."""
    # the variance of few draws is itself uncertain (a generalised variance function)
    shared = np.sqrt(np.average(sd[reliable] ** 2 * n[reliable], weights=n[reliable]) / draws)
    # a count varies the more the rarer it is, so that it keeps a variance that is known
    return np.asarray(shared if scale is logit else np.where(reliable, sd, shared))


def _correlate_errors(fit: Normal, there: BoolArray) -> FloatArray:
    """Return the correlations of the errors of some domains, as a matrix that has an inverse."""
    error = np.where(fit.sd > 0, fit.sd, 1.0)
    correlation = (fit.cov / np.outer(error, error))[np.ix_(there, there)]
    np.fill_diagonal(correlation, 1.0)
    value, vector = np.linalg.eigh(correlation)
    # domains share entities, so that rounding may leave correlations without an inverse
    return np.asarray((vector * np.maximum(value, 1e-9)) @ vector.T)


def _build_design_matrix(
    covariates: pd.DataFrame | None, names: tuple[str, ...], there: BoolArray
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return a constant and the covariates of each domain, (d, p), and their names."""
    one = np.ones((len(names), 1))
    if covariates is None:
        return one, ("constant",)
    need(covariates, pd.DataFrame, "covariates must be a DataFrame with a row per domain")
    rows = covariates.set_axis(covariates.index.astype(str))
    refuse_cases(rows.index[rows.index.duplicated()], "covariates have {n} repeated rows, such as")
    lacking = [name for name in names if name not in rows.index]
    refuse_cases(lacking, f"covariates are missing for {{n}} of {len(names)} domains, such as")
    try:
        X = np.hstack([one, rows.loc[list(names)].to_numpy(dtype=float)])
    except (TypeError, ValueError) as error:
        raise DataError(f"covariates must be numbers, one row per domain: {error}") from error
    if not np.isfinite(X).all():
        raise DataError("covariates must be finite numbers, one row per domain")
    if np.linalg.matrix_rank(X[there]) < X.shape[1]:
        raise DataError(
            "a covariate is a combination of the others, or the same for every domain: leave it out"
        )
    return X, ("constant", *map(str, covariates.columns))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SmallAreas(Tabled):
    """Small-area estimates `theta` with mean squared errors `mse`, (d,), τ² and coefficients `beta`, (p,)."""

    direct: Direct
    theta: FloatArray
    mse: FloatArray
    tau2: float
    beta: FloatArray

    def table(self, level: float = 0.95) -> pd.DataFrame:
        """Return direct and small-area estimates, one row per domain; `estimate` is that of the model."""
        check_level(level)
        half = ndtri((1 + level) / 2) * np.sqrt(self.mse)
        ends = {"estimate": 0 * half, "lower": -half, "upper": half}
        table = self.direct.table.assign(
            **{name: self.direct.scale.inverse(self.theta + x) for name, x in ends.items()},
            level=level,
            kind="small-area",
        )
        table.insert(0, "metric", self.direct.metric)
        return table.rename_axis("domain").reset_index()


def small_areas(result: ByDomain, metric: Metric | str, covariates: pd.DataFrame | None = None) -> SmallAreas:
    """Estimate a metric of each domain by a model that shrinks direct estimates towards x'β.

    By default it is the empirical best linear unbiased predictor under a Fay-Herriot model with the joint
    covariance of the direct estimates. τ² is the adjusted residual maximum likelihood estimate, which is
    above 0. Mean squared errors add up three parts of Prasad and Rao: shrinkage, β, and twice that of τ². The
    model supposes that domains differ by their covariates and by chance alone. Direct estimates stay beside
    its results.

    Parameters
    ----------
    result : ByDomain
        With a metric on [0, 1] or [0, ∞).
    covariates : DataFrame, optional
        Numbers known of each domain, such as its mean cluster size, one row per value of the variable.

    Raises
    ------
    DataError
        If the result holds draws, if the metric has neither a logit nor a log scale, if no domain has both
        enough draws and a standard error above 0, if too few domains have an estimate, or if covariates are
        missing, not finite or redundant. A metric that counts something, such as splits, needs covariates.

    Examples
    --------
    >>> import erbayes as eb
    >>> rng = np.random.default_rng(1)
    >>> prediction = {i: i // 3 + (rng.random() < 0.2) * 1000 for i in range(900)}
    >>> sample = eb.Sample(eb.measure(prediction, {i: i // 4 for i in range(400)}), eb.UniformRecords())
    >>> result = eb.by_domain(sample, {i: i // 4 % 8 for i in range(900)}, "b3-recall")
    >>> areas = small_areas(result, "b3-recall")
    >>> bool(np.ptp(areas.table().estimate) < np.ptp(areas.table().direct))
    True
    """
    d = direct_estimates(result, metric, covariates)
    return SmallAreas(d, *eblup(d.y, d.V, d.X, d.there))


def eblup(
    y: FloatArray, V: FloatArray, X: FloatArray, there: BoolArray
) -> tuple[FloatArray, FloatArray, float, FloatArray]:
    """Return the predictor and its mean squared error, (d,), τ² and β, (p,), by y, V and X of `there`."""
    x = X[there]

    def projected(tau2: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        inverse = np.linalg.inv(tau2 * np.eye(len(y)) + V)
        information = x.T @ inverse @ x
        return inverse, information, inverse - inverse @ x @ np.linalg.solve(information, x.T @ inverse)

    def loss(log_tau2: float) -> float:
        inverse, information, P = projected(np.exp(log_tau2))
        fit = np.linalg.slogdet(inverse)[1] - np.linalg.slogdet(information)[1] - y @ P @ y
        # the factor τ² adjusts the likelihood, whose maximum could be at 0 otherwise
        return float(-log_tau2 - fit / 2)

    # from e^-12 to e^4 of the variance of direct estimates, which holds any τ² that they could show
    spread = np.log(np.var(y) + np.diagonal(V).mean())
    tau2 = float(np.exp(minimize_scalar(loss, bounds=(spread - 12, spread + 4), method="bounded").x))
    inverse, information, P = projected(tau2)
    beta = np.linalg.solve(information, x.T @ inverse @ y)
    B = np.zeros((len(X), len(y)))
    B[there] = tau2 * inverse
    theta = X @ beta + B @ (y - x @ beta)
    g1 = tau2 - tau2 * np.sum(B * np.eye(len(X))[:, there], axis=1)
    A = X - B @ x
    g2 = np.sum(A * np.linalg.solve(information, A.T).T, axis=1)
    change = np.zeros((len(X), len(y)))
    change[there] = inverse @ V @ inverse  # dB/dτ²
    g3 = np.sum((change @ np.linalg.inv(inverse)) * change, axis=1) * 2 / np.sum(P * P.T)
    return theta, g1 + g2 + 2 * g3, tau2, beta
