"""Tables of well-known matchers need no names of columns."""

import pandas as pd
import pytest

import erbayes as eb
from erbayes._internal.files import read_columns, read_rows
from erbayes._internal.known_columns import KNOWN, fill_known

BOTH = {"record": None, "cluster": None}


@pytest.mark.parametrize(
    "columns, record, cluster",
    [
        (["cluster_id", "unique_id", "first_name", "dob"], "unique_id", "cluster_id"),  # Splink
        (["cluster_id", "unique_id"], "unique_id", "cluster_id"),
        (["z_minScore", "z_cluster", "z_zid", "name"], "z_zid", "z_cluster"),  # Zingg
        (["Cluster ID", "confidence_score", "Id"], None, "Cluster ID"),  # dedupe
        (["canonical_id", "confidence_score", "Id"], None, "canonical_id"),
        (["cluster_id", "canonical_id", "unique_id"], "unique_id", None),  # which of the two?
        (["a", "b"], None, None),
        (["Unique_ID", "cluster"], None, None),
    ],
)
def test_columns_by_what_matchers_call_them(columns, record, cluster):
    assert fill_known(BOTH, columns) == {"record": record, "cluster": cluster}
    assert fill_known({"cluster": None, "record": "x"}, columns) == {"cluster": cluster, "record": "x"}


def test_edges_of_splink():
    columns = ["match_weight", "match_probability", "unique_id_l", "unique_id_r", "first_name_l"]
    wanted = {"left": None, "right": None, "score": None}
    names = {"left": "unique_id_l", "right": "unique_id_r", "score": "match_probability"}
    assert fill_known(wanted, columns) == names
    assert fill_known({"left": None}, ["a"]) == {"left": None}


def test_a_column_has_one_meaning_and_other_meanings_are_left_alone():
    assert fill_known({"record": "cluster_id", "cluster": None}, ["cluster_id", "x"])["cluster"] is None
    assert fill_known({"entity": None}, ["cluster_id"]) == {"entity": None}
    assert len({name for names in KNOWN.values() for name in names}) == sum(map(len, KNOWN.values()))


def test_files_and_scans_need_no_names(tmp_path):
    table = pd.DataFrame({"cluster_id": ["a", "a", "b"], "unique_id": ["1", "2", "3"], "name": list("xyz")})
    table.to_csv(tmp_path / "p.csv", index=False)
    read = read_columns(tmp_path / "p.csv", BOTH)
    assert list(read) == ["unique_id", "cluster_id"]
    assert read_rows(tmp_path / "p.csv", None).columns[0] == "unique_id"
    assert read_rows(tmp_path / "p.csv", "name").columns[0] == "name"
    pytest.importorskip("duckdb")
    units = eb.large.scan(tmp_path / "p.csv", {"1": "p", "2": "p", "3": "q"})
    assert units.columns == ("unique_id", "cluster_id")
