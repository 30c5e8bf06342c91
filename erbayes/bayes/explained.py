"""Words about a fit: alarms, and what it depends on, which are the sample, the prediction and the priors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._internal.arrays import FloatArray
from .._internal.errors import Grade, Remedy, Sentence
from ..metrics.columns import RECORDS, TRUE_LINKS, pairs
from ..metrics.definitions import pairwise_precision, pairwise_recall
from .by_law import FittedLaws
from .laws import OneOf
from .totals import FittedTotals

RESTS = 0.3
"""Shift of a mean, in posterior standard deviations, above which an answer rests on a prior."""
UNSEEN = 0.25
"""Largest share of the true links in entities beyond the sampled sizes for which there is no alarm.

Above it intervals of pools span both of their members, which covered recall best under uniform clusters.
"""
SURE = 0.5
"""Length of the 95 % interval of recall over the share of unseen links, from which there is no alarm.

The unseen links alone could move recall by their share. Of 300 samples of five populations, 130 had a share
above `UNSEEN`. All 26 of their intervals that missed were shorter than half of it, and 37 of the 104 others.
"""


def is_unseen(fit: FittedTotals) -> bool:
    """Return whether over a quarter of the true links are expected in entities beyond the sampled sizes."""
    return float(fit.unseen.mean()) > UNSEEN


def is_disowned(fit: FittedTotals) -> bool:
    """Return whether the interval of recall is far shorter than the share of links that no draw has seen."""
    (lower, upper) = fit.apply([pairwise_recall]).interval(0.95)[0]
    return is_unseen(fit) and bool(upper - lower < SURE * float(fit.unseen.mean()))


def alarms(fit: FittedLaws) -> list[Sentence]:
    """Return the sentences of `Fit.alarms`."""
    share, largest = fit.unseen.mean(), fit.evidence.entities.size.max()
    if not is_disowned(fit):
        return []
    (lower, upper) = fit.apply([pairwise_recall]).interval(0.95)[0]
    sentences = [
        f"pairwise-recall rests on entities that the sample lacks: {100 * share:.0f} % of the true links "
        f"are expected in entities of more than {largest:,.0f} records, the largest in the sample. The "
        f"interval of the model, {lower:.2f} to {upper:.2f}, is too short for what is not known of these, so "
        "that the one to quote spans it and that of the closed form."
    ]
    if fit.by_law:
        under = fit.laws(pairwise_recall).query("not rejected")
        sentences.append(
            "Laws of sizes and errors that the sample does not tell apart put recall between "
            f"{under.lower.min():.2f} and {under.upper.max():.2f}."
        )
    what = " ".join(sentences).removesuffix(".")
    return [Sentence(what, Grade.CAUTION, Remedy.UNSEEN)]


def explained(fit: FittedLaws, level: float, pooled: Mapping[str, FloatArray]) -> str:
    """Return the text of `Fit.explain`, with the intervals of metrics that are pooled, (2,) each."""
    return "\n\n".join([_explain_sample(fit), _explain_prediction(fit), *_explain_priors(fit, level, pooled)])


def _explain_sample(fit: FittedTotals) -> str:
    """Return a paragraph about sizes and errors of the sampled entities."""
    e, several = fit.evidence.entities, fit.evidence.entities.several
    known = fit.evidence.data["sampled_true_links"] / np.maximum(fit.total(TRUE_LINKS), 1.0)
    return (
        f"The sample has {_format_count(int(e.draws.sum()), 'draw')} of "
        f"{_format_count(len(e.size), 'entity')}, of {e.size.min():,.0f} to {e.size.max():,.0f} records. "
        f"They hold {_format_percent(known)} of the true links. "
        f"{(e.broken & several).sum():,} of {several.sum():,} with two records or more are broken, and "
        f"{(e.foreign > 0).sum():,} of {len(e.size):,} meet a foreign record."
    )


def _explain_prediction(fit: FittedTotals) -> str:
    known, largest = fit.evidence.units.known, fit.evidence.entities.size.max()
    assert known is not None  # a fit needs the sizes of predicted clusters
    links = known.count * pairs(known.size)
    beyond = links[known.size > largest].sum() / max(links.sum(), 1.0)
    return (
        f"The prediction has {known.total(RECORDS):,.0f} records in {known.count.sum():,.0f} clusters of up "
        f"to {known.size.max():,.0f} records, and {links.sum():,.0f} links. {_format_share(beyond)} of its "
        f"links are in clusters of more than {largest:,.0f} records, the size of the largest sampled entity. "
        "The right and the false links of every posterior draw add up to this number of links."
    )


def _explain_priors(fit: FittedLaws, level: float, pooled: Mapping[str, FloatArray]) -> list[str]:
    """Return a paragraph about the laws, and one about each metric."""
    draws, largest = fit.apply([pairwise_precision, pairwise_recall]), fit.evidence.entities.size.max()
    (true, larger, false), shift = _share_unseen_links(fit), fit.prior_shift(draws)
    ranges = fit.laws([pairwise_precision, pairwise_recall], level).query("not rejected")
    filled = {
        pairwise_precision.name: (
            f"{_format_percent(false)} of the false links belong to entities of sizes that no draw has seen"
        ),
        pairwise_recall.name: (
            f"{_format_percent(true)} of the true links are expected in entities of sizes that no draw has "
            f"seen, and {_format_percent(larger)} in entities of more than {largest:,.0f} records"
        ),
    }
    paragraphs = [" ".join(["Priors and laws fill in the rest.", *_explain_laws(fit)])]
    for name, mean, (lower, upper) in zip(draws.names, draws.mean, draws.interval(level), strict=True):
        moves = ", ".join(f"{x:.2f} ({part})" for part, x in shift.loc[name].items())
        sentences = [
            f"{name} is {mean:.3f}, {100 * level:g} % interval {lower:.3f} to {upper:.3f}.",
            f"{filled[name]}.",
            f"If the prior of one part counted twice, the mean would move by {moves} posterior standard "
            f"deviations. Above {RESTS:g} an answer rests on that prior.",
        ]
        if name in pooled:
            low, high = pooled[name]
            if name == pairwise_recall.name and is_disowned(fit):
                sentences.append("Its own alarm disowns this interval.")
            sentences.append(f"The one to quote pools it with the closed form's, {low:.3f} to {high:.3f}.")
        if len(ranges):
            under = ranges.loc[[name]]
            sentences.append(
                f"The intervals under the {len(under)} combinations of laws that the sample does not reject "
                f"reach from {under.lower.min():.3f} to {under.upper.max():.3f}."
            )
        paragraphs.append(" ".join(sentences))
    return paragraphs


def _share_unseen_links(fit: FittedTotals) -> list[FloatArray]:
    """Return shares of links in entities of sizes in whose bin no draw is, (chain, draw) each.

    They are of the true links, of those in entities larger than any sampled one, and of the false links, of
    which half a link is in each entity.
    """
    data, number, s = fit.evidence.data, fit.population.number, fit.size
    unseen = ~np.isin(np.arange(len(s)), data["sampled"])
    larger = unseen & (s > fit.evidence.entities.size.max())
    true, false = number * pairs(s), number * s * fit.by_size.get("foreign", np.zeros(len(s)))
    all_true = np.maximum(fit.population.true, 1.0)
    all_false = np.maximum(false.sum(-1) + data["sampled_foreign"], 1e-300)
    return [
        true[..., unseen].sum(-1) / all_true,
        true[..., larger].sum(-1) / all_true,
        false[..., unseen].sum(-1) / all_false,
    ]


def _explain_laws(fit: FittedTotals) -> list[str]:
    """Return a sentence for each part with several laws: their probabilities with and without the sample."""
    sentences = []
    for place, part in fit.model.tied.items():
        law: Any = fit.draws.parameters.get(f"{place}_law")
        if not isinstance(part, OneOf) or law is None:
            continue
        weights = (
            f"'{name}' {np.mean(law == i):.2f} (before the sample {before:.2f})"
            for i, (name, before) in enumerate(part.probability.items())
        )
        sentences.append(f"Probabilities of the laws of {place} are {', '.join(weights)}.")
    return sentences


def _format_percent(shares: FloatArray) -> str:
    """Return the mean and middle 95 % of posterior draws of a share."""
    low, high = np.quantile(shares, [0.025, 0.975])
    return f"{_format_share(shares.mean())} (95 %: {_format_share(low)} to {_format_share(high)})"


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %" if share == 0 or share >= 0.01 else f"{100 * share:.2g} %"


def _format_count(number: int, noun: str) -> str:
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{number:,} {noun if number == 1 else several}"
