"""Stars: a sampled record and its candidates, each pair answered as a match or not."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

import pandas as pd

from ..._internal.errors import DataError, head
from ..._internal.tables import refuse_names, to_frame
from ...units.clustering import Clustering
from ...units.ids import ids, need_one_kind
from .faults import describe_counts


class Flaw(Enum):
    """A fault in answers about pairs of records."""

    CONTRADICTED = "the pair is judged a match, and not a match"
    UNANSWERED = "the pair has no answer"
    INTRANSITIVE = "the pair is judged not a match, but a chain of matches joins its records"
    IN_TWO_ENTITIES = "the record matches several sampled records that do not match each other"
    NOT_SAMPLED = "neither record of the pair was sampled; the pair is left out"


@dataclass(frozen=True, slots=True, eq=False)
class Stars:
    """Entities of sampled records, as `read_stars` makes them from answers about pairs.

    `answers`: columns entity (the id of its first sampled record), record; `draws`: entity of each sampled
    record, with repeats; `problems`: columns sampled, record, problem (of `Flaw`).
    """

    answers: pd.DataFrame
    draws: pd.Index
    problems: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """Labels for `erbayes.estimate`, record -> entity."""
        undecided = self.problems[self.problems["problem"] != Flaw.NOT_SAMPLED]
        if len(undecided):
            sampled, record, _ = undecided.iloc[0]
            raise DataError(
                f"{describe_counts(undecided['problem'])}; such as {sampled!r} and {record!r}: decide them "
                "first, see problems"
            )
        return self.answers.set_index("record")["entity"]


def read_stars(
    pairs: Any,
    sampled: Any,
    *,
    left: str = "unique_id_l",
    right: str = "unique_id_r",
    answer: str = "clerical_match_score",
    threshold: float | None = None,
) -> Stars:
    """Make entities from answers about sampled records and their candidates.

    The entity of a sampled record is the record itself and every candidate that is judged to match it. Every
    true match of a sampled record must be among its candidates, or the estimate of recall is too high.

    Parameters
    ----------
    pairs : DataFrame or Arrow table
        One row per judged pair. The sampled record is on either side.
    sampled : sequence of record ids
        Every sampled record, also those without candidates; one that was drawn twice is listed twice.
    left, right : str
        Columns of the two records. The defaults are those of Splink's table of clerical labels.
    answer : str
        Column of answers: True or 1 for a match, False or 0 for none, missing for no answer.
    threshold : float, optional
        A score of `threshold` or more is a match. None: answers are not scores.

    Returns
    -------
    Stars
        Faults in the answers do not stop the reading. `Stars.problems` lists them, and most of them stop
        `Stars.labels`.

    Examples
    --------
    >>> pairs = pd.DataFrame({"l": ["a", "a", "x"], "r": ["b", "c", "d"], "same": [True, False, True]})
    >>> stars = read_stars(pairs, ["a", "d", "e"], left="l", right="r", answer="same")
    >>> stars.labels.to_dict()
    {'a': 'a', 'd': 'd', 'e': 'e', 'b': 'a', 'x': 'd'}
    >>> list(stars.draws)
    ['a', 'd', 'e']
    """
    frame = to_frame(pairs)
    refuse_names([left, right, answer], list(frame.columns), "the table of pairs")
    drawn = ids(sampled, "sampled records")
    first, second = (ids(frame[c], f"column {c!r} of the pairs") for c in (left, right))
    need_one_kind(drawn, first, second)
    verdicts = _decide_matches(frame[answer], answer, threshold).to_numpy()
    judged = pd.DataFrame({"sampled": first, "record": second, "match": verdicts})
    # a pair has no order, so that each is read from both of its ends
    turned = judged.rename(columns={"sampled": "record", "record": "sampled"})
    both_ways = pd.concat([judged, turned[first != second]], ignore_index=True)
    not_sampled = judged[~(first.isin(drawn) | second.isin(drawn))]
    rays = both_ways[both_ways["sampled"].isin(drawn)].groupby(["sampled", "record"], sort=False)
    stars = rays["match"].agg(["min", "max"]).reset_index()

    matches = stars[(stars["min"] == 1) & (stars["sampled"] != stars["record"])]
    links = matches[matches["record"].isin(drawn)][["sampled", "record"]]
    once = drawn.unique()
    one, other = (once.get_indexer(pd.Index(links[end])) for end in ("sampled", "record"))
    joined = Clustering.joined(once, one, other)
    entity = pd.Series(joined.clusters.take(joined.codes), index=joined.records)
    drawn_alone = pd.DataFrame({"entity": entity.to_numpy(), "record": entity.index})
    matched = matches[["record"]].assign(entity=entity[matches["sampled"]].to_numpy())
    members = pd.concat([drawn_alone, matched]).drop_duplicates(ignore_index=True)

    within = stars.assign(entity=entity[stars["sampled"]].to_numpy()).merge(members, on=["entity", "record"])
    twice = members[members["record"].duplicated(keep=False)]
    flaws: dict[Any, pd.DataFrame] = {
        Flaw.CONTRADICTED: stars[stars["min"] < stars["max"]],
        Flaw.UNANSWERED: stars[stars["max"].isna()],
        Flaw.INTRANSITIVE: within[within["max"] == 0],
        Flaw.IN_TWO_ENTITIES: twice.rename(columns={"entity": "sampled"}),
        Flaw.NOT_SAMPLED: not_sampled,
    }
    listed = [rows[["sampled", "record"]].assign(problem=[flaw] * len(rows)) for flaw, rows in flaws.items()]
    problems = pd.concat(listed, ignore_index=True).astype(object)
    return Stars(members, pd.Index(entity[drawn]), problems)


def _decide_matches(answers: pd.Series, name: str, threshold: float | None) -> pd.Series:
    """1 for a match, 0 for none, NaN for no answer."""
    numbers = pd.to_numeric(answers, errors="coerce").astype("float64")
    other = answers.notna() & (numbers.isna() if threshold is not None else ~numbers.isin([0, 1]))
    if other.any():
        raise DataError(
            f"{int(other.sum()):,} of {len(other):,} answers {name!r} are neither match nor none, such as "
            f"{head(answers[other])}: give scores a threshold=0.5, and words a table[{name!r}].map("
            "{'match': True, 'non-match': False})"
        )
    return numbers if threshold is None else (numbers >= threshold).astype("float64").where(numbers.notna())
