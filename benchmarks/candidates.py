"""Shares of the matches missed by a prediction that are among the candidates of `by_text`.

python benchmarks/candidates.py

For each drawn record: its true matches outside its predicted cluster, and those of them among the first 10
and 20 candidates. "most" is the share that so many candidates could hold, since large entities lack more. The
time is that of the processor, for 1,000 drawn records.
"""

from time import process_time

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from erbayes import datasets
from erbayes.labels import RecordDraws, Records, by_text, draw
from erbayes.study.populations import Zeta, customers


def matched(table: pd.DataFrame, rules: list[list[str]]) -> pd.Series:
    """Clusters of records that are joined by equal values of all columns of a rule."""
    rows, keys, start = [], [], len(table)
    for rule in rules:
        filled = np.flatnonzero(table[rule].notna().all(axis=1))
        key = table.iloc[filled].groupby(rule).ngroup().to_numpy()
        rows.append(filled)
        keys.append(start + key)
        start += len(filled)
    row, key = np.concatenate(rows), np.concatenate(keys)
    graph = coo_array((np.ones(len(row)), (row, key)), shape=(start, start))
    return pd.Series(connected_components(graph, directed=False)[1][: len(table)], table.index)


def report(
    name: str, table: pd.DataFrame, prediction: pd.Series, true: pd.Series, drawn: RecordDraws
) -> None:
    """Print the shares for one table."""
    start = process_time()
    found = by_text(drawn, table.rename_axis("record").reset_index())
    seconds = process_time() - start
    found["place"] = found.groupby("record").cumcount()
    members = true.groupby(true).groups
    drawn_records = drawn.table["record"].unique()
    missing = {
        r: {x for x in members[true[r]] if prediction[x] != prediction[r]}
        for r in drawn_records
        if r in true.index
    }
    total = sum(map(len, missing.values()))
    shares = []
    for most in (10, 20):
        near = found[found["place"] < most].groupby("record")["candidate"].agg(set)
        hits = sum(len(records & near.get(r, set())) for r, records in missing.items())
        possible = sum(min(len(records), most) for records in missing.values())
        shares.append(f"{hits / total:.2f} of the first {most} (most {possible / total:.2f})")
    seconds *= 1000 / len(drawn_records)
    print(
        f"{name}, {len(table):,} records: {total:,} missing; {', '.join(shares)}; {seconds:.0f} s", flush=True
    )


def main() -> None:
    data, clusters = datasets.rldata10000(), datasets.rldata10000_example1()
    drawn = draw(clusters["pred"], Records(), n=6000, seed=3)
    report("RLdata10000", data.drop(columns="identity"), clusters["pred"], clusters["true"], drawn)

    table = customers(Zeta(2.5, 60), 20_000, rng=1)
    prediction = matched(table, [["email"], ["phone"], ["given", "family", "born"]])
    drawn = draw(prediction, Records(), n=1000, seed=1)
    report("customers", table.drop(columns="person"), prediction, table["person"], drawn)

    mentions = pd.read_parquet(datasets._find_data_file("pv-data.parquet")).drop_duplicates("mention_id")
    mentions = mentions.set_index("mention_id")
    columns = ["raw_inventor_name_first", "raw_inventor_name_last", "raw_city", "raw_country"]
    names = mentions["raw_assignee_organization"]
    organization = [
        " ".join(x for x in name if x) if isinstance(name, np.ndarray) else None for name in names
    ]
    mentions = mentions[columns].assign(organization=organization)
    for date in ("20170808", "20211230"):
        prediction = datasets.patentsview_release(date)
        prediction = prediction[prediction.index.isin(mentions.index)]
        true = datasets.patentsview_benchmark()
        true = true[true.index.isin(prediction.index)]
        chance = prediction.index.to_series().isin(true.index)  # draws among the labelled mentions
        drawn = draw(prediction[chance.to_numpy()], Records(), n=500, seed=1)
        members = prediction[prediction.isin(drawn.table["cluster"])].rename("cluster").rename_axis("record")
        drawn = RecordDraws.from_json(drawn.to_json(), drawn.table, members.reset_index())
        report(f"PatentsView {date}", mentions.loc[prediction.index], prediction, true, drawn)


if __name__ == "__main__":
    main()
