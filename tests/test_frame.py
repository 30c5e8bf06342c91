"""Frames: the same as a prediction cut down by hand, whatever says which records existed."""

import datetime as dt
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from test_scan import parquet, same, sqlite

import erbayes as eb
from erbayes import metrics as m
from erbayes.large import Columns, DuckDB, Files, Releases, scan
from erbayes.units.clustering import Clustering
from erbayes.units.frame import Cut, FrameFacts, framed

pytestmark = pytest.mark.lowest
pytest.importorskip("duckdb", reason="duckdb is not installed")
DAYS = pd.date_range("2020-01-01", periods=400, freq="D")
CUT = dt.date(2020, 10, 1)


def links_inside(prediction, frame):
    return framed(prediction, Clustering.of({}), frame)[1].cut.links_inside


def releases(seed=1, records=400, kind=str):
    """A table with dates, labels of some entities up to the cut, and blocks of these."""
    rng = np.random.default_rng(seed)
    entity = rng.integers(records // 5, size=records)
    cluster = np.where(rng.random(records) < 0.7, entity, rng.integers(records // 5, size=records))
    name = (lambda x: f"r{x}") if kind is str else int
    table = pd.DataFrame(
        {
            "record": [name(i) for i in rng.permutation(records)],
            "cluster": [f"c{c}" for c in cluster],
            "created": DAYS[rng.integers(len(DAYS), size=records)],
        }
    )
    old = (table.created.dt.date <= CUT).to_numpy()
    told = old & np.isin(entity, rng.choice(records // 5, 30, replace=False))
    labels = pd.Series([f"e{e}" for e in entity[told]], table.record[told].to_numpy())
    return table, labels, old


TABLE, LABELS, OLD = releases()
PRED = TABLE.set_index("record").cluster
CUT_DOWN = PRED[OLD]  # by hand
INSIDE = list(CUT_DOWN.index)
WANTED = eb.measure(CUT_DOWN, LABELS)
OLDER = pd.Series(["x"] * len(INSIDE), INSIDE)  # an older prediction of any clusters

IDS = {
    "list": INSIDE,
    "set": set(INSIDE),
    "array": np.array(INSIDE),
    "Index": pd.Index(INSIDE),
    "Series of ids": pd.Series(INSIDE),
    "repeated": INSIDE * 2,
    "categorical": pd.Categorical(INSIDE),
    "Series of clusters": OLDER,
    "dict": OLDER.to_dict(),
    "Clustering": eb.Clustering.of(OLDER),
    "table": pd.DataFrame({"r": INSIDE, "c": "x"}),
    "one column": pd.DataFrame({"r": INSIDE}),
    "polars": pl.DataFrame({"r": INSIDE, "c": "x"}),
    "Arrow": pa.table({"r": INSIDE}),
}
DATES = {
    "days": (TABLE.created, "2020-10-01"),
    "times": (TABLE.created + pd.Timedelta(hours=23, minutes=59), CUT),
    "a time as cut-off": (TABLE.created, pd.Timestamp(CUT)),
    "date objects": (TABLE.created.dt.date, "2020-10-01"),
    "text": (TABLE.created.dt.strftime("%Y-%m-%d"), CUT),
    "text with time": (TABLE.created.dt.strftime("%Y-%m-%dT22:00:00"), CUT),
    "categorical text": (TABLE.created.dt.strftime("%Y-%m-%d").astype("category"), CUT),
    "numbers": (TABLE.created.dt.strftime("%Y%m%d").astype(int), np.int64(20201001)),
    "numbers as text": (TABLE.created.dt.strftime("%Y%m%d"), 20201001),
}


def dated(name):
    column, until = DATES[name]
    return TABLE.assign(created=column), eb.Dated("created", until)


def links(sizes):
    return sum(k * (k - 1) for k in sizes.values())


@pytest.mark.parametrize("name", IDS)
def test_ids_are_the_prediction_cut_down_by_hand(name):
    same(eb.measure(PRED, LABELS, frame=IDS[name]), WANTED)
    if name in {"set", "array", "Clustering"}:
        same(scan(TABLE[["record", "cluster"]], LABELS, frame=IDS[name]), WANTED)


@pytest.mark.parametrize("name", DATES)
def test_dates_are_the_prediction_cut_down_by_hand(name, tmp_path):
    table, frame = dated(name)
    before = table.copy()
    found = eb.measure(table, LABELS, frame=frame)
    same(found, WANTED)
    pd.testing.assert_frame_equal(table, before)
    same(eb.measure(pa.Table.from_pandas(table), LABELS, frame=frame), WANTED)
    scanned = scan(table, LABELS, frame=frame)
    same(scanned, WANTED)
    same(scan(parquet(table, tmp_path), LABELS, frame=frame), WANTED)
    assert scanned.frame == found.frame


def test_the_frame_as_files_and_text(tmp_path):
    path = parquet(TABLE, tmp_path)
    older = tmp_path / "old.csv"
    OLDER.rename("cluster").rename_axis("record").reset_index().to_csv(older, index=False)
    found = scan(path, LABELS, Columns("record", "cluster"), frame=older)
    same(found, WANTED)
    assert found.frame == eb.measure(PRED, LABELS, frame=INSIDE).frame
    table, labels, old = releases(kind=int)
    table["created"] = table.created.dt.strftime("%Y%m%d").astype(int)
    numbers = tmp_path / "numbers"
    numbers.mkdir()
    files = Files(parquet(table, numbers), text=True)
    text = labels.rename(index=str)
    wanted = eb.measure(table[old].astype({"record": str})[["record", "cluster"]], text)
    same(scan(files, text, frame=eb.Dated("created", 20201001)), wanted)
    same(
        scan(files, text, Columns("record", "cluster"), frame=[str(r) for r in table.record[old]]),
        wanted,
    )
    same(
        scan(table, labels, Columns("record", "cluster"), frame=table.record[old].tolist()),
        eb.measure(table.loc[old, ["record", "cluster"]], labels),
    )


@pytest.mark.parametrize("name", ["text", "numbers", "numbers as text"])
def test_engines_of_their_own_take_dates(name):
    import duckdb

    table, frame = dated(name)
    wanted = eb.measure(table, LABELS, frame=frame).frame
    lite = scan(sqlite(table), LABELS, Columns("record", "cluster"), frame=frame)
    same(lite, WANTED)
    assert lite.frame == wanted
    connection = duckdb.connect()
    connection.register("p", table)
    relation = connection.sql("SELECT * FROM p")
    same(scan(relation, LABELS, frame=frame), WANTED)
    for source in (sqlite(table), relation):
        with pytest.raises(eb.DataError, match="takes no list of ids as a frame"):
            scan(source, LABELS, Columns("record", "cluster"), frame=INSIDE)
    with pytest.raises(eb.DataError, match="takes no list of ids as a frame"):
        scan(TABLE, LABELS, frame=sqlite(table))


def test_without_keeping_and_with_all_duplicates_looked_for():
    frame = eb.Dated("created", CUT)
    for database in (DuckDB(keep=False), DuckDB(one_in=1)):
        same(scan(TABLE, LABELS, frame=frame, database=database), WANTED)
        same(scan(TABLE, LABELS, Columns("record", "cluster"), frame=INSIDE, database=database), WANTED)


def test_ids_that_are_no_text():
    half = "\ud800"  # half of a surrogate pair
    odd = pd.Series(["a", "a", "a"], pd.Index([half, "b", "c"], dtype=object))
    same(eb.measure(odd, odd[:2], frame=odd.index[:2]), eb.measure(odd[:2], odd[:2]))
    table, labels, old = releases(kind=int)
    pred = table.set_index("record").cluster
    same(eb.measure(pred, labels, frame=pred.index[old]), eb.measure(pred[old], labels))


def test_a_series_holds_ids_in_its_index_or_if_it_has_none_in_its_values():
    pred = {0: "a", 1: "a", 2: "a", 3: "b"}
    older = pd.Series(["x", "x", "y"])  # an older prediction of the records 0, 1 and 2
    same(
        eb.measure(pred, {0: "e", 1: "e"}, frame=older),
        eb.measure({0: "a", 1: "a", 2: "a"}, {0: "e", 1: "e"}),
    )
    listed = pd.Series([1, 0, 3])
    same(
        eb.measure(pred, {0: "e", 1: "e"}, frame=listed),
        eb.measure({0: "a", 1: "a", 3: "b"}, {0: "e", 1: "e"}),
    )
    numbered = pd.Series([7, 8, 9], [1, 0, 3])
    same(eb.measure(pred, {0: "e", 1: "e"}, frame=numbered), eb.measure(pred, {0: "e", 1: "e"}, frame=listed))


def test_repeats_in_a_list_of_ids_count_once(tmp_path):
    listed = pd.DataFrame({"other": "x", "record": [*INSIDE, *INSIDE[:9], "gone"]})
    path = parquet(listed, tmp_path)
    for units in (
        eb.measure(PRED, LABELS, frame=list(listed.record)),
        scan(TABLE, LABELS, Columns("record", "cluster"), frame=path),
    ):
        same(units, WANTED)
        assert units.frame.absent == 1


def test_what_is_restricted_to_the_labels_has_no_frame():
    assert eb.measure(PRED, LABELS, frame=INSIDE).isolated().frame is None


def test_facts_by_brute_force():
    whole, old = Counter(PRED), Counter(CUT_DOWN)
    newest = TABLE.created[TABLE.record.isin(LABELS.index)].max().date()
    older = Counter(PRED[(TABLE.created.dt.date <= newest).to_numpy()])
    found = eb.measure(TABLE, LABELS, frame=eb.Dated("created", CUT)).frame
    inside = links(old) / sum(k * (whole[c] - 1) for c, k in old.items())
    assert 0.3 < inside < 0.9
    assert found.cut.links_inside == pytest.approx(inside, rel=1e-14)
    assert (found.cut.inside, found.cut.outside) == (len(INSIDE), len(TABLE) - len(INSIDE))
    assert found.newest == eb.Dated("created", newest) and found.absent is None
    assert found.labelled.links_inside == pytest.approx(
        links(older) / sum(k * (old[c] - 1) for c, k in older.items()), rel=1e-14
    )
    assert found.labelled.inside == sum(older.values())
    listed = eb.measure(PRED, LABELS, frame=[*INSIDE, "gone", "too"]).frame
    assert (listed.cut, listed.absent, listed.newest, listed.labelled) == (found.cut, 2, None, None)
    assert scan(TABLE, LABELS, Columns("record", "cluster"), frame=[*INSIDE, "gone", "too"]).frame == listed
    assert (
        links_inside(PRED, INSIDE) == links_inside(TABLE, eb.Dated("created", CUT)) == found.cut.links_inside
    )
    assert links_inside(PRED, PRED) == 1
    assert links_inside({1: "a", 2: "b"}, [1]) == 1  # no predicted link: nothing to be off
    assert eb.measure(PRED, LABELS).frame is None


def test_precision_without_the_frame_is_off_by_the_known_factor():
    labels = PRED[OLD].rename("entity").str[1:]  # every record of the frame labelled
    design = eb.UniformClusters(population=labels.nunique())
    P = [m.pairwise_precision]
    stale = eb.engine.taylor(eb.Sample(eb.measure(PRED, labels), design), P).apply(P, order=1).mean[0]
    inside = (
        eb.engine.taylor(eb.Sample(eb.measure(PRED, labels, frame=INSIDE), design), P)
        .apply(P, order=1)
        .mean[0]
    )
    assert stale / inside == pytest.approx(links_inside(PRED, INSIDE), rel=1e-12)
    assert inside == pytest.approx(1)


def test_blocks_and_policies_inside_the_frame():
    blocks = LABELS.map({e: f"b{i % 5}" for i, e in enumerate(LABELS.unique())})
    same(eb.measure(PRED, LABELS, blocks=blocks, frame=INSIDE), eb.measure(CUT_DOWN, LABELS, blocks=blocks))
    # records that the prediction lost since: some of them labelled
    lost = LABELS.index[::9]
    kept, cut_down = TABLE[~TABLE.record.isin(lost)], CUT_DOWN.drop(lost)
    for missing in (eb.Missing.OMIT, eb.Missing.SINGLETON, eb.Missing.TOGETHER):
        wanted = eb.measure(cut_down, LABELS, missing=missing)
        for frame in (INSIDE, eb.Dated("created", CUT)):
            same(
                eb.measure(
                    kept.drop(columns="created") if frame is INSIDE else kept,
                    LABELS,
                    missing=missing,
                    frame=frame,
                ),
                wanted,
            )
            columns = Columns("record", "cluster")
            same(scan(kept, LABELS, columns, missing=missing, frame=frame), wanted)
    for frame in (INSIDE, eb.Dated("created", CUT)):
        with pytest.raises(
            eb.DataError, match=f"{len(lost)} of {len(LABELS)} labelled records are not in the pred"
        ):
            scan(kept, LABELS, Columns("record", "cluster"), frame=frame)
    assert eb.measure(
        kept.drop(columns="created"), LABELS, missing=eb.Missing.OMIT, frame=INSIDE
    ).frame.absent == len(lost)


def test_sampled_predicted_clusters_inside_the_frame():
    sampled = list(pd.unique(CUT_DOWN))[:4]
    true = pd.Series([f"e{i % 9}" for i in range(len(CUT_DOWN))], CUT_DOWN.index)
    wanted = eb.measure_predicted(CUT_DOWN, true, sampled)
    same(eb.measure_predicted(PRED, true, sampled, frame=INSIDE), wanted)
    found = eb.measure_predicted(TABLE, true, sampled, frame=eb.Dated("created", CUT))
    same(found, wanted)
    assert found.frame.cut.outside == len(TABLE) - len(INSIDE)
    grown = pd.concat([PRED, pd.Series({"new1": "fresh", "new2": "fresh"})])
    with pytest.raises(eb.DataError, match="1 sampled clusters are not predicted in the frame: 'fresh'"):
        eb.measure_predicted(grown, true, [*sampled, "fresh"], frame=INSIDE)


def test_comparison_inside_the_frame(tmp_path):
    other = PRED.copy()
    other.iloc[::5] = "c1"
    latest = pd.concat([other, pd.Series({"new1": "c1", "new2": "c1"})])
    design, P = eb.UniformRecords(), [m.pairwise_precision, m.b3_recall]
    wanted = eb.compare({"old": CUT_DOWN, "new": other[OLD]}, LABELS, design, P)
    with pytest.raises(eb.DataError, match="share 400 records; beyond these 'new' covers 2"):
        eb.compare({"old": PRED, "new": latest}, LABELS, design, P)
    found = eb.compare({"old": PRED, "new": latest}, LABELS, design, P, frame=INSIDE)
    pd.testing.assert_frame_equal(found.differences(), wanted.differences())
    assert [s.units.frame.cut.outside for s in found.samples] == [400 - len(INSIDE), 402 - len(INSIDE)]

    folders = [tmp_path / name for name in ("old", "new")]
    for folder, prediction in zip(folders, (PRED, latest), strict=True):
        folder.mkdir()
        parquet(prediction.rename("cluster").rename_axis("record").reset_index(), folder)
    scanned = eb.compare(dict(zip(("old", "new"), folders, strict=True)), LABELS, design, P, frame=INSIDE)
    pd.testing.assert_frame_equal(scanned.differences(), wanted.differences())

    gone = {"old": PRED.drop(INSIDE[:7]), "new": latest}
    some = LABELS.drop(INSIDE[:7], errors="ignore")
    cut = {name: p[p.index.isin(INSIDE)] for name, p in gone.items()}
    common = eb.compare(cut, some, design, P, missing=eb.Missing.COMMON)
    for found in (
        eb.compare(gone, some, design, P, missing=eb.Missing.COMMON, frame=INSIDE),
        eb.compare(scan(gone, some, frame=INSIDE), some, design, P, missing=eb.Missing.COMMON),
    ):
        pd.testing.assert_frame_equal(found.differences(), common.differences())
        assert [s.units.frame.absent for s in found.samples] == [7, 0]


def test_releases_in_one_table_inside_the_frame():
    other = TABLE.assign(cluster="c1")
    both = pd.concat([TABLE.assign(release=1), other.assign(release=2)])
    for frame in (INSIDE, eb.Dated("created", CUT)):
        found = scan(Releases(both, "release"), LABELS, Columns("record", "cluster"), frame=frame)
        for release, table in ((1, TABLE), (2, other)):
            alone = scan(table, LABELS, Columns("record", "cluster"), frame=frame)
            same(found[release], alone)
            assert found[release].frame == alone.frame
    assert found[1].frame.cut.links_inside != found[2].frame.cut.links_inside


def test_estimate_takes_a_frame(tmp_path):
    design, P = eb.UniformRecords(), [m.pairwise_precision]
    wanted = eb.estimate(CUT_DOWN, LABELS, design, P)
    for found in (
        eb.estimate(PRED, LABELS, design, P, frame=INSIDE),
        eb.estimate(TABLE, LABELS, design, P, frame=eb.Dated("created", CUT)),
        eb.estimate(parquet(TABLE, tmp_path), LABELS, design, P, frame=eb.Dated("created", CUT)),
    ):
        np.testing.assert_array_equal(found.mean, wanted.mean)
        np.testing.assert_array_equal(found.cov, wanted.cov)


BEYOND = pd.concat([LABELS, pd.Series("e1", TABLE.record[~OLD].to_numpy()[:2])])


@pytest.mark.parametrize(
    "labels, frame, message",
    [
        (LABELS, [], "the frame holds no record"),
        (LABELS, [*INSIDE[5:], None], "record ids of the frame: 1 of"),
        (LABELS, [1, 2], "ids of the prediction are of type string, those of the frame of type integer"),
        (LABELS, ["a", "b"], "labelled records are outside the frame"),
        (
            BEYOND,
            INSIDE,
            f"2 of {len(BEYOND)} labelled records are outside the frame, such as '{BEYOND.index[-2]}'",
        ),
        (BEYOND, eb.Dated("created", CUT), f"2 of {len(BEYOND)} labelled records are outside the frame"),
        (
            LABELS,
            eb.Dated("created", "1999-12-31"),
            "no record of the prediction is in the frame|labelled records are",
        ),
        (LABELS, eb.Dated("day"), "column 'day'"),
        (LABELS, eb.Dated("created", 2020), "holds (days|TIMESTAMP_?N?S?): records must be dated by"),
        (
            LABELS,
            eb.Dated("cluster", 2020),
            f"{len(TABLE)} of {len(TABLE)} values of 'cluster' are not written like 2020",
        ),
        (LABELS, eb.Dated("cluster"), "holds text such as 'c"),
        (LABELS, eb.Dated("missing"), "3 of 400 records of the prediction have no 'missing'"),
        (LABELS, eb.Dated("score", 2020), "holds (floating|DOUBLE)"),
        (LABELS, eb.Dated("score"), "holds (floating|DOUBLE)"),
        (LABELS, eb.Dated("zone", CUT), "(with a zone|WITH TIME ZONE|TIMESTAMPTZ_NS)"),
        (LABELS, eb.Dated("zone of nanoseconds", CUT), "(with a zone|WITH TIME ZONE|TIMESTAMPTZ_NS)"),
        (LABELS, eb.Dated("number", CUT), "holds (whole numbers|integer).* as the cut-off is, 2020-10-01"),
        (LABELS, eb.Dated("text", 2020), "400 of 400 values of 'text' are not written like 2020"),
        (LABELS, eb.Dated("mixed", 2020), "1 of 400 values of 'mixed' are not written like 2020"),
        (
            LABELS,
            pd.DataFrame({"a": INSIDE, "b": 1, "c": 1}),
            "give its column of record ids; it has 'a', 'b', 'c'",
        ),
        (LABELS, 7, "not int"),
    ],
)
def test_frames_that_cannot_be_used(labels, frame, message):
    table = TABLE.assign(
        missing=TABLE.created.where(TABLE.index >= 3),
        score=0.5,
        zone=TABLE.created.dt.tz_localize("UTC"),
        **{"zone of nanoseconds": TABLE.created.dt.tz_localize("UTC").dt.as_unit("ns")},
        number=2020,
        text=TABLE.created.dt.strftime("%Y-%m-%d"),
        mixed=["2020"] * 399 + ["20"],
    )
    own = [frame.column] if isinstance(frame, eb.Dated) and frame.column in table.columns[2:] else []
    for count in (eb.measure, scan):
        given = table[["record", "cluster", *own]]
        if own == [] and isinstance(frame, eb.Dated) and frame.column == "cluster":
            given = table.rename(columns={"cluster": "other"}).assign(cluster=table.cluster)
            given = given[["record", "other", "cluster"]]
        with pytest.raises(eb.DataError, match=message):
            count(given, labels, frame=frame)


def test_a_frame_in_files_goes_with_a_prediction_in_files(tmp_path):
    with pytest.raises(eb.DataError, match="files go with a prediction in files"):
        eb.measure(PRED, LABELS, frame="old.csv")
    with pytest.raises(eb.DataError, match="needs a table with this column, not a Series"):
        eb.measure(PRED, LABELS, frame=eb.Dated("created"))
    with pytest.raises(eb.DataError, match="needs one column 'created'"):
        eb.measure(PRED.reset_index(), LABELS, frame=eb.Dated("created"))
    empty = tmp_path / "empty.csv"
    empty.write_text("record\n")
    with pytest.raises(eb.DataError, match="the frame holds no record"):
        scan(TABLE, LABELS, Columns("record", "cluster"), frame=empty)
    gaps = pd.DataFrame({"record": INSIDE}).to_csv(index=False) + '""\n'
    empty.write_text(gaps)
    with pytest.raises(eb.DataError, match="record ids of the frame: 1 of"):
        scan(TABLE, LABELS, Columns("record", "cluster"), frame=empty)


@pytest.mark.parametrize(
    "until", ["2021", "30/06/2021", dt.datetime(2021, 1, 1, 5), True, 2.5, "", pd.Timestamp("2021", tz="UTC")]
)
def test_cut_offs_that_are_none(until):
    with pytest.raises(eb.DataError, match="a cut-off is a day \\(YYYY-MM-DD\\) or a whole number"):
        eb.Dated("created", until)


def test_missing_ids_inside_the_frame_are_still_refused():
    broken = TABLE.copy()
    broken.loc[5, "record"] = None
    broken.loc[np.flatnonzero(OLD)[3], "cluster"] = None
    broken = broken[["record", "cluster"]]
    for table, what in ((broken.assign(cluster="a"), "record"), (broken.dropna(subset="record"), "cluster")):
        for count in (eb.measure, scan):
            with pytest.raises(eb.DataError, match=f"{what} ids of the prediction: 1 of"):
                count(table, LABELS.iloc[:3], frame=INSIDE)


def test_missing_ids_are_refused_of_several_predictions_too():
    table = TABLE[["record", "cluster"]]
    broken = table.assign(record=table.record.where(table.index != 5))
    with pytest.raises(eb.DataError, match="record ids of the prediction: 1 of"):
        scan({"old": table, "new": broken}, LABELS.iloc[:3], frame=INSIDE)


def test_nothing_given_is_changed():
    table, labels, frame = TABLE.copy(), LABELS.copy(), pd.Series(INSIDE)
    before = table.copy(), labels.copy(), frame.copy()
    eb.measure(table, labels, frame=eb.Dated("created", CUT))
    eb.measure(PRED, labels, frame=frame)
    eb.measure(PRED, labels, frame=(listed := list(INSIDE)))
    pd.testing.assert_frame_equal(table, before[0])
    pd.testing.assert_series_equal(labels, before[1])
    pd.testing.assert_series_equal(frame, before[2])
    assert listed == INSIDE


def by_cut(rng, entities=300, newer=0.2):
    """A prediction with false links, its truth, and which records existed when labels were made."""
    true = np.repeat(np.arange(entities), rng.integers(1, 9, size=entities))
    moved = rng.random(len(true)) < 0.03
    pred = np.where(moved, rng.integers(entities, size=len(true)), true)
    return pd.Series(pred), pd.Series(true), rng.random(len(true)) >= newer


def test_precision_inside_the_frame_is_covered_and_without_it_is_not():
    rng = np.random.default_rng(7)
    pred, true, old = by_cut(rng)
    entity = true[old]
    together = pd.Series(list(zip(pred[old], entity, strict=True))).value_counts()
    precision = links(dict(together)) / links(Counter(pred[old]))
    P, design = [m.pairwise_precision], eb.UniformRecords()
    drawn = rng.integers(len(entity), size=(400, 100))
    cover = {}
    for name, frame in (("frame", entity.index), ("none", None)):
        units = eb.measure(pred, entity, frame=frame)
        at = units.ids.get_indexer(entity)[drawn]
        bounds = (
            eb.engine.taylor(eb.Sample(units, design, design.expand_draws(units, at)), P).apply(P).interval()
        )
        cover[name] = np.mean((bounds[:, 0, 0] <= precision) & (precision <= bounds[:, 0, 1]))
        labels = entity[entity.isin(units.ids[np.unique(at[0])])]  # the first of them, one by one
        one = eb.engine.taylor(
            eb.Sample(eb.measure(pred, labels, frame=frame), eb.UniformRecords(units.ids[at[0]])), P
        )
        np.testing.assert_allclose(one.apply(P).interval()[0], bounds[0, 0], rtol=1e-9)
    assert cover["frame"] >= 0.92 and cover["none"] == 0


def told(units, draws=40):
    """Alarms of `draws` draws of the units, about labels that are older than the frame."""
    at = np.arange(draws) % len(units)
    sample = eb.Sample(units, eb.UniformRecords(units.ids[at]))
    return [a for a in eb.alarms(sample, [m.b3_precision]) if "newer than every labelled one" in a]


def test_the_alarm_of_labels_that_are_older_than_the_prediction():
    every = np.arange(400)
    table = pd.DataFrame({"record": every, "cluster": every // 4, "year": 2020 + (every % 10 < 3)})
    old = table[table.year == 2020]
    labels = old[old.cluster % 3 == 0].set_index("record").cluster
    units = eb.measure(table, labels, frame=eb.Dated("year"))
    off = links_inside(table[["record", "cluster"]], old.record)
    assert off < 0.8
    assert told(units) == [
        "30% of the records are newer than every labelled one: if the labels were made before these came, "
        f"the estimate of pairwise precision is {off:.3f} of the truth. End the frame with the labels: 'year' up to 2020."
    ]
    assert told(eb.measure(table, labels, frame=eb.Dated("year", 2020))) == []
    assert told(eb.measure(table.drop(columns="year"), labels, frame=old.record)) == []
    fresh = table[table.cluster % 3 == 0].set_index("record").cluster
    assert told(eb.measure(table, fresh, frame=eb.Dated("year"))) == []
    facts = eb.Sample(units, eb.UniformClusters()).facts()
    assert facts["the newest labelled record"] == "2020 in 'year'"
    assert facts["records outside the frame"] == "0 of 400"


@pytest.mark.parametrize(
    "newer, share, draws, expected",
    [
        (1087, 0.5, 40, 0),  # (1 - .1087)^40 = .01002
        (1088, 0.5, 40, 1),  # (1 - .1088)^40 = .00998
        (1088, 0.5, 39, 0),
        (3000, 0.9901, 40, 0),
        (3000, 0.9899, 40, 1),
    ],
)
def test_the_bounds_of_that_alarm(newer, share, draws, expected):
    labelled = Cut(10_000 - newer, newer, share)
    facts = FrameFacts(Cut(10_000, 0, 1.0), newest=eb.Dated("created", CUT), labelled=labelled)
    assert len(told(replace(WANTED, frame=facts), draws)) == expected
