"""Makes erbayes/rldata10000_edges.csv.gz: pairs of RLdata10000 with match weights of Splink.

    pip install "splink==5.0.0" rapidfuzz "erbayes[datasets]" && python benchmarks/rl_edges.py

The file has numbers of records and weights, and nothing of the records themselves.
"""

from pathlib import Path

import splink.comparison_library as cl
from splink import DuckDBAPI, Linker, SettingsCreator, block_on

import erbayes
from erbayes.datasets import rldata10000

NAMES = {"fname_c1": "first", "lname_c1": "last", "by": "year", "bm": "month", "bd": "day"}
RULES = (
    ("first", "last"),
    ("first", "year"),
    ("last", "year"),
    ("year", "month", "day"),
    ("first", "month", "day"),
    ("last", "month", "day"),
)


def main() -> None:
    records = rldata10000().drop(columns="identity").rename(columns=NAMES).astype(str)
    records = records.rename_axis("unique_id").reset_index()
    settings = SettingsCreator(
        link_type="dedupe_only",
        blocking_rules_to_generate_predictions=[block_on(*rule) for rule in RULES],
        comparisons=[
            cl.JaroWinklerAtThresholds("first", [0.9, 0.7]),
            cl.JaroWinklerAtThresholds("last", [0.9, 0.7]),
            *map(cl.ExactMatch, ("year", "month", "day")),
        ],
    )
    database = DuckDBAPI()
    linker = Linker(database.register(records), settings)
    linker.training.estimate_probability_two_random_records_match(
        [block_on("first", "last", "year")], recall=0.5
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=1)
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("year", "month"))
    linker.training.estimate_parameters_using_expectation_maximisation(block_on("first", "last"))
    edges = linker.inference.predict(threshold_match_weight=-15).as_pandas_dataframe()
    ends = ["unique_id_l", "unique_id_r"]
    edges = edges[[*ends, "match_weight"]].round({"match_weight": 4})
    edges = edges.sort_values(["match_weight", *ends], ascending=[False, True, True])
    path = Path(erbayes.__file__).with_name("rldata10000_edges.csv.gz")
    edges.to_csv(path, index=False, compression={"method": "gzip", "mtime": 0, "compresslevel": 9})


if __name__ == "__main__":
    main()
