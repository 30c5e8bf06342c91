"""Notebooks show what their sentences say, here and elsewhere, and use what the API reference lists. `make
notebooks` runs each with other seeds of chance, on a processor without AVX as `make kernel` does."""

import ast
import copy
import json
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from notebook_prose import SEED, find_unshown, is_prose

ROOT = Path(__file__).parents[1]
PATHS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib", "er_evaluation")
LACKING = [name for name in NEEDED if find_spec(name) is None]
PUBLIC = set(re.findall(r"\berbayes(?:\.\w+)+", (ROOT / "docs/guide/api.md").read_text(encoding="utf-8")))
ELSEWHERE = {"OPENBLAS_CORETYPE": "Prescott", "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4"}
every_notebook = pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in PATHS])
runs = pytest.mark.skipif(bool(LACKING), reason=f"notebooks need {', '.join(LACKING)}")


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def read_code(notebook):
    return ["".join(cell["source"]) for cell in notebook["cells"] if not is_prose(cell)]


def run_elsewhere(notebook, monkeypatch):
    """Return the notebook as it comes out with other seeds on another processor."""
    import nbclient
    import nbformat

    for name, value in ELSEWHERE.items():
        monkeypatch.setenv(name, value)
    other = nbformat.from_dict(copy.deepcopy(notebook))
    for cell in other.cells:
        source = "".join(cell.source)
        cell.source = source if is_prose(cell) else SEED.sub(lambda m: f"{m[1]} = {int(m[2]) + 100}", source)
    where = {"metadata": {"path": str(ROOT)}}
    return nbclient.NotebookClient(other, timeout=1200, kernel_name="python3", resources=where).execute()


@pytest.mark.notebook
@runs
@every_notebook
def test_sentences_hold_elsewhere(path, monkeypatch):
    notebook = read(path)
    assert find_unshown(notebook, path.parent, run_elsewhere(notebook, monkeypatch)) == []


@every_notebook
def test_numbers_of_sentences_are_shown(path):
    assert find_unshown(read(path), path.parent) == []


@every_notebook
def test_outputs_are_whole_and_of_no_machine(path):
    cells = [cell for cell in read(path)["cells"] if not is_prose(cell)]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [o for o in outputs if o["output_type"] == "error" or o.get("name") == "stderr"]
    shown = json.dumps(
        [o.get("text", {k: v for k, v in o.get("data", {}).items() if k[:4] == "text"}) for o in outputs]
    )
    assert not re.findall(r"/(?:home|tmp|work|root|Users|usr)/|site-packages|\d+%\||\bit/s\b|<frozen", shown)


@every_notebook
def test_seeds_are_named(path):
    """A fit that takes other random numbers changes no sample, and `make notebooks` finds the seeds of fits."""
    code = "\n".join(read_code(read(path)))
    assert not re.findall(r"(?:default_rng|RandomState)\(\d|(?:rng|seed|random_state)=\d", code)


@every_notebook
def test_names_are_those_of_the_reference(path):
    names, code = {}, ast.parse("\n".join(read_code(read(path))))
    for node in ast.walk(code):
        if isinstance(node, ast.Import):
            names |= {a.asname or "erbayes": a.name for a in node.names if a.name.split(".")[0] == "erbayes"}
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "erbayes":
            names |= {a.asname or a.name: f"{node.module}.{a.name}" for a in node.names}
    texts = {ast.unparse(node) for node in ast.walk(code) if isinstance(node, ast.Attribute)}
    used = {
        *names.values(),
        *(f"{names[t.split('.')[0]]}.{t.split('.', 1)[1]}" for t in texts if t.split(".")[0] in names),
    }
    paths = [name for name in used if re.fullmatch(r"[\w.]+", name)]
    assert not [
        a for a in paths if not any(f"{b}.".startswith(f"{a}.") or a.startswith(f"{b}.") for b in PUBLIC)
    ]


PROSE = "Of 200 draws, by chance 123 hit, and 20 % are red."
CODE = (
    "FIT_SEED = 1  # of chance\nimport random\nprint(200, 0.204, random.Random(FIT_SEED).randint(0, 10**9))"
)
TINY = {
    "nbformat": 4,
    "nbformat_minor": 5,
    "metadata": {},
    "cells": [
        {"cell_type": "markdown", "id": "a", "metadata": {}, "source": PROSE},
        {
            **{"cell_type": "code", "id": "b", "metadata": {}, "execution_count": 1, "source": CODE},
            "outputs": [{"output_type": "stream", "name": "stdout", "text": "200 0.204 123\n"}],
        },
    ],
}


def test_a_number_that_nothing_shows_is_found():
    wrong = copy.deepcopy(TINY)
    wrong["cells"][0]["source"] += " Five fail."
    assert find_unshown(TINY, ROOT) == [] and find_unshown(wrong, ROOT) == ["Five in: Five fail."]


@pytest.mark.notebook
@runs
def test_a_sentence_that_chance_made_is_found(monkeypatch):
    (found,) = find_unshown(TINY, ROOT, run_elsewhere(TINY, monkeypatch))
    assert found.startswith("123 in: ")
