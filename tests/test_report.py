"""The page about a sample: what it holds, and that nothing in it runs, in a real browser where there is one."""

import base64
import functools
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from test_census import population

import erbayes as eb
from erbayes import metrics as m
from erbayes.engine import Resampled, Taylor
from erbayes.report import report

CHOSEN = (m.pairwise_precision, m.pairwise_recall, m.splits)
HOSTILE = [
    "<script>document.title='x'</script>",
    "<img src=x onerror=\"document.title='x'\">",
    "\"><svg onload=document.title='x'>",
    "'-->]]></style></pre><script>document.title='x'</script>",
    "&lt;script&gt;document.title='x'&lt;/script&gt;",
    "$\\frac{$ 名\u202e\x00\x1b",
]
CHROMIUM = shutil.which("chromium")
PRED, TRUE = population(4)


def sample(names, prediction=PRED):
    """Eight labelled entities, some of them called `names`."""
    chosen = sorted(TRUE.unique())[:8]
    ids = dict(zip(chosen, [*names, *map(str, chosen)], strict=False))
    labels = TRUE[TRUE.isin(chosen)].map(ids)
    return eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())


@functools.cache
def hostile_page():
    text = HOSTILE[3]
    return report(
        sample(HOSTILE),
        CHOSEN,
        title=HOSTILE[0],
        about={HOSTILE[1]: text, "file": HOSTILE[2]},
        call=f"erbayes report '{text}'",
    )


@functools.cache
def long_page():
    return report(sample(["a-long-name-of-an-entity" * 3]), m.ALL[:12], call="x" * 300)


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.seen, self.attributes = set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def pictures(page):
    return [
        base64.b64decode(p).decode() for p in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    ]


def test_no_markup_comes_from_the_data():
    hostile, plain = Tags(hostile_page()), Tags(report(sample([]), CHOSEN, call="x"))
    assert hostile.seen == plain.seen
    assert hostile.attributes == plain.attributes
    assert not {"script", "svg", "iframe", "link"} & hostile.seen
    assert not [name for name in hostile.attributes if name.startswith("on")]


def test_nothing_comes_from_elsewhere():
    page = hostile_page()
    assert not re.findall(r'(?:src|href)="(?!data:)', page)
    assert "url(" not in page and "@import" not in page
    assert "default-src 'none'" in page


def test_pictures_are_valid_and_show_ids_as_text():
    import xml.etree.ElementTree as tree

    shown = pictures(hostile_page())
    assert len(shown) == 4  # forest, balance, and the influence on two metrics
    for picture in shown:
        tags = {e.tag.split("}")[1] for e in tree.fromstring(picture).iter()}
        assert not {"script", "image", "a", "foreignObject"} & tags
    assert "&lt;script&gt;document.title" in shown[2]
    assert "$\\frac{$ 名\ufffd\ufffd\ufffd" in shown[2]


def dom(tmp_path, page):
    """The page after its scripts have run."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=2000",
        "--dump-dom",
        file.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser `chromium`, Debian's package of that name")
def test_hostile_ids_do_not_run_in_a_browser(tmp_path):
    """Neither with the policy of the page, nor without it, as in a mail reader that drops it."""
    page = hostile_page()
    bare = re.sub("<meta http-equiv[^>]*>", "", page)
    assert bare != page
    for one in (page, bare):
        assert "<title>&lt;script&gt;document.title='x'&lt;/script&gt;</title>" in dom(tmp_path, one).replace(
            "&#x27;", "'"
        )
    broken = bare.replace("<h1>", f"<h1>{HOSTILE[0]}")
    assert "<title>x</title>" in dom(tmp_path, broken), "this test could not see a script that runs"
    img = bare.replace("<h1>", f"<h1>{HOSTILE[1]}")
    assert "<title>x</title>" in dom(tmp_path, img)
    policed = page.replace("<h1>", f"<h1>{HOSTILE[0]}")
    assert "<title>x</title>" not in dom(tmp_path, policed), "the policy alone stops a script"


@pytest.mark.skipif(CHROMIUM is None, reason="needs the browser `chromium`, Debian's package of that name")
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_and_its_tables_are_no_wider_than_there_is_room(tmp_path, width):
    """A phone is a frame: chromium's windows are at least 500 pixels wide."""
    page = re.sub("<meta http-equiv[^>]*>", "", long_page())
    probe = (
        "<script>parent.postMessage([document.documentElement, ...document.querySelectorAll('.wide')]"
        ".map(e => Math.max(0, e.scrollWidth - e.clientWidth)).join(), '*')</script>"
    )
    (tmp_path / "inner.html").write_text(page.replace("</body>", f"{probe}</body>"), encoding="utf-8")
    outer = (
        "<script>addEventListener('message', e => document.title = 'beyond ' + e.data)</script>"
        f"<iframe src=inner.html style='width:{width}px;height:900px;border:0'></iframe>"
    )
    (found,) = re.findall(r"<title>beyond ([\d,]+)</title>", dom(tmp_path, outer))
    assert set(found.split(",")) == {"0"}


def test_what_it_says():
    drawn = sample([])
    page = report(drawn, CHOSEN, level=0.9, about={"prediction": "clusters.csv"}, call="erbayes report ...")
    found = eb.taylor(drawn, CHOSEN).apply(CHOSEN)
    for x, (low, high) in zip(found.mean[:2], found.interval(0.9)[:2], strict=True):
        assert f"<td>{x:.3f}\n{low:.3f}–{high:.3f}</td>" in page
    assert "level of 90 %" in page
    assert "clusters.csv" in page and "erbayes report ..." in page
    assert "UniformClusters(correction=sampling_fraction)" in page
    for alarm in eb.alarms(drawn, CHOSEN):
        assert f"<li>{alarm.replace(chr(39), '&#x27;')}</li>" in page
    worst = eb.influence(drawn, m.pairwise_precision).index[0]
    assert re.search(f"<h3>pairwise-precision</h3>.*?<tbody><tr><th>{worst}</th>", page, re.S)


def test_totals_have_the_same_names_in_the_table_and_in_the_picture_of_balance():
    page = report(sample([]), CHOSEN)
    assert "<tr><th>predicted links</th>" in page
    assert ">predicted links<" in pictures(page)[1] and "predicted_links" not in pictures(page)[1]


def test_each_engine_and_what_one_refuses():
    engines = {"one": Taylor(), "two": Resampled(replicates=50)}
    page = report(sample([]), CHOSEN, engines=engines)
    assert "<th>one</th><th>two</th>" in page and "<th>jackknife</th>" not in page
    labels = TRUE[TRUE.isin(sorted(TRUE.unique())[:8])]
    distinct = eb.Sample(eb.measure(PRED, labels), eb.DistinctEntities(9))
    page = report(distinct, CHOSEN)
    assert "No bootstrap: distinct entities are not independent draws" in page
    assert "<th>closed form</th><th>jackknife</th></tr>" in page


def test_the_same_twice():
    """So that the call to reproduce it does."""
    assert report(sample([]), CHOSEN) == report(sample([]), CHOSEN)


def test_samples_that_allow_little():
    labels = TRUE[TRUE == TRUE.iloc[0]]
    page = report(eb.Sample(eb.measure(PRED, labels), eb.UniformClusters()), CHOSEN)
    assert "A single draw gives no variance" in page and "No jackknife: a single draw" in page
    beyond = pd.concat([TRUE[TRUE.isin(sorted(TRUE.unique())[:8])], pd.Series({"r-none": TRUE.min()})])
    units = eb.measure(PRED, beyond, missing=eb.Missing.TOGETHER)
    page = report(eb.Sample(units, eb.UniformClusters()), CHOSEN[:2])
    assert "No balance: the total of &#x27;records&#x27; is not known" in page
    assert "labelled records that the prediction lacks" in page
    ids = np.unique(PRED)[:6]
    predicted = eb.measure_predicted(PRED, TRUE, ids)
    page = report(eb.Sample(predicted, eb.UniformClusters()), [m.pairwise_precision, m.purity])
    assert "6 predicted clusters" in page


def test_parameters_of_a_design_that_are_long_are_counted():
    labels = TRUE[TRUE.isin(sorted(TRUE.unique())[:8])]
    units = eb.measure(PRED, labels)
    design = eb.KnownWeights(pd.Series(1.0, units.ids), population=17)
    assert "KnownWeights(weights=8 values, population=17, " in report(eb.Sample(units, design), CHOSEN)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: report(sample([]), []), "no metric is asked for"),
        (lambda: report(sample([]), CHOSEN, level=2), "level must lie"),
        (lambda: report(sample([]), [m.purity]), "whole predicted clusters"),
    ],
)
def test_errors(make, message):
    with pytest.raises(eb.DataError, match=message):
        make()
