"""`erbayes demo`, and the synthetic case that it shares with the README."""

import re
import sys
from importlib import import_module
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from shell import done, refused, run

import erbayes as eb
from erbayes.cli import commands
from erbayes.datasets import people
from erbayes.study.populations import Population

ENGINES = ("closed form", "bootstrap", "size model")
README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the demo prints, the file of its picture and the picture."""
    picture, figures, save = tmp_path_factory.mktemp("demo") / "found.png", [], Figure.savefig
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Figure, "savefig", lambda one, *args, **kw: (figures.append(one), save(one, *args, **kw))
        )
        printed = done("demo", "--picture", picture).stdout
    return printed, picture, figures[0]


def row(text, name):
    """Numbers of the row of that name."""
    (line,) = (line for line in text.splitlines() if line.startswith(name))
    return [float(n) for n in line.split()[1:]]


def links(codes):
    return sum(comb(n, 2) for n in pd.Series(codes).value_counts())


def true_precision_and_recall(prediction, truth):
    right = links(list(zip(prediction, truth, strict=True)))
    return right / links(prediction), right / links(truth)


@pytest.fixture
def of_two_samples(monkeypatch):
    """The study of the first case, which is that of a thousand samples, has two."""
    study = eb.study.study
    monkeypatch.setattr(eb.study, "study", lambda *given, **more: study(*given, **more | {"repetitions": 2}))


def test_the_intervals_of_the_first_case_cover_the_truth(of_two_samples, capsys):
    commands._show_people()
    first, example = capsys.readouterr().out, people()
    truth = true_precision_and_recall(example.prediction, example.truth)
    for name, value in zip(("pairwise-precision", "pairwise-recall"), truth, strict=True):
        _, _, lower, upper, printed = row(first, name)
        assert lower < value < upper and printed == round(value, 3)
    assert "The 95 % interval covers the truth for 6 of 6 metrics." in first
    assert "records alone, precision would be 0.998" in first and re.search(r"covers it \d+ times", first)


@pytest.mark.slow
def test_further_samples_cover_the_truth_about_as_often_as_promised(capsys):
    commands._show_people()
    covering = int(re.search(r"covers it (\d+) times", capsys.readouterr().out)[1])
    assert abs(covering - 950) < 4 * np.sqrt(1000 * 0.95 * 0.05)
    assert f"covers the truth in {covering} of them" in README


def test_a_sample_that_misses_is_not_said_to_cover(of_two_samples, monkeypatch, capsys):
    monkeypatch.setattr(Population, "value", lambda population, metric: 0.5)
    commands._show_people()
    assert "covers the truth for 0 of 6 metrics" in capsys.readouterr().out


def test_the_first_case_is_a_uniform_sample_with_all_records_of_its_persons():
    example = people()
    assert example.prediction.index.equals(example.truth.index) and example.truth.index.is_unique
    assert len(example.drawn) == 200 > example.drawn.nunique()
    assert example.labels.equals(example.truth[example.truth.isin(example.drawn.unique())])


def test_the_second_case_is_the_one_that_the_page_on_heavy_tails_shows():
    _, sample = commands._make_heavy_tail()
    page = (Path(__file__).parents[1] / "docs/heavy-tails.md").read_text(encoding="utf-8")
    assert "simulate.Zeta(2.3, largest=400)" in page and "sample(100, random_state=3)" in page
    assert len(sample.units) == 100 and isinstance(sample.design, eb.UniformClusters)


@pytest.mark.slow
def test_the_engines_stand_next_to_the_truth(shown):
    text, _, _ = shown
    world, _ = commands._make_heavy_tail()
    truth = dict(zip(("precision", "recall"), true_precision_and_recall(world.pred, world.true), strict=True))
    row = r"^ *(closed form|bootstrap|size model) +pairwise-(\w+) +\S+ +\S+ +(\S+) +(\S+) +\S.*\S +(\S+)$"
    rows = re.findall(row, text, re.M)
    assert [r[0] for r in rows] == 2 * [*ENGINES]
    for method, metric, lower, upper, printed in rows:
        assert float(printed) == round(truth[metric], 3)
        assert float(lower) <= truth[metric] <= float(upper), (method, metric)
    assert "6 of 6 intervals cover the truth." in text
    assert "fault: 81% of all predicted links lie in clusters larger than any that the sample touches" in text


@pytest.mark.slow
def test_the_picture(shown):
    text, picture, figure = shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert text.endswith(f"wrote {picture}\n")
    (axes,) = figure.axes
    rows = ["pairwise-precision", *ENGINES, "pairwise-recall", *ENGINES]
    assert [t.get_text() for t in axes.get_yticklabels()] == rows
    world, _ = commands._make_heavy_tail()
    truth = true_precision_and_recall(world.pred, world.true)
    (marks,) = (lines.get_segments() for lines in axes.collections if lines.get_zorder() == 0)
    assert [mark[:, 0].tolist() for mark in marks] == [[t, t] for t in truth]
    assert [mark[:, 1].tolist() for mark in marks] == [[0.5, 3.5], [4.5, 7.5]]


def test_the_demo_says_what_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(commands, "_show_people", lambda: print("the first case"))
    demanded, picture = ("demo", "--picture"), tmp_path / "found.png"
    assert "found.docx: the name of this file ends in .svg, .png" in refused(
        *demanded, tmp_path / "found.docx"
    )
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.figure", None)
        shown = run(*demanded, picture)
        assert shown.exit_code == 2 and shown.stdout == "the first case\n", "which needs no extra"
        assert "the picture needs matplotlib: pip install 'erbayes[bayes,plots]'" in shown.stderr

    def without_models(name):
        if name == "erbayes.bayes":
            raise ModuleNotFoundError(name)
        return import_module(name)

    monkeypatch.setattr("erbayes._internal.errors.import_module", without_models)
    assert "the size model needs PyMC: pip install 'erbayes[bayes]'" in run(*demanded, picture).stderr
    assert not picture.exists()
