"""What matchers write, through the commands: columns of each file, composite keys, questions, folders."""

import json

import numpy as np
import pandas as pd
import pytest
from test_cli import refused, run

RECORDS = 600
WHO = np.arange(RECORDS) // 3
IDS = np.array([f"r{i}" for i in range(RECORDS)])
PREDICTED = np.where(np.arange(RECORDS) % 10 == 0, WHO + 5000, WHO)
OTHER = np.where(np.arange(RECORDS) % 7 == 0, WHO + 9000, WHO)
DESIGN = ("-d", "uniform-clusters", "-m", "precision,recall", "-f", "csv")


def write(file, /, **columns):
    pd.DataFrame(columns).to_csv(file, index=False)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write("own.csv", customer=IDS, grp=PREDICTED, name=np.where(WHO % 2, "x", "y"))
    write("dedupe.csv", **{"Cluster ID": OTHER, "confidence_score": 0.9, "Id": IDS})
    write("truth.csv", person=WHO, customer=IDS)
    same = WHO[1:] == WHO[:-1]
    weight = np.where(same, 8.0, -3.0) + np.arange(RECORDS - 1) % 5
    weight[::40] = 3  # a probability of .89, so that a weight from .99 on is another clustering
    write(
        "edges.csv",
        match_weight=weight,
        match_probability=2**weight / (1 + 2**weight),
        customer_l=IDS[:-1],
        customer_r=IDS[1:],
        name_l="n",
        name_r="n",
    )
    return tmp_path


def test_columns_may_differ_by_file(files):
    plain = pd.DataFrame({"record": IDS, "cluster": PREDICTED})
    plain.to_csv("p.csv", index=False)
    write("l.csv", record=IDS, entity=WHO)
    wanted = run("estimate", "p.csv", "l.csv", *DESIGN).stdout
    for call in (
        ("own.csv:customer,grp", "truth.csv"),
        ("own.csv", "truth.csv", "--record", "customer", "--cluster", "grp"),
        ("own.csv:grp", "truth.csv:customer,person"),
        ("p.csv", "truth.csv", "--record", "record"),
    ):
        assert run("estimate", *call, *DESIGN).stdout == wanted, call
    assert "own.csv has no column 'group'" in refused(
        "estimate", "own.csv:customer,group", "truth.csv", *DESIGN
    )
    assert (
        "Path 'none.csv:a,b' does not exist" in run("estimate", "none.csv:a,b", "truth.csv", *DESIGN).stderr
    )
    pd.read_csv("own.csv").to_csv("odd:a@1.csv", index=False)
    assert run("estimate", "odd:a@1.csv:customer,grp", "truth.csv", *DESIGN).stdout == wanted


def test_two_matchers_are_compared_as_they_are(files):
    write("drawn.csv", person=np.repeat(WHO[::30], 1))
    design = ("-d", "uniform-records", "--drawn", "drawn.csv", "-m", "precision", "-f", "json")
    labels = pd.read_csv("truth.csv")
    labels[labels["person"].isin(WHO[::30])].to_csv("labels.csv", index=False)
    shown = run("compare", "own.csv:customer,grp", "dedupe.csv", "edges.csv@6.5", "labels.csv", *design)
    assert shown.exit_code == 0, shown.stderr
    rows = {row["prediction"]: row["estimate"] for row in json.loads(shown.stdout)["estimates"]}
    for name, file in (("own", "own.csv:customer,grp"), ("dedupe", "dedupe.csv"), ("edges", "edges.csv@6.5")):
        alone = run("estimate", file, "labels.csv", *design)
        assert rows[name] == pytest.approx(json.loads(alone.stdout)["estimates"][0]["estimate"], rel=1e-12)
    assert "Id, Cluster ID of dedupe.csv" in shown.stderr
    assert "customer_l and customer_r, links from 6.5 on by match_weight of edges.csv" in shown.stderr


def test_a_threshold_that_may_be_of_either_score_is_asked_about(files):
    told = refused("estimate", "edges.csv@0.99", "truth.csv", *DESIGN)
    assert "by match_probability" in told and "by match_weight" in told
    assert told.endswith("say which: --score match_probability or --score match_weight\n")
    for command in (
        "draw edges.csv --threshold .99 -d uniform-records -n 3 --seed 1 -o f",
        "check edges.csv@.99 truth.csv -d uniform-clusters --min-precision .9",
        "clusters edges.csv@.99",
    ):
        assert "say which: --score match_probability" in refused(*command.split())
    shown = run("estimate", "edges.csv@0.99", "truth.csv", "--score", "match_probability", *DESIGN)
    assert shown.exit_code == 0 and "links from 0.99 on by match_probability of edges.csv" in shown.stderr


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
    scanned = run("estimate", "two.csv", "labels.csv", *DESIGN, "--memory-limit", "1GB")
    pd.testing.assert_frame_equal(
        *(pd.read_csv(pd.io.common.StringIO(text)) for text in (scanned.stdout, wanted))
    )
    same = np.flatnonzero((WHO[1:] == WHO[:-1]) & (source[1:] != source[:-1]))
    write(
        "edges.csv",
        match_weight=9.0,
        match_probability=0.998,
        source_dataset_l=source[same],
        unique_id_l=number[same],
        source_dataset_r=source[same + 1],
        unique_id_r=number[same + 1],
    )
    write("all.csv", source_dataset=source, unique_id=number)
    shown = run("clusters", "edges.csv@.5", "--records", "all.csv", "-f", "csv")
    made = pd.read_csv(pd.io.common.StringIO(shown.stdout))
    joined = made.set_index("record")["cluster"]
    assert len(joined) == RECORDS and (joined[key].groupby(WHO).nunique() == 1).all()
    said = run(
        "estimate",
        "two.csv",
        "--attributes",
        "labels.csv",
        "--by",
        "note",
        "shop.csv:shop+nr,person",
        *DESIGN,
    )
    assert "'labels.csv' has no column 'note'" in said.stderr or "has no column 'note'" in said.stderr
    drawn = run(*"draw two.csv -d uniform-records -n 5 --seed 1 --attributes labels.csv -o f".split())
    assert drawn.exit_code == 0, drawn.stderr
    sheet = pd.read_csv("f/sheet-A.csv", dtype=str)
    assert set(sheet["record"]) <= set(key) and {"source_dataset", "person"} <= set(sheet)


def test_records_without_a_cluster_are_told_what_to_do(files):
    table = pd.read_csv("dedupe.csv", dtype=str)
    table.loc[:9, "Cluster ID"] = ""
    table.to_csv("dedupe.csv", index=False)
    told = refused("estimate", "dedupe.csv", "truth.csv", *DESIGN)
    assert "10 of 600 are missing" in told and "erbayes clusters FILE --blank own -o clusters.csv" in told
    for blank, records in (("own", RECORDS), ("omit", RECORDS - 10)):
        assert run("clusters", "dedupe.csv", "--blank", blank, "-o", f"{blank}.csv").exit_code == 0
        made = pd.read_csv(f"{blank}.csv")
        assert len(made) == records
        assert (made["cluster"].value_counts()[made.loc[:9, "cluster"]] == 1).all() == (blank == "own")


def test_ids_that_a_spreadsheet_would_run_come_back_as_they_were(files):
    ids = np.char.add("=", IDS)
    write("p.csv", record=ids, cluster=np.char.add("@", PREDICTED.astype(str)))
    write("l.csv", record=ids, entity=WHO)
    assert run("clusters", "p.csv", "-o", "c.csv").exit_code == 0
    assert "'=r0" in (files / "c.csv").read_text()
    wanted = run("estimate", "p.csv", "l.csv", *DESIGN).stdout
    assert run("estimate", "c.csv", "l.csv", *DESIGN).stdout == wanted


def test_a_folder_of_pairs_knows_its_edges(files):
    every = ("--score", "match_weight", "--records", "own.csv:customer")
    drawn = run(*"draw edges.csv --edges -d pairs -n 60 --seed 1 -o pr".split(), *every)
    assert drawn.exit_code == 0, drawn.stderr
    table = pd.read_csv("pr/pairs.csv")
    who = pd.Series(WHO, IDS)
    same = who[table["left"]].to_numpy() == who[table["right"]].to_numpy()
    table.assign(same=np.where(same, "y", "n")).to_csv("pr/pairs.csv", index=False)
    band = str(table["band"].median())
    at = ("--threshold", band, "-f", "csv")
    assert run("pairs", "pr", *at).stdout == run("pairs", "edges.csv", "pr", *every, *at).stdout
    checked = run("check", "pr", "--once", "--min-precision", "0.2", "--threshold", band)
    assert checked.exit_code in (0, 1, 3), checked.stderr
    assert "ANSWERS are missing" in refused("pairs", "edges.csv")


def test_a_folder_remembers_columns_and_hints_at_those_of_others(files):
    assert run(*"draw own.csv:customer,grp -d uniform-records -n 4 --seed 1 -o f".split()).exit_code == 0
    call = json.loads((files / "f" / "drawn.json").read_text())["call"]
    assert call == {"prediction": "own.csv", "prediction columns": ":customer,grp"}
    sheet = pd.read_csv("f/sheet-A.csv", dtype=str)
    sheet.assign(same="y").to_csv("f/sheet-A.csv", index=False)
    (files / "f" / "sheet-A.xlsx").unlink(missing_ok=True)
    pd.read_csv("own.csv").assign(grp=OTHER).to_csv("new.csv", index=False)
    for where in (("f", "new.csv"), ("new.csv", "f")):
        told = run("compare", *where, "-m", "precision").stderr
        assert "own: read 600 records" in told and "(customer, grp of new.csv)" in told
