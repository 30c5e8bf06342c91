"""Answers about drawn records and others, by clerks or by a machine, made into labels.

A *star* is a drawn record and its candidates, each answered as a match or not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd

from .._internal.arrays import BoolArray, refuse_names, to_frame
from .._internal.errors import DataError, number, refuse_cases
from ..design import UniformRecords
from ..units.clustering import Clustering
from ..units.ids import ids, same_kind


class Flaw(Enum):
    """A fault in answers about pairs of records."""

    DIFFERING = "the pair is judged a match, and not a match"
    UNANSWERED = "the pair has no answer"
    INTRANSITIVE = "the pair is judged not a match, but a chain of matches joins its records"
    IN_TWO_ENTITIES = "the record matches several sampled records that do not match each other"
    NOT_SAMPLED = "neither record of the pair was sampled; the pair is left out"


def describe_counts(faults: Iterable[Enum]) -> str:
    """Return the number of times of each fault, in words."""
    return "; ".join(f"{n:,} times: {fault.value}" for fault, n in Counter(faults).items())


@dataclass(frozen=True, slots=True, eq=False)
class Stars:
    """Entities of sampled records, as `read_stars` makes them from answers about pairs.

    `answers`: entity (the id of its first sampled record), record; `draws`: entity of each sampled record,
    with repeats; `problems`: sampled, record, problem (of `Flaw`).
    """

    answers: pd.DataFrame
    draws: pd.Index
    problems: pd.DataFrame

    @property
    def labels(self) -> pd.Series:
        """Labels for `erbayes.estimate`, record -> entity."""
        undecided = self.problems[self.problems["problem"] != Flaw.NOT_SAMPLED]
        if len(undecided):
            such = " and ".join(map(repr, undecided.iloc[0, :2]))
            raise DataError(
                f"{describe_counts(undecided['problem'])}; such as {such}: decide them first, see problems"
            )
        return self.answers.set_index("record")["entity"]


def read_stars(
    pairs: Any,
    sampled: Any,
    *,
    left: str = "unique_id_l",
    right: str = "unique_id_r",
    answer: str = "clerical_match_score",
) -> Stars:
    """Make entities from answers about sampled records and their candidates.

    The entity of a sampled record is the record itself and every candidate that is judged to match it. Every
    true match of a sampled record must be among its candidates, or the estimate of recall is too high. Faults
    in the answers do not stop the reading: `Stars.problems` lists them, and most of them stop `Stars.labels`.

    Parameters
    ----------
    pairs : DataFrame or Arrow table
        One row per judged pair. The sampled record is on either side.
    sampled : sequence of record ids
        Every sampled record, also those without candidates; one that was drawn twice is listed twice.
    left, right, answer : str
        Columns of the two records, and of answers: True or 1 for a match, False or 0 for none, missing for no
        answer. The defaults are those of Splink's table of clerical labels.

    Examples
    --------
    >>> pairs = pd.DataFrame({"l": ["a", "a", "x"], "r": ["b", "c", "d"], "same": [True, False, True]})
    >>> stars = read_stars(pairs, ["a", "d", "e"], left="l", right="r", answer="same")
    >>> stars.labels.to_dict(), list(stars.draws)
    ({'a': 'a', 'd': 'd', 'e': 'e', 'b': 'a', 'x': 'd'}, ['a', 'd', 'e'])
    """
    drawn = ids(sampled, "sampled records")
    judged = _read_pairs(pairs, drawn, left, right, answer)
    # a pair has no order, so that each is read from both of its ends
    turned = judged.rename(columns={"sampled": "record", "record": "sampled"})
    both_ways = pd.concat([judged, turned[turned["sampled"] != turned["record"]]], ignore_index=True)
    not_sampled = judged[~(judged["sampled"].isin(drawn) | judged["record"].isin(drawn))]
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

    apart = stars[stars["max"] == 0].assign(entity=lambda rows: entity[rows["sampled"]].to_numpy())
    twice = members[members["record"].duplicated(keep=False)]
    flaws: dict[Any, pd.DataFrame] = {
        Flaw.DIFFERING: stars[stars["min"] < stars["max"]],
        Flaw.UNANSWERED: stars[stars["max"].isna()],
        Flaw.INTRANSITIVE: apart[occurs(apart, members, ["entity", "record"])],
        Flaw.IN_TWO_ENTITIES: twice.rename(columns={"entity": "sampled"}),
        Flaw.NOT_SAMPLED: not_sampled,
    }
    listed = [pd.DataFrame(columns=["sampled", "record", "problem"])]
    listed += [rows[["sampled", "record"]].assign(problem=flaw) for flaw, rows in flaws.items() if len(rows)]
    return Stars(members, pd.Index(entity[drawn]), pd.concat(listed, ignore_index=True).astype(object))


def occurs(rows: pd.DataFrame, others: pd.DataFrame, by: Sequence[str]) -> BoolArray:
    """Return whether some of the other rows have the same values in the columns `by`, (rows,)."""
    # answers are few, and an index of pandas for them takes more time than a set
    one, other = (zip(*(table[name].tolist() for name in by), strict=True) for table in (rows, others))
    known = set(other)
    return np.fromiter((row in known for row in one), dtype=np.bool_, count=len(rows))


def _read_pairs(pairs: Any, drawn: pd.Index, left: str, right: str, answer: str) -> pd.DataFrame:
    """Return judged pairs: sampled and record, of either of which nothing says that it was, and match.

    A match is 1, none is 0, and NaN is no answer.
    """
    frame = to_frame(pairs)
    refuse_names([left, right, answer], list(frame.columns), "the table of pairs")
    first, second = (ids(frame[c], f"column {c!r} of the pairs") for c in (left, right))
    for column, end in ((left, first), (right, second)):
        same_kind(drawn, end, f"column {column!r} of the pairs", "ids of sampled records")
    verdicts = pd.to_numeric(frame[answer], errors="coerce").astype("float64")
    unclear = frame[answer].notna() & ~verdicts.isin([0, 1])
    refuse_cases(
        frame[answer][unclear],
        f"answers {answer!r} are neither match nor none",
        ": make scores and words True, False or missing, as in "
        f"table[{answer!r}].map({{'match': True, 'non-match': False}})",
        of=len(unclear),
    )
    return pd.DataFrame({"sampled": first, "record": second, "match": verdicts.to_numpy()})


COLUMNS = ["drawn", "record", "probability"]
"""Columns of the answers."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineLabels:
    """Cheap labels of drawn records, as `machine_labels` makes them.

    `labels`: the entity of each record; `draws`: that of each of the `drawn` records, in order; `unsure`:
    those without any probability; `shared`: number of records that several answers claim.
    """

    labels: pd.Series
    drawn: pd.Index
    draws: pd.Index
    unsure: pd.Index
    shared: int

    @property
    def design(self) -> UniformRecords:
        """The design of the draws, for `erbayes.two_phase`, if records were drawn uniformly."""
        return UniformRecords(draws=self.draws.tolist())

    def __repr__(self) -> str:
        return (
            f"MachineLabels({len(self.drawn):,} draws, {len(self.labels):,} records of "
            f"{self.labels.nunique():,} entities, {len(self.unsure):,} draws unsure)"
        )


def machine_labels(
    answers: Any, drawn: Any, prediction: Any = None, *, threshold: float = 0.5
) -> MachineLabels:
    """Make cheap labels from the answers of a machine about drawn records.

    A record belongs to the entity of a drawn record if its probability is at least the threshold, or, without
    a probability, if it is in the same predicted cluster. These rules ignore careful labels and the order of
    draws, as `erbayes.two_phase` needs.

    Parameters
    ----------
    answers : DataFrame or Arrow table
        One row per drawn record and record that was shown with it: columns drawn, record and probability, the
        last one that both are one entity. It is missing if the machine is unsure, and the record too if it is
        unsure about every record. A record that is alone has a row with itself.
    drawn : sequence of record ids, (n',)
        The drawn records, in the order of drawing. Each has a row or more.
    prediction : memberships, optional
        Needed if a probability is missing.
    threshold : float in (0, 1]
        The least probability of a record that belongs.

    Notes
    -----
    Labels must be a clustering. Two drawn records have one entity if the mean of the answers about both is at
    least the threshold. Any other record that several answers claim belongs where its probability is largest,
    and then to the drawn record whose id sorts first. No sums are made of probabilities, because that of a
    pair is not the product of two.

    Examples
    --------
    >>> answers = pd.DataFrame({"drawn": [1, 1, 5], "record": [2, 3, None], "probability": [0.9, 0.2, None]})
    >>> machine = machine_labels(answers, [1, 5], prediction={1: "a", 2: "a", 3: "b", 5: "c", 6: "c"})
    >>> machine.labels.to_dict()
    {1: 1, 2: 1, 5: 5, 6: 5}
    >>> machine
    MachineLabels(2 draws, 4 records of 2 entities, 1 draws unsure)
    """
    number(threshold, "threshold", lambda x: 0 < x <= 1, "lie above 0 and be at most 1")
    drawn = ids(drawn, "drawn records")
    table = _read_answers(answers, drawn)
    known = table["probability"].notna()
    unsure = drawn.unique()[~drawn.unique().isin(table["drawn"][known])]
    if not known.all():
        table = _as_predicted(table, known, unsure, prediction, threshold)
    entity = _name_entities(table, drawn.unique(), threshold)
    themselves = pd.DataFrame({"drawn": entity.index, "record": entity.index, "probability": 1.0})
    others = table[(table["probability"] >= threshold) & ~table["record"].isin(drawn)]
    claims = pd.concat([themselves, others], ignore_index=True)
    claims["entity"] = entity[claims["drawn"]].to_numpy()
    several = claims.groupby("record", sort=False)["entity"].nunique() > 1
    # the likeliest first, and among equals the first by name, so that the order of answers does not matter
    claims = claims.sort_values(["probability", "entity"], ascending=[False, True], kind="stable")
    labels = claims.drop_duplicates("record").set_index("record")["entity"].sort_index()
    return MachineLabels(labels, drawn, pd.Index(entity[drawn]), unsure, int(several.sum()))


def _read_answers(answers: Any, drawn: pd.Index) -> pd.DataFrame:
    frame = to_frame(answers)
    refuse_names(COLUMNS, list(frame.columns), "the table of answers")
    tops = ids(frame["drawn"], "column 'drawn' of the answers")
    probability = pd.to_numeric(frame["probability"], errors="coerce").astype(float)
    wrong = frame["probability"].notna() & ~probability.between(0, 1)
    then = ": divide percentages by 100, and leave out what is not known"
    refuse_cases(
        frame["probability"][wrong], "answers 'probability' are not from 0 to 1", then, of=len(wrong)
    )
    unnamed = frame["record"].isna()
    if lacking := int((unnamed & probability.notna()).sum()):
        raise DataError(f"{lacking:,} of {len(frame):,} answers have a probability and no 'record'")
    record = pd.Series(tops, dtype=object)
    named = frame["record"][~unnamed].convert_dtypes()  # missing ones make floats of whole numbers
    record[~unnamed.to_numpy()] = ids(named, "column 'record' of the answers")
    records = pd.Index(record.tolist())
    for column, end in (("drawn", tops), ("record", records)):
        same_kind(drawn, end, f"column {column!r} of the answers", "ids of drawn records")
    rows = ": give each a row or more, without a probability if the machine cannot tell"
    unanswered = drawn.unique()[~drawn.unique().isin(tops)]
    refuse_cases(unanswered, "drawn records have no answer", rows, of=drawn.nunique())
    strangers, remedy = tops[~tops.isin(drawn)].unique(), ": list every draw, in the order of drawing"
    refuse_cases(strangers, "records of column 'drawn' were not drawn", remedy)
    pairs = pd.MultiIndex.from_arrays([tops, records])
    refuse_cases(pairs[pairs.duplicated()].tolist(), "pairs have several answers", ": keep one of them")
    return pd.DataFrame({"drawn": tops, "record": records, "probability": probability.to_numpy()})


def _name_entities(table: pd.DataFrame, drawn: pd.Index, threshold: float) -> pd.Series:
    """Return the entity of each drawn record: the first of the drawn records that are joined with it."""
    links = table[table["record"].isin(drawn) & (table["record"] != table["drawn"])]
    place = pd.Series(np.arange(len(drawn)), index=drawn)
    ends = np.sort([place[links["drawn"]], place[links["record"]]], axis=0)
    means = links["probability"].groupby([ends[0], ends[1]]).mean()
    left, right = (means[means >= threshold].index.get_level_values(i) for i in (0, 1))
    joined = Clustering.joined(drawn, left, right)
    first = pd.Series(joined.records).groupby(joined.codes).min()
    return pd.Series(first[joined.codes].to_numpy(), index=joined.records)


def _as_predicted(
    table: pd.DataFrame, known: pd.Series, unsure: pd.Index, prediction: Any, threshold: float
) -> pd.DataFrame:
    """Return the answers with the threshold as probability if the prediction says that a record belongs."""
    if prediction is None:
        raise DataError(
            f"the machine cannot tell in {int((~known).sum()):,} of {len(known):,} answers: "
            "pass prediction=, whose clusters then decide"
        )
    clusters = Clustering.of(prediction, "prediction")
    named = pd.Index(pd.concat([table["drawn"], table["record"]]).unique())
    absent = named[~named.isin(clusters.records)]
    remedy = ": drop these answers, and draws of these records"
    refuse_cases(absent, "records of the answers are not in the prediction", remedy)
    code = pd.Series(clusters.codes, clusters.records)
    together = code[table["drawn"]].to_numpy() == code[table["record"]].to_numpy()
    table = table.assign(probability=np.where(known, table["probability"], threshold * together))
    homes = code[unsure].rename_axis("drawn").rename("code").reset_index()
    members = code[code.isin(homes["code"])].rename_axis("record").rename("code").reset_index()
    as_predicted = homes.merge(members, on="code")[["drawn", "record"]].assign(probability=threshold)
    return pd.concat([table[~table["drawn"].isin(unsure)], as_predicted], ignore_index=True)
