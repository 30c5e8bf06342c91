"""Run the pages of the documentation: their code, their commands and their pictures.

`python docs/pages.py [PAGE ...]` writes into each page what its code prints, and pictures into docs/images.
`tests/test_pages.py` runs the same pages and compares what they print.

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
from io import StringIO
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
EXAMPLE = HERE / "guide" / "command-line.md"
PAGES = [
    EXAMPLE,
    *(
        HERE / "guide" / f"{name}.md"
        for name in (
            "drawing-and-labelling",
            "stopping",
            "domains",
            "how-to",
            "two-clusterings",
            "gallery",
        )
    ),
    *(HERE / f"{name}.md" for name in ("intervals", "heavy-tails")),
]
"""Pages that are run, the one that makes the files of the example first."""

BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+\.png)\)\n\n\Z")


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
    from PIL import Image

    figure = axes.figure
    figure.savefig(path, dpi=110)
    Image.open(path).convert("L").quantize(16).save(path, optimize=True)


def example() -> dict[str, Any]:
    """Make the files of the example in the current folder."""
    first = BLOCK.search(EXAMPLE.read_text(encoding="utf-8"))
    assert first is not None
    names: dict[str, Any] = {}
    printed(first[2], names)
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
