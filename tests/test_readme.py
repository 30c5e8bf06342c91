"""The README does what it says: its code prints its output, its commands run, its links leave the page."""

import ast
import io
import re
import shlex
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shell import done

import erbayes as eb
from erbayes.datasets import people
from erbayes.study.populations import Population

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def block(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S)


def commands():
    """The arguments of each call of erbayes."""
    calls = re.findall(r"^erbayes (.*)$", "".join(block("sh")).replace("\\\n", ""), re.M)
    return [shlex.split(call, comments=True) for call in calls]


def lines(text):
    return [line.rstrip() for line in text.strip().splitlines()]


def test_the_code_prints_the_output_beside_it():
    (code, _), (output,) = block("python"), block("text")
    assert len([line for line in lines(code) if line]) == 8 and run(code, {}) == in_own_words(lines(output))


def run(code, names):
    """The lines that code prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), names)
    return lines(printed.getvalue())


def in_own_words(printed):
    """Text is of type str from pandas 3 on, and of type object before."""
    own = str(pd.Series(["a"]).dtype)
    return [line.replace("dtype: str", f"dtype: {own}") for line in printed]


def test_the_start_of_the_documentation_shows_the_same():
    page = (Path(__file__).parents[1] / "docs/index.md").read_text(encoding="utf-8")
    assert f"```python\n{block('python')[0]}```\n\n```text\n{block('text')[0]}```\n" in page


def test_three_more_lines_give_a_sentence_and_a_picture():
    code, more = block("python")
    names = {}
    run(code, names)
    sentence, picture, side_by_side = lines(more)
    quoted = sentence.split("  # ")[1].removesuffix(" ...")
    assert run(sentence, names)[0].startswith(quoted) and eval(picture, names).figure.axes
    call = ast.parse(side_by_side, mode="eval").body
    assert ast.unparse(call.func) == "eb.side_by_side"
    assert isinstance(eval(ast.unparse(call.args[0]), names), eb.Sample)


@pytest.mark.slow
def test_the_last_line_sets_three_engines_side_by_side():
    code, more = block("python")
    names = {}
    run(code, names)
    found = eval(lines(more)[-1], names).table()
    assert list(dict.fromkeys(found["method"])) == ["closed form", "bootstrap", "size model"]


def test_the_figures_around_the_code():
    example = people()
    population = Population(example.prediction, example.truth)
    units = eb.measure(example.prediction, example.labels)
    found = eb.estimate(example.prediction, example.labels, eb.UniformRecords(example.drawn)).table()
    assert f"a precision of {eb.engine.P_naive(units):.3f} where the truth is".replace("0.", ".") in README
    assert f"where the truth is {population.value('pairwise-precision'):.3f}".replace("0.", ".") in README
    for name, sentence in {
        "pairwise-precision": "that the matcher made, {0:.0f} % are right\n({1:.0f} to {2:.0f} %)",
        "pairwise-recall": "It finds {0:.0f} % of the true links ({1:.0f} to {2:.0f} %)",
    }.items():
        percent = 100 * found.loc[name, ["estimate", "lower", "upper"]]
        assert sentence.format(*percent) in README
    truth = [population.value(name) for name in found.index]
    assert ((found.lower <= truth) & (truth <= found.upper)).all()
    assert f"{len(example.prediction):,} records that a matcher clustered" in README
    assert f"record of their {len(units)} persons was labelled" in README


def test_the_picture_and_the_home_page_have_these_figures():
    example = people()
    population = Population(example.prediction, example.truth)
    naive = eb.engine.P_naive(eb.measure(example.prediction, example.labels))
    found = eb.estimate(example.prediction, example.labels, eb.UniformRecords(example.drawn)).table()
    shown = found.loc["pairwise-precision", ["estimate", "lower", "upper"]]
    text = "{:.3f} ({:.3f} to {:.3f})".format(*shown).replace("0.", ".")
    picture = re.search(r"^```\n(pairwise precision .*?)```$", README, re.M | re.S)[1]
    scale, alone, own, truth = picture.splitlines()
    left, right = scale.index(".70"), scale.rindex("1")

    def column(share):
        return left + round((share - 0.7) / 0.3 * (right - left))

    assert own.endswith(text) and [own.index(mark) for mark in "●├┤"] == [column(x) for x in shown]
    assert alone.endswith(f"{naive:.3f}"[1:]) and alone.index("●") == column(naive)
    true = population.value("pairwise-precision")
    assert truth.endswith(f"{true:.3f}"[1:]) and truth.index("│") == column(true)
    home = " ".join((Path(__file__).parents[1] / "docs/index.md").read_text(encoding="utf-8").split())
    quoted = "{:.0f} % of the links that the matcher made are right ({:.0f} to {:.0f} %)"
    assert quoted.format(*100 * shown) in home and f"would say {100 * naive:.1f} %" in home


def test_the_command_gives_the_same_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    example = people()
    example.write(".")
    shown = done(*commands()[0], "--format", "csv")
    printed = pd.read_csv(io.StringIO(shown.stdout), index_col="metric")
    design = eb.UniformRecords(example.drawn)
    found = eb.estimate(example.prediction, example.labels, design, list(printed.index)).table()
    assert list(printed.index[:2]) == ["pairwise-precision", "pairwise-recall"]
    figures = ["estimate", "lower", "upper"]
    np.testing.assert_allclose(printed[figures], found[figures], rtol=1e-9)


@pytest.mark.slow
def test_the_way_from_a_prediction_to_an_estimate(tmp_path, monkeypatch):
    """Its commands run one after another, once the truth has filled the sheet. Intervals hold the truth."""
    monkeypatch.chdir(tmp_path)
    example = people()
    example.write(".")
    truth = example.truth.astype(str)
    pd.DataFrame({"record": truth.index, "name": "Person"}).to_csv("customers.csv", index=False)
    _, draw, labels, estimate = commands()
    assert (draw[0], labels[0], estimate[0]) == ("draw", "labels", "estimate")
    done(*draw)
    sheet = pd.read_csv("to-label/sheet-A.csv", dtype=str, keep_default_na=False)
    drawn = sheet[sheet["role"] == "drawn"]
    person = dict(zip(drawn["task"], truth[drawn["record"]], strict=True))
    same = truth[sheet["record"]].to_numpy() == sheet["task"].map(person).to_numpy()
    sheet["same"] = np.where(same, "y", "n")
    elsewhere = [
        {"task": task, "record": record, "same": "y"}
        for task, rows in sheet.groupby("task")
        for record in truth.index[truth == person[task]].difference(rows["record"])
    ]
    filled = pd.concat([sheet, pd.DataFrame(elsewhere)]).fillna("")
    filled.to_csv("to-label/sheet-A.csv", index=False)
    shown = done(*labels)
    assert "by 300 of 300 draws" in shown.stdout and "fault" not in shown.stdout
    shown = done(*estimate, "--format", "csv")
    found = pd.read_csv(io.StringIO(shown.stdout), index_col="metric")
    population = Population(example.prediction, example.truth)
    true = [population.value(name) for name in found.index]
    assert ((found["lower"] <= true) & (true <= found["upper"])).all(), found


def test_links_lead_to_a_file_or_to_the_web():
    """The line of CONTRIBUTING that publishes gives those to files an address, as a package index has no files."""
    targets = re.findall(r"\]\(([^)\s]+)", README)
    assert targets
    root = Path(__file__).parents[1]
    assert not [t for t in targets if not (t.startswith("https://") or (root / t).is_file())]


@pytest.mark.parametrize("name", re.findall(r"`(?:eb|erbayes)\.([A-Za-z_.]+)", README))
def test_names_exist(name):
    value = eb
    for part in name.split("."):
        if not hasattr(value, part):
            __import__(f"{value.__name__}.{part}")
        value = getattr(value, part)


def test_designs_of_the_table_exist():
    rows = re.findall(r"^\| [^|]*drawn[^|]*\| `(\w+)[(.][^|]*\| (?:`([\w-]+)`)? ?\|$", README, re.M)
    assert len(rows) == 7
    options = done("estimate", "--help").stdout
    for design, option in rows:
        assert hasattr(eb, design) and option in options
