"""Doubts about a fit, in words: what rests on entities that the sample lacks, and what is refused."""

from __future__ import annotations

from .._internal.errors import Grade, Remedy, Sentence
from ..auxiliary.estimates import known_labels
from ..metrics.definitions import pairwise_recall
from .by_law import FittedLaws
from .matched import FEWEST
from .totals import FittedTotals

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
    found = _warn_second_clustering(fit)
    if not is_disowned(fit):
        return found
    (lower, upper) = fit.apply([pairwise_recall]).interval(0.95)[0]
    sentences = [
        f"pairwise-recall rests on entities that the sample lacks: {100 * share:.0f} % of the true links "
        f"are expected in entities of more than {largest:,.0f} records, the largest in the sample. The "
        f"interval of the model, {lower:.2f} to {upper:.2f}, is too short for what is not known of these, so "
        "that the table leads with one that spans it and that of the closed form."
    ]
    if fit.by_law:
        under = fit.laws(pairwise_recall).query("not rejected")
        sentences.append(
            "Laws of sizes and errors that the sample does not tell apart put recall between "
            f"{under.lower.min():.2f} and {under.upper.max():.2f}."
        )
    what = " ".join(sentences).removesuffix(".")
    return [Sentence(what, Grade.CAUTION, Remedy.UNSEEN), *found]


def _warn_second_clustering(fit: FittedTotals) -> list[Sentence]:
    """Return the alarms about a second clustering that is refused, or used in doubt."""
    if (matched := fit.matched) is None:
        return []
    if why := refusal(fit):
        return [Sentence(f"The second clustering {matched.second.name!r} is not used. {why}", Grade.NOTE)]
    assert fit.truth is not None  # it is refused without
    found = known_labels(matched.second.name, matched.second.changes(fit.sample))
    share = (fit.by_second @ fit.truth.evidence.data["out_of_reach"]).mean()
    if share <= UNSEEN:
        return found
    what = (
        f"pairwise-recall rests on the second clustering {matched.second.name!r}: {100 * share:.0f} % of "
        f"the true links are taken from its clusters of more than {matched.largest:,.0f} records, the "
        "largest that a sampled entity matches"
    )
    return [*found, Sentence(what, Grade.CAUTION, Remedy.UNSEEN)]


def refusal(fit: FittedTotals) -> str:
    """Return in a sentence why nothing is taken from the second clustering; "" if something is."""
    if fit.matched is None or fit.truth is not None:
        return ""
    if not fit.matched.known.any():
        return (
            f"Fewer than {FEWEST} of its clusters, of two records or more, match a sampled entity, so "
            "that nothing is taken from it."
        )
    if not fit.matched.used:
        return (
            f"Nothing is taken from it: the prediction breaks {fit.matched.broken:,} sampled entities, "
            f"and only {fit.matched.mended:,} of them are more complete in a cluster of it."
        )
    guests = fit.matched.guests[fit.matched.size > fit.matched.largest].sum()
    return (
        f"Nothing is taken from it: {guests:,} sampled entities without a match lie in its clusters of "
        f"more than {fit.matched.largest:,.0f} records, the largest that a sampled entity matches."
    )
