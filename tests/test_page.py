"""The labelling page in a real browser, and the file of answers that it saves."""

import json
import re
import shutil
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from erbayes._internal.errors import DataError
from erbayes.labels import labelling_page, read_answers

pytestmark = pytest.mark.slow

CHROMIUM = shutil.which("chromium")
PRINT = "print of the draw"
BROKEN = "document.title='x'"
HOSTILE = [
    f"</script><script>{BROKEN}</script>", f'<img src=x onerror="{BROKEN}">', "<!--<script>", "__proto__",
    "constructor", "{data} {policy} ${1+1} \\1 &lt;", " blanks at both ends ",
    "line\u2028two\u202eturned 名\x1b[2J",
]  # fmt: skip
HOME = {0: "a", 1: "a", 2: "b", 3: "c", 4: "c", 5: "c"}
"""Predicted cluster of each of the six records of one task."""


def population(names=()):
    """Ten tasks of six records: a prediction, the truth, and attributes, under ids of which some are given.
    Record 0 of each six is drawn. In odd tasks record 1 of its cluster is another person; in every third task
    record 3, a candidate, is the same person; in the sixth record 5 is, which is no candidate."""
    ids = [*names, *(f"r{i}" for i in range(len(names), 60))]
    rows = []
    for i, record in enumerate(ids):
        task, j = divmod(i, 6)
        same = j == 0 or (j == 1 and task % 2 == 0) or (j == 3 and task % 3 == 0) or (j == 5 and task == 6)
        rows.append((record, f"{HOME[j]}{task}", f"p{task}" if same else f"q{i}", f"Ann {ids[i - j]} {j}"))
    table = pd.DataFrame(rows, columns=["record", "cluster", "person", "name"]).set_index("record")
    table["town"] = ["Leeds" if i % 5 else None for i in range(60)]
    return table


def tasks_of(table):
    rows = [
        (task + 1, table.index[6 * task + j], role)
        for task in range(len(table) // 6)
        for j, role in [(0, "drawn"), (1, "cluster"), (2, "candidate"), (3, "candidate"), (4, "candidate")]
    ]
    return pd.DataFrame(rows, columns=["task", "record", "role"]).join(table[["name", "town"]], on="record")


def entities(answers):
    """Drawn record -> the records that are the same, by the table that `read_answers` returns."""
    drawn = answers[answers["role"] == "drawn"].set_index("task")["record"]
    same = answers[answers["same"] == "y"]
    return {drawn[task]: set(group) for task, group in same.groupby("task")["record"]}


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("needs the browser `chromium`, Debian's package of that name")
    api = pytest.importorskip("playwright.sync_api", reason="needs playwright, of the extra `test`")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page in a window of its own, with everything that it asks for and complains about."""

    def __init__(self, browser, file, **window):
        self.context = browser.new_context(accept_downloads=True, **window)
        self.requests, self.complaints = [], []
        self.context.on("request", lambda request: self.requests.append(request.url))
        self.page = self.context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.set_default_timeout(120_000)
        self.page.goto(file.as_uri())

    def keys(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def reload(self):
        """Load the page again as a person would, not within the milliseconds in which Chromium stores an answer."""
        self.page.wait_for_timeout(300)
        self.page.reload()

    def current(self):
        return int(re.match(r"Task (\d+)", self.page.inner_text("#question small"))[1])

    def count(self):
        return self.page.inner_text("#count")

    def load(self, path, then):
        """Load a file, and wait until the page shows what the selector `then` names."""
        self.page.set_input_files("#file", path)
        self.page.wait_for_selector(then)

    def save(self, path):
        with self.page.expect_download() as download:
            self.page.click("#save")
        download.value.save_as(path)
        return download.value.suggested_filename


@pytest.fixture
def visit(browser, tmp_path):
    visits = []

    def open_(tasks, annotator="Ada", fingerprint=PRINT, file="page.html", settling=None, **window):
        path = tmp_path / file
        path.write_text(labelling_page(tasks, annotator, fingerprint, settling=settling), encoding="utf-8")
        visits.append(Visit(browser, path, **window))
        return visits[-1]

    yield open_
    for one in visits:
        one.context.close()


def label(visit, table, task):
    """Answer one task by the truth, with keys alone; one answer is wrong first and taken back."""
    here = table.iloc[6 * task : 6 * task + 6]
    same = here["person"] == here["person"].iloc[0]
    assert visit.current() == task + 1
    if task == 4:
        visit.keys("j", "n", "u")
        assert visit.page.locator("tr.other").count() == 0
    for j, key in enumerate(["n" if not same.iloc[1] else "j", "j", "y" if same.iloc[3] else "n"]):
        visit.keys(*(["j"] if j == 0 else []), key)
    if same.iloc[5]:
        visit.keys("a")
        visit.page.keyboard.type(here.index[5])
        visit.keys("Enter", "Escape")
    visit.keys("Enter")


def test_ten_tasks_a_reload_hostile_ids_and_back(visit, tmp_path):
    """Labels from the browser give the entities of labels typed in directly."""
    table = population(HOSTILE)
    tasks = tasks_of(table)
    seen = visit(tasks)
    for task in range(5):
        label(seen, table, task)
    seen.page.fill("#note", HOSTILE[0])
    before = seen.count()
    seen.reload()
    assert seen.count() == before == "5 of 10 done"
    assert seen.current() == 6 and seen.page.input_value("#note") == HOSTILE[0]
    for task in range(5, 10):
        label(seen, table, task)
    assert "All tasks are done" in seen.page.inner_text("#notice")
    assert seen.save(tmp_path / "answers.json") == "answers-Ada.json"

    answers = read_answers(tmp_path / "answers.json", tasks, PRINT)
    drawn = table.index[::6]
    typed = {record: set(table.index[table["person"] == table["person"][record]]) for record in drawn}
    assert entities(answers) == typed
    assert answers.loc[answers["role"] == "drawn", "note"].tolist() == ["", *[""] * 4, HOSTILE[0], *[""] * 4]
    assert set(answers["annotator"]) == {"Ada", ""} and seen.page.title() == "Records to label"
    assert seen.complaints == [] and all(url.startswith(("file:", "blob:")) for url in seen.requests)


def test_the_policy_lets_no_request_out_and_no_other_script_in(visit):
    """A server beside the page hears nothing, and hears a page without the policy."""
    seen = visit(tasks_of(population(HOSTILE)))
    probe = """async address => {
        const seen = [];
        document.addEventListener("securitypolicyviolation", e => seen.push(e.effectiveDirective));
        await fetch(address + "fetched").catch(() => {});
        new Image().src = address + "image.png";
        const script = document.createElement("script");
        try { script.append("document.title = 'x'"); document.body.append(script); } catch {}
        try { document.querySelector("main").innerHTML = "<b>x</b>"; } catch { seen.push("HTML of text"); }
        await new Promise(resolve => setTimeout(resolve, 300));
        return seen;
    }"""
    heard = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            heard.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<!doctype html><main></main>")

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_port}/"
        blocked = seen.page.evaluate(probe, address)
        assert not heard and seen.page.title() != "x"
        seen.page.goto(address)
        assert seen.page.evaluate(probe, address) == [] and {"/fetched", "/image.png"} <= set(heard)
        assert seen.page.title() == "x"
        server.shutdown()
    assert {"connect-src", "img-src", "HTML of text"} <= set(blocked)


def test_text_of_the_data_is_shown_as_it_is(visit):
    seen = visit(tasks_of(population(HOSTILE)))
    assert seen.page.text_content("tbody tr.record:nth-child(2) th") == HOSTILE[1]
    seen.keys("ArrowRight")
    assert seen.page.locator("#top .name").text_content() == HOSTILE[6]
    assert seen.page.locator("#cluster .name").text_content() == "line\u2028two\ufffdturned 名\ufffd[2J"


def test_marks_show_what_differs(visit):
    rows = [
        (1, "a", "drawn", "MUELLER", 1970.0, None),
        (1, "b", "candidate", "MUENLER", 1970.0, "Bonn"),
        (1, "c", "candidate", "mueller ", np.nan, "Bonn"),
        (1, "d", "candidate", "Schmidt", 1971.0, None),
    ]
    seen = visit(pd.DataFrame(rows, columns=["task", "record", "role", "name", "year", "town"]))
    kinds = [
        [cell.get_attribute("class") for cell in row.locator("td:not(.answer)").all()]
        for row in seen.page.locator("#candidates tr.record").all()
    ]
    assert kinds == [["differs", "agrees", None], ["agrees", "lacks", None], ["differs", "differs", "lacks"]]
    assert seen.page.locator("mark").all_inner_texts() == ["N", "1"]
    assert seen.page.locator("#top td .value").all_inner_texts() == ["MUELLER", "1970", "–"]


def clusters():
    """A drawn predicted cluster of two entities, c1 c3 and c2 c4, and another of one record."""
    rows = [(t, f"c{r}", "drawn" if r == t else "cluster") for t in range(1, 5) for r in range(t, 5)]
    return pd.DataFrame([*rows, (5, "d1", "drawn")], columns=["task", "record", "role"])


HOMES = {1: "c", 2: "c", 3: "c", 4: "c", 5: "d"}
"""The drawn cluster of each of these tasks."""


def test_tasks_of_a_drawn_cluster_that_are_settled_are_passed(visit, tmp_path):
    seen = visit(clusters(), settling=HOMES)
    seen.keys("j", "n", "j", "y", "n", "Enter")
    assert (seen.current(), seen.count()) == (2, "2 of 5 done")
    assert seen.page.inner_text("#sum") == "1 same, 1 different"  # c3 belongs to task 1
    seen.keys("Enter")
    assert (seen.current(), seen.count()) == (5, "4 of 5 done")
    seen.reload()
    assert (seen.current(), seen.count()) == (5, "4 of 5 done")
    seen.keys("ArrowLeft")
    assert "Settled by task 2: it needs no answer." in seen.page.inner_text("#question")
    seen.keys("ArrowRight", "Enter")
    seen.save(tmp_path / "saved.json")
    answers = read_answers(tmp_path / "saved.json", clusters(), PRINT)
    assert entities(answers) == {"c1": {"c1", "c3"}, "c2": {"c2", "c4"}, "d1": {"d1"}}
    assert set(answers["task"][answers["annotator"] == "Ada"]) == {1, 2, 5} and not seen.complaints


def test_a_settled_task_is_open_again_if_its_answer_is_taken_back(visit):
    seen = visit(clusters(), settling=HOMES)
    seen.keys("Enter")
    assert (seen.current(), seen.count()) == (5, "4 of 5 done")
    seen.keys("u")
    assert (seen.current(), seen.count()) == (1, "0 of 5 done")
    alone = visit(clusters(), file="records.html")
    alone.keys("Enter")
    assert (alone.current(), alone.count()) == (2, "1 of 5 done")


def test_search_narrows_the_records_as_one_types(visit, tmp_path):
    table = population()
    seen = visit(tasks_of(table))
    seen.keys("/")
    seen.page.keyboard.type("ANN 3")
    assert seen.page.locator("tr.record:visible:not(.drawn) .name").all_inner_texts() == ["r3"]
    seen.keys("Enter", "y", "Escape")
    assert seen.page.locator("tr.same .name").all_inner_texts() == ["r3"]
    seen.keys("/", "Escape")
    assert seen.page.locator("tr.record:visible:not(.drawn)").count() == 4
    seen.keys("Enter")
    seen.save(tmp_path / "answers.json")
    answers = read_answers(tmp_path / "answers.json", tasks_of(table), PRINT)
    assert entities(answers)["r0"] == {"r0", "r1", "r3"}


def test_undo_takes_back_each_kind_of_answer(visit):
    seen = visit(tasks_of(population()))
    seen.keys("j", "n", "y", "Enter", "?", "a")
    assert seen.current() == 3 and seen.count() == "2 of 10 done"
    seen.page.keyboard.type("z1")
    seen.keys("Enter", "Escape")
    seen.page.click("tr:has-text('z1') >> text=Remove")
    seen.keys("u")
    assert seen.page.locator("#added .name").inner_text() == "z1"
    seen.keys("u", "u")
    assert seen.current() == 2 and seen.count() == "1 of 10 done"
    seen.keys("Control+z")
    assert seen.current() == 1 and seen.count() == "0 of 10 done"
    assert seen.page.locator("tr.same, tr.other").count() == 2
    seen.keys("u", "u", "u")
    assert seen.page.locator("tr.same, tr.other").count() == 0
    assert seen.page.inner_text("#said") == "Nothing to undo."


def test_cannot_tell_and_open_tasks_are_told_apart(visit, tmp_path):
    tasks = tasks_of(population())
    seen = visit(tasks)
    seen.keys("Enter", "?", "j", "y")
    seen.save(tmp_path / "answers.json")
    assert "8 tasks are open" in seen.page.inner_text("#notice")
    drawn = read_answers(tmp_path / "answers.json", tasks, PRINT)[lambda t: t["role"] == "drawn"]
    assert drawn["same"].tolist() == ["y", *[""] * 9]
    assert drawn["cannot_tell"].tolist() == ["", "x", *[""] * 8]
    states = [b.get_attribute("aria-label").rsplit(", ")[-1] for b in seen.page.locator("#all button").all()]
    assert states == ["done", "cannot tell", "started", *["open"] * 7]


def test_answers_can_be_loaded_elsewhere_and_overwrite_only_after_a_question(visit, tmp_path):
    tasks, path = tasks_of(population()), tmp_path / "answers.json"
    here = visit(tasks)
    here.keys("Enter", "Enter", "j", "y")
    here.save(path)
    there = visit(tasks)
    there.load(path, "text=Loaded answers of 3 tasks")
    assert there.current() == 3 and there.count() == "2 of 10 done"
    assert there.page.locator("tr.same .name").all_inner_texts() == ["r13"]
    there.keys("n")
    there.keys("ArrowLeft", "j", "n")
    there.load(path, "text=2 tasks have other answers")
    there.page.click("#no")
    there.page.wait_for_selector("text=Nothing was loaded")
    assert there.page.locator("tr.other .name").first.inner_text() == "r7"
    there.load(path, "dialog[open]")
    there.page.click("#yes")
    there.page.wait_for_selector("text=Loaded answers")
    assert there.current() == 3
    there.keys("ArrowLeft")
    assert there.page.locator("#cluster tr.same").count() == 1
    there.keys("u")
    assert there.page.locator("#cluster tr.other").count() == 1


@pytest.mark.parametrize(("changed", "said"), [
    ({"version": 2}, "no file of answers"),
    ({"fingerprint": "other"}, "another draw"),
    ({"annotator": "Bo"}, "answers of Bo"),
    ({"answers": [{"task": 1, "record": "r6"}]}, "1 task of this file is not in this page"),
    ("not JSON", "no file of answers"),
])  # fmt: skip
def test_other_files_are_not_loaded(visit, tmp_path, changed, said):
    good = {"version": 1, "fingerprint": PRINT, "annotator": "Ada", "answers": []}
    path = tmp_path / "other.json"
    path.write_text(changed if isinstance(changed, str) else json.dumps(good | changed), encoding="utf-8")
    seen = visit(tasks_of(population()))
    seen.load(path, f"text={said}")
    assert seen.count() == "0 of 10 done"


def test_a_browser_that_keeps_nothing_is_told(browser, tmp_path):
    file = tmp_path / "page.html"
    file.write_text(labelling_page(tasks_of(population()), "Ada", PRINT), encoding="utf-8")
    context = browser.new_context()
    context.add_init_script(
        "Object.defineProperty(window, 'localStorage', {get() { throw new Error('blocked') }})"
    )
    page = context.new_page()
    page.goto(file.as_uri())
    assert "keeps no progress" in page.inner_text("#notice")
    page.keyboard.press("Enter")
    assert page.inner_text("#count") == "1 of 10 done"
    context.close()


def test_progress_belongs_to_one_annotator_and_one_draw(browser, tmp_path):
    """In one browser, whose pages of files share their storage."""
    tasks = tasks_of(population())
    context = browser.new_context()
    page = context.new_page()
    for name, (annotator, fingerprint, count) in {
        "a": ("Ada", PRINT, "0 of 10 done"),
        "b": ("Bo", PRINT, "0 of 10 done"),
        "c": ("Ada", "another", "0 of 10 done"),
        "d": ("Ada", PRINT, "1 of 10 done"),
    }.items():
        file = tmp_path / f"{name}.html"
        file.write_text(labelling_page(tasks, annotator, fingerprint), encoding="utf-8")
        page.goto(file.as_uri())
        assert page.inner_text("#count") == count
        page.keyboard.press("Enter")
    context.close()


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(visit, width):
    seen = visit(tasks_of(population(["a-long-id" * 12, *HOSTILE])), viewport={"width": width, "height": 800})
    beyond = "e => e.scrollWidth - e.clientWidth"
    for _ in range(2):
        assert seen.page.locator("html").evaluate(beyond) == 0
        assert seen.page.locator("main").evaluate(beyond) == 0
        seen.keys("Enter")


def test_five_thousand_tasks(visit):
    one = tasks_of(population())
    many = [one.assign(task=one["task"] + 10 * i, record=one["record"] + f"-{i}") for i in range(500)]
    seen = visit(pd.concat(many))
    assert seen.count() == "0 of 5,000 done"
    seen.keys(*["Enter"] * 20)
    seen.page.get_by_text("20 of 5,000 done").wait_for()
    seen.reload()
    seen.page.get_by_text("20 of 5,000 done").wait_for()
    assert seen.current() == 21


# ---- without a browser
def saved(answers=(), **changed):
    whole = {"version": 1, "fingerprint": PRINT, "annotator": "Ada", "answers": list(answers)}
    return json.dumps(whole | changed)


def answer(**changed):
    whole = {"task": 1, "record": "r0", "same": ["r1"], "different": ["r2", "r3", "r4"], "added": []}
    return whole | {"cannot_tell": False, "note": "", "done": True} | changed


def test_integer_ids_come_back_as_integers():
    tasks = pd.DataFrame({"task": [1, 1], "record": [2**60 + 1, 7], "role": ["drawn", "cluster"]})
    one = answer(record=str(2**60 + 1), same=["7"], different=[], added=["9007199254740993"])
    read = read_answers(saved([one]), tasks, PRINT)
    assert read["record"].tolist() == [2**60 + 1, 7, 9007199254740993]
    assert read["record"].dtype == np.int64 and read["task"].tolist() == [1, 1, 1]
    with pytest.raises(DataError, match="added id 'x' is no integer"):
        read_answers(saved([one | {"added": ["x"]}]), tasks, PRINT)
    page = labelling_page(tasks, "Ada", PRINT)
    assert f'["{2**60 + 1}"]' in page, "a number of JavaScript has 53 bits"


def test_tasks_that_nobody_has_opened_are_blank():
    read = read_answers(saved(), tasks_of(population()), PRINT)
    assert len(read) == 50 and (read[["same", "cannot_tell", "note", "annotator"]] == "").all(axis=None)


def test_a_file_is_read_as_its_text(tmp_path):
    path = tmp_path / "answers.json"
    path.write_text(saved([answer(added=["r9"])]), encoding="utf-8")
    tasks = tasks_of(population())
    read = read_answers(path, tasks, PRINT)
    pd.testing.assert_frame_equal(read, read_answers(path.read_text(encoding="utf-8"), tasks, PRINT))
    assert read.iloc[5][["task", "record", "role", "same"]].tolist() == [1, "r9", "added", "y"]
    assert read["task"].is_monotonic_increasing


@pytest.mark.parametrize(("text", "said"), [
    ("answers.json", "cannot read the answers.*a file needs its Path"),
    (Path("none.json"), r"cannot read .*none\.json"),
    ("[]", "cannot read the answers.*: it is list, and no object"),
    ("{}", "no file of answers"),
    (saved(version=2), "version 2; this erbayes reads 1"),
    (saved(fingerprint="x"), "another draw or another prediction.*'x'"),
    (saved(annotator=None), "names no annotator"),
    (saved([7]), "answer 1 is int"),
    (saved([{"task": 1}]), "answer 1 has no 'record', 'same'"),
    (saved([answer(same="r1")]), "'same' is 'r1', not texts"),
    (saved([answer(same=[1])]), r"'same' is \[1\], not texts"),
    (saved([answer(cannot_tell=1)]), "'cannot_tell' is 1, not bool"),
    (saved([answer(task="1")]), "'task' is '1', not int"),
    (saved([answer(task=11)]), "task 11 of record 'r0' is not among the 10 tasks"),
    (saved([answer(record="r6")]), "task 1 of record 'r6' is not among"),
    (saved([answer(), answer()]), "task 1 is answered twice"),
    (saved([answer(same=["r1", "r2"])]), "more than one answer about records 'r2'"),
    (saved([answer(different=["r2", "r2", "r3", "r4"])]), "more than one answer about records 'r2'"),
    (saved([answer(same=["r1", "r99"])]), "task 1 does not show records 'r99'"),
    (saved([answer(same=["r1", "r0"])]), "task 1 does not show records 'r0'"),
    (saved([answer(different=["r2", "r3"], added=["r4"])]), "shows records 'r4', which cannot be added"),
    (saved([answer(added=["r0"])]), "shows records 'r0', which cannot be added"),
    (saved([answer(different=["r2"])]), "1 tasks are said to be done and have no answers about 2 records"),
])  # fmt: skip
def test_other_answers_are_refused(text, said):
    with pytest.raises(DataError, match=said):
        read_answers(text, tasks_of(population()), PRINT)


@pytest.mark.parametrize(("change", "said"), [
    (lambda t: t.drop(columns="role"), "no column 'role'"),
    (lambda t: t.iloc[:0], "no tasks"),
    (lambda t: t.assign(task=t["task"].astype(str)), "must be integers"),
    (lambda t: t.assign(role=t["role"].replace("cluster", "home")), "10 rows .* such as 'home'"),
    (lambda t: t[t["role"] != "drawn"], "10 tasks do not have one drawn record each, such as 1, 2.*, which have 0, 0"),
    (lambda t: pd.concat([t, t.iloc[[1, 1]]]), "2 rows repeat a record of their task, such as 'r1', 'r1', in tasks 1, 1"),
    (lambda t: t.assign(record=t["record"].where(t["record"] != "r1")), "1 of 50 are missing"),
    (lambda t: t.assign(same="y"), "hold answers in 50 cells"),
    (lambda t: pd.concat([t, t[["name"]]], axis=1), "columns 'name' twice"),
    (lambda t: t.to_dict(), "tasks are a DataFrame"),
    (lambda t: t.assign(role=t["role"].where(t["role"].eq("drawn") | (t.index == 1), "shown")),
        "1 rows of the tasks tell a role, such as 'cluster', and others"),
])  # fmt: skip
def test_other_tables_of_tasks_are_refused(change, said):
    with pytest.raises(DataError, match=said):
        labelling_page(change(tasks_of(population())), "Ada", PRINT)


def test_an_annotator_needs_a_name():
    with pytest.raises(DataError, match="the annotator has no text"):
        labelling_page(tasks_of(population()), " ", PRINT)
    with pytest.raises(DataError, match="the fingerprint is a str, not int"):
        labelling_page(tasks_of(population()), "Ada", 7)


def test_the_page_needs_no_other_file():
    page = labelling_page(tasks_of(population(HOSTILE)), "Ada <b>", PRINT, title="<title> & {data}")
    assert "://" not in page and "<link" not in page and " src=" not in page.split('id="data"')[0]
    assert "<title>&lt;title&gt; &amp; {data}</title>" in page
    (data,) = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert not set("<>&\u2028") & set(data) and json.loads(data)["file"] == "answers-Ada-b.json"
    assert Path(json.loads(data)["file"]).name == json.loads(data)["file"]


# ---- blind pages, controls, and the time of an answer
def blinded(table):
    """The ten tasks with one role for all records but the drawn one."""
    tasks = tasks_of(table)
    return tasks.assign(role=tasks["role"].where(tasks["role"] == "drawn", "shown"))


def test_enter_alone_answers_nothing_in_a_blind_page(visit, tmp_path):
    tasks = blinded(population())
    seen = visit(tasks)
    seen.keys(*["Enter"] * 100)
    assert (seen.current(), seen.count()) == (1, "0 of 10 done")
    assert seen.page.locator(".usual, tr.same, tr.other").count() == 0
    assert seen.page.inner_text("#sum") == "4 of 4 without an answer"
    for left, key in zip((3, 2, 1), "yyn", strict=True):
        seen.keys(key, "Enter")
        assert seen.page.inner_text("#sum") == f"{left} of 4 without an answer"
        assert seen.page.locator("tr.here .name").inner_text() == f"r{5 - left}"
    seen.page.click("#done")
    assert seen.count() == "0 of 10 done"
    seen.keys("n")
    assert seen.page.inner_text("#sum") == "2 same, 2 different"
    seen.keys("Enter")
    assert (seen.current(), seen.count()) == (2, "1 of 10 done")
    seen.keys("y", "?")
    assert (seen.current(), seen.count()) == (3, "2 of 10 done")
    seen.reload()
    assert (seen.current(), seen.count()) == (3, "2 of 10 done")
    seen.save(tmp_path / "answers.json")
    answers = read_answers(tmp_path / "answers.json", tasks, PRINT)
    assert answers["same"].head(5).tolist() == ["y", "y", "y", "n", "n"] and not seen.complaints


def test_enter_in_a_blind_page_leads_out_of_a_search(visit):
    seen = visit(blinded(population()))
    seen.keys("/")
    seen.page.keyboard.type("ann 3")
    seen.keys("Enter", "y", "Escape", "/")
    seen.page.keyboard.type("ann 3")
    seen.page.click("#done")
    assert seen.page.locator("tr.here .name").inner_text() == "r1"
    assert seen.page.locator("tr.record:visible:not(.drawn)").count() == 4


def test_a_blind_page_does_not_tell_what_is_of_the_cluster(visit):
    seen = visit(blinded(population()))
    text = seen.page.inner_text("body") + seen.page.inner_text("#data") + seen.page.inner_text("#said")
    assert "Records to compare" in text and not re.search("cluster|candidate|predict", text)


def test_a_control_looks_like_a_record_of_the_cluster(visit):
    tasks = tasks_of(population())
    tasks.loc[[1, 7], "role"] = ["control", "candidate"]
    seen = visit(tasks)
    assert seen.page.locator("#cluster .name").all_inner_texts() == ["r1"]
    assert '"control"' not in seen.page.locator("html").evaluate("e => e.outerHTML").split("<script>")[0]


def test_a_control_of_another_drawn_cluster_settles_nothing_there(visit):
    """The stranger d1 in the first task has a task of its own, which stays open if it is accepted."""
    stranger = pd.DataFrame({"task": [1], "record": ["d1"], "role": ["control"]})
    tasks = pd.concat([clusters(), stranger]).sort_values("task", kind="stable")
    seen = visit(tasks, settling=HOMES)
    seen.keys("Enter")
    assert (seen.current(), seen.count()) == (5, "4 of 5 done")
    seen.keys("Enter")
    assert seen.count() == "5 of 5 done"


def test_the_time_of_an_answer_is_that_at_work(visit, tmp_path):
    """A pause counts for a minute, time goes to the task that is shown, and a reload keeps it."""
    tasks = tasks_of(population())
    seen = visit(tasks)
    seen.page.clock.install(time=0)
    # The clock stands still, so that only `run_for` adds time, however slow the machine is.
    seen.page.clock.pause_at(1000)
    seen.reload()
    for task, pauses in enumerate(([5], [10, 10], [3600], [40, 40]), 1):
        for seconds in pauses:
            assert seen.current() == task
            seen.page.clock.run_for(1000 * seconds)
            seen.keys("j")
        seen.keys("Enter")
    seen.reload()
    seen.keys("ArrowLeft")
    seen.page.clock.run_for(7000)
    seen.keys("j", "n")
    seen.save(tmp_path / "answers.json")
    answers = read_answers(tmp_path / "answers.json", tasks, PRINT)
    drawn = answers[answers["role"] == "drawn"]
    found = drawn["seconds"].tolist()
    assert found[4:] == [""] * 6 and [float(value) for value in found[:4]] == [5, 20, 60, 87]
    other = visit(tasks, file="other.html")
    other.load(tmp_path / "answers.json", "text=Loaded answers")
    other.save(tmp_path / "again.json")
    again = read_answers(tmp_path / "again.json", tasks, PRINT)
    pd.testing.assert_series_equal(again["seconds"], answers["seconds"])


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), "5", True, None, [1], 10**400])
def test_times_that_no_page_writes_are_refused(seconds):
    with pytest.raises(DataError, match=r"'seconds' is .*, not a number from 0 to 100,000,000"):
        read_answers(saved([answer(seconds=seconds)]), tasks_of(population()), PRINT)


def test_answers_without_a_time_are_read():
    read = read_answers(saved([answer()]), tasks_of(population()), PRINT)
    assert read["seconds"].tolist() == [""] * 50
    read = read_answers(saved([answer(seconds=2.5)]), tasks_of(population()), PRINT)
    assert read["seconds"].tolist() == [2.5, *[""] * 49]


# ---- what is in sight
def strangers(columns=8):
    """Forty tasks: a cluster of the same birthday and name with a slip, five candidates, and wide columns. Of
    the candidates the fourth has all but a letter of the drawn record, and the second its name alone."""
    rng = np.random.default_rng(4)
    rows = []
    for task in range(1, 41):
        name, born = f"{chr(96 + task % 23)}{task}", f"19{task + 10}-0{task % 9 + 1}"
        number = f"{100_000 + task}"
        shown = [("drawn", name, born, number), ("cluster", name, born, number[:-1] + "x")]
        for j, x in enumerate(str(1_000_000 * j + 7 * task) for j in range(1, 6)):
            own = (born, number) if j == 3 else (x[::-1], x)
            shown.append(("candidate", name if j == 1 else f"z{j}{x}", *own))
        for j, (role, *values) in enumerate(shown):
            rows.append((task, f"r{task}-{j}", role, f"{rng.integers(1e9)}", "Leeds", *values))
    table = pd.DataFrame(rows, columns=["task", "record", "role", "row", "town", "name", "born", "number"])
    wide = {f"remark{i}": "unremarkable" + "-" * 20 for i in range(columns)}
    return table.assign(**wide)[["task", "record", "role", "row", "town", *wide, "name", "born", "number"]]


def right_of(seen, selector):
    """The right edge of an element, beyond that of the window."""
    edge = "e => e.getBoundingClientRect().right - document.documentElement.clientWidth"
    return seen.page.locator(selector).evaluate(edge)


@pytest.mark.parametrize("width", [390, 1280])
def test_columns_that_decide_are_in_sight(visit, width):
    """They come first, before columns that always or never agree, and ids of records come last."""
    seen = visit(strangers(), viewport={"width": width, "height": 800})
    heads = seen.page.locator("#top th[scope=col]").all_text_contents()
    assert heads[0] == "Your answer" and heads[-1] == "Record"
    assert set(heads[1:4]) == {"name", "born", "number"}
    assert heads[4:6] == ["row", "town"], "the rest as in the table"
    for column in (2, 3, 4):
        for row in ("#top tr.drawn", "#candidates tr.record:nth-child(2)"):
            assert right_of(seen, f"{row} > :nth-child({column})") <= 0
    assert seen.page.locator("tr.record > :last-child.name").count() == 7


def test_the_list_of_tasks_makes_room_unless_somebody_opens_it(visit):
    window = {"viewport": {"width": 1280, "height": 800}}
    assert visit(strangers(columns=0), **window).page.is_visible("#list")
    seen = visit(strangers(columns=12), **window)
    assert not seen.page.is_visible("#list")
    assert re.fullmatch(r"\d more columns to the right, which tell less", seen.page.inner_text("#wide"))
    seen.keys("t", "Enter")
    assert seen.page.is_visible("#list")


def test_the_table_stands_still_under_the_keys(visit):
    """Also where it is wider than the window: the browser would move a row to its left end."""
    seen = visit(strangers(columns=12), viewport={"width": 1280, "height": 420})
    left = "document.getElementById('main').scrollLeft = {}"
    for at in (0, 60):
        seen.page.evaluate(left.format(at))
        for key in "jjjjkkyjj":
            seen.keys(key)
            assert seen.page.evaluate("document.getElementById('main').scrollLeft") == at
        assert seen.page.evaluate("document.getElementById('main').scrollTop") > 0, "rows come into sight"


def names(seen, selector):
    return [name.rsplit("-")[-1] for name in seen.page.locator(f"{selector} .name:visible").all_inner_texts()]


def test_likely_candidates_come_first_and_hopeless_ones_are_folded(visit, tmp_path):
    tasks = strangers(columns=0)
    seen = visit(tasks)
    assert names(seen, "#candidates") == ["5", "3"]
    fold = "Show 3 candidates with next to nothing in common with the record"
    assert seen.page.inner_text("#fold") == fold
    seen.keys("j", "j", "j", "j", "j", "j")
    assert seen.page.locator("tr.here .name").inner_text() == "r1-3", "keys pass what is folded"
    assert seen.page.inner_text("#sum") == "1 same, 5 different"
    seen.page.click("#fold")
    assert names(seen, "#candidates") == ["5", "3", "2", "4", "6"]
    assert seen.page.get_attribute("#fold", "aria-expanded") == "true"
    seen.page.click("tr:has-text('r1-4') >> text=Same")
    seen.page.click("#fold")
    assert names(seen, "#candidates") == ["5", "3", "4"], "what is the same stays in sight"
    seen.keys("/")
    seen.page.keyboard.type("z0")
    assert names(seen, "#candidates") == ["2"], "a search finds what is folded"
    seen.keys("Escape")
    seen.page.click("#fold")
    seen.page.click("#done")
    seen.save(tmp_path / "answers.json")
    answers = read_answers(tmp_path / "answers.json", tasks, PRINT)
    assert answers["same"].head(7).tolist() == ["y", "y", "n", "n", "y", "n", "n"]
    assert names(seen, "#candidates") == ["5", "3"], "the next task starts folded"


def test_a_blind_page_folds_and_orders_nothing(visit):
    tasks = strangers(columns=0)
    seen = visit(tasks.assign(role=tasks["role"].where(tasks["role"] == "drawn", "shown")))
    assert names(seen, "#cluster") == list("123456")
    assert not seen.page.locator("#fold").count()


@pytest.mark.parametrize(("number", "folded"), [("10000", 0), ("99999", 1)])
def test_what_one_record_in_ten_shares_is_no_sign_of_a_match(visit, number, folded):
    """Two records share the number with chance .3² or .33², just under and just over a tenth."""
    share = {"10000": 0.3, "99999": 0.33}[number]
    rows = [(t, f"r{t}-{j}", "drawn" if j == 0 else "candidate") for t in range(200) for j in (0, 1)]
    table = pd.DataFrame(rows, columns=["task", "record", "role"])
    many = int(share * 400)
    table["number"] = [number if i < many else f"q{i}" for i in range(400)]
    for column in range(3):
        table[f"other{column}"] = [f"{'abcdefghij'[i % 10]}{i}{'xyzuvwrst'[i % 9]}" for i in range(400)]
    seen = visit(table)
    assert seen.page.locator("#candidates tr.record:visible").count() == 1 - folded


@pytest.mark.parametrize(("letters", "folded"), [(13, 0), (12, 1)])
def test_if_attributes_tell_little_a_quarter_of_it_is_a_sign_of_a_match(visit, letters, folded):
    """One name in common up to a letter: (13/20)³ is above a quarter, and (12/20)³ below."""
    name = "abcdefghijklmnopqrst"
    rows = [(1, "a", "drawn", name), (1, "b", "candidate", name[:letters] + "#" * (20 - letters))]
    seen = visit(pd.DataFrame(rows, columns=["task", "record", "role", "name"]))
    assert seen.page.locator("#candidates tr.record:visible").count() == 1 - folded


def test_the_page_says_how_to_find_a_record_that_it_does_not_show(visit):
    seen = visit(tasks_of(population()))
    assert seen.page.is_visible("#how")
    assert "Look in your database for further records" in seen.page.inner_text("#how")
    assert "Search in this list" in seen.page.inner_text(".ask")


def test_pairs_stand_side_by_side_and_keep_their_answers_apart(browser, tmp_path):
    """A record of two pairs has an answer in each, whatever the other is."""
    tasks = pd.DataFrame({"task": [1, 1, 2, 2], "record": list("abac"), "name": list("xyxz")})
    tasks.insert(2, "role", ["drawn", "shown"] * 2)
    file = tmp_path / "pairs.html"
    file.write_text(labelling_page(tasks, "A", "f", pairs=True), encoding="utf-8")
    visit = Visit(browser, file, viewport={"width": 1100, "height": 700})
    boxes = [visit.page.locator(f"tr.{which}").bounding_box() for which in ("drawn", "record:not(.drawn)")]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    assert not visit.page.is_visible("#form")
    keys = visit.page.inner_text(".keys")
    assert "cannot tell" in keys and "search" not in keys and "add an id" not in keys
    visit.keys("/", "a", "y", "Enter")  # the first two of which do nothing
    visit.reload()
    assert visit.count() == "1 of 2 done"
    visit.keys("n", "Enter")
    assert visit.count() == "2 of 2 done"
    saved = tmp_path / "answers.json"
    visit.save(saved)
    assert read_answers(saved, tasks, "f")["same"].tolist() == ["y", "y", "y", "n"] and not visit.complaints
