"""What matchers write, through the commands: columns of each file, composite keys, questions, folders."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done, refused, run

RECORDS = 600
WHO = np.arange(RECORDS) // 3
IDS = np.array([f"r{i}" for i in range(RECORDS)])
PREDICTED = np.where(np.arange(RECORDS) % 10 == 0, WHO + 5000, WHO)
OTHER = np.where(np.arange(RECORDS) % 7 == 0, WHO + 9000, WHO)
DESIGN = ("-d", "uniform-clusters", "-m", "precision,recall", "-f", "csv")


def write(file, /, **columns):
    pd.DataFrame(columns).to_csv(file, index=False)


def shown_table(*call):
    """What a command prints as CSV."""
    return pd.read_csv(io.StringIO(run(*call).stdout))


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("own.csv", customer=IDS, grp=PREDICTED, name=np.where(WHO % 2, "x", "y"))
    write("dedupe.csv", **{"Cluster ID": OTHER, "confidence_score": 0.9, "Id": IDS})
    write("truth.csv", person=WHO, customer=IDS)
    same = WHO[1:] == WHO[:-1]
    weight = np.where(same, 8.0, -3.0) + np.arange(RECORDS - 1) % 5
    weight[::40] = 3  # a probability of .89, so that a weight from .99 on is another clustering
    scores = {"match_weight": weight, "match_probability": 2**weight / (1 + 2**weight)}
    write("edges.csv", **scores, customer_l=IDS[:-1], customer_r=IDS[1:], name_l="n", name_r="n")
    return tmp_path


def test_columns_may_differ_by_file(files):
    pd.DataFrame({"record": IDS, "cluster": PREDICTED}).to_csv("p.csv", index=False)
    write("l.csv", record=IDS, entity=WHO)
    write("decoy.csv", record=np.roll(IDS, 1), customer=IDS, cluster=PREDICTED)
    wanted = run("estimate", "p.csv", "l.csv", *DESIGN).stdout
    for call in (
        ("own.csv:customer,grp", "truth.csv"),
        ("own.csv", "truth.csv", "--record", "customer", "--cluster", "grp"),
        ("own.csv:grp", "truth.csv:customer,person"),
        ("decoy.csv", "l.csv", "--record", "customer"),
    ):
        for door in ((), ("--memory-limit", "1GB")):
            assert run("estimate", *call, *DESIGN, *door).stdout == wanted, (call, door)
    for path in ("none.csv:a,b", ":a,b"):
        assert f"Path {path!r} does not exist" in refused("estimate", path, "truth.csv", *DESIGN)
    assert "has no column 'group'" in refused("estimate", "own.csv:customer,group", "truth.csv", *DESIGN)
    pd.read_csv("own.csv").to_csv("odd:a@1.csv", index=False)
    assert run("estimate", "odd:a@1.csv:customer,grp", "truth.csv", *DESIGN).stdout == wanted


def test_two_matchers_are_compared_as_they_are(files):
    write("drawn.csv", person=np.repeat(WHO[::30], 1))
    design = ("-d", "uniform-records", "--drawn", "drawn.csv", "-m", "precision", "-f", "json")
    labels = pd.read_csv("truth.csv")
    labels[labels["person"].isin(WHO[::30])].to_csv("labels.csv", index=False)
    shown = done("compare", "own.csv:customer,grp", "dedupe.csv", "edges.csv@6.5", "labels.csv", *design)
    rows = {row["prediction"]: row["estimate"] for row in json.loads(shown.stdout)["estimates"]}
    for name, file in (("own", "own.csv:customer,grp"), ("dedupe", "dedupe.csv"), ("edges", "edges.csv@6.5")):
        alone = run("estimate", file, "labels.csv", *design)
        assert rows[name] == pytest.approx(json.loads(alone.stdout)["estimates"][0]["estimate"], rel=1e-12)
    assert "Id, Cluster ID of dedupe.csv" in shown.stderr
    assert "customer_l and customer_r, links from 6.5 on by match_weight of edges.csv" in shown.stderr


def test_a_threshold_that_may_be_of_either_score_is_asked_about(files):
    told = refused("estimate", "edges.csv@0.99", "truth.csv", *DESIGN)
    assert "by match_probability" in told and "by match_weight" in told
    assert "score='match_probability' (FILE:customer_l,customer_r,match_probability@0.99)" in told
    for command in (
        "draw edges.csv --threshold .99 -d uniform-records -n 3 --seed 1 -o f",
        "check edges.csv@.99 truth.csv -d uniform-clusters --min-precision .9",
        "clusters edges.csv@.99",
    ):
        assert "if links are by 'match_probability': score=" in refused(*command.split())
    shown = done("estimate", "edges.csv@0.99", "truth.csv", "--score", "match_probability", *DESIGN)
    assert "links from 0.99 on by match_probability of edges.csv" in shown.stderr


def test_source_and_id_are_a_key_in_every_file(files):
    source, number = np.where(np.arange(RECORDS) % 2, "crm", "web"), np.arange(RECORDS) // 2
    key = [f"{s}-__-{n}" for s, n in zip(source, number, strict=True)]
    write("joined.csv", record=key, cluster=PREDICTED)
    write("joined-labels.csv", record=key, entity=WHO)
    wanted = run("estimate", "joined.csv", "joined-labels.csv", *DESIGN).stdout
    write("two.csv", cluster_id=PREDICTED, source_dataset=source, unique_id=number)
    write("labels.csv", source_dataset=source, unique_id=number, person=WHO)
    write("shop.csv", shop=source, nr=number, person=WHO, note="")
    for labels in ("labels.csv", "joined-labels.csv", "shop.csv:shop+nr,person"):
        shown = run("estimate", "two.csv", labels, *DESIGN)
        assert shown.stdout == wanted and "records are like web-__-0" in shown.stderr, labels
    scanned = shown_table("estimate", "two.csv", "labels.csv", *DESIGN, "--memory-limit", "1GB")
    pd.testing.assert_frame_equal(scanned, pd.read_csv(io.StringIO(wanted)))
    same = np.flatnonzero((WHO[1:] == WHO[:-1]) & (source[1:] != source[:-1]))
    left = {"source_dataset_l": source[same], "unique_id_l": number[same]}
    right = {"source_dataset_r": source[same + 1], "unique_id_r": number[same + 1]}
    write("edges.csv", match_weight=9.0, match_probability=0.998, **left, **right)
    write("all.csv", source_dataset=source, unique_id=number)
    made = shown_table("clusters", "edges.csv@.5", "--records", "all.csv", "-f", "csv")
    joined = made.set_index("record")["cluster"]
    assert len(joined) == RECORDS and (joined[key].groupby(WHO).nunique() == 1).all()
    said = run(*"estimate two.csv --attributes labels.csv --by note shop.csv:shop+nr,person".split(), *DESIGN)
    assert "'labels.csv' has no column 'note'" in said.stderr or "has no column 'note'" in said.stderr
    done(*"draw two.csv -d uniform-records -n 5 --seed 1 --attributes labels.csv -o f".split())
    sheet = pd.read_csv("f/sheet-A.csv", dtype=str)
    assert set(sheet["record"]) <= set(key) and {"source_dataset", "person"} <= set(sheet)


def test_records_without_a_cluster_are_told_what_to_do(files):
    table = pd.read_csv("dedupe.csv", dtype=str)
    table.loc[:9, "Cluster ID"] = ""
    table.to_csv("dedupe.csv", index=False)
    told = refused("estimate", "dedupe.csv", "truth.csv", *DESIGN)
    assert "10 of 600 are missing" in told and "(erbayes clusters FILE --blank own -o NEW, or" in told
    for blank, records in (("own", RECORDS), ("omit", RECORDS - 10)):
        done("clusters", "dedupe.csv", "--blank", blank, "-o", f"{blank}.csv")
        made = pd.read_csv(f"{blank}.csv")
        assert len(made) == records
        assert (made["cluster"].value_counts()[made.loc[:9, "cluster"]] == 1).all() == (blank == "own")


def test_ids_stay_as_they_are_in_files_for_programs(files):
    ids = np.char.add("=", IDS)
    write("p.csv", record=ids, cluster=np.char.add("@", PREDICTED.astype(str)))
    write("l.csv", record=ids, entity=WHO)
    told = run("clusters", "p.csv", "-o", "c.csv").stderr
    assert "1,200 cells begin like a formula, such as '=r0': they stay as they are for programs" in told
    assert "\n=r0,@" in (files / "c.csv").read_text(encoding="utf-8")
    wanted = run("estimate", "p.csv", "l.csv", *DESIGN).stdout
    assert run("estimate", "c.csv", "l.csv", *DESIGN).stdout == wanted


def test_a_folder_of_pairs_knows_its_edges(files):
    every = ("--score", "match_weight", "--records", "own.csv:customer")
    done(*"draw edges.csv --edges -d pairs -n 60 --seed 1 -o pr".split(), *every)
    table = pd.read_csv("pr/pairs.csv")
    who = pd.Series(WHO, IDS)
    same = who[table["left"]].to_numpy() == who[table["right"]].to_numpy()
    table.assign(same=np.where(same, "y", "n")).to_csv("pr/pairs.csv", index=False)
    band = str(table["band"].median())
    at = ("--threshold", band, "-f", "csv")
    assert run("pairs", "pr", *at).stdout == run("pairs", "edges.csv", "pr", *every, *at).stdout
    assert "ANSWERS are missing" in refused("pairs", "edges.csv")


def test_a_folder_remembers_columns_and_hints_at_those_of_others(files):
    done(*"draw own.csv:customer,grp -d uniform-records -n 4 --seed 1 -o f".split())
    call = json.loads((files / "f" / "drawn.json").read_text(encoding="utf-8"))["call"]
    assert call == {"prediction": "own.csv", "prediction columns": ":customer,grp"}
    sheet = pd.read_csv("f/sheet-A.csv", dtype=str)
    sheet.assign(same="y").to_csv("f/sheet-A.csv", index=False)
    (files / "f" / "sheet-A.xlsx").unlink(missing_ok=True)
    pd.read_csv("own.csv").assign(grp=OTHER).to_csv("new.csv", index=False)
    for where in (("f", "new.csv"), ("new.csv", "f")):
        told = run("compare", *where, "-m", "precision").stderr
        assert "own: read 600 records" in told and "(customer, grp of new.csv)" in told


@pytest.mark.parametrize(("call", "said"), [
    ("estimate own.csv:customer,grp truth.csv --cluster name", "--cluster and what stands behind the file"),
    ("estimate edges.csv@2 truth.csv --threshold 3", "--threshold and what stands behind the file"),
    ("clusters edges.csv:customer_l,customer_r,match_weight@2 --score w", "--score and what stands behind"),
    ("clusters edges.csv:customer_l@2", "a link has two records: name the columns of both"),
    ("clusters edges.csv:customer_l --edges", "a link has two records: name the columns of both"),
    ("clusters own.csv:a,b,c,d", "takes three columns behind its name at most"),
    ("estimate own.csv:grp truth.csv:a,b,c", "truth.csv takes 2 columns behind its name, not :a,b,c"),
    ("estimate own.csv:grp truth.csv@0.5", "truth.csv takes 2 columns behind its name, not @0.5"),
    ("estimate own.csv:grp truth.csv:nope,person", "has no column 'nope'"),
    ("clusters edges.csv@2 --records own.csv:nope", "own.csv has no column 'nope'"),
    ("impact own.csv:grp truth.csv --attributes own.csv:nope --feature n=name:distinct", "has no column 'nope'"),
    ("estimate own.csv:shop+customer,grp truth.csv", "has no column 'shop'"),
    ("estimate own.csv:customer,grp truth.csv --memory-limit 1GB --cluster name", "--cluster and what stands"),
])  # fmt: skip
def test_what_stands_behind_a_file_is_heeded_or_refused(files, call, said):
    design = [] if call.startswith("clusters") else ["-d", "uniform-clusters"]
    assert said in refused(*call.split(), *design)


def test_a_scan_heeds_what_stands_behind_a_file(files):
    pd.DataFrame({"id": IDS, "cluster": PREDICTED, "other": OTHER}).to_csv("both.csv", index=False)
    found = {}
    for words in ("id,other", "id,cluster"):
        call = "estimate", f"both.csv:{words}", "truth.csv", *DESIGN
        found[words] = shown_table(*call)
        pd.testing.assert_frame_equal(found[words], shown_table(*call, "--memory-limit", "1GB"))
    one, other = found.values()
    assert one["estimate"][1] != other["estimate"][1]


def test_a_known_name_comes_before_another_column_of_the_same_ids(files):
    write("p.csv", index=np.arange(RECORDS)[::-1], record_id=np.arange(RECORDS), cluster=PREDICTED)
    write("l.csv", index=np.arange(RECORDS)[::-1], record_id=np.arange(RECORDS), entity=WHO)
    write("plain.csv", record=np.arange(RECORDS), cluster=PREDICTED)
    write("labels.csv", record=np.arange(RECORDS), entity=WHO)
    wanted = run("estimate", "plain.csv", "labels.csv", *DESIGN).stdout
    assert run("estimate", "p.csv", "l.csv", *DESIGN).stdout == wanted


@pytest.mark.parametrize(("call", "said"), [
    ("thresholds edges.csv truth.csv --records own.csv:customer --at .9,.99", "say which: score="),
    ("draw edges.csv --edges -d pairs -n 9 --seed 1 --records own.csv:customer --threshold .9 -o q", "say which"),
    ("estimate words.csv truth.csv", "answers 'is_match' must be 1 or 0, yes or no, not such as 'maybe'"),
    ("estimate percent.csv@0.95 truth.csv", "lie between 96 and 99, all above 0.95: is that a share"),
    ("estimate own.csv:grp gold.csv", "it is not clear which is the entity"),
])  # fmt: skip
def test_what_would_be_another_number_is_asked(files, call, said):
    ends = {"id_l": IDS[:-1], "id_r": IDS[1:]}
    write("words.csv", **ends, is_match=np.where(np.arange(RECORDS - 1) % 2, "maybe", "y"))
    write("percent.csv", **ends, similarity=96 + np.arange(RECORDS - 1) % 4)
    write("gold.csv", cluster_id=PREDICTED, customer=IDS, golden=WHO)
    design = ["-d", "uniform-records" if "thresholds" in call else "uniform-clusters"]
    assert said in refused(*call.split(), *([] if call.startswith("draw") else design))


def test_answers_in_words_are_answers(files):
    same = WHO[1:] == WHO[:-1]
    write("yes.csv", id_l=IDS[:-1], id_r=IDS[1:], is_match=np.where(same, "Yes", "no"))
    made = shown_table("clusters", "yes.csv", "-f", "csv")
    assert (made.set_index("record")["cluster"][IDS].groupby(WHO).nunique() == 1).all()
    assert made["cluster"].nunique() == WHO[-1] + 1


def test_a_name_that_the_labels_have_comes_first(files):
    write("zingg.csv", z_zid=np.arange(RECORDS)[::-1], z_cluster=PREDICTED, nr=np.arange(RECORDS))
    write("nr.csv", nr=np.arange(RECORDS), person=WHO)
    write("p.csv", record=np.arange(RECORDS), cluster=PREDICTED)
    wanted = run("estimate", "p.csv", "nr.csv", *DESIGN).stdout
    assert run("estimate", "zingg.csv", "nr.csv", *DESIGN).stdout == wanted


def test_heads_of_clusters_may_be_blank(files):
    write("star.csv", Id=["a", "b", "c", "d"], canonical_id=["", "a", "", "c"])
    made = shown_table("clusters", "star.csv", "--blank", "own", "-f", "csv")
    assert made["cluster"].tolist() == ["a", "a", "c", "c"]


def test_one_file_at_two_thresholds(files):
    shown = done(*"compare edges.csv@6 edges.csv@2.5 truth.csv -d uniform-clusters -m recall -f json".split())
    names = {row["prediction"] for row in json.loads(shown.stdout)["estimates"]}
    assert {"edges@6.0", "edges@2.5"} <= names


def write_files_of_each_tool():
    """One file for each row of the page on matchers, with the columns that the row names."""
    left, right = np.arange(RECORDS - 1), np.arange(1, RECORDS)
    together = WHO[1:] == WHO[:-1]
    numbers, key = np.arange(RECORDS), IDS
    write("ids.csv", id=numbers)
    write("clusters.csv", cluster_id=WHO, unique_id=key)
    weight = np.where(together, 20.0, -9.0)
    scores = {"match_weight": weight, "match_probability": 1 / (1 + 2.0**-weight)}
    write("edges.csv", unique_id_l=IDS[:-1], unique_id_r=IDS[1:], **scores)
    write("dedupe.csv", **{"Cluster ID": WHO, "confidence_score": 0.9, "Id": IDS})
    write("pairs.csv", rec_id_1=left[together], rec_id_2=right[together])
    write("zingg.csv", z_cluster=WHO, z_zid=numbers, z_source="crm", z_minScore=0.5, z_maxScore=0.9)
    write("senzing.csv", RESOLVED_ENTITY_ID=WHO, DATA_SOURCE="CRM", RECORD_ID=IDS)
    write("aws.csv", MatchID=[f"m{w}" for w in WHO], RecordId=IDS, InputSourceARN="arn:aws:s3:::crm")
    write("matches.csv", ltable_id=left, rtable_id=right, predicted=together.astype(int))


def list_reading_calls():
    """The commands of the table of tools, but for its last row, which stands for any other tool."""
    text = (Path(__file__).parents[1] / "docs" / "guide" / "matchers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]*\|[^|]*\| (`.*`[^|]*) \|$", text, re.M)[:-1]
    spans = [span for row in rows for span in re.findall(r"`([^`]+)`", row)]
    return [span.removeprefix("erbayes clusters ") for span in spans]


def test_the_page_on_matchers_names_files_of_eight_tools():
    assert len(list_reading_calls()) == 10


@pytest.mark.parametrize("call", list_reading_calls())
def test_files_of_the_page_on_matchers_are_read_as_it_says(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files_of_each_tool()
    done("clusters", *call.split(), *("-o made.csv" if "-o" not in call else "").split())
    made = pd.read_csv("clusters.csv" if "-o clusters.csv" in call else "made.csv")
    assert made.shape == (RECORDS, 2) and made["cluster"].nunique() == RECORDS // 3
