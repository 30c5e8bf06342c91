"""What is published: the source distribution can test itself, the wheel holds the package alone."""

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
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "build", "dist", "__pycache__", "*.egg-info", ".*_cache")
PARTS = ("tests", "docs", "benchmarks", "notebooks", "erbayes")


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the sdist and the wheel, built from a copy, which setuptools may write to."""
    pytest.importorskip("setuptools")
    source, out = tmp_path_factory.mktemp("source") / "erbayes", tmp_path_factory.mktemp("built")
    shutil.copytree(ROOT, source, ignore=LEFT_OUT)
    build = (
        f"from setuptools import build_meta as b; b.build_sdist({str(out)!r}); b.build_wheel({str(out)!r})"
    )
    done = subprocess.run([sys.executable, "-c", build], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out


def files(folder):
    return {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc" and "__pycache__" not in path.parts
    }


def test_the_source_distribution_has_what_tests_read(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        held = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    for part in PARTS:
        assert not files(part) - held
    assert {"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "pyproject.toml"} <= held


def test_the_wheel_holds_the_package_and_its_data(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert held == files("erbayes")


def test_only_extras_bring_large_packages():
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)["project"]
    needed = {requirement.split(">=")[0] for requirement in project["dependencies"]}
    assert needed == {"numpy", "scipy", "jinja2", "joblib", "pandas", "pyarrow", "rich", "typer"}
