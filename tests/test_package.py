"""What is published: source distribution and wheel hold the package alone."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.lowest
ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", "*.egg-info", ".*_cache")
TABLES = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = TABLES["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist, built from a copy, which setuptools may write to, and the wheel built from it."""
    pytest.importorskip("setuptools")
    source, out = tmp_path_factory.mktemp("source") / "erbayes", tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    build("sdist", source, out)
    with tarfile.open(*out.glob("*.tar.gz")) as archive:
        archive.extractall(source.parent, filter="data")
    build("wheel", *source.parent.glob("erbayes-*"), out)
    return out


def build(kind, source, out):
    code = f"from setuptools import build_meta; build_meta.build_{kind}({str(out)!r})"
    call = [sys.executable, "-c", code]
    done = subprocess.run(call, cwd=source, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def files(folder):
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }


def test_the_data_of_the_package_are_listed():
    data = TABLES["tool"]["setuptools"]["package-data"]["erbayes"]
    assert {file for file in files("erbayes") if not file.endswith(".py")} == {
        f"erbayes/{name}" for name in data
    }


@pytest.mark.slow
def test_the_source_distribution_holds_the_package_alone(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert files("erbayes") <= held
    assert {name.split("/")[0] for name in held if "/" in name} == {"erbayes", "erbayes.egg-info"}
    assert {*"README.md CHANGELOG.md CITATION.cff LICENSE pyproject.toml".split()} <= held


OPTIONAL = "arviz arviz_stats duckdb matplotlib openpyxl polars pymc pyspark rapidfuzz"
WALK = """
import sys
sys.modules |= dict.fromkeys(OPTIONAL.split())  # as if they were not installed
import erbayes as eb
from erbayes.cli import app
example = eb.datasets.people()
example.write(".")
assert eb.__file__.startswith(sys.path[0]), eb.__file__
assert eb.estimate(example.prediction, example.labels, eb.UniformRecords(example.drawn)).sentence()
for command in COMMANDS:
    app(command.split(), standalone_mode=False)
for missing in (lambda: eb.bayes, lambda: eb.estimate(example.prediction, example.labels,
        eb.UniformRecords(example.drawn), engine="bootstrap").tree):
    try:
        missing()
    except (ModuleNotFoundError, eb.DataError) as error:
        assert "pip install 'erbayes[bayes]'" in str(error), error
    else:
        raise AssertionError
"""
COMMANDS = [
    "--help",
    "estimate clusters.csv labels.csv --design uniform-records --drawn drawn.csv",
    "draw clusters.csv --design uniform-records --n 9 --seed 1 --output to-label",
    "metrics",
]


@pytest.mark.slow
def test_the_wheel_works_without_any_extra(built, tmp_path):
    """It holds the package and its data alone, and where an extra is missing, a message names it."""
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        assert {name for name in archive.namelist() if ".dist-info/" not in name} == files("erbayes")
        archive.extractall(tmp_path / "wheel")
    names = f"OPTIONAL = {OPTIONAL!r}\nCOMMANDS = {COMMANDS!r}\n"
    start = f"import sys; sys.path.insert(0, {str(tmp_path / 'wheel')!r})\n"
    call = [sys.executable, "-c", start + names + WALK]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


def test_the_citation_has_the_version_and_date_of_the_changelog():
    """`pyproject.toml` has the version, which the package asks of its metadata."""
    title = f"## {PROJECT['version']} - "
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    (date,) = re.findall(rf"^{re.escape(title)}(\d{{4}}-\d\d-\d\d)$", changelog, re.M)
    citation = (ROOT / "CITATION.cff").read_text("utf-8").splitlines()
    assert {f"version: {PROJECT['version']}", f"date-released: {date}"} <= {*citation}


def test_only_extras_bring_large_packages():
    needed = {requirement.split(">=")[0] for requirement in PROJECT["dependencies"]}
    assert needed == {"numpy", "scipy", "jinja2", "joblib", "pandas", "pyarrow", "rich", "typer"}
