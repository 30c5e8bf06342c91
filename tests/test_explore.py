"""Pictures to explore: they show the values of the tables, text of the data as it is, and need no network."""

import base64
import json
import re
import shutil
import sys
from functools import cache
from hashlib import sha256
from html import escape, unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checks import raises
from numpy.testing import assert_allclose, assert_array_equal
from shell import done, refused, run
from test_census import population
from test_cli_thresholds import files  # noqa: F401
from test_columns import EXAMPLES
from test_thresholds_curve import DESIGN, EDGES, LABELS, TRUTH

import erbayes as eb
from erbayes import plots
from erbayes._internal import digits
from erbayes.plots import axes
from erbayes.report import report

pytestmark = pytest.mark.lowest
P, R, F = "pairwise-precision", "pairwise-recall", "pairwise-f1"
HOSTILE = [
    "<img src=x onerror=\"document.title='x'\">",
    "<b>bold</b>",
    "</script><script>document.title='x'</script>",
    "&lt;i&gt; %{x} $\\frac{$",
    "<a href='javascript:document.title=1'>go</a>",
]
CHROMIUM = shutil.which("chromium")


@cache
def curve():
    return eb.thresholds(EDGES, LABELS, DESIGN, [P, R], records=TRUTH.index, at=12)


@cache
def sample():
    """Labelled entities of a population, most of them with ids that are markup."""
    prediction, truth = population(4)
    chosen = sorted(truth.unique())[:30]
    names = {x: HOSTILE[i] if i < len(HOSTILE) else str(x) for i, x in enumerate(chosen)}
    return eb.Sample(eb.measure(prediction, truth[truth.isin(chosen)].map(names)), eb.UniformClusters())


@cache
def domains():
    records = population(4)[1].index
    groups = pd.Series([HOSTILE[i % 4] for i in range(len(records))], index=records, name="<b>region</b>")
    return eb.by_domain(sample(), groups, [P, R, "entities"], fewest=0)


@cache
def comparison():
    prediction, truth = population(4)
    labels = truth[truth.isin(sorted(truth.unique())[:8])]
    halves = {r: i // 3 for i, r in enumerate(truth.index)}
    predictions = {"old": prediction, HOSTILE[1]: truth, "halves": halves}
    return eb.compare(predictions, labels, eb.UniformClusters(), [P, R, "entities"])


def said(rows):
    """Estimate and interval as text, in the digits of printed tables."""
    text = digits.shown(rows)
    return [f"{x.estimate} [{x.lower}, {x.upper}]" for x in text.itertuples()]


def test_the_curve_has_the_values_and_the_band_of_its_table():
    figure = curve().explore()
    heads, *traces = figure.data
    lines, bands = [t for t in traces if t.name], [t for t in traces if t.fill]
    assert [t.name for t in lines] == [P, R]
    assert [float(t.split()[1]) for t in heads.text] == curve().thresholds.tolist()
    for line, band, metric in zip(lines, bands, [P, R], strict=True):
        table = curve().table(metric)
        assert_array_equal(line.x, curve().thresholds)
        assert_array_equal(line.y, table["estimate"])
        known = table[table["lower"].notna()]
        assert 0 < len(known) <= len(table)
        assert_array_equal(band.x, [*known["threshold"], *known["threshold"][::-1]])
        assert_array_equal(band.y, [*known["upper"], *known["lower"][::-1]])
        effective = [f"<br>{n:,.0f} effective draws" for n in known["n_eff"]]
        wanted = [*map("".join, zip(said(known), effective, strict=True))]
        assert [line.text[i] for i in known.index] == wanted
        assert band.hoverinfo == "skip"
    assert figure.layout.xaxis.title.text == "threshold" and not figure.layout.xaxis.fixedrange
    assert figure.layout.yaxis.title.text == "estimate and 95 % band"
    narrow = curve().explore(R, level=0.8)
    assert_array_equal(narrow.data[2].y, curve().table(R)["estimate"])
    assert narrow.data[1].y[0] == curve().table(R, 0.8)["upper"].dropna().iloc[0]


def test_probabilities_near_one_have_an_axis_of_log_odds():
    weights = EDGES["score"] * 2 + 6
    table = EDGES.assign(score=(2**weights / (1 + 2**weights)).round(5))
    found = eb.thresholds(table, LABELS, DESIGN, [P, R], records=TRUTH.index, at=30)
    x = found.thresholds
    assert x[0] == 1 and np.mean(x > 0.9) > 0.5
    inside = x[x < 1]
    odds = 10 * inside.max() / (1 - inside.max())
    drawn = np.where(x == 1, odds / (1 + odds), x)
    ax, figure = found.plot(), found.explore()
    assert ax.get_xscale() == "logit" and not len(ax.get_xticks(minor=True))
    assert_allclose(ax.get_lines()[0].get_xdata(), drawn, rtol=1e-12)
    assert_allclose(figure.data[-1].x, np.log(drawn / (1 - drawn)), rtol=1e-9)
    heads = [float(text.split()[1]) for text in figure.data[0].text]
    assert_allclose(heads, x, atol=1e-4)
    labels = [text.get_text() for text in ax.get_xticklabels()]
    assert labels == [*figure.layout.xaxis.ticktext] == ["0.001", "0.1", "0.9", "0.999", "1"]
    ticks = np.array([float(label) for label in labels[:-1]] + [drawn[0]])
    assert_allclose(ax.get_xticks(), ticks)
    assert_allclose(figure.layout.xaxis.tickvals, np.log(ticks / (1 - ticks)))


@pytest.mark.parametrize("ends", [[0.0], [1.0], [0.0, 1.0], []])
def test_thresholds_of_0_and_1_have_places_and_ticks_of_their_own(ends):
    """At the place of a neighbour, lines would fall vertically there, and 0 would be in the middle."""
    x = np.array([0.9999, 0.99, 0.92, 0.8, *ends])
    place, ticks = axes.spread_probabilities(x)
    odds, labels = place / (1 - place), {label: tick for tick, label in ticks.items()}
    assert_array_equal(place[:4], x[:4])
    for end, wanted in ((0.0, 0.4), (1.0, 99_990.0)):
        assert_allclose(odds[x == end], wanted, rtol=1e-9)
        assert [labels[f"{end:g}"]] == [*place[x == end]] if end in ends else f"{end:g}" not in labels
    assert [*ticks] == sorted(ticks) and {"0.9", "0.99", "0.999"} <= set(labels)


def test_a_neighbour_of_1_leaves_it_a_finite_place():
    place, _ = axes.spread_probabilities(np.array([1, np.nextafter(1, 0), 0.99, 0.9]))
    assert (place < 1).all()


@pytest.mark.parametrize("at", [[0.99, 0.95, 0.5, 0.3], [0.992, 0.991], [2, 0.99, 0.98], [1, 1, 0]])
def test_other_thresholds_have_an_even_axis(at):
    x = np.array(at, dtype=float)
    drawn, ticks = axes.spread_probabilities(x)
    assert drawn is x and not ticks and curve().plot().get_xscale() == "linear"


def test_labels_near_one_are_short():
    ticks = axes.spread_probabilities(1 - 10.0 ** -np.arange(0.5, 14, 0.5))[1]
    assert [*ticks.values()] == ["0.9", "0.999", "1−1e-05", "1−1e-07", "1−1e-09", "1−1e-11", "1−1e-13"]


def test_a_band_has_gaps_where_draws_are_too_few(monkeypatch):
    whole = curve().table(P)
    table = whole.assign(reason="", lower=whole["estimate"] - 0.1, upper=whole["estimate"] + 0.1)
    table.loc[[3, 4], ["lower", "upper"]] = np.nan
    table.loc[[3, 4], "reason"] = "4 draws are " + "few " * 20
    monkeypatch.setattr(type(curve()), "table", lambda *_: table)
    _, first, second, line = curve().explore(P).data
    assert first.y == (*table["upper"][:3], *table["lower"][2::-1]) and len(second.y) == 2 * (len(table) - 5)
    value, _, *reason = line.text[3].split("<br>")
    assert value.endswith(", no interval") and " ".join(reason) == "4 draws are " + "few " * 19 + "few"
    assert max(map(len, reason)) <= digits.LONGEST


def texts_beside(figure, tables):
    """Lines of text of the points of each axis, whose values and intervals are those of a table."""
    found = []
    for line, dots, rows in zip(figure.data[::2], figure.data[1::2], tables, strict=True):
        assert_array_equal(np.array(dots.x, dtype=float), rows["estimate"])
        assert_array_equal(np.reshape(line.x, (-1, 3))[:, :2].astype(float), rows[["lower", "upper"]])
        found.append([text.split("<br>") for text in dots.text])
    return found


def test_estimates_have_the_values_of_their_table():
    found = eb.estimate(sample(), metrics=["entities", P, R])
    figure, table = found.explore(level=0.8), found.table(0.8)
    tables = [table.loc[[P, R]], table.loc[["entities"]]]
    for texts, rows in zip(texts_beside(figure, tables), tables, strict=True):
        assert texts == [[f"{x}: {value}"] for x, value in zip(rows.index, said(rows), strict=True)]
    assert figure.layout.xaxis2.title.text == "estimate and 80 % interval"
    assert figure.layout.yaxis.ticktext == (P, R) and not figure.layout.xaxis.zeroline
    assert len(plots.explore(table.loc[[R]]).data) == 2


def test_differences_have_the_values_of_their_table():
    figure = comparison().explore(level=0.9)
    of = dict(tuple(comparison().differences(0.9).groupby("metric")))
    tables = [pd.concat([of[P], of[R]]), of["entities"]]
    for texts, rows in zip(texts_beside(figure, tables), tables, strict=True):
        names = [escape(name, quote=False) for name in rows["difference"]]
        wanted = zip(names, rows["metric"], said(rows), strict=True)
        assert texts == [[name, f"{metric}: {both}"] for name, metric, both in wanted]
    assert figure.layout.xaxis.zeroline and figure.layout.xaxis2.zeroline
    assert figure.layout.xaxis2.title.text == "difference and 90 % interval"


def test_domains_have_the_values_of_their_table_and_names_are_no_markup():
    table = domains().table()
    table = table[table["metric"].isin([P, "entities"])].reset_index(drop=True)
    figure = plots.explore(table)
    tables = [table[(table["metric"] == x) & table["estimate"].notna()] for x in (P, "entities")]
    shown = zip(texts_beside(figure, tables), tables, ("yaxis", "yaxis2"), (P, "entities"), strict=True)
    for texts, rows, axis, metric in shown:
        for row, text, value in zip(rows.itertuples(), texts, said(rows), strict=True):
            name = escape(digits.shorten_id(row.domain), quote=False).replace("$", "&#36;")
            assert text == [name, f"{metric}: {value}", f"{row.n_eff:.0f} effective draws"]
        names = figure.layout[axis].ticktext
        assert names[0] == f"<b>{metric}</b>" and not re.search("[<>$]", "".join(names[1:]))
        assert figure.layout[axis].range == (len(names) - 0.5, -0.5), "the first is at the top"
    few = eb.by_domain(sample(), population(4)[1] % 2, P, fewest=1000).explore()
    assert {*few.data[1].marker.symbol} == {"x-thin"}
    assert few.data[1].text[0].split("<br>")[1].endswith(", no interval")
    rows = sum(len(figure.layout[axis].ticktext) for axis in ("yaxis", "yaxis2"))
    assert 26 < figure.layout.height / rows < 40, "a row has the height of a finger"


def test_every_table_of_estimates_with_intervals_can_be_explored(monkeypatch):
    import plotly.io as pio

    shown, drawings = 0, {}
    for name, make in EXAMPLES.items():
        result = make()
        table = getattr(result, result.explored)()
        if not {"estimate", "lower", "upper"} <= set(table) or table["estimate"].isna().all():
            raises(eb.DataError, r"explore has (no column|an estimate)", result.explore)
            continue
        drawn, curves = result.explore(), "threshold" in table
        points = [t.y if curves else t.x for t in drawn.data if (t.name if curves else t.hoverinfo == "text")]
        values = np.concatenate([np.array(x, dtype=float) for x in points])
        assert sorted(values[~np.isnan(values)]) == sorted(table["estimate"].dropna()), name
        drawings[curves] = result, drawn
        shown += 1
    assert shown > 12
    monkeypatch.setattr(pio.templates, "default", "plotly_dark")
    for result, drawn in drawings.values():
        same = result.explore().to_json() == drawn.to_json()
        assert same, "a style that users choose changes no letter"
    with pytest.raises(eb.DataError, match="rows to explore are named by the index"):
        plots.explore(eb.estimate(sample()).table().reset_index(drop=True))


def test_names_next_to_an_axis_leave_room_on_a_phone():
    group = pd.Series("a long name of a group of records", index=population(4)[1].index, name="g")
    ticks = eb.by_domain(sample(), group, P).explore().layout.yaxis.ticktext
    assert ticks[1] == "a long name of a gr…"


def test_without_plotly(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    raises(eb.DataError, r"to explore need plotly: pip install 'erbayes\[explore\]'", domains().explore)


@cache
def page():
    return report(domains(), [P, R], explore=True)


@pytest.mark.slow
def test_a_report_has_plotly_once_and_no_text_of_the_data_in_a_script():
    scripts = re.findall(r"<script( type=\"application/json\")?>(.*?)</script>", page(), re.S)
    data, run = [json.loads(t) for kind, t in scripts if kind], [t for kind, t in scripts if not kind]
    assert len(run) == 2 and [text.count("plotly.js v") for text in run] == [1, 0]
    assert len(data) == 3, "estimates of the first engine and of all, and domains"
    estimates = eb.estimate(sample(), metrics=[P, R]).estimate
    assert_array_equal(data[0]["data"][1]["x"], estimates)
    digests = [base64.b64encode(sha256(text.encode()).digest()).decode() for text in run]
    policy = re.search(r'Security-Policy" content="([^"]+)"', page())[1]
    allowed = " ".join(f"'sha256-{x}'" for x in digests)
    assert policy == f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src {allowed}"
    bare = re.sub(r"<script.*?</script>", "", page(), flags=re.S)
    assert not re.search(r"<script|<link|(?:src|href)=\"(?!data:)", bare)
    plain = report(domains(), [P, R])
    assert plain.count("<img") == page().count("<img"), "paper has the static pictures"
    assert "<script" not in plain and "script-src" not in plain


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser `chromium`, Debian's package of that name")
@pytest.mark.parametrize("width", [390, 1280])
def test_a_pointer_shows_a_value_offline(tmp_path, width):
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra `test`")
    (tmp_path / "page.html").write_text(page(), encoding="utf-8")
    complaints, requests = [], []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": width, "height": 900}, offline=True)
        opened = context.new_page()
        opened.on("request", lambda request: requests.append(request.url))
        opened.on("console", lambda message: complaints.append(message.text))
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto((tmp_path / "page.html").as_uri())
        opened.wait_for_selector(".explored .main-svg")
        assert opened.locator(".explored img").first.is_hidden()
        point = opened.locator(".explored").first.locator(".points path").first
        point.scroll_into_view_if_needed()
        point.hover(force=True)
        text = opened.locator(".hoverlayer .hovertext").first.text_content()
        first = eb.estimate(sample(), metrics=[P, R]).explore().data[1].text[0].split("<br>")
        assert text == unescape("".join(first))
        assert opened.evaluate("document.documentElement.scrollWidth") == width
        assert opened.title() == "How good is this entity resolution?"
        assert not opened.locator(".explored .main-svg a, .explored div img, .explored script[src]").count()
        opened.emulate_media(media="print")
        assert opened.locator(".explored img").first.is_visible()
        assert opened.locator(".explored .js-plotly-plot").first.is_hidden()
        browser.close()
    assert not complaints and requests == [(tmp_path / "page.html").as_uri()]
    assert report(domains(), [P, R], explore=True) == page()


DESIGNED = ("--design", "uniform-records", "--drawn", "drawn.csv")
PICTURE = ("--picture", "picture.html")
GROUPS = ("--by", "part", "--attributes", "a.csv")


@pytest.fixture
def predictions(files):  # noqa: F811
    prediction = TRUTH.rename("cluster").rename_axis("record")
    prediction.to_csv("p.csv")
    (prediction // 2).to_csv("q.csv")
    (prediction % 3).rename("part").to_csv("a.csv")


def test_the_shell_writes_them(predictions, tmp_path):
    done("compare", "p.csv", "q.csv", "labels.csv", *PICTURE, *DESIGNED)
    html = (tmp_path / "picture.html").read_text(encoding="utf-8")
    assert len(re.findall(r"plotly\.js v\d", html)) == 1
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=[\"'](?!data:)", html)


def test_a_picture_is_whole_or_the_old_one(predictions, tmp_path, monkeypatch):
    """A process that is killed while it writes leaves the picture that was there."""
    old = tmp_path / "old.svg"
    old.write_text("old", encoding="utf-8")

    def half(figure, path):
        Path(path).write_text("<svg", encoding="utf-8")
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", half)
    killed = run("estimate", "p.csv", "labels.csv", *DESIGNED, "--picture", "old.svg")
    assert killed.exit_code and old.read_text(encoding="utf-8") == "old"
    assert not list(tmp_path.glob(".erbayes-*"))


def test_the_shell_refuses_a_picture_of_groups_compared(predictions):
    said = "--picture and --by do not go together"
    assert said in refused("compare", "p.csv", "q.csv", *GROUPS, "labels.csv", *DESIGNED, *PICTURE)


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser `chromium`, Debian's package of that name")
def test_a_page_of_a_picture_is_as_wide_as_a_phone(predictions, tmp_path):
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra `test`")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        phone = browser.new_page(viewport={"width": 390, "height": 800}, is_mobile=True)
        for args in (("estimate", "p.csv"), ("compare", "p.csv", "q.csv")):
            done(*args, "labels.csv", *DESIGNED, *PICTURE)
            phone.goto((tmp_path / "picture.html").as_uri())
            phone.wait_for_selector(".main-svg")
            page = phone.locator("html")
            assert page.evaluate("page => [page.clientWidth, page.scrollWidth]") == [390, 390]
        browser.close()
