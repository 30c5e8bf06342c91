"""Every notebook runs from top to bottom, by `make notebooks`."""

from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))
NEEDED = ("nbclient", "nbformat", "ipykernel", "matplotlib", "er_evaluation")
LACKING = [name for name in NEEDED if find_spec(name) is None]


@pytest.mark.notebook
@pytest.mark.skipif(bool(LACKING), reason=f"notebooks need {', '.join(LACKING)}")
@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in NOTEBOOKS])
def test_runs(path):
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(ROOT)}}
    nbclient.NotebookClient(notebook, timeout=1200, kernel_name="python3", resources=where).execute()
