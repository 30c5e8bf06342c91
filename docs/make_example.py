"""Write the files with which the examples of the documentation run into the current folder.

A prediction of 20,000 simulated records, a labelled sample of it, and what single pages need besides.
"""

import numpy as np
import pandas as pd

from erbayes.study import populations as simulate

rng = np.random.default_rng(1)
splits, merges = simulate.Splits(0.25), simulate.Merges(0.02)
sizes = simulate.LogNormal(0.7, 0.9)
world = simulate.simulate(sizes, simulate.Chain([splits, merges]), 20_000, rng)
records = pd.DataFrame({"record": [f"r{i}" for i in range(20_000)]})
records["cluster"], records["person"] = world.pred, world.true

# 150 records are drawn, and all records of their persons are labelled
drawn = records.sample(150, replace=True, random_state=rng)
labels = records[records["person"].isin(drawn["person"])]
labels[["record", "person"]].to_csv("labels.csv", index=False)
drawn[["person"]].to_csv("drawn.csv", index=False)

records[["record", "cluster"]].to_csv("clusters.csv", index=False)
records[["record"]].to_csv("all.csv", index=False)
records[["record", "person"]].to_csv("truth.csv", index=False)

# an older prediction with more splits, and the links of the new one with scores
older = simulate.Chain([simulate.Splits(0.4), merges]).apply(world.true.to_numpy(), rng)
records[["record"]].assign(cluster=older).to_csv("old.csv", index=False)
links = pd.DataFrame({"left": records["record"], "right": records.groupby("cluster")["record"].shift()})
links = links.dropna().assign(score=0.95)
links.to_csv("links.csv", index=False)

# persons whose records are split are more often from the US; few are from LU
split = records.groupby("person")["cluster"].nunique() > 1
chance, place = np.where(split, 0.35, 0.1), np.random.default_rng(2).random(len(split))
country = np.select([place < chance, place < 0.5, place < 0.98], ["US", "FR", "DE"], "LU")
records[["record"]].assign(country=country[split.index.get_indexer(records["person"])]).to_csv(
    "countries.csv", index=False
)
# a slower matcher, with fewer errors
slower = simulate.Misattribution(0.01).apply(world.true.to_numpy(), rng)
records[["record"]].assign(cluster=slower).to_csv("slow.csv", index=False)
# what annotators see, and pairs of records that may match
records[["record"]].assign(name="Customer " + records["person"].astype(str)).to_csv(
    "customers.csv", index=False
)
same = records.merge(records, on="person", suffixes=("", "_other"))[["record", "record_other"]]
near = pd.DataFrame({"record": records["record"], "record_other": records["record"].shift()})
pairs = pd.concat([same[same["record"] < same["record_other"]], near.dropna()])
pairs.drop_duplicates().to_csv("pairs.csv", index=False)
# what each record is worth: an order with its year and its amount
orders = np.random.default_rng(3)
start = 2005 + orders.integers(0, 15, records["person"].max() + 1)[records["person"]]
records[["record"]].assign(
    year=start + orders.integers(0, 6, 20_000), amount=np.round(orders.lognormal(3, 1, 20_000), 2)
).to_csv("orders.csv", index=False)
