"""A fit in words: its alarm, and how it depends on the sample, the prediction and the priors."""

from __future__ import annotations

import numpy as np

from .._internal import remedies
from .._internal.arrays import FloatArray
from .._internal.errors import Grade, NotIdentified, Sentence
from ..engine.diagnostics import reach_large, show_heap
from ..metrics.columns import PREDICTED_LINKS, RECORDS, TRUE_LINKS, pairs
from ..metrics.definitions import pairwise_precision, pairwise_recall
from ..metrics.estimates import Estimates
from ..units.settled import SETTLED
from .heap import CappedReading
from .totals import FittedTotals

SENSITIVE = 0.3
"""Shift of a mean, in posterior standard deviations, above which an answer depends on a prior."""
UNREACHED = 0.25
"""Largest share of the true links in entities larger than any sampled one for which there is no alarm."""
SURE = 0.5
"""Length of the 95 % interval of recall over the unreached share, from which there is no alarm.

The unreached links alone could move recall by their share. Of 300 samples of five populations, 130 had a
share above `UNREACHED`. All 26 of their intervals that missed were shorter than half of it, and 37 of the 104
others.
"""


def is_unreliable(fit: FittedTotals) -> bool:
    """Return True if the interval of recall is far shorter than the unreached share of the true links."""
    try:
        recall = fit.apply([pairwise_recall])
    except NotIdentified:  # no true link in some draws, whose recall is refused
        return False
    (lower, upper) = recall.interval(0.95)[0]
    settled, share = bool(np.ptp(recall.unseen.certain[0]) == 0), float(fit.unreached_share.mean())
    return not settled and share > UNREACHED and bool(upper - lower < SURE * share)


def find_alarms(fit: FittedTotals, capped: CappedReading | None) -> list[Sentence]:
    """Return the sentences of `Fit.alarms`. `fit` is that without the reading of a heap."""
    if capped is not None and capped.chance > 0:
        if capped.chance > 1 - SETTLED:
            return [Sentence(f"{capped}.", Grade.NOTE)]
        return [Sentence(str(capped), Grade.CAUTION, remedies.LOOK, show_heap(fit.sample))]
    if not is_unreliable(fit):
        return []
    share, largest = fit.unreached_share.mean(), fit.evidence.entities.size.max()
    (lower, upper) = fit.apply([pairwise_recall]).interval(0.95)[0]
    what = (
        f"pairwise-recall depends on entities larger than any in the sample: {100 * share:.0f} % of the true "
        f"links are expected in entities of more than {largest:,.0f} records. The interval of the model, "
        f"{lower:.2f} to {upper:.2f}, is too short for what is not known of these"
    )
    return [Sentence(what, Grade.CAUTION, *reach_large(fit.sample))]


def explained(fit: FittedTotals, level: float, answer: Estimates) -> str:
    """Return the text of `Fit.explain`, with the `answer` about precision and recall."""
    return "\n\n".join([_explain_sample(fit), _explain_prediction(fit), *_explain_priors(fit, level, answer)])


def _explain_sample(fit: FittedTotals) -> str:
    e, several = fit.evidence.entities, fit.evidence.entities.several
    known = fit.evidence.data["sampled_true_links"] / np.maximum(fit.total(TRUE_LINKS), 1.0)
    foreign = fit.evidence.units.column(PREDICTED_LINKS) - e.links
    return (
        f"The sample has {_format_count(int(e.draws.sum()), 'draw')} of "
        f"{_format_count(len(e.size), 'entity')}, of {e.size.min():,.0f} to {e.size.max():,.0f} records, "
        f"with {_format_percent(known)} of the true links. "
        f"{(e.broken & several).sum():,} of {several.sum():,} with two records or more are broken, and "
        f"{(foreign > 0).sum():,} of {len(e.size):,} meet a foreign record."
    )


def _explain_prediction(fit: FittedTotals) -> str:
    known, largest = fit.evidence.units.known, fit.evidence.entities.size.max()
    assert known is not None  # a fit needs the sizes of predicted clusters
    links = known.count * pairs(known.size)
    in_larger = links[known.size > largest].sum() / max(links.sum(), 1.0)
    return (
        f"The prediction has {known.total(RECORDS):,.0f} records in {known.count.sum():,.0f} clusters of up "
        f"to {known.size.max():,.0f} records, and {links.sum():,.0f} links. {_format_share(in_larger)} of "
        f"its links are in clusters of more than {largest:,.0f} records, the size of the largest sampled "
        "entity. Every posterior draw has as many records, and its right links are a share of these links."
    )


def _explain_priors(fit: FittedTotals, level: float, answer: Estimates) -> list[str]:
    """Return a paragraph about each metric, after that of a heap."""
    draws, largest = fit.apply([pairwise_precision, pairwise_recall]), fit.evidence.entities.size.max()
    (true, larger), shift = _share_unsampled_sizes(fit), fit.prior_shift(draws)
    unlabelled = fit.evidence.data["unlabelled_links"].sum() / max(fit.evidence.predicted_links, 1.0)
    extrapolated = {
        pairwise_precision.name: (
            f"Of {_format_share(unlabelled)} of the predicted links no record is labelled, and the share of "
            "them that is right depends on the sizes of their clusters alone"
        ),
        pairwise_recall.name: (
            f"{_format_percent(true)} of the true links are expected in entities of sizes without a draw, "
            f"and {_format_percent(larger)} in entities of more than {largest:,.0f} records"
        ),
    }
    paragraphs = [] if fit.capped is None else [f"{fit.capped}."]
    bounds = zip(draws.interval(level), answer.interval(level), strict=True)
    for name, mean, ((lower, upper), (low, high)) in zip(draws.names, draws.mean, bounds, strict=True):
        shifts = ", ".join(f"{x:.2f} ({part})" for part, x in shift.loc[name].items())
        sentences = [
            f"{name} is {mean:.3f}, {100 * level:g} % interval {lower:.3f} to {upper:.3f}.",
            f"{extrapolated[name]}.",
            f"If the prior of one part counted twice, the mean would move by {shifts} posterior standard "
            f"deviations. Above {SENSITIVE:g} an answer depends on that prior.",
        ]
        if name == pairwise_recall.name and is_unreliable(fit):
            sentences.append("The alarm above calls this interval too short.")
        sentences.append(f"With the share of the closed form it is {low:.3f} to {high:.3f}.")
        paragraphs.append(" ".join(sentences))
    return paragraphs


def _share_unsampled_sizes(fit: FittedTotals) -> list[FloatArray]:
    """Return shares of the true links in entities of sizes in whose bin no draw is, (chain, draw) each.

    They are of all these, and of those in entities larger than any sampled one.
    """
    data, s = fit.evidence.data, fit.size
    unsampled = ~np.isin(np.arange(len(s)), data["sampled"])
    true, all_true = fit.population.number * pairs(s), np.maximum(fit.population.true, 1.0)
    larger = unsampled & (s > fit.evidence.entities.size.max())
    return [true[..., unsampled].sum(-1) / all_true, true[..., larger].sum(-1) / all_true]


def _format_percent(shares: FloatArray) -> str:
    """Return the mean and middle 95 % of posterior draws of a share."""
    low, high = np.quantile(shares, [0.025, 0.975])
    return f"{_format_share(shares.mean())} (95 %: {_format_share(low)} to {_format_share(high)})"


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else f"{100 * share:.2g} %"


def _format_count(number: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"
