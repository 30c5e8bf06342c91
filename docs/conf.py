"""The documentation site: `make docs`, or

    sphinx-build -W --keep-going -c docs . build/docs

The source is the whole repository, so that links between README, docs and notebooks hold on the site and in
the repository alike. Notebooks are shown with the outputs that are stored in them.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
project = "erbayes"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "notebooks/*.ipynb",
    "benchmarks/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = ["**/.*"]
nb_execution_mode = "off"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
suppress_warnings = ["ref.python"]  # a parameter called units is not a link to Sample.units

html_theme = "furo"
html_title = "erbayes"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_extra_path = ["root"]  # index.html, which leads to docs/index.html
html_theme_options = {"navigation_with_keys": True}
html_show_copyright = False


def plain_text(app, what, name, obj, options, lines):
    """|T| in a docstring is a number of links and *.csv some files, not markup of reStructuredText."""
    lines[:] = [re.sub(r"(?<!\\)\||\*(?=\.\w)", r"\\\g<0>", line) for line in lines]


def setup(app):
    app.connect("autodoc-process-docstring", plain_text, priority=400)
