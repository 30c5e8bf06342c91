"""The page about a sample: what it holds, and that nothing in it runs, in a real browser where there is one."""

import base64
import functools
import re
import shutil
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from markupsafe import escape
from test_census import population

import erbayes as eb
from erbayes import metrics as m
from erbayes._internal import digits
from erbayes._internal.errors import Grade, Sentence
from erbayes.engine import Resampled, Taylor, diagnostics
from erbayes.metrics import tables as sentences
from erbayes.metrics.statistics import Statistic
from erbayes.report import report
from erbayes.report import sections as module

pytestmark = pytest.mark.lowest
CHOSEN = (m.pairwise_precision, m.pairwise_recall, m.splits)
HOSTILE = [
    "<script>document.title='x'</script>", "<img src=x onerror=\"document.title='x'\">",
    "\"><svg onload=document.title='x'>", "'-->]]></style></pre><script>document.title='x'</script>",
    "&lt;script&gt;document.title='x'&lt;/script&gt;", "$\\frac{$ 名\u202e\x00\x1b",
]  # fmt: skip
CHROMIUM = shutil.which("chromium")
PRED, TRUE = population(4)
CHOSEN_ENTITIES = sorted(TRUE.unique())[:8]


def sample(names, prediction=PRED):
    """Eight labelled entities, some of them called `names`."""
    ids = dict(zip(CHOSEN_ENTITIES, [*names, *map(str, CHOSEN_ENTITIES)], strict=False))
    labels = TRUE[TRUE.isin(CHOSEN_ENTITIES)].map(ids)
    return eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())


@functools.cache
def hostile_page():
    about = {HOSTILE[1]: HOSTILE[3], "file": HOSTILE[2], "call": f"erbayes report '{HOSTILE[3]}'"}
    return report(sample(HOSTILE), CHOSEN, title=HOSTILE[0], about=about)


@functools.cache
def long_page():
    return report(sample(["a-long-name-of-an-entity" * 3]), m.ALL[:12], about={"call": "x" * 300})


class Tags(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.seen, self.attributes = set(), set()
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}


def pictures(page):
    found = re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    return [base64.b64decode(picture).decode() for picture in found]


@pytest.fixture
def pictures_too():
    """Asked for by the tests that look at pictures."""


@pytest.fixture(autouse=True)
def undrawn(request, monkeypatch):
    """Pictures take most of the time of a page: they are left out where a test reads words."""
    if "pictures_too" not in request.fixturenames:
        blank = {"description": "", "data": "", "explored": ""}
        monkeypatch.setattr(module, "_make_picture", lambda *_: blank)


drawn_too = pytest.mark.usefixtures("pictures_too")


@drawn_too
def test_no_markup_comes_from_the_data():
    hostile, plain = Tags(hostile_page()), Tags(report(sample([]), CHOSEN, about={"call": "x"}))
    assert hostile.seen == plain.seen and hostile.attributes == plain.attributes
    assert not {"script", "svg", "iframe", "link"} & hostile.seen
    assert not [name for name in hostile.attributes if name.startswith("on")]


@drawn_too
def test_nothing_comes_from_elsewhere():
    page = hostile_page()
    assert not re.findall(r'(?:src|href)="(?!data:)', page) and "url(" not in page and "@import" not in page
    assert "default-src 'none'" in page


@drawn_too
def test_pictures_are_valid_and_show_ids_as_text():
    import xml.etree.ElementTree as tree

    shown = pictures(hostile_page())
    assert len(shown) == 5  # forests of one engine and of all, the influence on two metrics, and balance
    for picture in shown:
        tags = {e.tag.split("}")[1] for e in tree.fromstring(picture).iter()}
        assert not {"script", "image", "a", "foreignObject"} & tags
    assert "&lt;script&gt;document.title" in shown[1] and "$\\frac{$ 名\ufffd\ufffd\ufffd" in shown[1]


def dom(tmp_path, page):
    """The page after its scripts have run."""
    file = tmp_path / "page.html"
    file.write_text(page, encoding="utf-8")
    options = "--headless --no-sandbox --disable-gpu --virtual-time-budget=2000 --dump-dom".split()
    command = [CHROMIUM, *options, f"--user-data-dir={tmp_path / 'profile'}", file.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout.decode()


def in_a_browser(test):
    reason = "needs the browser `chromium`, Debian's package of that name"
    return pytest.mark.slow(pytest.mark.skipif(CHROMIUM is None, reason=reason)(test))


@drawn_too
@in_a_browser
def test_hostile_ids_do_not_run_in_a_browser(tmp_path):
    """Neither with the policy of the page, nor without it, as in a mail reader that drops it."""
    page = hostile_page()
    bare = re.sub("<meta http-equiv[^>]*>", "", page)
    assert bare != page
    title = "<title>&lt;script&gt;document.title='x'&lt;/script&gt;</title>"
    for one in (page, bare):
        assert title in dom(tmp_path, one).replace("&#39;", "'")
    broken = bare.replace("<h1>", f"<h1>{HOSTILE[0]}")
    assert "<title>x</title>" in dom(tmp_path, broken), "this test could not see a script that runs"
    img = bare.replace("<h1>", f"<h1>{HOSTILE[1]}")
    assert "<title>x</title>" in dom(tmp_path, img)
    policed = page.replace("<h1>", f"<h1>{HOSTILE[0]}")
    assert "<title>x</title>" not in dom(tmp_path, policed), "the policy alone stops a script"


def measure_beyond(tmp_path, page, width):
    """Pixels by which the page, and each box of a table, are wider than there is room. A phone is a frame:
    chromium's windows are at least 500 pixels wide."""
    page = re.sub("<meta http-equiv[^>]*>", "", page)
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
    return [*map(int, found.split(","))]


@drawn_too
@in_a_browser
@pytest.mark.parametrize("width", [390, 1200])
def test_the_page_and_its_tables_are_no_wider_than_there_is_room(tmp_path, width):
    assert not any(measure_beyond(tmp_path, long_page(), width))


@drawn_too
@in_a_browser
def test_a_table_that_is_wider_than_a_phone_scrolls_and_not_the_page(tmp_path):
    page = report(sample([]), CHOSEN, about={"Doubts": doubts()})
    whole, _, errors, *_ = measure_beyond(tmp_path, page, 390)
    assert whole == 0 < errors
    assert re.search(r"Doubts</h2>.*?<tbody><tr><th>random</th><td>pairwise-precision</td>", page, re.S)


def test_what_it_says():
    drawn = sample([])
    about = {"prediction": "clusters.csv", "call": "erbayes report ..."}
    page = report(drawn, CHOSEN, level=0.9, about=about)
    found = Taylor()(drawn, CHOSEN)
    for x in digits.shown(found.table(0.9)).itertuples():
        assert f"<td>{x.estimate}\n{x.lower}–{x.upper}</td>" in page
    for metric in CHOSEN:
        assert f"<th>{metric.name}<small>{metric.meaning}</small></th>" in page
    assert "of 100 samples drawn like this one, about 90 give an interval that covers" in page
    assert [page.count(fact) for fact in (*about.values(), "UniformClusters()")] == [1, 1, 1]
    for alarm in eb.alarms(drawn, CHOSEN):
        assert f"<li><b>{alarm.grade.value}</b>: {alarm.replace(chr(39), '&#39;')}</li>" in page
    worst = eb.influence(drawn, m.pairwise_precision).index[0]
    assert re.search(f"<h3>pairwise-precision</h3>.*?<tbody><tr><th>{worst}</th>", page, re.S)


def headline(page):
    return [text.replace("\u00a0", " ") for text in re.findall(r'<p class="headline">(.*?)</p>', page)]


def quiet(labelled=400):
    """A sample of which nothing is wrong: precision .9 in clusters of three, recall lower."""
    rng = np.random.default_rng(3)
    true = pd.Series(np.repeat(np.arange(1000), 3), name="true")
    split, stray = rng.random(3000) < 0.1, rng.random(3000) < 0.03
    pred = np.where(split, 10_000 + np.arange(3000), np.where(stray, rng.integers(0, 1000, 3000), true))
    drawn = rng.choice(1000, labelled, replace=False)
    return eb.Sample(eb.measure(pd.Series(pred), true[true.isin(drawn)]), eb.UniformClusters())


def test_two_sentences_to_quote_come_first():
    drawn = quiet()
    assert not eb.alarms(drawn)
    page = report(drawn, level=0.9)
    found = eb.engine.taylor(drawn).apply(eb.metrics.DEFAULT_METRICS)
    ends = np.column_stack([found.estimate, found.interval(0.9)])[:2]
    P, low, high, R, least, most = (f"{100 * x:.0f} %" for x in ends.ravel())
    assert headline(page) == [
        f"Of the links that the matcher made, {P} are right (90 % interval {low} to {high}).",
        f"Of the links that are truly there, the matcher found {R} ({least} to {most}).",
    ]
    order = [page.index(text) for text in ('class="headline"', "<h2>", "Quote these numbers, of", "<table")]
    assert order == sorted(order)


@functools.cache
def doubts():
    """Estimates that allow for errors of labels."""
    labels, design = TRUE[TRUE.isin(CHOSEN_ENTITIES)], eb.UniformClusters()
    answer = functools.partial(eb.estimate, PRED, metrics=CHOSEN)
    annotator = eb.labels.Annotator(missed=0.1)
    return eb.with_errors(answer, labels, design, PRED, annotator, imputations=2, rng=1)


def test_numbers_without_errors_of_labels_are_not_the_ones_to_quote():
    with_them, plain = (report(sample([]), CHOSEN, about=about) for about in ({"Doubts": doubts()}, {}))
    quotes = "uote the rows “both” under “Doubts”"
    assert quotes in with_them and "By the error of drawing alone (“Doubts”" in with_them
    assert "uote these numbers" not in with_them
    assert "uote these numbers" in plain and "drawing alone" not in plain


def test_the_first_two_metrics_are_quoted_if_neither_precision_nor_recall_is_among_them():
    drawn = quiet()
    metrics = [m.b3_recall, m.splits, m.rand]
    table = digits.shown(eb.engine.taylor(drawn, metrics).apply(metrics).table())
    one, two = headline(report(drawn, metrics))
    share = r"\d\d(\.\d)? %"
    assert re.fullmatch(rf"The estimate of b3-recall is {share} \(95 % interval {share} to {share}\)\.", one)
    x = table.loc["splits"]
    assert two == f"The estimate of splits is {x.estimate} ({x.lower} to {x.upper})."


def test_nothing_is_quoted_while_a_fault_stands():
    labels = TRUE[TRUE == TRUE.iloc[0]]
    drawn = eb.Sample(eb.measure(PRED, labels), eb.UniformClusters())
    page = report(drawn)
    assert headline(page) == ["Do not quote a number of this page yet: a fault must be mended first."]
    assert "Once no fault is left, quote these numbers" in page
    assert page.index('class="headline"') < page.index('class="alarms fault"') < page.index("<table")


def test_an_alarm_about_another_metric_leaves_the_sentences():
    """Precision is certain by the sample, which has no wrong link; recall is not."""
    labels = {i: i // 4 for i in range(80)}
    prediction = {i: f"half {i // 2}" if i % 8 < 4 else f"whole {i // 4}" for i in range(400)}
    prediction[400] = "alone"
    drawn = eb.Sample(eb.measure(prediction, labels), eb.UniformClusters())
    (alarm,) = eb.alarms(drawn, eb.metrics.DEFAULT_METRICS)
    assert "pairwise-precision" in alarm
    metrics = [m.pairwise_recall, m.b3_precision]
    assert "b3-precision" in eb.alarms(drawn, metrics)[0]
    (sentence,) = headline(report(drawn, metrics))
    assert sentence.startswith("Of the links that are truly there, the matcher found ")
    first, second = headline(report(drawn, eb.metrics.DEFAULT_METRICS))
    assert first.startswith("Of 20 draws none showed a false link; with 95 % confidence at least ")
    assert second == sentence


CLEAN = pd.Series(np.arange(1200) // 3)


def flawless(metric, prediction=CLEAN, engines=None, **options):
    """The headline about one metric, by 40 drawn entities of three records."""
    drawn = eb.Sample(eb.measure(prediction, CLEAN[CLEAN < 40]), eb.UniformClusters())
    (sentence,) = headline(report(drawn, [metric], engines=engines or {"one": Taylor()}, **options))
    return drawn, sentence


@pytest.mark.parametrize(("metric", "said"), [
    ("pairwise-precision", "showed a false link; with {} confidence at least {} of the links that the "),
    ("pairwise-recall", "showed a missed link; with {} confidence at least {} of the true links are found."),
    ("b3-recall", "lowers b3-recall; with {} confidence b3-recall is at least {}."),
    ("cluster-precision", "lowers cluster-precision; with {} confidence cluster-precision is at least {}."),
])  # fmt: skip
@pytest.mark.parametrize("level", [0.95, 0.8])
def test_a_sample_without_an_error_is_quoted_by_the_end_of_its_interval(metric, said, level):
    """The other end is the one of the table, digit by digit: the table has .xyz, and the sentence xy.z %."""
    drawn, sentence = flawless(metric, level=level)
    (row,) = digits.shown(eb.engine.taylor(drawn, metric).apply(metric).table(level)).itertuples()
    said = said.format(f"{100 * level:g} %", f"{100 * float(row.lower):.1f} %")
    assert sentence.startswith(f"Of 40 draws none {said}")


def test_what_no_draw_shows_at_the_lower_end(monkeypatch):
    """All true links are missed: recall is 0, and the interval says how many could be found at most."""
    monkeypatch.setattr(diagnostics, "ALL_WRONG", 41)  # how entities were chosen is not asked here
    apart = pd.Series(np.where(CLEAN < 40, np.arange(1200), 5000 + np.arange(1200) // 3))
    drawn, sentence = flawless("pairwise-recall", apart)
    assert Taylor()(drawn, [m.pairwise_recall]).interval()[0, 1] == pytest.approx(0.9, abs=1e-9)
    assert sentence == (
        "Of 40 draws none showed a link that was found; with 95 % confidence at most 90 % of the true links are "
        "found. If the labels are right, pairwise-recall lies between 0 % and 90 %, whatever the other records "
        "are."
    )
    _, sentence = flawless("pairwise-recall", pd.Series(np.arange(1200)))
    assert sentence == "If the labels are right, pairwise-recall is 0.00 %."  # nothing is linked
    drawn, sentence = flawless("splits")
    assert sentence.startswith("Of 40 draws none raises splits; with 95 % confidence splits is at most ")


def test_an_interval_without_length_is_not_quoted():
    """Wald's interval is [1, 1] if no draw shows an error; the bootstrap then has that of the closed form."""
    _, sentence = flawless("pairwise-recall", kinds=[eb.intervals.WALD])
    assert sentence == "Do not quote a number of this page yet: a fault must be mended first."
    _, sentence = flawless("pairwise-recall", engines={"bootstrap": Resampled(replicates=50)})
    assert sentence.startswith("Of 40 draws none showed a missed link; ")
    _, sentence = flawless("mean-cluster-size", kinds=[eb.intervals.WALD])  # inside the range
    assert sentence == "Do not quote mean-cluster-size: its interval has no length, since no draw differs."


def test_no_end_of_an_interval_is_rounded_to_certainty():
    assert sentences._format_end(m.pairwise_recall.support, 0.99999, 5e-6, True) == "99.999 %"
    assert sentences._format_end(m.pairwise_recall.support, 0.00004, 2e-5, False) == "0.004 %"
    assert sentences._format_end(m.pairwise_recall.support, 1e-9, 0.5, True) == "0 %", "of two draws"
    assert sentences._format_end(m.pairwise_recall.support, 0.9672, 0.0164, True) == "96.7 %"
    assert sentences._format_end(m.mean_cluster_size.support, 1.0342, 0.0171, False) == "1.034"


@pytest.mark.parametrize(
    ("grade", "blocked"), [("note", False), ("caution", False), ("fault", True), ("", False)]
)
def test_only_faults_forbid_quoting(grade, blocked):
    """Of engines of users too, whose sentences may have no grade, which counts as a caution."""

    def doubted(sample, metrics, rng=None):
        text = "something <is> doubtful."
        return replace(Taylor()(sample, metrics), remarks=(Sentence(text, Grade(grade)) if grade else text,))

    page = report(quiet(), [m.pairwise_recall], engines={"mine": doubted})
    (sentence,) = headline(page)
    assert ("Do not quote" in sentence) is blocked and ("Once no fault is left" in page) is blocked
    assert f"<li><b>{grade or 'caution'}</b>: mine: something &lt;is&gt; doubtful.</li>" in page


def test_faults_are_counted_and_listed_first():
    labels = {i: i // 2 for i in range(90)}
    more = {i: i // 2 for i in range(80)} | {i: i // 2 for i in range(200, 210)}
    drawn = eb.Sample(eb.measure(more, labels, missing=eb.Missing.OMIT), eb.UniformRecords())
    said = [a.grade.value for a in eb.alarms(drawn, [m.b3_recall])]
    assert said.count("fault") > 1 and "note" in said
    page, faults = report(drawn, [m.b3_recall]), said.count("fault")
    (said,) = headline(page)
    assert said == f"Do not quote a number of this page yet: {faults} faults must be mended first."
    shown = re.findall("<li><b>([a-z]+)</b>", page)
    assert shown == sorted(shown, key=["fault", "caution", "note"].index)


def test_a_page_quotes_the_range_of_undecided_draws_as_estimates_do():
    draws = np.random.default_rng(2).integers(0, 500, 100)
    decided = np.arange(100) >= 20
    labels = {i: i // 2 for i in range(1000) if i // 2 in draws[decided]}
    units = eb.measure({i: i // 2 if i % 10 else -i for i in range(1000)}, labels)
    sample = eb.Sample(units, eb.design.Responding(eb.UniformRecords(draws[decided]), decided))
    with pytest.warns(eb.Alarm, match="20 of 100 draws are undecided"):
        found = eb.estimate(sample, metrics=[m.pairwise_recall])
    kinds = (found.kind,)
    (sentence,) = headline(report(sample, [m.pairwise_recall], kinds=kinds))
    assert sentence == found.sentence() and "as 20% of the draws are undecided" in sentence


def test_what_a_sample_does_not_give_is_said():
    """No labelled entity has two records: there is no true link to find."""
    prediction = {i: i for i in range(40)} | {100: 3, 101: 3, 102: 9, 103: 12, 104: 12}
    drawn = eb.Sample(eb.measure(prediction, {i: -i - 1 for i in range(30)}), eb.UniformClusters())
    metrics = [m.pairwise_recall, m.b3_precision]
    said = "There is no estimate of pairwise-recall: its denominator is 0 in this sample."
    assert headline(report(drawn, metrics)) == [said]


def test_rounding_is_no_influence():
    page = report(sample(["a"], TRUE), CHOSEN)
    assert page.count("All draws have the same effect: no unit stands out.") == 2
    assert "e-1" not in page[page.index("What moves") :].split("base64")[0]
    assert "no unit stands out" not in report(sample(["a"]), CHOSEN)


def test_a_census_is_quoted_without_an_interval():
    drawn = eb.Sample(eb.measure(PRED, TRUE), eb.UniformClusters(TRUE.nunique()))
    first, second = headline(report(drawn))
    assert first.endswith("(no sampling error, since every unit is labelled).") and "interval" not in second


def test_long_tables_have_headings():
    assert "Links between records" not in report(sample([]))
    long = report(sample([]), eb.metrics.ALL)
    headings = [re.findall(rf'<th colspan="{1 + n}">(.*?)</th>', long) for n in (1, 3)]
    groups = [group.value for group in m.definitions.Group if group is not m.definitions.Group.OTHER]
    assert headings == [groups, groups]


@drawn_too
def test_totals_have_the_same_names_in_the_table_and_in_the_picture_of_balance():
    page = report(sample([]), CHOSEN)
    assert "<tr><th>predicted links</th>" in page
    assert ">predicted links<" in pictures(page)[-1] and "predicted_links" not in pictures(page)[-1]


def test_each_engine_and_what_one_refuses():
    engines = {"one": Resampled(replicates=50), "two": Resampled(replicates=50)}
    page = report(sample([]), CHOSEN, engines=engines)
    assert "<th>one</th><th>two</th>" in page and "<th>jackknife</th>" not in page
    cells = re.findall(r"<td>([^<>]+\n[^<>]+)</td><td>([^<>]+\n[^<>]+)</td></tr>", page)
    assert len(cells) == len(CHOSEN) and all(one == two for one, two in cells), "from one random state each"

    def third(sample, metrics, rng=None):
        raise eb.NotIdentified("it is not for this design")

    page = report(sample([]), CHOSEN, engines=engines | {"third": third})
    assert "No third: it is not for this design" in page and "<th>one</th><th>two</th></tr>" in page


@pytest.mark.slow
@drawn_too
def test_the_same_twice():
    """So that the call to reproduce it does."""
    asked = [(0.95, eb.intervals.WALD), (0.8, eb.intervals.WALD), (0.95, eb.intervals.Symmetric())]
    some, one = sample([]), {"one": Taylor()}
    pages = [report(some, CHOSEN[2:], engines=one, level=x, kinds=[kind]) for x, kind in [*asked, asked[0]]]
    assert pages[0] == pages[3] and len({pictures(page)[0] for page in pages}) == 3


def test_samples_that_allow_little():
    labels = TRUE[TRUE == TRUE.iloc[0]]
    page = report(eb.Sample(eb.measure(PRED, labels), eb.UniformClusters()), CHOSEN)
    assert "A single draw gives no variance" in page and "No jackknife: a single draw" in page
    beyond = pd.concat([TRUE[TRUE.isin(CHOSEN_ENTITIES)], pd.Series({"r-none": TRUE.min()})])
    units = eb.measure(PRED, beyond, missing=eb.Missing.TOGETHER)
    page = report(eb.Sample(units, eb.UniformClusters()), CHOSEN[:2])
    assert "No balance: the total of &#39;predicted_links&#39; is not known" in page
    assert "labelled records missing in the prediction" in page
    ids = np.unique(PRED)[:6]
    predicted = eb.measure_predicted(PRED, TRUE, ids)
    page = report(eb.Sample(predicted, eb.UniformClusters()), [m.pairwise_precision, m.purity])
    assert "6 predicted clusters" in page


@pytest.mark.parametrize("make, message", [
    (lambda: report(sample([]), []), "no metric is asked for"),
    (lambda: report(sample([]), CHOSEN, level=2), "level must lie"),
    (lambda: report(sample([]), [m.purity]), "whole predicted clusters"),
])  # fmt: skip
def test_errors(make, message):
    with pytest.raises(eb.DataError, match=message):
        make()


def test_warnings_of_an_engine_are_on_the_page_and_passed_on():
    """A fit that has not converged is no answer, and the page must not quote it."""

    def unsure(sample, metrics, rng):
        for _ in range(2):
            warnings.warn("the chains disagree <much>", UserWarning, stacklevel=1)
        return Taylor()(sample, metrics, rng)

    quiet = report(sample([]), [m.b3_recall], engines={"sure": Taylor()})
    with pytest.warns(UserWarning, match="the chains disagree") as warned:
        page = report(sample([]), [m.b3_recall], engines={"un<sure": unsure})
    assert len(warned) == 1 and page.count("un&lt;sure: the chains disagree &lt;much&gt;") == 1
    assert "Do not quote" in page and "Do not quote" not in quiet


def described(unit_names, attributes):
    """A table of all records as a folder has it: the entity of labelled ones, the cluster, and attributes."""
    ids = dict(zip(CHOSEN_ENTITIES, [*unit_names, *map(str, CHOSEN_ENTITIES)], strict=False))
    table = pd.DataFrame({"record": TRUE.index, "entity": TRUE.map(ids), "cluster": PRED[TRUE.index]})
    more = {name: [text.format(r) for r in TRUE.index] for name, text in attributes.items()}
    return sample(unit_names), table.assign(**more)


def test_records_stand_next_to_the_ids_of_units():
    """One of the unit, one of it in another cluster, and one of another entity in its cluster, by hand."""
    drawn, records = described([], {"name": "name of {}", "town": "Leeds", "blank": " "})
    page = report(drawn, [m.pairwise_precision, m.pairwise_recall], records=records)
    shown = re.findall(r"<span>(.*?)</span>", page)
    entity, cluster = (records.set_index("record")[c] for c in ("entity", "cluster"))
    roles, first = set(), None
    for line in shown:
        role, texts = line.split(": ", 1)
        record = texts.split(" · ")[0]
        roles.add(role)
        if role == "a record of it":
            first, piece = record, cluster[entity == entity[record]]
            assert (piece == cluster[first]).sum() == piece.value_counts().max(), "of its largest piece"
            assert texts == f"{record} · name of {record} · Leeds", "blanks are left out"
            continue
        assert texts == f"{record} · <b>name of {record}</b> · Leeds", "what differs is marked"
        assert (entity[record] == entity[first]) == (role == "the same, in another cluster")
        assert (cluster[record] == cluster[first]) == (role == "another, in the same cluster")
    assert roles == {"a record of it", "the same, in another cluster", "another, in the same cluster"}
    assert "<span>" not in report(drawn, CHOSEN)


def test_hostile_attributes_are_text():
    drawn, records = described(HOSTILE, {HOSTILE[0]: HOSTILE[1].replace("{", "{{")})
    page = report(drawn, CHOSEN, records=records)
    assert Tags(page).seen - Tags(report(drawn, CHOSEN)).seen <= {"span", "b"}
    assert "&lt;img src=x" in page and "{{" not in page


def test_records_need_their_columns():
    with pytest.raises(eb.DataError, match="no column 'cluster'"):
        report(sample([]), CHOSEN, records=pd.DataFrame({"record": [], "entity": []}))
    with pytest.raises(eb.DataError, match="records are a DataFrame"):
        report(sample([]), CHOSEN, records={})


@pytest.mark.parametrize(("design", "said"), [
    (eb.UniformRecords(), "8 records were drawn at random on Monday, each with the same chance, and labelled"),
    (eb.UniformClusters(), "8 entities were drawn at random on Monday, each with the same chance, and labelled"),
    (eb.DistinctEntities(9), "draws were made at random on Monday by the design DistinctEntities, and labelled"),
    (eb.design.Responding(eb.UniformRecords(), [True] * 8 + [False]), "records were drawn at random on Monday, each"),
])  # fmt: skip
def test_what_was_done_is_a_sentence(design, said):
    drawn = eb.Sample(sample([]).units, design)
    engines, about = {"one": Taylor()}, {"drawn on": "Monday", "labelled by": "A and B"}
    page = report(drawn, [m.b3_recall], engines=engines, about=about)
    (done,) = re.findall("<p>(What was done: .*?)</p>", page)
    labelled = f"{int(drawn.units.n.sum())} records of 8 entities"
    assert said in done and f"labelled by A and B: {labelled}. The prediction has {len(PRED)} records" in done
    (bare,) = re.findall("<p>(What was done: .*?)</p>", report(drawn, [m.b3_recall], engines=engines))
    assert " on " not in bare and " by A" not in bare


def test_other_engines_are_folded_below():
    before, folded = report(sample([]), CHOSEN).split("<details>")
    assert "<th>closed form</th></tr>" in before and "jackknife</th>" not in before
    assert "<th>closed form</th><th>jackknife</th><th>bootstrap</th></tr>" in folded.split("</details>")[0]
    assert "<details>" not in report(sample([]), CHOSEN, engines={"one": Taylor()})


def test_alarms_of_a_grade_stand_together_under_what_they_ask():
    grades = [Grade.NOTE, Grade.FAULT, Grade.CAUTION, Grade.FAULT]
    groups = module.group_alarms([Sentence(f"s{i}", grade) for i, grade in enumerate(grades)])
    wanted = [("fault", ["s1", "s3"]), ("caution", ["s2"]), ("note", ["s0"])]
    assert [(g["grade"], g["sentences"]) for g in groups] == wanted and set(module.GRADES) == set(Grade)


SIZED = pd.Series(np.repeat(np.arange(200), 1 + np.arange(200) % 4))


def own_numbers(entities, **given):
    """Numbers of a user's own, some with hostile names and domains."""
    prediction = SIZED.where(SIZED.index % 5 > 0, (1000 + SIZED.index).to_numpy())
    labels = SIZED[SIZED < entities]
    statistic = Statistic((HOSTILE[0],), lambda rows, w: (w.sum(), np.ones(len(w))))
    return eb.impact(prediction, labels, eb.UniformClusters(), ["mean(size)", statistic], **given)


def test_a_users_own_numbers_have_a_section_under_their_name():
    found = own_numbers(60)
    options = {"engines": {"one": Taylor()}, "level": 0.8}
    page = report(sample([]), CHOSEN, about={HOSTILE[1]: found, "file": "f"}, **options)
    section = page[page.index("<h2>&lt;img") : page.index("<h2>What moves")]
    assert "the clusters' number is" in found.sentences(0.8)[0]
    for sentence in found.sentences(0.8):
        assert f"<li>{escape(sentence)}</li>" in section
    assert found.sentences(0.8) != found.sentences(0.95)
    table = digits.shown(found.table(0.8).drop(columns="reason", errors="ignore"))
    shown = re.findall("<td>(.*?)</td>", section)
    assert shown == table.to_numpy().ravel().tolist(), "rounded, and in order"
    plain = Tags(report(sample([]), CHOSEN, about={"file": "f"}, **options))
    assert Tags(page).seen - plain.seen <= {"ul", "li"} and Tags(page).attributes == plain.attributes
    assert "Impact" not in page.split("<h2>Data and design")[1], "it is no line about the data"


def test_domains_of_own_numbers_are_text_and_refusals_are_said():
    table = pd.DataFrame({"record": SIZED.index, "where": np.resize(HOSTILE, len(SIZED))})
    found = own_numbers(8, attributes=table, by="where")
    assert found.table()["reason"].any()
    page = report(sample([]), CHOSEN, engines={"one": Taylor()}, about={"Your own numbers": found})
    section = page[page.index("<h2>Your own numbers") : page.index("<h2>What moves")]
    assert "there is no estimate of the truth" in section and "&lt;svg onload" in section
    assert Tags(section).seen == {"h2", "ul", "li", "div", "table", "thead", "tbody", "tr", "th", "td"}
    assert "Your own numbers" not in report(sample([]), CHOSEN, engines={"one": Taylor()})
