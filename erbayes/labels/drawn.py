"""Draws from a prediction: what was drawn, how, and the design to estimate by afterwards."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from .._internal import digits, errors, files, remedies
from .._internal.arrays import BoolArray, IntArray
from ..design.changes import Responding, size_classes
from ..design.contract import Design, series_by_id
from ..units.clustering import Clustering
from ..units.ids import as_index
from ..units.settled import find_heap
from ..units.units import KnownTotals
from . import plans
from .source import ACCEPTED, ORDER, change, fingerprint_of, open_source

MOST, EACH = 1_000_000, 10
"""Draws above both, the number and the draws per record, are refused, since ten per record leave out
one of e^10 = 22,000 records, and a million rows take about a second, so that nobody needs more."""
MULTIPURPOSE = plans.Multipurpose()
"""The plan of those who name none."""
NO_MEMBERS = pd.DataFrame({"record": [], "cluster": []})
"""The members of draws that are read without them."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RecordDraws(digits.Brief):
    """Records drawn from a prediction, to be labelled.

    Attributes
    ----------
    table : DataFrame
        One row per draw, in the order of the draws, with repeats. Columns: record; cluster, the predicted
        one; size, the records of that cluster; probability, that of the record at one draw, or to be in the
        sample if it has no repeats; stratum or value, if the plan has them.
    plan, n, seed : Plan, int, int
        As they were asked for.
    known : KnownTotals
        Sizes of all predicted clusters.
    fingerprint : str
        Of the prediction: N, the number of clusters, and a digest of all sizes and of `members`.
    members : DataFrame
        record, cluster: all records of the predicted clusters of the draws.
    values : Series or None, record -> value
        The values of all records, if they were drawn by values in memory. They are not written.
    """

    table: pd.DataFrame
    plan: plans.Plan
    n: int
    seed: int
    known: KnownTotals
    fingerprint: str
    members: pd.DataFrame = field(default_factory=lambda: NO_MEMBERS)
    values: pd.Series | None = None

    @property
    def of_clusters(self) -> bool:
        """Return whether predicted clusters were drawn, and not records."""
        return isinstance(self.plan, plans.PredictedClusters)

    @property
    def records(self) -> int:
        """Return the number of records N of the prediction."""
        return int(self.known.size @ self.known.count)

    def design(
        self,
        labels: Any,
        values: Any = None,
        *,
        unresolved: Sequence[Any] | pd.Index = (),
        unlabelled: Sequence[Any] | pd.Index = (),
        classes: Any = None,
    ) -> Design:
        """Return the design of the draws, once their entities are labelled.

        Parameters
        ----------
        labels : memberships
            True entity of every record of each drawn entity.
        values : Series or mapping, record -> value, optional
            Needed for plans by values, if these are not in memory: the value of every labelled record.
        unresolved : sequence of record ids
            Drawn records without an answer: nonresponse (see `erbayes.design.Responding`), which
            `PredictedClusters` by size does not take.
        unlabelled : sequence of record ids
            Drawn records that nobody has begun. If they are the last ones, since labelling stopped early, the
            draws before the first of them count. If others are among them, such as the share of an annotator,
            they must be missing completely at random, as tasks are assigned by chance.
        classes : Series or mapping, record -> class, optional
            Class of every drawn record, if some are unresolved. By default the classes of predicted sizes
            that `erbayes.design.size_classes` makes. Under strata, classes are those within strata.

        Raises
        ------
        DataError
            If a drawn record is neither labelled, unresolved nor unlabelled, if values or classes are
            missing, or if a stratum has no begun or no resolved draw.

        Examples
        --------
        >>> import erbayes as eb
        >>> from erbayes.labels import LinkEnds, draw
        >>> prediction, labels = {1: "a", 2: "a", 3: "b"}, {1: "x", 2: "x", 3: "x"}
        >>> design = draw(prediction, LinkEnds(), n=3, seed=1).design(labels)
        >>> eb.estimate(prediction, labels, design, "pairwise-precision").estimate
        array([1.])
        """
        given = self.values if values is None else series_by_id(values, "values", "records")
        clustering = Clustering.of(labels, "labels")
        lost = _list_drawn(self.table, unresolved, "unresolved")
        left = _list_drawn(self.table, unlabelled, "unlabelled")
        errors.refuse_cases(lost.intersection(left), "records are both unresolved and unlabelled")
        seen = _take_seen(self.table, left)
        begun = ~seen["record"].isin(left).to_numpy()
        resolved = begun & ~seen["record"].isin(lost).to_numpy()
        if not resolved.any():
            raise errors.DataError(
                f"all {len(self.table)} draws are unresolved or unlabelled: nothing can be estimated"
            )
        _refuse_lost_strata(self.table, seen[begun], seen[resolved])
        if not resolved.all() and "stratum" in seen:  # Pooled lists draws stratum by stratum
            order = pd.Index(seen.loc[resolved, "stratum"].unique()).get_indexer(seen["stratum"])
            place = np.argsort(order, kind="stable")
            seen, begun, resolved = seen.iloc[place], begun[place], resolved[place]
        kept = len(seen) / len(self.table)
        labelled = plans.LabelledDraws(seen[resolved], self.known, self.n, clustering, given, kept)
        design = self.plan.design(labelled)
        if resolved.all():
            return design
        if classes is not None:
            classes = series_by_id(classes, "classes").reindex(seen["record"]).to_numpy()
        records, clusters = seen["record"].tolist(), seen["cluster"].tolist()
        return Responding(design, resolved, _make_classes(seen, resolved, classes), begun, records, clusters)

    def uniform(self) -> RecordDraws:
        """Return the draws that are a sample of uniform records, of draws by predicted size.

        A draw of a record with chance p stays with probability min p / p, the minimum over all records. Those
        that stay are independent draws of uniform records, .71 to 1 of the draws of `Multipurpose`. Size
        models and top-ups need such a sample, and in two phases units count once with it.

        Examples
        --------
        >>> drawn = draw({i: i // 4 if i < 40 else i for i in range(100)}, n=50, seed=1)
        >>> len(drawn.uniform().table), drawn.uniform().plan
        (46, Records())
        """
        least = 0.0
        if isinstance(self.plan, plans.PlanBySize):
            least = plans.chances(self.plan, self.known)(pd.DataFrame({"size": self.known.size})).min()
        if not least > 0:
            raise errors.DataError(
                f"draws by {type(self.plan).__name__} leave no sample of uniform records, as its chances do "
                "not depend on predicted sizes alone, or are 0: draw anew, by default or uniform records"
            )
        stays = np.random.default_rng([self.seed, ACCEPTED]).random(len(self.table))
        kept = self.table[stays * self.table["probability"].to_numpy(dtype=float) < least]
        table = kept.assign(probability=1 / self.records).reset_index(drop=True)
        members = self.members[self.members["cluster"].isin(table["cluster"])].reset_index(drop=True)
        drawn = replace(self, table=table, plan=plans.Records(), n=len(table), members=members)
        return replace(drawn, fingerprint=fingerprint_of(self.known, members))

    def refuse_another(self, prediction: Any, *, to_judge: bool = True) -> None:
        """Refuse, by DataError, a prediction of other sizes, or with other members of the drawn clusters."""
        fingerprint = self._compute_fingerprint(prediction)
        if fingerprint != self.fingerprint:
            raise errors.DataError(
                "this is not the prediction that was drawn from: "
                f"its fingerprint is {fingerprint}, not {self.fingerprint}",
                *([remedies.DRAWN_FROM] if to_judge and not self.of_clusters else []),
            )

    def is_from(self, prediction: Any) -> bool:
        """Return whether a prediction is the one drawn from, as `refuse_another` compares them."""
        return self._compute_fingerprint(prediction) == self.fingerprint

    def _compute_fingerprint(self, prediction: Any) -> str:
        """Return the fingerprint, in which clusters of records have the names that were drawn from."""
        with open_source(prediction) as source:
            plain = fingerprint_of(source.known, source.members(pd.Index(self.table["cluster"]).unique()))
            if plain == self.fingerprint or self.of_clusters:
                return plain
            drawn = self.table.drop_duplicates("record").set_index("record")["cluster"]
            found = source.look_up(drawn.index)
            pairs = pd.DataFrame({"now": found["cluster"], "then": found["record"].map(drawn)})
            then = pairs.drop_duplicates().set_index("now")["then"]
            # clusters that were split or joined are other clusters, whatever their names
            if not (then.index.is_unique and then.is_unique):
                return plain
            members = source.members(then.index)
            renamed = members.assign(cluster=members["cluster"].map(then))
            return self.fingerprint if fingerprint_of(source.known, renamed) == self.fingerprint else plain

    def to_json(self) -> str:
        """Return everything but the tables as JSON, if the plan is one of `erbayes.labels`."""
        sizes = zip(self.known.size, self.known.count, strict=True)
        values = {
            "version": 1,
            "plan": plans.to_plain(self.plan),
            "n": self.n,
            "seed": self.seed,
            "records": self.records,
            "fingerprint": self.fingerprint,
            "sizes": {str(int(size)): int(count) for size, count in sizes},
        }
        return json.dumps(values, indent=1)

    @classmethod
    def from_json(cls, text: str, table: pd.DataFrame, members: pd.DataFrame = NO_MEMBERS) -> RecordDraws:
        """Make the draws again from what `to_json` wrote, and from their table; refuse other texts."""
        what = "the description of draws"
        values = files.read_json(text, what)
        if values.get("version") != 1:
            raise errors.DataError(f"{what}: 'version' must be 1: read it with the erbayes of it")
        if lost := sorted({"plan", "n", "seed", "records", "fingerprint", "sizes"} - values.keys()):
            raise errors.DataError(f"{what} has no {errors.head(lost)}: restore its file, or draw anew")
        try:
            sizes = sorted((int(size), int(count)) for size, count in values["sizes"].items())
            size, count = np.array(sizes, dtype=float).T.copy()  # each is contiguous
            plan, known = plans.from_plain(values["plan"]), KnownTotals(size, count)
            n, seed = errors.whole(values["n"], "'n'"), errors.whole(values["seed"], "'seed'", 0)
            drawn = cls(table, plan, n, seed, known, values["fingerprint"], members)
            facts = {
                "n": n == len(table),
                "records": values["records"] == size @ count,
                "fingerprint": drawn.fingerprint.startswith(f"{size @ count:.0f}-{count.sum():.0f}-"),
                "plan": drawn._can_be_drawn(),
            }
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            said = getattr(error, "what", f"it is not as `to_json` writes it: {error!r}")  # of a DataError
            raise errors.DataError(f"{what}: {said}") from error
        if changed := [name for name, fits in facts.items() if not fits]:
            raise errors.DataError(f"{what}: {changed[0]!r} has changed: it does not fit sizes and table")
        return drawn

    def _can_be_drawn(self) -> bool:
        """Return whether the plan gives the columns of the table and, if sizes decide, its chances."""
        plan, table = self.plan, self.table
        columns = {"stratum": plans.Strata, "value": plans.GivenProbabilities}
        if any((column in table) != isinstance(plan, cls) for column, cls in columns.items()):
            return False
        sizes = pd.DataFrame({"size": pd.to_numeric(table["size"])})
        if isinstance(plan, plans.PlanBySize):
            wanted = plans.chances(plan, self.known)(sizes)
        elif isinstance(plan, plans.PredictedClusters):
            of_size = pd.Series(plan.compute_inclusion(self.n, self.known), self.known.size)
            wanted = np.asarray(of_size[sizes["size"]])
        else:
            return True
        return np.allclose(pd.to_numeric(table["probability"]), wanted, rtol=1e-9, atol=0)


def _list_drawn(table: pd.DataFrame, records: Any, what: str) -> pd.Index:
    """Return the ids of some drawn records, refusing others; messages call them `what`."""
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise errors.DataError(f"{what} must be a list of record ids, not {records!r}")
    listed = as_index(records)
    errors.refuse_cases(listed.difference(pd.Index(table["record"])), f"{what} records were not drawn")
    return listed


def _take_seen(table: pd.DataFrame, left: pd.Index) -> pd.DataFrame:
    """Return the draws up to the look: those before the first of a record that nobody has begun since."""
    record = table["record"]
    unbegun, new = record.isin(left).to_numpy(), ~record.duplicated().to_numpy()
    last = np.flatnonzero(new & ~unbegun)
    # after the last record that was begun, draws up to the next unbegun one repeat begun records
    later = np.flatnonzero(unbegun[last[-1] :]) if len(last) else np.arange(1)
    end = last[-1] + later[0] if len(last) and len(later) else len(record)
    seen: pd.DataFrame = table[:end]
    # if no record repeats, chance chose the begun draws among all, so that the others may go
    if seen["record"].is_unique:
        seen = seen[~unbegun[:end]]
    return seen.reset_index(drop=True)


def _refuse_lost_strata(table: pd.DataFrame, begun: pd.DataFrame, resolved: pd.DataFrame) -> None:
    """Refuse strata without a draw to go by."""
    if "stratum" not in table:
        return
    strata = pd.Index(table["stratum"].unique())
    for rows, what, remedy in (
        (begun, "whose task is begun", "label on until each has some"),
        (resolved, "that is resolved", "ask more annotators, or draw with these merged into others"),
    ):
        lost = strata[~strata.isin(rows["stratum"])]
        then = f": the sample has no information about their records; {remedy}"
        errors.refuse_cases(lost, f"strata have no draw {what}", then, of=len(strata))


def _make_classes(table: pd.DataFrame, resolved: BoolArray, given: Any) -> list[Any]:
    """Return the class of each draw, (n,): within its stratum, the given one or that of its size."""
    group = pd.factorize(table["stratum"])[0] if "stratum" in table else np.zeros(len(table), dtype=np.int64)
    classes = np.empty(len(table), dtype=object)
    for g in np.unique(group):
        here = group == g
        classes[here] = size_classes(table["size"][here], resolved[here]) if given is None else given[here]
    if not group.any():
        return classes.tolist()
    named = zip(group.tolist(), classes.tolist(), strict=True)
    return [None if pd.isna(name) else f"{g} {name}" for g, name in named]


def draw(
    prediction: Any, plan: plans.Plan = MULTIPURPOSE, *, n: int, seed: int, values: Any = None
) -> RecordDraws:
    """Draw records of a prediction, to be labelled.

    The same seed draws the same records from the same prediction, in memory, in files and in databases.

    Parameters
    ----------
    prediction : memberships, Source, or files and tables
        Predicted cluster of every record of the population. Files and tables are those of
        `erbayes.large.scan` with two columns. `erbayes.large.drawing` makes a source of others.
    plan : Plan
        By default `Multipurpose()`, which suits all metrics. `Records()` suits size models and top-ups too.
    n : int
        Number of draws. A smaller n with the same seed gives the first of them, if draws are independent.
        Other draws are put into a random order, so that those labelled first are a sample of all.
    seed : int
    values : Series or mapping, record -> value, optional
        The value of every record, for plans that need one: a chance or a stratum. For files and tables, the
        name of the column that has it.

    Warns
    -----
    Alarm
        Notes about predicted sizes, such as a heap, which a matcher's cap may have left. Labels of records
        show what it is if one of their entities is larger.

    Examples
    --------
    >>> drawn = draw({"r1": "a", "r2": "a", "r3": "b"}, n=2, seed=1)
    >>> drawn.records, len(drawn.table)
    (3, 2)
    """
    errors.need_object(plan, "draw", "a plan is an object such as LinkEnds()")
    n, seed = errors.whole(n, "n"), errors.whole(seed, "seed", 0)
    with open_source(prediction, values) as source:
        records = int(source.known.size @ source.known.count)
        if n > (most := max(MOST, EACH * records)):
            raise errors.DataError(
                f"{n:,} draws from {records:,} records are more than {most:,}, which draw nearly all of "
                "them: label all records, or draw fewer"
            )
        table = plan.draw(source, n, seed)
        errors.need(table, pd.DataFrame, "a plan draws a DataFrame")
        # independent draws are in random order already; the first of others are then a sample of all too
        if not getattr(plan, "independent", False):
            table = table.iloc[np.random.default_rng([seed, ORDER]).permutation(len(table))]
        table = table.reset_index(drop=True)
        members = source.members(pd.Index(table["cluster"]).unique()).reset_index(drop=True)
        size = table.drop_duplicates("cluster").set_index("cluster")["size"]
        counted = members["cluster"].value_counts().reindex(size.index)
        changed = size.index[~size.isin(source.known.size) | (size.to_numpy() != counted.to_numpy())]
        if len(changed):
            raise change(changed)
        notes = source.known.look()
        if (heap := find_heap(source.known)) is not None and not isinstance(plan, plans.PredictedClusters):
            notes = [errors.Sentence(str(heap), errors.Grade.NOTE, remedies.LOOK), *notes]
        for note in notes:
            warnings.warn(note, errors.Alarm, skip_file_prefixes=errors.PACKAGE)
        in_memory = values is not None and not isinstance(values, str)
        given = series_by_id(values, "values", "records") if in_memory else None
        fingerprint = fingerprint_of(source.known, members)
        return RecordDraws(table, plan, n, seed, source.known, fingerprint, members, given)


def say_expected(plan: plans.PlanBySize, known: KnownTotals, n: int) -> str:
    """Return how many of n draws are expected in clusters of which sizes, next to those of uniform records.

    >>> say_expected(plans.Records(), KnownTotals(np.array([1.0, 2.0, 9.0]), np.array([20.0, 10.0, 2.0])), 90)
    '31 single records, 31 of clusters of 2 to 8, 28 of 9 or more, with 88% of the predicted links'
    """
    records, links = known.count * known.size, known.count * known.size * (known.size - 1)
    half = known.size[np.searchsorted(np.cumsum(links), links.sum() / 2)]
    part = np.where(known.size == 1, 0, np.where(known.size < half, 1, 2))

    def expect(plan: plans.PlanBySize) -> IntArray:
        p = records * plans.chances(plan, known)(pd.DataFrame({"size": known.size}))
        # ends are rounded and not parts, so that these add to n
        return np.diff(np.rint(n * np.cumsum(np.bincount(part, p, 3))), prepend=0).astype(np.int64)

    names = ["single records", "of clusters of 2" + f" to {half - 1:,.0f}" * bool(half > 3)]
    if links.any():
        share = links[part == 2].sum() / links.sum()
        clusters = "clusters of " * bool(half == 2)
        names += [f"of {clusters}{half:,.0f} or more, with {share:.0%} of the predicted links"]
    there = np.flatnonzero(np.bincount(part))
    said = ", ".join(f"{expect(plan)[i]:,} {names[i]}" for i in there)
    uniform = ", ".join(f"{k:,}" for k in expect(plans.Records())[there])
    return said if isinstance(plan, plans.Records) else f"{said} (uniform records: {uniform})"
