"""R 4.2.2 with survey 4.1-1, and the paper's published figures."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import erbayes as eb
from erbayes import metrics as m
from erbayes.design.draws import count_each

pytestmark = [pytest.mark.kernel, pytest.mark.lowest]
GOLDEN = Path(__file__).parent / "golden"
METRICS = {
    "P": m.pairwise_precision, "R": m.pairwise_recall, "F1": m.pairwise_f(), "B3P": m.b3_precision,
    "B3R": m.b3_recall, "clP": m.cluster_precision, "clR": m.cluster_recall,
}  # fmt: skip
R = pd.read_csv(GOLDEN / "results.csv").set_index(["case", "estimator", "quantity"]).value
R = pd.to_numeric(R, errors="coerce")


def sample(file: str, design):
    records = pd.read_csv(GOLDEN / "records.csv").set_index("record")
    drawn = pd.read_csv(GOLDEN / file)
    true = records.true[records.true.isin(drawn.cluster)]
    return eb.Sample(eb.measure(records.pred, true), design(drawn)), drawn


@dataclass
class Corrected:
    """Another design, its variance times θ although units recur: what R and the paper do."""

    design: eb.design.contract.Design
    theta: float

    def expand(self, units):
        plain = self.design.expand(units)
        return count_each(plain.unit, plain.weight, fpc=self.theta)


def pps(population=None, fpc=lambda n, T: 1 - n / T):
    def design(drawn):
        weights = drawn.drop_duplicates("cluster").set_index("cluster").w
        plain = eb.KnownWeights(weights, list(drawn.cluster), absolute=True)
        return plain if population is None else Corrected(plain, fpc(len(drawn), population))

    return sample("s_ppswr.csv", design)[0]


def srs(population=None):
    return sample("s_srswor.csv", lambda d: eb.UniformClusters(population))[0]


def fitted(s, order=1):
    return eb.engine.taylor(s, tuple(METRICS.values())).apply(tuple(METRICS.values()), order)


CASES = {
    "pps_wr_nofpc": pps, "pps_wr_fpcK": lambda: pps(600), "srs_nofpc": srs, "srswor_fpc": lambda: srs(600),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_svyratio(case):
    found = fitted(CASES[case]())
    z, t = (found.interval(0.95, eb.intervals.WALD), found.interval(0.95, eb.intervals.Symmetric(59)))
    compared = 0
    for j, name in enumerate(METRICS):
        if (case, name, "est") not in R.index:
            continue
        assert found.mean[j] == pytest.approx(R[case, name, "est"], rel=1e-10)
        assert found.sd[j] == pytest.approx(R[case, name, "se"], rel=1e-10)
        for bounds, kind in ((z, "z"), (t, "t")):
            wanted = np.clip([R[case, name, f"lo_{kind}"], R[case, name, f"hi_{kind}"]], 0, 1)
            np.testing.assert_allclose(bounds[j], wanted, rtol=1e-10)
        compared += 1
    assert compared >= 6


@pytest.mark.parametrize("case, make", [
    ("pps_wr_paper_theta1", lambda: fitted(pps(), order=2)),
    ("pps_wr_paper_thetafpc", lambda: fitted(pps(600, lambda n, T: 1 - (n - 1) / (T - 1)), order=2)),
    ("pps_wr_JK1_mse", lambda: eb.engine.jackknife(pps(), tuple(METRICS.values()))),
])  # fmt: skip
def test_paper_estimator_and_jackknife_about_it(case, make):
    found, compared = make(), 0
    for j, name in enumerate(METRICS):
        if (case, name, "se") in R.index:
            assert found.sd[j] == pytest.approx(R[case, name, "se"], rel=1e-10)
            if not case.endswith("JK1_mse"):
                assert found.mean[j] == pytest.approx(R[case, name, "est"], rel=1e-10)
            compared += 1
    assert compared == 6


def test_jackknife_equals_leaving_out_one_by_one():
    records = pd.read_csv(GOLDEN / "records.csv").set_index("record")
    drawn = pd.read_csv(GOLDEN / "s_srswor.csv").cluster
    true = records.true[records.true.isin(drawn)]
    chosen = tuple(METRICS.values())
    design, units = eb.UniformClusters(), [eb.measure(records.pred, true[true != c]) for c in drawn]
    fits = [eb.engine.taylor(eb.Sample(some, design), chosen).apply(chosen, order=1) for some in units]
    left = np.array([fit.mean for fit in fits])
    scale = (60 - 1) / 60 * (1 - 60 / 600)
    found = eb.engine.jackknife(srs(600), chosen)
    np.testing.assert_allclose(found.sd, np.sqrt(scale * ((left - found.mean) ** 2).sum(axis=0)), rtol=1e-9)
    about_mean = np.sqrt(scale * ((left - left.mean(axis=0)) ** 2).sum(axis=0))
    for j, name in enumerate(METRICS):  # R's default centre is the mean of the replicates
        if ("srswor_JK1_fpc", name, "se") in R.index:
            assert about_mean[j] == pytest.approx(R["srswor_JK1_fpc", name, "se"], rel=1e-9)


def test_covariance():
    assert fitted(pps()).cov[0, 1] == pytest.approx(R["pps_wr_nofpc", "P,R", "cov"], rel=1e-10)


def test_totals():
    totals = eb.engine.taylor(pps(), tuple(METRICS.values()))
    for name, column in {
        "TP": "common_links",
        "PAIR": "predicted_links",
        "T2": "true_links",
        "one": "entities",
        "EXACT": "exact",
    }.items():
        j = totals.names.index(column)
        assert totals.mean[j] == pytest.approx(R["pps_wr_nofpc", f"total_{name}", "est"], rel=1e-10)
        assert totals.cov[j, j] ** 0.5 == pytest.approx(R["pps_wr_nofpc", f"total_{name}", "se"], rel=1e-10)


def test_example_1_truth():
    data = pd.read_csv(GOLDEN / "rldata10000_example1.csv").set_index("record")
    design = eb.UniformClusters(population=data.true.nunique())
    found = eb.estimate(data.pred, data.true, design, [m.P_block, m.R_block])
    np.testing.assert_allclose(found.mean, [833 / 1600, 833 / 1000], rtol=1e-12)


def test_degrees_of_freedom_are_the_kish_number_of_draws_less_its_share_of_the_mean():
    found = fitted(pps())
    drawn = pd.read_csv(GOLDEN / "s_ppswr.csv")
    for name, column in {"P": "PAIR", "R": "T2", "B3P": "size", "clR": None}.items():
        a = drawn.w * (drawn[column] if column else 1)
        wanted = a.sum() ** 2 / (a**2).sum() * 59 / 60
        assert found.df[list(METRICS).index(name)] == pytest.approx(wanted, rel=1e-12)
    assert found.df[list(METRICS).index("B3P")] == pytest.approx(59, rel=1e-12)


# Unequal probabilities without replacement (see golden/pps.R)
PPS = pd.read_csv(GOLDEN / "pps_results.csv").set_index(["case", "estimator", "quantity"]).value


def inclusion(file, **rest):
    def design(drawn):
        return eb.design.KnownInclusion(drawn.set_index("cluster").pi, **rest)

    return sample(file, design)[0]


def squares():
    size = pd.read_csv(GOLDEN / "clusters.csv")["size"]
    return float(((25 * size / size.sum()) ** 2).sum())


UNEQUAL = {
    "pps_hartley_rao": lambda: inclusion("s_pps.csv", squares=squares()),
    "pps_hartley_rao_sample": lambda: inclusion("s_pps.csv"),
    "poisson": lambda: inclusion("s_poisson.csv", fixed_size=False),
}


@pytest.mark.parametrize("case", UNEQUAL)
def test_unequal_probabilities(case):
    s = UNEQUAL[case]()
    found, totals = fitted(s), eb.engine.taylor(s, tuple(METRICS.values()))
    wanted = PPS[case]
    assert set(wanted.index.get_level_values(0)) == {"P", "R", "F1", "B3P", "B3R", "clP", "T2", "PAIR"}
    for name in ("P", "R", "F1", "B3P", "B3R", "clP"):
        j = list(METRICS).index(name)
        assert found.mean[j] == pytest.approx(wanted[name, "est"], rel=1e-10)
        assert found.sd[j] == pytest.approx(wanted[name, "se"], rel=1e-9)
    for name, column in {"T2": "true_links", "PAIR": "predicted_links"}.items():
        j = totals.names.index(column)
        assert totals.mean[j] == pytest.approx(wanted[name, "est"], rel=1e-10)
        assert totals.cov[j, j] ** 0.5 == pytest.approx(wanted[name, "se"], rel=1e-9)
