"""Run the pages of the documentation: their code, their commands and their pictures.

`python docs/pages.py [PAGE ...]` writes into each page what its code prints, and pictures into docs/images.
`tests/test_pages.py` runs the same pages and compares what they print (see `differing_lines`).

- A block ```python is run in a namespace of the page. The next block, if it is ```text, is what it prints.
- A picture that stands right above such a block is the Axes that the block's last line returns.
- A block ```console holds commands, `$ erbayes ...`, each with what it prints below it.
- Blocks of other languages are not run. Neither are blocks of `>>>`, which are doctests.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from decimal import Decimal
from io import StringIO
from itertools import zip_longest
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXAMPLE = HERE / "make_example.py"
PAGES = [
    *(
        HERE / "guide" / f"{name}.md"
        for name in (
            "command-line",
            "matchers",
            "drawing-and-labelling",
            "own-sheets",
            "stopping",
            "domains",
            "thresholds",
            "pairs",
            "how-to",
            "own-numbers",
            "own-study",
            "two-clusterings",
            "cheap-labels",
            "gallery",
        )
    ),
    *(HERE / f"{name}.md" for name in ("index", "heavy-tails", "paper")),
]
"""Pages that are run, each in a folder with the files of the example."""

BLOCK = re.compile(r"^```([^`\n]*)\n(.*?)^```$", re.M | re.S)
"""A block with its language, or with a directive of the site such as `{options}`, which is not run."""
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+\.png)\)\n\n\Z")
NUMBER = re.compile(r"((?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?!\w|\.\d))")
"""A number as text, apart from the digits of names, versions and dates with dots."""
GAP = re.compile(r"[ ─]+")
"""Blanks and rules, which align the columns of tables and so depend on the widths of numbers."""


def printed(code: str, names: dict[str, Any]) -> tuple[str, Any]:
    """Return the printed output of a block of Python, with its last value, and that value."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    value = None
    with redirect_stdout(StringIO()) as out:
        exec(compile(tree, "page", "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "page", "eval"), names)
            if value is not None and not hasattr(value, "figure"):
                print(value)
    return out.getvalue(), value


def answered(console: str) -> str:
    """The commands of a block, each with what it prints."""
    from typer.testing import CliRunner

    from erbayes.cli import app

    shown = []
    for command in re.findall(r"^\$ (?:.*\\\n)*.*$", console, re.M):
        name, *words = shlex.split(command[2:].replace("\\\n", " "))
        if name != "erbayes":
            raise ValueError(f"not a command of erbayes: {command}")
        sys.argv = ["erbayes", *words]
        text = CliRunner().invoke(app, words, terminal_width=100).output
        shown.append(f"{command}\n" + "".join(f"{line.rstrip()}\n" for line in text.splitlines()))
    return "\n".join(shown)


def saved(axes: Any, path: Path) -> None:
    """A small picture in greys."""
    from matplotlib import pyplot
    from PIL import Image

    figure = axes.figure
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
    Image.open(path).convert("L").quantize(16).save(path, optimize=True)


def example() -> dict[str, Any]:
    """Make the files of the example in the current folder."""
    names: dict[str, Any] = {}
    printed(EXAMPLE.read_text(encoding="utf-8"), names)
    return names


def rerun(page: Path, pictures: Path | None = None) -> str:
    """The page with what its code prints now, run in the current folder.

    Pictures are written only if a folder for them is given.
    """
    text, names = page.read_text(encoding="utf-8"), {"__name__": "page"}
    pieces, end, pending = [], 0, ""
    for block in BLOCK.finditer(text):
        before, (language, code) = text[end : block.start()], block.groups()
        pieces.append(before)
        end = block.end()
        if code.startswith(">>> "):
            pieces.append(block[0])
        elif language == "python":
            pending, value = printed(code, names)
            drawn = PICTURE.search(before)
            if drawn is not None and pictures is not None:
                saved(value, pictures / Path(drawn[1]).name)
            if drawn is not None and not hasattr(value, "figure"):
                raise ValueError(f"{page.name}: no Axes for {drawn[1]}")
            pieces.append(block[0])
        elif language == "console":
            pieces.append(f"```console\n{answered(code)}```")
        elif language == "text":
            pieces.append(f"```text\n{''.join(f'{x.rstrip()}\n' for x in pending.splitlines())}```")
        else:
            pieces.append(block[0])
    return "".join([*pieces, text[end:]])


def are_neighbours(one: str, other: str) -> bool:
    """Return whether two printed numbers may be roundings of one value that two processors computed.

    Processors add in different orders, so a value differs in its last binary digits. Its roundings to d
    digits are then equal or one unit of the last printed digit apart, and never more. Whole numbers are
    counts, which are exact.
    """
    a, b = (Decimal(text.replace(",", "")) for text in (one, other))
    if a == b or not any("." in text or "e" in text for text in (one, other)):
        return a == b
    last = min(x.as_tuple().exponent for x in (a, b))
    return abs(a - b) <= Decimal(1).scaleb(last)


def differing_lines(shown: str, now: str) -> list[tuple[str, str]]:
    """Return the lines of two versions of a page that differ by more than `are_neighbours` allows."""

    def agree(old: str, new: str) -> bool:
        parts = [NUMBER.split(GAP.sub(" ", line)) for line in (old, new)]  # text, number, text, number, ...
        if len(parts[0]) != len(parts[1]) or parts[0][::2] != parts[1][::2]:
            return False
        return all(map(are_neighbours, parts[0][1::2], parts[1][1::2]))

    lines = zip_longest(shown.splitlines(), now.splitlines(), fillvalue="(no line)")
    return [(old, new) for old, new in lines if old != new and not agree(old, new)]


if __name__ == "__main__":
    import matplotlib

    matplotlib.use("Agg")
    asked = [Path(a).resolve() for a in sys.argv[1:]] or PAGES
    os.environ["COLUMNS"] = "100"
    for page in asked:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            example()
            new = rerun(page, HERE / "images")
        page.write_text(new, encoding="utf-8")
        print(f"ran {page.relative_to(HERE.parent)}")
