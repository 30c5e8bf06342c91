"""Options and files that commands read: predictions, labels, and how the labels were drawn."""

from __future__ import annotations

from functools import cached_property, partial
from itertools import combinations, compress, product
from pathlib import Path
from typing import Any

import erbayes as eb

from .._internal.errors import DataError, Sentence, head, refuse_cases
from .._internal.remedies import Missing
from .lazily import (
    answer_faults,
    column_roles,
    files,
    large_files,
    pd,
    plans,
    readings,
    returned_answers,
    scanning,
)
from .options import (
    argument,
    entity_option,
    level_option,
    message,
    name_options,
    option,
    panel,
    refuse_same_file,
    stored_option,
    within,
)
from .predictions import (
    CLUSTERS,
    LABELLED,
    Drawing,
    PredictionFile,
    PredictionOptions,
    ReadingOptions,
    design_of,
    in_words,
    read_drawn_from,
    read_ids,
)
from .printing import show_cautions
from .remembered import TABLE, Call, File, name_columns

missing_option = partial(
    option,
    help="Labelled records not in PREDICTION: error, omit, singleton, together.",
    default=Missing.ERROR,
    metavar="POLICY",
)
"""The policy for labelled records that are missing in a prediction."""
NAMED = 3
"""Added records that are missing in the prediction, named at most."""


def note_unresolved(labels: eb.labels.Labels | None) -> None:
    """Print how many draws of a folder have no complete answer, if there are any."""
    if labels is not None and len(labels.unresolved):
        lost = labels.lost.map(lambda state: state.value).value_counts()
        kinds = ", ".join(f"{n:,} {state}" for state, n in lost.items())
        draws = len(labels.folder.drawn.table)
        message(f"note: {lost.sum():,} of {draws:,} draws have no complete answer: {kinds}")


def unite(old: pd.Series, new: pd.Series, before: pd.Index, now: pd.Index, what: str) -> pd.Series:
    """Return record -> entity of both; an entity of both has the same records, but for new ones."""
    shared = old.index.intersection(new.index)
    pairs = pd.DataFrame({"old": old[shared].to_numpy(), "new": new[shared].to_numpy()}).drop_duplicates()
    mine, theirs = old[old.isin(pairs["old"])], new[new.isin(pairs["new"])]
    both = pd.concat([mine, theirs], axis=1, keys=["old", "new"])
    wrong = both["new"].isna() & both.index.isin(now) | both["old"].isna() & both.index.isin(before)
    for side in ("old", "new"):
        wrong |= both[side].isin(pairs.loc[pairs.duplicated(side), side])
    refuse_cases(
        both.index[wrong],
        f"{what} contradict each other about the entities of {{n}} records, such as",
        ": an entity of both has the same records in both, apart from new ones that the older folder leaves "
        "out; correct the answers in either",
    )
    # an entity is named by one of its records, so that no two entities have one name
    known = old[~old.index.isin(new.index)]
    united: pd.Series = pd.concat([new, known.replace(dict(zip(pairs["old"], pairs["new"], strict=True)))])
    return united


def _warn_incomplete(
    united: pd.Series, older: eb.labels.Labels, before: eb.Clustering, now: eb.Clustering
) -> None:
    """Say how many entities of the older folder may have new records that no answer names."""
    cluster = pd.Series(now.codes, now.records)
    unnamed = ~cluster.index.isin(before.records) & ~cluster.index.isin(united.index)
    mine = united[older.labels.index]
    near = cluster.reindex(mine.index).isin(cluster[unnamed]).to_numpy()
    if near.any():
        message(
            f"caution: {mine[near].nunique():,} of {mine.nunique():,} entities of {older.folder.path} share "
            "a predicted cluster with new records that no answer names. If some are theirs, add rows "
            f"for them to the sheets of {older.folder.path}, since estimates count whole entities"
        )


def _explain_unlike(units: eb.units.Units, drawn: eb.labels.RecordDraws) -> str | None:
    """Return how a prediction differs from the one that was drawn from, None if their sizes are equal."""
    if units.known is None:
        return None
    both = (units.known, drawn.known)
    counts = [dict(zip(known.size, known.count, strict=True)) for known in both]
    if counts[0] == counts[1]:
        return None
    one, other = (CLUSTERS.format(int(known.size @ known.count), int(known.count.sum())) for known in both)
    return f"it has {one}, not {other}" if one != other else f"its clusters of {one} have other sizes"


def note_frame(units: eb.units.Units, name: str = "") -> None:
    """Print what the frame leaves of a prediction, if there is a frame."""
    if units.frame is not None:
        facts = "; ".join(f"{what}: {value}" for what, value in units.frame.in_words().items())
        message(f"note: {name}{facts}")


def _print_scan(units: scanning.Scanned, path: Path, name: str = "") -> str:
    records = f"{units.rows:,} records{'' if units.frame is None else ' of the frame'}"
    clusters = "" if units.known is None else f", in {units.known.count.sum():,.0f} clusters"
    columns = in_words(units.columns, path)
    message(f"{name}{records} scanned{clusters} ({columns}); no duplicates among all record ids")
    return f"{records} ({columns})"


class Returned:
    """What a folder of erbayes draw says, if LABELS is one, of commands with these options."""

    labels: Path
    drawing: Drawing
    entity: str | None

    @property
    def returned(self) -> eb.labels.Labels | None:
        """Labels of a folder, None if LABELS is a file."""
        return self._read_folder[0]

    @property
    def cautions(self) -> list[Sentence]:
        """Return the cautions about annotators, which are printed when a folder is read."""
        return self._read_folder[1]

    @cached_property
    def _read_folder(self) -> tuple[eb.labels.Labels | None, list[Sentence]]:
        path, drawing = self.labels, self.drawing
        if not path.is_dir():
            return None, []
        uniform = drawing.design == "uniform-records"
        named = {"design": None if uniform else drawing.design, "entity": self.entity}
        if options := [name for name, value in named.items() if value is not None] + drawing.given:
            raise DataError(
                f"the folder {path} says how its records were drawn: leave out {name_options(options)}"
            )
        if (path / TABLE).is_file():
            raise DataError(f"{path} has pairs, which erbayes pairs reads")
        labels = eb.labels.read_labels(path)
        cautions = show_cautions(labels)
        if uniform:
            draws, labels = labels.folder.drawn.n, labels.uniform()
            message(f"note: {labels.folder.drawn.n:,} of {draws:,} draws are a sample of uniform records")
        return labels, cautions

    @property
    def of_clusters(self) -> bool:
        """True if LABELS is a folder with predicted clusters that were drawn."""
        return self.returned is not None and self.returned.folder.drawn.of_clusters

    def refuse_clusters(self) -> None:
        """Refuse a folder with predicted clusters that were drawn, which judge their prediction alone."""
        if self.of_clusters:
            raise DataError(f"{self.labels}: {returned_answers.JUDGES_ITS_OWN}")

    @cached_property
    def both(self) -> tuple[pd.Series, eb.design.contract.Design] | None:
        """Labels and design of a folder and the one that it tops up, None if it tops up none."""
        if (labels := self.returned) is None or "top_up" not in (call := Call.of(self.labels)).options:
            return None
        older = eb.labels.read_labels(call.take("top_up")).uniform()
        for one in (older, labels):
            if len(one.unresolved):
                raise DataError(
                    f"{one.folder.path}: {len(one.unresolved):,} tasks have no complete answer, but a folder "
                    "and the one that it tops up are read together once all have: answer them"
                )
        before, now = (read_drawn_from(one.folder) for one in (older, labels))
        united = unite(
            older.labels, labels.labels, before.records, now.records, f"{older.folder.path} and {self.labels}"
        )
        _warn_incomplete(united, older, before, now)
        draws = [united[one.folder.drawn.table["record"]].tolist() for one in (older, labels)]
        return united, eb.top_up(united, (before.records, draws[0]), (now.records, draws[1]))


@panel("Files")
class Inputs(Returned):
    """Options that all commands on predictions share. `One` and `Several` add the predictions."""

    prediction: Path | list[Path]
    labels: Path = argument(
        "Record and entity of all labelled records; or a folder of erbayes draw.", default=None
    )
    drawing: Drawing
    drawn_from: Path | None = option(
        "With a folder: the prediction drawn from, if it is elsewhere now.",
        rare=True,
        panel="Design",
        exists=True,
    )
    reading: ReadingOptions
    cluster: str | list[str] | None = None
    entity: str | None = entity_option()
    missing: Missing = missing_option()
    frame: Path | None = option(
        "The records that existed when the labels were made, or an older prediction.",
        panel="Frame",
        exists=True,
    )
    level: float = level_option(panel="Metrics")
    stored: str | list[str] | None = None

    def __post_init__(self) -> None:
        predictions = self.prediction if isinstance(self.prediction, list) else [self.prediction]
        if self.cluster is None or self.entity is None:  # which choose two columns of one table
            for path in predictions:
                refuse_same_file(("PREDICTION", path), ("LABELS", self.labels))
        for first, second in combinations(predictions, 2):
            if File.read(first).in_words() == File.read(second).in_words():
                refuse_same_file(("PREDICTION", first), ("PREDICTION", second))
        if self.frame is not None and files.is_database(self.frame):
            raise DataError(f"--frame {self.frame} is a DuckDB database: a frame is a file or a folder")
        if self.drawn_from is not None and not self.labels.is_dir():
            raise DataError("--drawn-from needs a folder of erbayes draw as LABELS")

    def parts(self) -> dict[str, PredictionFile]:
        """Return the predictions by name."""
        raise NotImplementedError

    @cached_property
    def scanned(self) -> bool:
        """Return whether predictions are scanned in place, and not read into memory."""
        return self.reading.scanned(self.parts().values(), self.frame)

    def design(self) -> eb.design.contract.Design:
        """Return the design, by options or of a folder."""
        if self.returned is None:
            return self.drawing.read(lambda: self.reading.read_labels(self.labels, self.entity)[0].clusters)
        return design_of(self.returned) if self.both is None else self.both[1]

    @cached_property
    def origin(self) -> PredictionFile | None:
        """Return the prediction that was drawn from, if --drawn-from or the folder names it."""
        if self.returned is None or self.drawn_from is None:
            return None
        # what a folder remembers has columns of its own
        own = File.read(self.drawn_from).options
        cluster = self.cluster if isinstance(self.cluster, str) and not own else None
        return PredictionFile(self.drawn_from, None, cluster)

    def notice_another(
        self, name: str, units: eb.units.Units, prediction: eb.Clustering | PredictionFile
    ) -> None:
        """Refuse a prediction that is not the one drawn from, or say so if chances are the same."""
        if self.returned is None or self.origin is not None:
            return
        drawn = self.returned.folder.drawn
        if isinstance(drawn.plan, plans.FREE):
            # chances that do not depend on predicted clusters are right for any prediction: a note is enough
            unlike = _explain_unlike(units, drawn)
            if unlike is None and isinstance(prediction, eb.Clustering) and not drawn.is_from(prediction):
                unlike = "its clusters hold other records"
            if unlike is not None:
                message(f"note: {name} is not the prediction that was drawn from: {unlike}")
        elif units.frame is None:
            if isinstance(prediction, eb.Clustering):
                drawn.refuse_another(prediction)
                return
            with self.reading.opened(prediction) as (source, _):
                drawn.refuse_another(source)

    def name_added(self, prediction: eb.Clustering) -> None:
        """Print where annotators have added records that are missing in a prediction."""
        returned = self.returned
        if returned is None or self.missing not in {Missing.ERROR, Missing.COMMON}:
            return
        if not returned.labels.index.isin(prediction.records).all():
            problems = eb.labels.read_labels(returned.folder, prediction).problems
            fault = answer_faults.Fault.UNKNOWN_RECORD
            for row in problems[problems["fault"] == fault].head(NAMED).itertuples():
                message(f"note: {row.where}, task {row.task}: {fault.value}: {row.record!r}")

    def fitted(self, design: eb.design.contract.Design, shared: dict[str, Any]) -> eb.design.contract.Design:
        """Return the design with the chances of the prediction that was drawn from, if `origin` is there."""
        if self.returned is None or (part := self.origin) is None:
            return design
        if isinstance(self.returned.folder.drawn.plan, plans.FREE):
            return design
        policy = Missing.OMIT if self.missing is Missing.OMIT else Missing.ERROR
        shared = shared | {"frame": None, "missing": policy}
        with self.reading.opened(part, "prediction that was drawn from") as (prediction, read):
            message(f"read {read}, which was drawn from")
            self.returned.folder.drawn.refuse_another(prediction)
            in_memory = isinstance(prediction, eb.Clustering)
            units = eb.measure(prediction, **shared) if in_memory else self.reading.scan(part, shared)
        return eb.design.FrozenWeights(design, units)

    @property
    def near(self) -> readings.Near | None:
        """Return what labels say of records without the prediction."""
        if self.returned is not None:
            return readings.Near({None: self.returned.labels.index})
        table = files.read_table(self.labels)
        record = name_columns(self.labels).record or self.reading.record
        return column_roles.find_keys(table, record if record in table else None)

    def labelled(self, records: pd.Index | None = None) -> tuple[dict[str, Any], str]:
        """Read the arguments that all predictions share, with a sentence; `records` of a prediction."""
        frame: Any = None
        if self.frame is not None and self.scanned:
            frame = self.reading.source(PredictionFile(self.frame))
        elif self.frame is not None:
            near = None if records is None else readings.Near({records.name: records})
            frame = read_ids(self.frame, self.reading.record, near)
        if self.returned is not None:
            labels = eb.Clustering.of(self.returned.labels if self.both is None else self.both[0], "labels")
            read = f"{LABELLED.format(len(labels.records), len(labels.clusters))} ({self.labels})"
        else:
            labels, read = self.reading.read_labels(self.labels, self.entity, records)
        return {"frame": frame, "labels": labels, "missing": self.missing}, read


@panel()
class One(PredictionOptions, Inputs):
    looks: str | None = option(
        "Clusters of a heap in the predicted sizes whose entities go on in others, of those looked at: 3/5.",
        panel="Design",
        rare=True,
        metavar="FOUND/OF",
    )

    def seen(self) -> eb.Looks | None:
        """Return what looks at clusters of a heap have found, None if there were none."""
        if self.looks is None:
            return None
        found, _, of = self.looks.partition("/")
        if not (found.isdecimal() and of.isdecimal()):
            raise DataError(f"--looks {self.looks}: write two whole numbers, such as 3/5")
        with within("--looks"):
            return eb.Looks(int(found), of=int(of))

    def sample(self, **grouped: Any) -> tuple[eb.Sample, str]:
        """Read or scan (with `grouped`) the prediction, and return its sample and what was read, in words."""
        looks, design, part = self.seen(), self.design(), self.part
        if self.returned is not None and self.of_clusters:
            return self._sample_clusters(self.returned)
        prediction: eb.Clustering | PredictionFile = part
        if self.scanned:
            shared, labels_read = self.labelled()
            message(f"read {labels_read}")
            units = self.reading.scan(part, shared | grouped)
            read = f"{_print_scan(units, part.path)}; {labels_read}"
        else:
            prediction, shared, read = self.memory
            units = eb.measure(prediction, **shared)
        note_frame(units)
        note_unresolved(self.returned)
        self.notice_another(str(part.path), units, prediction)
        design = self.fitted(design, shared)
        with within("--looks" if looks else self.drawing.in_words):
            return eb.Sample(units, design, looks=looks), read

    def _sample_clusters(self, returned: eb.labels.Labels) -> tuple[eb.Sample, str]:
        """Make the sample of drawn predicted clusters, with a sentence about what was read."""
        if given := [name for name in ("drawn_from", "frame", "looks") if getattr(self, name) is not None]:
            raise DataError(
                f"{self.labels} takes no {name_options(given[:1])}: {returned_answers.JUDGES_ITS_OWN}"
            )
        labels = returned.labels
        with self.reading.opened(self.part) as (prediction, read):
            units = returned.units(prediction, missing=self.missing)
        read = f"{read}; {LABELLED.format(len(labels), labels.nunique())} ({self.labels})"
        message(f"read {read}")
        note_unresolved(returned)
        return eb.Sample(units, self.design()), read

    @cached_property
    def memory(self) -> tuple[eb.Clustering, dict[str, Any], str]:
        """Return a prediction read into memory, what goes with it, and a sentence about what was read."""
        prediction, read = self.reading.read(self.part, "prediction", self.near)
        shared, labels_read = self.labelled(prediction.records)
        self.reading.refuse_unbound(recalled=self.returned is not None)
        message(f"read {read}; {labels_read}")
        self.name_added(prediction)
        return prediction, shared, f"{read}; {labels_read}"


@panel()
class Several(Inputs):
    prediction: list[Path] = argument("Files, each with record and cluster of all records.", default=None)
    cluster: list[str] | None = option("Cluster column of PREDICTION. Give it twice to compare two.")
    missing: Missing = missing_option(
        help="Labelled records not in PREDICTION: error, omit, singleton, together, or common, which judges "
        "the records that all have."
    )
    stored: list[str] | None = stored_option(help="Table of a DuckDB database. Give it twice to compare two.")

    def parts(self) -> dict[str, PredictionFile]:
        tables: list[Any] = self.stored or [None]
        columns: list[Any] = self.cluster or [None]
        axes = (self.prediction, tables, columns)
        several = [len(values) > 1 for values in axes]
        optional = len(columns) == 1 and len(self.prediction) > 1
        parts = [PredictionFile(path, table, cluster, optional) for path, table, cluster in product(*axes)]
        if len(parts) < 2:
            raise DataError(
                "a comparison needs two predictions or more, not 1: give LABELS last, after two files, or "
                "name several --cluster or --table"
            )
        again, names = len({str(path) for path in self.prediction}) < len(self.prediction), []
        for p in parts:  # by names of files without the endings of format and packing
            packed = p.path.suffix.lower() in large_files.PACKED.keys() | large_files.FOREIGN
            file = Path(p.path.stem if packed else p.path.name).stem
            file += File.read(p.path).in_words() if again else ""
            names.append(" ".join(compress((file, str(p.table), str(p.cluster)), several)))
        if len(set(names)) < len(names):
            raise DataError(f"predictions go by their files' names, which must differ: {head(names, 20)}")
        return dict(zip(names, parts, strict=True))

    @cached_property
    def origin(self) -> PredictionFile | None:
        """Return the prediction that was drawn from: that of --drawn-from, or one of those compared."""
        if self.returned is None or self.drawn_from is not None:
            return super().origin
        drawn = self.returned.folder.drawn
        for part in () if isinstance(drawn.plan, plans.FREE) else self.parts().values():
            with self.reading.opened(part) as (prediction, _):
                if drawn.is_from(prediction):
                    return part
        return None

    def predictions(self, **grouped: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
        """Read or scan (with `grouped`) predictions, with what they share, and with what was read."""
        self.refuse_clusters()
        design = self.design()
        predictions, shared, read = self._read_several(grouped)
        note_unresolved(self.returned)
        shared |= {"design": self.fitted(design, shared)}
        # finished scans have a frame already
        return predictions, shared | ({"frame": None} if self.scanned else {}), read

    def sort_shown(self, predictions: dict[str, Any]) -> dict[str, Any]:
        """Return predictions with the one first that was drawn from, which annotators saw."""
        if self.returned is None:
            return predictions
        drawn = self.returned.folder.drawn
        return dict(sorted(predictions.items(), key=lambda item: not drawn.is_from(item[1])))

    def _read_several(self, grouped: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
        parts = self.parts()
        if self.scanned:
            shared, labels_read = self.labelled()
            message(f"read {labels_read}")
            if self.missing is Missing.COMMON:
                scans = dict(self.reading.scan(parts, shared | grouped))
            else:
                scans = {name: self.reading.scan(part, shared | grouped) for name, part in parts.items()}
            said = {name: _print_scan(one, parts[name].path, f"{name}: ") for name, one in scans.items()}
            return scans, shared, {"": labels_read} | said
        predictions, read, near = dict[str, Any](), dict[str, str](), self.near
        for name, part in parts.items():
            predictions[name], read[name] = self.reading.read(part, f"prediction {name!r}", near)
            message(f"{name}: read {read[name]}")
            self.name_added(predictions[name])
        shared, labels_read = self.labelled(next(iter(predictions.values())).records)
        one = self.cluster[0] if self.cluster else None
        self.reading.refuse_unbound(cluster=one, recalled=self.returned is not None)
        message(f"read {labels_read}")
        return predictions, shared, {"": labels_read} | read
