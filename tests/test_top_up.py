"""`erbayes draw --top-up`: an older folder and draws among new records, read as one sample."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done, listed, refused, run
from test_folder import fill, world

import erbayes as eb
from erbayes import labels as sampling
from erbayes.cli.inputs import unite
from erbayes.labels.folder import read_folder
from erbayes.labels.labelling_tasks import read_sheet, write_sheet

PRED, TRUE = (part.set_axis([f"r{i}" for i in range(200)]) for part in world()[:2])
OLD = PRED.iloc[:140]
METRIC = ("--metrics", "pairwise-recall")


@pytest.fixture
def releases(tmp_path, monkeypatch):
    """Two releases, of which the older one has 140 of 200 records; also the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, prediction in (("old.csv", OLD), ("new.csv", PRED)):
        prediction.rename_axis("record").rename("cluster").to_csv(name)
    return tmp_path


def drawn(prediction, to, *options, design="uniform-records", n=30):
    return done("draw", prediction, "-d", design, "--n", n, "--seed", 3, "--output", to, *options)


BOTH = {}
"""What the files of both folders hold, which are made once."""


def both():
    """Both folders, filled by the truth: rows that annotators add complete the old entities."""
    if not BOTH:
        drawn("old.csv", "f")
        drawn("new.csv", "more", "--top-up", "f")
        for folder in ("f", "more"):
            fill(read_folder(folder), TRUE)
        BOTH.update((path, path.read_bytes()) for path in [*Path("f").iterdir(), *Path("more").iterdir()])
    for path, content in BOTH.items():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)


@pytest.mark.slow
def test_both_folders_are_one_sample(releases):
    both()
    folder = read_folder("more")
    table = folder.drawn.table
    assert folder.facts["call"]["top_up"] == "f" and not table["record"].isin(OLD.index).any()
    np.testing.assert_allclose(table["probability"], 1 / 60)
    draws = [TRUE[read_folder(name).drawn.table["record"]].to_numpy() for name in ("f", "more")]
    labels = TRUE[TRUE.isin(np.concatenate(draws))]
    design = eb.top_up(labels, (OLD.index, draws[0]), (PRED.index, draws[1]))
    wanted = eb.estimate(PRED, labels, design, ["pairwise-precision", "pairwise-recall"]).table()
    for command in (("estimate", "more"), ("estimate", "new.csv", "more")):
        rows = listed(*command, "--metrics", "pairwise-precision,pairwise-recall")
        found = pd.DataFrame(rows).set_index("metric")
        for column in ("estimate", "se", "lower", "upper"):
            np.testing.assert_allclose(found[column], wanted[column], rtol=1e-12)
    assert run("check", "more", "--min-recall", 0.01).exit_code in (0, 3)
    done("report", "more", *METRIC, "--output", "r.html")


def test_new_records_are_drawn_uniformly():
    flags = pd.Series((~PRED.index.isin(OLD.index)).astype(float), PRED.index)
    plan = sampling.plans.NewRecords()
    count = sampling.draw(PRED, plan, n=6000, seed=1, values=flags).table["record"].value_counts()
    # 60 records of 100 draws each: the sum of squares is that of 59 standard normal numbers, up to 100
    assert len(count) == 60 and 30 < ((count - 100) ** 2 / 100).sum() < 100


def test_an_entity_without_its_new_records_is_named(releases):
    both()
    path = releases / "f" / "sheet-A.csv"
    sheet = read_sheet(path)
    write_sheet(sheet[sheet["record"].isin(OLD.index)], path)
    said = "share a predicted cluster with new records that no answer names"
    assert said in done("estimate", "more").stderr


def test_only_complete_answers_are_read_together(releases):
    drawn("old.csv", "f")
    drawn("new.csv", "more", "--top-up", "f")
    fill(read_folder("more"), TRUE)
    assert "tasks have no complete answer, but a folder" in refused("estimate", "more")


def test_the_draws_alone_have_no_design(releases):
    both()
    with pytest.raises(eb.DataError, match="of new records alone"):
        sampling.read_labels("more").design()


def test_what_cannot_be_topped_up_is_refused(releases):
    drawn("old.csv", "f")
    drawn("old.csv", "g", design="predicted-links")
    drawn("new.csv", "more", "--top-up", "f")
    top_up = ("draw", "new.csv", "--n", 5, "--seed", 3, "--output", "x", "--top-up")
    uniform = ("-d", "uniform-records")
    assert "--design predicted-links does not take --top-up" in refused(*top_up, "f", "-d", "predicted-links")
    said = (
        "leave no sample of uniform records, as its chances do not depend on predicted sizes alone, or are 0"
    )
    assert f"draws by LinkEnds {said}" in refused(*top_up, "g", *uniform)
    assert f"draws by NewRecords {said}" in refused(*top_up, "more", *uniform)
    same = ("draw", "old.csv", *top_up[2:])
    assert "all 140 records of PREDICTION are old" in refused(*same, "f", *uniform)
    PRED.rename_axis("record").rename("cluster").to_csv("old.csv")
    assert "old.csv has changed since f was drawn" in refused(*top_up, "f", *uniform)
    (releases / "old.csv").unlink()
    assert "old.csv, from which f was drawn, is not there" in refused(*top_up, "f", *uniform)


BEFORE, NOW = pd.Index([*"abcdz"]), pd.Index([*"abcdmn"])


def entities(**groups):
    return pd.Series({record: name for name, records in groups.items() for record in records})


@pytest.mark.parametrize(("old", "new"), [
    ({"a": "ab"}, {"b": "abm"}),  # completed in the new folder
    ({"a": "abm"}, {"m": "abm"}),
    ({"a": "abz"}, {"m": "abm"}),  # z is no longer there
    ({"a": "ab", "c": "cd"}, {"m": "mn"}),  # nothing of both
])  # fmt: skip
def test_entities_of_both_folders_are_united(old, new):
    united = unite(entities(**old), entities(**new), BEFORE, NOW, "f and g")
    found = {frozenset(part) for part in united.groupby(united).groups.values()}
    groups = [set(part) for part in (*old.values(), *new.values())]
    wanted = {frozenset().union(*(h for h in groups if h & g)) for g in groups}
    assert found == wanted


@pytest.mark.parametrize(("old", "new", "named"), [
    ({"a": "abm"}, {"b": "ab"}, "1 records, such as 'm'"),  # the new folder leaves out a record
    ({"a": "a"}, {"m": "abm"}, "1 records, such as 'b'"),  # the old one leaves out an old record
    ({"a": "a", "b": "b"}, {"m": "abm"}, "3 records, such as 'a', 'b', 'm'"),
    ({"a": "ab"}, {"a": "am", "b": "b"}, "2 records, such as 'a', 'b'"),
])  # fmt: skip
def test_contradictions_are_named(old, new, named):
    with pytest.raises(eb.DataError, match=named):
        unite(entities(**old), entities(**new), BEFORE, NOW, "f and g")


def test_a_folder_by_the_default_is_topped_up_by_its_uniform_records(releases):
    """Only the draws that are of uniform records count, so that the chances of entities are known."""
    done("draw", "old.csv", "--n", 60, "--seed", 3, "--output", "f")
    done("draw", "new.csv", "--n", 30, "--seed", 3, "--output", "more", "--top-up", "f")
    for folder in ("f", "more"):
        fill(read_folder(folder), TRUE)
    part, added = read_folder("f").drawn.uniform().table, read_folder("more").drawn.table
    assert len(part) < 60
    draws = [TRUE[table["record"]].to_numpy() for table in (part, added)]
    labels = TRUE[TRUE.isin(np.concatenate(draws))]
    design = eb.top_up(labels, (OLD.index, draws[0]), (PRED.index, draws[1]))
    wanted = eb.estimate(PRED, labels, design, "pairwise-recall")
    (found,) = listed("estimate", "more", *METRIC)
    assert found["estimate"] == pytest.approx(wanted.estimate[0], rel=1e-9)
