"""What the columns of a table mean: the smallest tables with their right readings, and files of matchers."""

import io

import pandas as pd
import pytest

from erbayes import Clustering, DataError
from erbayes._internal.known_columns import JOIN
from erbayes.units.facts import Named
from erbayes.units.reading import read_prediction

SPLINK = "unique_id_l,unique_id_r,match_weight,match_probability"
TWO_SOURCES = "source_dataset_l,unique_id_l,source_dataset_r,unique_id_r"


def table(text):
    """Rows between blanks, columns between commas."""
    return pd.read_csv(io.StringIO(text.replace(" ", "\n")), dtype=str, keep_default_na=False, na_values=[""])


def read(text, records=None, sample=None, **named):
    """The clusters that a table is read as, each as its sorted records."""
    known = {
        name: None if ids is None else pd.Index(list(ids))
        for name, ids in (("listed", records), ("sample", sample))
    }
    reading = read_prediction(table(text), Named(**named), **known)
    clustering = Clustering.read(reading, known["listed"])
    found = {}
    for record, code in zip(clustering.records, clustering.codes, strict=True):
        found.setdefault(code, []).append(record)
    return sorted("+".join(sorted(records)) for records in found.values())


@pytest.mark.parametrize(
    ("text", "named", "clusters"),
    [
        # memberships: by values in either order, by names in any
        ("a,b 1,x 2,x 3,y", {}, "1+2 3"),
        ("b,a x,1 x,2 y,3", {}, "1+2 3"),
        ("name,MatchID,RecordId n,7,a m,7,b n,8,c", {}, "a+b c"),
        ("Cluster_ID,confidence_score,Id 1,.9,a 1,.8,b 2,.7,c", {}, "a+b c"),
        ("z_zid,z_cluster,z_minScore 1,5,.5 2,5,.5 3,6,.5", {}, "1+2 3"),
        ("RESOLVED_ENTITY_ID,DATA_SOURCE,RECORD_ID 7,crm,a 7,web,b 8,crm,c", {}, "a+b c"),
        ("cluster_id,name,key 1,n,a 1,n,b 2,m,c", {}, "a+b c"),
        ("cluster_id,unique_id 1,a 1,b 1,a", {}, "a+b"),
        ("Unnamed:_0,rec,cl 0,a,1 1,b,1", {"record": "rec", "cluster": "cl"}, "a+b"),
        # source and id together are a key only if ids alone are none
        (
            "cluster_id,source_dataset,unique_id p,A,1 p,B,1 q,A,2",
            {},
            "A-__-1+B-__-1 A-__-2",
        ),
        ("cluster_id,source_dataset,unique_id p,A,1 p,B,3 q,A,2", {}, "1+3 2"),
        (f"{TWO_SOURCES} A,1,B,2 A,2,B,1", {}, "A-__-1+B-__-2 A-__-2+B-__-1"),
        (f"{TWO_SOURCES} A,a1,B,b1 A,a2,B,b2", {}, "a1+b1 a2+b2"),
        (f"{TWO_SOURCES} A,1,B,9", {"records": ["A-__-1", "B-__-9", "B-__-1"]}, "A-__-1+B-__-9 B-__-1"),
        (
            "shop,nr,cl A,1,p B,1,q A,2,p",
            {"sources": ("shop",), "record": "nr", "cluster": "cl"},
            "A-__-1+A-__-2 B-__-1",
        ),
        (
            "shop,nr,person A,1,p B,1,q A,2,p",
            {"records": ["A-__-1", "A-__-2", "B-__-1", "B-__-2"], "links": False},
            "A-__-1+A-__-2 B-__-1",
        ),
        # a source stands beside ids that have it already
        (
            "shop,nr,person A,A-__-1,p B,B-__-1,q A,A-__-2,p",
            {"records": ["A-__-1", "A-__-2", "B-__-1"], "links": False},
            "A-__-1+A-__-2 B-__-1",
        ),
        # links: by names of both ends, by a list of records, by values
        ("id_l,id_r a,b b,c d,e", {}, "a+b+c d+e"),
        ("id_l,id_r a,b b,c d,e", {"records": "abcdef"}, "a+b+c d+e f"),
        ("customer_1,customer_2 a,b b,c d,e", {}, "a+b+c d+e"),
        ("x,y a,b b,c d,e", {"records": "abcdef"}, "a+b+c d+e f"),
        ("name_l,name_r,kk_l,kk_r x,y,1,2 x,y,3,4 y,x,2,5", {}, "1+2+5 3+4"),
        ("ltable_id,rtable_id,predicted a,b,1 a,c,0", {}, "a+b c"),
        ("left,right,likeness a,b,.9 b,c,.2", {"threshold": 0.5}, "a+b c"),
        ("a,b,c 1,2,.9 2,3,.2", {"threshold": 0.5, "links": True, "records": "123"}, "1+2 3"),
        ("id_l,id_r,score a,b,0;95 b,c,0;15".replace(";", "."), {"threshold": 0.5}, "a+b c"),
        (f"{SPLINK} a,b,9,.998 b,c,1,.667", {"threshold": 5}, "a+b c"),
        # both scores give the same clusters, so that there is nothing to ask
        (f"{SPLINK} a,b,9,.998 b,c,-1,.333", {"threshold": 0.99}, "a+b c"),
        (f"{SPLINK} a,b,9,.998 b,c,1,.667", {"threshold": 0.99, "score": "match_probability"}, "a+b c"),
        # a record and the head of its cluster: links and memberships are the same
        ("rec,head 1,1 2,1 3,3", {}, "1+2 3"),
        # rows in a circle are no links
        ("a,b 1,2 2,1 3,1", {}, "1 2+3"),
        ("rec,cl a,1E5 b,1E5 c,2E5", {}, "a+b c"),
    ],
)
def test_readings(text, named, clusters):
    assert read(text, **named) == sorted(clusters.split())


@pytest.mark.parametrize(
    ("text", "named", "said"),
    [
        ("l,r a,b b,c d,e", {}, r"3 records in 3 clusters .* or 5 records in 2 clusters \(links: l and r\)"),
        (
            "l,r a,b b,c d,e",
            {"links": True},
            "'l' and 'r' share ids, which are of one list, or of two tables",
        ),
        ("id_a,id_b 0,0 1,1 0,2", {}, "'id_a' and 'id_b' share ids"),
        ("ltable_id,rtable_id 0,1 1,2", {}, "'ltable_id' and 'rtable_id' share ids"),
        ("rec,parent 1,1 2,1 3,2", {}, "3 records in 2 clusters .* or 3 records in 1 clusters"),
        ("idA,idB a,x b,y", {}, "2 records in 2 clusters .* or 4 records in 2 clusters"),
        (
            f"{SPLINK} a,b,9,.998 b,c,1,.667",
            {"threshold": 0.99},
            "2 clusters .* by match_probability.* 1 clusters .* by match_weight.*; say which: score=",
        ),
        ("id_l,id_r,score a,b,.9", {}, "without a threshold, scores 'score' of any size would be links"),
        (
            "rec_1,rec_2,given_name,dob a,b,.9,1 b,c,.1,0",
            {},
            "is each row a link, or is 'given_name', 'dob' a score",
        ),
        ("id_l,id_r a,b b,c", {"threshold": 0.5}, "a threshold of 0.5 needs the column of scores"),
        ("rec,x,name a,1,n b,1,m", {}, "3 columns, 'rec', 'x', 'name', and it is not clear which is the"),
        ("cluster_id,unique_id 1,a 1,b 2,a", {}, "1 duplicates, such as 'a'"),
        (
            "cluster_id,canonical_id,unique_id 1,1,a 1,2,b",
            {},
            "read in two ways, which give 2 records in 1 clusters",
        ),
        ("rec,cl a,1.00001E+11 b,1.00001E+11", {}, "1 of 1 are numbers that a spreadsheet rounded"),
        ("rec,cl 1.5E+11,a 2.5E+11,a", {}, "2 of 2 are numbers that a spreadsheet rounded"),
        (
            "700001,11 700002,12",
            {},
            "the first line of the prediction is '700001', '11': it must name the columns",
        ),
        ("Cluster_ID,Id 1,a ,b", {}, "cluster ids of the prediction: 1 of 2 are missing, the first in row 2"),
        ("id_l,id_r a,b ,c", {}, "1 of 2 are missing"),
        (
            "id_l,id_r a,b b,NULL c,NULL",
            {"records": ["a", "b", "c", "NULL"]},
            "1 of 4 ids stand for no record, and would join all that have it: 'NULL'",
        ),
        (
            f"{TWO_SOURCES} A,1,B,1",
            {"records": "12"},
            "2 of 2 records in the prediction are not among all records",
        ),
        (f"source,id,cluster a{JOIN},1,p b,1,q", {}, f"1 sources hold '{JOIN}'"),
    ],
)
def test_questions_and_refusals(text, named, said):
    with pytest.raises(DataError, match=said):
        read(text, **named)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]])
def test_the_order_of_columns_and_rows_says_nothing(order):
    edges = table(f"{SPLINK} a,b,9,.998 b,c,1,.667 d,e,8,.99").iloc[[2, 0, 1], order]
    reading = read_prediction(edges, Named(threshold=5))
    assert (reading.ids, reading.other) == (("unique_id_l", "unique_id_r"), "match_weight")
    assert Clustering.read(reading).sizes.sum() == 5


def test_clusters_numbered_without_a_gap_are_no_records():
    """Records and clusters that are numbered by first appearance lead from record to record, by no meaning."""
    for clusters, asked in ((9, True), (10, False), (19, False)):
        rows = pd.DataFrame(
            {"rec": range(1, 2 * clusters + 1), "cl": [i // 2 + 1 for i in range(2 * clusters)]}
        )
        if asked:
            with pytest.raises(DataError, match="can be read in two ways"):
                read_prediction(rows)
        else:
            assert not read_prediction(rows).of_links


def test_a_few_repeats_are_asked_about():
    """Of 40 rows, 4 or 6 repeat an id on either side, which is a record in several clusters, or links."""
    for repeated, said in ((4, "10% are in two clusters"), (6, "share ids")):
        rest = [str(i) for i in range(39 - repeated)]
        left = [*["a"] * repeated, *(f"x{i}" for i in rest), "x"]
        right = ["a", *(f"y{i}" for i in rest), *["y"] * repeated]
        with pytest.raises(DataError, match=said):
            read_prediction(pd.DataFrame({"l": left, "r": right}))


def test_a_list_tells_which_columns_have_records():
    ids = [f"r{i}" for i in range(20)]
    rows = pd.DataFrame(
        {"key": ids, "place": [f"p{i}" for i in range(20)], "cluster": [i // 2 for i in range(20)]}
    )
    for known, column in ((ids[:12], "key"), ([f"p{i}" for i in range(12)], "place")):
        assert read_prediction(rows, sample=pd.Index(known)).ids == (column,)


def test_links_of_recordlinkage_are_an_index_of_pairs():
    pairs = pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")])
    features = pd.DataFrame({"score": [0.9, 0.2]}, index=pairs.set_names(["rec_1", "rec_2"]))
    assert Clustering.from_pairs(pairs).sizes.tolist() == [3]
    assert Clustering.from_pairs(features, threshold=0.5).sizes.tolist() == [2, 1]
    with pytest.raises(DataError, match="'rec_1' is a level of the index and a column"):
        Clustering.from_pairs(features.assign(rec_1=1), threshold=0.5)


def test_times_are_no_scores():
    for times in (pd.to_datetime(["2020-01-01", "2021-01-01"]), pd.to_timedelta([1, 2], unit="D")):
        links = pd.DataFrame({"id_l": ["a", "b"], "id_r": ["b", "c"], "score": times})
        with pytest.raises(DataError, match="scores 'score' must be numbers, not such as"):
            Clustering.from_pairs(links, threshold=1)
