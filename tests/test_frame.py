"""Frames: the same as a prediction cut down by hand, whatever says which records existed."""

import datetime as dt
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from checks import raises
from test_scan import parquet, same, sqlite

import erbayes as eb
from erbayes import metrics as m
from erbayes.large import Columns, Files, scan
from erbayes.units.clustering import Clustering, framed

pytestmark = pytest.mark.lowest
pytest.importorskip("duckdb", reason="duckdb is not installed")
DAYS = pd.date_range("2020-01-01", periods=400, freq="D")
CUT = dt.date(2020, 10, 1)


def links_inside(prediction, frame):
    return framed(Clustering.of(prediction), Clustering.of({}), frame)[1].links_inside


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
    "numbers of rows": pd.DataFrame({"X": range(len(INSIDE)), "r": INSIDE, "year": 2020}),
    "one column": pd.DataFrame({"r": INSIDE}),
    "rows by date": TABLE.loc[TABLE.created <= str(CUT), ["record"]],
    "polars": pl.DataFrame({"r": INSIDE, "c": "x"}),
    "Arrow": pa.table({"r": INSIDE}),
}


def links(sizes):
    return sum(k * (k - 1) for k in sizes.values())


@pytest.mark.parametrize("name", IDS)
def test_ids_are_the_prediction_cut_down_by_hand(name):
    same(eb.measure(PRED, LABELS, frame=IDS[name]), WANTED)
    if name in {"set", "array", "Clustering"}:
        same(scan(TABLE[["record", "cluster"]], LABELS, frame=IDS[name]), WANTED)


def test_the_frame_as_files_and_text(tmp_path):
    path = parquet(TABLE, tmp_path)
    older = tmp_path / "old.csv"
    OLDER.rename("cluster").rename_axis("record").reset_index().to_csv(older, index=False)
    found = scan(path, LABELS, Columns("record", "cluster"), frame=older)
    same(found, WANTED)
    assert found.frame == eb.measure(PRED, LABELS, frame=INSIDE).frame
    table, labels, old = releases(kind=int)
    numbers = tmp_path / "numbers"
    numbers.mkdir()
    files = Files(parquet(table, numbers), text=True)
    text = labels.rename(index=str)
    wanted = eb.measure(table[old].astype({"record": str})[["record", "cluster"]], text)
    same(scan(files, text, Columns("record", "cluster"), frame=[str(r) for r in table.record[old]]), wanted)
    scanned = scan(table, labels, Columns("record", "cluster"), frame=table.record[old].tolist())
    same(scanned, eb.measure(table.loc[old, ["record", "cluster"]], labels))


def test_engines_of_their_own_take_a_view_of_the_frame_and_no_ids():
    import duckdb

    connection = duckdb.connect()
    connection.register("p", TABLE)
    relation = connection.sql("SELECT * FROM p")
    view = connection.sql(f"SELECT record, cluster FROM p WHERE created <= DATE '{CUT}'")
    same(scan(view, LABELS), WANTED)
    for source in (sqlite(TABLE.astype({"created": str})), relation):
        with pytest.raises(eb.DataError, match="takes no list of ids as a frame"):
            scan(source, LABELS, Columns("record", "cluster"), frame=INSIDE)
    with pytest.raises(eb.DataError, match="takes no list of ids as a frame"):
        scan(TABLE, LABELS, frame=sqlite(PRED.reset_index()))


def test_ids_that_are_no_text():
    half = "\ud800"  # half of a surrogate pair
    odd = pd.Series(["a", "a", "a"], pd.Index([half, "b", "c"], dtype=object))
    same(eb.measure(odd, odd[:2], frame=odd.index[:2]), eb.measure(odd[:2], odd[:2]))
    table, labels, old = releases(kind=int)
    pred = table.set_index("record").cluster
    same(eb.measure(pred, labels, frame=pred.index[old]), eb.measure(pred[old], labels))


def test_a_series_holds_ids_in_its_index_or_if_it_has_none_in_its_values():
    pred = {0: "a", 1: "a", 2: "a", 3: "b"}
    labels, of_listed = {0: "e", 1: "e"}, {0: "a", 1: "a", 3: "b"}
    for frame, inside in (
        (pd.Series(["x", "x", "y"]), {0: "a", 1: "a", 2: "a"}),  # an older prediction of records 0, 1 and 2
        (pd.Series([1, 0, 3]), of_listed),
        (pd.Series([7, 8, 9], [1, 0, 3]), of_listed),
    ):
        same(eb.measure(pred, labels, frame=frame), eb.measure(inside, labels))


def test_repeats_in_a_list_of_ids_count_once(tmp_path):
    listed = pd.DataFrame({"other": "x", "record": [*INSIDE, *INSIDE[:9], "gone"]})
    path = parquet(listed, tmp_path)
    scanned = scan(TABLE, LABELS, Columns("record", "cluster"), frame=path)
    for units in (eb.measure(PRED, LABELS, frame=list(listed.record)), scanned):
        same(units, WANTED)
        assert units.frame.absent == 1


def test_facts_by_brute_force():
    whole, old = Counter(PRED), Counter(CUT_DOWN)
    found = eb.measure(PRED, LABELS, frame=[*INSIDE, "gone", "too"]).frame
    inside = links(old) / sum(k * (whole[c] - 1) for c, k in old.items())
    assert 0.3 < inside < 0.9 and found.links_inside == pytest.approx(inside, rel=1e-14)
    assert (found.inside, found.outside, found.absent) == (len(INSIDE), len(TABLE) - len(INSIDE), 2)
    assert scan(TABLE, LABELS, Columns("record", "cluster"), frame=[*INSIDE, "gone", "too"]).frame == found
    assert links_inside(PRED, INSIDE) == found.links_inside and links_inside(PRED, PRED) == 1
    assert links_inside({1: "a", 2: "b"}, [1]) == 1  # no predicted link: nothing to be off
    assert eb.measure(PRED, LABELS).frame is eb.measure(PRED, LABELS, frame=INSIDE).isolated().frame is None
    facts = eb.Sample(eb.measure(PRED, LABELS, frame=INSIDE), eb.UniformClusters()).facts()
    assert facts["records outside the frame"] == f"{found.outside} of {len(TABLE)}"


def test_precision_without_the_frame_is_off_by_the_known_factor():
    labels = PRED[OLD].rename("entity").str[1:]  # every record of the frame labelled
    design = eb.UniformClusters(population=labels.nunique())
    P = [m.pairwise_precision]
    samples = [eb.Sample(eb.measure(PRED, labels, frame=frame), design) for frame in (None, INSIDE)]
    stale, inside = (eb.engine.taylor(sample, P).apply(P, order=1).mean[0] for sample in samples)
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
        same(eb.measure(kept.drop(columns="created"), LABELS, missing=missing, frame=INSIDE), wanted)
        same(scan(kept, LABELS, Columns("record", "cluster"), missing=missing, frame=INSIDE), wanted)
    said = f"{len(lost)} of {len(LABELS)} labelled records are not in the pred"
    raises(eb.DataError, said, scan, kept, LABELS, Columns("record", "cluster"), frame=INSIDE)
    omitted = eb.measure(kept.drop(columns="created"), LABELS, missing=eb.Missing.OMIT, frame=INSIDE)
    assert omitted.frame.absent == len(lost)


def test_sampled_predicted_clusters_inside_the_frame():
    sampled = list(pd.unique(CUT_DOWN))[:4]
    true = pd.Series([f"e{i % 9}" for i in range(len(CUT_DOWN))], CUT_DOWN.index)
    wanted = eb.measure_predicted(CUT_DOWN, true, sampled)
    found = eb.measure_predicted(PRED, true, sampled, frame=INSIDE)
    same(found, wanted)
    assert found.frame.outside == len(TABLE) - len(INSIDE)
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
    assert [s.units.frame.outside for s in found.samples] == [400 - len(INSIDE), 402 - len(INSIDE)]
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


def test_several_predictions_inside_the_frame():
    other = TABLE.assign(cluster="c1")
    found = scan({"a": TABLE, "b": other}, LABELS, Columns("record", "cluster"), frame=INSIDE)
    for name, table in (("a", TABLE), ("b", other)):
        alone = scan(table, LABELS, Columns("record", "cluster"), frame=INSIDE)
        same(found[name], alone)
        assert found[name].frame == alone.frame
    assert found["a"].frame.links_inside != found["b"].frame.links_inside


def test_estimate_takes_a_frame(tmp_path):
    design, P = eb.UniformRecords(), [m.pairwise_precision]
    wanted = eb.estimate(CUT_DOWN, LABELS, design, P)
    for source in (PRED, parquet(PRED.rename_axis("record").reset_index(), tmp_path)):
        found = eb.estimate(source, LABELS, design, P, frame=INSIDE)
        np.testing.assert_array_equal(found.mean, wanted.mean)
        np.testing.assert_array_equal(found.cov, wanted.cov)


BEYOND = pd.concat([LABELS, pd.Series("e1", TABLE.record[~OLD].to_numpy()[:2])])


@pytest.mark.parametrize("labels, frame, message", [
    (LABELS, [], "the frame holds no record"),
    (LABELS, [*INSIDE[5:], None], "record ids of the frame: 1 of"),
    (LABELS, [1, 2], "ids of the prediction are of type string, those of the frame of type integer"),
    (LABELS, ["a", "b"], "labelled records are outside the frame"),
    ({"gone": "e"}, ["gone"], "no record of the prediction is in the frame"),
    (BEYOND, INSIDE, f"2 of {len(BEYOND)} labelled records are outside the frame, such as '{BEYOND.index[-2]}'"),
    (LABELS, 7, "not int"),
])  # fmt: skip
def test_frames_that_cannot_be_used(labels, frame, message):
    for count in (eb.measure, scan):
        raises(eb.DataError, message, count, TABLE[["record", "cluster"]], labels, frame=frame)


def test_a_frame_in_files_goes_with_a_prediction_in_files(tmp_path):
    raises(eb.DataError, "files go with a prediction in files", eb.measure, PRED, LABELS, frame="old.csv")
    empty = tmp_path / "empty.csv"
    empty.write_text("record\n", encoding="utf-8")
    with pytest.raises(eb.DataError, match="the frame holds no record"):
        scan(TABLE, LABELS, Columns("record", "cluster"), frame=empty)
    gaps = pd.DataFrame({"record": INSIDE}).to_csv(index=False) + '""\n'
    empty.write_text(gaps, encoding="utf-8")
    with pytest.raises(eb.DataError, match="record ids of the frame: 1 of"):
        scan(TABLE, LABELS, Columns("record", "cluster"), frame=empty)


def test_missing_ids_inside_the_frame_are_still_refused():
    broken = TABLE.copy()
    broken.loc[5, "record"] = None
    broken.loc[np.flatnonzero(OLD)[3], "cluster"] = None
    broken = broken[["record", "cluster"]]
    for table, what in ((broken.assign(cluster="a"), "record"), (broken.dropna(subset="record"), "cluster")):
        for count in (eb.measure, scan):
            with pytest.raises(eb.DataError, match=f"{what} ids of the prediction: 1 of"):
                count(table, LABELS.iloc[:3], frame=INSIDE)
    with pytest.raises(eb.DataError, match="record ids of the prediction: 1 of"):
        both = {"old": TABLE[["record", "cluster"]], "new": broken.assign(cluster="a")}
        scan(both, LABELS.iloc[:3], frame=INSIDE)


def test_nothing_given_is_changed():
    pred, labels, frame = PRED.copy(), LABELS.copy(), pd.Series(INSIDE)
    before = pred.copy(), labels.copy(), frame.copy()
    eb.measure(pred, labels, frame=frame)
    eb.measure(pred, labels, frame=(listed := list(INSIDE)))
    pd.testing.assert_series_equal(pred, before[0])
    pd.testing.assert_series_equal(labels, before[1])
    pd.testing.assert_series_equal(frame, before[2])
    assert listed == INSIDE


def test_units_that_are_taken_keep_what_the_frame_leaves():
    prediction, labels = {i: i // 2 for i in range(40)}, {i: i // 4 for i in range(0, 12, 2)}
    units = eb.measure(prediction, labels, frame=range(0, 40, 2))
    assert units.frame is not None and units.take(np.array([1, 0])).frame is units.frame
