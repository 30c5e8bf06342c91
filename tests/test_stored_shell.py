"""What the shell prints of one world in which few things coincide, stored: numbers, counts, notes and columns.

`python tests/test_stored_shell.py` stores what it prints today. Whoever does says in the commit what changed and why.
"""

import re
import shlex
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pytest
from shell import run

pytestmark = pytest.mark.slow
STORED = Path(__file__).parent / "golden" / "shell.txt"
OWN = "--record customer --cluster found"
DRAWN = "-d uniform-records --drawn drawn.csv"
RATES = "--annotator-errors removed=2/40,missed=3/20,kept=.1,added=2/100"
COMMANDS = f"""
clusters old.csv {OWN} --alone none --any-id -f csv
clusters edges.csv:l,r,score@0.55 -f csv
draw old.csv -d uniform-records -n 60 --seed 4 -o work {OWN} --alone none --annotators 3 --overlap 0.5 --attributes a.csv
draw old.csv -d predicted-clusters -n 12 --seed 5 -o plain {OWN} --alone none --attributes a.csv
draw old.csv -n 30 --seed 8 -o rough {OWN} --alone none --blind --controls 0.3 --annotators 2 --overlap 1
labels work -f csv
labels work --problems problems.csv
labels rough
labels rough -f json
labels plain
draw --more 10 work
estimate work -m all
estimate work -m precision,recall,entities --level 0.8 --interval symmetric
estimate work -m f1 --engine bootstrap -f json
estimate work --by region --attributes a.csv
estimate work --across source -m recall --level 0.9
estimate work {RATES}
estimate plain
estimate new.csv work --missing omit
estimate new.csv work --missing singleton
estimate new.csv labels.csv {DRAWN} --missing omit
estimate old.csv labels.csv {DRAWN} {OWN} --alone none --by source -f csv
compare old.csv new.csv work --missing common --all-pairs
compare new.csv old.csv:customer,found labels.csv {DRAWN} --missing common --any-id
compare old.csv new.csv work --missing common --by region --attributes a.csv -m precision -f csv
compare old.csv new.csv work --missing common --level 0.8 {RATES}
plan work --half-width 0.05 -m recall
plan work --half-width 0.1 --per-unit 3 --per-record 0.5 --level 0.8
check work --min-precision 0.6 --min recall=0.5 --once
check work --min recall=0.9
impact work --statistic count --statistic 'share(size>=3)'
impact work --attributes a.csv --feature span=age:range --statistic 'mean(span)' --level 0.8
impact work --attributes a.csv --feature old=age:max --statistic 'mean(old)' --by region {RATES}
thresholds edges.csv work --at 0.3,0.5,0.7 --records all.csv
thresholds edges.csv labels.csv {DRAWN} --records all.csv --min precision=0.5 --level 0.8
draw edges.csv -d pairs -n 40 --seed 7 -o some-pairs --edges --records all.csv --threshold 0.5 --score score
pairs edges.csv answered.csv --records all.csv --threshold 0.5
pairs edges.csv answered.csv --records all.csv --level 0.8 -f csv
"""


def write_world():
    """Write files whose columns have other names, which lack records and clusters, and return the true entities."""
    rng = np.random.default_rng(20261202)
    truth = np.repeat(np.arange(170), np.minimum(rng.zipf(2.0, 170), 12))
    n = len(truth)
    order, ids = rng.permutation(n), np.array([f"r{i:03}" for i in range(n)])

    def err(share):
        return np.where(rng.random(n) < share, rng.choice(truth, n), truth)

    frame = pd.DataFrame({"person": rng.integers(0, 9, n), "customer": ids, "truth": truth})
    frame["found"], frame["source"] = [f"c{x}" for x in err(0.15)], rng.choice(["crm", "web"], n)
    frame.loc[rng.choice(n, 9, replace=False), "found"] = "none"
    frame = frame.iloc[order]
    frame.drop(columns="truth").to_csv("old.csv", index=False)
    newer = frame.assign(found=err(0.05)[order])[["customer", "found"]]
    newer[7:].rename(columns={"customer": "record", "found": "cluster"}).to_csv("new.csv", index=False)
    about = pd.DataFrame({"customer": ids, "age": rng.integers(20, 80, n), "region": rng.choice([*"NSW"], n)})
    about.assign(source=frame.sort_index()["source"]).sample(frac=1, random_state=1).to_csv(
        "a.csv", index=False
    )
    frame[["customer"]].rename(columns={"customer": "record"}).to_csv("all.csv", index=False)
    known = frame.set_index("customer")["truth"]
    drawn = [known[x] for x in rng.choice(ids, 50)]
    pd.DataFrame({"entity": drawn}).to_csv("drawn.csv", index=False)
    labels = known[known.isin(drawn)].rename_axis("record").rename("entity")
    labels.sample(frac=1, random_state=2).to_csv("labels.csv")
    left, right = rng.integers(0, n, (2, 3 * n))
    near = np.flatnonzero(np.diff(truth) == 0)
    left, right = np.r_[left[left != right], near], np.r_[right[left != right], near + 1]
    left, right = np.unique(np.sort([left, right], axis=0), axis=1)
    score = np.round(0.5 * (truth[left] == truth[right]) + 0.5 * rng.random(len(left)), 2)
    pd.DataFrame({"l": ids[left], "r": ids[right], "score": score}).to_csv("edges.csv", index=False)
    return known.to_dict()


def answer(folder, truth):
    """Fill in sheets: in `work` nobody can decide two tasks of each, `rough` has errors, and B leaves out the last."""
    rng = np.random.default_rng(3)
    for sheet in sorted(Path(folder).glob("sheet-*.csv")):
        table = pd.read_csv(sheet, dtype=str, keep_default_na=False)
        first = ~table["task"].duplicated()
        drawn = table["task"].map(table[first].set_index("task")["record"])
        same = np.array([truth[a] == truth[b] for a, b in zip(table["record"], drawn, strict=True)])
        same ^= (rng.random(len(same)) < 0.1) & (folder == "rough") & ~first
        untold = table["task"].isin(rng.choice(table["task"].unique(), 2)) & (folder == "work")
        begun = table["task"].ne(table["task"].iloc[-1]) | (sheet.stem[-1] != "B")
        table["cannot_tell"] = np.where(untold & first, "y", "")
        table.assign(same=np.where(begun & ~untold, np.where(same, "y", "n"), "")).to_csv(sheet, index=False)


def print_all(truth):
    """Yield each command with what it prints, and answer the folders that it draws."""
    for line in COMMANDS.strip().splitlines():
        shown = run(*shlex.split(line))
        text = re.sub(r"[ \t]+\n", "\n", f"{shown.stdout}{shown.stderr}")
        # another processor adds in another order
        text = re.sub(r"\d+\.\d{6,}(e-\d+)?", lambda number: f"{float(number[0]):.5g}", text)
        yield f"$ erbayes {line}\n{text}exit {shown.exit_code}\n"
        args = line.split()
        if args[0] == "draw" and "-o" in args and shown.exit_code == 0:
            folder = args[args.index("-o") + 1]
            if folder == "some-pairs":
                table = pd.read_csv("some-pairs/pairs.csv", dtype=str)
                same = [truth[a] == truth[b] for a, b in zip(table["left"], table["right"], strict=True)]
                table.assign(same=np.where(same, "y", "n")).to_csv("answered.csv", index=False)
            else:
                answer(folder, truth)


def test_nothing_that_the_shell_prints_changes_unseen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = "\n".join(print_all(write_world()))
    assert found.splitlines() == STORED.read_text("utf-8").splitlines()


if __name__ == "__main__":
    with TemporaryDirectory() as folder, chdir(folder):
        STORED.write_text("\n".join(print_all(write_world())), encoding="utf-8")
