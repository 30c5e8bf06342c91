"""What a model says before any label: against formulas of its priors, and against a fit of few draws."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

import erbayes as eb
from erbayes import bayes
from erbayes import metrics as m
from erbayes.bayes.data import data_of_prediction
from erbayes.units.units import histogram

pytestmark = pytest.mark.slow
P, R = m.pairwise_precision, m.pairwise_recall
SIZES = np.repeat([1, 2, 3, 5, 9, 20], [900, 500, 300, 150, 60, 12])
PREDICTION = pd.Series(np.repeat(np.arange(len(SIZES)), SIZES))


def exactly(value):
    return bayes.NormalPrior(value, 1e-6)


RETENTION = {
    "break_level": exactly(-0.7),
    "share_level": exactly(0.4),
    "share_grain": exactly(0.0),
    "precision_level": exactly(1.5),
    **{f"{of}_slope": bayes.StudentTPrior(0.0, 1e-6) for of in ("precision", "break", "share")},
    **{"break_amplitude": 1e-6, "share_amplitude": 1e-6, "unbroken": 0.0},
}
SMOOTH = bayes.PredictionInformed(
    slope=1e-6, amplitude=1e-6, larger_share=exactly(-30.0), single=bayes.StudentTPrior(0.0, 1e-6)
)


def recall_by_hand(shape):
    """Σ M c2 (a + (1 - a) w (s - 2)/s) / Σ M c2, with M as predicted and w of a Poisson number of pieces."""
    data = data_of_prediction(histogram(SIZES))
    s, links = data["size"], np.exp(data["log_predicted"]) * data["size"] * (data["size"] - 1) / 2
    hazard = np.exp(shape)
    intact, pieces = np.exp(-hazard), hazard / (1 - np.exp(-hazard))
    kept = intact + (1 - intact) * np.maximum(s - 2, 0) / s * expit(0.4 - np.log(pieces))
    return links @ kept / links.sum()


def test_certain_priors_give_the_recall_of_their_formulas():
    model = bayes.SizeModel(SMOOTH, bayes.Retention(**RETENTION), bayes.Mates(all_right=1 - 1e-12))
    found = bayes.prior(PREDICTION, model, [P, R], draws=2000, rng=1)
    assert found.values.shape == (1, 2000, 2), "all have true links"
    assert found[P].lower == found[P].upper == 1
    assert found[R].estimate == pytest.approx(recall_by_hand(-0.7), abs=0.01)
    assert found[R].sd < 0.08, "chance alone, of which giants break"


def test_precision_is_that_of_the_known_clusters():
    """Σ L_m q(m) / Σ L_m and Σ N_m (1 + (m - 1) q(m))/m / N, by clusters one by one."""
    stiff = {"amplitude": 1e-6, "slope": bayes.StudentTPrior(-0.5, 1e-6), "all_right": 0.0}
    mates = bayes.Mates(exactly(1.0), **stiff)
    found = bayes.prior(PREDICTION, bayes.SizeModel(mates=mates), [P, m.b3_precision], draws=4000, rng=1)
    largest = data_of_prediction(histogram(SIZES))["cluster_x"]
    right, links, b3 = 0.0, 0.0, 0.0
    for size in SIZES:
        at = data_of_prediction(histogram(SIZES))["size"]
        x = np.log2(at[at <= size][-1] if size < 8 else at[np.argmin(abs(at - size))])
        q = expit(1.0 - 0.5 * (x - largest.mean()))
        right, links = right + size * (size - 1) / 2 * q, links + size * (size - 1) / 2
        b3 += 1 + (size - 1) * q
    assert found[P].estimate == pytest.approx(right / links, abs=0.01)
    assert found["b3-precision"].estimate == pytest.approx(b3 / SIZES.sum(), abs=0.01)


def test_draws_of_the_default_are_wide_and_repeatable():
    found = bayes.prior(PREDICTION, rng=3)
    assert found.names == (P.name, R.name, m.pairwise_f1.name)
    table = found.table()
    assert (table.lower < 0.6).all() and (table.upper > 0.95).all() and (table.kind == "equal-tailed").all()
    np.testing.assert_array_equal(found.values, bayes.prior(PREDICTION, rng=3).values)
    assert not np.array_equal(found.values, bayes.prior(PREDICTION, rng=4).values)


def test_a_fit_of_one_draw_is_near_the_prior():
    """A single draw teaches little: its posterior lies where the prior lies."""
    true = PREDICTION.to_numpy()
    sample = eb.Sample(eb.measure(PREDICTION, PREDICTION[true == 1500]), eb.UniformRecords([1500]))
    fit = bayes.fast(sample, draws=1000, rng=1)
    before = bayes.prior(PREDICTION, metrics=[P, R], rng=5)
    np.testing.assert_allclose(fit.apply([P, R]).estimate, before.estimate, atol=0.2)


def test_a_model_in_which_all_mates_are_right_fits():
    drawn = [1500, 1700, 1800]
    sample = eb.Sample(eb.measure(PREDICTION, PREDICTION[PREDICTION.isin(drawn)]), eb.UniformRecords(drawn))
    fit = bayes.fast(sample, bayes.SizeModel(mates=bayes.Mates(all_right=1 - 1e-12)), draws=200, rng=1)
    assert fit.apply([P]).interval()[0].tolist() == [1, 1]


def test_what_has_no_prior_is_refused():
    with pytest.raises(
        eb.NotIdentified, match=r"the prior of '.*' is not drawn, but those of links and of B-cubed"
    ):
        bayes.prior(PREDICTION, metrics="b3-recall", draws=100)
    with pytest.raises(eb.DataError, match="draws must be 50 or more"):
        bayes.prior(PREDICTION, draws=10)
    with pytest.raises(eb.DataError, match="SizeModel is a class: pass an object of it"):
        bayes.prior(PREDICTION, bayes.SizeModel)
