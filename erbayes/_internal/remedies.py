"""What users choose: policies, which functions take by their word too, and remedies that several rooms name.

The shell lists policies, so that this module loads no other than errors.
"""

from __future__ import annotations

from enum import Enum

from .errors import Remedy


class Missing(Enum):
    """Policies for labelled records that are missing in the prediction, or in one of several.

    Examples
    --------
    >>> from erbayes import measure
    >>> prediction, labels = {1: "a", 2: "a"}, {1: "x", 2: "x", 3: "x"}
    >>> units = measure(prediction, labels, missing="omit")
    >>> units.size, units.unmatched
    (array([2.]), 1)
    """

    ERROR = "error"
    """Refuse (the default)."""
    SINGLETON = "singleton"
    """Each is a predicted cluster of its own. \\|P\\| stays known; N and \\|Ĉ\\| do not."""
    TOGETHER = "together"
    """Those of one entity are one predicted cluster. No total stays known."""
    OMIT = "omit"
    """Leave them out. The population is then the records that the prediction has, and all totals are known.
    Entities shrink. An entity of which the prediction has no record leaves the sample. Predictions made of
    pairs alone (`Clustering.from_pairs` without `records`) refuse this policy."""
    COMMON = "common"
    """Judge several predictions that cover different records on those that every one covers, and leave out
    other labelled records. If the predictions cover the same records, it refuses as `ERROR` does."""


class SingleUnit(Enum):
    """Rules for the variance of a stratum with one draw."""

    ERROR = "error"
    """Refuse (the default)."""
    CERTAINTY = "certainty"
    """It adds nothing, since the unit was certain to be drawn."""


MISSING = Remedy(
    'choose a policy to go on ("omit", "singleton" or "together")', 'missing="omit"', "--missing omit"
)
DIFFERING = Remedy("compare them on the records that they share", 'missing="common"', "--missing common")
LEAVE_OUT = Remedy("leave them out", 'missing="omit"', "--missing omit")
LISTED = Remedy("list all records", "records=ids", "--records FILE")
UNLINKED = Remedy(
    "or, if records in no pair are known to be linked to nothing",
    'missing="singleton"',
    "--missing singleton",
)
ALL_RECORDS = Remedy(
    "give the prediction all records, by records=ids (--records) if it is made of edges, or count these as "
    "clusters of their own",
    'missing="singleton"',
    "--missing singleton",
)
COLUMNS = Remedy("choose two", "table.set_index('record')['cluster']", "FILE:RECORD,CLUSTER")
ORDER = Remedy("if columns are in the other order", COLUMNS.argument, COLUMNS.option)
SCORED = Remedy(
    "choose two columns of ids and one of scores",
    "table[['left', 'right', 'score']]",
    "FILE:LEFT,RIGHT,SCORE",
)
LINKS = Remedy("if rows are links between records", "Clustering.from_pairs(table)", "FILE --edges")
ANSWERS = Remedy(
    "if rows are answers about pairs of records, erbayes.labels.read_stars makes entities of them, and of a "
    "list of true pairs erbayes.Clustering.from_pairs"
)
THRESHOLD = Remedy("give the least score of a link", "threshold=x", "--threshold X")
ANY_ID = Remedy("or, if it is a real id", "Clustering.of(memberships, any_id=True)", "--any-id")
DRAWN_FROM = Remedy(
    "to judge another prediction of the records, name the one drawn from",
    "Labels.design(drawn_from=...)",
    "--drawn-from",
)
LOOK = Remedy(
    "look whether the entities of five of these clusters go on in others, with at least a fifth as many "
    "records, and say of how many",
    "Sample(..., looks=Looks(found, of=5))",
    "--looks FOUND/5",
)
RECORDS = Remedy("or draw records instead of entities, which reach large ones (erbayes draw)")
MORE = Remedy("label more draws (of a folder: erbayes draw --more N FOLDER)")
DISTINCT = Remedy(
    "if repeats were dropped, the design is DistinctEntities(n) (--design distinct-entities --draws); if "
    "records were drawn without replacement, list the entity of every draw in draws= (--drawn), with "
    "population= (--population)"
)
MORE_RECORDS = Remedy(
    "if they were drawn from more records, pass their number, records=, or count each draw: repeats=True"
)
EVERY_DRAW = Remedy(
    "if repeats were dropped, list the unit of every draw in draws= (--drawn); if units were drawn without "
    "replacement, the design is KnownInclusion"
)
INFLUENCE = Remedy(
    "few units carry the estimate, see influence() (erbayes report), and report the jackknife's intervals as "
    "well"
)
SIZE_MODEL = Remedy(
    "a size model needs UniformRecords, UniformClusters, DistinctEntities or BySize, or the part of a "
    "folder's draws that is of uniform records",
    "Labels.uniform()",
    "--design uniform-records",
)
COVER = Remedy(
    "give these records clusters of their own in it or, if none of them is labelled, leave them out",
    "frame=second",
)
