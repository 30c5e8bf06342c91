"""What the columns of a table mean: the smallest tables with their right readings, and files of matchers."""

import io

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import erbayes as eb
from erbayes import Clustering, DataError
from erbayes._internal.names import JOIN
from erbayes.units.columns import find_record, read_prediction
from erbayes.units.ids import columns_that_tell
from erbayes.units.reading import Named, Near

SPLINK = "unique_id_l,unique_id_r,match_weight,match_probability"
TWO_SOURCES = "source_dataset_l,unique_id_l,source_dataset_r,unique_id_r"


def table(text):
    """Rows between blanks, columns between commas."""
    return pd.read_csv(io.StringIO(text.replace(" ", "\n")), dtype=str, keep_default_na=False, na_values=[""])


def read(text, records=None, sample=None, **named):
    """The clusters that a table is read as, each as its sorted records."""
    ids = records if records is not None else sample
    near = None if ids is None else Near({None: pd.Index(list(ids))}, whole=records is not None)
    reading = read_prediction(table(text), Named(**named), near)
    clustering = Clustering.read(reading, near.listed if near else None)
    found = {}
    for record, code in zip(clustering.records, clustering.codes, strict=True):
        found.setdefault(code, []).append(record)
    return sorted("+".join(sorted(records)) for records in found.values())


@pytest.mark.parametrize(("text", "named", "clusters"), [
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
    ("cluster_id,source_dataset,unique_id p,A,1 p,B,1 q,A,2", {}, "A-__-1+B-__-1 A-__-2"),
    ("cluster_id,source_dataset,unique_id p,A,1 p,B,3 q,A,2", {}, "1+3 2"),
    ("source,ref,cluster a,5,p b,7,p d,6,q", {}, "5+7 6"),  # a source is no record, even where each has one
    (f"{TWO_SOURCES} A,1,B,2 A,2,B,1", {}, "A-__-1+B-__-2 A-__-2+B-__-1"),
    (f"{TWO_SOURCES} A,a1,B,b1 A,a2,B,b2", {}, "a1+b1 a2+b2"),
    (f"{TWO_SOURCES} A,1,B,9", {"records": ["A-__-1", "B-__-9", "B-__-1"]}, "A-__-1+B-__-9 B-__-1"),
    ("shop,nr,cl A,1,p B,1,q A,2,p", {"sources": ("shop",), "record": "nr", "cluster": "cl"},
        "A-__-1+A-__-2 B-__-1"),
    ("shop,nr,person A,1,p B,1,q A,2,p",
        {"records": ["A-__-1", "A-__-2", "B-__-1", "B-__-2"], "links": False}, "A-__-1+A-__-2 B-__-1"),
    # a source stands beside ids that have it already
    ("shop,nr,person A,A-__-1,p B,B-__-1,q A,A-__-2,p",
        {"records": ["A-__-1", "A-__-2", "B-__-1"], "links": False}, "A-__-1+A-__-2 B-__-1"),
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
    # words of judgement say what a column is, whatever its name; others do by known names alone
    ("id_1,id_2,status a,b,accepted b,c,rejected", {}, "a+b c"),
    ("id_l,id_r,x a,b,MATCH c,d,POSSIBLE_MATCH", {}, "a+b c d"),
    ("id_l,id_r,land a,b,v b,c,w d,e,x f,g,y h,i,z j,k,u l,m,t", {}, "a+b+c d+e f+g h+i j+k l+m"),
    # row numbers are no records, if another column can have them; a name of the other file can
    ("X,customer,cl 1,7,a 2,3,a 3,5,b 4,1,c 5,2,c", {"sample": ["7", "5", "1"]}, "3+7 5 1+2"),
    ("X,customer,cl 1,7,a 2,3,a 3,5,b 4,1,c 5,2,c", {"record": "X"}, "1+2 3 4+5"),
    ("key,others 1,2|3 2,1 3,1 4,5 5,4", {"links": True}, "1+2+3 4+5"),
    # a record and the head of its cluster: links and memberships are the same
    ("rec,head 1,1 2,1 3,3", {}, "1+2 3"),
    ("rec,cl a,1E5 b,1E5 c,2E5", {}, "a+b c"),
    ("id,cluster,match_group a,1,p b,1,p c,2,q", {}, "a+b c"),
    ("z_cluster,z_zid,z_isMatch 1,a,1 1,b,1 2,c,0 2,d,0", {"record": "z_zid", "cluster": "z_cluster"},
        "a+b c+d"),
])  # fmt: skip
def test_readings(text, named, clusters):
    assert read(text, **named) == sorted(clusters.split())


@pytest.mark.parametrize(("text", "named", "said"), [
    ("l,r a,b b,c d,e", {}, r"3 records in 3 clusters .* or 5 records in 2 clusters \(links: l and r\)"),
    ("l,r a,b b,c d,e", {"links": True}, "'l' and 'r' share ids, which are of one list, or of two tables"),
    ("id_a,id_b 0,0 1,1 0,2", {}, "'id_a' and 'id_b' share ids"),
    ("ltable_id,rtable_id 0,1 1,2", {}, "'ltable_id' and 'rtable_id' share ids"),
    ("rec,parent 1,1 2,1 3,2", {}, "3 records in 2 clusters .* or 3 records in 1 clusters"),
    ("idA,idB a,x b,y", {}, "2 records in 2 clusters .* or 4 records in 2 clusters"),
    (
        f"{SPLINK} a,b,9,.998 b,c,1,.667",
        {"threshold": 0.99},
        "2 clusters .* by match_probability.* 1 clusters .* by match_weight.*; if links are by "
        "'match_probability': score='match_probability' \\(FILE:unique_id_l,unique_id_r,match_probability@0.99\\)",
    ),
    ("id_l,id_r,score a,b,.9", {}, "without a threshold, scores 'score' of any size would be links"),
    ("rec_1,rec_2,given_name,dob a,b,.9,1 b,c,.1,0", {},
        "is each row a link, or is 'given_name', 'dob' a score"),
    ("id_l,id_r a,b b,c", {"threshold": 0.5}, "a threshold of 0.5 needs the column of scores"),
    ("rec,x,name a,1,n b,1,m", {}, "3 columns, 'rec', 'x', 'name', and it is not clear which is the"),
    ("cluster_id,unique_id 1,a 1,b 2,a", {}, "1 duplicates, such as 'a'"),
    ("cluster_id,canonical_id,unique_id 1,1,a 1,2,b", {},
        "read in two ways, which give 2 records in 1 clusters"),
    ("X,customer,cl 1,4,a 2,3,a 3,2,b 4,1,c 5,5,c", {"sample": "123"},
        "records are 'X' or 'customer', which both"),
    ("id1,id2,Class a,b,L b,c,N", {}, "is each row a link, or is 'Class' a score or an answer"),
    ("id1,id2,urteil a,b,gleich b,c,anders", {},
        "ay which word is a link: table.table.'urteil'. == 'gleich'"),
    ("id_l,id_r,land a,b,v b,c,w d,e,x f,g,y h,i,z j,k,u", {}, "is each row a link, or is 'land' a score"),
    ("id_l,id_r,match a,b,maybe b,c,perhaps", {},
        "answers 'match' must be 1 or 0, yes or no, not such as 'maybe'"),
    ("key,others 1,2|3 2,1 3,1 4,5 5,4", {}, "cells of 'others' list ids of records; if rows are links"),
    ("shop,nr,cluster_id a,1,p a,2,q b,1,q b,2,r", {},
        "ids 'nr' repeat, and are unique inside 'shop'; if that is"),
    ("rec,cl a,x b,x c,1 d,2", {}, "'x' has 2 records, and is the only one without a number: is it a word"),
    ("rec,cl a,x1 b,x1~ c,x2".replace("~", "\u00a0"), {"record": "rec", "cluster": "cl"},
        "1 of 3 are there without the blanks at their ends too"),
    ("rec,cl a,1.00001E+11 b,1.00001E+11", {}, "1 of 1 are numbers that a spreadsheet rounded"),
    ("rec,cl 1.5E+11,a 2.5E+11,a", {}, "2 of 2 are numbers that a spreadsheet rounded"),
    ("700001,11 700002,12", {},
        "the first line of the prediction is '700001', '11': it must name the columns"),
    ("Cluster_ID,Id 1,a ,b", {}, "cluster ids of the prediction: 1 of 2 are missing, the first in row 2"),
    ("id_l,id_r a,b ,c", {}, "1 of 2 are missing"),
    ("id_l,id_r a,b b,NULL c,NULL", {"records": ["a", "b", "c", "NULL"]},
        "1 of 4 ids stand for no record, and would join all that have it: 'NULL'"),
    (f"{TWO_SOURCES} A,1,B,1", {"records": "12"},
        "2 of 2 records in the prediction are not among all records"),
    (f"source,id,cluster a{JOIN},1,p b,1,q", {}, f"1 sources hold '{JOIN}'"),
    # pairs of Zingg that somebody labelled, a distance, and a second column of clusters
    ("z_cluster,z_zid,z_isMatch 1,a,1 1,b,1 2,c,0 2,d,0", {},
        "2 of 4 rows say no in 'z_isMatch': are they in their clusters. If they are: table"),
    ("id_l,id_r,edit_dist a,b,.1 b,c,.9", {"threshold": 0.2},
        "'edit_dist' is a distance by its name, and scores are larger for likelier links; take its negative"),
    ("id,cluster,match_group a,1,p b,1,q c,2,q", {},
        "read in two ways, which give 3 records in 2 clusters .* id, cluster.* id, match_group"),
])  # fmt: skip
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
        of = [i // 2 + 1 for i in range(2 * clusters)]
        rows = pd.DataFrame({"rec": range(1, 2 * clusters + 1), "cl": of})
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
    places, clusters = [f"p{i}" for i in range(20)], [i // 2 for i in range(20)]
    rows = pd.DataFrame({"key": ids, "place": places, "cluster": clusters})
    for known, column in ((ids[:12], "key"), ([f"p{i}" for i in range(12)], "place")):
        assert read_prediction(rows, near=Near({None: pd.Index(known)})).ids == (column,)


def test_links_of_recordlinkage_are_an_index_of_pairs():
    pairs = pd.MultiIndex.from_tuples([("a", "b"), ("b", "c")])
    features = pd.DataFrame({"score": [0.9, 0.2]}, index=pairs.set_names(["rec_1", "rec_2"]))
    assert Clustering.from_pairs(pairs).sizes.tolist() == [3]
    assert Clustering.from_pairs(features, threshold=0.5).sizes.tolist() == [2, 1]
    with pytest.raises(DataError, match="has 'rec_1', 'rec_2', and 'rec_1' is a column too: rename that"):
        Clustering.from_pairs(features.assign(rec_1=1), threshold=0.5)


def test_times_are_no_scores():
    for times in (pd.to_datetime(["2020-01-01", "2021-01-01"]), pd.to_timedelta([1, 2], unit="D")):
        links = pd.DataFrame({"id_l": ["a", "b"], "id_r": ["b", "c"], "score": times})
        with pytest.raises(DataError, match="scores 'score' must be numbers, not such as"):
            Clustering.from_pairs(links, threshold=1)


def test_integers_that_were_floats_have_lost_digits():
    """Two numbers of 59 bits end in six bits of 0 each by a chance of 1 in 4,096; one of 61 bits in eight."""
    lost = [2**58 + 2**40, 2**58 + 2**41]
    for found in (lambda x: {"a": x[0], "b": x[1]}, lambda x: dict(zip(x, "ab", strict=True))):
        with pytest.raises(DataError, match=r"2 of 2 numbers have lost digits, as floats do from 2\*\*53 on"):
            Clustering.of(found(lost))
        assert len(Clustering.of(found([lost[0], lost[1] + 1])).records) == 2
        assert len(Clustering.of(found(lost), any_id=True).records) == 2
    assert len(Clustering.of({2**60: "a"}).records) == 1
    with pytest.raises(DataError, match="floating: 2 of them have lost digits; write them again"):
        Clustering.of({"a": 2.0**58, "b": 2.0**59})


def test_heads_of_clusters_are_told_by_half_of_the_ids():
    """A blank is the head of a cluster that is called as its record, and otherwise a cluster of its own."""
    for clusters, sizes in (("aaxx", [3, 2]), ("axxx", [1, 1, 3])):
        rows = pd.DataFrame({"record": list("abcde"), "cluster": [None, *clusters]})
        filled = Clustering.read(read_prediction(rows).fill(own=True))
        assert sorted(filled.sizes) == sorted(sizes)


def test_the_word_for_no_match_makes_single_records():
    reading = read_prediction(table("rec,cl a,x b,x c,1 d,1"))
    assert Clustering.read(reading.separate("x")).sizes.tolist() == [1, 1, 2]


def test_attributes_are_not_joined_by_the_number_of_the_row():
    """A number of the row that another file has too is asked about; the name of the other file says which."""
    rows = pd.DataFrame({"X": range(6), "customer": [3, 5, 1, 0, 2, 4], "country": list("aabbcc")})
    near = Near({"id": pd.RangeIndex(6)})
    with pytest.raises(
        DataError, match="records are 'X' or 'customer', which both have ids of the other file"
    ):
        find_record(rows, near, "attributes")
    assert find_record(rows, Near({"customer": pd.RangeIndex(6)}), "attributes") == "customer"
    rows = rows.assign(customer=[13, 15, 11, 10, 12, 14])
    assert find_record(rows, Near({"id": pd.Index([10, 12])}), "") == "customer"
    sources = pd.DataFrame({"country": list("aab"), "nr": ["1", "2", "1"], "source": list("ppq")})
    assert find_record(sources, Near({"id": pd.Index([f"p{JOIN}1", f"q{JOIN}1"])}), "") == "nr"


@pytest.mark.parametrize("order", ["as they are", "shuffled"])
def test_two_tables_tell_each_other_their_records(order):
    """Numbers of rows differ between files, and are never the ids, whichever door reads them."""
    rng = np.random.default_rng(5)
    customer, cluster = rng.permutation(90), np.arange(90) // 3
    labelled = np.flatnonzero(cluster % 2)
    shuffled = rng.permutation(90), rng.permutation(len(labelled))
    numbers = shuffled if order == "shuffled" else (range(90), range(45))
    prediction = pd.DataFrame({"X": numbers[0], "customer": customer, "cluster": cluster})
    labels = pd.DataFrame({"X": numbers[1], "customer": customer[labelled], "who": cluster[labelled]})
    plain = pd.Series(cluster, customer), pd.Series(cluster[labelled], customer[labelled])
    design = eb.UniformClusters()

    def count(prediction, labels):
        return eb.measure(prediction, labels).table().to_numpy().tolist()

    right = count(*plain)
    for as_table in (lambda x: x, pa.table, pl.from_pandas):
        assert count(as_table(prediction), as_table(labels)) == right
    found = eb.compare({"a": prediction, "b": prediction.assign(cluster=range(90))}, labels, design)
    assert found.table()["estimate"].iloc[0] == 1
    with pytest.raises(DataError, match="records are 'X' or 'customer'"):
        count(prediction, plain[1])
    with pytest.raises(DataError, match="records are 'X' or 'rec'"):
        count(prediction.rename(columns={"customer": "rec"}), labels)
    # tables of groups, and what annotators see
    groups = pd.DataFrame({"country": ["FR", "DE", "PE"] * 30, "customer": customer})
    by_column = dict(zip(customer, groups["country"], strict=True))
    units = eb.measure(*plain)
    both = [
        units.grouped(each, name="c").groupings[0].table(units).to_numpy() for each in (groups, by_column)
    ]
    assert np.array_equal(*both)
    drawn = eb.labels.draw(plain[0], eb.labels.Records(), n=5, seed=1)
    attributes = prediction.assign(name=[f"n{c}" for c in customer])[["X", "customer", "name"]]
    with pytest.raises(DataError, match="the table of attributes: records are 'X' or 'customer'"):
        eb.labels.tasks(drawn, attributes)
    shown = eb.labels.tasks(drawn, attributes.drop(columns="X")[["name", "customer"]])
    assert (shown["name"] == "n" + shown["record"].astype(str)).all()


def test_columns_that_tell_the_prediction_are_known_by_names_and_by_values():
    clusters = pd.Series([0, 0, 1, 2, 2, 2, 3])
    rows = pd.DataFrame({
        "name": list("abcdefg"), "cluster_id": 5, "own": clusters + 7, "size": [2, 2, 1, 3, 3, 3, 1],
        "block": [1, 1, 1, 2, 2, 2, 2], "match_probability": 0.9, "person": [1, 1, 2, 3, 3, 4, 5],
        "blank": [9, 9, None, 8, 8, 8, None], "lost": [9, 9, 1, 8, 8, None, 2],
    })  # fmt: skip
    assert columns_that_tell(rows) == ["cluster_id", "match_probability"]
    told = columns_that_tell(rows, clusters.to_numpy())
    assert told == ["cluster_id", "own", "size", "match_probability", "blank"]
    # of single records nothing tells more than that they are single
    assert columns_that_tell(rows[["name", "block"]], np.arange(7)) == []


@pytest.mark.parametrize(("yes", "no"), [("+", "-"), ("✓", "✗"), ("да", "нет")])
def test_signs_and_words_of_other_letters_beside_links_are_asked_about(yes, no):
    """As the plus and minus before the links in a file of Duke, whose rows were all links."""
    links = pd.DataFrame({"sign": [yes, no] * 30, "id1": range(60), "id2": range(60, 120)})
    with pytest.raises(eb.DataError, match="is 'sign' a score or an answer") as error:
        eb.Clustering.from_pairs(links, records=range(120))
    said, _ = error.value.remedies
    assert said.option == f"FILE:id1,id2,sign={yes}"
    followed = eval(said.argument, {"table": links})
    assert len(eb.Clustering.from_pairs(followed, records=range(120)).clusters) == 90
