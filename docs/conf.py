"""The documentation site: `make docs`, or

    sphinx-build -W --keep-going -c docs . build/docs

The source is the whole repository, so that links between README, docs and notebooks hold on the site and in
the repository alike. Notebooks are shown with the outputs that are stored in them.
"""

import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.utils.math.latex2mathml import tex2mathml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
project = "erbayes"
release = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
root_doc = "docs/index"
include_patterns = [
    "docs/**.md",
    "docs/guide/reference/*.rst",  # a page for each name in docs/guide/api.md, made by autosummary
    "notebooks/**.ipynb",
    "benchmarks/*.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
]
exclude_patterns = ["**/.*"]
nb_execution_mode = "off"
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_dmath_double_inline = True
html_math_renderer = "mathml"  # browsers draw it without scripts

templates_path = [str(ROOT / "docs" / "templates")]
api = (ROOT / "docs" / "guide" / "api.md").read_text(encoding="utf-8")
listed = re.findall(r"^   (erbayes\.[\w.]+)$", api, re.M)
classes = {name.casefold() for name in listed if name.casefold() != name}
# Jackknife and jackknife would be one file where names of files ignore case.
autosummary_filename_map = {name: f"{name}-function" for name in listed if name in classes}
pages = {autosummary_filename_map.get(name, name) for name in listed}
for page in (ROOT / "docs" / "guide" / "reference").glob("*.rst"):
    if page.stem not in pages:
        page.unlink()  # of a name that was listed once

default_role = "py:obj"  # a name in a docstring is a link if it has a page
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


def inline_formula(writer, node):
    writer.body.append(tex2mathml(node.astext()))
    raise nodes.SkipNode


def formula(writer, node):
    writer.body.append(f'<div class="formula">{tex2mathml(node.astext(), as_block=True)}</div>')
    raise nodes.SkipNode


class MetricsTable(Directive):
    """The metrics of a group of `erbayes.metrics.Group`, in words and as formulas."""

    required_arguments = 1

    def run(self):
        from erbayes.metrics import ALL
        from erbayes.metrics.definitions import OTHERS, Group

        group = Group[self.arguments[0]]
        rows = [(m.name, m.meaning, m.source) for m in (*ALL, *OTHERS) if m.group is group]
        return [table_of(("metric", "in words", "formula and source"), (3, 6, 4), rows)]


class ContractTable(Directive):
    """Data or quantities of the parts of a size model, as `erbayes.bayes.contract` has them."""

    required_arguments = 1

    def run(self):
        from erbayes.bayes import contract

        entries = getattr(contract, self.arguments[0])
        if self.arguments[0] == "RETURNED":
            # a size family returns weights, of which the model makes this quantity
            places = [(place, each) for place, each in entries.items() if place != "sizes"]
            entries = {f"{place}: {k}": q for place, each in places for k, q in each.items()}
        rows = [
            (name, ", ".join(e.dims) or "one number", e.meaning.replace("`", ""))
            for name, e in entries.items()
        ]
        return [table_of(("name", "dimensions", "meaning"), (3, 3, 7), rows)]


class OptionsTable(Directive):
    """The options of a topic of `erbayes help`, after what they mean together, or of one command."""

    required_arguments = 1

    def run(self):
        import typer

        from erbayes.cli import app
        from erbayes.cli.options import TOPICS, slug

        (name,) = self.arguments
        commands = typer.main.get_command(app).commands
        inside = commands.values() if name in TOPICS else [commands[name]]
        context, rows = typer.Context(commands["estimate"], info_name="erbayes"), {}
        for option in (p for command in inside for p in command.params if p.name != "help"):
            if slug(option) == name or (name not in TOPICS and slug(option) not in TOPICS):
                option.hidden = False  # help shows an option that is used rarely only to those who ask
                rows.setdefault(option.name, option.get_help_record(context))
        told = [paragraph_of(TOPICS[name])] if name in TOPICS else []
        return [*told, table_of(("option", "meaning"), (3, 7), rows.values())]


def table_of(head, widths, rows):
    """A table whose first column is code."""
    body = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in widths), cols=len(widths))
    body += nodes.thead("", row_of(*head))
    body += nodes.tbody("", *(row_of(nodes.literal("", name), *rest) for name, *rest in rows))
    return nodes.table("", body, classes=["generated"])


def row_of(*cells):
    told = (paragraph_of(cell) if isinstance(cell, str) else nodes.paragraph("", "", cell) for cell in cells)
    return nodes.row("", *(nodes.entry("", each) for each in told))


def paragraph_of(text):
    """A paragraph whose options are code, because typography would make one dash of two."""
    pieces = re.split(r"(?<![\w-])(--[a-z][a-z-]*)", text)
    kinds = (nodes.Text(piece) if i % 2 == 0 else nodes.literal("", piece) for i, piece in enumerate(pieces))
    return nodes.paragraph("", "", *kinds)


def setup(app):
    app.add_directive("metrics", MetricsTable)
    app.add_directive("options", OptionsTable)
    app.add_directive("contract", ContractTable)
    app.add_html_math_renderer("mathml", (inline_formula, None), (formula, None))
    app.connect("autodoc-process-docstring", plain_text, priority=400)
