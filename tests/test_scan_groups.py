"""Group variables of scans: the same groupings, hence the same estimates by group, as in memory."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pytest
from test_scan import ENGINES, SOURCES, frame_of, in_turn, population

import erbayes as eb
from erbayes._internal.errors import DataError, NotIdentified
from erbayes.analysis.domains import by_pair, compare_by_domain
from erbayes.large import Columns, Files, GroupSource, scan
from erbayes.metrics.columns import Domain, Links

pytestmark = pytest.mark.slow

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
NAMES = Columns("record", "cluster")
LINKS = ["pairwise-precision", "pairwise-recall"]
DEFAULT_METRICS = ["pairwise-precision", "pairwise-recall", "b3-precision", "b3-recall", "entities"]


def variable(prediction, values=("FR", "US", "LU"), seed=1):
    """A group of each record; records of one cluster differ."""
    chosen = np.random.default_rng(seed).choice(len(values), len(prediction), p=[0.5, 0.3, 0.2])
    return pd.Series(np.array(values)[chosen], prediction.index, name="country")


def with_groups(prediction, groups):
    return frame_of(prediction).assign(country=groups.to_numpy())


def of_records(groups):
    """The same groups in a table of their own."""
    return GroupSource(groups.rename_axis("record").reset_index(), "country")


def sampled(units):
    return eb.Sample(units, eb.UniformClusters())


def same(found, wanted, groups, prediction):
    """The groupings say the same of every domain and of its rest; links inside two groups are refused."""
    wanted = wanted.grouped(groups, prediction=prediction)
    own, other = found.grouping("country"), wanted.grouping("country")
    np.testing.assert_array_equal(own.counted, other.counted)
    assert own.values.tolist() == other.values.tolist() and own.unknown == other.unknown == 0
    single = own.domains()
    rest = [replace(domain, rest=True) for domain in single]
    pairs = [Domain("country", (*a.values, *b.values)) for a, b in combinations(single, 2)]
    for pair in pairs if len(single) > 3 else ():
        with pytest.raises(NotIdentified, match="not inside 2 together: scan a column in which"):
            own.known(pair, Links.INSIDE)
    for domain in [*single, *rest]:
        sizes = own.cluster_sizes(domain, found), other.cluster_sizes(domain, wanted)
        np.testing.assert_array_equal(*sizes)
        for links in (Links.SHARED, Links.INSIDE):
            totals = []
            for grouping in (own, other):
                m, records = grouping.known(domain, links)
                totals.append(np.bincount(m.astype(int), records))
            np.testing.assert_array_equal(*totals)


def shown(units, groups, **options):
    """Tables of all metrics by group, of one sort of links after the other."""
    sample, tables = sampled(units), []
    for links in (Links.SHARED, Links.INSIDE):
        found = eb.by_domain(sample, groups, eb.metrics.ALL, links=links, fewest=0, **options)
        tables += [found.table(), found.balance().reset_index()]
    across = eb.by_domain(sample, groups, LINKS, links=Links.ACROSS, fewest=0, **options)
    tables.append(across.table())
    tables.append(eb.by_domain(sample, groups, DEFAULT_METRICS, fewest=0, **options).against_rest())
    return [*tables, by_pair(sample, groups, fewest=0, **options).table()]


@pytest.mark.parametrize(("source", "kind"), in_turn(ENGINES, 1))
def test_every_source_groups_as_memory_does(source, kind, tmp_path):
    prediction, labels, _ = population(3, kind=kind)
    groups = variable(prediction)
    opened = SOURCES[source](with_groups(prediction, groups), tmp_path)
    found = scan(opened, labels, NAMES, missing=eb.Missing.OMIT, groups="country")
    same(found, eb.measure(prediction, labels, missing=eb.Missing.OMIT), groups, prediction)


def test_a_csv_file_and_a_second_table(tmp_path):
    prediction, labels, _ = population(4, lacking=0)
    groups = variable(prediction)
    frame_of(prediction).to_csv(tmp_path / "p.csv", index=False)
    with_groups(prediction, groups).to_csv(tmp_path / "both.csv", index=False)
    attributes = groups.rename_axis("id").reset_index().assign(other=1).sample(frac=1, random_state=1)
    attributes = pd.concat([attributes, attributes[:9]])  # equal rows count once
    attributes.to_csv(tmp_path / "a.csv", index=False)
    attributes.to_parquet(tmp_path / "a.parquet")
    with duckdb.connect(tmp_path / "x.duckdb") as connection:
        connection.register("f", attributes)
        connection.execute("CREATE TABLE a AS SELECT * FROM f")
    wanted = eb.measure(prediction, labels)
    found = scan(tmp_path / "both.csv", labels, NAMES, groups="country")
    same(found, wanted, groups, prediction)
    pairs = zip(shown(found, "country"), shown(wanted, groups, prediction=prediction), strict=True)
    for one, other in pairs:
        pd.testing.assert_frame_equal(one, other, rtol=1e-9, atol=1e-12, check_dtype=False)
    files = [tmp_path / "a.csv", tmp_path / "a.parquet", eb.large.DatabaseTable(tmp_path / "x.duckdb", "a")]
    arrow = pa.Table.from_pandas(attributes, preserve_index=False)
    frames = [attributes, attributes.astype("category"), arrow]
    for table in (*files, *frames, pa.dataset.dataset(tmp_path / "a.parquet")):
        found = scan(tmp_path / "p.csv", labels, groups=GroupSource(table, "country"))
        same(found, wanted, groups, prediction)
    same(scan(prediction, labels, groups=of_records(groups)), wanted, groups, prediction)


@pytest.mark.parametrize(
    "values", [(1, 2, 3), (True, False, True), (1.0, 2.0, 5.0), pd.to_datetime(["2020-01-01"] * 3)]
)
def test_values_of_every_type(values):
    prediction, labels, _ = population(5, lacking=0)
    groups = variable(prediction, list(values))
    found = scan(with_groups(prediction, groups), labels, NAMES, groups="country")
    wanted = eb.measure(prediction, labels).grouped(groups, prediction=prediction).groupings[0]
    assert found.groupings[0].values.tolist() == wanted.values.tolist()
    np.testing.assert_array_equal(found.groupings[0].counted, wanted.counted)


def test_a_frame_and_blocks():
    prediction, labels, blocks = population(6, lacking=0)
    groups = variable(prediction)
    rng = np.random.default_rng(1)
    frame = pd.Index([r for r in prediction.index if r in set(labels.index) or rng.random() < 0.6])
    wanted = eb.measure(prediction, labels, blocks=blocks, frame=frame)
    options = {"columns": NAMES, "blocks": blocks, "frame": frame}
    found = scan(with_groups(prediction, groups), labels, groups="country", **options)
    same(found, wanted, groups, prediction[frame])
    found = scan(frame_of(prediction), labels, groups=of_records(groups), **options)
    same(found, wanted, groups, prediction[frame])


@pytest.mark.parametrize("kind", ["strings", "integers"])
def test_predictions_on_the_records_that_they_share(kind, tmp_path):
    """Groups are a column of the first prediction, or of a second table; those of other records do not count."""
    prediction, labels, _ = population(7, kind=kind, lacking=0)
    groups = variable(prediction)
    new = pd.Series(np.roll(prediction.to_numpy(), 5), prediction.index)[9:]
    old = prediction.drop([r for r in prediction.index if r not in set(labels.index)][-9:])
    common = old.index.intersection(new.index)
    shared = {name: p[p.index.isin(common)] for name, p in (("old", old), ("new", new))}
    held = labels[labels.index.isin(shared["old"].index)]
    attributes = groups.rename_axis("id").reset_index().sample(frac=1, random_state=1)
    with_groups(old, groups[old.index]).to_parquet(tmp_path / "old.parquet")
    with_groups(new, groups[new.index].map({"FR": "x"})).to_parquet(tmp_path / "wrong.parquet")
    frame_of(new).to_parquet(tmp_path / "new.parquet")
    attributes.to_parquet(tmp_path / "a.parquet")
    files = {"old": tmp_path / "old.parquet", "new": tmp_path / "new.parquet"}
    frames = {"old": frame_of(old).astype({"cluster": "category"}), "new": frame_of(new)}
    dated = {"columns": Columns("record", "cluster"), "groups": "country"}
    in_memory, in_file = (GroupSource(table, "country") for table in (attributes, tmp_path / "a.parquet"))
    for sources, options in (
        (files, dated),
        ({**files, "new": tmp_path / "wrong.parquet"}, dated),
        (frames | {"old": with_groups(old, groups[old.index]).astype({"cluster": "category"})}, dated),
        (files | {"old": frames["old"]}, {"groups": in_file}),
        (frames, {"groups": in_memory}),
        (frames | {"new": files["new"]}, {"groups": in_memory}),
    ):
        units = scan(sources, labels, **options)
        for name, one in units.items():
            same(one, eb.measure(shared[name], labels, missing=eb.Missing.OMIT), groups, shared[name])
        comparison = eb.compare(units, labels, eb.UniformClusters(), DEFAULT_METRICS)
        found = compare_by_domain(comparison, "country", DEFAULT_METRICS, fewest=0).table()
        memory = eb.compare(shared, held, eb.UniformClusters(), DEFAULT_METRICS)
        table = compare_by_domain(memory, groups, DEFAULT_METRICS, predictions=shared, fewest=0).table()
        pd.testing.assert_frame_equal(found, table, rtol=1e-9, check_dtype=False)


def test_common_records_in_a_frame_and_without_groups():
    prediction, labels, _ = population(6, lacking=0)
    groups = variable(prediction)
    new = pd.Series(np.roll(prediction.to_numpy(), 5), prediction.index)
    rng = np.random.default_rng(1)
    frame = pd.Index([r for r in prediction.index if r in set(labels.index) or rng.random() < 0.6])
    both = {"old": with_groups(prediction, groups), "new": frame_of(new)}
    units = scan(both, labels, NAMES, frame=frame, groups="country")
    for name, one in units.items():
        p = {"old": prediction, "new": new}[name]
        same(one, eb.measure(p, labels, frame=frame), groups, p[frame])
    outside = [r for r in frame if r not in set(labels.index)][:7]
    gaps = groups.mask(groups.index.isin(outside))
    both["old"] = with_groups(prediction, gaps)
    units = scan(both, labels, NAMES, frame=frame, groups="country")
    assert {one.groupings[0].unknown for one in units.values()} == {7}


def test_records_without_a_group():
    prediction, labels, _ = population(8, lacking=0)
    groups = variable(prediction)
    outside = [r for r in prediction.index if r not in set(labels.index)][:7]
    gaps = groups.mask(groups.index.isin(outside))
    in_memory = sampled(eb.measure(prediction, labels))
    wanted = eb.by_domain(in_memory, groups, DEFAULT_METRICS, fewest=0).table()
    for source, groups_of in (
        (with_groups(prediction, gaps), "country"),
        (frame_of(prediction), of_records(gaps)),
        (frame_of(prediction), of_records(groups.drop(outside))),
    ):
        units = scan(source, labels, NAMES, groups=groups_of)
        assert units.groupings[0].unknown == 7 and units.groupings[0].predicted is None
        found = eb.by_domain(sampled(units), "country", DEFAULT_METRICS, fewest=0)
        pd.testing.assert_frame_equal(found.table(), wanted, rtol=1e-9)
        with pytest.raises(NotIdentified, match="7 of the prediction have none: write one there"):
            eb.by_domain(sampled(units), "country", DEFAULT_METRICS, links=Links.INSIDE)
    gaps = groups.mask(groups.index.isin(labels.index[:2]))
    with pytest.raises(DataError, match=r"'country' has no value for 2 of .* labelled records, such as"):
        scan(with_groups(prediction, gaps), labels, NAMES, groups="country")


@pytest.mark.parametrize("missing", [eb.Missing.SINGLETON, eb.Missing.TOGETHER])
def test_labelled_records_that_the_prediction_lacks(missing):
    prediction, labels, _ = population(9)
    every = pd.Series("FR", labels.index.union(prediction.index), name="country")
    every[::2] = "US"
    found = scan(frame_of(prediction), labels, missing=missing, groups=of_records(every))
    assert found.groupings[0].predicted is None
    in_memory = sampled(eb.measure(prediction, labels, missing=missing))
    wanted = eb.by_domain(in_memory, every, "b3-recall", fewest=0)
    by = eb.by_domain(sampled(found), "country", "b3-recall", fewest=0)
    pd.testing.assert_frame_equal(by.table(), wanted.table())


def test_links_inside_two_of_four_groups_are_refused():
    """The rest of one group is counted, and so are links of any set with all records of their clusters."""
    prediction, labels, _ = population(4, lacking=0)
    groups = variable(prediction)
    groups[::7] = "DE"
    found = scan(with_groups(prediction, groups), labels, NAMES, groups="country")
    same(found, eb.measure(prediction, labels), groups, prediction)


@pytest.mark.parametrize("change, message", [
    ({"group": "land"}, "has no column 'land'; it has 'record', 'country'"),
    ({"source": pd.DataFrame({"record": ["r1", "r1"], "country": ["FR", "US"]})}, "1 records have several"),
    ({"source": pd.DataFrame({"record": [1, 2], "country": ["FR", "US"]})}, "of type integer"),
    ({"source": pd.DataFrame({"country": ["FR", "US"]})}, "table of attributes needs a column of ids"),
    ({"source": pd.DataFrame({"record": ["a", None], "country": ["F", "U"]})}, "are missing in rows"),
    ({"source": pd.DataFrame({"record": ["a"], "country": [0.5]})}, "not whole, such as 0.5"),
    ({"group": None}, "the column of groups is named by a text"),
])  # fmt: skip
def test_what_is_wrong_with_attributes_is_said(change, message):
    """Of one prediction, and of the common records of two."""
    prediction, labels, _ = population(1, lacking=0)
    attributes = variable(prediction).rename_axis("record").reset_index()
    one, given = frame_of(prediction), {"group": "country", "source": attributes} | change
    for source in (one, {"old": one, "new": one}):
        with pytest.raises(DataError, match=message):
            scan(source, labels, groups=GroupSource(**given))


def test_too_many_values_are_refused():
    prediction = pd.Series(np.arange(20_000) // 2, np.arange(20_000))
    ids = with_groups(prediction, pd.Series(np.arange(20_000)))
    with pytest.raises(DataError, match="more than 10,000 values"):
        scan(ids, prediction[:4], Columns("record", "cluster"), groups="country")
    ids["country"] %= 300
    with pytest.raises(DataError, match="300 values among the labelled records"):
        scan(ids, prediction[:600], Columns("record", "cluster"), groups="country")


def test_a_source_with_its_own_database_takes_no_second_table():
    prediction, labels, _ = population(1, lacking=0)
    relation = SOURCES["relation"](frame_of(prediction), None)
    with pytest.raises(DataError, match="takes no second table of attributes: make a view there"):
        scan(relation, labels, groups=GroupSource(variable(prediction).reset_index(), "country"))
    attributes = SOURCES["relation"](variable(prediction).rename_axis("record").reset_index(), None)
    both = {"old": frame_of(prediction), "new": frame_of(prediction)}
    with pytest.raises(DataError, match="takes no second table of attributes"):
        scan(both, labels, groups=GroupSource(attributes, "country"))


def test_integers_of_files_as_text(tmp_path):
    prediction, labels, _ = population(2, kind="integers", lacking=0)
    groups = variable(prediction, (1, 2, 3))
    with_groups(prediction, groups).to_parquet(tmp_path / "p.parquet")
    text = labels.set_axis(labels.index.astype(str))
    found = scan(Files(tmp_path / "p.parquet", text=True), text, NAMES, groups="country")
    assert found.groupings[0].values.tolist() == ["1", "2", "3"]
