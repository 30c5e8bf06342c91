"""Star labels: entities of sampled records, from answers about pairs."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import erbayes as eb
from erbayes import labels as sampling
from erbayes.labels import read_stars
from erbayes.labels.labelling_tasks import read_sheet, write_sheet
from erbayes.labels.plans import PLANS
from erbayes.labels.stars import Flaw


def table(*rows):
    return pd.DataFrame(rows, columns=["unique_id_l", "unique_id_r", "clerical_match_score"])


def seen(stars):
    return {(p.sampled, p.record, p.problem) for p in stars.problems.itertuples()}


@pytest.mark.parametrize("seed", range(4))
def test_complete_stars_give_the_entities_of_uniform_records(seed):
    """Sampled records on either side, drawn twice, or of one entity; candidates are those of a loose matcher."""
    rng = np.random.default_rng(seed)
    entity = rng.integers(0, 60, 200)
    ids = np.array([f"r{i}" for i in rng.permutation(200)])
    sampled = rng.integers(0, 200, 25)
    rows = []
    for r in sampled:
        for c in np.flatnonzero((entity == entity[r]) | (rng.random(200) < 0.02)):
            if c != r:
                rows.append((*rng.permutation([ids[r], ids[c]]), bool(entity[r] == entity[c])))
    stars = read_stars(table(*rows), ids[sampled])
    truth = pd.Series(entity, ids)
    inside = truth[truth.isin(entity[sampled])]
    assert not len(stars.problems)
    found = stars.labels
    assert sorted(found.index) == sorted(inside.index)
    assert found.groupby(truth[found.index]).nunique().eq(1).all() and found.nunique() == inside.nunique()
    assert truth[list(stars.draws)].tolist() == entity[sampled].tolist()
    prediction = truth // 2
    units = eb.measure(prediction, found)
    wanted = eb.measure(prediction, inside.map(dict(zip(truth[stars.draws], stars.draws, strict=True))))
    one, two = (eb.Sample(u, eb.UniformRecords(stars.draws)) for u in (units, wanted))
    metrics = [eb.metrics.pairwise_precision, eb.metrics.b3_recall]
    means = [eb.engine.taylor(s, metrics).apply(metrics).mean for s in (one, two)]
    np.testing.assert_allclose(*means, rtol=1e-12)


GIVEN = {"given-chances": 0.02, "stratified": "a"}
"""The value of each record under plans that need one."""


@pytest.mark.parametrize("name", PLANS)
def test_ids_of_two_sources_are_drawn_labelled_and_read_back(name, tmp_path):
    """Of 20 draws mostly none has the person of another one, so that no link joins drawn records."""
    ids = [f"{source}-__-{i}" for i in range(100) for source in ("crm", "shop")]
    truth = pd.Series([f"p{i // 2}" for i in range(200)], ids)
    prediction = pd.Series([f"c{i // 2 if i % 10 > 1 else 100 + i}" for i in range(200)], ids)
    given = pd.Series(GIVEN[name], truth.index) if name in GIVEN else None
    drawn = sampling.draw(prediction, PLANS[name](), n=20, seed=2, values=given)
    folder = sampling.write_folder(tmp_path / "f", drawn, sampling.tasks(drawn))
    sheet = read_sheet(tmp_path / "f" / "sheet-A.csv")
    home = sheet["record"].where(sheet["role"] == "drawn").ffill()
    yes = (truth[sheet["record"]].array == truth[home].array).tolist()
    write_sheet(sheet.assign(same=["y" if one else "n" for one in yes]), tmp_path / "f" / "sheet-A.csv")
    read = sampling.read_labels(folder)
    assert set(home[home.isin(read.labels.index)]) == set(home)
    assert truth[read.labels.index].groupby(read.labels).nunique().eq(1).all()


@pytest.mark.parametrize("rows, sampled, flaws", [
    ([("a", "b", 1), ("b", "a", 0)], ["a"], {("a", "b", Flaw.DIFFERING)}),
    ([("a", "b", None)], ["a"], {("a", "b", Flaw.UNANSWERED)}),
    ([("a", "b", None), ("b", "a", 1)], ["a"], set()),
    ([("a", "x", 1), ("b", "x", 1)], ["a", "b"], {("a", "x", Flaw.IN_TWO_ENTITIES), ("b", "x", Flaw.IN_TWO_ENTITIES)}),
    ([("a", "x", 1), ("b", "x", 1), ("a", "b", 0)], ["a", "b"], {("a", "x", Flaw.IN_TWO_ENTITIES), ("b", "x", Flaw.IN_TWO_ENTITIES)}),
    ([("a", "b", 1), ("a", "x", 1), ("x", "b", 0)], ["a", "b"], {("b", "x", Flaw.INTRANSITIVE)}),
    ([("a", "b", 1), ("b", "c", 1), ("a", "c", 0)], ["a", "b", "c"], {("a", "c", Flaw.INTRANSITIVE), ("c", "a", Flaw.INTRANSITIVE)}),
    ([("a", "b", 1), ("a", "x", 1)], ["a", "b"], set()),
])  # fmt: skip
def test_contradictions_are_told_and_stop_the_labels(rows, sampled, flaws):
    stars = read_stars(table(*rows), sampled)
    assert seen(stars) == flaws
    if flaws:
        with pytest.raises(eb.DataError, match=next(iter(flaws))[2].value):
            _ = stars.labels
    else:
        assert stars.labels.nunique() == 1


def test_pairs_of_others_are_left_out_and_told():
    stars = read_stars(table(("a", "b", 1), ("x", "y", 1)).iloc[::-1], ["a"])
    assert seen(stars) == {("x", "y", Flaw.NOT_SAMPLED)} and stars.labels.to_dict() == {"a": "a", "b": "a"}


def test_sampled_records_without_candidates_are_singletons_and_itself_is_no_candidate():
    stars = read_stars(table(("a", "a", 1)), ["a", "z", "z"])
    assert stars.labels.to_dict() == {"a": "a", "z": "z"} and list(stars.draws) == ["a", "z", "z"]
    assert not len(stars.problems)


def test_scores_and_words_need_a_decision():
    for rows, such in (
        ([("a", "b", 0.95), ("a", "c", 0.2), ("a", "d", 0.5)], "0.95, 0.2, 0.5"),
        (
            [("a", "b", "match"), ("a", "c", "non-match"), ("a", "d", "unsure")],
            "'match', 'non-match', 'unsure'",
        ),
    ):
        with pytest.raises(
            eb.DataError, match=f"3 of 3 answers .* such as {such}: make scores and words True"
        ):
            read_stars(table(*rows), ["a"])
    words = table(*rows)
    words["clerical_match_score"] = words["clerical_match_score"].map({"match": True, "non-match": False})
    assert seen(read_stars(pl.DataFrame(words), ["a"])) == {("a", "d", Flaw.UNANSWERED)}


def test_other_tables_are_refused():
    with pytest.raises(eb.DataError, match="the table of pairs has no column 'unique_id_l', 'unique_id_r'"):
        read_stars(pd.DataFrame({"l": ["a"], "r": ["b"], "clerical_match_score": [1]}), ["a"])
    with pytest.raises(
        eb.DataError,
        match=r"are of type integer, those of the column 'unique_id_l' of the pairs of type string",
    ):
        read_stars(table(("a", "b", 1)), [1])


def test_the_table_that_a_labelling_tool_writes_is_no_labels():
    rows = table(("r0", "r2", 1.0), ("r3", "r5", 1.0), ("r4", "r6", 0.1))
    for given in (rows, pl.DataFrame(rows)):
        with pytest.raises(eb.DataError, match=r"look like both records of a link.*read_stars"):
            eb.measure({f"r{i}": f"c{i // 3}" for i in range(9)}, given)
